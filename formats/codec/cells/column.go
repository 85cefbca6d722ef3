package cells

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Column is an Arrow column being filled from cells. Its buffers are reused by
// nobody: Finish hands them over. It is used by one goroutine.
type Column struct {
	mem   memory.Allocator
	dt    arrow.DataType
	rules *Rules
	// strict is what makes a cell leave the fast loop of a typed column: an escape
	// always, quotes where they mean text.
	strict Cell

	n, room int // rows there are, and rows the buffers hold
	nulls   int
	values  *memory.Buffer // fixed width, or bits of BOOLEAN
	offsets *memory.Buffer // VARCHAR and BINARY
	data    *memory.Buffer
	used    int            // bytes of data
	valid   *memory.Buffer // nil until the first null

	rowsHint, textHint int // size of the last batch: what the next will need

	bad     []int32 // rows of this Append whose cell is no value of the type
	dates   dates
	clocks  clocks
	scratch []byte
}

// NewColumn makes an empty column of a type that text can be read as.
func NewColumn(mem memory.Allocator, dt arrow.DataType, rules *Rules) (*Column, error) {
	if !Readable(dt) {
		return nil, fmt.Errorf("%s cannot be read from text", columnar.TypeName(dt))
	}
	c := &Column{mem: mem, dt: dt, rules: rules, strict: escaped}
	if rules.JSON {
		c.strict |= quoted
	}
	c.dates.day2 = 1 << 16 // no two bytes
	return c, nil
}

// Readable says whether a cell can be read as a value of dt.
func Readable(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.FLOAT32, arrow.FLOAT64,
		arrow.DECIMAL128, arrow.STRING, arrow.BINARY, arrow.DATE32, arrow.TIME64, arrow.TIMESTAMP, arrow.INTERVAL_MONTH_DAY_NANO:
		return true
	}
	return false
}

// Type is the type of the column.
func (c *Column) Type() arrow.DataType { return c.dt }

// Len is the number of rows so far.
func (c *Column) Len() int { return c.n }

// Nulls is how many of them are null.
func (c *Column) Nulls() int { return c.nulls }

// TextBytes is the number of bytes of VARCHAR or BINARY values so far.
func (c *Column) TextBytes() int { return c.used }

// Append adds a row for each cell. It returns the cells, by position, that are no
// value of the column's type; their rows are null. The result is valid until the
// next Append.
func (c *Column) Append(buf []byte, cells []Cell) (bad []int32) {
	c.bad = c.bad[:0]
	c.reserve(len(cells))
	switch c.dt.ID() {
	case arrow.STRING, arrow.BINARY:
		c.appendText(buf, cells)
	case arrow.INT64:
		appendIntegers(c, fresh[int64](c, len(cells)), buf, cells)
	case arrow.FLOAT64:
		c.appendFloats(fresh[float64](c, len(cells)), buf, cells)
	case arrow.TIMESTAMP:
		c.appendTimestamps(fresh[int64](c, len(cells)), buf, cells)
	case arrow.INT32:
		appendIntegers(c, fresh[int32](c, len(cells)), buf, cells)
	case arrow.INT16:
		appendIntegers(c, fresh[int16](c, len(cells)), buf, cells)
	case arrow.INT8:
		appendIntegers(c, fresh[int8](c, len(cells)), buf, cells)
	case arrow.DATE32:
		c.appendDates(fresh[int32](c, len(cells)), buf, cells)
	case arrow.BOOL:
		c.appendBooleans(buf, cells)
	case arrow.DECIMAL128:
		c.appendDecimals(buf, cells)
	default:
		c.appendOthers(buf, cells)
	}
	c.n += len(cells)
	return c.bad
}

// fresh is where the next n values of a fixed-width column go.
func fresh[T arrow.FixedWidthType](c *Column, n int) []T {
	return arrow.GetData[T](c.values.Buf())[c.n : c.n+n]
}

// Truncate drops all rows but the first n.
func (c *Column) Truncate(n int) {
	if c.valid != nil {
		bits := c.valid.Buf()
		for i := n; i < c.n; i++ {
			if bits[i>>3]>>(i&7)&1 == 0 {
				bits[i>>3] |= 1 << (i & 7)
				c.nulls--
			}
		}
	}
	c.n = n
	if c.offsets != nil {
		c.used = int(arrow.Int32Traits.CastFromBytes(c.offsets.Buf())[n])
	}
}

// setNull makes row i null.
func (c *Column) setNull(i int) {
	if c.valid == nil {
		c.valid = memory.NewResizableBuffer(c.mem)
		c.growValid(0)
	}
	c.valid.Buf()[i>>3] &^= 1 << (i & 7)
	c.nulls++
}

