package state

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

// Flags of a row.
const (
	rowTouched uint8 = 1 << iota // changed since the last Commit
	rowFresh                     // made since the last Commit: no file knows it
	rowOrdered                   // in the order
	rowListed                    // the slot is in touched, whatever row it holds now
)

// probeRows is how many keys are looked up at a time: their scratch stays in cache.
const probeRows = 256

// evictRows is how many rows Evict and All hand out at a time: fewer where rows are wide.
const evictRows = columnar.DefaultBatchRows

// Shard is the part of a Table whose keys fall to it by hash. It works on batches of
// keys, never on one key. Rows are slots: they stay the same until the next Commit of
// the Store. A Shard is used by one goroutine at a time, different ones by different
// goroutines. Arrays it returns are the caller's.
type Shard struct {
	schema *TableSchema
	mem    memory.Allocator
	codec  *keyenc.Codec // of the key
	keys   *rowStore
	values *rowStore
	accs   []function.Accumulator

	index index
	order order
	same  rings           // multi-row: rows of one key
	seq   segments[int64] // multi-row: the number that stands for the row in files
	flags segments[uint8]

	live    []uint64 // bitmap of slots
	n       int      // rows
	top     int      // slots at or beyond it were never used
	low     int      // no word of live before it has a free slot
	room    int      // slots there is memory for
	accRoom int      // the most slots the accumulators had, if that was more
	nextSeq int64
	seqStep int64

	touched []uint32
	pending []uint32 // rows of a ByValueColumn table that are not ordered yet
	// unordered says that the order was not asked for yet. That of a ByKey table evicts
	// nothing, and most are never asked: it is built by the first flush.
	unordered bool
	loading   *indexLoad // while the table is loaded
	gone      []tombstones
	goneBytes int64 // of them
	evict     eviction

	pk, pv  packed
	first   [probeRows]uint64
	enc     keyenc.Keys
	miss    []uint32
	created []uint32
	account *account // of the operator
	held    int64    // of it, by this shard
}

// tombstones are the keys (and numbers) of deleted rows that files know.
type tombstones struct {
	keys []arrow.Array
	seq  arrow.Array // multi-row
	n    int
}

func (t tombstones) bytes() int64 {
	n := int64(0)
	for _, k := range t.keys {
		n += columnar.DataBytes(k.Data())
	}
	if t.seq != nil {
		n += columnar.DataBytes(t.seq.Data())
	}
	return n
}

// eviction is what Evict did since the last Commit.
type eviction struct {
	rows   int64
	bound  int64
	any    bool
	broken bool // an iteration was left early
	err    error
}

func newShard(schema *TableSchema, opts Options, acct *account, number, shards int) (*Shard, error) {
	s := &Shard{schema: schema, mem: opts.Mem, order: newOrder(), seqStep: int64(shards), nextSeq: int64(number), unordered: schema.Order.By == ByKey, account: acct}
	var err error
	if s.keys, err = newRowStore(schema.Key, true, schema.Derived...); err != nil {
		return nil, err
	}
	if s.values, err = newRowStore(schema.Values, false); err != nil {
		return nil, err
	}
	types := make([]arrow.DataType, len(schema.Key))
	for i, f := range schema.Key {
		types[i] = f.Type
	}
	if s.codec, err = keyenc.New(types, nil); err != nil {
		return nil, err
	}
	s.flags.width = 1
	if schema.MultiRow {
		s.same.links.width, s.seq.width = 1, 1
	}
	for _, a := range schema.Aggregates {
		acc, err := a.New(opts.Mem)
		if err != nil {
			s.release()
			return nil, err
		}
		s.accs = append(s.accs, acc)
	}
	return s, nil
}

func (s *Shard) release() {
	for _, a := range s.accs {
		a.Release()
	}
	s.accs = nil
	s.dropTombstones()
	_ = s.account.add(-s.held) // giving back is never refused
	s.held = 0
}

func (s *Shard) dropTombstones() {
	for _, t := range s.gone {
		releaseAll(t.keys)
		if t.seq != nil {
			t.seq.Release()
		}
	}
	s.gone, s.goneBytes = nil, 0
}

