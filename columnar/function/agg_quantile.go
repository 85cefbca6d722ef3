package function

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

func medianAggregate() *Aggregate {
	return &Aggregate{
		Name:    "median",
		Doc:     "The middle value, or the mean of the two in the middle; nulls aside. Of dates it is a TIMESTAMP.",
		Example: "SELECT median(x) FROM (VALUES (1), (NULL), (10), (3)) AS t(x) = 3.0",
		Overloads: []AggregateOverload{{
			Args:   []Matcher{doubleArg},
			Result: resultType(columnar.Float64),
			New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
				return newQuantile(mem, nil), nil
			},
		}, medianOfTimes()},
	}
}

func percentileAggregate() *Aggregate {
	return &Aggregate{
		Name:    "percentile",
		Aliases: []string{"percentile_cont", "quantile_cont"},
		Doc:     "The exact percentile of the values, the second argument (a constant from 0 to 1, or an array of such), with linear interpolation; nulls aside. Of dates it is a TIMESTAMP.",
		Example: "SELECT percentile(x, 0.25) FROM (VALUES (0), (10)) AS t(x) = 2.5",
		Overloads: append([]AggregateOverload{{
			Args:     []Matcher{doubleArg, doubleArg},
			Constant: oneShare,
			Result:   resultType(columnar.Float64),
			New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
				return newQuantile(mem, nil), nil
			},
		}}, percentileForms()...),
	}
}

// discretePercentileAggregate gives a value that is there.
func discretePercentileAggregate() *Aggregate {
	return &Aggregate{
		Name:      "percentile_disc",
		Aliases:   []string{"quantile_disc", "quantile"},
		Doc:       "The least value that a share of the values, the second argument (a constant from 0 to 1, or an array of such), does not exceed, in the type of the values; nulls aside.",
		Example:   "SELECT percentile_disc(x, 0.5) FROM (VALUES (1), (NULL), (10), (3), (4)) AS t(x) = 3",
		Overloads: discretePercentileForms(),
	}
}

func medianDeviationAggregate() *Aggregate {
	return &Aggregate{
		Name:    "mad",
		Doc:     "The median of the distances of the values from their median; nulls aside.",
		Example: "SELECT mad(x) FROM (VALUES (1), (NULL), (10), (3)) AS t(x) = 2.0",
		Overloads: []AggregateOverload{{
			Args:   []Matcher{doubleArg},
			Result: resultType(columnar.Float64),
			New: func(mem memory.Allocator, _ []arrow.DataType) (Accumulator, error) {
				return newQuantile(mem, medianDeviation), nil
			},
		}},
	}
}

// medianDeviation is that of sorted values.
func medianDeviation(sorted []float64) float64 {
	middle := interpolated(sorted, 0.5)
	distances := make([]int64, len(sorted))
	for i, x := range sorted {
		distances[i] = floatWord(math.Abs(x - middle))
	}
	return quantileOf(distances, 0.5)
}

// quantile keeps all values of every group as order words (floatWord), in lists of
// chains.
type quantile struct {
	mem memory.Allocator
	chains
	segments []*[segmentPlaces]int64
	param    float64
	known    bool // param was seen
	// pick is the value of a group whose values are in ascending order; nil is linear
	// interpolation at param.
	pick    func(sorted []float64) float64
	scratch []float64
}

func newQuantile(mem memory.Allocator, pick func([]float64) float64) *quantile {
	return &quantile{mem: mem, param: 0.5, pick: pick}
}

var quantileFields = []arrow.Field{stateField("values", columnar.ListOf(columnar.Float64)), stateField("percentile", columnar.Float64)}

func (a *quantile) Fields() []arrow.Field { return quantileFields }
func (a *quantile) Resize(groups int)     { a.cells = extend(a.cells, groups, chainCell{}) }
func (a *quantile) Release()              { a.chains, a.segments, a.scratch = chains{}, nil, nil }

func (a *quantile) Bytes() int64 {
	return a.chains.bytes() + int64(len(a.segments))*8*segmentPlaces + bytesOfSlice(a.scratch, 8)
}

func (a *quantile) Update(groups []uint32, args []columnar.Datum) error {
	if len(args) > 1 {
		a.takeParam(args[1].Array())
	}
	values, valid, none := fixedArg(args[0], len(groups), &a.scratch)
	if none {
		return nil
	}
	for i, g := range groups {
		if !valid.is(i) {
			continue
		}
		c := &a.cells[g]
		if c.at == c.end {
			if err := a.grow(c); err != nil {
				return err
			}
		}
		a.segments[c.at>>segmentBits][c.at&(segmentPlaces-1)] = floatWord(values[i])
		c.at++
	}
	return nil
}

// takeParam takes the percentile from the first row that has one.
func (a *quantile) takeParam(p arrow.Array) {
	for i := 0; i < p.Len() && !a.known; i++ {
		if p.IsValid(i) {
			a.known, a.param = true, p.(*array.Float64).Value(i)
		}
	}
}

func (a *quantile) grow(c *chainCell) error {
	if err := a.chains.grow(c); err != nil {
		return err
	}
	for uint32(len(a.segments))<<segmentBits < a.places {
		a.segments = append(a.segments, new([segmentPlaces]int64))
	}
	return nil
}

// room is the free places of the list of g, at least one.
func (a *quantile) room(g uint32) ([]int64, error) {
	c := &a.cells[g]
	if c.at == c.end {
		if err := a.grow(c); err != nil {
			return nil, err
		}
	}
	return a.words(c.at, c.end), nil
}

// words is a stretch of places.
func (a *quantile) words(from, to uint32) []int64 {
	if from == to {
		return nil
	}
	at := from & (segmentPlaces - 1)
	return a.segments[from>>segmentBits][at : at+to-from]
}

