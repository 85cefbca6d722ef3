package expr

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
)

// Making a struct and taking a field out of one are functions whose result depends
// on names, not on argument types alone; so each is made for its use and is not in
// the registry.

// StructName is the name of the function that makes a struct.
const StructName = "struct"

const fieldPrefix = "field_"

// NewStruct is a struct of values under the given names.
func NewStruct(names []string, args []Expr) Expr {
	fields := make([]arrow.Field, len(args))
	for i, a := range args {
		fields[i] = columnar.Field(names[i], a.Type())
	}
	dt := arrow.StructOf(fields...)
	result := func([]arrow.DataType) (arrow.DataType, error) { return dt, nil }
	f := &function.Scalar{Name: StructName, Overloads: []function.Overload{{
		NullSafe: true,
		Result:   result,
		Bind: func([]arrow.DataType, []arrow.Array) (function.Kernel, error) {
			return func(env *function.Env, args []columnar.Datum, rows int, _ *columnar.Bitmap) (columnar.Datum, error) {
				return makeStruct(env, dt, args, rows)
			}, nil
		},
	}}}
	sig := &function.Signature{Overload: &f.Overloads[0], Args: Types(args), Result: dt}
	return &Call{Func: f, Signature: sig, Args: args}
}

func makeStruct(env *function.Env, dt *arrow.StructType, args []columnar.Datum, rows int) (columnar.Datum, error) {
	children := make([]arrow.ArrayData, len(args))
	for i, a := range args {
		column, err := env.Broadcast(a, rows)
		if err != nil {
			return columnar.Datum{}, err
		}
		defer column.Release()
		children[i] = column.Data()
	}
	data := array.NewData(dt, rows, []*memory.Buffer{nil}, children, 0, 0)
	defer data.Release()
	return columnar.ColumnDatum(array.NewStructData(data)), nil
}

// NewField is field i of a struct; of a struct just made, the value it was made of.
func NewField(x Expr, i int) Expr {
	if c, ok := x.(*Call); ok && c.Func.Name == StructName {
		return c.Args[i]
	}
	field := x.Type().(*arrow.StructType).Field(i)
	f := &function.Scalar{Name: fieldPrefix + field.Name, Overloads: []function.Overload{{
		Result: func([]arrow.DataType) (arrow.DataType, error) { return field.Type, nil },
		Bind: func([]arrow.DataType, []arrow.Array) (function.Kernel, error) {
			return func(env *function.Env, args []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
				return takeField(env.Mem, args[0], i)
			}, nil
		},
	}}}
	sig := &function.Signature{Overload: &f.Overloads[0], Args: []arrow.DataType{x.Type()}, Result: field.Type}
	return &Call{Func: f, Signature: sig, Args: []Expr{x}}
}

// FieldOf takes apart what NewField made: the struct and the name of the field.
func FieldOf(e Expr) (of Expr, name string, ok bool) {
	c, isCall := e.(*Call)
	if !isCall || len(c.Args) != 1 {
		return nil, "", false
	}
	name, ok = strings.CutPrefix(c.Func.Name, fieldPrefix)
	if !ok || c.Args[0].Type().ID() != arrow.STRUCT {
		return nil, "", false
	}
	return c.Args[0], name, true
}

// takeField is child i of a struct column. Where the struct is null so is the field.
func takeField(mem memory.Allocator, d columnar.Datum, i int) (columnar.Datum, error) {
	s := d.Array().(*array.Struct)
	child := s.Field(i)
	wrap := columnar.ColumnDatum
	if d.IsConstant() {
		wrap = columnar.ConstantDatum
	}
	if s.NullN() == 0 {
		child.Retain()
		return wrap(child), nil
	}
	b := columnar.NewBuilder(mem, child.DataType())
	defer b.Release()
	for row := range s.Len() {
		if s.IsNull(row) {
			b.AppendNull()
			continue
		}
		if err := b.AppendFrom(child, row); err != nil {
			return columnar.Datum{}, err
		}
	}
	return wrap(b.NewArray()), nil
}
