package function

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// percentileForms are the overloads of percentile and percentile_disc beside the one of
// numbers and one share: times, and several shares at once.
func percentileForms(discrete bool) []AggregateOverload {
	values := timeArg
	if discrete {
		values = dayOrTimeArg
	}
	return []AggregateOverload{
		{Args: []Matcher{values, doubleArg}, Result: firstArgType, New: newPercentiles(discrete, false)},
		{Args: []Matcher{doubleArg, sharesArg}, Result: listOfFirst, New: newPercentiles(discrete, true)},
		{Args: []Matcher{values, sharesArg}, Result: listOfFirst, New: newPercentiles(discrete, true)},
	}
}

// timeArg takes times that can be divided: a DATE as the TIMESTAMP it begins at.
var timeArg = aggArg{"TIMESTAMP", func(a arrow.DataType) (arrow.DataType, int, bool) {
	if a.ID() == arrow.DATE32 {
		return columnar.Timestamp, 5, true
	}
	return a, 0, columnar.IsTemporal(a)
}}

var dayOrTimeArg = aggArg{"DATE, TIME or TIMESTAMP", func(a arrow.DataType) (arrow.DataType, int, bool) {
	return a, 0, columnar.IsTemporal(a)
}}

var sharesArg = aggArg{"ARRAY of DOUBLE", func(a arrow.DataType) (arrow.DataType, int, bool) {
	l, ok := a.(*arrow.ListType)
	return columnar.ListOf(columnar.Float64), 1, ok && columnar.IsNumeric(l.Elem())
}}

func newPercentiles(discrete, list bool) newAccumulator {
	return func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
		shares := columnar.Float64
		if list {
			shares = columnar.ListOf(columnar.Float64)
		}
		return &percentiles{
			quantile: *newQuantile(mem, nil), words: orderWords{dt: args[0]}, discrete: discrete, list: list, shares: []float64{0.5},
			fields: []arrow.Field{stateField("values", columnar.ListOf(args[0])), stateField("percentile", shares)},
		}, nil
	}
}

// percentiles is a quantile of values of any type that has order words, and of several
// shares if list is set; a group without values then has no array.
type percentiles struct {
	quantile
	words    orderWords
	discrete bool
	list     bool
	shares   []float64
	fields   []arrow.Field
}

func (a *percentiles) Fields() []arrow.Field { return a.fields }
func (a *percentiles) Bytes() int64          { return a.quantile.Bytes() + bytesOfSlice(a.words.scratch, 8) }