// Len is the number of rows.
func (s *Shard) Len() int { return s.n }

// Bytes is the memory held.
func (s *Shard) Bytes() int64 {
	n := s.keys.bytes() + s.values.bytes() + s.index.bytes() + s.order.bytes() + s.flags.bytes(1) +
		s.same.links.bytes(8) + s.seq.bytes(8) + int64(cap(s.live))*8 + int64(cap(s.touched)+cap(s.pending))*4
	for _, a := range s.accs {
		n += a.Bytes()
	}
	return n
}

// Accumulators are those of the table's Aggregates, indexed by row. Whoever updates
// them says so with Touch; new rows are neutral.
func (s *Shard) Accumulators() []function.Accumulator { return s.accs }

// Reserve tells the budget what is held, for those who made accumulators hold more: all else
// that makes the shard grow does so itself.
func (s *Shard) Reserve() error {
	n := s.Bytes() + s.goneBytes
	if n == s.held {
		return nil
	}
	if err := s.account.add(n - s.held); err != nil {
		return err
	}
	s.held = n
	return nil
}

// alloc takes the lowest free slot.
func (s *Shard) alloc() uint32 {
	for ; s.low < len(s.live); s.low++ {
		if w := ^s.live[s.low]; w != 0 {
			row := s.low<<6 + bits.TrailingZeros64(w)
			s.live[s.low] |= w & -w
			s.makeRoom(row + 1)
			s.n++
			return uint32(row)
		}
	}
	s.live = append(s.live, 1)
	row := s.low << 6
	s.makeRoom(row + 1)
	s.n++
	return uint32(row)
}

// makeRoom makes memory for slots below rows.
func (s *Shard) makeRoom(rows int) {
	s.top = max(s.top, rows)
	if rows <= s.room {
		return
	}
	s.room = max(smallRows, s.room)
	for s.room < rows {
		s.room += min(s.room, segmentRows)
	}
	s.keys.grow(s.room)
	s.values.grow(s.room)
	s.flags.grow(s.room)
	if !s.unordered {
		s.order.links.grow(s.room)
	}
	s.same.links.grow(s.room)
	s.seq.grow(s.room)
	for _, a := range s.accs {
		a.Resize(s.room)
	}
}

// rowsLive ranges over the slots in use.
func (s *Shard) rowsLive(yield func(row uint32) bool) {
	for w, word := range s.live {
		for word != 0 {
			if !yield(uint32(w<<6 + bits.TrailingZeros64(word))) {
				return
			}
			word &= word - 1
		}
	}
}

// lookUp packs and hashes n keys, and puts the first row of each into rows, noRow for
// those not found. It returns the positions of the latter.
func (s *Shard) lookUp(keys []arrow.Array, n int, rows []uint32) ([]uint32, error) {
	if err := s.pack(keys, n); err != nil {
		return nil, err
	}
	s.miss = s.miss[:0]
	for lo := 0; lo < n; lo += probeRows {
		s.lookUpSome(lo, rows[lo:min(lo+probeRows, n)])
	}
	return s.miss, nil
}

// pack brings n keys into pk, with their hashes.
func (s *Shard) pack(keys []arrow.Array, n int) error {
	if len(keys) != len(s.schema.Key) {
		return fmt.Errorf("bug: %d key columns for table %s of %d", len(keys), s.schema.Name, len(s.schema.Key))
	}
	if err := s.keys.pack(s.mem, keys, n, &s.pk, -1); err != nil {
		return err
	}
	s.keys.hash(&s.pk)
	return nil
}

// lookUpSome looks up keys of pk from lo on, at most probeRows, and adds the positions of
// those not found to miss. All first slots are loaded before one is looked at, so that
// these loads overlap.
func (s *Shard) lookUpSome(lo int, rows []uint32) {
	hashes := s.pk.hashes[lo : lo+len(rows)]
	for i, h := range hashes {
		s.first[i] = s.index.first(tagOf(h))
	}
	if s.pairs() {
		s.matchPairs(lo, rows)
		return
	}
	for i, h := range hashes {
		slot := s.first[i]
		if uint32(slot>>32) == tagOf(h) && s.keys.equal(uint32(slot), &s.pk, lo+i) {
			rows[i] = uint32(slot)
			continue
		}
		s.walk(lo+i, slot, &rows[i])
	}
}

