package tidemill_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// bomb panics at one place of a user's code, once it is armed.
type bomb struct {
	place string
	armed atomic.Bool
}

func (b *bomb) at(place string) {
	if b.armed.Load() && b.place == place {
		panic("boom\n\tat " + place)
	}
}

// user is everything a user hands over, each part with a bomb: the parts of the guide.
type user struct {
	*bomb
	upto *atomic.Int64
	out  *ledger
}

func newUser(place string) *user {
	return &user{&bomb{place: place}, &atomic.Int64{}, &ledger{batches: map[int64][]string{}}}
}

func (u *user) scalar() *function.Scalar {
	f := tidemill.ScalarFunc("f", []arrow.DataType{columnar.Int64}, columnar.Float64, func(args []any) (any, error) {
		u.at("function")
		return float64(args[0].(int64) + 1), nil
	})
	bind := f.Overloads[0].Bind
	f.Overloads[0].Bind = func(args []arrow.DataType, constants []arrow.Array) (function.Kernel, error) {
		u.at("Bind")
		return bind(args, constants)
	}
	f.Overloads[0].Result = func([]arrow.DataType) (arrow.DataType, error) {
		u.at("Result of a call")
		return columnar.Float64, nil
	}
	return f
}

func (u *user) aggregate() *function.Aggregate {
	f := product()
	open := f.Overloads[0].New
	f.Overloads[0].New = func(mem memory.Allocator, args []arrow.DataType) (function.Accumulator, error) {
		u.at("New")
		a, err := open(mem, args)
		return &bombedState{a, u.bomb}, err
	}
	return f
}

type bombedState struct {
	function.Accumulator
	*bomb
}

func (a *bombedState) Fields() []arrow.Field { a.at("Fields"); return a.Accumulator.Fields() }
func (a *bombedState) Resize(groups int)     { a.at("Resize"); a.Accumulator.Resize(groups) }
func (a *bombedState) Update(groups []uint32, args []columnar.Datum) error {
	a.at("Update")
	return a.Accumulator.Update(groups, args)
}
func (a *bombedState) Merge(groups []uint32, state []arrow.Array) error {
	a.at("Merge")
	return a.Accumulator.Merge(groups, state)
}
func (a *bombedState) Load(groups []uint32, state []arrow.Array) error {
	a.at("Load")
	return a.Accumulator.Load(groups, state)
}
func (a *bombedState) Clear(groups []uint32) { a.at("Clear"); a.Accumulator.Clear(groups) }
func (a *bombedState) State(groups []uint32) ([]arrow.Array, error) {
	a.at("State")
	return a.Accumulator.State(groups)
}
func (a *bombedState) Result(groups []uint32) (arrow.Array, error) {
	a.at("Result")
	return a.Accumulator.Result(groups)
}
func (a *bombedState) Bytes() int64 { a.at("Bytes"); return a.Accumulator.Bytes() }
func (a *bombedState) Release()     { a.at("Release"); a.Accumulator.Release() }

func (u *user) connector() connector.Connector {
	return connector.Connector{
		Name: "counter",
		Discover: func(context.Context, connector.Env) (connector.Discovery, error) {
			u.at("Discover")
			return connector.Discovery{Schema: counterSchema}, nil
		},
		Source: func(context.Context, connector.Env) (connector.Source, error) {
			u.at("Source")
			return &bombedSource{&counter{u.upto}, u.bomb}, nil
		},
		Table: func(context.Context, connector.Env) (connector.Table, error) {
			u.at("Table")
			return u.table(), nil
		},
	}
}

func (u *user) table() connector.Table { return &bombedTable{u.bomb} }

type bombedSource struct {
	*counter
	*bomb
}

func (s *bombedSource) Target(ctx context.Context) (connector.Offset, error) {
	s.at("Target")
	return s.counter.Target(ctx)
}
func (s *bombedSource) LatestOffset(ctx context.Context, start connector.Offset, limit connector.Limit) (connector.Offset, error) {
	s.at("LatestOffset")
	return s.counter.LatestOffset(ctx, start, limit)
}
func (s *bombedSource) Units(ctx context.Context, start, end connector.Offset, req connector.ScanRequest) ([]connector.Unit, error) {
	s.at("Units")
	units, err := s.counter.Units(ctx, start, end, req)
	return bombedUnits(s.bomb, units), err
}
func (s *bombedSource) Commit(ctx context.Context, end connector.Offset) error {
	s.at("Commit")
	return s.counter.Commit(ctx, end)
}
func (s *bombedSource) Metrics() map[string]string { s.at("Metrics"); return nil }
func (s *bombedSource) Close() error               { s.at("Close of the source"); return s.counter.Close() }

// bombedTable is the numbers below 100,000 in ten units.
type bombedTable struct{ *bomb }

