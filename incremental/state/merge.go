package state

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

// merger merges the files of a table, which are sorted by key, into the rows of the
// version they make up, in order of key.
// Memory is one batch a file.
type merger struct {
	layout  layout
	mem     memory.Allocator
	sources []*mergeSource // by age, the oldest first
	heap    mergeHeap
	order   int  // position of the order column, -1
	changes bool // the result is changes: deleted rows are part of it
	rows    []int32
	last    []byte
}

// mergeSource is one file being read.
type mergeSource struct {
	reader   *stateReader
	age      int
	bound    int64 // the largest bound of later files: rows at or below it are gone
	evicted  bool  // bound counts
	codec    *keyenc.Codec
	batch    arrow.RecordBatch
	keys     keyenc.Keys
	row      int
	deleted  *array.Boolean
	prefixes []int64
	name     string
	rows     int
	last     []byte // key of the row before, to find files out of order
}

// newMerger opens the files of a table, in the order of checkpoint.OperatorState.
func newMerger(ctx context.Context, mem memory.Allocator, opener FileOpener, operator string, files []checkpoint.StateFile) (*merger, error) {
	m, err := openFiles(mem, opener, operator, files)
	if err != nil {
		return nil, err
	}
	if err := m.start(ctx); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// openFiles is a merger that has not read any row.
func openFiles(mem memory.Allocator, opener FileOpener, operator string, files []checkpoint.StateFile) (_ *merger, err error) {
	m := &merger{mem: mem}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	for i, f := range files {
		r, err := openFile(mem, opener, operator, f)
		if err != nil {
			return nil, err
		}
		m.sources = append(m.sources, &mergeSource{reader: r, age: i, name: f.Name, rows: int(f.Rows)})
		if i == 0 {
			m.layout = r.layout
		} else if !m.layout.same(&r.layout) {
			return nil, fmt.Errorf("%w: %s has other columns than %s", checkpoint.ErrCorrupt, f.Name, files[0].Name)
		}
	}
	m.order = m.layout.orderIndex()
	return m, nil
}

// start reads the first rows of each file.
func (m *merger) start(ctx context.Context) (err error) {
	bound, evicted := int64(math.MinInt64), false
	for i := len(m.sources) - 1; i >= 0; i-- {
		s := m.sources[i]
		if s.codec, err = keyenc.New(m.layout.sortTypes(), nil); err != nil {
			return err
		}
		s.bound, s.evicted = bound, evicted
		if b := s.reader.bound; b != nil {
			bound, evicted = max(bound, *b), true
		}
		ok, err := s.advance(ctx, m)
		if err != nil {
			return err
		}
		if ok {
			m.heap = append(m.heap, s)
		}
	}
	heap.Init(&m.heap)
	return nil
}

func (m *merger) close() error {
	var errs []error
	for _, s := range m.sources {
		s.drop()
		errs = append(errs, s.reader.Close())
	}
	m.sources, m.heap = nil, nil
	return errors.Join(errs...)
}

func (s *mergeSource) drop() {
	if s.batch != nil {
		s.batch.Release()
		s.batch = nil
	}
}

// advance reads the next batch and encodes its keys; ok is false at the end.
func (s *mergeSource) advance(ctx context.Context, m *merger) (ok bool, err error) {
	if n := s.keys.Len(); n > 0 {
		s.last = append(s.last[:0], s.keys.Key(n-1)...)
	}
	s.drop()
	b, err := s.reader.Next(ctx)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.batch, s.row, s.deleted = b, 0, nil
	columns := b.Columns()
	key := append([]arrow.Array(nil), columns[:m.layout.keys]...)
	next := len(m.layout.fields)
	if m.layout.multi {
		key = append(key, columns[next])
		next++
	}
	if next < len(columns) {
		s.deleted = columns[next].(*array.Boolean)
	}
	s.keys.Reset()
	if len(key) == 0 { // one row at most: every key is the same
		for range b.NumRows() {
			s.keys.Append(nil)
		}
	} else if err := s.codec.Encode(key, &s.keys); err != nil {
		return false, err
	}
	return true, s.checkOrder()
}

// checkOrder makes sure that the merge may trust the file.
func (s *mergeSource) checkOrder() error {
	prev := s.last
	for i := range s.keys.Len() {
		k := s.keys.Key(i)
		if prev != nil && bytes.Compare(prev, k) >= 0 {
			return fmt.Errorf("%w: %s is not in the order of its keys", checkpoint.ErrCorrupt, s.name)
		}
		prev = k
	}
	return nil
}

func (s *mergeSource) key() []byte { return s.keys.Key(s.row) }

// mergeHeap has the smallest key on top; of equal ones the newest file.
type mergeHeap []*mergeSource

func (h mergeHeap) Len() int { return len(h) }
func (h mergeHeap) Less(i, j int) bool {
	if c := bytes.Compare(h[i].key(), h[j].key()); c != 0 {
		return c < 0
	}
	return h[i].age > h[j].age
}
func (h mergeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *mergeHeap) Push(x any)   { *h = append(*h, x.(*mergeSource)) }
func (h *mergeHeap) Pop() any {
	s := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return s
}

// run is consecutive rows of one batch that are part of the state.
type run struct {
	batch arrow.RecordBatch
	rows  []int32
}

// each gives the rows of the state in order of key. The run is borrowed for the call.
func (m *merger) each(ctx context.Context, yield func(run) error) error {
	for len(m.heap) > 0 {
		if err := m.step(ctx, yield); err != nil {
			return err
		}
	}
	return nil
}

// step merges one run.
func (m *merger) step(ctx context.Context, yield func(run) error) error {
	s := m.heap[0]
	end := m.runEnd(s)
	m.rows = m.living(s, end)
	if len(m.rows) > 0 {
		if err := yield(run{s.batch, m.rows}); err != nil {
			return err
		}
	}
	m.last = append(m.last[:0], s.keys.Key(end-1)...)
	s.row = end
	if err := m.fix(ctx); err != nil {
		return err
	}
	// Older rows of the same key are superseded.
	for len(m.heap) > 0 && bytes.Equal(m.heap[0].key(), m.last) {
		m.heap[0].row++
		if err := m.fix(ctx); err != nil {
			return err
		}
	}
	return nil
}

// runEnd is how far the rows of s come before those of any other file: at least one.
func (m *merger) runEnd(s *mergeSource) int {
	n := s.keys.Len()
	var other []byte
	for _, i := range []int{1, 2} {
		if i < len(m.heap) {
			if k := m.heap[i].key(); other == nil || bytes.Compare(k, other) < 0 {
				other = k
			}
		}
	}
	if other == nil || bytes.Compare(s.keys.Key(n-1), other) < 0 {
		return n
	}
	end := s.row + 1
	for end < n && bytes.Compare(s.keys.Key(end), other) < 0 {
		end++
	}
	return end
}

// fix restores the heap after its top has moved, reading on if its batch is used up.
func (m *merger) fix(ctx context.Context) error {
	s := m.heap[0]
	if s.row == s.keys.Len() {
		ok, err := s.advance(ctx, m)
		if err != nil {
			return err
		}
		if !ok {
			heap.Pop(&m.heap)
			return nil
		}
	}
	heap.Fix(&m.heap, 0)
	return nil
}

// living are the rows of s from the current one to end that are neither deleted nor evicted
// by a later file.
func (m *merger) living(s *mergeSource, end int) []int32 {
	rows := m.rows[:0]
	evicted := s.evicted && m.order >= 0
	if evicted {
		s.prefixes = resized(s.prefixes, end)
		readPrefixes(s.prefixes, s.batch.Column(m.order), s.row)
	}
	deleted := s.deleted
	if m.changes {
		deleted = nil
	}
	for i := s.row; i < end; i++ {
		if deleted != nil && deleted.IsValid(i) && deleted.Value(i) || evicted && s.prefixes[i] <= s.bound {
			continue
		}
		rows = append(rows, int32(i))
	}
	return rows
}

// readPrefixes writes the order prefixes of an order column to dst, from row from on.
func readPrefixes(dst []int64, a arrow.Array, from int) {
	if len(dst) == 0 {
		return
	}
	switch a.DataType().ID() {
	case arrow.INT8:
		widen(dst, raw[int8](a, 1), from)
	case arrow.INT16:
		widen(dst, raw[int16](a, 1), from)
	case arrow.INT32, arrow.DATE32:
		widen(dst, raw[int32](a, 1), from)
	default:
		widen(dst, raw[int64](a, 1), from)
	}
	if a.NullN() == 0 {
		return
	}
	for i := from; i < len(dst); i++ {
		if a.IsNull(i) {
			dst[i] = neverEvicted
		}
	}
}

func widen[T int8 | int16 | int32 | int64](dst []int64, src []T, from int) {
	for i := from; i < len(dst); i++ {
		dst[i] = int64(src[i])
	}
}

// batches gives the merged rows as batches of about DefaultBatchRows with the columns
// of a kind of file: changes have the deleted rows, too. They are borrowed for the call.
func (m *merger) batches(ctx context.Context, kind checkpoint.FileKind, yield func(arrow.RecordBatch) error) error {
	m.changes = kind == checkpoint.Change
	c := newCollector(m.mem, &m.layout, kind)
	defer c.drop()
	err := m.each(ctx, func(r run) error {
		c.add(r)
		if len(c.refs) < columnar.DefaultBatchRows {
			return nil
		}
		return c.flush(yield)
	})
	if err != nil {
		return err
	}
	return c.flush(yield)
}

// collector puts runs together into batches.
type collector struct {
	mem     memory.Allocator
	schema  *arrow.Schema
	columns int
	batches []arrow.RecordBatch
	refs    []kernel.Ref
}

func newCollector(mem memory.Allocator, l *layout, kind checkpoint.FileKind) *collector {
	schema := l.schema(kind)
	return &collector{mem: mem, schema: schema, columns: schema.NumFields()}
}

func (c *collector) add(r run) {
	at := len(c.batches) - 1
	for at >= 0 && c.batches[at] != r.batch {
		at--
	}
	if at < 0 {
		at = len(c.batches)
		r.batch.Retain()
		c.batches = append(c.batches, r.batch)
	}
	for _, row := range r.rows {
		c.refs = append(c.refs, kernel.MakeRef(at, int(row)))
	}
}

func (c *collector) drop() {
	for _, b := range c.batches {
		b.Release()
	}
	c.batches, c.refs = c.batches[:0], c.refs[:0]
}

func (c *collector) flush(yield func(arrow.RecordBatch) error) error {
	defer c.drop()
	if len(c.refs) == 0 {
		return nil
	}
	narrow := make([]arrow.RecordBatch, len(c.batches))
	for i, b := range c.batches {
		narrow[i] = array.NewRecordBatch(c.schema, b.Columns()[:c.columns], b.NumRows())
		defer narrow[i].Release()
	}
	for from := 0; from < len(c.refs); from += columnar.DefaultBatchRows {
		part := c.refs[from:min(from+columnar.DefaultBatchRows, len(c.refs))]
		b, err := kernel.GatherBatch(c.mem, c.schema, narrow, part)
		if err != nil {
			return err
		}
		err = yield(b)
		b.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// Scan reads a table of a version of an operator's state, in order of key: the key,
// the values, the accumulators' state, and __row in multi-row tables. It needs nothing
// but the files. The Reader must be closed.
func Scan(ctx context.Context, mem memory.Allocator, opener FileOpener, version checkpoint.OperatorState, table string) (columnar.Reader, error) {
	files := version.TableFiles(table)
	if len(files) == 0 {
		return nil, fmt.Errorf("operator %s has no files of a table %q at version %d", version.Operator, table, version.Version)
	}
	m, err := newMerger(ctx, mem, opener, version.Operator, files)
	if err != nil {
		return nil, err
	}
	return &scanReader{m: m, c: newCollector(mem, &m.layout, checkpoint.Snapshot)}, nil
}

// scanReader is the merge as a Reader.
type scanReader struct {
	m     *merger
	c     *collector
	ready []arrow.RecordBatch
}

func (r *scanReader) Schema() *arrow.Schema { return r.c.schema }

func (r *scanReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.m == nil {
		return nil, io.EOF
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(r.ready) == 0 {
		if err := r.fill(ctx); err != nil {
			return nil, err
		}
	}
	if len(r.ready) == 0 {
		return nil, io.EOF
	}
	b := r.ready[0]
	r.ready = r.ready[1:]
	return b, nil
}

// fill merges on until there is a batch.
func (r *scanReader) fill(ctx context.Context) error {
	for len(r.m.heap) > 0 && len(r.c.refs) < columnar.DefaultBatchRows {
		if err := r.m.step(ctx, func(x run) error { r.c.add(x); return nil }); err != nil {
			return err
		}
	}
	return r.c.flush(func(b arrow.RecordBatch) error {
		b.Retain()
		r.ready = append(r.ready, b)
		return nil
	})
}

func (r *scanReader) Close() error {
	if r.m == nil {
		return nil
	}
	for _, b := range r.ready {
		b.Release()
	}
	r.c.drop()
	err := r.m.close()
	r.m, r.ready = nil, nil
	return err
}
