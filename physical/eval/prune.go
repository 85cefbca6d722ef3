package eval

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
)

// Bounds is what is known of the values of a column in a set of rows. The zero
// Bounds means nothing is known.
type Bounds struct {
	// Min and Max are arrays of one value of the column's type; nil is unknown. They
	// may be wider than the values, and may leave out NaN, as Parquet's do.
	Min, Max arrow.Array
	// Nulls is the number of nulls, of Rows rows; Rows 0 means not known.
	Nulls, Rows int64
}

// Constant is the Bounds of a column that holds one value (null included) in all
// rows: a partition column. v is an array of one value.
func Constant(v arrow.Array) Bounds {
	if v.IsNull(0) || v.DataType().ID() == arrow.NULL {
		return Bounds{Nulls: 1, Rows: 1}
	}
	return Bounds{Min: v, Max: v, Rows: 1}
}

// CanBeTrue says whether the condition e may be true for some row, given the bounds
// of columns by their position (expr.Ref). False is certain, and also says that no
// row would have been an error: what an evaluation in order would have failed at is
// never ruled out by what comes later.
func CanBeTrue(e expr.Expr, bounds func(column int) Bounds) bool {
	switch x := e.(type) {
	case *expr.Literal:
		b, ok := x.Value.(*array.Boolean)
		return ok && !x.IsNull() && b.Value(0)
	case *expr.Logic:
		return logicCanBeTrue(x, bounds)
	case *expr.In:
		return inCanBeTrue(x, bounds)
	case *expr.Ref:
		return compareCanBeTrue("=", x, bools[1], bounds)
	case *expr.Call:
		return callCanBeTrue(x, bounds)
	}
	return true
}

// CanAllBeTrue is CanBeTrue for the AND of conditions.
func CanAllBeTrue(conds []expr.Expr, bounds func(column int) Bounds) bool {
	for _, c := range conds {
		if !CanBeTrue(c, bounds) {
			return false
		}
		if expr.IsFallible(c) {
			return true
		}
	}
	return true
}

// HoldsForConstants says whether e may be true where the columns hold the given
// constants (arrays of one value); columns for which constants gives nil may hold
// anything. With every column known the answer is exact, and an error counts as true,
// so that it is met where it belongs.
func HoldsForConstants(e expr.Expr, constants func(column int) arrow.Array) bool {
	known := true
	bound, err := expr.Transform(e, func(x expr.Expr) (expr.Expr, error) {
		r, ok := x.(*expr.Ref)
		if !ok {
			return x, nil
		}
		v := constants(r.Index)
		if v == nil || !arrow.TypeEqual(v.DataType(), r.DataType) {
			known = false
			return x, nil
		}
		return &expr.Literal{Value: v}, nil
	})
	if err != nil || IsVolatile(e) || usesClock(e) {
		return true
	}
	if !known {
		return CanBeTrue(e, func(column int) Bounds {
			if v := constants(column); v != nil {
				return Constant(v)
			}
			return Bounds{}
		})
	}
	f, err := CompileFilter(arrow.NewSchema(nil, nil), bound)
	if err != nil {
		return true
	}
	one := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 1)
	defer one.Release()
	rows, all, err := f.Select(&Env{Mem: memory.DefaultAllocator}, one, nil)
	return err != nil || all || len(rows) > 0
}

// usesClock says whether e depends on the batch time or the session.
func usesClock(e expr.Expr) bool {
	found := false
	expr.Walk(e, func(x expr.Expr) bool {
		switch x := x.(type) {
		case *expr.Call:
			found = found || x.Signature.Overload.Volatility != 0
		case *expr.Cast: // by way of the time zone
			a, b := x.Input.Type(), x.To
			found = found || a.ID() != b.ID() && (a.ID() == arrow.TIMESTAMP || b.ID() == arrow.TIMESTAMP)
		}
		return !found
	})
	return found
}

func logicCanBeTrue(x *expr.Logic, bounds func(int) Bounds) bool {
	if x.Op == expr.And {
		return CanAllBeTrue(x.Args, bounds)
	}
	for _, a := range x.Args {
		if CanBeTrue(a, bounds) || expr.IsFallible(a) {
			return true
		}
	}
	return false
}

// maxCompared bounds the items of an IN that are compared one by one, which happens for
// every page of a file; of integers any number is.
const maxCompared = 1000

func inCanBeTrue(x *expr.In, bounds func(int) Bounds) bool {
	if r, ok := x.Value.(*expr.Ref); ok {
		if b := bounds(r.Index); b.Min != nil && b.Max != nil {
			low, isInt := intAt(b.Min, 0)
			high, _ := intAt(b.Max, 0)
			if isInt {
				return anyBetween(x.List, low, high)
			}
		}
	}
	if len(x.List) > maxCompared {
		return true
	}
	for _, e := range x.List {
		if compareCanBeTrue("=", x.Value, e, bounds) {
			return true
		}
	}
	return false
}

