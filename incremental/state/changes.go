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

// changes are the rows of a change file, unsorted.
type changes struct {
	schema  *arrow.Schema
	mem     memory.Allocator
	batches []arrow.RecordBatch
	rows    int
	deletes bool // some rows are deleted ones
}

func (c *changes) release() {
	for _, b := range c.batches {
		b.Release()
	}
}

// takeAdd makes a batch of columns, to which the mark of deleted rows is added. It
// consumes them.
func (c *changes) takeAdd(columns []arrow.Array, n int, deleted bool) {
	columns = append(columns, allBooleans(c.mem, n, deleted))
	c.batches = append(c.batches, array.NewRecordBatch(c.schema, columns, int64(n)))
	releaseAll(columns)
	c.rows += n
	c.deletes = c.deletes || deleted
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

// gather is some rows of the file, in the order of refs. Mostly none of them is a deleted
// one: then the last column, which would say so, need not be gathered.
func (c *changes) gather(refs []kernel.Ref) (arrow.RecordBatch, error) {
	if c.deletes {
		return kernel.GatherBatch(c.mem, c.schema, c.batches, refs)
	}
	columns := make([]arrow.Array, 0, c.schema.NumFields())
	defer func() { releaseAll(columns) }()
	for i := range c.schema.NumFields() - 1 {
		sources := make([]arrow.Array, len(c.batches))
		for k, b := range c.batches {
			sources[k] = b.Column(i)
		}
		column, err := kernel.Gather(c.mem, sources, refs)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.schema.Field(i).Name, err)
		}
		columns = append(columns, column)
	}
	columns = append(columns, allBooleans(c.mem, len(refs), false))
	return array.NewRecordBatch(c.schema, columns, int64(len(refs))), nil
}

// sorted is the order of the file: by key, then row number. Of a key that was deleted
// and made again only the new row stays.
func (c *changes) sorted(l *layout, t *TableSchema) ([]kernel.Ref, error) {
	keys, err := c.sortKeys(l, t)
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
		for _, b := range c.batches {
			keys[0].Columns = append(keys[0].Columns, array.NewNull(int(b.NumRows())))
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
func (c *changes) sortKeys(l *layout, t *TableSchema) ([]kernel.SortKey, error) {
	var keys []kernel.SortKey
	for k, dt := range l.sortTypes() {
		at := k
		if k == l.keys {
			at = len(l.fields) // the row number
		}
		if t.derives(k) {
			continue
		}
		var key kernel.SortKey
		for _, b := range c.batches {
			column := b.Column(at)
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
