package keyenc

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
)

// Order says how one column of a key sorts. The zero Order is ascending, nulls
// first.
type Order struct {
	Desc      bool
	NullsLast bool
	// Exact keeps what equality ignores: the sign of zero, the bits of NaN, the
	// units of an interval, the order of map entries. Equal values may then have different bytes.
	Exact bool
}

// Keys holds encoded keys one after the other: key i is Data[Offsets[i]:Offsets[i+1]].
// The zero Keys is empty.
type Keys struct {
	Offsets []int // one more than there are keys, beginning with 0; nil when empty
	Data    []byte
}

// Len is the number of keys.
func (k *Keys) Len() int { return max(len(k.Offsets)-1, 0) }

// Key is key i, borrowed until the next Encode or Reset.
func (k *Keys) Key(i int) []byte { return k.Data[k.Offsets[i]:k.Offsets[i+1]] }

// Reset empties k and keeps its memory.
func (k *Keys) Reset() {
	k.Offsets = k.Offsets[:0]
	k.Data = k.Data[:0]
}

// Append adds one encoded key.
func (k *Keys) Append(key []byte) {
	if len(k.Offsets) == 0 {
		k.Offsets = append(k.Offsets, 0)
	}
	k.Data = append(k.Data, key...)
	k.Offsets = append(k.Offsets, len(k.Data))
}

// Prefix is the first eight bytes of key as an int64: if Prefix(a) < Prefix(b) then
// a sorts before b. Shorter keys count as filled with zeros.
func Prefix(key []byte) int64 {
	var b [8]byte
	copy(b[:], key)
	return int64(binary.BigEndian.Uint64(b[:]) ^ 1<<63)
}

// Markers before each value. Inside nested values nulls are first.
const (
	nullFirst byte = 0
	present   byte = 1
	nullLast  byte = 2
	listEnd   byte = 0 // after the last element; each element begins with listMore
	listMore  byte = 1
)

// Codec encodes and decodes keys of fixed column types. It holds scratch memory for
// encoding: one goroutine encodes at a time.
type Codec struct {
	types  []arrow.DataType
	orders []Order
	ends   []int    // while encoding: the size of each row's key, then the place to write on
	nested [][]byte // per column: its nested values, encoded by measure
}

// New makes a Codec for columns of the given types. orders may be nil: all ascending,
// nulls first. A type that cannot be a key is an error.
func New(types []arrow.DataType, orders []Order) (*Codec, error) {
	if orders == nil {
		orders = make([]Order, len(types))
	}
	if len(orders) != len(types) {
		return nil, fmt.Errorf("bug: %d key columns have %d orders", len(types), len(orders))
	}
	for _, dt := range types {
		if !columnar.Supported(dt) {
			return nil, fmt.Errorf("a column of type %s cannot be a key", columnar.TypeName(dt))
		}
	}
	return &Codec{types: types, orders: orders}, nil
}

// Types are the column types the Codec was made for. They are borrowed.
func (c *Codec) Types() []arrow.DataType { return c.types }

// Encode appends one key per row to keys. Columns have the types of the Codec; text
// may be dictionary-encoded. All columns have the same length.
func (c *Codec) Encode(columns []arrow.Array, keys *Keys) error {
	if err := c.check(columns); err != nil {
		return err
	}
	if len(columns) == 0 {
		return nil
	}
	n := columns[0].Len()
	writers := make([]writer, len(columns))
	c.ends = grow(c.ends, n)
	clear(c.ends)
	c.nested = grow(c.nested, len(columns))
	for i, a := range columns {
		writers[i] = newWriter(a, c.orders[i])
		writers[i].cells = c.nested[i][:0]
		writers[i].measure(c.ends)
		c.nested[i] = writers[i].cells
	}
	base := len(keys.Data)
	if len(keys.Offsets) == 0 {
		keys.Offsets = append(keys.Offsets, 0)
	}
	total := base
	for i, size := range c.ends {
		c.ends[i] = total // from here on the place where row i goes on
		total += size
		keys.Offsets = append(keys.Offsets, total)
	}
	keys.Data = grow(keys.Data, total)
	for i := range writers {
		writers[i].write(keys.Data, c.ends)
	}
	return nil
}

func (c *Codec) check(columns []arrow.Array) error {
	if len(columns) != len(c.types) {
		return fmt.Errorf("bug: %d key columns given, %d expected", len(columns), len(c.types))
	}
	for i, a := range columns {
		dt := a.DataType()
		if d, ok := dt.(*arrow.DictionaryType); ok {
			dt = d.ValueType
		}
		if !arrow.TypeEqual(dt, c.types[i]) {
			return fmt.Errorf("bug: key column %d is %s, not %s", i, dt, c.types[i])
		}
		if a.Len() != columns[0].Len() {
			return fmt.Errorf("bug: key columns of %d and %d rows", columns[0].Len(), a.Len())
		}
	}
	return nil
}

