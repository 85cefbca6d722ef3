package incremental_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// joinRow is a row of one of the streams; key -1 stands for null.
type joinRow struct {
	id, key, v int
	ts         int64 // microseconds since the epoch
	late       bool
}

// joinForm is a condition over times, as SQL and as what it means.
type joinForm struct {
	on      string
	matches func(l, r int64) bool
	kinds   string // those it bounds enough
	window  bool   // over windows: the inputs are TUMBLE, the time that counts their end
	bounded bool   // both sides are
}

const second = int64(time.Second / time.Microsecond)

// joinForms are conditions with lengths a and b, in seconds.
func joinForms(a, b int64) []joinForm {
	all := "inner left right full semi"
	lo, hi := a*second, b*second
	return []joinForm{
		{on: fmt.Sprintf("l.ts BETWEEN r.ts - INTERVAL '%d seconds' AND r.ts + INTERVAL '%d seconds'", a, b), kinds: all, bounded: true,
			matches: func(l, r int64) bool { return l >= r-lo && l <= r+hi }},
		{on: fmt.Sprintf("l.ts > r.ts - INTERVAL '%d seconds' AND r.ts > l.ts - INTERVAL '%d seconds'", a, b), kinds: all, bounded: true,
			matches: func(l, r int64) bool { return l > r-lo && l < r+hi }},
		{on: fmt.Sprintf("l.ts - r.ts <= INTERVAL '%d seconds' AND NOT (r.ts - l.ts >= INTERVAL '%d seconds')", b, a), kinds: all, bounded: true,
			matches: func(l, r int64) bool { return l <= r+hi && l > r-lo }},
		{on: "l.ts = r.ts", kinds: all, bounded: true, matches: func(l, r int64) bool { return l == r }},
		{on: fmt.Sprintf("l.ts = r.ts + INTERVAL '%d seconds'", a), kinds: all, bounded: true,
			matches: func(l, r int64) bool { return l == r+lo }},
		{on: fmt.Sprintf("r.ts >= l.ts - INTERVAL '%d seconds'", a), kinds: "inner right",
			matches: func(l, r int64) bool { return r >= l-lo }},
		{on: "l.window_start = r.window_start AND l.window_end = r.window_end", kinds: all, window: true, bounded: true,
			matches: func(l, r int64) bool { return windowEnd(l) == windowEnd(r) }},
	}
}

func windowEnd(ts int64) int64 { return ts - ts%(10*second) + 10*second }

// joinCase is a generated query over two streams.
type joinCase struct {
	rng   *rand.Rand
	kind  string
	form  joinForm
	extra []string
	also  func(l, r joinRow) bool
	sides [2][]joinRow
	start int64
}

func newJoinCase(seed uint64) *joinCase {
	c := &joinCase{rng: rand.New(rand.NewPCG(seed, 7)), start: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()}
	forms := joinForms(c.rng.Int64N(12), 1+c.rng.Int64N(12))
	c.form = forms[c.rng.IntN(len(forms))]
	kinds := strings.Fields(c.form.kinds)
	c.kind = kinds[c.rng.IntN(len(kinds))]
	c.also = func(l, r joinRow) bool { return true }
	add := func(sql string, holds func(l, r joinRow) bool) {
		if c.rng.IntN(3) > 0 {
			return
		}
		before := c.also
		c.extra = append(c.extra, sql)
		c.also = func(l, r joinRow) bool { return before(l, r) && holds(l, r) }
	}
	add("l.v <= 3", func(l, _ joinRow) bool { return l.v <= 3 })
	add("r.v >= 2", func(_, r joinRow) bool { return r.v >= 2 })
	add("l.v <> r.v", func(l, r joinRow) bool { return l.v != r.v })
	return c
}

func (c *joinCase) sql() string {
	on := strings.Join(append([]string{"l.k = r.k", c.form.on}, c.extra...), " AND ")
	left, right := "l", "r"
	if c.form.window {
		left = "(SELECT id, k, v, window_start, window_end FROM TUMBLE(l, ts, INTERVAL '10 seconds')) AS l"
		right = "(SELECT id, k, v, window_start, window_end FROM TUMBLE(r, ts, INTERVAL '10 seconds')) AS r"
	}
	if c.kind == "semi" {
		return fmt.Sprintf("SELECT l.id AS li, 0 AS ri FROM %s SEMI JOIN %s ON %s", left, right, on)
	}
	return fmt.Sprintf("SELECT l.id AS li, r.id AS ri FROM %s %s JOIN %s ON %s", left, strings.ToUpper(c.kind), right, on)
}

// rows makes some rows of a side around a time.
func (c *joinCase) rows(side int, around int64) []joinRow {
	out := make([]joinRow, c.rng.IntN(13))
	for i := range out {
		ts := around + (c.rng.Int64N(16)-8)*second
		if c.rng.IntN(4) == 0 {
			ts += c.rng.Int64N(3) - 1
		}
		out[i] = joinRow{id: len(c.sides[side]) + i, key: c.rng.IntN(9)/3 - 1, v: c.rng.IntN(6), ts: ts}
	}
	return out
}

// lines writes rows as JSON and remembers them.
func (c *joinCase) lines(side int, rows []joinRow) []byte {
	var sb strings.Builder
	for _, r := range rows {
		key := fmt.Sprintf(`"k":%d,`, r.key)
		if r.key == -1 {
			key = ""
		}
		fmt.Fprintf(&sb, `{"id":%d,%s"v":%d,"ts":%q}`+"\n", r.id, key, r.v, time.UnixMicro(r.ts).UTC().Format("2006-01-02T15:04:05.000000Z"))
	}
	c.sides[side] = append(c.sides[side], rows...)
	return []byte(sb.String())
}

