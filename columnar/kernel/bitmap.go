package kernel

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// newBitmap allocates a bitmap of n rows, undefined in content.
func newBitmap(mem memory.Allocator, n int) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Resize((n + 7) / 8)
	return b
}

// word reads up to 64 bits of a bitmap that has n bits from offset on, beginning at
// its bit i; bits beyond n are zero.
func word(raw []byte, offset, i, n int) uint64 {
	count := min(n-i, 64)
	at := offset + i
	shift := at & 7
	var w uint64
	if b := raw[at>>3:]; len(b) >= 9 {
		w = binary.LittleEndian.Uint64(b)>>shift | uint64(b[8])<<1<<(63-shift)
	} else {
		for k, c := range b {
			if k < 8 {
				w |= uint64(c) << (8 * k)
			}
		}
		w >>= shift
	}
	if count < 64 {
		w &= 1<<count - 1
	}
	return w
}

// putWord writes up to 64 bits at bit i, a multiple of 64, of a bitmap of n bits
// that begins at bit 0.
func putWord(raw []byte, i, n int, w uint64) {
	b := raw[i>>3:]
	if n-i >= 64 {
		binary.LittleEndian.PutUint64(b, w)
		return
	}
	for k := range (n - i + 7) / 8 {
		b[k] = byte(w >> (8 * k))
	}
}

// validity is the raw validity bitmap of a and where it begins; raw is nil if no
// value of a is null.
func validity(a arrow.Array) (raw []byte, offset int) {
	if a.NullN() == 0 {
		return nil, 0
	}
	if a.DataType().ID() == arrow.NULL {
		return make([]byte, (a.Len()+7)/8), 0
	}
	return a.NullBitmapBytes(), a.Data().Offset()
}

// AndValidity is the bitmap of the rows where no argument is null, and how many are
// not in it; nil if there are none. A constant counts for every row.
func AndValidity(mem memory.Allocator, rows int, args ...columnar.Datum) (*memory.Buffer, int) {
	var out *memory.Buffer
	for _, d := range args {
		raw, offset := validity(d.Array())
		if raw == nil {
			continue
		}
		if d.IsConstant() {
			if out == nil {
				out = newBitmap(mem, rows)
			}
			clear(out.Bytes())
			return out, rows
		}
		if out == nil {
			out = newBitmap(mem, rows)
			for i := 0; i < rows; i += 64 {
				putWord(out.Bytes(), i, rows, word(raw, offset, i, rows))
			}
			continue
		}
		for i := 0; i < rows; i += 64 {
			putWord(out.Bytes(), i, rows, word(raw, offset, i, rows)&word(out.Bytes(), 0, i, rows))
		}
	}
	if out == nil {
		return nil, 0
	}
	nulls := rows - bitutil.CountSetBits(out.Bytes(), 0, rows)
	if nulls == 0 {
		out.Release()
		return nil, 0
	}
	return out, nulls
}

// MarkTrue makes b the rows of the BOOLEAN d that are true: neither false nor null.
func MarkTrue(b *columnar.Bitmap, d columnar.Datum, rows int) {
	b.Reset(rows)
	a := d.Array()
	if a.DataType().ID() == arrow.NULL {
		return
	}
	if d.IsConstant() {
		if a.IsValid(0) && bitAt(a.Data().Buffers()[1].Bytes(), a.Data().Offset()) {
			b.SetAll()
		}
		return
	}
	words := b.Words()
	if rows == 0 {
		return
	}
	values, offset := a.Data().Buffers()[1].Bytes(), a.Data().Offset()
	for k := range words {
		words[k] = word(values, offset, k*64, rows)
	}
	if raw, offset := validity(a); raw != nil {
		for k := range words {
			words[k] &= word(raw, offset, k*64, rows)
		}
	}
}

// MarkValid makes b the rows of d that are not null.
func MarkValid(b *columnar.Bitmap, d columnar.Datum, rows int) {
	b.Reset(rows)
	a := d.Array()
	if d.IsConstant() {
		if a.IsValid(0) && a.DataType().ID() != arrow.NULL {
			b.SetAll()
		}
		return
	}
	raw, offset := validity(a)
	if raw == nil {
		b.SetAll()
		return
	}
	words := b.Words()
	for k := range words {
		words[k] = word(raw, offset, k*64, rows)
	}
}

// Booleans is the BOOLEAN column of n rows whose values are marked in b, none null.
// The caller releases it.
func Booleans(mem memory.Allocator, b *columnar.Bitmap, n int) arrow.Array {
	out := newBitmap(mem, n)
	for k, w := range b.Words() {
		putWord(out.Bytes(), k*64, n, w)
	}
	return Wrap(columnar.Boolean, n, 0, nil, out)
}

func bitAt(raw []byte, i int) bool { return raw[i>>3]>>(i&7)&1 != 0 }

// SelectTrue appends to rows the numbers of the rows where the BOOLEAN column a is
// true: the selection vector of a filter. Words that are all the
// same are skipped or filled.
func SelectTrue(rows []int32, a arrow.Array) []int32 {
	n := a.Len()
	if n == 0 || a.DataType().ID() == arrow.NULL {
		return rows
	}
	at := len(rows)
	if cap(rows) < at+n {
		rows = append(make([]int32, 0, at+n), rows...)
	}
	rows = rows[:at+n]
	values, offset := a.Data().Buffers()[1].Bytes(), a.Data().Offset()
	valid, validOffset := validity(a)
	for i := 0; i < n; i += 64 {
		w := word(values, offset, i, n)
		if valid != nil {
			w &= word(valid, validOffset, i, n)
		}
		at = selectWord(rows, at, int32(i), w)
	}
	return rows[:at]
}

// selectWord writes the numbers of the bits of w, base added, from at on. The
// loop runs once a set bit, without a branch that depends on the data.
func selectWord(rows []int32, at int, base int32, w uint64) int {
	switch count := bits.OnesCount64(w); {
	case count == 0:
	case count == 64:
		out := rows[at : at+64]
		for k := range out {
			out[k] = base + int32(k)
		}
		at += 64
	default:
		for ; w != 0; w &= w - 1 {
			rows[at] = base + int32(bits.TrailingZeros64(w))
			at++
		}
	}
	return at
}

// countBits counts the set bits among the first n of raw.
func countBits(raw []byte, n int) int { return bitutil.CountSetBits(raw, 0, n) }
