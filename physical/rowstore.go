package physical

import (
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// rowStore keeps the rows of many batches, numbered in the order they were added. Add
// everything, seal, then gather, from any number of goroutines.
type rowStore struct {
	mem     memory.Allocator
	schema  *arrow.Schema
	batches []arrow.RecordBatch
	starts  []int64 // number of the first row of each batch, and of all rows
	bytes   int64
	account *account
	widths  []RowWidths // of the batches, once they are sealed
}

func newRowStore(mem memory.Allocator, schema *arrow.Schema, acct *account) *rowStore {
	return &rowStore{mem: mem, schema: schema, starts: []int64{0}, account: acct}
}

// rows is the number of rows.
func (s *rowStore) rows() int { return int(s.starts[len(s.starts)-1]) }

// add keeps the rows of b.
func (s *rowStore) add(b arrow.RecordBatch) error {
	n := batchBytes(b)
	if err := s.account.set(s.bytes + n); err != nil {
		return err
	}
	s.bytes += n
	b.Retain()
	s.batches = append(s.batches, b)
	s.starts = append(s.starts, s.starts[len(s.starts)-1]+b.NumRows())
	return nil
}

// chunkBytes is how much seal puts together: gathering from one batch is quickest, but
// text offsets have 31 bits.
const chunkBytes = 512 << 20

// seal puts batches together, so that gather looks into few.
func (s *rowStore) seal() error {
	var chunks []arrow.RecordBatch
	starts := []int64{0}
	for from := 0; from < len(s.batches); {
		to, size := from, int64(0)
		for to < len(s.batches) && (to == from || size < chunkBytes) {
			size += batchBytes(s.batches[to])
			to++
		}
		c, err := kernel.ConcatBatches(s.mem, s.schema, s.batches[from:to])
		if err != nil {
			releaseBatches(chunks)
			return err
		}
		chunks = append(chunks, c)
		starts = append(starts, s.starts[to])
		from = to
	}
	releaseBatches(s.batches)
	s.batches, s.starts = chunks, starts
	for _, b := range s.batches {
		columnar.Share(b)
		s.widths = append(s.widths, WidthsOf(b.Columns()))
	}
	return nil
}

// widest is about how much memory the widest row takes.
func (s *rowStore) widest() int64 {
	most := int64(0)
	for i := range s.widths {
		most = max(most, s.widths[i].most)
	}
	return most
}

// width is about how much memory the row with the given number takes; -1 takes none.
func (s *rowStore) width(row int32) int64 {
	if row < 0 {
		return 0
	}
	ref := s.ref(uint32(row))
	return s.widths[ref.Batch()].At(int32(ref.Row()))
}

// columns is the rows with the given numbers, -1 standing for a row of nulls, as
// columns of the caller's.
func (s *rowStore) columns(rows []int32) ([]arrow.Array, error) {
	out := make([]arrow.Array, 0, s.schema.NumFields())
	var refs []kernel.Ref
	if len(s.batches) > 1 {
		refs = s.refs(rows)
	}
	for c, f := range s.schema.Fields() {
		var a arrow.Array
		var err error
		switch len(s.batches) {
		case 0:
			a = columnar.Nulls(s.mem, f.Type, len(rows))
		case 1:
			a, err = kernel.Take(s.mem, s.batches[0].Column(c), rows)
		default:
			sources := make([]arrow.Array, len(s.batches))
			for i, b := range s.batches {
				sources[i] = b.Column(c)
			}
			a, err = kernel.Gather(s.mem, sources, refs)
		}
		if err != nil {
			releaseAll(out)
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// refs is where the rows with the given numbers are.
func (s *rowStore) refs(rows []int32) []kernel.Ref {
	refs := make([]kernel.Ref, len(rows))
	for i, r := range rows {
		if r < 0 {
			refs[i] = kernel.NoRow
			continue
		}
		refs[i] = s.ref(uint32(r))
	}
	return refs
}

// ref is where the row with the given number is.
func (s *rowStore) ref(row uint32) kernel.Ref {
	b := sort.Search(len(s.batches), func(k int) bool { return s.starts[k+1] > int64(row) })
	return kernel.MakeRef(b, int(int64(row)-s.starts[b]))
}

func (s *rowStore) release() {
	releaseBatches(s.batches)
	s.batches = nil
	s.account.release()
}
