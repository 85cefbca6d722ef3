package optimizer_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical"
)

var (
	randomQueries = flag.Int("queries", 150, "how many random queries TestRandomQueries runs")
	firstSeed     = flag.Uint64("seed", 1, "seed of its first query")
)

// TestRandomQueries runs random queries over random data: as they are, optimized, and
// optimized without each rule that fired. All must give the same rows. A query that
// fails as it is says nothing; one that only fails optimized is a mistake. What it
// finds becomes a golden case.
func TestRandomQueries(t *testing.T) {
	t.Parallel()
	data := datasets(t)
	p := newPlanner(data[1])
	p.Bounded = true
	ran := 0
	var shortest, problem string
	for i := range *randomQueries {
		seed := *firstSeed + uint64(i)
		text := randomQuery(seed)
		plan, err := p.Query(t.Context(), text)
		if err != nil {
			t.Errorf("seed %d: %v\n%s", seed, err, text)
			continue
		}
		n, diff := compareRules(t, data, plan)
		ran += n
		if diff != "" && (shortest == "" || len(text) < len(shortest)) {
			shortest, problem = text, fmt.Sprintf("seed %d: %s", seed, diff)
		}
	}
	if shortest != "" {
		t.Errorf("the shortest query that gives other rows is\n%s\n%s", shortest, problem)
	}
	if least := *randomQueries * len(data) / 2; ran < least {
		t.Errorf("only %d runs came to an end, fewer than %d: the generator makes too many that fail", ran, least)
	}
}

// compareRules returns how many datasets the plan could be run on, and the first
// difference found.
func compareRules(t *testing.T, data []dataset, plan logical.Node) (ran int, problem string) {
	t.Helper()
	optimized, trace := optimize(t, plan)
	variants := []string{""}
	plans := []logical.Node{optimized}
	for _, rule := range firedRules(trace) {
		n, _ := optimize(t, plan, rule)
		variants, plans = append(variants, " without "+rule), append(plans, n)
	}
	for _, set := range data {
		want, err := run(t, over(t, plan, set))
		if err != nil {
			continue
		}
		ran++
		for i, n := range plans {
			got, err := runShared(t, over(t, n, set))
			diff := ""
			switch {
			case err != nil && failsAlone(t, over(t, plan, set)):
				continue
			case err != nil:
				diff = err.Error()
			default:
				diff = columnartest.Diff(want, got, columnartest.DiffOptions{ULP: 4})
			}
			if diff != "" {
				return ran, fmt.Sprintf("data %s, optimized%s:\n%s\nas written:\n%s\noptimized:\n%s",
					set.name, variants[i], diff, logical.Format(plan), logical.Format(n))
			}
		}
	}
	return ran, ""
}

// failsAlone says whether an input of a join or set operation fails when it is run by
// itself: which side is read first, and whether the other is read at all if that one is
// empty, depends on the operator.
func failsAlone(t *testing.T, plan logical.Node) bool {
	t.Helper()
	found := false
	logical.Walk(plan, func(n logical.Node) bool {
		for _, c := range n.Children() {
			if len(n.Children()) == 2 && !found {
				_, err := run(t, c)
				found = err != nil
			}
		}
		return !found
	})
	return found
}

// randomQuery is a query over tables t and u, the same for the same seed.
func randomQuery(seed uint64) string {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7))}
	q := g.query(3)
	return q.text
}

type generator struct {
	*rand.Rand
	names int
}

// kind is a class of types that a generated expression has.
type kind byte

const (
	integer kind = 'i'
	double  kind = 'f'
	text    kind = 's'
	truth   kind = 'b'
	instant kind = 't'
)

var kinds = []kind{integer, double, text, truth, instant}

type col struct {
	name string
	kind kind
}

type query struct {
	text string
	cols []col
}

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

func (g *generator) name() string {
	g.names++
	return fmt.Sprintf("c%d", g.names)
}

func (g *generator) alias() string {
	g.names++
	return fmt.Sprintf("q%d", g.names)
}

