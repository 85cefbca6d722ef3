package optimizer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/datadriven"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
	memtable "github.com/tidemill/tidemill/formats/memory"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql"
	"github.com/tidemill/tidemill/optimizer"
	"github.com/tidemill/tidemill/physical"
)

var registry = function.Builtins()

// tableSchemas are the tables of all tests. Streams declared in a test have columns
// of t, by name.
var tableSchemas = map[string]*arrow.Schema{
	"t": columnar.NewSchema(
		columnar.Field("a", columnar.Int32), columnar.Field("b", columnar.Int64), columnar.Field("c", columnar.String),
		columnar.Field("d", columnar.Float64), columnar.Field("ts", columnar.Timestamp), columnar.Field("ok", columnar.Boolean)),
	"u": columnar.NewSchema(
		columnar.Field("a", columnar.Int64), columnar.Field("x", columnar.String), columnar.Field("y", columnar.Decimal(10, 2)), columnar.Field("d", columnar.Float64)),
	// parts is partitioned by p: its parts can be left out.
	"parts": columnar.NewSchema(columnar.Field("p", columnar.Int32), columnar.Field("a", columnar.Int32)),
}

// dataset is rows for every table.
type dataset struct {
	name   string
	tables map[string]connector.Table
}

// datasets are no rows; few different small values with many nulls, so that things
// are equal and add up; and the extremes of every type.
func datasets(t testing.TB) []dataset {
	out := []dataset{{name: "empty"}, {name: "small"}, {name: "extreme"}}
	for i := range out {
		out[i].tables = map[string]connector.Table{}
		for name, schema := range tableSchemas {
			var batches []arrow.RecordBatch
			for k := range 3 {
				seed := uint64(len(name)*100 + k)
				var b arrow.RecordBatch
				switch {
				case i == 0:
					continue
				case name == "parts":
					b = partition(t, schema, int64(k))
				case i == 1:
					b = small(t, schema, seed)
				default:
					b = columnartest.Random(t, memory.DefaultAllocator, schema, seed, columnartest.RandomOptions{Rows: 12, Distinct: 7})
				}
				batches = append(batches, b)
			}
			table, err := memtable.NewTable(schema, batches...)
			if err != nil {
				t.Fatal(err)
			}
			out[i].tables[name] = table
			if name == "parts" {
				out[i].tables[name] = &parts{table, batches}
			}
		}
	}
	return out
}

// small is 12 rows of values around zero, a quarter of them null.
func small(t testing.TB, schema *arrow.Schema, seed uint64) arrow.RecordBatch {
	r := rand.New(rand.NewPCG(seed, 1))
	columns := make([]arrow.Array, schema.NumFields())
	for i, f := range schema.Fields() {
		values := make([]any, 12)
		for k := range values {
			if r.IntN(4) > 0 {
				values[k] = smallValue(f.Type, r)
			}
		}
		columns[i] = column(t, f.Type, values...)
	}
	return array.NewRecordBatch(schema, columns, 12)
}

