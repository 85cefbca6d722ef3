package tidemill_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/function/functiontest"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

// What docs/go-api.md shows: a source, a sink and functions as a user of the engine
// writes them.

var counterSchema = columnar.NewSchema(columnar.Field("n", columnar.Int64))

// counter is a source of the numbers below a limit that grows. Its offset is the number of
// rows before it, so that every range can be read again; it needs no log.
type counter struct{ upto *atomic.Int64 }

func position(o connector.Offset) int64 {
	n, _ := strconv.ParseInt(string(o), 10, 64) // "" is before the first row
	return n
}

func offset(n int64) connector.Offset {
	if n == 0 {
		return ""
	}
	return connector.Offset(strconv.FormatInt(n, 10))
}

func (c *counter) Schema() *arrow.Schema { return counterSchema }

func (c *counter) Target(context.Context) (connector.Offset, error) {
	return offset(c.upto.Load()), nil
}

func (c *counter) LatestOffset(_ context.Context, start connector.Offset, limit connector.Limit) (connector.Offset, error) {
	end := c.upto.Load()
	if limit.Until != "" {
		end = min(end, position(limit.Until))
	}
	return offset(max(end, position(start))), nil
}

func (c *counter) Units(_ context.Context, start, end connector.Offset, req connector.ScanRequest) ([]connector.Unit, error) {
	if start == end {
		return nil, nil
	}
	return []connector.Unit{&counted{position(start), position(end), req}}, nil
}

func (c *counter) Withdraw(context.Context, connector.Offset, connector.Offset) error { return nil }
func (c *counter) Commit(context.Context, connector.Offset) error                     { return nil }
func (c *counter) Close() error                                                       { return nil }

// counted is one range of a counter.
type counted struct {
	from, to int64
	req      connector.ScanRequest
}

func (u *counted) Name() string { return fmt.Sprintf("%d to %d", u.from, u.to) }
func (u *counted) Bytes() int64 { return (u.to - u.from) * 8 }
func (u *counted) Open(context.Context) (columnar.Reader, error) {
	return &counterReader{counted: *u, schema: columnar.Select(counterSchema, u.req.Columns)}, nil
}

type counterReader struct {
	counted
	schema *arrow.Schema
}

func (r *counterReader) Schema() *arrow.Schema { return r.schema }

func (r *counterReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.from == r.to || ctx.Err() != nil {
		return nil, cmpErr(ctx.Err(), io.EOF)
	}
	n := r.to - r.from
	if r.req.BatchRows > 0 {
		n = min(n, int64(r.req.BatchRows))
	}
	b := array.NewInt64Builder(r.req.Mem)
	defer b.Release()
	for range n {
		b.Append(r.from)
		r.from++
	}
	a := b.NewArray()
	defer a.Release()
	columns := make([]arrow.Array, r.schema.NumFields()) // none if only rows are counted
	for i := range columns {
		columns[i] = a
	}
	return array.NewRecordBatch(r.schema, columns, n), nil
}

func (r *counterReader) Close() error { return nil }

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// ledger is a sink that keeps rows as text by batch, as a table in a database would: a
// batch that is there already is not added again.
type ledger struct {
	mu      sync.Mutex
	batches map[int64][]string
}

func (l *ledger) LastBatch(context.Context) (int64, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := int64(-1)
	for id := range l.batches {
		last = max(last, id)
	}
	return last, true, nil
}

func (l *ledger) Stage(ctx context.Context, b connector.SinkBatch) (connector.Staged, error) {
	e := &entry{ledger: l, id: b.ID}
	for batch, err := range columnar.All(ctx, b.Data) {
		if err != nil {
			return nil, err
		}
		e.rows = append(e.rows, connectortest.BatchRows(memory.DefaultAllocator, []arrow.RecordBatch{batch})...)
	}
	return e, nil
}

func (l *ledger) Recover(context.Context) (connector.Staged, error) { return nil, nil }
func (l *ledger) Close() error                                      { return nil }

func (l *ledger) rows() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []string{}
	for _, rows := range l.batches {
		all = append(all, rows...)
	}
	slices.Sort(all)
	return all
}