// judge marks the rows of a file that were late when it was read.
func (c *joinCase) judge(side int, rows []joinRow, late int64) {
	for _, r := range rows {
		t := r.ts
		if c.form.window {
			t = windowEnd(t)
		}
		c.sides[side][r.id].late = t <= late
	}
}

// want is what must have come out, as pairs of ids, once everything is evicted.
func (c *joinCase) want() []string {
	var out []string
	matched := map[int]bool{}
	for _, l := range c.sides[0] {
		found := false
		for _, r := range c.sides[1] {
			if l.late || r.late || l.key < 0 || l.key != r.key || !c.form.matches(l.ts, r.ts) || !c.also(l, r) {
				continue
			}
			matched[r.id], found = true, true
			if c.kind != "semi" {
				out = append(out, fmt.Sprint(l.id, " ", r.id))
			}
		}
		switch {
		case found && c.kind == "semi":
			out = append(out, fmt.Sprint(l.id, " 0"))
		case !found && !l.late && (c.kind == "left" || c.kind == "full"):
			out = append(out, fmt.Sprint(l.id, " NULL"))
		}
	}
	for _, r := range c.sides[1] {
		if !matched[r.id] && !r.late && (c.kind == "right" || c.kind == "full") {
			out = append(out, fmt.Sprint("NULL ", r.id))
		}
	}
	slices.Sort(out)
	return out
}

// TestJoinIsNestedLoop holds generated joins of streams to what two loops over the rows
// that were not late give, whatever the batches, shards and restarts.
func TestJoinIsNestedLoop(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	for seed := *lawSeed - 1; seed < *lawSeed-1+uint64(*modelCases); seed++ {
		c := newJoinCase(seed)
		got, w := c.run(t, seed, mem)
		if want := c.want(); !slices.Equal(got, want) {
			t.Errorf("seed %d: %s\nof\n%v\n%v\ngot  %v\nwant %v", seed, c.sql(), c.sides[0], c.sides[1], got, want)
		}
		if p, ok := w.Progress(); ok && c.form.bounded && len(p.StateOperators) > 0 && p.StateOperators[0].NumRowsTotal > 2 {
			t.Errorf("seed %d: %s keeps %d rows at the end", seed, c.sql(), p.StateOperators[0].NumRowsTotal)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := w.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// run streams the case and returns the pairs that came out.
func (c *joinCase) run(t *testing.T, seed uint64, mem memory.Allocator) ([]string, *streamtest.World) {
	t.Helper()
	ctx, pick := t.Context(), c.rng
	fsys := vfs.NewMem()
	w := streamtest.NewWorld(fsys, mem, streamtest.Variant{
		Shards: 1 + pick.IntN(4), BatchRows: []int{0, 1, 3}[pick.IntN(3)], Restart: pick.IntN(3) == 0, Replay: pick.IntN(4) == 0,
	})
	fsys.SetClock(w.Clock.Now)
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, c.sql(), err)
		}
	}
	for _, name := range []string{"l", "r"} {
		w.Declare(fmt.Sprintf("CREATE STREAM %s (id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '%d seconds') WITH (path = '/in/%s', format = 'json');", name, pick.IntN(5), name))
	}
	fail(w.Query(c.sql(), connector.Append, nil))
	fail(w.Open(ctx))
	files := map[string][]joinRow{}
	around := c.start + 3600*second
	batches := 2 + pick.IntN(6)
	for i := range batches + 1 {
		for side, name := range []string{"l", "r"} {
			rows := c.rows(side, around)
			if i == batches { // far away: the watermark passes everything
				rows = []joinRow{{id: len(c.sides[side]), key: 100 + side, ts: c.start + 7200*second}}
			}
			file := fmt.Sprintf("%s/%d.json", name, i)
			files[file] = rows
			fail(w.WriteInput(ctx, file, c.lines(side, rows)))
		}
		around += pick.Int64N(15) * second
		for {
			ran, err := w.Step(ctx)
			fail(err)
			if !ran {
				break
			}
			fail(c.judgeBatches(w, files))
			if i < batches && pick.IntN(2) == 0 {
				break
			}
		}
	}
	for side := range c.sides { // the last ones may still wait
		c.sides[side][len(c.sides[side])-1].late = true
	}
	text, err := w.Output(ctx)
	fail(err)
	last := [2]string{fmt.Sprint(len(c.sides[0]) - 1), fmt.Sprint(len(c.sides[1]) - 1)}
	return slices.DeleteFunc(pairsOf(text), func(pair string) bool {
		l, r, _ := strings.Cut(pair, " ")
		return l == last[0] || r == last[1]
	}), w
}

// judgeBatches tells which rows of the newest batches were late.
func (c *joinCase) judgeBatches(w *streamtest.World, files map[string][]joinRow) error {
	commits, err := w.NewCommits()
	for _, commit := range commits {
		if commit.Offsets.LateWatermark == nil {
			continue
		}
		for _, f := range commit.Inputs {
			name := path.Base(path.Dir(f.Path)) + "/" + path.Base(f.Path)
			c.judge(strings.Index("lr", name[:1]), files[name], *commit.Offsets.LateWatermark)
		}
	}
	return err
}

// pairsOf are the rows of an output of two columns.
func pairsOf(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && !strings.Contains(line, ":") {
			out = append(out, f[0]+" "+f[1])
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
