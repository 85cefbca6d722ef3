package state

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// Table is a named part of a Store, split into Shards by key hash.
type Table struct {
	schema TableSchema
	layout layout
	opts   Options
	shards []*Shard
	states []int // state columns of each accumulator
}

func newTable(schema TableSchema, opts Options, acct *account) (_ *Table, err error) {
	if err := schema.check(); err != nil {
		return nil, err
	}
	t := &Table{schema: schema, opts: opts}
	t.layout = layout{table: schema.Name, keys: len(schema.Key), multi: schema.MultiRow, order: schema.orderColumn()}
	for _, f := range slices.Concat(schema.Key, schema.Values) {
		t.layout.fields = append(t.layout.fields, columnar.Field(f.Name, f.Type))
	}
	for i := range opts.Shards {
		s, err := newShard(&t.schema, opts, acct, i, opts.Shards)
		if err != nil {
			t.release()
			return nil, err
		}
		t.shards = append(t.shards, s)
	}
	for i, acc := range t.shards[0].accs {
		fields := stateColumns(schema.Aggregates[i].Name, acc)
		t.states = append(t.states, len(fields))
		t.layout.fields = append(t.layout.fields, fields...)
	}
	if err := t.checkNames(); err != nil {
		t.release()
		return nil, err
	}
	return t, nil
}