// entry is a staged batch of a ledger.
type entry struct {
	*ledger
	id   int64
	rows []string
}

func (e *entry) Publish(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, there := e.batches[e.id]; !there {
		e.batches[e.id] = e.rows
	}
	return nil
}

func (e *entry) Discard() error { return nil }
func (e *entry) Rows() int64    { return int64(len(e.rows)) }

// product is an aggregate: the product of values.
func product() *function.Aggregate {
	return &function.Aggregate{Name: "product_of", Doc: "The product of the values.", Overloads: []function.AggregateOverload{{
		Args: []function.Matcher{function.Exactly(columnar.Float64)}, Result: function.Always(columnar.Float64),
		New: func(mem memory.Allocator, _ []arrow.DataType) (function.Accumulator, error) {
			return &productState{mem: mem}, nil
		},
	}}}
}

// productState has, for each group, how many values there were and their product.
type productState struct {
	mem    memory.Allocator
	counts []int64
	values []float64
}

func (p *productState) Fields() []arrow.Field {
	return []arrow.Field{columnar.Field("count", columnar.Int64), columnar.Field("product", columnar.Float64)}
}

func (p *productState) Resize(groups int) {
	for len(p.counts) < groups {
		p.counts, p.values = append(p.counts, 0), append(p.values, 1)
	}
	p.counts, p.values = p.counts[:groups], p.values[:groups]
}

func (p *productState) Update(groups []uint32, args []columnar.Datum) error {
	column := columnar.Broadcast(p.mem, args[0], len(groups))
	defer column.Release()
	values := column.(*array.Float64)
	for i, g := range groups {
		if values.IsValid(i) {
			p.counts[g]++
			p.values[g] *= values.Value(i)
		}
	}
	return nil
}

func (p *productState) Merge(groups []uint32, state []arrow.Array) error {
	counts, values := state[0].(*array.Int64), state[1].(*array.Float64)
	for i, g := range groups {
		p.counts[g] += counts.Value(i)
		p.values[g] *= values.Value(i)
	}
	return nil
}

func (p *productState) Load(groups []uint32, state []arrow.Array) error {
	p.Clear(groups)
	return p.Merge(groups, state)
}

func (p *productState) Clear(groups []uint32) {
	for _, g := range groups {
		p.counts[g], p.values[g] = 0, 1
	}
}

func (p *productState) State(groups []uint32) ([]arrow.Array, error) {
	counts, values := array.NewInt64Builder(p.mem), array.NewFloat64Builder(p.mem)
	defer counts.Release()
	defer values.Release()
	for _, g := range groups {
		counts.Append(p.counts[g])
		values.Append(p.values[g])
	}
	return []arrow.Array{counts.NewArray(), values.NewArray()}, nil
}

func (p *productState) Result(groups []uint32) (arrow.Array, error) {
	b := array.NewFloat64Builder(p.mem)
	defer b.Release()
	for _, g := range groups {
		if p.counts[g] == 0 {
			b.AppendNull()
		} else {
			b.Append(p.values[g])
		}
	}
	return b.NewArray(), nil
}

func (p *productState) Bytes() int64 { return int64(16 * cap(p.counts)) }
func (p *productState) Release()     { p.counts, p.values = nil, nil }

func TestCounterConforms(t *testing.T) {
	t.Parallel()
	connectortest.TestSource(t, func(t *testing.T) connectortest.SourceCase {
		upto := &atomic.Int64{}
		return connectortest.SourceCase{
			Add:       func(*testing.T) { upto.Add(3) },
			Open:      func(*testing.T, connector.BatchLog) connector.Source { return &counter{upto} },
			Unlimited: true,
		}
	})
}

func TestLedgerConforms(t *testing.T) {
	t.Parallel()
	connectortest.TestSink(t, func(t *testing.T) connectortest.SinkCase {
		l := &ledger{batches: map[int64][]string{}}
		return connectortest.SinkCase{
			Open: func(*testing.T, int64) connector.Sink { return l },
			Read: func(*testing.T) []string { return l.rows() },
		}
	})
}

