package physical

import (
	"math/bits"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// keySet is the values that one key column of a join's build side has, gathered while
// that side is read, so that what feeds the probe side can leave out rows that meet
// nothing. It is advice: a row it keeps may still meet nothing, and until the build side
// is complete it keeps every row.
type keySet struct {
	account *account
	values  []int64
	over    bool // too many to be worth it
	ready   atomic.Pointer[keyLookup]
}

// maxKeySet is from how many build rows on a keySet gives up: its lookup would not stay
// in cache, and would hardly leave anything out.
const maxKeySet = 4 << 20

// add gathers the values of a batch; null ones match nothing and are left out.
func (s *keySet) add(a arrow.Array) {
	if s.over {
		return
	}
	n := len(s.values) + a.Len()
	if n > maxKeySet || s.reserve(n) != nil {
		s.drop()
		return
	}
	s.values = appendWords(s.values, a)
}

// reserve makes room for n values in all.
func (s *keySet) reserve(n int) error {
	if n <= cap(s.values) {
		return nil
	}
	n = max(n, 2*cap(s.values), columnar.DefaultBatchRows)
	if err := s.account.set(int64(n) * 8); err != nil {
		return err
	}
	s.values = append(make([]int64, 0, n), s.values...)
	return nil
}

// drop makes s keep every row: advice is not worth refused memory.
func (s *keySet) drop() {
	s.over, s.values = true, nil
	s.account.release()
}

// complete lets s be used: all values are there.
func (s *keySet) complete() {
	if s.over {
		return
	}
	l := newKeyLookup(s.values)
	s.values = nil
	if s.account.set(int64(len(l.words))*8) != nil {
		s.drop()
		return
	}
	s.ready.Store(l)
}

// release may be called twice.
func (s *keySet) release() {
	s.ready.Store(nil)
	s.account.release()
}

// keyLookup answers whether a value may be in a set: exactly, by a bit for each value
// between the smallest and the largest, where they are close together, else by a Bloom
// filter whose bits of one value are in one word.
type keyLookup struct {
	low, high int64 // high below low: no value
	exact     bool
	words     []uint64
	shift     uint // Bloom: the upper bits of the hash number the word
}

const (
	// exactBits is how many bits an exact lookup may always have (1 MB), and bitsAKey how
	// many for each value beyond that.
	exactBits = 8 << 20
	bitsAKey  = 64
)

func newKeyLookup(values []int64) *keyLookup {
	if len(values) == 0 {
		return &keyLookup{low: 0, high: -1} // between which nothing is
	}
	l := &keyLookup{exact: true}
	l.low, l.high = values[0], values[0]
	for _, v := range values {
		l.low, l.high = min(l.low, v), max(l.high, v)
	}
	span := uint64(l.high) - uint64(l.low) // of bits, less one
	if span < exactBits || span/bitsAKey < uint64(len(values)) {
		l.words = make([]uint64, span/64+1)
		for _, v := range values {
			at := uint64(v) - uint64(l.low)
			l.words[at/64] |= 1 << (at % 64)
		}
		return l
	}
	l.exact = false
	size := max(1<<bits.Len(uint(len(values)/4)), 2) // 16 bits a value or more
	l.words, l.shift = make([]uint64, size), uint(64-bits.TrailingZeros(uint(size)))
	for _, v := range values {
		h := hashWord(v)
		l.words[h>>l.shift] |= bloomBits(h)
	}
	return l
}

// hashWord spreads v over all bits: the finalizer of splitmix64. It is not seeded, so
// that a query does the same each time.
func hashWord(v int64) uint64 {
	x := uint64(v) + 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// bloomBits are up to three bits of a word, by the lower bits of a hash.
func bloomBits(h uint64) uint64 {
	return 1<<(h&63) | 1<<(h>>6&63) | 1<<(h>>12&63)
}

// keep appends to out the rows of a, among the given ones (nil: all), whose value may be
// in the set. rows and out may share memory.
func (l *keyLookup) keep(a arrow.Array, rows, out []int32) []int32 {
	switch a.DataType().(arrow.FixedWidthDataType).Bytes() {
	case 1:
		return keepWords(l, a, arrow.GetValues[int8](a.Data(), 1), rows, out)
	case 2:
		return keepWords(l, a, arrow.GetValues[int16](a.Data(), 1), rows, out)
	case 4:
		return keepWords(l, a, arrow.GetValues[int32](a.Data(), 1), rows, out)
	}
	return keepWords(l, a, arrow.GetValues[int64](a.Data(), 1), rows, out)
}

type word interface{ int8 | int16 | int32 | int64 }

func keepWords[T word](l *keyLookup, a arrow.Array, values []T, rows, out []int32) []int32 {
	has := l.mayHave
	if l.exact {
		has = l.has
	}
	nulls := a.NullN() > 0
	if rows != nil {
		for _, r := range rows {
			if v := int64(values[r]); v >= l.low && v <= l.high && has(v) && !(nulls && a.IsNull(int(r))) {
				out = append(out, r)
			}
		}
		return out
	}
	if l.exact {
		return keepExact(l, a, values, out)
	}
	for r, x := range values {
		if v := int64(x); v >= l.low && v <= l.high && has(v) && !(nulls && a.IsNull(r)) {
			out = append(out, int32(r))
		}
	}
	return out
}

// keepExact is the loop most rows go through: one test of a bit.
func keepExact[T word](l *keyLookup, a arrow.Array, values []T, out []int32) []int32 {
	nulls := a.NullN() > 0
	span := uint64(l.high) - uint64(l.low)
	for r, x := range values {
		at := uint64(int64(x)) - uint64(l.low)
		if at <= span && l.words[at/64]>>(at%64)&1 != 0 && !(nulls && a.IsNull(r)) {
			out = append(out, int32(r))
		}
	}
	return out
}

// has is for exact lookups, of a value between low and high.
func (l *keyLookup) has(v int64) bool {
	at := uint64(v) - uint64(l.low)
	return l.words[at/64]>>(at%64)&1 != 0
}

func (l *keyLookup) mayHave(v int64) bool {
	h := hashWord(v)
	want := bloomBits(h)
	return l.words[h>>l.shift]&want == want
}

// appendWords appends the values of a that are not null.
func appendWords(dst []int64, a arrow.Array) []int64 {
	switch a.DataType().(arrow.FixedWidthDataType).Bytes() {
	case 1:
		return appendSigned(dst, a, arrow.GetValues[int8](a.Data(), 1))
	case 2:
		return appendSigned(dst, a, arrow.GetValues[int16](a.Data(), 1))
	case 4:
		return appendSigned(dst, a, arrow.GetValues[int32](a.Data(), 1))
	}
	return appendSigned(dst, a, arrow.GetValues[int64](a.Data(), 1))
}

func appendSigned[T word](dst []int64, a arrow.Array, values []T) []int64 {
	nulls := a.NullN() > 0
	for i, v := range values {
		if !nulls || a.IsValid(i) {
			dst = append(dst, int64(v))
		}
	}
	return dst
}

// keyGifts are the sets that one run of a join gathers.
type keyGifts struct {
	columns []KeyGift
	sets    map[KeyID]*keySet
}

func newKeyGifts(ec *ExecContext, p *HashJoin) keyGifts {
	g := keyGifts{columns: p.Spec.Gives, sets: map[KeyID]*keySet{}}
	for _, c := range g.columns {
		g.sets[c.Key] = &keySet{account: ec.account(p, "join")}
	}
	return g
}

// add gathers from the keys of a batch of the build side.
func (g keyGifts) add(keys []arrow.Array) {
	for _, c := range g.columns {
		g.sets[c.Key].add(keys[c.Column])
	}
}

func (g keyGifts) complete() {
	for _, s := range g.sets {
		s.complete()
	}
}

func (g keyGifts) release() {
	for _, s := range g.sets {
		s.release()
	}
}
