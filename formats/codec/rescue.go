package codec

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// DefaultRescued is the name of the rescued column where no other is given.
const DefaultRescued = "_rescued_data"

// rescuedFile is the key under which a rescued value says its file.
const rescuedFile = "_file_path"

// Rescued collects, row by row, what no column of the source takes, as the text of a JSON
// object: {"new":1,"s":{"y":true},"_file_path":"in/a.json"}. It is used by one goroutine.
type Rescued struct {
	file  []byte // the last member and the end of an object
	texts *array.StringBuilder
	text  []byte
	marks []mark // of the members of text
}

// mark is where a member of the object begins and ends.
type mark struct {
	key      string
	from, to int
}

// NewRescued makes an empty column for rows of a file.
func NewRescued(mem memory.Allocator, file string) *Rescued {
	r := &Rescued{texts: array.NewStringBuilder(mem)}
	r.file = columnar.AppendJSONString(r.file, rescuedFile)
	r.file = append(r.file, ':')
	r.file = append(columnar.AppendJSONString(r.file, file), '}')
	return r
}

// Add adds a member to the row at hand; value appends it as JSON. Of a key that comes
// twice the last value counts.
func (r *Rescued) Add(key string, value func(dst []byte) []byte) {
	from := len(r.text)
	r.text = columnar.AppendJSONString(r.text, key)
	r.text = append(r.text, ':')
	r.text = append(value(r.text), ',')
	at := mark{key, from, len(r.text)}
	for i, m := range r.marks {
		if m.key == key {
			r.marks[i] = at
			return
		}
	}
	r.marks = append(r.marks, at)
}

// AddText adds a member whose value is a text.
func (r *Rescued) AddText(key string, text []byte) {
	r.Add(key, func(dst []byte) []byte { return columnar.AppendJSONString(dst, text) })
}

// Row is the text of the row at hand, which ends with it; nil if nothing was added.
func (r *Rescued) Row() []byte {
	if len(r.marks) == 0 {
		return nil
	}
	out := []byte{'{'}
	for _, m := range r.marks {
		out = append(out, r.text[m.from:m.to]...)
	}
	r.text, r.marks = r.text[:0], r.marks[:0]
	return append(out, r.file...)
}

// Append adds a row to the column: null if text is nil.
func (r *Rescued) Append(text []byte) {
	if text == nil {
		r.texts.AppendNull()
		return
	}
	r.texts.BinaryBuilder.Append(text)
}

// WithMembers is the rescued column a of rows of a file with more members in each row, as
// AppendMember makes them.
func WithMembers(mem memory.Allocator, file string, a arrow.Array, members []byte) arrow.Array {
	plain := columnar.PlainColumn(mem, a)
	defer plain.Release()
	texts := plain.(*array.String)
	r := NewRescued(mem, file)
	defer r.Release()
	for i := range texts.Len() {
		rest := r.file
		if texts.IsValid(i) {
			rest = []byte(texts.Value(i)[1:])
		}
		r.Append(slices.Concat([]byte{'{'}, members, rest))
	}
	return r.Finish()
}

// AppendMember appends a member whose value is a text, before others.
func AppendMember(dst []byte, key, text string) []byte {
	dst = append(columnar.AppendJSONString(dst, key), ':')
	return append(columnar.AppendJSONString(dst, text), ',')
}

// TextBytes is the size of all texts so far.
func (r *Rescued) TextBytes() int { return r.texts.DataLen() }

// Finish gives the rows so far and leaves the column empty.
func (r *Rescued) Finish() arrow.Array { return r.texts.NewArray() }

// Release gives up the rows so far.
func (r *Rescued) Release() { r.texts.Release() }
