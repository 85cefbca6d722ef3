package streamtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tidemill/tidemill/logical/connector"
)

// Case is a generated query over generated files, for the law that the stream's result
// is that of the batch. It has a text form: a golden file.
type Case struct {
	Seed    uint64
	Variant Variant
	// Era is about when its rows are.
	Era time.Time
	// Crash is the mutating call at which the machine dies, -1 for none.
	Crash   int
	Query   genQuery
	Dim     []string // rows of the bounded table dim
	Batches []genBatch
	// Limit is max_files_per_trigger, 0 for none.
	Limit int
}

// genBatch is what lands before a trigger: files of streams t and u.
type genBatch struct {
	Files []genFile
	// Drain runs until nothing is left; otherwise one micro-batch runs.
	Drain bool
}

type genFile struct {
	Name string // t/3.json
	Rows []string
}

// genQuery is a query in pieces, so that a failing one can be made smaller.
type genQuery struct {
	Mode      connector.OutputMode
	Kind      queryKind
	Union     bool   // t UNION ALL u instead of t
	Stream    string // "", or the kind of join of t with u on k
	Before    int    // of such a join: how many seconds u may be earlier,
	After     int    // or later
	Policy    string // of watermarks, "" for the default
	Dedup     string // what the rows are made DISTINCT ON below everything else
	Below     int    // LIMIT below an aggregate, in complete mode
	Join      string // "", or the kind of join with dim
	Where     []string
	Items     []string // select items of a stateless query, as expressions
	Keys      []string // grouping expressions; those of the window are implied
	Aggs      []string
	Having    string
	Window    string // TUMBLE, HOP, SESSION with its sizes: "TUMBLE 10"
	Grouped   bool   // the stream groups by window(…) instead of a table function's columns
	Offset    int    // of such a window, in seconds
	Top       int    // ORDER BY all, LIMIT Top, in complete mode
	Count     int    // LIMIT of a stateless query
	Watermark string // the delay, "" for none
	Rollup    bool   // GROUP BY ROLLUP over the keys
	Chain     bool   // the windows are aggregated again
	Outer     int    // by windows of so many seconds, 0: by the same
}

type queryKind uint8

const (
	stateless queryKind = iota
	aggregated
	distinct   // SELECT DISTINCT
	distinctOn // SELECT DISTINCT ON (keys)
)

// genSchema are the columns of t and u.
const (
	genSchema  = "ts timestamp, k string, j bigint, d double, m decimal(12,2), b boolean, s string"
	genColumns = "ts, k, j, d, m, b, s"
)

// generator draws one case.
type generator struct{ *rand.Rand }

// Generate makes the case of a seed.
func Generate(seed uint64) *Case {
	g := generator{rand.New(rand.NewPCG(seed, 77))}
	c := &Case{Seed: seed, Variant: g.variant(), Crash: -1, Query: g.query(), Era: pick(g, genEras)}
	if g.IntN(5) == 0 {
		c.Crash = g.IntN(120)
	}
	if g.IntN(4) == 0 {
		c.Limit = 1 + g.IntN(2)
	}
	for i := range g.IntN(4) {
		c.Dim = append(c.Dim, fmt.Sprintf(`{"k":%s,"name":"n%d","w":%d}`, []string{`"a"`, `"b"`, `"c"`, "null"}[i], i, i*10))
	}
	c.Batches = g.batches(c.Era, c.Query.twoStreams())
	return c
}

func (g generator) variant() Variant {
	v := pick(g, Matrix())
	v.Shards = pick(g, []int{1, 1, 2, 4})
	v.BatchRows = pick(g, []int{0, 0, 1, 2, 7})
	v.NoOptimize = v.NoOptimize || g.IntN(6) == 0
	return v
}

func pick[T any](g generator, list []T) T { return list[g.IntN(len(list))] }

// some draws from n to m different elements of list.
func some[T any](g generator, list []T, n, m int) []T {
	list = slices.Clone(list)
	g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(len(list), n+g.IntN(m-n+1))]
}

func (g generator) batches(era time.Time, two bool) []genBatch {
	var out []genBatch
	file, at := 0, 0
	for range 1 + g.IntN(5) {
		b := genBatch{Drain: g.IntN(2) == 0}
		for range g.IntN(3) + g.IntN(2) {
			file++
			stream := "t"
			if two && g.IntN(2) == 0 {
				stream = "u"
			}
			f := genFile{Name: fmt.Sprintf("%s/%03d.json", stream, file)}
			for range g.IntN(8) {
				f.Rows = append(f.Rows, g.row(era, at))
			}
			at += g.IntN(12)
			b.Files = append(b.Files, f)
		}
		out = append(out, b)
	}
	return out
}