// grow returns s with length n, keeping its content.
func grow[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	g := make([]T, n, max(n, 2*cap(s)))
	copy(g, s)
	return g
}

// writer encodes one column of one batch.
type writer struct {
	array arrow.Array
	order Order
	width int // bytes of a value; 0 if it varies
	dict  *array.Dictionary
	cells []byte // nested values, encoded by measure, one after the other
	ends  []int  // where they end
}

func newWriter(a arrow.Array, o Order) writer {
	w := writer{array: a, order: o, width: fixedWidth(a.DataType())}
	if d, ok := a.(*array.Dictionary); ok {
		w.dict = d
	}
	return w
}

// fixedWidth is the number of bytes every value of dt takes, or 0.
func fixedWidth(dt arrow.DataType) int {
	switch dt.ID() {
	case arrow.BOOL, arrow.INT8:
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
	return 0
}

// measure adds the encoded size of each row to sizes.
func (w *writer) measure(sizes []int) {
	switch {
	case w.width > 0 && w.array.NullN() == 0:
		for i := range sizes {
			sizes[i] += 1 + w.width
		}
	case w.width > 0:
		for i := range sizes {
			if w.array.IsValid(i) {
				sizes[i] += 1 + w.width
			} else {
				sizes[i]++
			}
		}
	case w.array.DataType().ID() == arrow.NULL:
		for i := range sizes {
			sizes[i]++
		}
	case columnar.IsNested(w.array.DataType()):
		w.ends = make([]int, len(sizes))
		for i := range sizes {
			sizes[i]++
			if w.array.IsValid(i) {
				from := len(w.cells)
				w.cells = appendValue(w.cells, w.array, i, w.order.Exact)
				sizes[i] += len(w.cells) - from
			}
			w.ends[i] = len(w.cells)
		}
	default:
		for i := range sizes {
			sizes[i]++
			if v, ok := w.text(i); ok {
				sizes[i] += textSize(v)
			}
		}
	}
}

// text is the bytes of row i of a VARCHAR or BINARY column; ok is false for null.
func (w *writer) text(i int) (v []byte, ok bool) {
	a := w.array
	if w.dict != nil {
		if w.dict.IsNull(i) {
			return nil, false
		}
		i = w.dict.GetValueIndex(i)
		a = w.dict.Dictionary()
	}
	if a.IsNull(i) {
		return nil, false
	}
	return bytesOf(a, i), true
}

// write puts each row's bytes at at[row] and moves at[row] past them.
func (w *writer) write(dst []byte, at []int) {
	switch {
	case w.width == 8:
		w.writeWords(dst, at)
	case w.width > 0:
		for i, p := range at {
			if !w.mark(dst, at, i, w.array.IsValid(i)) {
				continue
			}
			putFixed(dst[p+1:p+1+w.width], w.array, i, w.order.Exact)
			w.finish(dst, at, i, p+1+w.width)
		}
	case w.array.DataType().ID() == arrow.NULL:
		for i := range at {
			w.mark(dst, at, i, false)
		}
	case columnar.IsNested(w.array.DataType()):
		from := 0
		for i, p := range at {
			if w.mark(dst, at, i, w.array.IsValid(i)) {
				w.finish(dst, at, i, p+1+copy(dst[p+1:], w.cells[from:w.ends[i]]))
			}
			from = w.ends[i]
		}
	default:
		for i, p := range at {
			v, ok := w.text(i)
			if w.mark(dst, at, i, ok) {
				w.finish(dst, at, i, p+1+putText(dst[p+1:], v))
			}
		}
	}
}

// mark writes the marker of row i and moves at[i] past it; valid is returned.
func (w *writer) mark(dst []byte, at []int, i int, valid bool) bool {
	marker := present
	if !valid {
		marker = nullFirst
		if w.order.NullsLast {
			marker = nullLast
		}
	}
	dst[at[i]] = marker
	at[i]++
	return valid
}

// finish inverts the value bytes of row i, which end at end, if the order descends.
func (w *writer) finish(dst []byte, at []int, i, end int) {
	if w.order.Desc {
		invert(dst[at[i]:end])
	}
	at[i] = end
}

// writeWords is write for eight-byte values, the commonest keys.
func (w *writer) writeWords(dst []byte, at []int) {
	d := w.array.Data()
	if len(at) == 0 {
		return
	}
	values := arrow.Uint64Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+d.Len()]
	flip := uint64(1) << 63
	if w.order.Desc {
		flip = ^flip
	}
	float := w.array.DataType().ID() == arrow.FLOAT64
	nulls := w.array.NullN() > 0
	for i, v := range values {
		if nulls && w.array.IsNull(i) {
			w.mark(dst, at, i, false)
			continue
		}
		if float {
			v = float64Bits(math.Float64frombits(v), w.order.Exact) ^ 1<<63
		}
		p := at[i]
		dst[p] = present
		binary.BigEndian.PutUint64(dst[p+1:], v^flip)
		at[i] = p + 9
	}
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}
