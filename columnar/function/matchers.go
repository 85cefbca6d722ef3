package function

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// matcher is a Matcher made of a name and what it does.
type matcher struct {
	name  string
	match func(arg arrow.DataType) (want arrow.DataType, cost int, ok bool)
}

func (m matcher) Match(arg arrow.DataType) (arrow.DataType, int, bool) { return m.match(arg) }
func (m matcher) String() string                                       { return m.name }

// ImplicitCost is how far the implicit cast from one type to another goes: 0 for
// none, more the less alike they are; ok is false if there is no implicit cast. Only
// casts that cannot fail are implicit, but where 38 digits do not suffice for a DECIMAL.
func ImplicitCost(from, to arrow.DataType) (cost int, ok bool) {
	if arrow.TypeEqual(from, to) {
		return 0, true
	}
	if from.ID() == arrow.NULL {
		return 1, true
	}
	common, ok := columnar.Common(from, to)
	if !ok || !arrow.TypeEqual(common, to) {
		return 0, false
	}
	switch {
	case columnar.IsInteger(from) && columnar.IsInteger(to):
		return 2, true
	case columnar.IsInteger(from) && columnar.IsDecimal(to):
		return 10, true
	case columnar.IsDecimal(from) && columnar.IsFloat(to):
		return 15, true
	case columnar.IsInteger(from) && columnar.IsFloat(to):
		return 20, true
	case columnar.IsNumeric(from):
		return 3, true
	}
	return 5, true
}

// exactly takes dt and what is cast to it implicitly.
func exactly(dt arrow.DataType) Matcher {
	return matcher{columnar.TypeName(dt), func(a arrow.DataType) (arrow.DataType, int, bool) {
		cost, ok := ImplicitCost(a, dt)
		return dt, cost, ok
	}}
}

// class takes the types is accepts as they are, and NULL as null.
func class(name string, null arrow.DataType, is func(arrow.DataType) bool) Matcher {
	return matcher{name, func(a arrow.DataType) (arrow.DataType, int, bool) {
		if a.ID() == arrow.NULL {
			return null, 1, true
		}
		return a, 0, is(a)
	}}
}

var (
	anyType     = matcher{"any", func(a arrow.DataType) (arrow.DataType, int, bool) { return a, 0, true }}
	boolean     = exactly(columnar.Boolean)
	bigint      = exactly(columnar.Int64)
	double      = exactly(columnar.Float64)
	varchar     = exactly(columnar.String)
	date        = exactly(columnar.Date)
	timestamp   = exactly(columnar.Timestamp)
	interval    = exactly(columnar.Interval)
	integerType = class("INTEGER", columnar.Int32, columnar.IsInteger)
	listType    = class("ARRAY", columnar.ListOf(columnar.Null), func(a arrow.DataType) bool { return a.ID() == arrow.LIST })
	mapType     = class("MAP", arrow.MapOf(columnar.String, columnar.Null), func(a arrow.DataType) bool { return a.ID() == arrow.MAP })
	textType    = class("VARCHAR or BINARY", columnar.String, func(a arrow.DataType) bool { return a.ID() == arrow.STRING || a.ID() == arrow.BINARY })

	// decimalType takes decimals as they are and integers as the decimal that holds
	// them.
	decimalType = matcher{"DECIMAL", func(a arrow.DataType) (arrow.DataType, int, bool) {
		switch {
		case a.ID() == arrow.NULL:
			return columnar.Decimal(10, 0), 1, true
		case columnar.IsDecimal(a):
			return a, 0, true
		case columnar.IsInteger(a):
			d, _ := columnar.AsDecimal(a)
			return d, 10, true
		}
		return nil, 0, false
	}}

	// floatType takes REAL and DOUBLE as they are and other numbers as DOUBLE.
	floatType = matcher{"DOUBLE", func(a arrow.DataType) (arrow.DataType, int, bool) {
		switch {
		case columnar.IsFloat(a):
			return a, 0, true
		case a.ID() == arrow.NULL, columnar.IsNumeric(a):
			cost, ok := ImplicitCost(a, columnar.Float64)
			return columnar.Float64, cost, ok
		}
		return nil, 0, false
	}}
)

// always is the result function of an overload with one result type.
func always(dt arrow.DataType) func([]arrow.DataType) (arrow.DataType, error) {
	return func([]arrow.DataType) (arrow.DataType, error) { return dt, nil }
}

// sameAs is the result function of an overload whose result has the type of an
// argument.
func sameAs(i int) func([]arrow.DataType) (arrow.DataType, error) {
	return func(args []arrow.DataType) (arrow.DataType, error) { return args[i], nil }
}

// Cast is d as type to: see kernel.Cast. active says which rows count; where a value
// cannot be cast it is an error, or null if try is set. A constant stays one.
func Cast(env *Env, d columnar.Datum, to arrow.DataType, try bool, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
	return castWith(env, d, to, kernel.CastOptions{Mode: kernel.Mode{Active: active, Try: try}}, rows)
}

// CastByPosition is Cast of which structs become others field by field in order, whatever
// the names.
func CastByPosition(env *Env, d columnar.Datum, to arrow.DataType, try bool, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
	return castWith(env, d, to, kernel.CastOptions{Mode: kernel.Mode{Active: active, Try: try}, ByPosition: true}, rows)
}

func castWith(env *Env, d columnar.Datum, to arrow.DataType, o kernel.CastOptions, rows int) (columnar.Datum, error) {
	o.Location = env.Location
	if !d.IsConstant() {
		a, err := kernel.Cast(env.Mem, d.Array(), to, o)
		return columnar.ColumnDatum(a), err
	}
	if noneActive(rows, o.Active) {
		return columnar.NullConstant(env.Mem, to), nil
	}
	o.Active = nil
	a, err := kernel.Cast(env.Mem, d.Array(), to, o)
	if err != nil {
		return columnar.Datum{}, err
	}
	return columnar.ConstantDatum(a), nil
}

// CanCast says whether CAST, which casts structs by position, is defined between two types,
// though it may fail for some values.
func CanCast(from, to arrow.DataType) bool {
	return kernel.CanCast(from, to, kernel.CastOptions{ByPosition: true})
}

func noneActive(rows int, active *columnar.Bitmap) bool {
	return rows > 0 && active != nil && active.Count() == 0
}
