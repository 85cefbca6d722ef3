package group

import (
	"math"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

// column says where a key column lies in a packed row. For the key (VARCHAR, INTEGER,
// TIMESTAMP) the row has two words: the timestamp in word 0, the number of the text
// in the lower half of word 1, the integer in its upper half.
type column struct {
	dt    arrow.DataType
	width int  // bytes in the row: 1, 2, 4, 8 or 16
	word  int  // first word of the row
	shift uint // bits into the word, for widths below 8

	text  *textTable    // of a text or nested column: the row holds its number
	codec *keyenc.Codec // of a nested column: turns it into bytes
	keys  keyenc.Keys
	ids   []uint32 // numbers of the current batch

	src source
}

// source is a column of the current batch as raw memory; one slice is set.
type source struct {
	u8    []uint8
	u16   []uint16
	u32   []uint32
	u64   []uint64 // two a row for 16-byte values
	f32   []float32
	f64   []float64
	bools *array.Boolean
	nulls arrow.Array // set if some value is null
	dict  *array.Dictionary
}

// packedWidth is the number of bytes a value of dt takes in a row.
func packedWidth(dt arrow.DataType) int {
	switch dt.ID() {
	case arrow.BOOL, arrow.INT8, arrow.NULL:
		return 1
	case arrow.INT16:
		return 2
	case arrow.INT32, arrow.FLOAT32, arrow.DATE32:
		return 4
	case arrow.INT64, arrow.FLOAT64, arrow.TIME64, arrow.TIMESTAMP:
		return 8
	case arrow.DECIMAL128, arrow.INTERVAL_MONTH_DAY_NANO:
		return 16
	}
	return 4 // the number of a text
}

// layOut places the columns in a row, wide ones first so that none crosses a word,
// and returns them in key order with the number of words.
func layOut(types []arrow.DataType, opts Options) (columns []column, words int, err error) {
	columns = make([]column, len(types))
	order := make([]int, len(types))
	for i, dt := range types {
		order[i] = i
		c := column{dt: dt, width: packedWidth(dt)}
		if columnar.IsNested(dt) {
			if c.codec, err = keyenc.New([]arrow.DataType{dt}, nil); err != nil {
				return nil, 0, err
			}
		}
		if c.codec != nil || isText(dt) {
			c.text = newTextTable(Options{Budget: opts.Budget, Who: opts.Who, tagMask: opts.tagMask})
		}
		columns[i] = c
	}
	slices.SortStableFunc(order, func(a, b int) int { return columns[b].width - columns[a].width })
	at := 0 // bytes
	for _, i := range order {
		columns[i].word, columns[i].shift = at/8, uint(at%8)*8
		at += columns[i].width
	}
	return columns, (at + 7) / 8, nil
}

// raw is the values buffer of a fixed-width array as a slice of T, from its offset.
func raw[T any](a arrow.Array, perRow int) []T {
	if a.Len() == 0 {
		return nil
	}
	d := a.Data()
	b := d.Buffers()[1].Bytes()
	var zero T
	all := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
	return all[d.Offset()*perRow : (d.Offset()+d.Len())*perRow]
}

// open prepares the column for a batch. Text and nested columns are interned here.
func (c *column) open(a arrow.Array, insert bool) error {
	c.src = source{dict: dictionaryOf(a)}
	if a.NullN() > 0 || c.src.dict != nil && c.src.dict.Dictionary().NullN() > 0 || c.dt.ID() == arrow.NULL {
		c.src.nulls = a
	}
	switch {
	case c.text != nil:
		return c.openText(a, insert)
	case c.dt.ID() == arrow.NULL:
		return nil
	case c.dt.ID() == arrow.BOOL:
		c.src.bools = a.(*array.Boolean)
	case c.dt.ID() == arrow.FLOAT32:
		c.src.f32 = raw[float32](a, 1)
	case c.dt.ID() == arrow.FLOAT64:
		c.src.f64 = raw[float64](a, 1)
	case c.width == 1:
		c.src.u8 = raw[uint8](a, 1)
	case c.width == 2:
		c.src.u16 = raw[uint16](a, 1)
	case c.width == 4:
		c.src.u32 = raw[uint32](a, 1)
	case c.width == 8:
		c.src.u64 = raw[uint64](a, 1)
	default:
		c.src.u64 = raw[uint64](a, 2)
	}
	return nil
}

func (c *column) openText(a arrow.Array, insert bool) error {
	n := a.Len()
	c.ids = resized(c.ids, n)
	c.src.u32 = c.ids
	if c.codec == nil {
		return c.text.intern(a, c.ids, insert, false)
	}
	c.keys.Reset()
	if err := c.codec.Encode([]arrow.Array{a}, &c.keys); err != nil {
		return err
	}
	offsets := make([]int32, n+1)
	for i, o := range c.keys.Offsets {
		offsets[i] = int32(o)
	}
	return c.text.internTexts(texts{data: c.keys.Data, offsets: offsets}, c.ids, insert, false)
}

func (c *column) isNull(i int) bool {
	if c.src.nulls == nil {
		return false
	}
	if c.src.nulls.IsNull(i) || c.dt.ID() == arrow.NULL { // an Arrow null array has no bitmap
		return true
	}
	d := c.src.dict
	return d != nil && d.Dictionary().IsNull(d.GetValueIndex(i))
}

// pack adds rows lo to hi of the column to dst, which has stride words a row and is
// zero where this column goes.
func (c *column) pack(dst []uint64, stride, lo, hi int) {
	s := &c.src
	switch {
	case s.bools != nil:
		for i := lo; i < hi; i++ {
			if s.bools.Value(i) {
				dst[(i-lo)*stride+c.word] |= 1 << c.shift
			}
		}
	case s.f32 != nil:
		for i, v := range s.f32[lo:hi] {
			dst[i*stride+c.word] |= uint64(bits32(v)) << c.shift
		}
	case s.f64 != nil:
		for i, v := range s.f64[lo:hi] {
			dst[i*stride+c.word] = bits64(v)
		}
	case s.u8 != nil:
		packNarrow(dst, stride, c.word, c.shift, s.u8[lo:hi])
	case s.u16 != nil:
		packNarrow(dst, stride, c.word, c.shift, s.u16[lo:hi])
	case s.u32 != nil:
		packNarrow(dst, stride, c.word, c.shift, s.u32[lo:hi])
	case c.dt.ID() == arrow.INTERVAL_MONTH_DAY_NANO:
		for i := lo; i < hi; i++ {
			at := (i-lo)*stride + c.word
			dst[at], dst[at+1] = columnar.IntervalBits(s.u64[2*i], s.u64[2*i+1])
		}
	case c.width == 16:
		for i := lo; i < hi; i++ {
			at := (i-lo)*stride + c.word
			dst[at], dst[at+1] = s.u64[2*i], s.u64[2*i+1]
		}
	case s.u64 != nil:
		for i, v := range s.u64[lo:hi] {
			dst[i*stride+c.word] = v
		}
	}
}

func packNarrow[T uint8 | uint16 | uint32](dst []uint64, stride, word int, shift uint, src []T) {
	for i, v := range src {
		dst[i*stride+word] |= uint64(v) << (shift & 63)
	}
}

// bits64 is one pattern for all NaN and one for both zeros.
func bits64(v float64) uint64 {
	if v == 0 {
		return 0
	}
	if v != v {
		return 0x7FF8000000000000
	}
	return math.Float64bits(v)
}

func bits32(v float32) uint32 {
	if v == 0 {
		return 0
	}
	if v != v {
		return 0x7FC00000
	}
	return math.Float32bits(v)
}

// packNulls sets bit number of the nulls words of null rows and clears their values.
func (c *column) packNulls(dst, nulls []uint64, stride, number, lo, hi int) {
	keep := ^uint64(0)
	if c.width < 8 {
		keep = ^((1<<(8*c.width) - 1) << c.shift)
	} else {
		keep = 0
	}
	for i := lo; i < hi; i++ {
		if !c.isNull(i) {
			continue
		}
		nulls[i-lo] |= 1 << number
		at := (i-lo)*stride + c.word
		dst[at] &= keep
		if c.width == 16 {
			dst[at+1] = 0
		}
	}
}