func (a *quantile) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(quantileFields, state, len(groups)); err != nil {
		return err
	}
	lists := state[0].(*array.List)
	values := fixedOf[float64](lists.ListValues())
	for i, g := range groups {
		if lists.IsNull(i) {
			continue
		}
		from, to := lists.ValueOffsets(i)
		for from < to {
			room, err := a.room(g)
			if err != nil {
				return err
			}
			n := min(int64(len(room)), to-from)
			for k, v := range values[from : from+n] {
				room[k] = floatWord(v)
			}
			a.cells[g].at += uint32(n)
			from += n
		}
	}
	a.takeParam(state[1])
	return nil
}

// Absorb copies the lists of another quantile.
func (a *quantile) Absorb(groups []uint32, other Accumulator, from []uint32) (err error) {
	o := other.(*quantile)
	for i, g := range groups {
		o.each(from[i], func(from, to uint32) {
			for words := o.words(from, to); len(words) > 0 && err == nil; {
				var room []int64
				if room, err = a.room(g); err == nil {
					n := copy(room, words)
					a.cells[g].at += uint32(n)
					words = words[n:]
				}
			}
		})
		if err != nil {
			return err
		}
	}
	if !a.known {
		a.known, a.param = o.known, o.param
	}
	return nil
}

func (a *quantile) Load(groups []uint32, state []arrow.Array) error {
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *quantile) Clear(groups []uint32) {
	for _, g := range groups {
		a.clear(g)
	}
}

func (a *quantile) State(groups []uint32) ([]arrow.Array, error) {
	lengths := make([]int, len(groups))
	total := 0
	for i, g := range groups {
		a.each(g, func(from, to uint32) { lengths[i] += int(to - from) })
		total += lengths[i]
	}
	if total > math.MaxInt32 {
		return nil, errPlaces
	}
	values := newOut[float64](a.mem, columnar.Float64, total)
	at := 0
	for _, g := range groups {
		a.each(g, func(from, to uint32) {
			for _, w := range a.words(from, to) {
				values.values[at] = wordFloat(w)
				at++
			}
		})
	}
	all := values.array()
	defer all.Release()
	p := newOut[float64](a.mem, columnar.Float64, len(groups))
	for i := range groups {
		if p.values[i] = a.param; !a.known {
			p.null(i)
		}
	}
	return []arrow.Array{listColumn(a.mem, all, lengths), p.array()}, nil
}

func (a *quantile) Result(groups []uint32) (arrow.Array, error) {
	o := newOut[float64](a.mem, columnar.Float64, len(groups))
	var w []int64 // in the order of the values; NaN is the greatest
	var v []float64
	for i, g := range groups {
		w = w[:0]
		a.each(g, func(from, to uint32) { w = append(w, a.words(from, to)...) })
		switch {
		case len(w) == 0:
			o.null(i)
		case a.pick == nil:
			o.values[i] = quantileOf(w, a.param)
		default:
			slices.Sort(w)
			v = v[:0]
			for _, word := range w {
				v = append(v, wordFloat(word))
			}
			o.values[i] = a.pick(v)
		}
	}
	return o.array(), nil
}

// interpolated is the value at a share p of the way through sorted values.
func interpolated(v []float64, p float64) float64 {
	at := p * float64(len(v)-1)
	low := int(at)
	if part := at - float64(low); part > 0 {
		return between(v[low], v[low+1], part)
	}
	return v[low]
}

// between is the value a part of the way from one value to another, whose distance may be more
// than a DOUBLE holds.
func between(from, to, part float64) float64 {
	if way := to - from; !math.IsInf(way, 0) {
		return from + way*part
	}
	half := (to/2 - from/2) * part
	return from + half + half
}

// quantileOf is interpolated of values that are not sorted, as order words. It moves
// them about.
func quantileOf(w []int64, p float64) float64 {
	at := p * float64(len(w)-1)
	low := int(at)
	least := wordFloat(nth(w, low))
	if part := at - float64(low); part > 0 {
		return between(least, wordFloat(slices.Min(w[low+1:])), part)
	}
	return least
}

// nth is the value that stands at place n in ascending order; then it does, and none
// behind it is smaller. No more is sorted than must be: the side of a pivot that place n
// is not in is left alone. Values change places without a branch that depends on them.
func nth(w []int64, n int) int64 {
	lo, hi := 0, len(w)
	for tries := 0; hi-lo > 24; tries++ {
		if tries == 64 {
			break // bad luck with the pivots
		}
		pivot := pivotOf(w[lo:hi])
		below := smallerFirst(w[lo:hi], pivot)
		if below == 0 {
			// The pivot is the least: past its equals, of which there may be many.
			if below = smallerFirst(w[lo:hi], pivot+1); n < lo+below {
				return pivot
			}
		}
		if n < lo+below {
			hi = lo + below
		} else {
			lo += below
		}
	}
	slices.Sort(w[lo:hi])
	return w[n]
}

// smallerFirst puts the values below limit first and returns how many they are.
func smallerFirst(w []int64, limit int64) int {
	n := 0
	for i, v := range w {
		w[i] = w[n]
		w[n] = v
		n += int(boolByte(v < limit))
	}
	return n
}

// pivotOf is near the middle: the middle of three, or of three such.
func pivotOf(w []int64) int64 {
	n := len(w)
	middle := middleOf(w[0], w[n/2], w[n-1])
	if n < 256 {
		return middle
	}
	return middleOf(middleOf(w[n/8], w[n/4], w[n*3/8]), middle, middleOf(w[n*5/8], w[n*3/4], w[n*7/8]))
}

func middleOf(a, b, c int64) int64 { return max(min(a, b), min(max(a, b), c)) }

var _ Absorber = (*quantile)(nil)
