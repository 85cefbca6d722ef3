package function

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/axiomhq/hyperloglog"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// Sketches are summaries of bounded size whose content depends on the set of values
// alone, not on their order or on how they were merged: a result does not depend on the
// number of workers. That rules out t-digests and HyperLogLogs that estimate as they go.

// sketch is the summary of one group.
type sketch interface {
	// merge adds what encode wrote of another.
	merge(state []byte) error
	// encode appends the state.
	encode(dst []byte) []byte
	bytes() int64
}

// sketches holds a sketch for each group that has a value.
type sketches[S sketch] struct {
	mem    memory.Allocator
	fields []arrow.Field
	out    arrow.DataType
	empty  func() S
	// update adds the rows of args.
	update func(a *sketches[S], groups []uint32, args []columnar.Datum) error
	result func(a *sketches[S], s S) (value any, ok bool)
	none   any // the result of a group without values
	cells  []S
	has    []bool
	held   int64

	parameter float64 // of quantiles
	known     bool

	numbers, more []float64
	hashes        []uint64
}

func (a *sketches[S]) Fields() []arrow.Field { return a.fields }

func (a *sketches[S]) Resize(groups int) {
	var zero S
	a.cells, a.has = extend(a.cells, groups, zero), extend(a.has, groups, false)
}

func (a *sketches[S]) Bytes() int64 { return int64(cap(a.cells))*17 + a.held }
func (a *sketches[S]) Release()     { a.cells, a.has = nil, nil }

// at is the sketch of g, made if it is not there.
func (a *sketches[S]) at(g uint32) S {
	if !a.has[g] {
		a.cells[g], a.has[g] = a.empty(), true
		a.held += a.cells[g].bytes()
	}
	return a.cells[g]
}

// change applies f to the sketch of g and keeps count of memory.
func (a *sketches[S]) change(g uint32, f func(s S) error) error {
	s := a.at(g)
	before := s.bytes()
	err := f(s)
	a.held += s.bytes() - before
	return err
}

func (a *sketches[S]) Update(groups []uint32, args []columnar.Datum) error {
	return a.update(a, groups, args)
}

func (a *sketches[S]) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	b := state[0].(*array.Binary)
	for i, g := range groups {
		if b.IsNull(i) {
			continue
		}
		if err := a.change(g, func(s S) error { return s.merge(b.Value(i)) }); err != nil {
			return fmt.Errorf("stored sketch: %w", err)
		}
	}
	if len(state) > 1 && len(a.fields) > 1 {
		p := state[1].(*array.Float64)
		for i := 0; i < p.Len() && !a.known; i++ {
			if !p.IsNull(i) {
				a.parameter, a.known = p.Value(i), true
			}
		}
	}
	return nil
}

func (a *sketches[S]) Load(groups []uint32, state []arrow.Array) error {
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *sketches[S]) Clear(groups []uint32) {
	var zero S
	for _, g := range groups {
		if a.has[g] {
			a.held -= a.cells[g].bytes()
		}
		a.cells[g], a.has[g] = zero, false
	}
}

func (a *sketches[S]) State(groups []uint32) ([]arrow.Array, error) {
	b := columnar.NewBuilder(a.mem, columnar.Binary)
	defer b.Release()
	var buf []byte
	for _, g := range groups {
		if !a.has[g] {
			b.AppendNull()
			continue
		}
		buf = a.cells[g].encode(buf[:0])
		if err := b.Append(buf); err != nil {
			return nil, err
		}
	}
	state := []arrow.Array{b.NewArray()}
	if len(a.fields) > 1 {
		p := newOut[float64](a.mem, columnar.Float64, len(groups))
		for i := range groups {
			if p.values[i] = a.parameter; !a.known {
				p.null(i)
			}
		}
		state = append(state, p.array())
	}
	return state, nil
}

