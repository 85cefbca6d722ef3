package parquet

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// nestedLeaf is a leaf below a struct, list or map. It keeps the levels of the rows
// being read for those above it.
type nestedLeaf struct {
	*leafReader
	array    arrow.Array
	ahead    []byte // repetition levels decoded but not taken
	aheadBuf []byte
}

// maxEntries bounds the levels of one batch: a damaged page of a few bytes can claim
// billions of elements in one row.
const maxEntries = 1 << 27

// readNested reads the levels and values of n rows.
func (l *nestedLeaf) readNested(n int) error {
	l.defs, l.reps = l.defs[:0], l.reps[:0]
	rows := 0
	for {
		if l.left == 0 {
			more, err := l.nextPage()
			if err != nil {
				return err
			}
			if !more {
				if rows < n {
					return errors.New("its pages end before its rows do")
				}
				return nil
			}
		}
		done, err := l.readEntries(n, &rows)
		if err != nil || done {
			return err
		}
	}
}

// lookahead is how many levels are decoded before it is known which rows they end.
const lookahead = 1024

// readEntries takes what belongs to the n rows from the current page; done says that
// the next row has been seen.
func (l *nestedLeaf) readEntries(n int, rows *int) (done bool, err error) {
	if l.leaf.rep == 0 {
		k := min(n-*rows, l.left)
		*rows += k
		return *rows == n, l.takeEntries(k, nil)
	}
	for l.left > 0 {
		ahead, err := l.aheadReps()
		if err != nil {
			return false, err
		}
		k := 0
		for ; k < len(ahead); k++ {
			if ahead[k] == 0 {
				if *rows == n {
					break
				}
				*rows++
			} else if *rows == 0 {
				return false, errors.New("its first row does not begin with repetition level 0")
			}
		}
		l.ahead = ahead[k:]
		if err := l.takeEntries(k, ahead[:k]); err != nil {
			return false, err
		}
		if k < len(ahead) {
			return true, nil
		}
	}
	return false, nil
}

// aheadReps is decoded repetition levels not yet taken, at least one.
func (l *nestedLeaf) aheadReps() ([]byte, error) {
	if len(l.ahead) > 0 {
		return l.ahead, nil
	}
	l.aheadBuf = resized(l.aheadBuf, min(lookahead, l.left))
	l.ahead = l.aheadBuf
	return l.ahead, l.page.rep.read(l.ahead)
}

// takeEntries reads the definition levels and values of the next k entries.
func (l *nestedLeaf) takeEntries(k int, reps []byte) error {
	if k == 0 {
		return nil
	}
	at := len(l.defs)
	if at+k > maxEntries {
		return fmt.Errorf("more than %d elements in one batch", maxEntries)
	}
	l.defs = append(l.defs, make([]byte, k)...)
	def := l.defs[at:]
	if l.leaf.def > 0 {
		if err := l.page.def.read(def); err != nil {
			return err
		}
	}
	l.reps = append(l.reps, reps...)
	if above := byte(l.leaf.above); above > 0 {
		// Entries of empty and null lists are no slots of what is in them.
		l.slots = l.slots[:0]
		for _, d := range def {
			if d >= above {
				l.slots = append(l.slots, d)
			}
		}
		def = l.slots
	}
	if len(def) > 0 {
		if err := l.appendLevels(def); err != nil {
			return err
		}
	}
	if l.left -= k; l.left == 0 {
		return l.endPage()
	}
	return nil
}

// assemble makes the array of a plan from the levels and arrays of its leaves.
func (r *columnReader) assemble(p *columnPlan) (arrow.Array, error) {
	if p.node.kind == leafNode {
		a := r.byNode[p.node].array
		a.Retain()
		return a, nil
	}
	switch p.node.kind {
	case structNode:
		return r.assembleStruct(p)
	case listNode:
		return r.assembleList(p, p.typ)
	}
	return r.assembleMap(p)
}