func (g *generator) query(depth int) query {
	if depth == 0 {
		return g.table()
	}
	in := g.query(depth - 1)
	switch g.IntN(14) {
	case 0, 1, 2:
		return query{"SELECT * FROM (" + in.text + ") " + g.alias() + " WHERE " + g.cond(in.cols, 2), in.cols}
	case 3:
		return g.project(in)
	case 4, 5:
		return g.join(in, g.query(g.IntN(depth)))
	case 6:
		return g.subquery(in, g.query(g.IntN(depth)))
	case 7:
		return g.setOperation(in, g.query(g.IntN(depth)))
	case 8, 9:
		return g.group(in)
	case 10:
		return g.distinct(in)
	case 11:
		return g.window(in)
	case 12:
		return g.ranked(in)
	}
	order := make([]string, len(in.cols))
	for i, c := range in.cols {
		order[i] = c.name + pick(g, "", " DESC", " NULLS LAST")
	}
	g.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return query{"SELECT * FROM (" + in.text + ") " + g.alias() + " ORDER BY " + strings.Join(order, ", ") + g.limit(), in.cols}
}

func (g *generator) limit() string {
	return pick(g, "", " LIMIT 0", " LIMIT 3", " LIMIT 10", " LIMIT 4 OFFSET 2", " OFFSET 5")
}

// table is a part of t or u; of both, LIMIT takes the first rows.
func (g *generator) table() query {
	name, from := "t", []col{{"a", integer}, {"b", integer}, {"c", text}, {"d", double}, {"ts", instant}, {"ok", truth}}
	if g.IntN(3) == 0 {
		name, from = "u", []col{{"a", integer}, {"x", text}, {"d", double}}
	}
	var q query
	var items []string
	for _, c := range from {
		if g.IntN(5) > 0 {
			q.cols = append(q.cols, col{g.name(), c.kind})
			items = append(items, c.name+" AS "+q.cols[len(q.cols)-1].name)
		}
	}
	if len(items) == 0 {
		q.cols, items = []col{{g.name(), integer}}, []string{"a"}
		items[0] += " AS " + q.cols[0].name
	}
	q.text = "SELECT " + strings.Join(items, ", ") + " FROM " + name
	if g.IntN(6) == 0 {
		q.text += g.limit()
	}
	return q
}

func (g *generator) project(in query) query {
	var out query
	var items []string
	for range 1 + g.IntN(4) {
		k := pick(g, kinds...)
		out.cols = append(out.cols, col{g.name(), k})
		items = append(items, g.expr(k, in.cols, 2)+" AS "+out.cols[len(out.cols)-1].name)
	}
	out.text = "SELECT " + strings.Join(items, ", ") + " FROM (" + in.text + ") " + g.alias()
	return out
}

func (g *generator) join(l, r query) query {
	kind := pick(g, "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", ",", "ASOF JOIN", "ASOF LEFT JOIN")
	if strings.HasPrefix(kind, "ASOF") {
		return g.asofJoin(kind, l, g.table()) // of equally near rows of a table the last one counts
	}
	both := append(append([]col(nil), l.cols...), r.cols...)
	out := query{cols: both}
	if kind == "SEMI JOIN" || kind == "ANTI JOIN" {
		out.cols = l.cols
	}
	on := g.equality(l.cols, r.cols)
	for range g.IntN(3) {
		on += " AND " + g.cond(both, 1)
	}
	word := " ON "
	if kind == "," {
		word = " WHERE "
	}
	out.text = fmt.Sprintf("SELECT * FROM (%s) %s %s (%s) %s%s%s", l.text, g.alias(), kind, r.text, g.alias(), word, on)
	return out
}

// asofJoin joins on columns of one kind, if both have one, by the nearest.
func (g *generator) asofJoin(kind string, l, r query) query {
	for range 10 {
		a, b := pick(g, l.cols...), pick(g, r.cols...)
		if a.kind != b.kind {
			continue
		}
		on := a.name + pick(g, " >= ", " > ", " <= ", " < ") + b.name
		if g.IntN(2) == 0 {
			on += " AND " + g.equality(l.cols, r.cols)
		}
		if g.IntN(3) == 0 {
			on += " AND " + g.cond(pick(g, l.cols, r.cols), 1)
		}
		return query{fmt.Sprintf("SELECT * FROM (%s) %s %s (%s) %s ON %s", l.text, g.alias(), kind, r.text, g.alias(), on), append(append([]col(nil), l.cols...), r.cols...)}
	}
	return l
}

// equality equates columns of one kind, if both have one.
func (g *generator) equality(l, r []col) string {
	for range 10 {
		a, b := pick(g, l...), pick(g, r...)
		if a.kind == b.kind {
			return a.name + pick(g, " = ", " = ", " = ", " IS NOT DISTINCT FROM ") + b.name
		}
	}
	return pick(g, "TRUE", "FALSE", "1 = 1")
}

