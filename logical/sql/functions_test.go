package sql

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

func columnsOf(x expr.Expr) []expr.ID { return expr.Columns(x) }

// anyType matches any argument, or only types of one kind.
type kind struct {
	name string
	ok   func(arrow.DataType) bool
}

func (k kind) Match(dt arrow.DataType) (arrow.DataType, int, bool) {
	return dt, 0, dt.ID() == arrow.NULL || k.ok(dt)
}
func (k kind) String() string { return k.name }

var (
	anything = kind{"any", func(arrow.DataType) bool { return true }}
	numbers  = kind{"number", columnar.IsNumeric}
	texts    = kind{"VARCHAR", func(dt arrow.DataType) bool { return dt.ID() == arrow.STRING }}
	bools    = kind{"BOOLEAN", func(dt arrow.DataType) bool { return dt.ID() == arrow.BOOL }}
	instants = kind{"TIMESTAMP", columnar.IsTemporal}
	lists    = kind{"ARRAY", func(dt arrow.DataType) bool { return dt.ID() == arrow.LIST }}
	lengths  = kind{"INTERVAL", func(dt arrow.DataType) bool { return dt.ID() == arrow.INTERVAL_MONTH_DAY_NANO }}
)

func returns(dt arrow.DataType) func([]arrow.DataType) (arrow.DataType, error) {
	return func([]arrow.DataType) (arrow.DataType, error) { return dt, nil }
}

func same(args []arrow.DataType) (arrow.DataType, error) { return args[0], nil }

// testFunctions are signatures only: these tests plan and run nothing.
func testFunctions(t testing.TB) *function.Registry {
	t.Helper()
	r := function.NewRegistry()
	one := func(name string, o ...function.Overload) {
		if err := r.AddScalar(&function.Scalar{Name: name, Overloads: o}); err != nil {
			t.Fatal(err)
		}
	}
	two := func(a, b kind) []function.Matcher { return []function.Matcher{a, b} }
	for _, op := range []string{"+", "-", "*", "%", "//"} {
		one(op, function.Overload{Args: two(numbers, numbers), Unify: true, Result: same, Fallible: op == "//"},
			function.Overload{Args: two(instants, lengths), Result: same},
			function.Overload{Args: []function.Matcher{numbers}, Result: same})
	}
	one("/", function.Overload{Args: two(numbers, numbers), Result: returns(columnar.Float64)})
	one("||", function.Overload{Args: two(texts, texts), Result: returns(columnar.String)})
	for _, op := range []string{"=", "<>", "<", "<=", ">", ">=", "is_distinct_from", "is_not_distinct_from"} {
		one(op, function.Overload{Args: two(anything, anything), Unify: true, Result: returns(columnar.Boolean)})
	}
	for _, name := range []string{"like", "ilike", "rlike"} {
		one(name, function.Overload{Args: two(texts, texts), Result: returns(columnar.Boolean)},
			function.Overload{Args: []function.Matcher{texts, texts, texts}, Result: returns(columnar.Boolean)})
	}
	for _, name := range []string{"is_null", "is_not_null"} {
		one(name, function.Overload{Args: []function.Matcher{anything}, Result: returns(columnar.Boolean), NullSafe: true})
	}
	one("not", function.Overload{Args: []function.Matcher{bools}, Result: returns(columnar.Boolean)})
	one("coalesce", function.Overload{Args: []function.Matcher{anything}, Variadic: true, Unify: true, Result: same, NullSafe: true})
	for _, name := range []string{"lower", "upper", "trim", "ltrim"} {
		one(name, function.Overload{Args: []function.Matcher{texts}, Result: returns(columnar.String)})
	}
	one("substring", function.Overload{Args: []function.Matcher{texts, numbers, numbers}, Result: returns(columnar.String)})
	one("position", function.Overload{Args: two(texts, texts), Result: returns(columnar.Int64)})
	one("year", function.Overload{Args: []function.Matcher{instants}, Result: returns(columnar.Int64)})
	one("date_part", function.Overload{Args: two(texts, instants), Result: returns(columnar.Int64)})
	one("date_trunc", function.Overload{Args: two(texts, instants), Result: returns(columnar.Timestamp)})
	one("timestampdiff", function.Overload{Args: []function.Matcher{texts, instants, instants}, Result: returns(columnar.Int64)})
	one("window_time", function.Overload{Args: []function.Matcher{instants}, Result: returns(columnar.Timestamp)})
	one("to_timestamp", function.Overload{Args: []function.Matcher{numbers}, Result: returns(columnar.Timestamp)})
	one("random", function.Overload{Result: returns(columnar.Float64), Volatility: function.Volatile})
	one("now", function.Overload{Result: returns(columnar.Timestamp), Volatility: function.Stable})
	one("current_timestamp", function.Overload{Result: returns(columnar.Timestamp), Volatility: function.Stable})
	one("array", function.Overload{Args: []function.Matcher{anything}, Variadic: true, Unify: true,
		Result: func(args []arrow.DataType) (arrow.DataType, error) { return columnar.ListOf(args[0]), nil }})
	one("subscript", function.Overload{Args: two(anything, anything), Result: func(args []arrow.DataType) (arrow.DataType, error) {
		switch t := args[0].(type) {
		case *arrow.ListType:
			return t.Elem(), nil
		case *arrow.MapType:
			return t.ItemType(), nil
		}
		return nil, fmt.Errorf("%s has no elements", columnar.TypeName(args[0]))
	}})
	one("**", function.Overload{Args: two(numbers, numbers), Result: returns(columnar.Float64)})
	one("array_slice", function.Overload{Args: []function.Matcher{lists, numbers, numbers}, Result: same},
		function.Overload{Args: []function.Matcher{texts, numbers, numbers}, Result: same})
	addAggregates(t, r)
	return r
}

