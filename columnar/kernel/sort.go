package kernel

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
)

// SortKey is one key of an order: its values per batch, and its direction.
type SortKey struct {
	Columns    []arrow.Array // one a batch, of one type; dictionaries are fine
	Descending bool
	NullsLast  bool // wherever they stand, nulls are equal to each other
}

// Sort is the order of all rows of the batches the keys' columns are of: ascending
// by the first key, then the next. Rows that are equal by all keys keep their order.
// NaN is above all other numbers and equal to itself, -0.0 equals 0.0, text is in
// byte order.
func Sort(keys []SortKey) []Ref {
	if len(keys) == 0 {
		panic("bug: sort without keys")
	}
	lengths := make([]int, len(keys[0].Columns))
	for i, c := range keys[0].Columns {
		lengths[i] = c.Len()
	}
	refs := AllRefs(lengths...)
	SortRefs(keys, refs)
	return refs
}

// SortRefs brings refs, rows of the batches the keys' columns are of, into order;
// see Sort.
func SortRefs(keys []SortKey, refs []Ref) {
	room := entryRooms.Get().(*entryRoom)
	s := &sorter{keys: keys, cmp: NewComparer(keys), entryRoom: room}
	s.sort(refs, 0)
	if cap(room.a) <= maxKeptEntries {
		entryRooms.Put(room)
	}
}

type sorter struct {
	keys []SortKey
	cmp  *Comparer
	*entryRoom
}

// entryRoom is memory for a radix sort: the entries, twice, and where the next one of each
// digit belongs. A stream sorts what changed in each of many batches.
type entryRoom struct {
	a, b   []entry
	starts [1 << maxDigitBits]int
}

var entryRooms = sync.Pool{New: func() any { return new(entryRoom) }}

const maxKeptEntries = 1 << 17

// entry is a row with the first eight bytes of a key, such that unsigned order of
// prefixes is the order of keys as far as they go.
type entry struct {
	prefix uint64
	ref    Ref
}

// small is the size below which comparing rows beats building prefixes.
const small = 48

// sort orders refs by the keys from the given one on, stably.
func (s *sorter) sort(refs []Ref, key int) {
	if len(refs) < 2 || key == len(s.keys) {
		return
	}
	if len(refs) <= small || !hasPrefix(s.keys[key].Columns[0].DataType()) {
		s.sortByComparing(refs, key)
		return
	}
	rest := s.partitionNulls(refs, key)
	s.sortValues(rest, key, 0)
}

func (s *sorter) sortByComparing(refs []Ref, key int) {
	slices.SortStableFunc(refs, func(a, b Ref) int { return s.cmp.compareFrom(a, b, key) })
}

// hasPrefix says whether prefixes knows the type.
func hasPrefix(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.NULL, arrow.INTERVAL_MONTH_DAY_NANO, arrow.LIST, arrow.STRUCT, arrow.MAP:
		return false
	}
	return true
}

// partitionNulls moves the nulls of a key to their end, sorts them by the other keys
// and returns the rows that have a value.
func (s *sorter) partitionNulls(refs []Ref, key int) []Ref {
	k := s.keys[key]
	hasNulls := false
	for _, c := range k.Columns {
		hasNulls = hasNulls || mayBeNull(c)
	}
	if !hasNulls {
		return refs
	}
	var nulls, values []Ref
	for _, r := range refs {
		if columnar.IsNull(k.Columns[r>>32], r.Row()) {
			nulls = append(nulls, r)
		} else {
			values = append(values, r)
		}
	}
	s.sort(nulls, key+1)
	if k.NullsLast {
		copy(refs[copy(refs, values):], nulls)
		return refs[:len(values)]
	}
	copy(refs[copy(refs, nulls):], values)
	return refs[len(nulls):]
}

func mayBeNull(a arrow.Array) bool {
	if d, ok := a.(*array.Dictionary); ok && d.Dictionary().NullN() > 0 {
		return true
	}
	return a.NullN() > 0 || a.DataType().ID() == arrow.NULL
}

// maxLevel is how many times eight bytes of text are looked at before rows are
// compared one by one.
const maxLevel = 256

