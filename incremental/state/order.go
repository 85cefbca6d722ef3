package state

import (
	"cmp"
	"slices"

	"github.com/google/btree"
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

// insert adds rows. They are sorted by prefix, so that each prefix is looked up once
// and the tree is filled in order.
func (o *order) insert(rows []prefixed) {
	slices.SortFunc(rows, func(a, b prefixed) int {
		if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
			return c
		}
		return cmp.Compare(a.row, b.row)
	})
	for i := 0; i < len(rows); {
		p := rows[i].prefix
		it, ok := o.tree.Get(orderItem{prefix: p})
		if !ok {
			it = orderItem{p, rows[i].row}
			o.alone(it.head)
			o.tree.ReplaceOrInsert(it)
			i++
		}
		for ; i < len(rows) && rows[i].prefix == p; i++ {
			o.append(it.head, rows[i].row)
		}
	}
}

// prefixed is a row with its prefix.
type prefixed struct {
	prefix int64
	row    uint32
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

// takeMin removes the smallest prefix, if it is at or below bound, and appends its rows.
func (o *order) takeMin(bound int64, rows []uint32) ([]uint32, bool) {
	it, ok := o.tree.Min()
	if !ok || it.prefix > bound {
		return rows, false
	}
	o.tree.DeleteMin()
	return o.ringRows(it.head, rows), true
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