// walk goes on from the first slot of key i, which does not hold it.
func (s *Shard) walk(i int, slot uint64, row *uint32) {
	if *row = noRow; slot != 0 {
		*row = s.probe(i)
	}
	if *row == noRow {
		s.miss = append(s.miss, uint32(i))
	}
}

// pairs says whether keys are two words without nulls, which is the commonest.
func (s *Shard) pairs() bool {
	return s.keys.stride == 2 && !s.pk.long && !s.pk.null && s.keys.nulls.segs == nil
}

// matchPairs compares keys of two words: the loads of different keys overlap.
func (s *Shard) matchPairs(lo int, rows []uint32) {
	segs := s.keys.words.segs
	words := s.pk.words[2*lo : 2*(lo+len(rows))]
	hashes := s.pk.hashes[lo : lo+len(rows)]
	for i := range rows {
		slot := s.first[i]
		if uint32(slot>>32) == tagOf(hashes[i]) {
			row := uint32(slot)
			at := int(row&(segmentRows-1)) * 2
			key := segs[row>>segmentBits][at : at+2]
			if key[0] == words[2*i] && key[1] == words[2*i+1] {
				rows[i] = row
				continue
			}
		}
		s.walk(lo+i, slot, &rows[i])
	}
}

// equalPair compares a stored key of two words with key i of pk.
func (s *Shard) equalPair(row uint32, i int) bool {
	at := int(row&(segmentRows-1)) * 2
	key, other := s.keys.words.segs[row>>segmentBits][at:at+2], s.pk.words[2*i:2*i+2]
	return key[0] == other[0] && key[1] == other[1]
}

// probe walks the index for key i of pk.
func (s *Shard) probe(i int) uint32 {
	tag := tagOf(s.pk.hashes[i])
	p := s.index.part(tag)
	for at := p.home(tag); p.slots[at] != 0; at = (at + 1) & (len(p.slots) - 1) {
		slot := p.slots[at]
		if uint32(slot>>32) == tag && s.keys.equal(uint32(slot), &s.pk, i) {
			return uint32(slot)
		}
	}
	return noRow
}

// place is probe that makes room for key i where it is not there: its place in the index,
// which is to be filled, and noRow.
func (s *Shard) place(i int) (row uint32, place *uint64) {
	tag := tagOf(s.pk.hashes[i])
	p := s.index.part(tag)
	at := p.home(tag)
	for ; p.slots[at] != 0; at = (at + 1) & (len(p.slots) - 1) {
		slot := p.slots[at]
		if uint32(slot>>32) == tag && s.keys.equal(uint32(slot), &s.pk, i) {
			return uint32(slot), nil
		}
	}
	if p.n >= p.limit {
		p.grow(int(tag>>(32-indexBits)), len(p.slots)*2)
		at = p.empty(tag)
	}
	p.n++
	return noRow, &p.slots[at]
}

// Intern puts the row of key i into rows[i], for as many keys as rows has, and makes
// rows for new keys. created lists the positions where a key was seen first; it is
// valid until the next call. Only for tables with one row a key.
func (s *Shard) Intern(keys []arrow.Array, rows []uint32) (created []uint32, err error) {
	if s.schema.MultiRow {
		return nil, fmt.Errorf("bug: table %s has several rows a key", s.schema.Name)
	}
	defer s.pk.release()
	if err := s.pack(keys, len(rows)); err != nil {
		return nil, err
	}
	s.created = s.created[:0]
	for lo := 0; lo < len(rows); lo += probeRows {
		s.internSome(lo, rows[lo:min(lo+probeRows, len(rows))])
	}
	if len(s.created) == 0 {
		return nil, nil
	}
	if err := s.begin(rows); err != nil {
		return nil, err
	}
	return s.created, s.Reserve()
}