func (a *percentiles) Update(groups []uint32, args []columnar.Datum) error {
	if len(args) > 1 {
		a.takeShares(args[1].Array())
	}
	words, valid, none := a.words.load(args[0], len(groups))
	if none {
		return nil
	}
	for i, g := range groups {
		if valid.is(i) {
			if err := a.push(g, words[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *percentiles) push(g uint32, word int64) error {
	room, err := a.room(g)
	if err != nil {
		return err
	}
	room[0] = word
	a.cells[g].at++
	return nil
}

// takeShares takes the shares from the first row that has some.
func (a *percentiles) takeShares(p arrow.Array) {
	for i := 0; i < p.Len() && !a.known; i++ {
		if p.IsNull(i) {
			continue
		}
		a.known = true
		one, ok := p.(*array.Float64)
		if ok {
			a.shares = []float64{one.Value(i)}
			continue
		}
		l := p.(*array.List)
		from, to := l.ValueOffsets(i)
		elems := l.ListValues().(*array.Float64)
		a.shares = make([]float64, 0, to-from)
		for j := int(from); j < int(to); j++ {
			if elems.IsNull(j) {
				a.shares = append(a.shares, math.NaN())
			} else {
				a.shares = append(a.shares, elems.Value(j))
			}
		}
	}
}

func (a *percentiles) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	lists := state[0].(*array.List)
	elems := lists.ListValues()
	elems.Retain()
	d := columnar.ColumnDatum(elems)
	defer d.Release()
	words, _, _ := a.words.load(d, elems.Len())
	for i, g := range groups {
		if lists.IsNull(i) {
			continue
		}
		from, to := lists.ValueOffsets(i)
		for j := from; j < to; j++ {
			if err := a.push(g, words[j]); err != nil {
				return err
			}
		}
	}
	a.takeShares(state[1])
	return nil
}

// Absorb copies the lists of another.
func (a *percentiles) Absorb(groups []uint32, other Accumulator, from []uint32) error {
	o := other.(*percentiles)
	if !a.known {
		a.known, a.shares = o.known, o.shares
	}
	return a.quantile.Absorb(groups, &o.quantile, from)
}

func (a *percentiles) Load(groups []uint32, state []arrow.Array) error {
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *percentiles) State(groups []uint32) ([]arrow.Array, error) {
	lengths := make([]int, len(groups))
	var all []int64
	for i, g := range groups {
		before := len(all)
		a.each(g, func(from, to uint32) { all = append(all, a.quantile.words(from, to)...) })
		lengths[i] = len(all) - before
	}
	if len(all) > math.MaxInt32 {
		return nil, errPlaces
	}
	values := a.words.column(a.mem, len(all), func(i int) (int64, bool) { return all[i], true })
	defer values.Release()
	return []arrow.Array{listColumn(a.mem, values, lengths), a.sharesColumn(len(groups))}, nil
}

// sharesColumn is the state column of the shares, null before they are known.
func (a *percentiles) sharesColumn(n int) arrow.Array {
	shares := a.shares
	lengths := slices.Repeat([]int{len(shares)}, n)
	if a.list && !a.known {
		shares, lengths = nil, slices.Repeat([]int{-1}, n)
	}
	p := newOut[float64](a.mem, columnar.Float64, n*len(shares))
	for i := range p.values {
		if p.values[i] = shares[i%len(shares)]; !a.known {
			p.null(i)
		}
	}
	if !a.list {
		return p.array()
	}
	elems := p.array()
	defer elems.Release()
	return listColumn(a.mem, elems, lengths)
}

func (a *percentiles) Result(groups []uint32) (arrow.Array, error) {
	var sorted, found []int64
	var known []bool
	lengths := make([]int, len(groups))
	for i, g := range groups {
		sorted = sorted[:0]
		a.each(g, func(from, to uint32) { sorted = append(sorted, a.quantile.words(from, to)...) })
		if lengths[i] = len(a.shares); a.list && len(sorted) == 0 {
			lengths[i] = -1
			continue
		}
		slices.Sort(sorted)
		for _, share := range a.shares {
			word, ok := a.at(sorted, share)
			found, known = append(found, word), append(known, ok)
		}
	}
	values := a.words.column(a.mem, len(found), func(i int) (int64, bool) { return found[i], known[i] })
	if !a.list {
		return values, nil
	}
	defer values.Release()
	return listColumn(a.mem, values, lengths), nil
}

// at is the value at a share of the way through sorted words.
func (a *percentiles) at(sorted []int64, share float64) (word int64, ok bool) {
	if len(sorted) == 0 || !(share >= 0 && share <= 1) {
		return 0, false
	}
	if a.discrete {
		return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)], true
	}
	at := share * float64(len(sorted)-1)
	low := int(at)
	part := at - float64(low)
	if part == 0 {
		return sorted[low], true
	}
	if columnar.IsFloat(a.words.dt) {
		from := wordFloat(sorted[low])
		return floatWord(from + (wordFloat(sorted[low+1])-from)*part), true
	}
	return sorted[low] + int64(math.Round(float64(sorted[low+1]-sorted[low])*part)), true
}

var _ Absorber = (*percentiles)(nil)

// medianOfTimes is the overload of median for times.
func medianOfTimes() AggregateOverload {
	return AggregateOverload{Args: []Matcher{timeArg}, Result: firstArgType, New: newPercentiles(false, false)}
}
