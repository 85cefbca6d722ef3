package physical_test

import (
	"maps"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/physicaltest"
)

var registry = function.Builtins()

var col, lit, fn = expr.Col, expr.Lit, expr.Func

var scanAll = connector.ScanRequest{}

// bind resolves a term over the columns of s and gives it positions.
func bind(t testing.TB, s *arrow.Schema, term expr.Term) expr.Expr {
	t.Helper()
	if term.Err() != nil {
		t.Fatal(term.Err())
	}
	r := &expr.Resolver{Registry: registry, Aggregates: true, Lookup: func(_, name string) (*expr.Column, error) {
		i, _ := columnar.Lookup(s, name)
		if i < 0 {
			t.Fatalf("no column %s", name)
		}
		return &expr.Column{ID: expr.ID(i + 1), Name: name, DataType: s.Field(i).Type, Null: true}, nil
	}}
	e, err := r.Resolve(term.Expr)
	if err != nil {
		t.Fatal(err)
	}
	e, err = expr.BindRefs(e, func(id expr.ID) int { return int(id) - 1 })
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func named(t testing.TB, s *arrow.Schema, terms ...expr.Term) []expr.Named {
	var out []expr.Named
	for _, term := range terms {
		e := bind(t, s, term)
		name := term.Name
		if name == "" {
			name = e.String()
		}
		out = append(out, expr.Named{Expr: e, Name: name})
	}
	return out
}

func exprs(t testing.TB, s *arrow.Schema, terms ...expr.Term) []expr.Expr {
	var out []expr.Expr
	for _, n := range named(t, s, terms...) {
		out = append(out, n.Expr)
	}
	return out
}

func sortKeys(t testing.TB, s *arrow.Schema, terms ...expr.Term) []logical.SortKey {
	var out []logical.SortKey
	for _, term := range terms {
		out = append(out, logical.SortKey{Expr: bind(t, s, term), Descending: term.Descending, NullsFirst: !term.Descending})
	}
	return out
}

// must fails t on an error of a constructor.
func must[P physical.Plan](t testing.TB) func(p P, err error) physical.Plan {
	return func(p P, err error) physical.Plan {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

func aggregate(t testing.TB, in physical.Plan, ordered bool, keys, aggs []expr.Term) physical.Plan {
	ordinal := -1
	if physical.HasOrdinal(in.Schema()) {
		ordinal = in.Schema().NumFields() - 1
	}
	spec, err := physical.NewAggregateSpec(in.Schema(), named(t, in.Schema(), keys...), named(t, in.Schema(), aggs...), ordinal)
	if err != nil {
		t.Fatal(err)
	}
	if !spec.HasDistinct() {
		return physical.NewHashAggregate(physical.NewPartialAggregate(in, spec), spec, ordered)
	}
	if len(keys) > 0 {
		in = must[*physical.Exchange](t)(physical.NewExchange(in, exprs(t, in.Schema(), keys...)...))
	}
	return physical.NewSingleAggregate(in, spec, ordered)
}

const wide = "i:bigint  s:varchar  f:double  d:decimal(10,2)  ts:timestamp  b:boolean  k:integer  l:array<bigint>"

func TestOperators(t *testing.T) {
	t.Parallel()
	type plans = []physical.Plan
	cases := map[string]physicaltest.Case{
		"scan": {Schema: wide, Ordered: true, Plan: func(_ testing.TB, in plans) physical.Plan { return in[0] }},
		"filter": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return must[*physical.Filter](t)(physical.NewFilter(in[0], bind(t, in[0].Schema(), col("k").Gt(lit(0)).Or(col("s").IsNull()))))
		}},
		"filter on text": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return must[*physical.Filter](t)(physical.NewFilter(in[0], bind(t, in[0].Schema(), col("s").Gt(lit("a")))))
		}},
		"project": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			s := in[0].Schema()
			return must[*physical.Project](t)(physical.NewProject(in[0], named(t, s, col("s"), fn("upper", col("s")).As("u"), col("k").Add(lit(1)).As("k1").Cast(columnar.Int64).As("k2"), col("l"), lit("c").As("c"))))
		}},
		"limit": {Schema: wide, Ordered: true, KeepsOn: true, Plan: func(_ testing.TB, in plans) physical.Plan {
			return physical.NewLimit(in[0], 70, 5, false)
		}},
		"serial limit": {Schema: wide, Ordered: true, KeepsOn: true, Plan: func(_ testing.TB, in plans) physical.Plan {
			return physical.NewLimit(in[0], 70, 0, true)
		}},
		"offset": {Schema: wide, Ordered: true, Plan: func(_ testing.TB, in plans) physical.Plan {
			return physical.NewLimit(in[0], logical.NoLimit, 5, false)
		}},
		"union": {Schema: wide, Inputs: 2, Ordered: true, Plan: func(_ testing.TB, in plans) physical.Plan {
			return physical.NewUnion(in[0].Schema(), in...)
		}},
		"coalesce": {Schema: wide, Ordered: true, Plan: func(_ testing.TB, in plans) physical.Plan { return physical.NewCoalesce(in[0]) }},
		"number": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			n := physical.NewNumber(in[0])
			return must[*physical.Project](t)(physical.NewProject(n, named(t, n.Schema(), col("s"), col(columnar.OrdinalName).As("n"))))
		}},
		"exchange": {Schema: wide, Plan: func(t testing.TB, in plans) physical.Plan {
			return must[*physical.Exchange](t)(physical.NewExchange(in[0], exprs(t, in[0].Schema(), col("s"))...))
		}},
		"sort": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return must[*physical.Sort](t)(physical.NewSort(in[0], sortKeys(t, in[0].Schema(), col("s"), col("f").Desc())))
		}},
		"sort by little": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return must[*physical.Sort](t)(physical.NewSort(in[0], sortKeys(t, in[0].Schema(), col("b"))))
		}},
		"top": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return must[*physical.TopK](t)(physical.NewTopK(in[0], sortKeys(t, in[0].Schema(), col("d").Desc(), col("s")), 20))
		}},
		"aggregate": {Schema: wide, Ordered: true, ULP: 2, Plan: func(t testing.TB, in plans) physical.Plan {
			return aggregate(t, in[0], false, []expr.Term{col("s")}, []expr.Term{
				fn("count").As("n"), fn("count", col("k")).As("nk"), fn("sum", col("k")).As("sk"), fn("min", col("ts")).As("mts"), fn("max", col("s")).As("ms"), fn("avg", col("d")).As("ad"),
			})
		}},
		"aggregate by many keys": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return aggregate(t, in[0], true, []expr.Term{col("s"), col("k"), col("b"), col("d"), col("f")}, []expr.Term{fn("count").As("n").Filter(col("k").Gt(lit(0))).As("p")})
		}},
		"aggregate of all values": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return aggregate(t, in[0], false, []expr.Term{col("k")}, []expr.Term{fn("median", col("f")).As("m"), fn("count").As("n"), fn("percentile", col("i"), lit(0.9)).As("p"), fn("mode", col("s")).As("o")})
		}},
		"aggregate of lists": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			spec := in[0].(*physical.Scan).Spec()
			spec.Ordinal = true
			scan := must[*physical.Scan](t)(physical.NewScan(spec))
			return aggregate(t, scan, false, []expr.Term{col("k")}, []expr.Term{fn("collect_list", col("s")).As("l"), fn("median", col("f")).As("m"), fn("listagg", col("s"), lit(",")).As("t")})
		}},
		"global aggregate of all values": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return aggregate(t, in[0], false, nil, []expr.Term{fn("median", col("f")).As("m"), fn("mad", col("k")).As("d")})
		}},
		"global aggregate": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return aggregate(t, in[0], false, nil, []expr.Term{fn("count").As("n"), fn("max", col("k")).As("m"), fn("sum", col("d")).As("sd")})
		}},
		"distinct aggregate": {Schema: wide, Ordered: false, Plan: func(t testing.TB, in plans) physical.Plan {
			return aggregate(t, in[0], false, []expr.Term{col("b")}, []expr.Term{fn("count", col("s")).Distinct().As("n"), fn("count", col("s")).As("all"), fn("sum", col("k")).Distinct().Filter(col("k").Gt(lit(0))).As("sk")})
		}},
		"global distinct aggregate": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return aggregate(t, in[0], false, nil, []expr.Term{fn("count", col("s")).Distinct().As("n"), fn("count").As("all")})
		}},
		"first and last": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			spec := in[0].(*physical.Scan).Spec()
			spec.Ordinal = true
			scan := must[*physical.Scan](t)(physical.NewScan(spec))
			return aggregate(t, scan, false, []expr.Term{col("k")}, []expr.Term{fn("first", col("s")).As("a"), fn("last", col("f")).As("z")})
		}},
		"distinct on": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			keys := exprs(t, in[0].Schema(), col("s"), col("b"))
			partial := must[*physical.Distinct](t)(physical.NewDistinct(in[0], keys, true))
			return must[*physical.Distinct](t)(physical.NewDistinct(partial, keys, false))
		}},
		"expand": {Schema: wide, Plan: func(t testing.TB, in plans) physical.Plan {
			keys := named(t, in[0].Schema(), col("s").As("g0"), fn("upper", col("s")).As("g1"), col("k").As("g2"))
			return must[*physical.Expand](t)(physical.NewExpand(in[0], keys, [][]bool{{true, true, true}, {false, true, true}, {false, false, false}}, "set"))
		}},
		"unnest": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan { return unnest(t, in[0], false) }},
		"outer unnest": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return unnest(t, physical.NewNumber(in[0]), true)
		}},
		"tumble": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return must[*physical.Window](t)(physical.NewWindow(in[0], bind(t, in[0].Schema(), col("ts")), expr.WindowSpec{Size: 3600e6, Slide: 3600e6}, "ws", "we"))
		}},
		"hop": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			return must[*physical.Window](t)(physical.NewWindow(in[0], bind(t, in[0].Schema(), col("ts")), expr.WindowSpec{Size: 3600e6, Slide: 1000e6, Start: -7e6}, "ws", "we"))
		}},
		"session": {Schema: wide, Ordered: true, Plan: func(t testing.TB, in plans) physical.Plan {
			w := must[*physical.Window](t)(physical.NewWindow(in[0], bind(t, in[0].Schema(), col("ts")), expr.WindowSpec{Gap: bind(t, in[0].Schema(), lit("400 days"))}, "ws", "we"))
			n := w.Schema().NumFields()
			return must[*physical.SessionMerge](t)(physical.NewSessionMerge(w, exprs(t, w.Schema(), col("s")), n-2, n-1))
		}},
	}
	for name, c := range overCases() {
		cases["over "+name] = c
	}
	maps.Copy(cases, asofCases())
	for kind, all := range map[logical.SetOpKind][]bool{logical.Intersect: {false, true}, logical.Except: {false, true}} {
		for _, all := range all {
			name := kind.String()
			if all {
				name += " all"
			}
			cases[name] = physicaltest.Case{Schema: "s:varchar  b:boolean", Inputs: 2, Ordered: true, Plan: func(_ testing.TB, in plans) physical.Plan {
				return physical.NewSetOp(kind, all, in[0], in[1])
			}}
		}
	}
	for kind := logical.InnerJoin; kind <= logical.AntiJoin; kind++ {
		for _, buildLeft := range []bool{false, true} {
			name := "hash join " + kind.String()
			if buildLeft {
				name += " keeping left"
			}
			cases[name] = physicaltest.Case{Schema: "i:bigint  s:varchar  k:integer", Inputs: 2, Distinct: 40, MaxRows: 200, KeepsOn: true, Plan: func(t testing.TB, in plans) physical.Plan {
				return hashJoin(t, in[0], in[1], kind, buildLeft)
			}}
		}
	}
	cases["hash join not in"] = physicaltest.Case{Schema: "i:bigint  s:varchar", Inputs: 2, Distinct: 40, KeepsOn: true, Plan: func(t testing.TB, in plans) physical.Plan {
		return notIn(t, in[0], in[1])
	}}
	for kind := logical.InnerJoin; kind <= logical.CrossJoin; kind++ {
		cases["loop join "+kind.String()] = physicaltest.Case{Schema: "i:bigint  k:integer", Inputs: 2, MaxRows: 200, KeepsOn: true, Distinct: 500, Plan: func(t testing.TB, in plans) physical.Plan {
			return loopJoin(t, small(in[0]), small(in[1]), kind)
		}}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			physicaltest.Run(t, c)
		})
	}
}

