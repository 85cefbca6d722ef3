package parquet

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

var errTooMuchText = errors.New("the texts of one batch are longer than 2 GiB together; read with a smaller batch size")

// vector builds one Arrow array: values of a fixed width, or texts, or dictionary
// codes. Values are first appended densely, then spread over their slots.
type vector struct {
	mem    memory.Allocator
	typ    arrow.DataType // of the values
	width  int            // bytes of a value in buf; 0: buf holds offsets, data the bytes
	codes  bool           // buf holds int32 codes of a dictionary
	n      int            // slots
	nulls  int
	buf    *memory.Buffer
	data   *memory.Buffer
	used   int            // bytes of data
	valid  *memory.Buffer // bitmap; nil while nothing is null
	vcap   int            // slots valid has room for
	text   bool           // values must be UTF-8
	scrap  []byte         // booleans on their way
	scrap2 []byte         // values on their way to a wider type
	lookup []int32        // codes on their way
}

// reset prepares for a new array of about rows slots.
func (v *vector) reset(rows int) {
	v.n, v.nulls, v.used, v.codes = 0, 0, 0, false
	v.buf = memory.NewResizableBuffer(v.mem)
	if v.width > 0 {
		v.buf.ResizeNoShrink(rows * v.width)
		return
	}
	v.buf.ResizeNoShrink((rows + 1) * 4)
	v.data = memory.NewResizableBuffer(v.mem)
}

// release gives back what an unfinished array holds.
func (v *vector) release() {
	for _, b := range []*memory.Buffer{v.buf, v.data, v.valid} {
		if b != nil {
			b.Release()
		}
	}
	v.buf, v.data, v.valid = nil, nil, nil
}

// grow makes room for k more slots.
func (v *vector) grow(k int) {
	need := (v.n + k) * v.width
	if v.width == 0 || v.codes {
		need = (v.n + k + 1) * 4
	}
	if need > v.buf.Len() {
		v.buf.ResizeNoShrink(max(need, v.buf.Len()*2))
	}
}

// fixed is the room for k more values of fixed width.
func (v *vector) fixed(k int) []byte {
	v.grow(k)
	return v.buf.Bytes()[v.n*v.width : (v.n+k)*v.width]
}

// codeRoom is the room for k more codes.
func (v *vector) codeRoom(k int) []int32 {
	v.grow(k)
	return arrow.Int32Traits.CastFromBytes(v.buf.Bytes())[v.n : v.n+k]
}

// ends is the room for the ends of k more texts, after the end of the last one.
func (v *vector) ends(k int) []int32 {
	v.grow(k)
	all := arrow.Int32Traits.CastFromBytes(v.buf.Bytes())
	if v.n == 0 {
		all[0] = 0
	}
	return all[v.n : v.n+k+1]
}

// bytes is the room for size more bytes of text.
func (v *vector) bytes(size int) ([]byte, error) {
	need := v.used + size
	if need > math.MaxInt32 {
		return nil, errTooMuchText
	}
	// Copies of short texts write whole words, so a little more is needed.
	if need+16 > v.data.Len() {
		v.data.ResizeNoShrink(max(need+16, v.data.Len()*2))
	}
	return v.data.Bytes()[v.used : need+16], nil
}

// spread moves the nn values appended densely at slot n to the slots whose level in
// def is full, and makes all slots of def part of the array.
func (v *vector) spread(def []byte, full byte, nn int) {
	k := len(def)
	switch {
	case nn == k:
	case v.codes:
		spreadWords(v.codeRoom(k), def, full, nn)
	case v.width == 0:
		spreadEnds(v.ends(k), def, full, nn)
	case v.width == 8:
		spreadWords(arrow.Int64Traits.CastFromBytes(v.fixed(k)), def, full, nn)
	case v.width == 4:
		spreadWords(arrow.Int32Traits.CastFromBytes(v.fixed(k)), def, full, nn)
	case v.width == 2:
		spreadWords(arrow.Int16Traits.CastFromBytes(v.fixed(k)), def, full, nn)
	case v.width == 1:
		spreadWords(v.fixed(k), def, full, nn)
	default:
		spreadWords(arrow.Decimal128Traits.CastFromBytes(v.fixed(k)), def, full, nn)
	}
	if nn < k {
		v.marks(def, full, nn)
	} else if v.valid != nil {
		v.marksAll(k)
	}
	v.n += k
	v.nulls += k - nn
}

// spreadWords works backwards in place: slot i gets the last value at or before it,
// which is its own if it has one. A null slot's value means nothing.
func spreadWords[T any](slots []T, def []byte, full byte, nn int) {
	j := nn - 1
	i := len(def) - 1
	for ; i >= 0 && j >= 0; i-- {
		slots[i] = slots[j]
		if def[i] == full {
			j--
		}
	}
	if i >= 0 {
		clear(slots[:i+1])
	}
}

// spreadEnds does the same for the ends of texts; ends[0] is where the first begins.
func spreadEnds(ends []int32, def []byte, full byte, nn int) {
	j := nn
	for i := len(def); i > 0; i-- {
		ends[i] = ends[j]
		if def[i-1] == full {
			j--
		}
	}
}

