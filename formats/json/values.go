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
	mem     memory.Allocator
	rules   *cells.Rules
	isBad   bool
	left    *leftover // nil: what the type does not take is passed over
}

// NewValues makes an empty column of a Readable type. loc is the clock of timestamps
// without a zone; nil is UTC.
func NewValues(mem memory.Allocator, dt arrow.DataType, loc *time.Location) (*Values, error) {
	rules := &cells.Rules{JSON: true, Location: loc}
	root, err := newNode(mem, "", dt, rules)
	if err != nil {
		return nil, err
	}
	return &Values{root: root, scanner: scanner{multiline: true}, mem: mem, rules: rules}, nil
}

// Rescue makes Append see, too, the fields of objects that the type has not, and allows
// Rest.
func (v *Values) Rescue() {
	v.left = &leftover{scanner: &v.scanner, root: v.root, isElsewhere: func(string) bool { return false }}
	v.watch(v.root)
}

func (v *Values) watch(n *node) {
	switch n.kind {
	case object:
		n.admit = func(string) bool {
			v.isBad = true
			return false
		}
		n.keepsAll = true
	case leaf:
		n.probe, _ = cells.NewColumn(v.mem, n.dt, v.rules) // as its column was made
	}
	for _, c := range n.children {
		v.watch(c)
	}
}

// Append adds the value that text spells. ok is false, and the row null, if it is no
// JSON or no value of the type; values inside it that do not fit are null, too, and
// ok is false.
func (v *Values) Append(text []byte) (ok bool) {
	v.isBad = false
	at := v.load(text)
	end, ok := v.scanner.value(v.root, at)
	if !ok || v.scanner.blanks(end) != v.scanner.hi {
		v.root.clear()
		v.AppendNull()
		return false
	}
	v.root.flush(v.scanner.buf, func(*node, int32) { v.isBad = true })
	v.root.clear()
	return !v.isBad
}

// load makes text what the scanner reads; at is its first byte that is no blank.
func (v *Values) load(text []byte) (at int) {
	s := &v.scanner
	s.buf = append(s.buf[:0], make([]byte, cells.Pad)...)
	s.buf = append(s.buf, text...)
	s.hi = len(s.buf)
	s.buf = append(s.buf, '\n')
	s.buf = append(s.buf, make([]byte, cells.Pad)...)
	s.depth = 0
	return s.blanks(cells.Pad)
}

// Rest is the JSON of what Append did not take of a text: of an object the fields in
// question, otherwise all of it; nil if it took all. ok is false if the text is no JSON.
func (v *Values) Rest(text []byte) (rest []byte, ok bool) {
	at := v.load(text)
	end, ok := v.scanner.skip(at)
	if !ok || v.scanner.blanks(end) != v.scanner.hi {
		return nil, false
	}
	v.scanner.depth = 0
	return v.left.rest(v.root, at, end), true
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