func addAggregates(t testing.TB, r *function.Registry) {
	t.Helper()
	agg := func(name string, o ...function.AggregateOverload) {
		if err := r.AddAggregate(&function.Aggregate{Name: name, Overloads: o}); err != nil {
			t.Fatal(err)
		}
	}
	agg("any_value", function.AggregateOverload{Args: []function.Matcher{anything}, Result: same})
	agg("count", function.AggregateOverload{Result: returns(columnar.Int64)},
		function.AggregateOverload{Args: []function.Matcher{anything}, Result: returns(columnar.Int64)})
	agg("sum", function.AggregateOverload{Args: []function.Matcher{numbers}, Result: same})
	agg("avg", function.AggregateOverload{Args: []function.Matcher{numbers}, Result: returns(columnar.Float64)})
	agg("min", function.AggregateOverload{Args: []function.Matcher{anything}, Result: same, IgnoresDistinct: true})
	agg("max", function.AggregateOverload{Args: []function.Matcher{anything}, Result: same, IgnoresDistinct: true})
	agg("last", function.AggregateOverload{Args: []function.Matcher{anything}, Result: same, Ordered: true})
	agg("listagg", function.AggregateOverload{Args: []function.Matcher{texts, texts}, Result: returns(columnar.String), Ordered: true})
	agg("min_by", function.AggregateOverload{Args: []function.Matcher{anything, anything}, Result: same, Ordered: true})
	if err := r.AddAggregate(&function.Aggregate{Name: "percentile", Aliases: []string{"percentile_cont"},
		Overloads: []function.AggregateOverload{{Args: []function.Matcher{numbers, numbers}, Result: returns(columnar.Float64)}}}); err != nil {
		t.Fatal(err)
	}
	listOf := func(args []arrow.DataType) (arrow.DataType, error) { return columnar.ListOf(args[0]), nil }
	if err := r.AddAggregate(&function.Aggregate{Name: "collect_list", Aliases: []string{"array_agg"}, Overloads: []function.AggregateOverload{
		{Args: []function.Matcher{anything}, Result: listOf, Ordered: true}, {Args: []function.Matcher{anything, bools}, Result: listOf, Ordered: true}}}); err != nil {
		t.Fatal(err)
	}
	agg("percentile_disc", function.AggregateOverload{Args: []function.Matcher{numbers, numbers}, Result: same},
		function.AggregateOverload{Args: []function.Matcher{numbers, lists}, Result: listOf})
	agg("mode", function.AggregateOverload{Args: []function.Matcher{anything}, Result: same})
	agg("first", function.AggregateOverload{Args: []function.Matcher{anything}, Result: same, Ordered: true})
}
