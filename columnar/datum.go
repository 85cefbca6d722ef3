package columnar

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Datum is a column, or one value standing for a column of any length. Either way
// it holds one reference to an Arrow array; a constant's array has length one.
// The zero Datum holds nothing and may be released.
type Datum struct {
	array    arrow.Array
	constant bool
}

// ColumnDatum wraps a column. It takes over the caller's reference.
func ColumnDatum(a arrow.Array) Datum { return Datum{array: a} }

// ConstantDatum wraps one value, an array of length one. It takes over the
// caller's reference.
func ConstantDatum(a arrow.Array) Datum {
	if a.Len() != 1 {
		panic("bug: a constant is an array of one value")
	}
	return Datum{array: a, constant: true}
}

// Array is the column, or the one-value array of a constant. It is borrowed.
func (d Datum) Array() arrow.Array { return d.array }

// IsConstant says whether d is one value standing for a column.
func (d Datum) IsConstant() bool { return d.constant }

// IsNullConstant says whether d is the constant NULL.
func (d Datum) IsNullConstant() bool { return d.constant && IsNull(d.array, 0) }

// Type is the type of the values; a dictionary type if the column is encoded.
func (d Datum) Type() arrow.DataType { return d.array.DataType() }

// Retain adds a reference and returns d.
func (d Datum) Retain() Datum {
	if d.array != nil {
		d.array.Retain()
	}
	return d
}

// Release gives back the reference d holds.
func (d Datum) Release() {
	if d.array != nil {
		d.array.Release()
	}
}

// Releases collects what a function has built so far, so that an error path can
// give it back with one deferred call. Keep disarms it.
type Releases struct{ list []interface{ Release() } }

// Add registers r for Release and returns nothing; r may not be nil.
func (r *Releases) Add(x interface{ Release() }) { r.list = append(r.list, x) }

// Keep forgets everything registered: ownership has left the function.
func (r *Releases) Keep() { r.list = nil }

// Release releases everything registered.
func (r *Releases) Release() {
	for _, x := range r.list {
		x.Release()
	}
	r.list = nil
}

// PlainColumn returns a with dictionary encoding removed: a itself with one more
// reference if it is plain already. The caller releases the result.
func PlainColumn(mem memory.Allocator, a arrow.Array) arrow.Array {
	d, ok := a.(*array.Dictionary)
	if !ok {
		a.Retain()
		return a
	}
	return decodeDictionary(mem, d)
}

// Plain returns b with every dictionary-encoded column decoded: b itself with one
// more reference if there is none. The caller releases the result.
func Plain(mem memory.Allocator, b arrow.RecordBatch) arrow.RecordBatch {
	encoded := false
	for _, c := range b.Columns() {
		if c.DataType().ID() == arrow.DICTIONARY {
			encoded = true
		}
	}
	if !encoded {
		b.Retain()
		return b
	}
	columns := make([]arrow.Array, b.NumCols())
	fields := make([]arrow.Field, b.NumCols())
	for i, c := range b.Columns() {
		columns[i] = PlainColumn(mem, c)
		fields[i] = b.Schema().Field(i)
		fields[i].Type = columns[i].DataType()
	}
	out := array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows())
	for _, c := range columns {
		c.Release()
	}
	return out
}