// row is a row with a time about at seconds into an era, or far away.
func (g generator) row(era time.Time, at int) string {
	null := func(text string) string {
		if g.IntN(12) == 0 {
			return "null"
		}
		return text
	}
	ts := era.Add(time.Duration(at+g.IntN(16)-8)*time.Second + time.Duration(g.IntN(3)/2)*500*time.Millisecond)
	if g.IntN(150) == 0 {
		ts = pick(g, genEras)
	}
	return fmt.Sprintf(`{"ts":%s,"k":%s,"j":%s,"d":%s,"m":%s,"b":%s,"s":%s}`,
		null(`"`+ts.Format("2006-01-02T15:04:05.999999Z07:00")+`"`),
		null(pick(g, []string{`"a"`, `"b"`, `"c"`, `""`, `"a"`})),
		null(fmt.Sprint(pick(g, []int{0, 1, 2, 3, -1, -4, 1000000, g.IntN(100)}))),
		null(pick(g, []string{"0.1", "0.25", "-0.0", "0.0", "1e10", "3.3", "-7.125", "0.001", fmt.Sprint(g.Float64())})),
		null(pick(g, []string{"0.00", "1.10", "-2.25", "99.99", "12345.67"})),
		null(pick(g, []string{"true", "false"})),
		null(pick(g, []string{`"x"`, `"yy"`, `"Zz"`, `"é"`, `""`, `" x"`})))
}

// genEras are times about which rows are: the middle one spans the epoch.
var genEras = []time.Time{
	time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 2, 29, 23, 59, 50, 0, time.UTC),
	time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1901, 12, 13, 20, 45, 52, 0, time.UTC), time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC),
}

var (
	genDelays     = []string{"0 seconds", "3 seconds", "10 seconds", "1 minute"}
	genPredicates = []string{
		"j > 0", "k = 'a'", "k IN ('a', 'b')", "d < 1", "b", "NOT b", "s LIKE '%z'", "k IS NULL", "k IS NOT NULL", "j % 2 = 0",
		"j BETWEEN -1 AND 3", "ts >= TIMESTAMP '2024-01-01T00:00:05Z'", "length(s) > 1", "m > 1", "coalesce(j, 0) < 50",
		"(k = 'a' OR j > 1)", "k <> s", "CASE WHEN b THEN j > 0 ELSE d > 0 END", "d = 0", "m IS NULL OR m < 50", "1 = 1",
	}
	genScalars = []string{
		"ts", "k", "j", "d", "m", "b", "s", "j + 1", "j * 2 - 1", "d * 0.5", "upper(s)", "s || '-'", "coalesce(k, '?')", "abs(j)",
		"CASE WHEN j > 0 THEN 'p' WHEN j < 0 THEN 'n' END", "CAST(j AS VARCHAR)", "length(s)", "m + 1", "date_trunc('minute', ts)",
		"j IS NULL", "nullif(k, 'a')", "CAST(d AS VARCHAR)", "j = 1 OR b", "least(j, 2)",
	}
	genKeys = []string{"k", "j", "j % 3", "b", "s", "upper(s)", "d", "m", "date_trunc('minute', ts)", "coalesce(k, '?')", "d > 0", "ts"}
	// genAggs do not depend on the order of rows.
	genAggs = []string{
		"count(*)", "count(j)", "count(s)", "sum(j)", "sum(d)", "sum(m)", "min(j)", "max(j)", "min(s)", "max(s)", "min(d)", "max(m)", "min(ts)", "max(ts)",
		"max(b)", "avg(j)", "avg(m)", "count(DISTINCT k)", "count(DISTINCT j)", "count(DISTINCT d)", "sum(DISTINCT j)", "count(DISTINCT s)",
		"bool_and(b)", "bool_or(j > 0)", "count(*) FILTER (WHERE b)", "sum(j) FILTER (WHERE k = 'a')", "sum(j + 1)", "avg(d)", "sum(CASE WHEN b THEN 1 ELSE 0 END)",
		"sum(d) + sum(j)", "max(j) - min(j)", "count(*) * 2",
		"stddev_pop(j)", "var_samp(j)", "median(j)", "count_if(b)", "percentile(j, 0.25)", "sum(CAST(j AS DOUBLE))",
	}
	genOrdered = []string{"first(j)", "last(j)", "first(s)", "last(s)", "last(d)", "first(k)", "collect_list(j)", "collect_set(k)", "min_by(s, j)", "max_by(k, d)", "listagg(s, ',')"}
)

