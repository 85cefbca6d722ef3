package state

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

// changes are the rows of a change file, unsorted. Only what orders them is copied out of
// the shards; what else they hold is when they are written, some at a time.
type changes struct {
	schema  *arrow.Schema
	mem     memory.Allocator
	shards  []*Shard
	keys    int  // columns of the key
	multi   bool // there are row numbers
	parts   []changedRows
	rows    int
	deletes bool // some rows are deleted ones
}

// changedRows are rows of a shard, or rows that it has deleted.
type changedRows struct {
	shard int
	rows  []uint32 // nil: deleted
	// sorted is the key columns and, of multi-row tables, the row number: all that a deleted
	// row has.
	sorted []arrow.Array
	n      int
}

func (c *changes) release() {
	for _, p := range c.parts {
		releaseAll(p.sorted)
	}
}

// takeAdd adds rows, of which it takes sorted over.
func (c *changes) takeAdd(p changedRows) {
	c.parts = append(c.parts, p)
	c.rows += p.n
	c.deletes = c.deletes || p.rows == nil
}

// gather is some rows of the file, in the order of refs. Mostly none of them is a deleted
// one: then the last column, which would say so, need not be gathered.
func (c *changes) gather(refs []kernel.Ref) (arrow.RecordBatch, error) {
	batches, order, err := c.sources(refs)
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	if err != nil {
		return nil, err
	}
	if len(batches) == 1 { // in order already
		batches[0].Retain()
		return batches[0], nil
	}
	if c.deletes {
		return kernel.GatherBatch(c.mem, c.schema, batches, order)
	}
	columns := make([]arrow.Array, 0, c.schema.NumFields())
	defer func() { releaseAll(columns) }()
	for i := range c.schema.NumFields() - 1 {
		sources := make([]arrow.Array, len(batches))
		for k, b := range batches {
			sources[k] = b.Column(i)
		}
		column, err := kernel.Gather(c.mem, sources, order)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.schema.Field(i).Name, err)
		}
		columns = append(columns, column)
	}
	columns = append(columns, allBooleans(c.mem, len(refs), false))
	return array.NewRecordBatch(c.schema, columns, int64(len(refs))), nil
}

// sources are the rows that refs name, a batch of each shard that has some and one of those
// that are deleted, and the places of refs in them.
func (c *changes) sources(refs []kernel.Ref) (batches []arrow.RecordBatch, order []kernel.Ref, err error) {
	living := make([][]uint32, len(c.shards))
	var deleted []kernel.Ref
	order = make([]kernel.Ref, len(refs))
	for i, ref := range refs {
		p := &c.parts[ref.Batch()]
		if p.rows == nil {
			order[i] = kernel.MakeRef(len(living), len(deleted))
			deleted = append(deleted, ref)
			continue
		}
		order[i] = kernel.MakeRef(p.shard, len(living[p.shard]))
		living[p.shard] = append(living[p.shard], p.rows[ref.Row()])
	}
	place := make([]int, len(living)+1)
	for i, rows := range living {
		place[i] = len(batches)
		if len(rows) == 0 {
			continue
		}
		columns, err := c.shards[i].fileColumns(rows)
		if err != nil {
			return batches, nil, err
		}
		batches = append(batches, c.takeBatch(columns, len(rows), false))
	}
	place[len(living)] = len(batches)
	if len(deleted) > 0 {
		columns, err := c.deletedColumns(deleted)
		if err != nil {
			return batches, nil, err
		}
		batches = append(batches, c.takeBatch(columns, len(deleted), true))
	}
	for i, ref := range order {
		order[i] = kernel.MakeRef(place[ref.Batch()], ref.Row())
	}
	return batches, order, nil
}

// takeBatch makes a batch of columns, which it consumes, and the mark of deleted rows.
func (c *changes) takeBatch(columns []arrow.Array, n int, deleted bool) arrow.RecordBatch {
	columns = append(columns, allBooleans(c.mem, n, deleted))
	defer releaseAll(columns)
	return array.NewRecordBatch(c.schema, columns, int64(n))
}

