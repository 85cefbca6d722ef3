package physical_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/physicaltest"
)

// overCases are window functions over partitions by s, or over everything, in the order
// of k.
func overCases() map[string]physicaltest.Case {
	type plans = []physical.Plan
	cases := map[string]physicaltest.Case{}
	for name, partition := range map[string][]expr.Term{"everything": nil, "partitions": {col("s")}} {
		cases[name] = physicaltest.Case{Schema: wide, Ordered: partition == nil, ULP: 2, MaxRows: 200, Plan: func(t testing.TB, in plans) physical.Plan {
			input := in[0]
			if partition != nil {
				input = must[*physical.Exchange](t)(physical.NewExchange(input, exprs(t, input.Schema(), partition...)...))
			}
			return must[*physical.Over](t)(physical.NewOver(input, overFunctions(t, in[0], partition)))
		}}
	}
	cases["ordinal"] = physicaltest.Case{Schema: wide, Ordered: true, MaxRows: 60, Plan: func(t testing.TB, in plans) physical.Plan {
		n := physical.NewNumber(in[0])
		return must[*physical.Over](t)(physical.NewOver(n, overFunctions(t, n, []expr.Term{col("b")})))
	}}
	return cases
}

// overFunctions are functions of every kind over frames of every shape.
func overFunctions(t testing.TB, in physical.Plan, partition []expr.Term) []expr.Named {
	s := in.Schema()
	x := func(term expr.Term) expr.Expr { return bind(t, s, term) }
	var out []expr.Named
	add := func(name string, o expr.Over) {
		o.Partition = exprs(t, s, partition...)
		o.Order = []expr.Order{{Expr: x(col("k")), NullsFirst: true}}
		if o.Agg != nil {
			o.DataType = o.Agg.Type()
		}
		out = append(out, expr.Named{Expr: &o, Name: name})
	}
	agg := func(term expr.Term) *expr.Agg { return x(term).(*expr.Agg) }
	bound := func(kind expr.BoundKind, n int64) expr.Bound { return expr.Bound{Kind: kind, Offset: n} }
	running := expr.Frame{Unit: expr.Range, Low: bound(expr.UnboundedPreceding, 0), High: bound(expr.CurrentRow, 0)}
	sliding := expr.Frame{Unit: expr.Rows, Low: bound(expr.Preceding, 3), High: bound(expr.Following, 2)}
	groups := expr.Frame{Unit: expr.Groups, Low: bound(expr.Preceding, 1), High: bound(expr.Following, 1)}
	near := expr.Frame{Unit: expr.Range, Key: x(col("k").Cast(columnar.Int64)), Low: bound(expr.Preceding, 0), High: bound(expr.Following, 0)}
	near.Low.Value, near.High.Value = x(col("k").Cast(columnar.Int64).Sub(lit(1000))), x(col("k").Cast(columnar.Int64).Add(lit(1000)))
	for _, f := range []string{"row_number", "rank", "dense_rank"} {
		add(f, expr.Over{Func: f, DataType: columnar.Int64})
	}
	for _, f := range []string{"percent_rank", "cume_dist"} {
		add(f, expr.Over{Func: f, DataType: columnar.Float64})
	}
	add("ntile", expr.Over{Func: "ntile", Args: []expr.Expr{x(lit(4))}, DataType: columnar.Int64})
	text := columnar.String
	for name, nulls := range map[string]bool{"": false, " nulls": true} {
		add("lag"+name, expr.Over{Func: "lag", Args: []expr.Expr{x(col("s")), x(lit(2)), x(lit("none"))}, IgnoreNulls: nulls, DataType: text})
		add("lead"+name, expr.Over{Func: "lead", Args: []expr.Expr{x(col("s")), x(lit(1))}, IgnoreNulls: nulls, DataType: text})
		add("first"+name, expr.Over{Func: "first_value", Args: []expr.Expr{x(col("s"))}, Frame: sliding, IgnoreNulls: nulls, DataType: text})
		add("last"+name, expr.Over{Func: "last_value", Args: []expr.Expr{x(col("l"))}, Frame: running, IgnoreNulls: nulls, DataType: x(col("l")).Type()})
		add("nth"+name, expr.Over{Func: "nth_value", Args: []expr.Expr{x(col("d")), x(lit(2))}, Frame: groups, IgnoreNulls: nulls, DataType: x(col("d")).Type()})
	}
	for name, f := range map[string]expr.Frame{"running": running, "sliding": sliding, "groups": groups, "near": near, "whole": expr.WholePartition} {
		add("count "+name, expr.Over{Agg: agg(fn("count").Filter(col("b"))), Frame: f})
		add("sum "+name, expr.Over{Agg: agg(fn("sum", col("f"))), Frame: f})
		add("max "+name, expr.Over{Agg: agg(fn("max", col("s"))), Frame: f})
		add("last "+name, expr.Over{Agg: agg(fn("last", col("ts"))), Frame: f})
	}
	for name, e := range map[string]expr.Exclusion{"row": expr.ExcludeCurrentRow, "group": expr.ExcludeGroup, "ties": expr.ExcludeTies} {
		f := sliding
		f.Exclude = e
		add("sum but "+name, expr.Over{Agg: agg(fn("sum", col("f"))), Frame: f})
		add("list but "+name, expr.Over{Agg: agg(fn("collect_list", col("s"))), Frame: f})
		add("distinct but "+name, expr.Over{Agg: agg(fn("count", col("d")).Distinct()), Frame: f})
		add("nth but "+name, expr.Over{Func: "nth_value", Args: []expr.Expr{x(col("d")), x(lit(2))}, Frame: f, DataType: x(col("d")).Type()})
		add("last but "+name, expr.Over{Func: "last_value", Args: []expr.Expr{x(col("s"))}, IgnoreNulls: true, Frame: f, DataType: text})
	}
	add("distinct sliding", expr.Over{Agg: agg(fn("count", col("d")).Distinct().Filter(col("b"))), Frame: sliding})
	add("distinct near", expr.Over{Agg: agg(fn("sum", col("k")).Distinct()), Frame: near})
	listed := agg(fn("collect_list", col("s")))
	listed.Order = []expr.Order{{Expr: x(col("d")), Descending: true}, {Expr: x(col("f")), NullsFirst: true}}
	add("list in order", expr.Over{Agg: listed, Frame: sliding})
	add("distinct", expr.Over{Agg: agg(fn("count", col("d")).Distinct().Filter(col("b"))), Frame: running})
	add("distinct whole", expr.Over{Agg: agg(fn("sum", col("k")).Distinct()), Frame: expr.WholePartition})
	return sorted(out)
}

// sorted puts functions in the order of their names: maps have none.
func sorted(list []expr.Named) []expr.Named {
	slices.SortFunc(list, func(a, b expr.Named) int { return strings.Compare(a.Name, b.Name) })
	return list
}