func (a *sketches[S]) Result(groups []uint32) (arrow.Array, error) {
	b := columnar.NewBuilder(a.mem, a.out)
	defer b.Release()
	for _, g := range groups {
		v, ok := a.none, a.none != nil
		if a.has[g] {
			v, ok = a.result(a, a.cells[g])
		}
		if !ok {
			b.AppendNull()
		} else if err := b.Append(v); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

// distinctSketch counts different hashes: exactly up to exactHashes, then by a
// HyperLogLog without a sparse form, whose registers are maxima.
type distinctSketch struct {
	exact []uint64 // ascending; nil once there is a log
	log   *hyperloglog.Sketch
}

const (
	exactHashes  = 256
	logPrecision = 12 // 4,096 registers: a standard error of 1.6 per cent
)

func (s *distinctSketch) add(hash uint64) {
	if s.log != nil {
		s.log.InsertHash(hash)
		return
	}
	at, found := slices.BinarySearch(s.exact, hash)
	if found {
		return
	}
	s.exact = slices.Insert(s.exact, at, hash)
	if len(s.exact) > exactHashes {
		s.toLog()
	}
}

func (s *distinctSketch) toLog() {
	s.log, _ = hyperloglog.NewSketch(logPrecision, false) // an error is of the precision alone
	for _, h := range s.exact {
		s.log.InsertHash(h)
	}
	s.exact = nil
}

func (s *distinctSketch) bytes() int64 {
	if s.log != nil {
		return 1<<logPrecision + 64
	}
	return int64(cap(s.exact))*8 + 48
}

// encode writes a byte 0 and the hashes, or a byte 1 and the log.
func (s *distinctSketch) encode(dst []byte) []byte {
	if s.log != nil {
		dst, _ = s.log.AppendBinary(append(dst, 1)) // it cannot fail
		return dst
	}
	dst = append(dst, 0)
	for _, h := range s.exact {
		dst = binary.LittleEndian.AppendUint64(dst, h)
	}
	return dst
}

func (s *distinctSketch) merge(state []byte) error {
	switch {
	case len(state) == 0 || state[0] > 1 || state[0] == 0 && len(state)%8 != 1:
		return fmt.Errorf("%d bytes are no count of different values", len(state))
	case state[0] == 0:
		for b := state[1:]; len(b) > 0; b = b[8:] {
			s.add(binary.LittleEndian.Uint64(b))
		}
		return nil
	}
	var o hyperloglog.Sketch
	if err := o.UnmarshalBinary(state[1:]); err != nil {
		return err
	}
	if s.log == nil {
		s.toLog()
	}
	return s.log.Merge(&o)
}

func (s *distinctSketch) count() int64 {
	if s.log != nil {
		return int64(s.log.Estimate())
	}
	return int64(len(s.exact))
}

func approxDistinctAggregate() *Aggregate {
	return &Aggregate{
		Name:    "approx_count_distinct",
		Aliases: []string{"approx_distinct"},
		Doc:     "About how many different values there are, nulls aside: exact up to 256, then a HyperLogLog with a standard error of 1.6 per cent in 4 kB for each group. A standard error as the second argument must be above that.",
		Example: "SELECT approx_count_distinct(x) FROM (VALUES (1), (NULL), (3), (1)) AS t(x) = 2",
		Overloads: []AggregateOverload{{
			Args: []Matcher{valueArg}, Result: resultType(columnar.Int64), IgnoresDistinct: true,
			New: func(mem memory.Allocator, _ []arrow.DataType) (Accumulator, error) {
				return &sketches[*distinctSketch]{
					mem: mem, fields: []arrow.Field{stateField("values", columnar.Binary)}, out: columnar.Int64, none: int64(0),
					empty: func() *distinctSketch { return &distinctSketch{} }, update: addDistinct,
					result: func(_ *sketches[*distinctSketch], s *distinctSketch) (any, bool) { return s.count(), true },
				}, nil
			},
		}},
	}
}

func addDistinct(a *sketches[*distinctSketch], groups []uint32, args []columnar.Datum) error {
	values := args[0].Array()
	a.hashes = sized(a.hashes, values.Len())
	kernel.Hash(a.hashes, []arrow.Array{values}, 0)
	for i, g := range groups {
		row := i
		if args[0].IsConstant() {
			row = 0
		}
		if columnar.IsNull(values, row) {
			continue
		}
		if err := a.change(g, func(s *distinctSketch) error { s.add(a.hashes[row]); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// quantileSketch counts values in buckets whose bounds grow by a constant factor. What
// has no bucket is counted apart.
type quantileSketch struct {
	s *ddsketch.DDSketch
	// low, high and nan count -Infinity, Infinity and NaN.
	low, high, nan uint64
	n              int64 // values and merges that may have made a bucket
}

// mostBuckets is about how many buckets values of many magnitudes fill.
const mostBuckets = 4096

// quantileError is how far a result may be from a value at its place, relatively.
const quantileError = 0.005

func newQuantileSketch() *quantileSketch {
	m, err := mapping.NewLogarithmicMapping(quantileError)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return &quantileSketch{s: ddsketch.NewDDSketch(m, store.NewSparseStore(), store.NewSparseStore())}
}

func (q *quantileSketch) add(v float64) error {
	switch {
	case v != v:
		q.nan++
	case v > q.s.MaxIndexableValue():
		q.high++
	case v < -q.s.MaxIndexableValue():
		q.low++
	default:
		q.n++
		return q.s.Add(v)
	}
	return nil
}

// bytes is an estimate: counting the buckets takes longer than filling them.
func (q *quantileSketch) bytes() int64 { return min(q.n, mostBuckets)*24 + 200 }

func (q *quantileSketch) encode(dst []byte) []byte {
	for _, n := range []uint64{q.low, q.high, q.nan} {
		dst = binary.AppendUvarint(dst, n)
	}
	q.s.Encode(&dst, true)
	return dst
}

func (q *quantileSketch) merge(state []byte) error {
	for _, n := range []*uint64{&q.low, &q.high, &q.nan} {
		v, size := binary.Uvarint(state)
		if size <= 0 {
			return fmt.Errorf("%d bytes are no counts of values", len(state))
		}
		*n += v
		state = state[size:]
	}
	q.n += int64(len(state)) / 4
	return q.s.DecodeAndMergeWith(state)
}

// at is about the value with a share p of the values below it.
func (q *quantileSketch) at(p float64) (float64, error) {
	middle := q.s.GetCount()
	rank := p * (float64(q.low) + middle + float64(q.high+q.nan) - 1)
	if rank < float64(q.low) {
		return math.Inf(-1), nil
	}
	rank -= float64(q.low)
	switch {
	case rank < middle && middle == 1:
		return q.s.GetValueAtQuantile(0)
	case rank < middle:
		return q.s.GetValueAtQuantile(math.Min(1, rank/(middle-1)))
	case rank-middle < float64(q.high):
		return math.Inf(1), nil
	}
	return math.NaN(), nil
}

func approxQuantileAggregate() *Aggregate {
	return &Aggregate{
		Name:    "approx_quantile",
		Aliases: []string{"approx_percentile", "percentile_approx"},
		Doc:     "About the value that a share of the values, the second argument (a constant from 0 to 1), lies below, nulls aside: within half a per cent of a value at that place, by a DDSketch. An array of shares, written out, gives an array; with an accuracy (a whole number) as the third argument the rank is exact, and the value is that of percentile_disc, as a DOUBLE, for which all values are kept.",
		Example: "SELECT round(approx_quantile(x, 0.5)) FROM (VALUES (1), (NULL), (10), (3)) AS t(x) = 3.0",
		Overloads: []AggregateOverload{{
			Args: []Matcher{doubleArg, doubleArg}, Constant: oneShare, Result: resultType(columnar.Float64),
			New: func(mem memory.Allocator, _ []arrow.DataType) (Accumulator, error) {
				return &sketches[*quantileSketch]{
					mem: mem, fields: []arrow.Field{stateField("values", columnar.Binary), stateField("share", columnar.Float64)}, out: columnar.Float64,
					empty: newQuantileSketch, update: addQuantile, parameter: 0.5,
					result: func(a *sketches[*quantileSketch], q *quantileSketch) (any, bool) {
						v, err := q.at(a.parameter)
						return v, err == nil
					},
				}, nil
			},
		}},
	}
}

func addQuantile(a *sketches[*quantileSketch], groups []uint32, args []columnar.Datum) error {
	values, valid, none := fixedArg(args[0], len(groups), &a.numbers)
	if shares, ok, missing := fixedArg(args[1], len(groups), &a.more); !a.known && !missing && len(groups) > 0 && ok.is(0) {
		a.parameter, a.known = shares[0], true
	}
	if none {
		return nil
	}
	for i, g := range groups {
		if !valid.is(i) {
			continue
		}
		if err := a.change(g, func(q *quantileSketch) error { return q.add(values[i]) }); err != nil {
			return err
		}
	}
	return nil
}