// sortValues orders rows without nulls in the key: by the prefix of a level, then the
// runs of equal prefixes by the next level, or by the next key.
func (s *sorter) sortValues(refs []Ref, key, level int) {
	if level == maxLevel {
		s.sortByComparing(refs, key)
		return
	}
	k := s.keys[key]
	if cap(s.a) < len(refs) {
		s.a, s.b = make([]entry, len(refs)), make([]entry, len(refs))
	}
	entries := s.a[:len(refs)]
	exact := prefixes(entries, refs, k.Columns, level)
	if k.Descending {
		for i := range entries {
			entries[i].prefix = ^entries[i].prefix
		}
	}
	entries = s.radixSort(entries, s.b[:len(refs)])
	for i, e := range entries {
		refs[i] = e.ref
	}
	if exact && key+1 == len(s.keys) {
		return
	}
	var runs []int // the runs of equal prefixes, start and end
	for i := 0; i < len(entries); {
		j := i + 1
		for j < len(entries) && entries[j].prefix == entries[i].prefix {
			j++
		}
		if j > i+1 {
			runs = append(runs, i, j)
		}
		i = j
	}
	for i := 0; i < len(runs); i += 2 {
		run := refs[runs[i]:runs[i+1]]
		switch {
		case exact:
			s.sort(run, key+1)
		case len(run) <= small:
			s.sortByComparing(run, key)
		default:
			s.sortValues(run, key, level+1)
		}
	}
}

// prefixes fills entries with the rows of refs and their prefixes of a level in the
// key's columns: all of a number, a word of a decimal, eight bytes of a text. exact
// says whether prefixes of all levels up to this being equal means equal values.
func prefixes(entries []entry, refs []Ref, columns []arrow.Array, level int) (exact bool) {
	switch columns[0].DataType().ID() {
	case arrow.INT8:
		intPrefixes[int8](entries, refs, columns)
	case arrow.INT16:
		intPrefixes[int16](entries, refs, columns)
	case arrow.INT32, arrow.DATE32:
		intPrefixes[int32](entries, refs, columns)
	case arrow.INT64, arrow.TIMESTAMP, arrow.TIME64:
		intPrefixes[int64](entries, refs, columns)
	case arrow.FLOAT32:
		floatPrefixes[float32](entries, refs, columns)
	case arrow.FLOAT64:
		floatPrefixes[float64](entries, refs, columns)
	case arrow.BOOL:
		for i, r := range refs {
			entries[i] = entry{uint64(b2i(columns[r>>32].(*array.Boolean).Value(r.Row()))), r}
		}
	case arrow.STRING, arrow.BINARY, arrow.DICTIONARY:
		return textPrefixes(entries, refs, columns, level)
	case arrow.DECIMAL128:
		for i, r := range refs {
			v := columns[r>>32].(*array.Decimal128).Value(r.Row())
			entries[i] = entry{uint64(v.HighBits()) ^ 1<<63, r}
			if level == 1 {
				entries[i].prefix = v.LowBits()
			}
		}
		return level == 1
	default:
		panic("bug: prefix of " + columns[0].DataType().String())
	}
	return true
}

func intPrefixes[T integer](entries []entry, refs []Ref, columns []arrow.Array) {
	views := make([][]T, len(columns))
	for i, c := range columns {
		views[i] = Values[T](c)
	}
	for i, r := range refs {
		entries[i] = entry{uint64(int64(views[r>>32][uint32(r)])) ^ 1<<63, r}
	}
}

func floatPrefixes[T float32 | float64](entries []entry, refs []Ref, columns []arrow.Array) {
	views := make([][]T, len(columns))
	for i, c := range columns {
		views[i] = Values[T](c)
	}
	for i, r := range refs {
		entries[i] = entry{floatOrder(float64(views[r>>32][uint32(r)])), r}
	}
}