func (t *bombedTable) Schema() *arrow.Schema { t.at("Schema"); return counterSchema }
func (t *bombedTable) Units(_ context.Context, req connector.ScanRequest) ([]connector.Unit, error) {
	t.at("Units")
	var units []connector.Unit
	for i := range int64(10) {
		units = append(units, &counted{i * 10_000, (i + 1) * 10_000, req})
	}
	return bombedUnits(t.bomb, units), nil
}
func (t *bombedTable) RowCount() (int64, bool) { t.at("RowCount"); return 100_000, true }

func bombedUnits(b *bomb, units []connector.Unit) []connector.Unit {
	for i, u := range units {
		units[i] = &bombedUnit{u, b}
	}
	return units
}

type bombedUnit struct {
	connector.Unit
	*bomb
}

func (u *bombedUnit) Open(ctx context.Context) (columnar.Reader, error) {
	u.at("Open")
	r, err := u.Unit.Open(ctx)
	return &bombedReader{r, u.bomb}, err
}

type bombedReader struct {
	columnar.Reader
	*bomb
}

func (r *bombedReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	r.at("Next")
	return r.Reader.Next(ctx)
}
func (r *bombedReader) Close() error { r.at("Close of a unit"); return r.Reader.Close() }

func (u *user) sink(context.Context, connector.Env) (connector.Sink, error) {
	u.at("ToSink")
	return &bombedSink{u.out, u.bomb}, nil
}

type bombedSink struct {
	*ledger
	*bomb
}

func (s *bombedSink) LastBatch(ctx context.Context) (int64, bool, error) {
	s.at("LastBatch")
	return s.ledger.LastBatch(ctx)
}
func (s *bombedSink) Stage(ctx context.Context, b connector.SinkBatch) (connector.Staged, error) {
	s.at("Stage")
	st, err := s.ledger.Stage(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("the ledger: %w", err)
	}
	s.at("Stage, at the end")
	return &bombedStaged{st, s.bomb}, nil
}
func (s *bombedSink) Recover(ctx context.Context) (connector.Staged, error) {
	s.at("Recover")
	return s.ledger.Recover(ctx)
}
func (s *bombedSink) Close() error { s.at("Close of the sink"); return s.ledger.Close() }

type bombedStaged struct {
	connector.Staged
	*bomb
}

func (s *bombedStaged) Publish(ctx context.Context) error {
	s.at("Publish")
	return s.Staged.Publish(ctx)
}

func (u *user) listener() tidemill.Listener {
	return tidemill.Listener{
		Started:    func(string, string, string) { u.at("Started") },
		Progress:   func(tidemill.Progress) { u.at("Progress") },
		Terminated: func(error) { u.at("Terminated") },
	}
}

// bombedCounter counts the rows of each key, by a processor.
type bombedCounter struct {
	*bomb
	n *tidemill.ValueState[int64]
}

type (
	parity struct {
		Odd int64
	}
	number struct{ M float64 }
	tally  struct{ Odd, N int64 }
)

func (u *user) processor() tidemill.StatefulProcessor[parity, number, tally] {
	u.at("the making of a processor")
	return &bombedCounter{bomb: u.bomb}
}

func (c *bombedCounter) Init(h *tidemill.StateHandle) error {
	c.at("Init")
	c.n = tidemill.NewValueState[int64](h, "n")
	return nil
}
func (c *bombedCounter) HandleInputRows(key parity, rows []number, _ *tidemill.Call, emit func(tally)) error {
	n, _ := c.n.Get()
	c.n.Set(n + int64(len(rows)))
	c.at("HandleInputRows")
	emit(tally{key.Odd, n + int64(len(rows))})
	return nil
}
func (c *bombedCounter) Close() error { c.at("Close of a processor"); return nil }

// session is a session that knows the user's parts.
func (u *user) session(x *site, o tidemill.Options) *tidemill.Session {
	x.t.Helper()
	s := x.session(o)
	x.ok(s.RegisterConnector(u.connector()))
	x.ok(s.RegisterFunction(u.scalar()))
	x.ok(s.RegisterAggregate(u.aggregate()))
	return s
}

// stream is a query that uses all of them but the processor, or with it instead of the
// aggregate.
func (u *user) stream(s *tidemill.Session, processor bool) *tidemill.StreamWriter {
	df := s.ReadStreamFrom("counter", nil, nil).
		Select(tidemill.Col("n").Mod(tidemill.Lit(2)).As("odd"), tidemill.Func("f", tidemill.Col("n")).As("m"))
	g := df.GroupBy(tidemill.Col("odd"))
	mode := tidemill.Update
	if processor {
		df, mode = tidemill.TransformWithState(g, tidemill.TransformOptions{}, u.processor), tidemill.Append
	} else {
		df = g.Agg(tidemill.Func("product_of", tidemill.Col("m")).As("p"))
	}
	return s.WriteStream(df).ToSink("ledger", u.sink).Name("q").Mode(mode).Checkpoint("ckpt").Listen(u.listener())
}

