package physical

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// partitionBits is the logarithm of the number of parts that many groups are merged in.
const (
	partitionBits = 6
	partitions    = 1 << partitionBits
	partitionSeed = 0x5bd1e9955bd1e995
	// scatterRows is how many rows are put in order of their part at once, so that each part
	// gets some hundred of them next to each other.
	scatterRows = 64 << 10
)

// scattered is rows or states of groups ordered by part: part p is those from bounds[p] to
// bounds[p+1].
//
//	columns  of states: those of StateSchema, with a grouping those of its keptStates;
//	         of rows: keys, arguments, ordinal (AggregateInput.columns); then, if it
//	         matters, where each was first seen
type scattered struct {
	form    scatterForm
	columns []*kernel.Narrow
	bounds  [partitions + 1]uint32
	groups  []uint32 // row i belongs to groups[i] of form.g
}

// scatterForm says what scattered columns are.
type scatterForm struct {
	rows bool
	g    *grouping // of states: what holds the others; nil: they are all there
}

// scatterer collects what one input leaves behind for the parts. It is used by one
// goroutine until the parts are merged, then only read.
type scatterer struct {
	ec         *ExecContext
	keys       int  // columns that are keys
	withFirsts bool // results are wanted in order of first sight
	account    *account
	order      *arrivalOrder // of where rows were first seen, when the parts are merged

	kept  []scattered
	rows  int // in kept
	bytes int64

	form    scatterForm // of what is pending
	pending [][]arrow.Array
	waiting int // rows
	hashes  []uint64
	places  []uint32
}

// add takes rows whose columns it borrows; firsts is where each was first seen.
func (s *scatterer) add(form scatterForm, columns []arrow.Array, rows int, firsts func(i int) int64) error {
	columns = retained(columns)
	if s.withFirsts {
		buf, out := kernel.Make[int64](s.ec.Mem, rows)
		for i := range out {
			out[i] = firsts(i)
		}
		columns = append(columns, kernel.Wrap(columnar.Int64, rows, 0, nil, buf))
	}
	if s.waiting > 0 && (form != s.form || !sameDictionaries(s.pending[0], columns)) {
		if err := s.flush(); err != nil {
			releaseAll(columns)
			return err
		}
	}
	s.form = form
	s.pending = append(s.pending, columns)
	s.waiting += rows
	if s.waiting < scatterRows {
		return nil
	}
	return s.flush()
}

// sameDictionaries says whether columns of two batches can be scattered together.
func sameDictionaries(a, b []arrow.Array) bool {
	for i := range a {
		x, _ := a[i].(*array.Dictionary)
		y, _ := b[i].(*array.Dictionary)
		if (x == nil) != (y == nil) || x != nil && !columnar.SameMemory(x.Dictionary(), y.Dictionary()) {
			return false
		}
	}
	return true
}

// flush puts what is pending in order.
func (s *scatterer) flush() error {
	if s.waiting == 0 {
		return nil
	}
	defer s.drop()
	s.hashes, s.places = resize(s.hashes, s.waiting), resize(s.places, s.waiting)
	at := 0
	for _, columns := range s.pending {
		n := columns[0].Len()
		kernel.Hash(s.hashes[at:at+n], columns[:s.keys], partitionSeed)
		at += n
	}
	x := scattered{form: s.form}
	partition(s.hashes, s.places, x.bounds[:])
	if x.form.g != nil {
		x.groups = make([]uint32, s.waiting)
		for i, p := range s.places {
			x.groups[p] = uint32(i)
		}
		s.bytes += 4 * int64(s.waiting)
	}
	sources := make([]arrow.Array, len(s.pending))
	for c := range s.pending[0] {
		for i, columns := range s.pending {
			sources[i] = columns[c]
		}
		n, err := kernel.Scatter(s.ec.Mem, sources, s.places)
		if err != nil {
			x.release()
			return err
		}
		x.columns = append(x.columns, n)
		s.bytes += n.Bytes()
		if a := n.Kept(); a != nil {
			s.bytes += columnar.DataBytes(a.Data())
		}
	}
	s.kept = append(s.kept, x)
	s.rows += s.waiting
	return s.account.set(s.bytes)
}

// partition gives rows their places in order of the upper bits of their hashes; rows of
// one part keep their order.
func partition(hashes []uint64, places, bounds []uint32) {
	const shift = 64 - partitionBits
	for _, h := range hashes {
		bounds[h>>shift+1]++
	}
	for p := 1; p < len(bounds); p++ {
		bounds[p] += bounds[p-1]
	}
	var next [partitions]uint32
	copy(next[:], bounds)
	for i, h := range hashes {
		p := h >> shift
		places[i] = next[p]
		next[p]++
	}
}

// merge adds one part of all that is kept to g.
func (s *scatterer) merge(ctx context.Context, g *grouping, part int) error {
	for i := range s.kept {
		if err := ctx.Err(); err != nil {
			return err
		}
		x := &s.kept[i]
		from, to := int(x.bounds[part]), int(x.bounds[part+1])
		if from == to {
			continue
		}
		columns := make([]arrow.Array, len(x.columns))
		for c, n := range x.columns {
			columns[c] = n.Slice(s.ec.Mem, from, to)
		}
		err := s.mergeColumns(g, x, columns, from, to)
		releaseAll(columns)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scatterer) mergeColumns(g *grouping, x *scattered, columns []arrow.Array, from, to int) error {
	var firsts []int64
	if s.withFirsts {
		last := len(columns) - 1
		firsts, columns = slices.Clone(kernel.Values[int64](columns[last])), columns[:last]
		s.order.rank(firsts)
	}
	if x.form.rows {
		return g.updateRows(columns, to-from, firsts)
	}
	var of *source
	if x.form.g != nil {
		of = &source{x.form.g, x.groups[from:to]}
	}
	return g.merge(columns, to-from, firsts, of)
}

// drop forgets what is pending.
func (s *scatterer) drop() {
	for _, columns := range s.pending {
		releaseAll(columns)
	}
	s.pending, s.waiting = s.pending[:0], 0
}

func (s *scatterer) release() {
	s.drop()
	for i := range s.kept {
		s.kept[i].release()
	}
	s.kept = nil
	s.account.release()
}

func (x *scattered) release() {
	for _, n := range x.columns {
		n.Release()
	}
}