// OrderWords appends a word for each value of a to dst, such that the unsigned order of
// words is that of values; the word of a null means nothing. ok is false, and nothing is
// appended, if values of the type do not fit a word.
func OrderWords(dst []uint64, a arrow.Array) (words []uint64, ok bool) {
	switch a.DataType().ID() {
	case arrow.INT8:
		return intWords[int8](dst, a), true
	case arrow.INT16:
		return intWords[int16](dst, a), true
	case arrow.INT32, arrow.DATE32:
		return intWords[int32](dst, a), true
	case arrow.INT64, arrow.TIMESTAMP, arrow.TIME64:
		return intWords[int64](dst, a), true
	case arrow.FLOAT32:
		return floatWords[float32](dst, a), true
	case arrow.FLOAT64:
		return floatWords[float64](dst, a), true
	case arrow.DECIMAL128:
		if !HasOrderWords(a.DataType()) {
			break
		}
		for _, v := range Values[decimal128.Num](a) {
			dst = append(dst, v.LowBits()^1<<63)
		}
		return dst, true
	}
	return dst, false
}

// wordPrecision is the precision up to which a decimal fits a word.
const wordPrecision = 18

// HasOrderWords says whether OrderWords knows values of dt.
func HasOrderWords(dt arrow.DataType) bool {
	if d, ok := dt.(*arrow.Decimal128Type); ok {
		return d.Precision <= wordPrecision
	}
	return columnar.IsWord(dt) || columnar.IsFloat(dt)
}

func intWords[T integer](dst []uint64, a arrow.Array) []uint64 {
	for _, v := range Values[T](a) {
		dst = append(dst, uint64(int64(v))^1<<63)
	}
	return dst
}

func floatWords[T float32 | float64](dst []uint64, a arrow.Array) []uint64 {
	for _, v := range Values[T](a) {
		dst = append(dst, floatOrder(float64(v)))
	}
	return dst
}

// floatOrder maps floats to integers of the same order: NaN above all, one zero.
func floatOrder(v float64) uint64 {
	if v != v {
		return ^uint64(0)
	}
	b := math.Float64bits(v + 0)
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

// textPrefixes takes eight bytes of each text. Once no text is longer than what was
// looked at, those still equal differ only in length: a text before one that goes on
// with zeros.
func textPrefixes(entries []entry, refs []Ref, columns []arrow.Array, level int) (exact bool) {
	views := make([]bytesView, len(columns))
	codes := make([][]int32, len(columns))
	for i, c := range columns {
		if d, ok := c.(*array.Dictionary); ok {
			codes[i] = columnar.DictionaryCodes(d)
			c = d.Dictionary()
		}
		views[i] = bytesOf(c)
	}
	text := func(r Ref) []byte {
		row := r.Row()
		if c := codes[r>>32]; c != nil {
			row = int(c[row])
		}
		return views[r>>32].at(row)
	}
	from, longest := 8*level, 0
	for i, r := range refs {
		t := text(r)
		longest = max(longest, len(t))
		entries[i] = entry{textPrefix(t[min(from, len(t)):]), r}
	}
	if longest > from {
		return false
	}
	for i, r := range refs {
		entries[i].prefix = uint64(len(text(r)))
	}
	return true
}

// textPrefix is the first eight bytes of s, filled up with zeros.
func textPrefix(s []byte) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64(s)
	}
	var v uint64
	for i, c := range s {
		v |= uint64(c) << (56 - 8*i)
	}
	return v
}

// radixSort orders entries by prefix, stably, with spare as its second buffer; the
// result is in one of the two. Bits that are the same everywhere cost one look.
func (s *sorter) radixSort(entries, spare []entry) []entry {
	var or, and uint64 = 0, ^uint64(0)
	for _, e := range entries {
		or |= e.prefix
		and &= e.prefix
	}
	width := digitBits(len(entries))
	for differ := or &^ and; differ != 0; {
		shift := uint(bits.TrailingZeros64(differ))
		mask := uint64(1)<<width - 1
		differ &^= mask << shift
		s.radixPass(entries, spare, shift, mask)
		entries, spare = spare, entries
	}
	return entries
}

// digitBits is how many bits of n prefixes a pass orders by. More bits are fewer passes,
// as long as what is written to at a time stays in cache.
func digitBits(n int) int {
	if n > 1<<16 {
		return 8
	}
	return min(max(bits.Len(uint(n)), 8), maxDigitBits)
}

