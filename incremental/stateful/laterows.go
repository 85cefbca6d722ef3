package stateful

import (
	"iter"
	"maps"
	"math/bits"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/physical"
)

// lateKeeper is what the operators of a batch share that keep late rows.
type lateKeeper struct{ budget *columnar.Budget }

// KeepLateRows has the LateFilters of a batch note which rows they drop. It is called
// before the batch is planned.
func KeepLateRows(budget *columnar.Budget, states []*Instance) {
	k := &lateKeeper{budget}
	for _, i := range states {
		i.lateKeeper = k
	}
}

// Kept are the late rows of each of the operator's LateFilters, once the batch has run.
func (i *Instance) Kept() []*LateRows { return i.kept }

// LateRows are the rows one LateFilter dropped: by their numbers in the scans they come
// from, or as they are where they come out of another state. It is filled by the
// goroutines of a batch, and read when they are done.
type LateRows struct {
	operator  string
	watermark int64
	reason    string
	keeper    *lateKeeper
	scans     []*LateScan
	own       bool // some input rows are not those of a scan
	ownSchema *arrow.Schema

	mu      sync.Mutex
	batches []arrow.RecordBatch // own rows, plain
	held    int64
}

// LateScan is the late rows of one scan.
type LateScan struct {
	Scan  *logical.StreamScan
	units map[int64]*rowSet
}

// Operator is the name of the operator that judged the rows.
func (l *LateRows) Operator() string { return l.operator }

// Watermark is what they were judged by, microseconds since the epoch.
func (l *LateRows) Watermark() int64 { return l.watermark }

// Reason says why they were late.
func (l *LateRows) Reason() string { return l.reason }

// Scans are the scans the rows come from, those without late rows too.
func (l *LateRows) Scans() []*LateScan { return l.scans }

// Own are the rows that come out of another state, as the operator was given them.
// schema is nil if there can be none. The batches are borrowed.
func (l *LateRows) Own() (schema *arrow.Schema, batches []arrow.RecordBatch) {
	if !l.own {
		return nil, nil
	}
	return l.ownSchema, l.batches
}

// Units ranges over the units that have late rows, in order, with the numbers of those
// rows in the unit, ascending.
func (s *LateScan) Units() iter.Seq2[int64, iter.Seq[int64]] {
	return func(yield func(int64, iter.Seq[int64]) bool) {
		for _, u := range slices.Sorted(maps.Keys(s.units)) {
			if !yield(u, s.units[u].rows()) {
				return
			}
		}
	}
}

// lateBytes is whose memory that is, in messages.
const lateBytes = "late rows"

// add notes late rows by scan and ordinal. n is how many were not noted before, others
// are those without a scan.
func (l *LateRows) add(scans, ordinals *array.Int64, late []int32) (n int64, others []int32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var unit int64
	var scan int64
	var set *rowSet
	numbers, rows := scans.Int64Values(), ordinals.Int64Values()
	for _, i := range late {
		if scans.IsNull(int(i)) {
			others = append(others, i)
			continue
		}
		u := rows[i] >> columnar.OrdinalShift
		if set == nil || numbers[i] != scan || u != unit {
			scan, unit = numbers[i], u
			s := l.scans[scan]
			if set = s.units[unit]; set == nil {
				set = &rowSet{}
				s.units[unit] = set
			}
		}
		grown, isNew := set.add(rows[i] & (1<<columnar.OrdinalShift - 1))
		if grown > 0 {
			if err := l.reserve(grown); err != nil {
				return n, others, err
			}
		}
		if isNew {
			n++
		}
	}
	return n, others, nil
}

func (l *LateRows) reserve(n int64) error {
	if err := l.keeper.budget.Reserve(lateBytes, n); err != nil {
		return err
	}
	l.held += n
	return nil
}

// addOwn keeps rows of b as they are, without the ordinal.
func (l *LateRows) addOwn(mem memory.Allocator, b arrow.RecordBatch, rows []int32) error {
	if len(rows) == 0 {
		return nil
	}
	some := kernel.FilterBatch(mem, b, rows)
	defer some.Release()
	plain := columnar.Plain(mem, some)
	defer plain.Release()
	kept := array.NewRecordBatch(l.ownSchema, plain.Columns()[:l.ownSchema.NumFields()], plain.NumRows())
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.reserve(physical.BatchBytes(kept)); err != nil {
		kept.Release()
		return err
	}
	l.batches = append(l.batches, kept)
	return nil
}

func (l *LateRows) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.batches {
		b.Release()
	}
	l.keeper.budget.Return(l.held)
	l.batches, l.held = nil, 0
}

// rowSet is a set of row numbers.
type rowSet struct{ words []uint64 }

// add adds row i. grown is how many bytes more the set takes.
func (s *rowSet) add(i int64) (grown int64, isNew bool) {
	w := int(i >> 6)
	if w >= len(s.words) {
		before := cap(s.words)
		s.words = slices.Grow(s.words, w+1-len(s.words))[:w+1]
		grown = int64(cap(s.words)-before) * 8
	}
	bit := uint64(1) << (i & 63)
	isNew = s.words[w]&bit == 0
	s.words[w] |= bit
	return grown, isNew
}

// rows ranges over the set, ascending.
func (s *rowSet) rows() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for w, word := range s.words {
			for word != 0 {
				if !yield(int64(w)<<6 + int64(bits.TrailingZeros64(word))) {
					return
				}
				word &= word - 1
			}
		}
	}
}