// unnest unnests two arrays side by side, and repeats all columns but the first array.
func unnest(t testing.TB, in physical.Plan, outer bool) physical.Plan {
	lists := exprs(t, in.Schema(), col("l"), fn("array", col("i"), col("i")))
	var kept []int
	var fields []arrow.Field
	for i, f := range in.Schema().Fields() {
		if f.Name != "l" && !(physical.HasOrdinal(in.Schema()) && i == in.Schema().NumFields()-1) {
			kept, fields = append(kept, i), append(fields, f)
		}
	}
	fields = append(fields, columnar.Field("e1", columnar.Int64), columnar.Field("e2", columnar.Int64), columnar.Field("place", columnar.Int64))
	return must[*physical.Unnest](t)(physical.NewUnnest(in, lists, kept, outer, true, 1, arrow.NewSchema(fields, nil)))
}

// small is the first rows of p: a loop join of more takes too long.
func small(p physical.Plan) physical.Plan { return physical.NewLimit(p, 40, 0, false) }

// pairs is the columns of both inputs, the right ones called r.name.
func pairs(l, r *arrow.Schema) *arrow.Schema {
	fields := append([]arrow.Field(nil), l.Fields()...)
	for _, f := range r.Fields() {
		f.Name = "r_" + f.Name
		fields = append(fields, f)
	}
	return arrow.NewSchema(fields, nil)
}

