package json

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/formats/codec/cells"
)

// Values is a column filled from JSON texts, one a value: how nested values stand in
// CSV files. It is used by one goroutine.
type Values struct {
	root    *node
	scanner scanner
	isBad   bool
}

// NewValues makes an empty column of a Readable type. loc is the clock of timestamps
// without a zone; nil is UTC.
func NewValues(mem memory.Allocator, dt arrow.DataType, loc *time.Location) (*Values, error) {
	root, err := newNode(mem, "", dt, &cells.Rules{JSON: true, Location: loc})
	if err != nil {
		return nil, err
	}
	return &Values{root: root, scanner: scanner{multiline: true}}, nil
}

// Append adds the value that text spells. ok is false, and the row null, if it is no
// JSON or no value of the type; values inside it that do not fit are null, too, and
// ok is false.
func (v *Values) Append(text []byte) (ok bool) {
	s := &v.scanner
	s.buf = append(s.buf[:0], make([]byte, cells.Pad)...)
	s.buf = append(s.buf, text...)
	s.hi = len(s.buf)
	s.buf = append(s.buf, '\n')
	s.buf = append(s.buf, make([]byte, cells.Pad)...)
	s.depth = 0
	end, ok := s.value(v.root, s.blanks(cells.Pad))
	if !ok || s.blanks(end) != s.hi {
		v.root.clear()
		v.AppendNull()
		return false
	}
	v.isBad = false
	v.root.flush(s.buf, func(*node, int32) { v.isBad = true })
	v.root.clear()
	return !v.isBad
}

// AppendNull adds a null.
func (v *Values) AppendNull() {
	v.root.appendNothing(rowNull)
	v.root.flush(nil, func(*node, int32) {})
	v.root.clear()
}

// Type is the type of the column.
func (v *Values) Type() arrow.DataType { return v.root.dt }

// Len is the number of rows so far.
func (v *Values) Len() int { return v.root.length() }

// Nulls is how many of them are null.
func (v *Values) Nulls() int { return v.root.nulls() }

// TextBytes is the size of all texts so far.
func (v *Values) TextBytes() int { return v.root.textBytes() }

// Truncate drops all rows but the first n.
func (v *Values) Truncate(n int) { v.root.cut(n) }

// Finish gives the rows so far as an array and leaves the column empty.
func (v *Values) Finish() arrow.Array { return v.root.finish() }

// Release gives up the rows so far.
func (v *Values) Release() { v.root.release() }
