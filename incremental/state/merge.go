package state

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"

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
// Memory is one batch a file, of the files whose keys have their turn: those that begin
// later wait.
type merger struct {
	layout  layout
	mem     memory.Allocator
	sources []*mergeSource // by age, the oldest first
	heap    mergeHeap
	order   int  // position of the order column, -1
	changes bool // the result is changes: deleted rows are part of it
	rows    []int32
	last    []byte
	codec   *keyenc.Codec
	spare   keyenc.Keys // of a file that was read to its end
}

// mergeSource is one file being read.
type mergeSource struct {
	reader   *stateReader
	least    []byte // the first key
	waiting  bool   // nothing else was read yet
	age      int
	bound    int64 // the largest bound of later files: rows at or below it are gone
	evicted  bool  // bound counts
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

// start reads the first rows of the files that come first.
func (m *merger) start(ctx context.Context) (err error) {
	if m.codec, err = keyenc.New(m.layout.sortTypes(), nil); err != nil {
		return err
	}
	bound, evicted := int64(math.MinInt64), false
	for i := len(m.sources) - 1; i >= 0; i-- {
		s := m.sources[i]
		s.bound, s.evicted = bound, evicted
		if b := s.reader.bound; b != nil {
			bound, evicted = max(bound, *b), true
		}
		if err := s.wait(ctx, m); err != nil {
			return err
		}
		if !s.waiting {
			ok, err := s.advance(ctx, m)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
		}
		m.heap = append(m.heap, s)
	}
	heap.Init(&m.heap)
	return m.wake(ctx)
}

// wait lets a file wait for its turn, which its first key tells. Without a key there is one
// row at most.
func (s *mergeSource) wait(ctx context.Context, m *merger) error {
	if m.layout.keys == 0 {
		return nil
	}
	positions := make([]int, m.layout.keys)
	for i := range positions {
		positions[i] = i
	}
	if m.layout.multi {
		positions = append(positions, len(m.layout.fields)) // the row number
	}
	first, err := s.reader.file.FirstRow(ctx, m.mem, positions)
	if err != nil || first == nil {
		return err
	}
	defer first.Release()
	var keys keyenc.Keys
	if err := m.codec.Encode(first.Columns(), &keys); err != nil {
		return err
	}
	s.least, s.waiting = keys.Key(0), true
	return nil
}

// wake reads the first rows of files that waited, until the top of the heap is a row.
func (m *merger) wake(ctx context.Context) error {
	for len(m.heap) > 0 && m.heap[0].waiting {
		s := m.heap[0]
		s.waiting = false
		s.keys, m.spare = m.spare, keyenc.Keys{}
		s.keys.Reset()
		ok, err := s.advance(ctx, m)
		if err != nil {
			return err
		}
		if !ok {
			heap.Pop(&m.heap)
			continue
		}
		heap.Fix(&m.heap, 0)
	}
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
	} else if err := m.codec.Encode(key, &s.keys); err != nil {
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

// key is that of the current row.
func (s *mergeSource) key() []byte {
	if s.waiting {
		return s.least
	}
	return s.keys.Key(s.row)
}

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
	return s.firstFrom(s.row+1, other)
}

// firstFrom is the first row from a row on whose key is not below other. Mostly it is near,
// where files overlap, or far, where they do not.
func (s *mergeSource) firstFrom(row int, other []byte) int {
	n, step := s.keys.Len(), 1
	below := func(i int) bool { return bytes.Compare(s.keys.Key(i), other) < 0 }
	for row+step <= n && below(row+step-1) {
		row += step
		step *= 2
	}
	end := min(row+step, n)
	return row + sort.Search(end-row, func(i int) bool { return !below(row + i) })
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
			m.spare = s.keys
			heap.Pop(&m.heap)
			return m.wake(ctx)
		}
	}
	heap.Fix(&m.heap, 0)
	return m.wake(ctx)
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
	for refs := c.refs; len(refs) > 0; {
		b, n, err := c.some(narrow, refs)
		if err != nil {
			return err
		}
		refs = refs[n:]
		err = yield(b)
		b.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// longRun is how many rows that follow each other in one batch are handed on as they are
// rather than copied.
const longRun = 1024

// some is the rows of the first n of refs.
func (c *collector) some(batches []arrow.RecordBatch, refs []kernel.Ref) (b arrow.RecordBatch, n int, err error) {
	refs = refs[:min(len(refs), columnar.DefaultBatchRows)]
	if n = following(refs); n >= longRun {
		from := int64(refs[0].Row())
		return batches[refs[0]>>32].NewSlice(from, from+int64(n)), n, nil
	}
	for n < len(refs) {
		next := following(refs[n:])
		if next >= longRun {
			break
		}
		n += next
	}
	b, err = kernel.GatherBatch(c.mem, c.schema, batches, refs[:n])
	return b, n, err
}

// following is how many of refs, from the first on, follow each other in one batch.
func following(refs []kernel.Ref) int {
	n := 1
	for n < len(refs) && refs[n] == refs[n-1]+1 {
		n++
	}
	return n
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