// run runs the stream over what is there.
func (u *user) run(x *site, processor bool) error {
	return x.run(u.stream(u.session(x, tidemill.Options{Settings: map[string]string{"threads": "2"}}), processor))
}

// TestPanicsOfStreams has every part of a user's panic in the second batch of a stream.
// The error is one line that names the part; batch and state are as if nothing had
// happened, and the next start does what was left.
func TestPanicsOfStreams(t *testing.T) {
	t.Parallel()
	of := map[bool]map[int64][]string{}
	for _, processor := range []bool{false, true} {
		u, x := newUser(""), newSite(t)
		for _, upto := range []int64{3, 8} {
			u.upto.Store(upto)
			x.ok(u.run(x, processor))
		}
		of[processor] = u.out.batches
	}
	for _, c := range []struct {
		place string
		want  string
		// visible says that the batch is done when the part is called.
		processor, visible bool
	}{
		{place: "function", want: "query q, batch 1: f(n): function f panicked: boom at function"},
		{place: "Bind", want: "f(n): function f panicked: boom at Bind"},
		{place: "Result of a call", want: "select: f: function f panicked: boom at Result of a call"},
		{place: "New", want: "aggregate product_of panicked: boom at New"},
		{place: "Fields", want: "aggregate product_of panicked: boom at Fields"},
		{place: "Resize", want: "query q, batch 1: aggregate product_of panicked: boom at Resize"},
		{place: "Update", want: "query q, batch 1: product_of(m): aggregate product_of panicked: boom at Update"},
		{place: "Merge", want: "query q, batch 1: product_of(m): aggregate product_of panicked: boom at Merge"},
		{place: "Load", want: "query q, batch 1: state of agg(odd): aggregate product_of panicked: boom at Load"},
		{place: "State", want: "query q, batch 1: product_of(m): aggregate product_of panicked: boom at State"},
		{place: "Result", want: "query q, batch 1: product_of(m): aggregate product_of panicked: boom at Result"},
		{place: "Bytes", want: "query q, batch 1: state of agg(odd): aggregate product_of panicked: boom at Bytes"},
		{place: "Release", want: "aggregate product_of panicked: boom at Release"},
		{place: "Discover", want: "source counter panicked: boom at Discover"},
		{place: "Source", want: "source counter panicked: boom at Source"},
		{place: "Target", want: "source counter panicked: boom at Target"},
		{place: "LatestOffset", want: "query q, batch 1: source counter panicked: boom at LatestOffset"},
		{place: "Units", want: "query q, batch 1: scan of counter: source counter panicked: boom at Units"},
		{place: "Open", want: "query q, batch 1: source counter panicked: boom at Open"},
		{place: "Next", want: "query q, batch 1: source counter panicked: boom at Next"},
		{place: "Close of a unit", want: "query q, batch 1: source counter panicked: boom at Close of a unit"},
		{place: "Metrics", want: "source counter panicked: boom at Metrics"},
		{place: "Close of the source", want: "source counter panicked: boom at Close of the source", visible: true},
		{place: "ToSink", want: "sink ledger panicked: boom at ToSink"},
		{place: "LastBatch", want: "sink ledger panicked: boom at LastBatch"},
		{place: "Recover", want: "sink ledger panicked: boom at Recover"},
		{place: "Stage", want: "query q, batch 1: sink ledger panicked: boom at Stage"},
		{place: "Stage, at the end", want: "query q, batch 1: sink ledger panicked: boom at Stage, at the end"},
		{place: "Publish", want: "query q, batch 1: sink ledger panicked: boom at Publish"},
		{place: "Close of the sink", want: "sink ledger panicked: boom at Close of the sink", visible: true},
		{place: "Started", want: "the listener's function Started panicked: boom at Started"},
		{place: "Progress", want: "the listener's function Progress panicked: boom at Progress", visible: true},
		{place: "Terminated", want: "the listener's function Terminated panicked: boom at Terminated", visible: true},
		{place: "the making of a processor", want: "transformWithState: the function of transformWithState panicked: boom at the making of a processor", processor: true},
		{place: "Init", want: "transformWithState: the function of transformWithState panicked: boom at Init", processor: true},
		{place: "HandleInputRows", want: "query q, batch 1: key {0}: the function of transformWithState panicked: boom at HandleInputRows", processor: true},
		{place: "Close of a processor", want: "transformWithState: the function of transformWithState panicked: boom at Close of a processor", processor: true},
	} {
		t.Run(c.place, func(t *testing.T) {
			t.Parallel()
			u, x := newUser(c.place), newSite(t)
			u.upto.Store(3)
			x.ok(u.run(x, c.processor))
			u.upto.Store(8)
			u.armed.Store(true)
			checkPanic(t, u.run(x, c.processor), c.want)
			if _, done := u.out.batches[1]; done != c.visible {
				t.Errorf("the batch is visible: %v", done)
			}
			u.armed.Store(false)
			x.ok(u.run(x, c.processor))
			if want := of[c.processor]; !maps.EqualFunc(u.out.batches, want, equalStrings) {
				t.Errorf("after a restart the sink has %v, want %v", u.out.batches, want)
			}
		})
	}
}