// internSome is lookUpSome that makes rows for new keys, and adds the positions of those
// to created. A key is put into the index while its place there is still in cache.
func (s *Shard) internSome(lo int, rows []uint32) {
	hashes := s.pk.hashes[lo : lo+len(rows)]
	for i, h := range hashes {
		s.first[i] = s.index.first(tagOf(h))
	}
	pairs := s.pairs()
	for i, h := range hashes {
		tag := tagOf(h)
		if slot := s.first[i]; uint32(slot>>32) == tag && (pairs && s.equalPair(uint32(slot), lo+i) || !pairs && s.keys.equal(uint32(slot), &s.pk, lo+i)) {
			rows[i] = uint32(slot)
			continue
		}
		row, place := s.place(lo + i)
		if row == noRow {
			row = s.create(lo + i)
			*place = uint64(tag)<<32 | uint64(row)
			s.created = append(s.created, uint32(lo+i))
		}
		rows[i] = row
	}
}

// begin gives the rows of created values and a place in the order.
func (s *Shard) begin(rows []uint32) error {
	if len(s.schema.Values) == 0 && s.unordered {
		return nil
	}
	fresh := make([]uint32, len(s.created))
	for k, i := range s.created {
		fresh[k] = rows[i]
		s.values.putNull(rows[i], s.room)
	}
	return s.enter(fresh)
}

// create makes a row for key i of pk.
func (s *Shard) create(i int) uint32 {
	row := s.alloc()
	s.keys.put(row, &s.pk, i, s.room)
	s.flags.row(row)[0] |= rowFresh
	s.touch(row)
	return row
}

// enter puts new rows into the order, or notes that they still must be.
func (s *Shard) enter(rows []uint32) error {
	if s.schema.Order.By == ByValueColumn {
		s.pending = append(s.pending, rows...)
		return nil
	}
	return s.insertOrdered(rows)
}

func (s *Shard) insertOrdered(rows []uint32) error {
	if len(rows) == 0 || s.unordered {
		return nil
	}
	prefixes, err := s.prefixes(rows)
	if err != nil {
		return err
	}
	for _, row := range rows {
		s.flags.row(row)[0] |= rowOrdered
	}
	s.order.insert(prefixes, rows)
	return nil
}

// prefixes are the order prefixes of rows.
func (s *Shard) prefixes(rows []uint32) ([]int64, error) {
	out := make([]int64, len(rows))
	switch s.schema.Order.By {
	case ByKeyColumn:
		for i, row := range rows {
			out[i] = s.keys.prefix(row, s.schema.Order.Column)
		}
		return out, nil
	case ByValueColumn:
		for i, row := range rows {
			out[i] = s.values.prefix(row, s.schema.Order.Column)
		}
		return out, nil
	}
	if len(s.schema.Key) == 0 {
		return out, nil
	}
	keys, err := s.keys.gather(s.mem, rows, nil)
	if err != nil {
		return nil, err
	}
	defer releaseAll(keys)
	s.enc.Reset()
	if err := s.codec.Encode(keys, &s.enc); err != nil {
		return nil, err
	}
	for i := range out {
		out[i] = keyenc.Prefix(s.enc.Key(i))
	}
	return out, nil
}

