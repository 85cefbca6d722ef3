package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// load fills an empty table with the rows that its files make up. The rows of one key of a
// multi-row table have an order, which is that of the merge. Where a key has one row, the
// files are read from the newest to the oldest, and what is there already stays: no order
// is needed, and nothing is compared but keys that are equal.
func (t *Table) load(ctx context.Context, opener FileOpener, operator string, files []checkpoint.StateFile) error {
	m, err := openFiles(t.opts.Mem, opener, operator, files)
	if err != nil {
		return err
	}
	defer m.close()
	if !m.layout.same(&t.layout) {
		return fmt.Errorf("%w: state table %s of %s has the columns (%s), the query needs (%s)", checkpoint.ErrIncompatible, t.schema.Name, operator,
			columnar.SchemaString(arrow.NewSchema(m.layout.fields, nil)), columnar.SchemaString(arrow.NewSchema(t.layout.fields, nil)))
	}
	for _, s := range t.shards {
		s.loading = new(indexLoad)
	}
	if t.schema.MultiRow {
		if err = m.start(ctx); err == nil {
			err = t.pipe(func(take func(arrow.RecordBatch, func(arrow.RecordBatch) error) error) error {
				return m.batches(ctx, checkpoint.Snapshot, func(b arrow.RecordBatch) error { return take(b, t.loadBatch) })
			})
		}
	} else {
		err = t.loadNewest(ctx, m)
	}
	if err != nil {
		return err
	}
	return t.finishLoad()
}

// finishLoad makes the rows findable.
func (t *Table) finishLoad() error {
	last := make([]int64, len(t.shards))
	err := t.eachShard(func(i int, s *Shard) (err error) {
		last[i], err = s.finishLoad()
		return err
	})
	for i, s := range t.shards {
		s.nextSeq = slices.Max(last) + 1 + int64(i)
	}
	return err
}

// eachShard calls f for every shard, side by side.
func (t *Table) eachShard(f func(i int, s *Shard) error) error {
	var g errgroup.Group
	for i, s := range t.shards {
		g.Go(func() error { return columnar.Guard("", func() error { return f(i, s) }) })
	}
	return g.Wait()
}

// pipe lets read get the next batch while the one before is taken up.
func (t *Table) pipe(read func(take func(b arrow.RecordBatch, up func(arrow.RecordBatch) error) error) error) error {
	var before errgroup.Group
	err := read(func(b arrow.RecordBatch, up func(arrow.RecordBatch) error) error {
		if err := before.Wait(); err != nil {
			return err
		}
		b.Retain()
		before.Go(func() error {
			defer b.Release()
			return columnar.Guard("", func() error { return up(b) })
		})
		return nil
	})
	if loadErr := before.Wait(); err == nil {
		err = loadErr
	}
	return err
}

