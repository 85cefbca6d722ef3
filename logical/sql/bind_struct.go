package sql

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

// Making a struct and taking a field out of one are functions whose result depends
// on names, not on argument types alone; so each is made for its use and is not in
// the registry.

const structName = "struct"

func itoa(n int) string { return strconv.Itoa(n) }

// structOf is a struct of values under the given names.
func structOf(names []string, args []expr.Expr) expr.Expr {
	fields := make([]arrow.Field, len(args))
	for i, a := range args {
		fields[i] = columnar.Field(names[i], a.Type())
	}
	dt := arrow.StructOf(fields...)
	result := func([]arrow.DataType) (arrow.DataType, error) { return dt, nil }
	f := &function.Scalar{Name: structName, Overloads: []function.Overload{{
		NullSafe: true,
		Result:   result,
		Bind: func([]arrow.DataType, []arrow.Array) (function.Kernel, error) {
			return func(env *function.Env, args []columnar.Datum, rows int, _ *columnar.Bitmap) (columnar.Datum, error) {
				return makeStruct(env.Mem, dt, args, rows), nil
			}, nil
		},
	}}}
	sig := &function.Signature{Overload: &f.Overloads[0], Args: expr.Types(args), Result: dt}
	return &expr.Call{Func: f, Signature: sig, Args: args}
}

func makeStruct(mem memory.Allocator, dt *arrow.StructType, args []columnar.Datum, rows int) columnar.Datum {
	children := make([]arrow.ArrayData, len(args))
	for i, a := range args {
		column := columnar.Broadcast(mem, a, rows)
		defer column.Release()
		children[i] = column.Data()
	}
	data := array.NewData(dt, rows, []*memory.Buffer{nil}, children, 0, 0)
	defer data.Release()
	return columnar.ColumnDatum(array.NewStructData(data))
}

// fieldOf is field i of a struct; of a struct just made, the value it was made of.
func fieldOf(x expr.Expr, i int) expr.Expr {
	if c, ok := x.(*expr.Call); ok && c.Func.Name == structName {
		return c.Args[i]
	}
	field := x.Type().(*arrow.StructType).Field(i)
	f := &function.Scalar{Name: "field_" + field.Name, Overloads: []function.Overload{{
		Result: func([]arrow.DataType) (arrow.DataType, error) { return field.Type, nil },
		Bind: func([]arrow.DataType, []arrow.Array) (function.Kernel, error) {
			return func(env *function.Env, args []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
				return takeField(env.Mem, args[0], i)
			}, nil
		},
	}}}
	sig := &function.Signature{Overload: &f.Overloads[0], Args: []arrow.DataType{x.Type()}, Result: field.Type}
	return &expr.Call{Func: f, Signature: sig, Args: []expr.Expr{x}}
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
