package eval

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// onDictionary says whether n is better computed for the values of its column's
// dictionary than for the rows.
func (f *frame) onDictionary(n *node) bool {
	if n.dictionary < 0 || n.op == opRef || f.dict >= 0 {
		return false
	}
	d, ok := f.columns[n.dictionary].(*array.Dictionary)
	if !ok || d.Dictionary().Len() > f.rows || d.Dictionary().Len() == 0 {
		return false
	}
	return n.propagates || d.NullN() == 0 && d.Dictionary().NullN() == 0
}

// evalDictionary computes node i once a dictionary value and hands the results to
// the rows by code. With encoded, text may stay encoded. The result is the caller's.
func (f *frame) evalDictionary(i int, set *rowSet, encoded bool) (columnar.Datum, error) {
	n := &f.p.nodes[i]
	column := f.columns[n.dictionary].(*array.Dictionary)
	sub := &frame{p: f.p, env: f.env, call: f.call, columns: f.columns, memo: make([]memo, len(f.memo))}
	sub.dict, sub.values, sub.rows = n.dictionary, column.Dictionary(), column.Dictionary().Len()
	sub.wide = f.wide
	defer func() {
		f.wide = sub.wide
		sub.release()
	}()
	var used *rowSet
	if n.fallible {
		used = usedCodes(column, set, sub.rows)
		if used.count == 0 {
			return columnar.NullConstant(f.env.Mem, n.dt), nil
		}
	}
	d, err := sub.eval(i, used)
	if err != nil {
		return columnar.Datum{}, err
	}
	if d.IsConstant() && (column.NullN() == 0 || d.IsNullConstant()) {
		return d.Retain(), nil
	}
	values, err := sub.broadcast(d)
	if err != nil {
		return columnar.Datum{}, err
	}
	defer values.Release()
	return f.byCode(column, values, encoded)
}

// byCode gives each row the value of its code.
func (f *frame) byCode(column *array.Dictionary, values arrow.Array, encoded bool) (columnar.Datum, error) {
	text := values.DataType().ID() == arrow.STRING || values.DataType().ID() == arrow.BINARY
	if encoded && text && values.NullN() == 0 {
		dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: values.DataType()}
		return columnar.ColumnDatum(array.NewDictionaryArray(dt, column.Indices(), values)), nil
	}
	codes := columnar.DictionaryCodes(column)
	if column.NullN() > 0 {
		masked := make([]int32, len(codes))
		for i, c := range codes {
			masked[i] = c
			if column.IsNull(i) {
				masked[i] = -1
			}
		}
		codes = masked
	}
	if err := f.reserveTaken(values, codes); err != nil {
		return columnar.Datum{}, err
	}
	out, err := kernel.Take(f.env.Mem, values, codes)
	if err != nil {
		return columnar.Datum{}, err
	}
	return columnar.ColumnDatum(out), nil
}

// usedCodes is the dictionary values that rows of set have.
func usedCodes(column *array.Dictionary, set *rowSet, values int) *rowSet {
	bits := columnar.NewBitmap(values)
	active := set.bitmap()
	nulls := column.NullN() > 0
	for i, c := range columnar.DictionaryCodes(column) {
		if active.Get(i) && (!nulls || column.IsValid(i)) {
			bits.Set(int(c))
		}
	}
	return &rowSet{bits: bits, count: bits.Count()}
}
