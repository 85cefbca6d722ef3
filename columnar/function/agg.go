package function

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// aggregates lists every built-in aggregate function. How a new one is added: a file
// agg_NAME.go with its Aggregate value and its Accumulator, and a line here.
func aggregates() []*Aggregate {
	list := []*Aggregate{
		countAggregate(), countIfAggregate(),
		sumAggregate(), avgAggregate(),
		extremeAggregate("min", false), extremeAggregate("max", true),
		firstLastAggregate("first", false, "first_value"), firstLastAggregate("last", true, "last_value"),
		firstLastAggregate("any_value", false, "arbitrary"),
		extremeByAggregate("min_by", false, "arg_min", "argmin", "arg_min_null"), extremeByAggregate("max_by", true, "arg_max", "argmax", "arg_max_null"),
		logicAggregate("bool_and", true, "every"), logicAggregate("bool_or", false, "some", "any"),
		varianceAggregate("var_samp", true, false, "variance"), varianceAggregate("var_pop", false, false),
		varianceAggregate("stddev_samp", true, true, "stddev", "std"), varianceAggregate("stddev_pop", false, true),
		collectListAggregate(), collectSetAggregate(), listaggAggregate(),
		medianAggregate(), percentileAggregate(), discretePercentileAggregate(), medianDeviationAggregate(),
		approxDistinctAggregate(), approxQuantileAggregate(),
		modeAggregate(), histogramAggregate(), topValuesAggregate(), entropyAggregate(),
	}
	return slices.Concat(list, bitAggregates(), momentAggregates(), tryAggregates())
}

// aggArg is the Matcher of aggregate arguments: a name and what it does.
type aggArg struct {
	name  string
	match func(arg arrow.DataType) (want arrow.DataType, cost int, ok bool)
}

func (m aggArg) Match(arg arrow.DataType) (arrow.DataType, int, bool) { return m.match(arg) }
func (m aggArg) String() string                                       { return m.name }

// anyArg takes every type as it is.
var anyArg = aggArg{"any", func(a arrow.DataType) (arrow.DataType, int, bool) { return a, 0, true }}

// valueArg takes every type, NULL as INTEGER: what state columns can hold.
var valueArg = aggArg{"any", func(a arrow.DataType) (arrow.DataType, int, bool) {
	if a.ID() == arrow.NULL {
		return columnar.Int32, 1, true
	}
	return a, 0, true
}}

// exactArg takes dt, and NULL as one.
func exactArg(dt arrow.DataType) Matcher {
	return aggArg{columnar.TypeName(dt), func(a arrow.DataType) (arrow.DataType, int, bool) {
		if a.ID() == arrow.NULL {
			return dt, 1, true
		}
		return dt, 0, arrow.TypeEqual(a, dt)
	}}
}

// integerArg takes every integer as it is, and NULL as BIGINT.
var integerArg = aggArg{"BIGINT", func(a arrow.DataType) (arrow.DataType, int, bool) {
	if a.ID() == arrow.NULL {
		return columnar.Int64, 1, true
	}
	return a, 0, columnar.IsInteger(a)
}}

var decimalArg = aggArg{"DECIMAL", func(a arrow.DataType) (arrow.DataType, int, bool) {
	return a, 0, columnar.IsDecimal(a)
}}

// doubleArg takes every number as DOUBLE.
var doubleArg = aggArg{"DOUBLE", func(a arrow.DataType) (arrow.DataType, int, bool) {
	switch {
	case a.ID() == arrow.FLOAT64:
		return a, 0, true
	case a.ID() == arrow.FLOAT32:
		return columnar.Float64, 1, true
	}
	return columnar.Float64, 4, columnar.IsNumeric(a) || a.ID() == arrow.NULL
}}

// orderedArg takes every type that < is defined on, and structs and arrays, which
// compare element by element.
var orderedArg = aggArg{"any ordered type", func(a arrow.DataType) (arrow.DataType, int, bool) {
	if a.ID() == arrow.NULL {
		return columnar.Int32, 1, true
	}
	return a, 0, a.ID() != arrow.MAP
}}

func resultType(dt arrow.DataType) func([]arrow.DataType) (arrow.DataType, error) {
	return func([]arrow.DataType) (arrow.DataType, error) { return dt, nil }
}

// firstArgType is the Result of aggregates that return one of their arguments.
func firstArgType(args []arrow.DataType) (arrow.DataType, error) { return args[0], nil }

// stateField is a nullable state column.
func stateField(name string, dt arrow.DataType) arrow.Field { return columnar.Field(name, dt) }

// OverflowError says that a sum or average does not fit its type.
type OverflowError struct {
	Function string
	Type     arrow.DataType
}

func (e *OverflowError) Error() string {
	hint := "CAST the argument to DECIMAL(38,0)"
	if columnar.IsDecimal(e.Type) {
		hint = "CAST the argument to DOUBLE"
	}
	return fmt.Sprintf("%s overflows %s; %s", e.Function, columnar.TypeName(e.Type), hint)
}

// checkState makes sure that state columns are those of fields. Ordered accumulators
// may be given one column more, which they do not need.
func checkState(fields []arrow.Field, state []arrow.Array, groups int) error {
	if len(state) < len(fields) {
		return fmt.Errorf("bug: %d state columns given, %d expected", len(state), len(fields))
	}
	for i, f := range fields {
		if !arrow.TypeEqual(state[i].DataType(), f.Type) {
			return fmt.Errorf("bug: state column %s is %s, not %s", f.Name, state[i].DataType(), f.Type)
		}
		if state[i].Len() != groups {
			return fmt.Errorf("bug: state column %s has %d rows, not %d", f.Name, state[i].Len(), groups)
		}
	}
	return nil
}

// doubleCapacity is the capacity a slice grows to when it must hold need elements:
// append grows large slices by a quarter, which copies them too often.
func doubleCapacity(have, need int) int {
	c := max(have, 64)
	for c < need {
		c *= 2
	}
	return c
}

// extend returns s with at least n elements; new ones are neutral.
func extend[T any](s []T, n int, neutral T) []T {
	old := len(s)
	if n <= old {
		return s
	}
	if n > cap(s) {
		g := make([]T, old, doubleCapacity(cap(s), n))
		copy(g, s)
		s = g
	}
	s = s[:n]
	fresh := s[old:]
	for i := range fresh {
		fresh[i] = neutral
	}
	return s
}

// bytesOfSlice is the memory of a slice.
func bytesOfSlice[T any](s []T, size int) int64 { return int64(cap(s) * size) }

// newAccumulator is the signature of AggregateOverload.New.
type newAccumulator = func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error)