func (t *Table) checkNames() error {
	seen := map[string]bool{}
	for _, f := range t.layout.fields {
		if seen[f.Name] || strings.HasPrefix(f.Name, "__") {
			return fmt.Errorf("bug: state table %s has a column %q twice, or it begins with two underscores", t.schema.Name, f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

func (t *Table) release() {
	for _, s := range t.shards {
		s.release()
	}
}

// Schema is what the table was made for; it is not to be changed.
func (t *Table) Schema() *TableSchema { return &t.schema }

// Shards are the parts of the table, to be shared out among workers.
func (t *Table) Shards() []*Shard { return t.shards }

// PartitionSeed is the seed under which kernel.Hash of a key's columns tells its shard.
const PartitionSeed uint64 = 0x5bd1e9955bd1e995

// ShardOf is the number of the shard, of n, that keys with this hash fall to.
func ShardOf(hash uint64, n int) int { return int(hash >> 32 * uint64(n) >> 32) }

// Partition puts the number of the shard of each key into shards.
func (t *Table) Partition(keys []arrow.Array, shards []int32) {
	if len(t.shards) == 1 || len(keys) == 0 {
		clear(shards)
		return
	}
	hashes := make([]uint64, len(shards))
	kernel.Hash(hashes, keys, PartitionSeed)
	for i, h := range hashes {
		shards[i] = int32(ShardOf(h, len(t.shards)))
	}
}

// Len is the number of rows of all shards.
func (t *Table) Len() int {
	n := 0
	for _, s := range t.shards {
		n += s.Len()
	}
	return n
}

// Bytes is the memory held by all shards.
func (t *Table) Bytes() int64 {
	n := int64(0)
	for _, s := range t.shards {
		n += s.Bytes()
	}
	return n
}

// commit writes the change file from version from to version to; nil if nothing
// changed.
func (t *Table) commit(ctx context.Context, files Files, operator string, from, to int64) (*checkpoint.StateFile, error) {
	c := changes{schema: t.layout.schema(checkpoint.Change), mem: t.opts.Mem, shards: t.shards, keys: t.layout.keys, multi: t.layout.multi}
	defer c.release()
	bound, err := t.bound()
	if err != nil {
		return nil, err
	}
	for i, s := range t.shards {
		if err := s.collectChanges(&c, i); err != nil {
			return nil, err
		}
	}
	if c.rows == 0 && bound == nil {
		return nil, nil
	}
	refs, err := c.sorted(t)
	if err != nil {
		return nil, err
	}
	f := checkpoint.StateFile{Table: t.schema.Name, Kind: checkpoint.Change, From: from, To: to, EvictionBound: bound}
	f, err = writeFile(files, operator, &t.layout, f, func(write func(arrow.RecordBatch) error) error {
		for size := t.handful(); len(refs) > 0; {
			if err := ctx.Err(); err != nil {
				return err
			}
			some := refs[:min(size, len(refs))]
			refs = refs[len(some):]
			b, err := c.gather(some)
			if err != nil {
				return err
			}
			err = write(b)
			b.Release()
			if err != nil {
				return err
			}
		}
		return nil
	})
	return &f, err
}

// joinsChanges says whether change files of the table may be joined without the first file.
// An evicted row that had another place in the order before would have to hide that.
func (t *Table) joinsChanges() bool { return t.schema.Order.By != ByValueColumn }

// bound is what the shards were evicted by, nil if no row fell.
func (t *Table) bound() (*int64, error) {
	var bound *int64
	for _, s := range t.shards {
		switch e := &s.evict; {
		case e.err != nil:
			return nil, e.err
		case e.broken:
			return nil, errEviction
		case e.any && (bound == nil || e.bound > *bound):
			bound = new(int64)
			*bound = e.bound
		}
	}
	if bound == nil {
		return nil, nil
	}
	for _, s := range t.shards {
		if p, ok := s.Min(); ok && p <= *bound && s.hasKnownBelow(*bound) {
			return nil, fmt.Errorf("bug: a shard of state table %s was not evicted up to %d", t.schema.Name, *bound)
		}
	}
	return bound, nil
}

// hasKnownBelow says whether a row at or below bound would be lost by recording the
// bound: one that this batch did not touch, and so is not written after it.
func (s *Shard) hasKnownBelow(bound int64) bool {
	lost := false
	s.order.tree.Ascend(func(it orderItem) bool {
		if it.prefix > bound {
			return false
		}
		for _, row := range s.order.ringRows(it.head, nil) {
			lost = lost || s.flags.row(row)[0]&rowTouched == 0
		}
		return !lost
	})
	return lost
}

// collectChanges adds the touched and deleted rows of shard number. What Ordered accumulators
// hold is older than all rows to come from here on.
func (s *Shard) collectChanges(c *changes, number int) error {
	if !s.unordered {
		if err := s.flush(); err != nil {
			return err
		}
	}
	touched := s.Touched()
	for _, a := range s.accs {
		if ager, ok := a.(interface{ Age(groups []uint32) }); ok {
			ager.Age(touched)
		}
	}
	for from := 0; from < len(touched); from += segmentRows {
		rows := touched[from:min(from+segmentRows, len(touched))]
		sorted, err := s.keys.gather(s.mem, rows, nil)
		if err != nil {
			return err
		}
		if s.schema.MultiRow {
			sorted = append(sorted, s.sequence(rows))
		}
		c.takeAdd(changedRows{shard: number, rows: rows, sorted: sorted, n: len(rows)})
	}
	for _, t := range s.gone {
		sorted := slices.Clone(t.keys)
		if s.schema.MultiRow {
			sorted = append(sorted, t.seq)
		}
		for _, a := range sorted {
			a.Retain()
		}
		c.takeAdd(changedRows{shard: number, sorted: sorted, n: t.n})
	}
	return nil
}

// fileColumns are the columns of rows as files have them, without __deleted.
func (s *Shard) fileColumns(rows []uint32) ([]arrow.Array, error) {
	columns, err := s.keys.gather(s.mem, rows, nil)
	if err != nil {
		return nil, err
	}
	values, err := s.values.gather(s.mem, rows, nil)
	if err != nil {
		releaseAll(columns)
		return nil, err
	}
	columns = append(columns, values...)
	for _, a := range s.accs {
		state, err := a.State(rows)
		if err != nil {
			releaseAll(columns)
			return nil, err
		}
		columns = append(columns, state...)
	}
	if s.schema.MultiRow {
		columns = append(columns, s.sequence(rows))
	}
	return columns, nil
}

// committed forgets what the change file holds, and tidies up.
func (t *Table) committed() error {
	for _, s := range t.shards {
		for _, row := range s.touched {
			s.flags.row(row)[0] &^= rowTouched | rowFresh | rowListed
		}
		s.touched = s.touched[:0]
		if cap(s.touched) > 4*segmentRows {
			s.touched = nil
		}
		s.dropTombstones()
		s.evict = eviction{}
		if err := s.compact(segmentRows); err != nil {
			return err
		}
		s.tidy()
		if err := s.Reserve(); err != nil {
			return err
		}
	}
	return nil
}
