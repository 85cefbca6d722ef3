package group

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// grid finds keys whose columns have values close together by their place, without a hash
// and without comparing: a cell for each combination of values. With months 1 to 12 and
// the numbers 0 to 99 of a text, (3, 7) is in cell (3-1)*100 + 7-0.
//
// It is an index beside the slots, which know every key. It is made anew whenever the keys
// have doubled, and given up where it takes too much or does not help.
type grid struct {
	axes  []axis   // by column
	ids   []uint32 // id+1 by cell; nil: there is no grid
	lacks bool     // some key without a null may not be in it
	next  int      // number of keys at which it is made anew
	rows  int      // looked up since then, and
	found int      // found
}

// axis is one column of a grid: value v has place (v-base)*step, if v-base is below span.
type axis struct{ base, span, step uint64 }

const (
	gridFirst   = 16      // keys before a grid is tried
	gridCells   = 1 << 22 // at most, and
	gridPerKey  = 8       // so many for each key, and
	gridFree    = 1024    // some more
	outOfGrid   = 1 << 40 // added to a place makes it one of no cell
	gridPatient = 64 << 10
)

func (g *grid) reset() { g.ids, g.next = nil, gridFirst }

// giveUp makes sure that no grid is tried until reset.
func (g *grid) giveUp() { g.ids, g.next = nil, math.MaxInt }

// bytes is the memory held.
func (g *grid) bytes() int64 { return int64(len(g.ids)) * 4 }

// bias makes the values of a column an ascending range of uint64.
func (c *column) bias() uint64 {
	if c.width == 8 {
		return 1 << 63 // integers and times are signed
	}
	return 0
}

// isOnGrid says whether the values of the column may be places.
func (c *column) isOnGrid() bool {
	if c.codec != nil || c.width == 16 {
		return false
	}
	switch c.dt.ID() {
	case arrow.FLOAT32, arrow.FLOAT64, arrow.BOOL, arrow.NULL:
		return false
	}
	return true
}

// value is the value of the column in a row.
func (c *column) value(row []uint64) uint64 {
	w := row[c.word] >> (c.shift & 63)
	if c.width < 8 {
		w &= 1<<(8*c.width) - 1
	}
	return w
}

// remakeGrid makes the grid of all keys there are.
func (t *packedKey) remakeGrid() error {
	g := &t.grid
	if g.ids != nil && g.rows > gridPatient && g.found < g.rows/2 {
		g.giveUp()
		return t.res.set(t.ownBytes(len(t.slots), cap(t.rows), cap(t.nulls)))
	}
	g.next, g.rows, g.found, g.ids, g.lacks = 2*max(t.n, gridFirst), 0, 0, nil, false
	cells, ok := t.layOutGrid()
	if !ok {
		g.giveUp()
	}
	if !ok || cells > gridPerKey*t.n+gridFree {
		return t.res.set(t.ownBytes(len(t.slots), cap(t.rows), cap(t.nulls)))
	}
	own := t.ownBytes(len(t.slots), cap(t.rows), cap(t.nulls))
	if t.res.set(own+int64(cells)*4) != nil { // no memory for it
		g.giveUp()
		return t.res.set(own)
	}
	g.ids = make([]uint32, cells)
	for id := range t.n {
		if t.nulls != nil && t.nulls[id] != 0 {
			continue
		}
		at, row := uint64(0), t.rows[id*t.stride:(id+1)*t.stride]
		for i := range t.columns {
			at += (t.columns[i].value(row) - g.axes[i].base) * g.axes[i].step
		}
		g.ids[at] = uint32(id) + 1
	}
	return nil
}

// layOutGrid finds the range of each column; ok is false if no grid will ever do.
func (t *packedKey) layOutGrid() (cells int, ok bool) {
	g := &t.grid
	g.axes = g.axes[:0]
	cells = 1
	for i := range t.columns {
		c := &t.columns[i]
		if !c.isOnGrid() {
			return 0, false
		}
		bias := c.bias()
		least, most := uint64(math.MaxUint64), uint64(0)
		for id := range t.n {
			if t.nulls != nil && t.nulls[id] != 0 {
				continue
			}
			v := c.value(t.rows[id*t.stride:(id+1)*t.stride]) ^ bias
			least, most = min(least, v), max(most, v)
		}
		if least > most { // nothing but nulls
			least, most = 0, 0
		}
		if most-least >= gridCells || cells*int(most-least+1) > gridCells {
			return 0, false
		}
		g.axes = append(g.axes, axis{base: least ^ bias, span: most - least + 1, step: uint64(cells)})
		cells *= int(most - least + 1)
	}
	return cells, true
}

// lookUp puts the ids of rows lo to hi into ids, and the rows that are not in the grid
// into t.miss. No row has a null.
func (t *packedKey) lookUp(lo, hi int, ids []uint32) (misses int) {
	g := &t.grid
	cells := t.found[:hi-lo]
	clear(cells)
	for i := range t.columns {
		s, x := &t.columns[i].src, g.axes[i]
		switch {
		case s.u8 != nil:
			addPlaces(cells, s.u8[lo:hi], x)
		case s.u16 != nil:
			addPlaces(cells, s.u16[lo:hi], x)
		case s.u32 != nil:
			addPlaces(cells, s.u32[lo:hi], x)
		default:
			addPlaces(cells, s.u64[lo:hi], x)
		}
	}
	all := g.ids
	ids = ids[:len(cells)]
	for i, at := range cells {
		if at < uint64(len(all)) {
			if id := all[at]; id != 0 {
				ids[i] = id - 1
				continue
			}
		}
		t.miss[misses&(chunk-1)] = uint16(i)
		misses++
	}
	g.rows += len(cells)
	g.found += len(cells) - misses
	return misses
}

func addPlaces[T uint8 | uint16 | uint32 | uint64](cells []uint64, values []T, x axis) {
	values = values[:len(cells)]
	for i, v := range values {
		d := uint64(v) - x.base
		if d >= x.span {
			cells[i] += outOfGrid
			continue
		}
		cells[i] += d * x.step
	}
}

// findMissed finds rows that lookUp did not, of the chunk at lo.
func (t *packedKey) findMissed(lo, hi, misses int, ids []uint32, insert bool) error {
	g, missed := &t.grid, t.miss[:misses]
	if !insert && !g.lacks {
		for _, r := range missed {
			ids[r] = NotFound
		}
		return nil
	}
	words := t.pack(lo, hi, false)
	clear(t.marks[:len(ids)])
	for _, r := range missed {
		i := int(r)
		t.tags[i] = tagOf(t.hashRow(words[i*t.stride:(i+1)*t.stride], 0), t.mask)
	}
	if err := t.resolve(words, missed, ids, insert); err != nil || !insert {
		return err
	}
	for _, r := range missed {
		if at := t.found[r]; at < uint64(len(g.ids)) {
			g.ids[at] = ids[r] + 1
		} else {
			g.lacks = true
		}
	}
	return nil
}

// settle makes the grid of all keys, to be looked up but not added to from now on.
func (t *packedKey) settle() {
	t.grid.reset()
	_ = t.remakeGrid() // it only fails to give memory back, which never fails
}