// query draws a query that is legal and deterministic.
func (g generator) query() genQuery {
	q := genQuery{Union: g.IntN(4) == 0, Kind: queryKind(pick(g, []int{0, 0, 1, 1, 1, 1, 1, 2, 3}))}
	if g.IntN(4) == 0 {
		q.Join = pick(g, []string{"JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"})
	}
	q.Where = some(g, genPredicates, 0, 2)
	if g.IntN(7) == 0 && q.Kind != distinctOn && q.Kind != distinct {
		q.Union, q.Join = false, ""
		q.Stream, q.Before, q.After = pick(g, []string{"JOIN", "LEFT JOIN", "SEMI JOIN"}), g.IntN(6), g.IntN(6)
	}
	switch q.Kind {
	case stateless:
		q.Items = some(g, genScalars, 1, 4)
		if q.Stream != "" && (q.Stream != "JOIN" || g.IntN(2) == 0) {
			q.Watermark = pick(g, genDelays)
		}
		if g.IntN(5) == 0 && !q.Union && q.Stream == "" && q.Join == "" {
			q.Count = 1 + g.IntN(12)
		}
	case distinctOn:
		// The first in arrival order: of a union that depends on the batches, and a join
		// has none.
		q.Union, q.Join = false, ""
		q.Keys, q.Items = some(g, genKeys[:8], 1, 2), some(g, genScalars, 1, 3)
		if g.IntN(2) == 0 {
			q.Watermark = pick(g, genDelays)
			if g.IntN(2) == 0 {
				q.Keys = append(q.Keys, "ts") // state goes when the watermark passes
			}
		}
	case distinct:
		q.Mode = pick(g, []connector.OutputMode{connector.Append, connector.Update, connector.Complete})
		q.Items = some(g, genScalars, 1, 3)
		if q.Mode == connector.Append {
			q.Watermark = pick(g, genDelays)
			q.Items = append(slices.DeleteFunc(q.Items, func(i string) bool { return i == "ts" }), "ts")
		}
	case aggregated:
		g.aggregate(&q)
	}
	if q.isJoined() {
		q.Items = append(q.Items, some(g, []string{"name", "w + 1"}, 0, len(q.Items))...)
	}
	if q.Watermark != "" && q.twoStreams() && g.IntN(3) == 0 {
		q.Policy = pick(g, []string{"min", "max"})
	}
	return q
}

func (g generator) aggregate(q *genQuery) {
	q.Aggs = some(g, genAggs, 1, 4)
	if !q.Union && q.Stream == "" && q.Join == "" && g.IntN(3) == 0 {
		q.Aggs = append(q.Aggs, some(g, genOrdered, 1, 2)...)
	}
	q.Keys = some(g, genKeys, 0, 2)
	if q.isJoined() && g.IntN(2) == 0 {
		q.Keys = append(q.Keys, "name")
	}
	switch {
	case g.IntN(8) == 0:
		q.Watermark, q.Mode = pick(g, genDelays), pick(g, []connector.OutputMode{connector.Append, connector.Append, connector.Update})
		q.Keys = append(slices.DeleteFunc(q.Keys, func(k string) bool { return k == "ts" }), "ts")
	case q.Stream != "" || g.IntN(2) == 0:
		g.windows(q)
	default:
		q.Mode = pick(g, []connector.OutputMode{connector.Update, connector.Complete})
	}
	if q.Stream != "" {
		q.Mode = connector.Append
	}
	g.below(q)
	q.Rollup = q.Mode == connector.Complete && !q.isSession() && len(q.Keys) > 0 && g.IntN(4) == 0
	switch {
	case g.IntN(4) != 0:
	case q.Mode == connector.Update:
		q.Having = "count(*) > 1" // once true for a group it stays so
	default:
		q.Having = pick(g, []string{"count(*) > 1", "sum(j) > 0", "max(s) IS NOT NULL"})
	}
	if q.Mode == connector.Complete && g.IntN(4) == 0 {
		q.Top = 1 + g.IntN(5)
	}
}

