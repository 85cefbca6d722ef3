package state

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/btree"

	"github.com/tidemill/tidemill/columnar/kernel"
)

// noRow is no slot.
const noRow = ^uint32(0)

// link ties a row into a ring: a circular list with a head, whose prev is its last.
type link struct{ next, prev uint32 }

// rings are circular lists of rows: the rows of one prefix, or of one key.
type rings struct {
	links segments[link]
}

func (r *rings) at(row uint32) *link { return &r.links.row(row)[0] }

// alone makes row a ring of itself.
func (r *rings) alone(row uint32) { *r.at(row) = link{row, row} }

// append puts row at the end of the ring of head.
func (r *rings) append(head, row uint32) {
	h := r.at(head)
	last := h.prev
	*r.at(row) = link{next: head, prev: last}
	r.at(last).next = row
	h.prev = row
}

// remove takes row out of the ring of head and returns the new head, noRow if none is
// left.
func (r *rings) remove(head, row uint32) uint32 {
	l := *r.at(row)
	if l.next == row {
		return noRow
	}
	r.at(l.prev).next = l.next
	r.at(l.next).prev = l.prev
	if head == row {
		return l.next
	}
	return head
}

// move gives the place of row from to row to.
func (r *rings) move(from, to uint32) {
	l := *r.at(from)
	if l.next == from {
		r.alone(to)
		return
	}
	*r.at(to) = l
	r.at(l.prev).next = to
	r.at(l.next).prev = to
}

// orderItem is a prefix and the first row that has it.
type orderItem struct {
	prefix int64
	head   uint32
}

// order keeps rows by prefix. The tree has one item for each prefix; a row whose
// prefix is known already does not touch it.
type order struct {
	rings
	tree *btree.BTreeG[orderItem]
}

// orderDegree is the branching of the tree: 16-byte items, about a kilobyte a node.
const orderDegree = 48

func newOrder() order {
	return order{
		rings: rings{links: segments[link]{width: 1}},
		tree:  btree.NewG(orderDegree, func(a, b orderItem) bool { return a.prefix < b.prefix }),
	}
}

// insert adds rows with their prefixes, of one length. They are ordered by prefix, so
// that each prefix is looked up once and the tree is filled in order.
func (o *order) insert(prefixes []int64, rows []uint32) {
	refs := sortedByPrefix(prefixes)
	for i := 0; i < len(refs); {
		p, row := prefixes[refs[i].Row()], rows[refs[i].Row()]
		it, ok := o.tree.Get(orderItem{prefix: p})
		if !ok {
			it = orderItem{p, row}
			o.alone(row)
			o.tree.ReplaceOrInsert(it)
			i++
		}
		for ; i < len(refs) && prefixes[refs[i].Row()] == p; i++ {
			o.append(it.head, rows[refs[i].Row()])
		}
	}
}

// sortedByPrefix is the ascending order of prefixes; equal ones stay as they are.
func sortedByPrefix(prefixes []int64) []kernel.Ref {
	b := memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(prefixes))
	d := array.NewData(arrow.PrimitiveTypes.Int64, len(prefixes), []*memory.Buffer{nil, b}, nil, 0, 0)
	defer d.Release()
	column := array.NewInt64Data(d)
	defer column.Release()
	return kernel.Sort([]kernel.SortKey{{Columns: []arrow.Array{column}}})
}

// remove takes a row out.
func (o *order) remove(row uint32, prefix int64) {
	if o.at(row).next == row {
		o.tree.Delete(orderItem{prefix: prefix})
		return
	}
	it, _ := o.tree.Get(orderItem{prefix: prefix})
	if head := o.rings.remove(it.head, row); head != it.head {
		o.tree.ReplaceOrInsert(orderItem{prefix, head})
	}
}

// moved tells that a row has another slot now.
func (o *order) moved(from, to uint32, prefix int64) {
	o.move(from, to)
	if it, _ := o.tree.Get(orderItem{prefix: prefix}); it.head == from {
		o.tree.ReplaceOrInsert(orderItem{prefix, to})
	}
}

// takeMin removes the smallest prefixes at or below bound, up to walks of them, and
// appends their rows in order; more is false once there are none.
func (o *order) takeMin(bound int64, rows []uint32) (_ []uint32, more bool) {
	var w [walks]walk
	n := 0
	for n < walks {
		it, ok := o.tree.Min()
		if !ok || it.prefix > bound {
			break
		}
		o.tree.DeleteMin()
		w[n].begin(&o.rings, it.head)
		n++
	}
	for going := n > 0; going; {
		going = false
		for i := range w[:n] {
			going = w[i].step(&o.rings) || going
		}
	}
	for i := range w[:n] {
		rows = append(rows, w[i].forth...)
		slices.Reverse(w[i].back)
		rows = append(rows, w[i].back...)
	}
	return rows, n > 0
}

// walks is how many rings are walked at a time. Each step waits for memory: those of
// several rings, and of both directions of one, wait together.
const walks = 8

// walk goes around a ring from its head, in both directions, until they meet.
type walk struct {
	next, prev  uint32 // the last rows noted
	forth, back []uint32
	met         bool
}

func (w *walk) begin(r *rings, head uint32) {
	w.next, w.prev = head, r.at(head).prev
	w.forth = append(w.forth, head)
	if w.met = w.prev == head; !w.met {
		w.back = append(w.back, w.prev)
	}
}

// step notes a row in each direction and says whether there may be more.
func (w *walk) step(r *rings) bool {
	if w.met {
		return false
	}
	next, prev := r.at(w.next).next, r.at(w.prev).prev
	if next == w.prev {
		w.met = true
		return false
	}
	w.next, w.forth = next, append(w.forth, next)
	if prev == next {
		w.met = true
		return false
	}
	w.prev, w.back = prev, append(w.back, prev)
	return true
}

// ringRows appends the rows of a ring, head first.
func (r *rings) ringRows(head uint32, rows []uint32) []uint32 {
	for row := head; ; {
		rows = append(rows, row)
		if row = r.at(row).next; row == head {
			return rows
		}
	}
}

// bytes counts the links and about 24 bytes for each item of the tree.
func (o *order) bytes() int64 { return o.links.bytes(8) + int64(o.tree.Len())*24 }