// anyBetween says whether an item of the list may be an integer from low to high.
func anyBetween(list []expr.Expr, low, high int64) bool {
	for _, e := range list {
		l, ok := e.(*expr.Literal)
		if !ok {
			return true
		}
		if l.IsNull() {
			continue
		}
		if v, ok := intAt(l.Value, 0); !ok || low <= v && v <= high {
			return true
		}
	}
	return false
}

// inverse is the comparison that is true where op is false.
var inverse = map[string]string{"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

// mirrored is the comparison with its sides exchanged.
var mirrored = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "is_not_distinct_from": "is_not_distinct_from"}

func callCanBeTrue(x *expr.Call, bounds func(int) Bounds) bool {
	switch x.Func.Name {
	case "not":
		c, ok := x.Args[0].(*expr.Call)
		if op := ""; ok {
			if op, ok = inverse[c.Func.Name]; ok {
				return compareCanBeTrue(op, c.Args[0], c.Args[1], bounds)
			}
		}
		if r, ok := x.Args[0].(*expr.Ref); ok {
			return compareCanBeTrue("=", r, bools[0], bounds)
		}
	case "is_null", "is_not_null":
		r, ok := x.Args[0].(*expr.Ref)
		if !ok {
			return true
		}
		b := bounds(r.Index)
		if x.Func.Name == "is_null" {
			return b.Rows == 0 || b.Nulls > 0
		}
		return b.Rows == 0 || b.Nulls < b.Rows
	default:
		if _, ok := mirrored[x.Func.Name]; ok && len(x.Args) == 2 {
			return compareCanBeTrue(x.Func.Name, x.Args[0], x.Args[1], bounds)
		}
	}
	return true
}

// compareCanBeTrue is for a column compared with a literal, either way around.
func compareCanBeTrue(op string, a, b expr.Expr, bounds func(int) Bounds) bool {
	r, ok := a.(*expr.Ref)
	if !ok {
		if r, ok = b.(*expr.Ref); !ok {
			return true
		}
		b = a
		op = mirrored[op]
	}
	if c, ok := b.(*expr.Cast); ok { // of a NULL: the only one that stays unfolded
		b = c.Input
	}
	l, ok := b.(*expr.Literal)
	if !ok {
		return true
	}
	bd := bounds(r.Index)
	if l.IsNull() {
		return op == "is_not_distinct_from" && (bd.Rows == 0 || bd.Nulls > 0)
	}
	if bd.Rows > 0 && bd.Nulls == bd.Rows {
		return false
	}
	if !arrow.TypeEqual(l.Type(), r.DataType) {
		return true
	}
	if columnar.IsFloat(r.DataType) {
		return floatCanBeTrue(op, bd, l.Value)
	}
	return inBounds(op, bd, l.Value)
}

// floatCanBeTrue knows that bounds may leave out NaN, which is above everything and
// equal to itself: only a NaN-free upper bound of the wanted values helps.
func floatCanBeTrue(op string, b Bounds, v arrow.Array) bool {
	if isNaN(v) || b.Min != nil && isNaN(b.Min) || b.Max != nil && isNaN(b.Max) {
		return true
	}
	switch op {
	case "=", "is_not_distinct_from", "<", "<=":
		return inBounds(op, b, v)
	}
	return true
}

func isNaN(a arrow.Array) bool {
	switch a := a.(type) {
	case *array.Float32:
		return a.Value(0) != a.Value(0)
	case *array.Float64:
		return a.Value(0) != a.Value(0)
	}
	return false
}

func inBounds(op string, b Bounds, v arrow.Array) bool {
	atLeast := b.Min == nil || compareOne(b.Min, v) <= 0 // Min <= v
	atMost := b.Max == nil || compareOne(b.Max, v) >= 0  // Max >= v
	switch op {
	case "=", "is_not_distinct_from":
		return atLeast && atMost
	case "<":
		return b.Min == nil || compareOne(b.Min, v) < 0
	case "<=":
		return atLeast
	case ">":
		return b.Max == nil || compareOne(b.Max, v) > 0
	case ">=":
		return atMost
	case "<>":
		return b.Min == nil || b.Max == nil || compareOne(b.Min, v) != 0 || compareOne(b.Max, v) != 0
	}
	return true
}

// bools are FALSE and TRUE.
var bools = func() [2]*expr.Literal {
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	var out [2]*expr.Literal
	for i := range out {
		b.Append(i == 1)
		out[i] = &expr.Literal{Value: b.NewArray()}
	}
	return out
}()

// compareOne orders two arrays of one value that is not null.
func compareOne(a, b arrow.Array) int {
	holds := func(op kernel.CompareOp) bool {
		d := kernel.Compare(memory.DefaultAllocator, op, columnar.ConstantDatum(a), columnar.ConstantDatum(b), 1)
		return d.Array().(*array.Boolean).Value(0)
	}
	switch {
	case holds(kernel.Less):
		return -1
	case holds(kernel.Equal):
		return 0
	}
	return 1
}
