package physical_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/physicaltest"
)

// asof is an as-of join by keys, null-safe where the name ends in ?, and a time.
type asof struct {
	kind logical.JoinKind
	keys []string
	time string
	op   string
}

func (a asof) String() string { return fmt.Sprintf("%s on %v, %s %s", a.kind, a.keys, a.time, a.op) }

func (a asof) key(i int) (name string, nullSafe bool) {
	name = a.keys[i]
	if last := len(name) - 1; name[last] == '?' {
		return name[:last], true
	}
	return name, false
}

func (a asof) plan(t testing.TB, l, r physical.Plan) physical.Plan {
	spec := physical.AsofSpec{Kind: a.kind, Nearest: logical.Nearest{Op: a.op}}
	for i := range a.keys {
		name, nullSafe := a.key(i)
		spec.LeftKeys = append(spec.LeftKeys, bind(t, l.Schema(), col(name)))
		spec.RightKeys = append(spec.RightKeys, bind(t, r.Schema(), col(name)))
		spec.NullSafe = append(spec.NullSafe, nullSafe)
	}
	spec.Nearest.Left, spec.Nearest.Right = bind(t, l.Schema(), col(a.time)), bind(t, r.Schema(), col(a.time))
	return must[*physical.AsofJoin](t)(physical.NewAsofJoin(l, r, spec))
}

// reference is what the join gives, by comparing every row with every other.
func (a asof) reference(t testing.TB, l, r arrow.RecordBatch) arrow.RecordBatch {
	comparer := func(name string) *kernel.Comparer {
		i := l.Schema().FieldIndices(name)[0]
		return kernel.NewComparer([]kernel.SortKey{{Columns: []arrow.Array{l.Column(i), r.Column(i)}}})
	}
	column := func(name string) int { return l.Schema().FieldIndices(name)[0] }
	time := comparer(a.time)
	var left, right []int32
	for i := range int(l.NumRows()) {
		best := -1
		for j := range int(r.NumRows()) {
			near := !columnar.IsNull(l.Column(column(a.time)), i) && !columnar.IsNull(r.Column(column(a.time)), j)
			for k := range a.keys {
				name, nullSafe := a.key(k)
				null := l.Column(column(name)).IsNull(i) || r.Column(column(name)).IsNull(j)
				near = near && (nullSafe || !null) && comparer(name).Compare(kernel.MakeRef(0, i), kernel.MakeRef(1, j)) == 0
			}
			if !near {
				continue
			}
			c := time.Compare(kernel.MakeRef(0, i), kernel.MakeRef(1, j))
			holds := map[string]bool{">=": c >= 0, ">": c > 0, "<=": c <= 0, "<": c < 0}[a.op]
			if !holds {
				continue
			}
			closer := true
			if best >= 0 {
				d := time.Compare(kernel.MakeRef(1, j), kernel.MakeRef(1, best))
				closer = d == 0 || (d > 0) == (a.op[0] == '>')
			}
			if closer {
				best = j
			}
		}
		if best >= 0 || a.kind == logical.LeftJoin {
			left, right = append(left, int32(i)), append(right, int32(best))
		}
	}
	var columns []arrow.Array
	for side, rows := range [][]int32{left, right} {
		for _, c := range []arrow.RecordBatch{l, r}[side].Columns() {
			taken, err := kernel.Take(memory.DefaultAllocator, c, rows)
			if err != nil {
				t.Fatal(err)
			}
			columns = append(columns, taken)
		}
	}
	schema := arrow.NewSchema(append(append([]arrow.Field(nil), l.Schema().Fields()...), r.Schema().Fields()...), nil)
	return array.NewRecordBatch(schema, columns, int64(len(left)))
}

var asofKeys = [][]string{nil, {"s"}, {"k"}, {"k?"}, {"s", "b"}, {"f", "d?"}}