// Append makes a row for each key, with the given values, and puts it into rows. Only
// for multi-row tables.
func (s *Shard) Append(keys, values []arrow.Array, rows []uint32) error {
	if !s.schema.MultiRow || len(values) != len(s.schema.Values) {
		return fmt.Errorf("bug: %d values appended to table %s of %d, several rows a key: %v", len(values), s.schema.Name, len(s.schema.Values), s.schema.MultiRow)
	}
	defer s.pk.release()
	defer s.pv.release()
	if err := s.values.pack(s.mem, values, len(rows), &s.pv, -1); err != nil {
		return err
	}
	heads := make([]uint32, len(rows))
	if _, err := s.lookUp(keys, len(rows), heads); err != nil {
		return err
	}
	for i := range rows {
		row := s.create(i)
		s.values.put(row, &s.pv, i, s.room)
		s.seq.row(row)[0] = s.nextSeq
		s.nextSeq += s.seqStep
		if heads[i] == noRow {
			heads[i] = s.probe(i)
		}
		s.join(row, heads[i], tagOf(s.pk.hashes[i]))
		rows[i] = row
	}
	if err := s.enter(rows); err != nil {
		return err
	}
	if len(s.pending) > mostPending {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return s.Reserve()
}

// mostPending is how many rows are brought into the order at a time: many of them are ordered
// with less work than a few, but each takes memory for it.
const mostPending = 4 * segmentRows

// join adds a row of a multi-row table to the rows of its key.
func (s *Shard) join(row, head, tag uint32) {
	if head == noRow {
		s.same.alone(row)
		s.index.insert(tag, row)
		return
	}
	s.same.append(head, row)
}

// Find looks keys up: those of key i are rows[from[i]:from[i+1]], of a multi-row table
// in the order they were appended.
func (s *Shard) Find(keys []arrow.Array, n int) (from, rows []uint32, err error) {
	defer s.pk.release()
	heads := make([]uint32, n)
	if _, err := s.lookUp(keys, n, heads); err != nil {
		return nil, nil, err
	}
	from = make([]uint32, n+1)
	for i, head := range heads {
		switch {
		case head == noRow:
		case s.schema.MultiRow:
			rows = s.same.ringRows(head, rows)
		default:
			rows = append(rows, head)
		}
		from[i+1] = uint32(len(rows))
	}
	return from, rows, nil
}

// Get returns columns of rows, in their order: key columns count from 0, value columns
// follow. No columns means all of both.
func (s *Shard) Get(rows []uint32, columns ...int) ([]arrow.Array, error) {
	if len(columns) == 0 {
		for i := range len(s.schema.Key) + len(s.schema.Values) {
			columns = append(columns, i)
		}
	}
	out := make([]arrow.Array, 0, len(columns))
	for _, c := range columns {
		store := s.keys
		if c >= len(s.schema.Key) {
			store, c = s.values, c-len(s.schema.Key)
		}
		a, err := store.column(s.mem, rows, c)
		if err != nil {
			releaseAll(out)
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// Set overwrites a value column of rows (numbered as for Get) and touches them. Setting
// the order column moves them.
func (s *Shard) Set(rows []uint32, column int, values arrow.Array) error {
	c := column - len(s.schema.Key)
	if c < 0 || c >= len(s.schema.Values) {
		return fmt.Errorf("bug: column %d of table %s is no value", column, s.schema.Name)
	}
	defer s.pv.release()
	if err := s.values.pack(s.mem, []arrow.Array{values}, len(rows), &s.pv, c); err != nil {
		return err
	}
	moves := s.schema.Order == Order{ByValueColumn, c}
	if moves {
		if err := s.leaveOrder(rows); err != nil {
			return err
		}
	}
	for i, row := range rows {
		s.values.putColumn(row, &s.pv, i, c, s.room)
	}
	s.Touch(rows)
	if !moves {
		return s.Reserve()
	}
	s.pending = append(s.pending, rows...)
	return s.Reserve()
}

// Reorder gives rows of a ByValueColumn table another place in the order, by writing
// the column.
func (s *Shard) Reorder(rows []uint32, prefix []int64) error {
	if s.schema.Order.By != ByValueColumn {
		return fmt.Errorf("bug: the order of table %s is not a value", s.schema.Name)
	}
	c := s.schema.Order.Column
	b := array.NewInt64Builder(s.mem)
	defer b.Release()
	b.AppendValues(prefix, nil)
	words := b.NewArray()
	defer words.Release()
	dt := s.schema.Values[c].Type
	if dt.ID() != arrow.INT64 && dt.ID() != arrow.TIMESTAMP {
		return fmt.Errorf("bug: the order of table %s is a %s; Set it", s.schema.Name, columnar.TypeName(dt))
	}
	d := array.NewData(dt, len(rows), words.Data().Buffers(), nil, 0, 0)
	defer d.Release()
	values := array.MakeFromData(d)
	defer values.Release()
	return s.Set(rows, len(s.schema.Key)+c, values)
}

// Touch says that rows were changed in this batch: their accumulators, mostly.
func (s *Shard) Touch(rows []uint32) {
	for _, row := range rows {
		s.touch(row)
	}
}

func (s *Shard) touch(row uint32) {
	f := &s.flags.row(row)[0]
	if *f&rowListed == 0 {
		s.touched = append(s.touched, row)
	}
	*f |= rowTouched | rowListed
}

// leaveOrder takes rows out of the order, if they are in it.
func (s *Shard) leaveOrder(rows []uint32) error {
	if s.unordered {
		return nil
	}
	prefixes, err := s.prefixes(rows)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if f := &s.flags.row(row)[0]; *f&rowOrdered != 0 {
			s.order.remove(row, prefixes[i])
			*f &^= rowOrdered
		}
	}
	return nil
}

// flush brings rows into the order that still must be: before it is asked.
func (s *Shard) flush() error {
	if s.unordered {
		s.unordered = false
		s.order.links.grow(s.room)
		s.pending = slices.AppendSeq(s.pending[:0], s.rowsLive)
	}
	rows := s.pending[:0]
	for _, row := range s.pending {
		if f := s.flags.row(row)[0]; s.isLive(row) && f&rowOrdered == 0 {
			s.flags.row(row)[0] |= rowOrdered // a row may be listed twice
			rows = append(rows, row)
		}
	}
	s.pending = rows
	err := s.insertOrdered(rows)
	s.pending = s.pending[:0]
	return err
}

func (s *Shard) isLive(row uint32) bool { return s.live[row>>6]>>(row&63)&1 != 0 }

// bury notes rows as deleted that files know.
func (s *Shard) bury(rows []uint32) error {
	if len(rows) == 0 {
		return nil
	}
	t := tombstones{n: len(rows)}
	var err error
	if t.keys, err = s.keys.gather(s.mem, rows, nil); err != nil {
		return err
	}
	if s.schema.MultiRow {
		t.seq = s.sequence(rows)
	}
	s.gone = append(s.gone, t)
	s.goneBytes += t.bytes()
	return nil
}

// withFlags are the rows that have exactly those of the flags in mask.
func (s *Shard) withFlags(rows []uint32, mask, flags uint8) []uint32 {
	var out []uint32
	for _, row := range rows {
		if s.flags.row(row)[0]&mask == flags {
			out = append(out, row)
		}
	}
	return out
}

// Delete removes rows; the next Commit records it. Each is given once.
func (s *Shard) Delete(rows []uint32) error {
	if err := s.bury(s.withFlags(rows, rowFresh, 0)); err != nil {
		return err
	}
	if err := s.leaveOrder(rows); err != nil {
		return err
	}
	s.free(rows)
	return nil
}

// sequence is the numbers of rows of a multi-row table.
func (s *Shard) sequence(rows []uint32) arrow.Array {
	b := array.NewInt64Builder(s.mem)
	defer b.Release()
	b.Reserve(len(rows))
	for _, row := range rows {
		b.UnsafeAppend(s.seq.row(row)[0])
	}
	return b.NewArray()
}

// free gives up slots that have left the order.
func (s *Shard) free(rows []uint32) {
	s.leaveKeys(rows)
	for _, row := range rows {
		s.keys.free(row)
		s.values.free(row)
		s.flags.row(row)[0] &= rowListed
		s.live[row>>6] &^= 1 << (row & 63)
		s.low = min(s.low, int(row>>6))
	}
	s.n -= len(rows)
	for _, a := range s.accs {
		a.Clear(rows)
	}
}

// leaveKeys takes rows out of the index and of the rows of their keys. As for a look-up,
// the loads of some rows overlap.
func (s *Shard) leaveKeys(rows []uint32) {
	var tags [probeRows]uint32
	for len(rows) > 0 {
		part := rows[:min(len(rows), probeRows)]
		rows = rows[len(part):]
		for i, row := range part {
			tags[i] = tagOf(s.keys.hashRow(row))
		}
		for i := range part {
			s.first[i] = s.index.first(tags[i])
		}
		for i, row := range part {
			if s.schema.MultiRow {
				s.leaveKey(row, tags[i])
			} else {
				s.index.remove(tags[i], row)
			}
		}
	}
}

// leaveKey takes a row out of those of its key. Only the head of their ring is in the
// index; it is found by the ring having one row, or by looking.
func (s *Shard) leaveKey(row, tag uint32) {
	l := *s.same.at(row)
	if l.next == row {
		s.index.remove(tag, row)
		return
	}
	if s.index.holds(tag, row) {
		s.index.replace(tag, row, l.next)
	}
	s.same.at(l.prev).next = l.next
	s.same.at(l.next).prev = l.prev
}

// Evict hands out, in order, the rows at or below bound, and removes them: those of
// one step are readable until the next one. It must be ranged over to its end, on all
// shards of a table with the same bound. The next Commit records the bound.
func (s *Shard) Evict(bound int64) iter.Seq[[]uint32] {
	return func(yield func([]uint32) bool) {
		if s.schema.Order.By == ByKey {
			return
		}
		s.evict.broken = true // until the end is reached
		if s.evict.err = s.flush(); s.evict.err != nil {
			return
		}
		bound := min(bound, neverEvicted-1)
		var rows []uint32
		some := s.handful()
		for more := true; more; {
			rows = rows[:0]
			for more && len(rows) < evictRows {
				rows, more = s.order.takeMin(bound, rows)
			}
			for part := rows; len(part) > 0; {
				k := min(len(part), some)
				if !yield(part[:k:k]) {
					return
				}
				if s.evict.err = s.buryMoved(part[:k]); s.evict.err != nil {
					return
				}
				s.free(part[:k])
				s.evict.rows += int64(k)
				part = part[k:]
			}
		}
		s.evict.broken = false
		if s.evict.rows > 0 && (!s.evict.any || bound > s.evict.bound) {
			s.evict.bound, s.evict.any = bound, true
		}
		s.tidy()
	}
}

// buryMoved notes evicted rows as deleted whose place in the order may have changed in
// this batch: that in the files may lie beyond the bound.
func (s *Shard) buryMoved(rows []uint32) error {
	if s.schema.Order.By != ByValueColumn {
		return nil
	}
	return s.bury(s.withFlags(rows, rowFresh|rowTouched, rowTouched))
}

// tidy copies arenas that are half dead.
func (s *Shard) tidy() {
	s.keys.tidy(s.rowsLive)
	s.values.tidy(s.rowsLive)
}

// All ranges over all rows, in no particular order, some at a time; they may be
// changed but not deleted meanwhile.
func (s *Shard) All() iter.Seq[[]uint32] {
	return func(yield func([]uint32) bool) {
		rows := make([]uint32, 0, s.handful())
		for row := range s.rowsLive {
			if rows = append(rows, row); len(rows) == cap(rows) {
				if !yield(rows) {
					return
				}
				rows = rows[:0]
			}
		}
		if len(rows) > 0 {
			yield(rows)
		}
	}
}

// Range hands out the rows with order prefixes from from up to and with to, in order,
// without removing them: what a range join looks for.
func (s *Shard) Range(from, to int64) ([]uint32, error) {
	if err := s.flush(); err != nil {
		return nil, err
	}
	var rows []uint32
	s.order.tree.AscendGreaterOrEqual(orderItem{prefix: from}, func(it orderItem) bool {
		if it.prefix > to {
			return false
		}
		rows = s.order.ringRows(it.head, rows)
		return true
	})
	return rows, nil
}

// Min is the smallest order prefix there is.
func (s *Shard) Min() (prefix int64, ok bool) {
	if s.flush() != nil {
		return 0, false
	}
	it, ok := s.order.tree.Min()
	return it.prefix, ok
}

// Touched lists the rows changed since the last Commit: made, set, or touched.
func (s *Shard) Touched() []uint32 {
	out := make([]uint32, 0, len(s.touched))
	for _, row := range s.touched {
		if s.flags.row(row)[0]&rowTouched != 0 {
			out = append(out, row)
		}
	}
	return out
}

// CountTouched is the number of rows that Touched lists.
func (s *Shard) CountTouched() int {
	n := 0
	for _, row := range s.touched {
		n += int(s.flags.row(row)[0] & rowTouched)
	}
	return n
}

var errEviction = errors.New("bug: an eviction was not ranged over to its end")