func (g *generator) subquery(in, sub query) query {
	c := pick(g, in.cols...)
	one := "SELECT " + g.expr(c.kind, sub.cols, 1) + " FROM (" + sub.text + ") " + g.alias()
	cond := pick(g, c.name+" IN ("+one+")", c.name+" NOT IN ("+one+")", "EXISTS ("+one+")", "NOT EXISTS ("+one+")")
	return query{"SELECT * FROM (" + in.text + ") " + g.alias() + " WHERE " + cond + " AND " + g.cond(in.cols, 1), in.cols}
}

func (g *generator) setOperation(in, other query) query {
	items := make([]string, len(in.cols))
	for i, c := range in.cols {
		items[i] = g.expr(c.kind, other.cols, 1)
	}
	op := pick(g, "UNION ALL", "UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
	return query{"SELECT * FROM (" + in.text + ") " + g.alias() + " " + op + " SELECT " + strings.Join(items, ", ") + " FROM (" + other.text + ") " + g.alias(), in.cols}
}

func (g *generator) group(in query) query {
	var out query
	var items, keys []string
	for range g.IntN(3) {
		c := pick(g, in.cols...)
		key := c.name
		if g.IntN(3) == 0 {
			key = "coalesce(" + c.name + ", " + g.expr(c.kind, in.cols, 1) + ")"
		}
		keys = append(keys, key)
		out.cols = append(out.cols, col{g.name(), c.kind})
		items = append(items, key+" AS "+out.cols[len(out.cols)-1].name)
	}
	for range 1 + g.IntN(3) {
		c := pick(g, in.cols...)
		agg := pick(g, "count(*)", "count("+c.name+")", "count(DISTINCT "+c.name+")", "sum("+g.expr(integer, in.cols, 1)+")", "min("+c.name+")", "max("+c.name+")")
		if g.IntN(3) == 0 {
			agg += " FILTER (WHERE " + g.cond(in.cols, 1) + ")"
		}
		k := integer
		if strings.HasPrefix(agg, "m") {
			k = c.kind
		}
		out.cols = append(out.cols, col{g.name(), k})
		items = append(items, agg+" AS "+out.cols[len(out.cols)-1].name)
	}
	out.text = "SELECT " + strings.Join(items, ", ") + " FROM (" + in.text + ") " + g.alias()
	if len(keys) > 0 {
		out.text += " GROUP BY " + strings.Join(keys, ", ")
	}
	return out
}

func (g *generator) distinct(in query) query {
	if g.IntN(2) == 0 {
		return query{"SELECT DISTINCT * FROM (" + in.text + ") " + g.alias(), in.cols}
	}
	key := pick(g, in.cols...).name
	order := []string{key}
	for _, c := range in.cols {
		if c.name != key {
			order = append(order, c.name)
		}
	}
	return query{"SELECT DISTINCT ON (" + key + ") * FROM (" + in.text + ") " + g.alias() + " ORDER BY " + strings.Join(order, ", "), in.cols}
}

// ranked is the first rows of partitions; of a row_number all columns decide.
func (g *generator) ranked(in query) query {
	var keys, order []string
	for _, c := range in.cols {
		order = append(order, c.name+pick(g, "", " DESC", " NULLS LAST", " DESC NULLS FIRST"))
	}
	g.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	rank := pick(g, "row_number", "rank", "dense_rank")
	if rank != "row_number" {
		order = order[:1+g.IntN(len(order))]
	}
	for range g.IntN(3) {
		keys = append(keys, pick(g, in.cols...).name)
	}
	over := " OVER (ORDER BY " + strings.Join(order, ", ") + ")"
	if len(keys) > 0 {
		over = " OVER (PARTITION BY " + strings.Join(keys, ", ") + " ORDER BY " + strings.Join(order, ", ") + ")"
	}
	return query{"SELECT * FROM (" + in.text + ") " + g.alias() + " QUALIFY " + rank + "()" + over + pick(g, " <= ", " < ", " = ") + pick(g, "1", "2", "3"), in.cols}
}

// window repeats rows for the windows of their time; without a time it only filters.
func (g *generator) window(in query) query {
	for _, c := range in.cols {
		if c.kind != instant {
			continue
		}
		names, items := []col{}, []string{}
		for _, c := range append(in.cols, col{"window_start", instant}, col{"window_end", instant}) {
			names = append(names, col{g.name(), c.kind})
			items = append(items, c.name+" AS "+names[len(names)-1].name)
		}
		call := pick(g, "TUMBLE((%s), %s, INTERVAL '2 hours')", "HOP((%s), %s, INTERVAL '1 hour', INTERVAL '3 hours')", "SESSION((%s), %s, INTERVAL '90 minutes')")
		return query{"SELECT " + strings.Join(items, ", ") + " FROM " + fmt.Sprintf(call, in.text, c.name), names}
	}
	return query{"SELECT * FROM (" + in.text + ") " + g.alias() + " WHERE " + g.cond(in.cols, 2), in.cols}
}

// cond is a condition over cols, sometimes one that can fail.
func (g *generator) cond(cols []col, depth int) string {
	if depth > 0 && g.IntN(2) == 0 {
		switch g.IntN(5) {
		case 0, 1:
			return "(" + g.cond(cols, depth-1) + " AND " + g.cond(cols, depth-1) + ")"
		case 2, 3:
			return "(" + g.cond(cols, depth-1) + " OR " + g.cond(cols, depth-1) + ")"
		}
		return "NOT (" + g.cond(cols, depth-1) + ")"
	}
	k := pick(g, kinds...)
	a, b := g.expr(k, cols, 1), g.expr(k, cols, 1)
	switch g.IntN(10) {
	case 0:
		return "(" + a + " IS NULL)"
	case 1:
		return "(" + a + " IS NOT NULL)"
	case 2:
		return "(" + a + pick(g, " IN (", " NOT IN (") + b + ", " + g.constant(k) + ", " + g.constant(k) + "))"
	case 3:
		return "(" + a + pick(g, " IS DISTINCT FROM ", " IS NOT DISTINCT FROM ") + b + ")"
	case 4:
		return pick(g, "TRUE", "FALSE", "NULL", "(1 = 1)", "(NULL = 1)", "('a' < 'b')")
	case 5:
		return "(" + g.expr(text, cols, 1) + " LIKE " + pick(g, "'a%'", "'%'", "'_'") + ")"
	case 6:
		return "(" + g.expr(integer, cols, 1) + pick(g, " // ", " + ", " * ") + g.expr(integer, cols, 1) + " > 0)"
	}
	return "(" + a + pick(g, " = ", " <> ", " < ", " <= ", " > ", " >= ") + pick(g, b, g.constant(k)) + ")"
}

func (g *generator) constant(k kind) string {
	if g.IntN(8) == 0 {
		return "NULL"
	}
	switch k {
	case integer:
		return pick(g, "0", "1", "2", "-1", "100")
	case double:
		return pick(g, "0e0", "1e0", "-5e-1", "-0e0")
	case text:
		return pick(g, "'a'", "'b'", "''", "'c'")
	case truth:
		return pick(g, "TRUE", "FALSE")
	}
	return pick(g, "TIMESTAMP '1970-01-01 00:00:00'", "TIMESTAMP '1970-01-01 01:00:00'")
}

// expr is an expression of a kind: a column if there is one, or something computed.
func (g *generator) expr(k kind, cols []col, depth int) string {
	var have []col
	for _, c := range cols {
		if c.kind == k {
			have = append(have, c)
		}
	}
	if depth == 0 || g.IntN(3) > 0 {
		if len(have) > 0 && g.IntN(4) > 0 {
			return pick(g, have...).name
		}
		return g.constantOf(k)
	}
	a, b := g.expr(k, cols, depth-1), g.expr(k, cols, depth-1)
	switch g.IntN(6) {
	case 0:
		return "coalesce(" + a + ", " + b + ")"
	case 1:
		return "CASE WHEN " + g.cond(cols, depth-1) + " THEN " + a + " ELSE " + b + " END"
	case 2:
		return "CASE WHEN " + g.cond(cols, depth-1) + " THEN " + a + " END"
	}
	switch k {
	case integer:
		return pick(g, "length("+g.expr(text, cols, depth-1)+")", "("+a+" + "+b+")", "("+a+" % 3)")
	case double:
		return pick(g, "abs("+a+")", "CAST("+g.expr(integer, cols, depth-1)+" AS DOUBLE)", "-("+a+")")
	case text:
		return pick(g, "upper("+a+")", "("+a+" || "+b+")", "CAST("+g.expr(pick(g, integer, truth), cols, depth-1)+" AS VARCHAR)")
	case truth:
		return g.cond(cols, depth-1)
	}
	return pick(g, a, "("+a+" + INTERVAL '1 hour')")
}

// constantOf is a constant with its type, so that NULL has one.
func (g *generator) constantOf(k kind) string {
	c := g.constant(k)
	if c == "NULL" {
		return "CAST(NULL AS " + map[kind]string{integer: "INTEGER", double: "DOUBLE", text: "VARCHAR", truth: "BOOLEAN", instant: "TIMESTAMP"}[k] + ")"
	}
	return c
}
