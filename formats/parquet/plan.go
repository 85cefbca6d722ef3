package parquet

import (
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// columnPlan says how one wanted column, or a part of a nested one, is read from a
// file. It is made once per file and used by all its row groups.
type columnPlan struct {
	name     string
	node     *node // nil: the file does not have it, it is null
	typ      arrow.DataType
	children []*columnPlan
	shape    *node // a leaf whose levels tell the slots of this node
}

// planColumn matches a node of the file with the wanted type.
func planColumn(n *node, name string, want arrow.DataType) (*columnPlan, error) {
	if n == nil || n.kind == leafNode && n.err == nil && n.typ.ID() == arrow.NULL {
		// A leaf that holds only nulls is as good as absent.
		return &columnPlan{name: name, typ: want}, nil
	}
	p := &columnPlan{name: name, node: n, typ: want}
	switch n.kind {
	case leafNode:
		if n.err != nil {
			return nil, n.err
		}
		_, err := newWidening(n.typ, want)
		p.shape = n
		return p, err
	case structNode:
		return p, p.planStruct()
	case listNode:
		return p, p.planList()
	}
	return p, p.planMap()
}

func (p *columnPlan) planStruct() error {
	t, ok := p.typ.(*arrow.StructType)
	if !ok {
		return p.mismatch()
	}
	for _, f := range t.Fields() {
		if err := p.add(p.node.find(f.Name), f.Name, f.Type); err != nil {
			return err
		}
	}
	p.findShape()
	return nil
}

func (p *columnPlan) planList() error {
	t, ok := p.typ.(*arrow.ListType)
	if !ok {
		return p.mismatch()
	}
	if err := p.add(p.node.children[0], "element", t.Elem()); err != nil {
		return err
	}
	p.findShape()
	return nil
}

func (p *columnPlan) planMap() error {
	t, ok := p.typ.(*arrow.MapType)
	if !ok {
		return p.mismatch()
	}
	if err := p.add(p.node.children[0], "key", t.KeyType()); err != nil {
		return err
	}
	if err := p.add(p.node.children[1], "value", t.ItemType()); err != nil {
		return err
	}
	p.findShape()
	return nil
}

func (p *columnPlan) add(n *node, name string, want arrow.DataType) error {
	c, err := planColumn(n, name, want)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.children = append(p.children, c)
	return nil
}

// findShape picks the leaf that tells the slots: one that is read anyway, or the
// first one there is.
func (p *columnPlan) findShape() {
	for _, c := range p.children {
		if c.shape != nil {
			p.shape = c.shape
			return
		}
	}
	p.shape = p.node.firstLeaf()
}

func (p *columnPlan) mismatch() error {
	what := "nested"
	if p.node.err == nil {
		what = columnar.TypeName(p.node.typ)
	}
	return fmt.Errorf("it is %s in the file, wanted is %s", what, columnar.TypeName(p.typ))
}

// columnReader reads one wanted column of one row group, batch by batch.
type columnReader struct {
	plan   *columnPlan
	leaf   *leafReader // of a column that is not nested
	nested []*nestedLeaf
	byNode map[*node]*nestedLeaf
	mem    memory.Allocator
}

// chunkOpener opens the pages of a leaf's column chunk.
type chunkOpener func(leaf *node) *chunkPages

func newColumnReader(mem memory.Allocator, p *columnPlan, zone *time.Location, codes bool, open chunkOpener) (*columnReader, error) {
	r := &columnReader{plan: p, mem: mem}
	if p.node == nil {
		return r, nil
	}
	if p.node.kind == leafNode {
		leaf, err := newLeafReader(mem, p.node, p.typ, zone, open(p.node))
		if err != nil {
			return nil, err
		}
		leaf.keepCodes = codes
		if leaf.isSame() {
			leaf.pages.sharePages(mem)
		}
		r.leaf = leaf
		return r, nil
	}
	r.byNode = map[*node]*nestedLeaf{}
	return r, r.openLeaves(p, zone, open)
}

func (r *columnReader) openLeaves(p *columnPlan, zone *time.Location, open chunkOpener) error {
	if p.shape == nil {
		return nil
	}
	for _, c := range p.children {
		if err := r.openLeaves(c, zone, open); err != nil {
			return err
		}
	}
	if r.byNode[p.shape] != nil {
		return nil
	}
	want := p.shape.typ
	if p.node.kind == leafNode {
		want = p.typ
	} else if p.shape.err != nil {
		return p.shape.err
	}
	leaf, err := newLeafReader(r.mem, p.shape, want, zone, open(p.shape))
	if err != nil {
		return err
	}
	n := &nestedLeaf{leafReader: leaf}
	r.byNode[p.shape] = n
	r.nested = append(r.nested, n)
	return nil
}

func (r *columnReader) close() {
	if r.leaf != nil {
		r.leaf.close()
	}
	for _, n := range r.nested {
		n.close()
	}
}

// skip passes over the next n rows. Of a nested column they are decoded, at most batch at
// a time.
func (r *columnReader) skip(n int64, batch int) error {
	if r.plan.node == nil {
		return nil
	}
	if r.leaf != nil {
		return r.leaf.skipRows(n, batch)
	}
	for n > 0 {
		k := int(min(n, int64(batch)))
		a, err := r.read(k)
		if err != nil {
			return err
		}
		a.Release()
		n -= int64(k)
	}
	return nil
}

// end checks, after the last row of the row group, that nothing is left.
func (r *columnReader) end() error {
	if r.leaf != nil {
		return r.leaf.endChunk()
	}
	for _, n := range r.nested {
		if err := n.endChunk(); err != nil {
			return err
		}
	}
	return nil
}

// read makes the array of the next n rows.
func (r *columnReader) read(n int) (arrow.Array, error) {
	switch {
	case r.plan.node == nil:
		return nullArray(r.mem, r.plan.typ, n), nil
	case r.leaf != nil:
		if a, err := r.leaf.sliceRows(n); a != nil || err != nil {
			return a, err
		}
		r.leaf.vector.reset(n)
		if err := r.leaf.readRows(n); err != nil {
			return nil, err
		}
		return r.leaf.take(), nil
	}
	defer func() {
		for _, leaf := range r.nested {
			if leaf.array != nil {
				leaf.array.Release()
				leaf.array = nil
			}
		}
	}()
	for _, leaf := range r.nested {
		leaf.vector.reset(n)
		if err := leaf.readNested(n); err != nil {
			return nil, err
		}
		leaf.array = leaf.take()
	}
	a, err := r.assemble(r.plan)
	if err == nil && a.Len() != n {
		a.Release()
		err = errors.New("its levels do not make whole rows")
	}
	return a, err
}