func hashJoin(t testing.TB, l, r physical.Plan, kind logical.JoinKind, buildLeft bool) physical.Plan {
	both := pairs(l.Schema(), r.Schema())
	spec := physical.JoinSpec{Kind: kind, BuildLeft: buildLeft, NullSafe: []bool{false, true}}
	spec.LeftKeys = exprs(t, l.Schema(), col("s"), col("k"))
	spec.RightKeys = exprs(t, r.Schema(), col("s"), col("k"))
	spec.Residual = bind(t, both, col("i").Gt(col("r_i")).Or(col("i").IsNull()))
	return must[*physical.HashJoin](t)(physical.NewHashJoin(l, r, spec))
}

// notIn keeps the rows of l whose s is not in those of r.
func notIn(t testing.TB, l, r physical.Plan) physical.Plan {
	return must[*physical.HashJoin](t)(physical.NewHashJoin(l, r, physical.JoinSpec{
		Kind: logical.AntiJoin, NullAware: true, LeftKeys: exprs(t, l.Schema(), col("s")), RightKeys: exprs(t, r.Schema(), col("s")),
	}))
}

// TestNotIn compares the null-aware join with what it stands for: a loop join by s = r_s
// OR s IS NULL OR r_s IS NULL.
func TestNotIn(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"none":  "",
		"nulls": "s:varchar\nNULL\nNULL\n",
		"some":  "s:varchar\na\nb\nb\n",
		"mixed": "s:varchar\na\nNULL\nc\n",
		"other": "s:varchar\nx\n",
	}
	for left, l := range texts {
		for right, r := range texts {
			scan := func(text string) physical.Plan {
				if text == "" {
					return physicaltest.Scan(t, physicaltest.NewTable(columnartest.Schema(t, "s:varchar")))
				}
				return physicaltest.Scan(t, table(t, text))
			}
			inputs := func() (physical.Plan, physical.Plan) { return scan(l), scan(r) }
			a, b := inputs()
			got := notIn(t, a, b)
			a, b = inputs()
			on := bind(t, pairs(a.Schema(), b.Schema()), col("s").Eq(col("r_s")).Or(col("s").IsNull()).Or(col("r_s").IsNull()))
			want := must[*physical.LoopJoin](t)(physical.NewLoopJoin(logical.AntiJoin, a, b, on))
			g, err := physical.Collect(t.Context(), got, &physical.ExecContext{Mem: memory.DefaultAllocator, Parallel: 2})
			if err != nil {
				t.Fatal(err)
			}
			w, err := physical.Collect(t.Context(), want, &physical.ExecContext{Mem: memory.DefaultAllocator})
			if err != nil {
				t.Fatal(err)
			}
			if diff := columnartest.Diff(w, g, columnartest.DiffOptions{}); diff != "" {
				t.Errorf("%s NOT IN %s: %s", left, right, diff)
			}
			for _, b := range append(g, w...) {
				b.Release()
			}
		}
	}
}

func loopJoin(t testing.TB, l, r physical.Plan, kind logical.JoinKind) physical.Plan {
	var on expr.Expr
	if kind != logical.CrossJoin {
		on = bind(t, pairs(l.Schema(), r.Schema()), col("i").Gt(col("r_i")).And(col("k").Lt(col("r_k"))))
	}
	return must[*physical.LoopJoin](t)(physical.NewLoopJoin(kind, l, r, on))
}