// loadNewest reads file after file, the newest first.
func (t *Table) loadNewest(ctx context.Context, m *merger) error {
	past := newerFiles{bound: math.MinInt64, order: m.layout.orderIndex()}
	if rows, evicts := m.expect(); !evicts {
		for _, s := range t.shards {
			s.expect(rows / len(t.shards))
		}
	}
	for i := len(m.sources) - 1; i >= 0; i-- {
		past.oldest = i == 0
		r := m.sources[i].reader
		err := t.pipe(func(take func(arrow.RecordBatch, func(arrow.RecordBatch) error) error) error {
			for {
				b, err := r.Next(ctx)
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				err = take(b, func(b arrow.RecordBatch) error { return t.loadOlder(b, &past) })
				b.Release()
				if err != nil {
					return err
				}
			}
		})
		if err != nil {
			return err
		}
		if r.bound != nil {
			past.bound = max(past.bound, *r.bound)
		}
		past.any = true
		err = t.eachShard(func(_ int, s *Shard) error {
			s.loading.into(&s.index)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// expect is how many rows the files have, some of them of the same key, and whether they
// record evictions: then there is no telling how many are left.
func (m *merger) expect() (rows int, evicts bool) {
	for _, s := range m.sources {
		rows += s.rows
		evicts = evicts || s.reader.bound != nil
	}
	return rows, evicts
}

// expect makes room for rows where growing is dear: a snapshot is due before files have many
// more than there are in the end.
func (s *Shard) expect(rows int) {
	s.index.expect(rows)
	s.accRoom = rows
	for _, a := range s.accs {
		a.Resize(rows)
	}
}

// newerFiles is what is known of the files that were loaded when an older one is.
type newerFiles struct {
	any    bool  // there are such files
	oldest bool  // of the one being loaded: none is older
	bound  int64 // of the evictions they record: rows at or below it are gone
	order  int   // position of the order column, -1 for none
}

// loadOlder takes up the rows of a batch that no newer file has replaced, deleted or
// evicted. What is gone must hide what older files say of its key.
func (t *Table) loadOlder(b arrow.RecordBatch, past *newerFiles) error {
	b = columnar.Plain(t.opts.Mem, b)
	defer b.Release()
	living, gone := t.sortOut(b, past)
	if living == nil {
		return t.loadBatchPast(b, past, false)
	}
	for _, part := range []struct {
		rows []int32
		gone bool
	}{{living, false}, {gone, true}} {
		if len(part.rows) == 0 || part.gone && past.oldest {
			continue
		}
		some, err := kernel.TakeBatch(t.opts.Mem, b, part.rows)
		if err != nil {
			return err
		}
		err = t.loadBatchPast(some, past, part.gone)
		some.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// sortOut divides the rows of a batch in those that live and those that are gone and hide
// older ones; both are nil if all live. A row that was evicted by its key hides nothing:
// older rows of that key were evicted with it.
func (t *Table) sortOut(b arrow.RecordBatch, past *newerFiles) (living, gone []int32) {
	var deleted *array.Boolean
	if at := len(t.layout.fields); at < int(b.NumCols()) {
		deleted = b.Column(at).(*array.Boolean)
	}
	var prefixes []int64
	if past.order >= 0 && past.bound > math.MinInt64 {
		prefixes = make([]int64, b.NumRows())
		readPrefixes(prefixes, b.Column(past.order), 0)
	}
	evictedHide := t.schema.Order.By != ByKeyColumn
	living = make([]int32, 0, b.NumRows())
	for i := range int(b.NumRows()) {
		switch {
		case deleted != nil && deleted.IsValid(i) && deleted.Value(i):
			gone = append(gone, int32(i))
		case prefixes != nil && prefixes[i] <= past.bound:
			if evictedHide {
				gone = append(gone, int32(i))
			}
		default:
			living = append(living, int32(i))
		}
	}
	if len(living) == int(b.NumRows()) {
		return nil, nil
	}
	return living, gone
}

func (t *Table) loadBatchPast(b arrow.RecordBatch, past *newerFiles, gone bool) error {
	return t.loadParts(b, func(s *Shard, part arrow.RecordBatch) error { return s.loadPast(part, t.states, past.any, gone) })
}

func (t *Table) loadBatch(b arrow.RecordBatch) error {
	return t.loadParts(b, func(s *Shard, part arrow.RecordBatch) error { return s.load(part, t.states) })
}

// loadParts gives each shard its rows.
func (t *Table) loadParts(b arrow.RecordBatch, load func(s *Shard, part arrow.RecordBatch) error) error {
	if len(t.shards) == 1 {
		return load(t.shards[0], b)
	}
	shards := make([]int32, b.NumRows())
	t.Partition(b.Columns()[:len(t.schema.Key)], shards)
	rows := make([][]int32, len(t.shards))
	for i, k := range shards {
		rows[k] = append(rows[k], int32(i))
	}
	return t.eachShard(func(k int, s *Shard) error {
		if len(rows[k]) == 0 {
			return nil
		}
		part, err := kernel.TakeBatch(t.opts.Mem, b, rows[k])
		if err != nil {
			return err
		}
		defer part.Release()
		return load(s, part)
	})
}

// load appends rows of a multi-row table; finishLoad makes them findable.
func (s *Shard) load(b arrow.RecordBatch, states []int) error {
	defer s.pk.release()
	if err := s.keys.pack(s.mem, b.Columns()[:len(s.schema.Key)], int(b.NumRows()), &s.pk, -1); err != nil {
		return err
	}
	rows := make([]uint32, s.pk.n)
	for i := range rows {
		rows[i] = s.alloc()
		s.keys.put(rows[i], &s.pk, i, s.room)
	}
	if err := s.loadValues(b.Columns(), rows, states); err != nil {
		return err
	}
	numbers := b.Column(int(b.NumCols()) - 1).(*array.Int64)
	for i, row := range rows {
		s.seq.row(row)[0] = numbers.Value(i)
	}
	return s.Reserve()
}

// loadPast appends the rows whose keys are not there yet; past says that some may be. What
// is gone takes a place, too, until finishLoad.
func (s *Shard) loadPast(b arrow.RecordBatch, states []int, past, gone bool) error {
	defer s.pk.release()
	n := int(b.NumRows())
	fresh, err := s.unknown(b.Columns()[:len(s.schema.Key)], n, past)
	if err != nil || len(fresh) == 0 {
		return err
	}
	rows := make([]uint32, len(fresh))
	for k, i := range fresh {
		rows[k] = s.alloc()
		s.keys.put(rows[k], &s.pk, int(i), s.room)
		s.loading.add(tagOf(s.pk.hashes[i]), rows[k])
	}
	if gone {
		s.loading.gone = append(s.loading.gone, rows...)
		return s.Reserve()
	}
	columns := b.Columns()
	if len(fresh) < n {
		some, err := kernel.TakeBatch(s.mem, b, fresh)
		if err != nil {
			return err
		}
		defer some.Release()
		columns = some.Columns()
	}
	if err := s.loadValues(columns, rows, states); err != nil {
		return err
	}
	return s.Reserve()
}

// unknown packs keys and returns the positions of those that no row has. They are all
// different.
func (s *Shard) unknown(keys []arrow.Array, n int, past bool) ([]int32, error) {
	if past {
		miss, err := s.lookUp(keys, n, make([]uint32, n))
		fresh := make([]int32, len(miss))
		for k, i := range miss {
			fresh[k] = int32(i)
		}
		return fresh, err
	}
	if err := s.keys.pack(s.mem, keys, n, &s.pk, -1); err != nil {
		return nil, err
	}
	s.keys.hash(&s.pk)
	fresh := make([]int32, n)
	for i := range fresh {
		fresh[i] = int32(i)
	}
	return fresh, nil
}

// loadValues sets what rows hold beside their keys, from the columns of a file.
func (s *Shard) loadValues(columns []arrow.Array, rows []uint32, states []int) error {
	columns = columns[len(s.schema.Key):]
	defer s.pv.release()
	if err := s.values.pack(s.mem, columns[:len(s.schema.Values)], len(rows), &s.pv, -1); err != nil {
		return err
	}
	columns = columns[len(s.schema.Values):]
	for i, row := range rows {
		s.values.put(row, &s.pv, i, s.room)
	}
	for i, a := range s.accs {
		if err := a.Load(rows, columns[:states[i]]); err != nil {
			return err
		}
		columns = columns[states[i]:]
	}
	return nil
}

// finishLoad builds index and order; last is the largest row number seen, -1 for none.
func (s *Shard) finishLoad() (last int64, err error) {
	last = -1
	s.loading.into(&s.index)
	s.free(s.loading.gone)
	s.loading = nil
	if s.schema.MultiRow {
		for row := range s.rowsLive {
			tag := tagOf(s.keys.hashRow(row))
			last = max(last, s.seq.row(row)[0])
			s.join(row, s.probeRow(row, tag), tag)
		}
	}
	if !s.unordered {
		if err := s.insertOrdered(slices.Collect(s.rowsLive)); err != nil {
			return last, err
		}
	}
	return last, s.Reserve()
}

// probeRow finds the first row with the key of a stored row.
func (s *Shard) probeRow(row, tag uint32) uint32 {
	p := s.index.part(tag)
	for at := p.home(tag); p.slots[at] != 0; at = (at + 1) & (len(p.slots) - 1) {
		slot := p.slots[at]
		if uint32(slot>>32) == tag && s.keys.equalRows(uint32(slot), row) {
			return uint32(slot)
		}
	}
	return noRow
}
