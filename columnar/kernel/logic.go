package kernel

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// truth is two bitmaps a word at a time: where a BOOLEAN is true, where it is false.
type truth struct {
	d             columnar.Datum
	values, valid []byte
	vo, no        int
	null          bool // of type NULL
}

func truthOf(d columnar.Datum) truth {
	t := truth{d: d}
	a := d.Array()
	if a.DataType().ID() == arrow.NULL {
		t.null = true
		return t
	}
	if a.Len() > 0 {
		t.values, t.vo = a.Data().Buffers()[1].Bytes(), a.Data().Offset()
	}
	t.valid, t.no = validity(a)
	return t
}

func (t *truth) at(i, n int) (isTrue, isFalse uint64) {
	all := ^uint64(0)
	switch {
	case t.null:
		return 0, 0
	case t.d.IsConstant() && t.valid != nil:
		return 0, 0
	case t.d.IsConstant() && bitAt(t.values, t.vo):
		return all, 0
	case t.d.IsConstant():
		return 0, all
	}
	v := word(t.values, t.vo, i, n)
	if t.valid == nil {
		return v, ^v
	}
	valid := word(t.valid, t.no, i, n)
	return v & valid, ^v & valid
}

// And is the three-valued a AND b: false if either is false, else null if either is
// null. Two constants give a constant.
func And(mem memory.Allocator, a, b columnar.Datum, rows int) columnar.Datum {
	return combine(mem, a, b, rows, func(at, af, bt, bf uint64) (uint64, uint64) { return at & bt, af | bf })
}

// Or is the three-valued a OR b: true if either is true, else null if either is
// null. Two constants give a constant.
func Or(mem memory.Allocator, a, b columnar.Datum, rows int) columnar.Datum {
	return combine(mem, a, b, rows, func(at, af, bt, bf uint64) (uint64, uint64) { return at | bt, af & bf })
}

// Xor is true where exactly one of a and b is true, null where either is null.
func Xor(mem memory.Allocator, a, b columnar.Datum, rows int) columnar.Datum {
	return combine(mem, a, b, rows, func(at, af, bt, bf uint64) (uint64, uint64) {
		return at&bf | af&bt, at&bt | af&bf
	})
}

// Not is the three-valued NOT a.
func Not(mem memory.Allocator, a columnar.Datum, rows int) columnar.Datum {
	return combine(mem, a, a, rows, func(at, af, _, _ uint64) (uint64, uint64) { return af, at })
}

// combine calls op once for 64 rows.
func combine(mem memory.Allocator, a, b columnar.Datum, rows int, op func(at, af, bt, bf uint64) (isTrue, isFalse uint64)) columnar.Datum {
	constant := a.IsConstant() && b.IsConstant()
	if constant {
		rows = 1
	}
	x, y := truthOf(a), truthOf(b)
	values, valid := newBitmap(mem, rows), newBitmap(mem, rows)
	nulls := uint64(0)
	for i := 0; i < rows; i += 64 {
		at, af := x.at(i, rows)
		bt, bf := y.at(i, rows)
		t, f := op(at, af, bt, bf)
		putWord(values.Bytes(), i, rows, t)
		putWord(valid.Bytes(), i, rows, t|f)
		known := t | f
		if rows-i < 64 {
			known |= ^uint64(0) << (rows - i)
		}
		nulls |= ^known
	}
	out := finishBitmaps(rows, values, valid, nulls != 0)
	if constant {
		return columnar.ConstantDatum(out)
	}
	return columnar.ColumnDatum(out)
}

// finishBitmaps makes a BOOLEAN column, dropping a validity without nulls.
func finishBitmaps(rows int, values, valid *memory.Buffer, hasNulls bool) arrow.Array {
	if !hasNulls {
		valid.Release()
		return Wrap(columnar.Boolean, rows, 0, nil, values)
	}
	return Wrap(columnar.Boolean, rows, rows-countBits(valid.Bytes(), rows), valid, values)
}

// IsNull is whether each row of a is null, as BOOLEAN without nulls; with not set,
// whether it is not.
func IsNull(mem memory.Allocator, a columnar.Datum, rows int, not bool) columnar.Datum {
	if a.IsConstant() {
		rows = 1
	}
	var b columnar.Bitmap
	MarkValid(&b, a, rows)
	if !not {
		for i, w := range b.Words() {
			b.Words()[i] = ^w
		}
	}
	out := Booleans(mem, &b, rows)
	if a.IsConstant() {
		return columnar.ConstantDatum(out)
	}
	return columnar.ColumnDatum(out)
}