// setBad makes the row of cell i null, because it is no value.
func (c *Column) setBad(i int) {
	c.bad = append(c.bad, int32(i))
	c.setNull(c.n + i)
}

// growValid makes the validity bits hold room rows; those from byte from on are set.
func (c *Column) growValid(from int) {
	c.valid.Resize((c.room + 7) / 8)
	bits := c.valid.Buf()
	for i := from; i < len(bits); i++ {
		bits[i] = 0xFF
	}
}

// reserve makes room for n more rows.
func (c *Column) reserve(n int) {
	if c.n+n <= c.room && c.room > 0 {
		return
	}
	c.room = max(c.n+n, min(2*c.room, c.room+columnar.DefaultBatchRows), c.rowsHint, 64)
	switch width := c.dt.(type) {
	case arrow.BinaryDataType:
		if c.offsets == nil {
			c.offsets = memory.NewResizableBuffer(c.mem)
			c.data = memory.NewResizableBuffer(c.mem)
			c.offsets.Resize((c.room + 1) * 4)
			clear(c.offsets.Buf()[:4])
		}
		c.offsets.Resize((c.room + 1) * 4)
	case arrow.FixedWidthDataType:
		if c.values == nil {
			c.values = memory.NewResizableBuffer(c.mem)
		}
		c.values.Resize((c.room*width.BitWidth() + 7) / 8)
	}
	if c.valid != nil {
		c.growValid(c.valid.Len())
	}
}

// reserveText makes room for n more bytes of text, and Pad more.
func (c *Column) reserveText(n int) {
	if need := c.used + n + Pad; need > c.data.Cap() {
		c.data.Reserve(max(need, 2*c.data.Cap(), c.textHint))
	}
}

// maxTextHint bounds what one batch of long texts makes the next reserve.
const maxTextHint = 4 << 20

// View is the rows so far as an array, which is good until the column is used again. The
// caller releases it.
func (c *Column) View() arrow.Array {
	c.reserve(0)
	var buffers []*memory.Buffer
	if c.offsets != nil {
		c.offsets.ResizeNoShrink((c.n + 1) * 4)
		c.data.ResizeNoShrink(c.used)
		buffers = []*memory.Buffer{c.valid, c.offsets, c.data}
	} else {
		width := c.dt.(arrow.FixedWidthDataType).BitWidth()
		c.values.ResizeNoShrink((c.n*width + 7) / 8)
		buffers = []*memory.Buffer{c.valid, c.values}
	}
	data := array.NewData(c.dt, c.n, buffers, nil, c.nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// Finish gives the rows so far as an array and leaves the column empty.
func (c *Column) Finish() arrow.Array {
	a := c.View()
	c.rowsHint = c.n
	c.textHint = min(c.used+c.used/16+Pad, maxTextHint)
	c.Release()
	return a
}

// Release gives up the rows so far and leaves the column empty.
func (c *Column) Release() {
	for _, b := range []**memory.Buffer{&c.values, &c.offsets, &c.data, &c.valid} {
		if *b != nil {
			(*b).Release()
			*b = nil
		}
	}
	c.n, c.room, c.nulls, c.used = 0, 0, 0, 0
}

// Misfit says why a cell is no value of dt.
func (r *Rules) Misfit(buf []byte, cell Cell, dt arrow.DataType) string {
	if cell == Absent {
		return "the field is missing"
	}
	text, ok := r.AppendText(nil, buf, cell)
	if !ok { // what was decoded ends before the escape in question
		from, to := cell.Span()
		text = bytes.ToValidUTF8(buf[from:to], []byte("?"))
	}
	const most = 60
	more := ""
	if len(text) > most {
		text, more = text[:most], "…"
	}
	switch {
	case !ok:
		return fmt.Sprintf(`"%s%s" holds half of a surrogate pair, which is no character`, text, more)
	case r.Inferred && dt.ID() != arrow.STRING && hasLeadingZero(text, 0, len(text)) && !hasISODate(text):
		return fmt.Sprintf("%q%s has a leading zero, which makes it text; declare the column %s to read it as that", text, more, columnar.TypeName(dt))
	case dt.ID() == arrow.STRING:
		return fmt.Sprintf("%q%s is not valid UTF-8; set encoding, or declare the column BINARY", text, more)
	case r.JSON && !cell.IsQuoted() && dt.ID() == arrow.TIMESTAMP && text[0] <= '9':
		return fmt.Sprintf("%s%s is a number, no TIMESTAMP; declare it BIGINT and compute the time, t AS to_timestamp(seconds)", text, more)
	case r.JSON && !cell.IsQuoted():
		return fmt.Sprintf("%s%s is no %s", text, more, columnar.TypeName(dt))
	}
	return fmt.Sprintf("%q%s is no %s", text, more, columnar.TypeName(dt))
}
