package json

import (
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/formats/codec/cells"
)

// frame is what a batch holds of a node that is not a leaf: which rows are there, and
// where the elements of each end.
type frame struct {
	mem   memory.Allocator
	valid []bool
	nulls int
	ends  []int32
	loose bool // a map that is null may have entries all the same
}

// flush moves the rows of the chunk into the batch. report is called for each row,
// of whichever node, that holds a value of the wrong kind.
func (n *node) flush(buf []byte, report func(n *node, row int32)) {
	if n.kind == leaf {
		for _, row := range n.column.Append(buf, n.cells) {
			report(n, row)
		}
		return
	}
	f := &n.filled
	from := len(f.valid)
	for i, what := range n.rows {
		f.valid = append(f.valid, what == rowValid)
		if what != rowValid {
			f.nulls++
		}
		if what == rowBad {
			report(n, int32(i))
		}
	}
	if n.kind != object {
		base := int32(0)
		if len(f.ends) > 0 {
			base = f.ends[len(f.ends)-1]
		}
		for _, end := range n.ends {
			f.ends = append(f.ends, base+end)
		}
	}
	for _, c := range n.children {
		c.flush(buf, report)
	}
	if n.kind == mapping {
		n.checkKeys(from, report)
	}
}

// flushChildren is flush for the root, of which a batch holds the columns only.
func (n *node) flushChildren(buf []byte, report func(n *node, row int32)) {
	for _, c := range n.children {
		if !c.bare {
			c.flush(buf, report)
		}
	}
}

// clear forgets the rows of the chunk.
func (n *node) clear() {
	n.cells, n.rows, n.ends = n.cells[:0], n.rows[:0], n.ends[:0]
	for _, c := range n.children {
		c.clear()
	}
}

// length is the number of rows in the batch.
func (n *node) length() int {
	if n.kind == leaf {
		return n.column.Len()
	}
	return len(n.filled.valid)
}

// nulls is how many rows of the batch are null.
func (n *node) nulls() int {
	if n.kind == leaf {
		return n.column.Nulls()
	}
	return n.filled.nulls
}

// mark begins to count what n and its parts are filled with.
func (n *node) mark() {
	n.markedRows, n.markedNulls, n.wrong = n.length(), n.nulls(), 0
	for _, c := range n.children {
		c.mark()
	}
}

// sinceMark is how many values came since that are right, and how many that are not.
func (n *node) sinceMark() (right, wrong int) {
	return n.length() - n.markedRows - (n.nulls() - n.markedNulls), n.wrong
}

// cut drops the rows of the batch from the given one on.
func (n *node) cut(rows int) {
	if n.bare {
		return
	}
	if n.kind == leaf {
		n.column.Truncate(rows)
		return
	}
	f := &n.filled
	for _, ok := range f.valid[rows:] {
		if !ok {
			f.nulls--
		}
	}
	f.valid = f.valid[:rows]
	if n.kind != object {
		f.ends = f.ends[:rows]
		rows = 0
		if len(f.ends) > 0 {
			rows = int(f.ends[len(f.ends)-1])
		}
	}
	for _, c := range n.children {
		c.cut(rows)
	}
}

// textBytes is the size of all texts in the batch; elements of lists count, too, for
// a few rows may hold millions.
func (n *node) textBytes() int {
	if n.bare {
		return 0
	}
	if n.kind == leaf {
		return n.column.TextBytes()
	}
	size := 0
	if last := len(n.filled.ends) - 1; last >= 0 {
		size = 8 * int(n.filled.ends[last])
	}
	for _, c := range n.children {
		size += c.textBytes()
	}
	return size
}

// rootRow is the row of the record that row i of n is part of.
func (n *node) rootRow(i int32) int32 {
	for at := n.parent; at != nil; at = at.parent {
		if at.kind == list || at.kind == mapping {
			i = int32(sort.Search(len(at.ends), func(r int) bool { return at.ends[r] > i }))
		}
	}
	return i
}

// path is the name of n within its column.
func (n *node) path() string {
	if n.parent == nil || n.parent.name == "" {
		return n.name
	}
	return n.parent.path() + "." + n.name
}

// finish gives the rows of the batch as an array.
func (n *node) finish() arrow.Array {
	if n.kind == leaf {
		return n.column.Finish()
	}
	data := n.finishData()
	defer data.Release()
	return array.MakeFromData(data)
}

func (n *node) finishData() arrow.ArrayData {
	if n.kind == leaf {
		a := n.column.Finish()
		defer a.Release()
		a.Data().Retain()
		return a.Data()
	}
	if n.kind == mapping {
		return n.finishMap()
	}
	children := make([]arrow.ArrayData, len(n.children))
	for i, c := range n.children {
		children[i] = c.finishData()
		defer children[i].Release()
	}
	f := &n.filled
	rows := len(f.valid)
	buffers := []*memory.Buffer{f.bitmap()}
	if n.kind != object {
		buffers = append(buffers, f.offsets())
	}
	data := array.NewData(n.dt, rows, buffers, children, f.nulls, 0)
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	f.reset()
	return data
}

func (f *frame) reset() { f.valid, f.ends, f.nulls, f.loose = f.valid[:0], f.ends[:0], 0, false }

func (f *frame) bitmap() *memory.Buffer {
	if f.nulls == 0 {
		return nil
	}
	b := memory.NewResizableBuffer(f.mem)
	b.Resize((len(f.valid) + 7) / 8)
	bits := b.Bytes()
	clear(bits)
	for i, ok := range f.valid {
		if ok {
			bits[i>>3] |= 1 << (i & 7)
		}
	}
	return b
}

func (f *frame) offsets() *memory.Buffer {
	b := memory.NewResizableBuffer(f.mem)
	b.Resize((len(f.ends) + 1) * 4)
	offsets := arrow.Int32Traits.CastFromBytes(b.Bytes())
	offsets[0] = 0
	copy(offsets[1:], f.ends)
	return b
}

// release gives up the rows of the batch.
func (n *node) release() {
	for _, c := range []*cells.Column{n.column, n.probe} {
		if c != nil {
			c.Release()
		}
	}
	for _, c := range n.children {
		c.release()
	}
}