// TestAsofJoin compares with the reference: every operator, keys of several types, null
// and NaN, times of types that fit a word and of those that do not.
func TestAsofJoin(t *testing.T) {
	t.Parallel()
	fields := append([]arrow.Field(nil), columnartest.Schema(t, wide).Fields()...)
	schema := arrow.NewSchema(append(fields, columnar.Field("nothing", columnar.Null)), nil)
	for seed, time := range []string{"i", "k", "f", "ts", "d", "s", "b", "l", "nothing"} {
		for _, keys := range asofKeys {
			for _, op := range []string{">=", ">", "<=", "<"} {
				for _, kind := range []logical.JoinKind{logical.InnerJoin, logical.LeftJoin} {
					l := columnartest.Random(t, memory.DefaultAllocator, schema, uint64(seed), columnartest.RandomOptions{Rows: 60, Distinct: 11})
					r := columnartest.Random(t, memory.DefaultAllocator, schema, uint64(seed+100), columnartest.RandomOptions{Rows: 50, Distinct: 9})
					a := asof{kind, keys, time, op}
					p := a.plan(t, physicaltest.Scan(t, physicaltest.NewTable(schema, []arrow.RecordBatch{l})),
						physicaltest.Scan(t, physicaltest.NewTable(schema, []arrow.RecordBatch{r.NewSlice(0, 20)}, []arrow.RecordBatch{r.NewSlice(20, 50)})))
					got, err := physical.Collect(t.Context(), p, &physical.ExecContext{Mem: memory.DefaultAllocator, Parallel: 2})
					if err != nil {
						t.Fatalf("%s: %v", a, err)
					}
					want := a.reference(t, l, r)
					if diff := columnartest.Diff([]arrow.RecordBatch{want}, got, columnartest.DiffOptions{Ordered: true}); diff != "" {
						t.Fatalf("%s:\n%s", a, diff)
					}
				}
			}
		}
	}
}

// asofCases are for TestOperators.
func asofCases() map[string]physicaltest.Case {
	cases := map[string]physicaltest.Case{}
	for i, a := range []asof{
		{logical.InnerJoin, []string{"s"}, "ts", ">="}, {logical.LeftJoin, []string{"s"}, "ts", "<"},
		{logical.LeftJoin, nil, "i", ">"}, {logical.InnerJoin, []string{"k", "b?"}, "s", "<="}, {logical.LeftJoin, []string{"k?"}, "d", ">="},
	} {
		cases[fmt.Sprintf("as-of join %d: %s", i, a)] = physicaltest.Case{Schema: wide, Inputs: 2, Distinct: 40, Ordered: true, KeepsOn: true,
			Plan: func(t testing.TB, in []physical.Plan) physical.Plan { return a.plan(t, in[0], in[1]) }}
	}
	return cases
}

// TestAsofJoinEmptySides: one side without rows.
func TestAsofJoinEmptySides(t *testing.T) {
	t.Parallel()
	schema := columnartest.Schema(t, "k:integer  i:bigint")
	none := physicaltest.Scan(t, physicaltest.NewTable(schema))
	some := physicaltest.Scan(t, physicaltest.NewTable(schema, []arrow.RecordBatch{
		columnartest.Random(t, memory.DefaultAllocator, schema, 1, columnartest.RandomOptions{Rows: 5}),
	}))
	for kind, want := range map[logical.JoinKind]int64{logical.InnerJoin: 0, logical.LeftJoin: 5} {
		a := asof{kind, []string{"k"}, "i", ">="}
		for p, rows := range map[physical.Plan]int64{a.plan(t, some, none): want, a.plan(t, none, some): 0, a.plan(t, none, none): 0} {
			out, err := physical.Collect(t.Context(), p, &physical.ExecContext{Mem: memory.DefaultAllocator})
			got := int64(0)
			for _, b := range out {
				got += b.NumRows()
			}
			if err != nil || got != rows {
				t.Errorf("%s: %d rows and %v, not %d rows", a, got, err, rows)
			}
		}
	}
}

func BenchmarkAsofJoin(b *testing.B) {
	const rows = 2_000_000
	probe := physicaltest.Scan(b, numbers(b, rows, 1000))
	for name, op := range map[string]string{"earlier": ">=", "later": "<"} {
		for _, keyed := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/keyed=%v", name, keyed), func(b *testing.B) {
				build := physicaltest.Scan(b, numbers(b, 100_000, 1000))
				spec := physical.AsofSpec{Kind: logical.LeftJoin, Nearest: logical.Nearest{Op: op}}
				if keyed {
					spec.LeftKeys, spec.RightKeys, spec.NullSafe = exprs(b, probe.Schema(), col("g")), exprs(b, build.Schema(), col("g")), []bool{false}
				}
				// The two tables span the same numbers.
				spec.Nearest.Left = bind(b, probe.Schema(), col("i"))
				spec.Nearest.Right = bind(b, build.Schema(), col("i").Mul(expr.Lit(int64(20))))
				benchmark(b, must[*physical.AsofJoin](b)(physical.NewAsofJoin(probe, build, spec)), rows)
			})
		}
	}
}