func TestProductConforms(t *testing.T) {
	t.Parallel()
	functiontest.TestAggregate(t, product(), []arrow.DataType{columnar.Float64}, [][]any{{2.0}, {nil}, {3.0}, {0.5}, {nil}, {4.0}})
}

func TestScalarFuncConforms(t *testing.T) {
	t.Parallel()
	f := tidemill.ScalarFunc("repeated", []arrow.DataType{columnar.String, columnar.Int64}, columnar.String, func(args []any) (any, error) {
		if args[1].(int64) < 0 {
			return nil, fmt.Errorf("%d is negative", args[1])
		}
		return strings.Repeat(args[0].(string), int(args[1].(int64))), nil
	})
	functiontest.TestScalar(t, f, []arrow.DataType{columnar.String, columnar.Int64}, [][]any{{"ab", 2}, {nil, 1}, {"x", 0}, {"y", nil}, {"z", 3}})
}

// TestOwnEverything runs a query with a source, a sink, a scalar function and an aggregate
// of one's own, in two runs.
func TestOwnEverything(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	upto := &atomic.Int64{}
	upto.Store(5)
	out := &ledger{batches: map[int64][]string{}}
	run := func() {
		t.Helper()
		s := x.session(tidemill.Options{})
		x.ok(s.RegisterConnector(connector.Connector{
			Name: "counter",
			Discover: func(context.Context, connector.Env) (connector.Discovery, error) {
				return connector.Discovery{Schema: counterSchema}, nil
			},
			Source: func(context.Context, connector.Env) (connector.Source, error) { return &counter{upto}, nil },
		}))
		x.ok(s.RegisterAggregate(product()))
		x.ok(s.RegisterFunction(tidemill.ScalarFunc("parity", []arrow.DataType{columnar.Int64}, columnar.String, func(args []any) (any, error) {
			return []string{"even", "odd"}[args[0].(int64)%2], nil
		})))
		numbers := s.ReadStreamFrom("counter", nil, nil)
		products := numbers.
			GroupBy(tidemill.Func("parity", tidemill.Col("n")).As("parity")).
			Agg(tidemill.Func("product_of", tidemill.Col("n").Add(tidemill.Lit(1))).As("product"))
		x.ok(x.run(s.WriteStream(products).Mode(tidemill.Update).Checkpoint("ckpt").
			ToSink("ledger", func(context.Context, connector.Env) (connector.Sink, error) { return out, nil })))
		// The same functions and connector in SQL.
		_, err := s.SQL(x.ctx, "CREATE STREAM numbers WITH (connector = 'counter'); CREATE VIEW v AS SELECT parity(n) AS p, product_of(n) AS q FROM numbers GROUP BY ALL")
		x.ok(err)
	}
	run()
	x.expect("after the first run", strings.Join(out.rows(), "\n"), "even|15\nodd|8")
	upto.Store(6)
	run()
	run() // nothing new
	x.expect("after the second", strings.Join(out.rows(), "\n"), "even|15\nodd|48\nodd|8")
}

// TestForeachBatchGetsPlainColumns: no dictionaries reach a user's function.
func TestForeachBatchGetsPlainColumns(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	x.ok(x.run(x.WriteStream(x.bids()).To("parquet", nil)))
	again := x.ReadStreamFrom("filesystem", map[string]string{"path": "parquet"}, nil)
	x.ok(x.run(x.WriteStream(again).ForeachBatch(func(ctx context.Context, _ int64, rows columnar.Reader) error {
		for b, err := range columnar.All(ctx, rows) {
			if err != nil {
				return err
			}
			for i, c := range b.Columns() {
				if !columnar.Supported(c.DataType()) || !arrow.TypeEqual(c.DataType(), rows.Schema().Field(i).Type) {
					return fmt.Errorf("column %d is %s", i, c.DataType())
				}
			}
			columnartest.Equal(t, []arrow.RecordBatch{b}, []arrow.RecordBatch{b}, columnartest.DiffOptions{})
		}
		return nil
	})))
}