func equalStrings(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }

// checkPanic checks the error of a panic: its text, one line without a stack, its kind,
// and that the stack is there for who asks.
func checkPanic(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	var p *tidemill.PanicError
	if !errors.As(err, &p) || !strings.Contains(string(p.Stack), ".at(") {
		t.Errorf("the error has no stack: %v", err)
	}
	if kind := tidemill.KindOf(err); kind != tidemill.FailedError {
		t.Errorf("the error is of kind %d", kind)
	}
}

// TestPanicsOfForeachBatch gives the batch again.
func TestPanicsOfForeachBatch(t *testing.T) {
	t.Parallel()
	u, x := newUser("ForeachBatch"), newSite(t)
	u.upto.Store(3)
	var ids []int64
	run := func() error {
		s := u.session(x, tidemill.Options{})
		return x.run(s.WriteStream(s.ReadStreamFrom("counter", nil, nil)).Name("q").Checkpoint("ckpt").
			ForeachBatch(func(_ context.Context, id int64, _ columnar.Reader) error {
				u.at("ForeachBatch")
				ids = append(ids, id)
				return nil
			}))
	}
	u.armed.Store(true)
	checkPanic(t, run(), "query q, batch 0: the function of foreachBatch panicked: boom at ForeachBatch")
	u.armed.Store(false)
	x.ok(run())
	x.expect("batches", fmt.Sprint(ids), "[0]")
}

// TestPanicsOfQueries has every part of a user's panic in a bounded query, on the
// caller's goroutine and on others.
func TestPanicsOfQueries(t *testing.T) {
	t.Parallel()
	by := func(df *logical.DataFrame) *logical.DataFrame {
		return df.GroupBy(tidemill.Col("n").Mod(tidemill.Lit(1000))).Agg(tidemill.Func("product_of", tidemill.Func("f", tidemill.Col("n"))))
	}
	for _, c := range []struct{ place, want string }{
		{"function", "f(n): function f panicked: boom at function"},
		{"Bind", "f(n): function f panicked: boom at Bind"},
		{"Result of a call", "agg: f: function f panicked: boom at Result of a call"},
		{"New", "product_of(f(n)): aggregate product_of panicked: boom at New"},
		{"Fields", "aggregate product_of panicked: boom at Fields"},
		{"Resize", "aggregate product_of panicked: boom at Resize"},
		{"Update", "product_of(f(n)): aggregate product_of panicked: boom at Update"},
		{"Result", "product_of(f(n)): aggregate product_of panicked: boom at Result"},
		{"Bytes", "aggregate product_of panicked: boom at Bytes"},
		{"Release", "aggregate product_of panicked: boom at Release"},
		{"Table", "line 1, column 15: table t: table t panicked: boom at Table\n  SELECT * FROM \"t\"\n                ^^^"},
		{"Schema", "table t panicked: boom at Schema"},
		{"RowCount", "table t panicked: boom at RowCount"},
		{"Units", "scan of t: table t panicked: boom at Units"},
		{"Open", "table t panicked: boom at Open"},
		{"Next", "table t panicked: boom at Next"},
		{"Close of a unit", "table t panicked: boom at Close of a unit"},
	} {
		for _, threads := range []string{"1", "4"} {
			t.Run(c.place+" "+threads, func(t *testing.T) {
				t.Parallel()
				u, x := newUser(c.place), newSite(t)
				s := u.session(x, tidemill.Options{Settings: map[string]string{"threads": threads}})
				_, err := s.SQL(x.ctx, "CREATE TABLE t WITH (connector = 'counter')")
				x.ok(err)
				collect := func() (int64, error) {
					df := s.Table(x.ctx, "t")
					if c.place == "RowCount" {
						df = df.JoinUsing(s.Table(x.ctx, "t"), logical.InnerJoin, "n")
					}
					rows, err := s.Collect(x.ctx, by(df))
					if err != nil {
						return 0, err
					}
					defer rows.Release()
					return rows.NumRows(), nil
				}
				u.armed.Store(true)
				_, err = collect()
				checkPanic(t, err, c.want)
				u.armed.Store(false)
				if n, err := collect(); err != nil || n != 1000 {
					t.Errorf("after it there are %d rows: %v", n, err)
				}
			})
		}
	}
}