// windows makes the groups of a query windows.
func (g generator) windows(q *genQuery) {
	q.Watermark = pick(g, genDelays)
	q.Window = pick(g, []string{"TUMBLE 10", "TUMBLE 5", "HOP 5 10", "HOP 4 10", "SESSION 3", "SESSION 6", "TUMBLE 60"})
	q.Mode = pick(g, []connector.OutputMode{connector.Append, connector.Append, connector.Update, connector.Complete})
	q.Keys = slices.DeleteFunc(q.Keys, func(k string) bool { return k == "ts" })
	q.Grouped = g.IntN(2) == 0
	if q.Grouped && !q.isSession() && g.IntN(2) == 0 {
		q.Offset = g.IntN(9) - 4
	}
	if q.isSession() {
		if q.Mode == connector.Update {
			q.Mode = connector.Append
		}
		// Sessions are merged by the aggregate right above their rows.
		q.Join, q.Keys = "", slices.DeleteFunc(q.Keys, func(k string) bool { return k == "name" || !q.Grouped && strings.ContainsAny(k, " (") })
		// Two stored sessions that merge do not know which came first.
		q.Aggs = append(slices.DeleteFunc(q.Aggs, func(a string) bool { return slices.Contains(genOrdered, a) }), "count(*)")
	}
	if (q.Mode == connector.Append || q.Stream != "") && g.IntN(4) == 0 {
		q.Chain = true
		if q.isSession() || g.IntN(2) == 0 {
			q.Outer = pick(g, []int{10, 20, 7})
		}
	}
}

// below puts another operator below an aggregate of one stream.
func (g generator) below(q *genQuery) {
	switch {
	case q.twoStreams() || g.IntN(5) != 0:
	case q.Watermark != "" && q.Mode == connector.Append:
		q.Dedup = pick(g, []string{"k, ts", "ts", "k", "j, ts"})
	case q.Watermark == "":
		q.Dedup = pick(g, []string{"k", "j", "s, b"})
	}
	if !q.twoStreams() && q.Mode == connector.Complete && g.IntN(6) == 0 {
		q.Below = 1 + g.IntN(15)
	}
}

// streams are the declarations, in the form of golden files.
func (c *Case) streams() []*streamDecl {
	names := []string{"t"}
	if c.Query.twoStreams() {
		names = append(names, "u")
	}
	var out []*streamDecl
	for _, name := range names {
		d := &streamDecl{name: name, kind: "STREAM", format: "json", columns: genSchema, perTriggers: c.Limit}
		if c.Query.Watermark != "" {
			d.watermark = fmt.Sprintf("WATERMARK FOR ts AS ts - INTERVAL '%s'", c.Query.Watermark)
		}
		out = append(out, d)
	}
	return out
}

// sentinel is a row far in the future, whose time closes everything.
const sentinel = `{"ts":"2100-01-01T00:00:00Z"}`

// all are the batches, and the one that closes what is open.
func (c *Case) all() []genBatch {
	if c.Query.Watermark == "" || c.Query.Mode == connector.Complete {
		return c.Batches
	}
	last := genBatch{Drain: true, Files: []genFile{{Name: "t/last.json", Rows: []string{sentinel}}}}
	if c.Query.twoStreams() {
		last.Files = append(last.Files, genFile{Name: "u/last.json", Rows: []string{sentinel}})
	}
	return append(slices.Clone(c.Batches), last)
}

// Golden is the case as a golden file, to be filled in with -rewrite.
func (c *Case) Golden() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "# Generated with seed %d, found in variant %s.\n\n", c.Seed, c.Variant.Name)
	for _, d := range c.streams() {
		fmt.Fprintf(&sb, "source %s format=json schema=(%s)", d.name, d.columns)
		if c.Query.Watermark != "" {
			fmt.Fprintf(&sb, " watermark=(ts, %s)", c.Query.Watermark)
		}
		if c.Limit > 0 {
			fmt.Fprintf(&sb, " limit=%d", c.Limit)
		}
		sb.WriteString("\n----\n\n")
	}
	if c.Query.Join != "" {
		fmt.Fprintf(&sb, "table dim format=json schema=(%s)\n-- dim/1.json --\n%s----\n\n", dimSchema, lines(c.Dim))
	}
	fmt.Fprintf(&sb, "query mode=%s", c.Query.Mode)
	if p := c.Query.Policy; p != "" {
		fmt.Fprintf(&sb, " set=(watermark_policy, %s)", p)
	}
	fmt.Fprintf(&sb, "\n%s\n----\n", c.Query.sql(false))
	for _, b := range c.all() {
		word := "trigger"
		if b.Drain {
			word = "drain"
		}
		fmt.Fprintf(&sb, "\n%s\n", word)
		for _, f := range b.Files {
			fmt.Fprintf(&sb, "-- %s --\n%s", f.Name, lines(f.Rows))
		}
		sb.WriteString("----\n")
	}
	return sb.String() + "\ndrain\n----\n"
}

const dimSchema = "k string, name string, w bigint"

func lines(rows []string) string {
	if len(rows) == 0 {
		return ""
	}
	return strings.Join(rows, "\n") + "\n"
}