// validRoom makes the bitmap cover k more slots; those so far are valid.
func (v *vector) validRoom(k int) []byte {
	need := v.n + k
	if v.valid == nil {
		v.valid = memory.NewResizableBuffer(v.mem)
		v.valid.ResizeNoShrink((max(need, v.vcap) + 7) / 8)
		b := v.valid.Bytes()
		for i := range v.n / 8 {
			b[i] = 0xff
		}
		if tail := v.n & 7; tail != 0 {
			b[v.n/8] = 1<<tail - 1
		}
		return b
	}
	if (need+7)/8 > v.valid.Len() {
		v.valid.ResizeNoShrink(max((need+7)/8, v.valid.Len()*2))
	}
	return v.valid.Bytes()
}

// marks writes the validity of the slots of def, nn of which are valid.
func (v *vector) marks(def []byte, full byte, nn int) {
	bitmap := v.validRoom(len(def))
	at, i := v.n, 0
	if nn == 0 {
		setRange(bitmap, at, len(def), false)
		return
	}
	for ; i < len(def) && at&7 != 0; i, at = i+1, at+1 {
		putBit(bitmap, at, def[i] == full)
	}
	for ; i+8 <= len(def); i, at = i+8, at+8 {
		bitmap[at>>3] = ^gatherDiffering(binary.LittleEndian.Uint64(def[i:]), full)
	}
	for ; i < len(def); i, at = i+1, at+1 {
		putBit(bitmap, at, def[i] == full)
	}
}

func (v *vector) marksAll(k int) { setRange(v.validRoom(k), v.n, k, true) }

// appendNulls adds k null slots.
func (v *vector) appendNulls(k int) {
	switch {
	case v.codes:
		clear(v.codeRoom(k))
	case v.width == 0:
		ends := v.ends(k)
		for i := range k {
			ends[i+1] = ends[0]
		}
	default:
		clear(v.fixed(k))
	}
	setRange(v.validRoom(k), v.n, k, false)
	v.n += k
	v.nulls += k
}

func putBit(bitmap []byte, i int, set bool) {
	mask := byte(1) << (i & 7)
	if set {
		bitmap[i>>3] |= mask
	} else {
		bitmap[i>>3] &^= mask
	}
}

func setRange(bitmap []byte, at, k int, set bool) {
	end := at + k
	for ; at < end && at&7 != 0; at++ {
		putBit(bitmap, at, set)
	}
	fill := byte(0)
	if set {
		fill = 0xff
	}
	for ; at+8 <= end; at += 8 {
		bitmap[at>>3] = fill
	}
	for ; at < end; at++ {
		putBit(bitmap, at, set)
	}
}

// finish makes the array; dictionary is used if the vector holds codes.
func (v *vector) finish(dictionary arrow.Array) arrow.Array {
	if v.nulls == 0 && v.valid != nil {
		v.valid.Release()
		v.valid = nil
	}
	if v.width == 0 && v.n == 0 {
		v.ends(0)
	}
	var data arrow.ArrayData
	switch {
	case v.codes:
		dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: v.typ}
		data = array.NewDataWithDictionary(dt, v.n, []*memory.Buffer{v.valid, v.buf}, v.nulls, 0, dictionary.Data().(*array.Data))
	case v.typ.ID() == arrow.BOOL:
		v.packBools()
		data = array.NewData(v.typ, v.n, []*memory.Buffer{v.valid, v.buf}, nil, v.nulls, 0)
	case v.width == 0:
		data = array.NewData(v.typ, v.n, []*memory.Buffer{v.valid, v.buf, v.data}, nil, v.nulls, 0)
	default:
		data = array.NewData(v.typ, v.n, []*memory.Buffer{v.valid, v.buf}, nil, v.nulls, 0)
	}
	defer data.Release()
	v.vcap = max(v.vcap, v.n)
	v.release()
	return array.MakeFromData(data)
}

// packBools turns a byte a value into a bit a value, in place.
func (v *vector) packBools() {
	b := v.buf.Bytes()
	if pad := (v.n + 7) &^ 7; pad > len(b) {
		v.buf.ResizeNoShrink(pad)
		b = v.buf.Bytes()
	}
	clear(b[v.n : (v.n+7)&^7])
	for i := 0; i < v.n; i += 8 {
		b[i/8] = gatherDiffering(binary.LittleEndian.Uint64(b[i:]), 0)
	}
}

// validText says whether each text is UTF-8 by itself. ends[0] is where the first
// begins in data.
func validText(data []byte, ends []int32) bool {
	all := data[ends[0]:ends[len(ends)-1]]
	if isASCII(all) {
		return true
	}
	if !utf8.Valid(all) {
		return false
	}
	// Together they are valid; none may begin inside a character.
	for i, at := range ends[:len(ends)-1] {
		if at < ends[i+1] && !utf8.RuneStart(data[at]) {
			return false
		}
	}
	return true
}

func isASCII(b []byte) bool {
	i, bits := 0, uint64(0)
	for ; i+8 <= len(b); i += 8 {
		bits |= binary.LittleEndian.Uint64(b[i:])
	}
	for ; i < len(b); i++ {
		bits |= uint64(b[i])
	}
	return bits&0x8080808080808080 == 0
}