func (r *columnReader) assembleStruct(p *columnPlan) (arrow.Array, error) {
	n, leaf := p.node, r.byNode[p.shape]
	v := validity{mem: r.mem}
	defer v.release()
	for i, d := range leaf.defs {
		if int(d) >= n.above && (leaf.leaf.rep == 0 || int(leaf.reps[i]) <= n.aboveRep) {
			v.append(int(d) >= n.def)
		}
	}
	children := make([]arrow.ArrayData, 0, len(p.children))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for _, c := range p.children {
		child, err := r.child(c, v.n)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	data := array.NewData(p.typ, v.n, []*memory.Buffer{v.take()}, children, v.nulls, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// child makes the data of a child, which must have n slots.
func (r *columnReader) child(p *columnPlan, n int) (arrow.ArrayData, error) {
	var a arrow.Array
	if p.node == nil {
		a = nullArray(r.mem, p.typ, n)
	} else {
		var err error
		if a, err = r.assemble(p); err != nil {
			return nil, err
		}
	}
	defer a.Release()
	if a.Len() != n {
		return nil, fmt.Errorf("field %s has %d values where its neighbours have %d", p.name, a.Len(), n)
	}
	a.Data().Retain()
	return a.Data(), nil
}

// lists finds the slots and lengths of the lists of a node.
func (r *columnReader) lists(p *columnPlan) (v validity, offsets []int32) {
	n, leaf := p.node, r.byNode[p.shape]
	v = validity{mem: r.mem}
	end := int32(0)
	offsets = make([]int32, 1, len(leaf.defs)+1)
	for i, rep := range leaf.reps {
		d := int(leaf.defs[i])
		switch {
		case int(rep) > n.elemRep || d < n.above:
			continue
		case int(rep) == n.elemRep:
			end++
			offsets[len(offsets)-1] = end
			continue
		}
		v.append(d >= n.def)
		if d >= n.elemDef {
			end++
		}
		offsets = append(offsets, end)
	}
	return v, offsets
}

func (r *columnReader) assembleList(p *columnPlan, typ arrow.DataType) (arrow.Array, error) {
	v, offsets := r.lists(p)
	defer v.release()
	child, err := r.child(p.children[0], int(offsets[len(offsets)-1]))
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return r.listArray(typ, &v, offsets, child), nil
}

func (r *columnReader) listArray(typ arrow.DataType, v *validity, offsets []int32, child arrow.ArrayData) arrow.Array {
	buf := memory.NewResizableBuffer(r.mem)
	defer buf.Release()
	buf.Resize(4 * len(offsets))
	copy(arrow.Int32Traits.CastFromBytes(buf.Bytes()), offsets)
	data := array.NewData(typ, v.n, []*memory.Buffer{v.take(), buf}, []arrow.ArrayData{child}, v.nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

func (r *columnReader) assembleMap(p *columnPlan) (arrow.Array, error) {
	v, offsets := r.lists(p)
	defer v.release()
	n := int(offsets[len(offsets)-1])
	var children []arrow.ArrayData
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for _, c := range p.children {
		d, err := r.child(c, n)
		if err != nil {
			return nil, err
		}
		children = append(children, d)
	}
	if children[0].NullN() > 0 {
		return nil, errors.New("a key of a map is null")
	}
	t := p.typ.(*arrow.MapType)
	entries := array.NewData(t.Elem(), n, []*memory.Buffer{nil}, children, 0, 0)
	defer entries.Release()
	return r.listArray(p.typ, &v, offsets, entries), nil
}

// validity collects the bitmap of a nested array.
type validity struct {
	mem   memory.Allocator
	n     int
	nulls int
	buf   *memory.Buffer
}

func (v *validity) append(valid bool) {
	if v.buf == nil {
		v.buf = memory.NewResizableBuffer(v.mem)
	}
	if v.n/8 >= v.buf.Len() {
		v.buf.ResizeNoShrink(max(64, v.buf.Len()*2))
	}
	putBit(v.buf.Bytes(), v.n, valid)
	v.n++
	if !valid {
		v.nulls++
	}
}

// take is the bitmap, nil if nothing is null. release still has to be called.
func (v *validity) take() *memory.Buffer {
	if v.nulls == 0 {
		return nil
	}
	return v.buf
}

func (v *validity) release() {
	if v.buf != nil {
		v.buf.Release()
		v.buf = nil
	}
}

// nullArray is n nulls of type dt. Arrow has a function for this, but it relies on
// the allocator to clear memory, which the engine's do not.
func nullArray(mem memory.Allocator, dt arrow.DataType, n int) arrow.Array {
	if dt.ID() == arrow.NULL {
		return array.NewNull(n)
	}
	valid := zeroBuffer(mem, (n+7)/8)
	defer valid.Release()
	buffers, children := []*memory.Buffer{valid}, []arrow.ArrayData(nil)
	switch t := dt.(type) {
	case *arrow.StructType:
		for _, f := range t.Fields() {
			c := nullArray(mem, f.Type, n)
			defer c.Release()
			children = append(children, c.Data())
		}
	case arrow.ListLikeType: // maps, too
		offsets := zeroBuffer(mem, 4*(n+1))
		defer offsets.Release()
		c := nullArray(mem, t.Elem(), 0)
		defer c.Release()
		buffers, children = append(buffers, offsets), append(children, c.Data())
	default:
		size := n
		if w := width(dt); w > 0 {
			size *= w
		} else {
			size = 4 * (n + 1)
		}
		values := zeroBuffer(mem, size)
		defer values.Release()
		buffers = append(buffers, values)
		if width(dt) == 0 {
			buffers = append(buffers, nil)
		}
	}
	data := array.NewData(dt, n, buffers, children, n, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

func zeroBuffer(mem memory.Allocator, size int) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Resize(size)
	clear(b.Bytes())
	return b
}