const maxDigitBits = 12

// radixPass brings entries into the order of one digit of their prefixes, in spare.
func (s *sorter) radixPass(entries, spare []entry, shift uint, mask uint64) {
	starts := &s.starts
	clear(starts[:mask+1])
	shift &= 63
	mask &= uint64(len(starts)) - 1
	for i := range entries {
		starts[entries[i].prefix>>shift&mask]++
	}
	at := 0
	for d, n := range starts[:mask+1] {
		starts[d] = at
		at += n
	}
	for i := range entries {
		d := entries[i].prefix >> shift & mask
		spare[starts[d]] = entries[i]
		starts[d]++
	}
}

// Top is the first k rows of the order that Sort would make, in that order, without
// sorting the rest.
func Top(keys []SortKey, k int) []Ref {
	lengths := make([]int, len(keys[0].Columns))
	total := 0
	for i, c := range keys[0].Columns {
		lengths[i] = c.Len()
		total += c.Len()
	}
	if k >= total/2 {
		refs := Sort(keys)
		return refs[:min(k, total)]
	}
	if k <= 0 {
		return nil
	}
	c := NewComparer(keys)
	before := func(a, b Ref) bool { // ties by place
		r := c.Compare(a, b)
		return r < 0 || r == 0 && a < b
	}
	heap := make([]Ref, 0, k) // the root is the last of the rows kept
	offer := func(r Ref) {
		switch {
		case len(heap) < k:
			heap = append(heap, r)
			siftUp(heap, before)
		case before(r, heap[0]):
			heap[0] = r
			siftDown(heap, before)
		}
	}
	var filter topFilter
	for b, n := range lengths {
		for _, e := range filter.entries(keys[0], b, n) {
			// Most rows are behind the last kept by their prefixes already.
			if len(heap) == k && e.prefix > filter.of(heap[0]) {
				continue
			}
			offer(e.ref)
		}
	}
	slices.SortFunc(heap, func(a, b Ref) int {
		if before(a, b) {
			return -1
		}
		return 1
	})
	return heap
}

// topFilter knows the prefixes of the first key of the rows offered so far.
type topFilter struct {
	prefix [][]uint64 // by batch and row; nil where the type has none
	room   []entry
	refs   []Ref
}

// entries is the rows of a batch with prefixes of the first key whose order is that of
// the rows, as far as it goes; a null has the least or the greatest.
func (f *topFilter) entries(k SortKey, batch, n int) []entry {
	if cap(f.room) < n {
		f.room = make([]entry, n)
	}
	all := f.room[:n]
	f.refs = f.refs[:0]
	column := k.Columns[batch]
	known := hasPrefix(column.DataType())
	for i := range all {
		if known && !columnar.IsNull(column, i) {
			f.refs = append(f.refs, MakeRef(batch, i))
		}
	}
	prefixed := make([]entry, len(f.refs))
	if len(f.refs) > 0 {
		prefixes(prefixed, f.refs, k.Columns, 0)
	}
	f.prefix = append(f.prefix, make([]uint64, n))
	null := uint64(0)
	if k.NullsLast && known {
		null = ^uint64(0)
	}
	next := 0
	for i := range all {
		p := null
		if next < len(prefixed) && prefixed[next].ref.Row() == i {
			p = prefixed[next].prefix
			if k.Descending {
				p = ^p
			}
			next++
		}
		f.prefix[batch][i] = p
		all[i] = entry{p, MakeRef(batch, i)}
	}
	return all
}

func (f *topFilter) of(r Ref) uint64 { return f.prefix[r>>32][uint32(r)] }

func siftUp(heap []Ref, before func(a, b Ref) bool) {
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !before(heap[parent], heap[i]) {
			return
		}
		heap[parent], heap[i] = heap[i], heap[parent]
		i = parent
	}
}

func siftDown(heap []Ref, before func(a, b Ref) bool) {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && before(heap[child], heap[child+1]) {
			child++
		}
		if !before(heap[i], heap[child]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