// deletedColumns are those of deleted rows, which have a key and a number but no values.
func (c *changes) deletedColumns(refs []kernel.Ref) ([]arrow.Array, error) {
	fields := c.schema.NumFields() - 1
	columns := make([]arrow.Array, 0, fields)
	of := func(number int) error {
		sources := make([]arrow.Array, len(c.parts))
		for i, p := range c.parts {
			sources[i] = p.sorted[number]
		}
		a, err := kernel.Gather(c.mem, sources, refs)
		if err == nil {
			columns = append(columns, a)
		}
		return err
	}
	for i := range c.keys {
		if err := of(i); err != nil {
			releaseAll(columns)
			return nil, err
		}
	}
	values := fields
	if c.multi {
		values--
	}
	for i := c.keys; i < values; i++ {
		columns = append(columns, columnar.Nulls(c.mem, c.schema.Field(i).Type, len(refs)))
	}
	if c.multi {
		if err := of(c.keys); err != nil {
			releaseAll(columns)
			return nil, err
		}
	}
	return columns, nil
}

// allBooleans is a column of one value.
func allBooleans(mem memory.Allocator, n int, v bool) arrow.Array {
	bits := memory.NewResizableBuffer(mem)
	defer bits.Release()
	bits.Resize((n + 7) / 8)
	b := bits.Bytes()
	clear(b)
	for i := range b {
		if v {
			b[i] = 0xFF
		}
	}
	d := array.NewData(columnar.Boolean, n, []*memory.Buffer{nil, bits}, nil, 0, 0)
	defer d.Release()
	return array.MakeFromData(d)
}

// sorted is the order of the file: by key, then row number. Of a key that was deleted
// and made again only the new row stays.
func (c *changes) sorted(t *Table) ([]kernel.Ref, error) {
	keys, err := c.sortKeys(t)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, k := range keys {
			releaseAll(k.Columns)
		}
	}()
	if len(keys) == 0 { // one group without a key
		keys = []kernel.SortKey{{}}
		for _, p := range c.parts {
			keys[0].Columns = append(keys[0].Columns, array.NewNull(p.n))
		}
	}
	refs := kernel.Sort(keys)
	if !c.deletes {
		return refs, nil
	}
	// Sort is stable and a shard's new rows are collected before those it deleted.
	order := kernel.NewComparer(keys)
	return slices.CompactFunc(refs, func(a, b kernel.Ref) bool { return order.Compare(a, b) == 0 }), nil
}

// sortKeys are the columns a file is sorted by, in the order that keyenc gives their
// types: which for some types kernel.Sort does not know. A derived column follows the
// earlier one that tells it.
func (c *changes) sortKeys(t *Table) ([]kernel.SortKey, error) {
	var keys []kernel.SortKey
	for k, dt := range t.layout.sortTypes() {
		if t.schema.derives(k) {
			continue
		}
		var key kernel.SortKey
		for _, p := range c.parts {
			column := p.sorted[k]
			if sortsAsKeyenc(dt) {
				column.Retain()
			} else {
				var err error
				if column, err = encoded(c.mem, column); err != nil {
					for _, k := range append(keys, key) {
						releaseAll(k.Columns)
					}
					return nil, err
				}
			}
			key.Columns = append(key.Columns, column)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// sortsAsKeyenc says whether kernel.Sort orders a type as keyenc does, quickly.
func sortsAsKeyenc(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.LIST, arrow.STRUCT, arrow.MAP, arrow.INTERVAL_MONTH_DAY_NANO:
		return false
	}
	return true
}

// encoded is a column in order-preserving bytes.
func encoded(mem memory.Allocator, column arrow.Array) (arrow.Array, error) {
	codec, err := keyenc.New([]arrow.DataType{column.DataType()}, nil)
	if err != nil {
		return nil, err
	}
	var keys keyenc.Keys
	if err := codec.Encode([]arrow.Array{column}, &keys); err != nil {
		return nil, err
	}
	b := array.NewBinaryBuilder(mem, arrow.BinaryTypes.Binary)
	defer b.Release()
	b.Reserve(keys.Len())
	for i := range keys.Len() {
		b.Append(keys.Key(i))
	}
	return b.NewArray(), nil
}