func column(t testing.TB, dt arrow.DataType, values ...any) arrow.Array {
	a, err := columnar.Column(memory.DefaultAllocator, dt, values...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// partition is the rows of parts with one p.
func partition(t testing.TB, schema *arrow.Schema, p int64) arrow.RecordBatch {
	return array.NewRecordBatch(schema, []arrow.Array{column(t, columnar.Int32, p, p, p), column(t, columnar.Int32, int64(1), p, nil)}, 3)
}

func smallValue(dt arrow.DataType, r *rand.Rand) any {
	n := int64(r.IntN(5) - 1)
	switch dt.ID() {
	case arrow.FLOAT64:
		return float64(n) / 2
	case arrow.STRING:
		return string(rune('a' + n + 1))
	case arrow.TIMESTAMP:
		return arrow.Timestamp(n * 3_600_000_000)
	case arrow.BOOL:
		return n > 0
	case arrow.DECIMAL128:
		return decimal128.FromI64(n * 50)
	}
	return n
}

// parts is a table whose parts have one value of p each, and can be left out by
// p = constant.
type parts struct {
	connector.Table
	batches []arrow.RecordBatch
}

func (p *parts) Prune(filters []expr.Expr) (connector.Table, int, int) {
	left := p.batches
	for _, f := range filters {
		c, ok := f.(*expr.Call)
		if !ok || c.Func.Name != "=" {
			continue
		}
		ref, ok1 := c.Args[0].(*expr.Ref)
		value, ok2 := c.Args[1].(*expr.Literal)
		if !ok1 || !ok2 || ref.Index != 0 {
			continue
		}
		var kept []arrow.RecordBatch
		for _, b := range left {
			if b.Column(0).(*array.Int32).Value(0) == value.Value.(*array.Int32).Value(0) {
				kept = append(kept, b)
			}
		}
		left = kept
	}
	table, err := memtable.NewTable(p.Schema(), left...)
	if err != nil {
		panic(err)
	}
	return &parts{table, left}, len(left), len(p.batches)
}

// planner is the SQL front end over a dataset.
type planner struct{ *sql.Planner }

func newPlanner(data dataset) planner {
	p := planner{&sql.Planner{Catalog: logical.NewCatalog(), Functions: registry, Resolver: resolver{data}}}
	for name, table := range data.tables {
		if err := p.Catalog.Add(name, logical.Entry{Opened: table}); err != nil {
			panic(err)
		}
	}
	return p
}

func (p planner) exec(ctx context.Context, text string) error {
	return p.Script(ctx, text, func(*sql.Planned) error { return nil })
}

// resolver opens streams: each has the rows of table t.
type resolver struct{ data dataset }

func (r resolver) Stream(_ context.Context, d *logical.SourceDecl) (*logical.Stream, error) {
	table := r.data.tables["t"]
	return &logical.Stream{Name: d.Name, Decl: d, Schema: table.Schema(),
		Bounded: func(context.Context) (connector.Table, error) { return table, nil }}, nil
}

func (r resolver) Table(_ context.Context, d *logical.SourceDecl) (connector.Table, error) {
	return nil, fmt.Errorf("no table %s", d.Name)
}

func (r resolver) Path(_ context.Context, path, _ string, _ map[string]string) (connector.Table, error) {
	return nil, fmt.Errorf("no file %s", path)
}

// over is a plan with the tables and streams of another dataset.
func over(t testing.TB, plan logical.Node, data dataset) logical.Node {
	t.Helper()
	n, err := logical.Transform(plan, func(n logical.Node) (logical.Node, error) {
		switch x := n.(type) {
		case *logical.Scan:
			if _, ok := x.Table.(*parts); ok {
				return x, nil // the same in each, and perhaps pruned
			}
			m := *x
			m.Table = data.tables["t"] // what a stream is when it is bounded
			if table := data.tables[x.Name]; table != nil {
				m.Table = table
			}
			return &m, nil
		case *logical.StreamScan:
			m, stream := *x, *x.Stream
			stream.Bounded = func(context.Context) (connector.Table, error) { return data.tables["t"], nil }
			m.Stream = &stream
			return &m, nil
		}
		return n, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func run(t testing.TB, plan logical.Node) ([]arrow.RecordBatch, error) {
	t.Helper()
	return runAs(t, plan, func(p physical.Plan) physical.Plan { return p })
}

// runShared runs a plan as sessions do, aggregations that are there twice once.
func runShared(t testing.TB, plan logical.Node) ([]arrow.RecordBatch, error) {
	t.Helper()
	return runAs(t, plan, physical.Share)
}

func runAs(t testing.TB, plan logical.Node, rewrite func(physical.Plan) physical.Plan) ([]arrow.RecordBatch, error) {
	t.Helper()
	p, err := physical.NewPlanner().Plan(plan)
	if err != nil {
		return nil, err
	}
	p = rewrite(p)
	return physical.Collect(t.Context(), p, &physical.ExecContext{Mem: memory.DefaultAllocator, BatchRows: 5, Seed: 1})
}

// sameRows runs a plan as it is, optimized, and without each of the rules that fired,
// over each dataset, and compares. An error may go away by a rule, never come.
func sameRows(t *testing.T, d *datadriven.TestData, data []dataset, plan, optimized logical.Node, trace *optimizer.Trace) {
	t.Helper()
	mode := arguments(d, "rows")
	if len(mode) > 0 && mode[0] == "none" {
		return
	}
	compared := map[string]logical.Node{"optimized": optimized}
	for _, rule := range firedRules(trace) {
		compared["without "+rule], _ = optimize(t, plan, append(arguments(d, "disable"), rule)...)
	}
	ordered := isSorted(plan)
	for _, set := range data {
		want, err := run(t, over(t, plan, set))
		if err != nil {
			continue
		}
		for name, n := range compared {
			got, err := runShared(t, over(t, n, set))
			diff := ""
			switch {
			case err != nil:
				diff = err.Error()
			case len(mode) > 0:
				if count(want) != count(got) {
					diff = fmt.Sprintf("%d rows, not %d", count(got), count(want))
				}
			default:
				diff = columnartest.Diff(want, got, columnartest.DiffOptions{ULP: 4, Ordered: ordered})
			}
			if diff != "" {
				t.Errorf("%s: data %s, %s:\n%s\n%s", d.Pos, set.name, name, diff, logical.Format(n))
			}
		}
	}
}

func count(batches []arrow.RecordBatch) int64 {
	n := int64(0)
	for _, b := range batches {
		n += b.NumRows()
	}
	return n
}

// isSorted says whether ORDER BY decides the order of the rows of a plan; tests sort
// by all columns, so that it decides it wholly.
func isSorted(n logical.Node) bool {
	switch x := n.(type) {
	case *logical.Sort:
		return true
	case *logical.Limit, *logical.Project:
		return isSorted(x.Children()[0])
	}
	return false
}

// nameStates names the state of every node over a stream that keeps one.
func nameStates(t testing.TB, plan logical.Node) logical.Node {
	t.Helper()
	k := 0
	n, err := logical.Transform(plan, func(n logical.Node) (logical.Node, error) {
		if !logical.IsStreaming(n) {
			return n, nil
		}
		k++
		name := fmt.Sprintf("state%d", k)
		switch x := n.(type) {
		case *logical.Aggregate:
			return x.WithState(name), nil
		case *logical.Distinct:
			return x.WithState(name), nil
		case *logical.Join:
			if logical.IsStreaming(x.Left) && logical.IsStreaming(x.Right) {
				return x.WithState(name), nil
			}
		case *logical.Limit:
			m := *x
			m.State = name
			return &m, nil
		}
		return n, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
