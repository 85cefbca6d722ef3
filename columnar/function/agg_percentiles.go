package function

import (
	"math"
	"math/big"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// percentileForms are the overloads of percentile beside the one of numbers and one
// share: times, and several shares at once.
func percentileForms() []AggregateOverload {
	return []AggregateOverload{
		{Args: []Matcher{timeArg, doubleArg}, Constant: oneShare, Result: firstArgType, New: newPercentiles(false, false)},
		{Args: []Matcher{doubleArg, sharesArg}, Constant: severalShares, Result: listOfFirst, New: newPercentiles(false, true)},
		{Args: []Matcher{timeArg, sharesArg}, Constant: severalShares, Result: listOfFirst, New: newPercentiles(false, true)},
	}
}

// discretePercentileForms are those of percentile_disc, whose result is one of the values,
// as it is.
func discretePercentileForms() []AggregateOverload {
	list := []AggregateOverload{}
	for _, values := range []struct {
		arg Matcher
		new func(list bool) newAccumulator
	}{
		{wordArg, func(list bool) newAccumulator { return newPercentiles(true, list) }},
		{decimalArg, newDecimalPercentiles},
	} {
		list = append(list,
			AggregateOverload{Args: []Matcher{values.arg, doubleArg}, Constant: oneShare, Result: firstArgType, New: values.new(false)},
			AggregateOverload{Args: []Matcher{values.arg, sharesArg}, Constant: severalShares, Result: listOfFirst, New: values.new(true)})
	}
	return list
}

// What may stand for a share.
var (
	oneShare = &ConstantArg{"the share must be a constant from 0 to 1", func(v arrow.Array) bool {
		return isShare(v.(*array.Float64), 0)
	}}
	severalShares = &ConstantArg{"the shares must be an array of constants from 0 to 1", func(v arrow.Array) bool {
		l := v.(*array.List)
		elems := l.ListValues().(*array.Float64)
		from, to := l.ValueOffsets(0)
		for j := from; j < to; j++ {
			if !isShare(elems, int(j)) {
				return false
			}
		}
		return l.IsValid(0)
	}}
)

func isShare(a *array.Float64, i int) bool {
	return a.IsValid(i) && a.Value(i) >= 0 && a.Value(i) <= 1
}

// timeArg takes times that can be divided: a DATE as the TIMESTAMP it begins at.
var timeArg = aggArg{"TIMESTAMP", func(a arrow.DataType) (arrow.DataType, int, bool) {
	if a.ID() == arrow.DATE32 {
		return columnar.Timestamp, 5, true
	}
	return a, 0, columnar.IsTemporal(a)
}}

// wordArg takes what has order words as it is.
var wordArg = aggArg{"DOUBLE, BIGINT, DATE, TIME or TIMESTAMP", func(a arrow.DataType) (arrow.DataType, int, bool) {
	if a.ID() == arrow.NULL {
		return columnar.Float64, 1, true
	}
	return a, 0, columnar.IsInteger(a) || columnar.IsFloat(a) || columnar.IsTemporal(a)
}}

var sharesArg = aggArg{"ARRAY of DOUBLE", func(a arrow.DataType) (arrow.DataType, int, bool) {
	l, ok := a.(*arrow.ListType)
	return columnar.ListOf(columnar.Float64), 1, ok && columnar.IsNumeric(l.Elem())
}}

// shares are those that a percentile is asked for: one, or a list.
type shares struct {
	list  bool
	known bool
	of    []float64
}

// newShares is the middle, until others are known.
func newShares(list bool) shares { return shares{list: list, of: []float64{0.5}} }

// dataType is that of the argument.
func (s *shares) dataType() arrow.DataType {
	if s.list {
		return columnar.ListOf(columnar.Float64)
	}
	return columnar.Float64
}

// take is the value of the argument, which is the same for all rows; null in the state of
// groups that saw none.
func (s *shares) take(p arrow.Array) {
	for i := 0; i < p.Len() && !s.known; i++ {
		if p.IsNull(i) {
			continue
		}
		s.known = true
		if !s.list {
			s.of = []float64{p.(*array.Float64).Value(i)}
			continue
		}
		l := p.(*array.List)
		from, to := l.ValueOffsets(i)
		s.of = slices.Clone(fixedOf[float64](l.ListValues())[from:to])
	}
}

// column is the state column of the argument, null before it is known.
func (s *shares) column(mem memory.Allocator, n int) arrow.Array {
	of, lengths := s.of, slices.Repeat([]int{len(s.of)}, n)
	if s.list && !s.known {
		of, lengths = nil, slices.Repeat([]int{-1}, n)
	}
	p := newOut[float64](mem, columnar.Float64, n*len(of))
	for i := range p.values {
		if p.values[i] = of[i%len(of)]; !s.known {
			p.null(i)
		}
	}
	if !s.list {
		return p.array()
	}
	elems := p.array()
	defer elems.Release()
	return listColumn(mem, elems, lengths)
}

// results is what was found for the groups that are not empty, in lists of their own if
// several shares are asked for; an empty group then has no list.
func (s *shares) results(mem memory.Allocator, found arrow.Array, empty []bool) arrow.Array {
	if !s.list {
		return found
	}
	defer found.Release()
	lengths := make([]int, len(empty))
	for i := range lengths {
		if lengths[i] = len(s.of); empty[i] {
			lengths[i] = -1
		}
	}
	return listColumn(mem, found, lengths)
}

// discretePlace is where, of n values in order, the least is that a share of them does not
// exceed. A share counts as it is written: 0.55 of 100 is 55, though the product is not.
func discretePlace(n int, share float64) int {
	at := share * float64(n)
	if whole := math.Round(at); math.Abs(at-whole) < 1e-15*float64(n) {
		at = whole
	}
	return max(0, int(math.Ceil(at))-1)
}

func newPercentiles(discrete, list bool) newAccumulator {
	return func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
		a := &percentiles{quantile: *newQuantile(mem, nil), words: orderWords{dt: args[0]}, discrete: discrete, shares: newShares(list)}
		a.fields = []arrow.Field{stateField("values", columnar.ListOf(args[0])), stateField("percentile", a.shares.dataType())}
		return a, nil
	}
}

// percentiles is a quantile of values of any type that has order words, at one share or at
// several.
type percentiles struct {
	quantile
	words    orderWords
	discrete bool
	shares   shares
	fields   []arrow.Field
}

func (a *percentiles) Fields() []arrow.Field { return a.fields }
func (a *percentiles) Bytes() int64          { return a.quantile.Bytes() + bytesOfSlice(a.words.scratch, 8) }

func (a *percentiles) Update(groups []uint32, args []columnar.Datum) error {
	if len(args) > 1 {
		a.shares.take(args[1].Array())
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
	a.shares.take(state[1])
	return nil
}

// Absorb copies the lists of another.
func (a *percentiles) Absorb(groups []uint32, other Accumulator, from []uint32) error {
	o := other.(*percentiles)
	if !a.shares.known {
		a.shares = o.shares
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
	return []arrow.Array{listColumn(a.mem, values, lengths), a.shares.column(a.mem, len(groups))}, nil
}

func (a *percentiles) Result(groups []uint32) (arrow.Array, error) {
	var sorted, found []int64
	empty := make([]bool, len(groups))
	for i, g := range groups {
		sorted = sorted[:0]
		a.each(g, func(from, to uint32) { sorted = append(sorted, a.quantile.words(from, to)...) })
		slices.Sort(sorted)
		if empty[i] = len(sorted) == 0; !empty[i] {
			for _, share := range a.shares.of {
				found = append(found, a.at(sorted, share))
			}
		} else if !a.shares.list {
			found = append(found, 0)
		}
	}
	values := a.words.column(a.mem, len(found), func(i int) (int64, bool) { return found[i], a.shares.list || !empty[i] })
	return a.shares.results(a.mem, values, empty), nil
}

// at is the value at a share of the way through sorted words.
func (a *percentiles) at(sorted []int64, share float64) int64 {
	if a.discrete {
		return sorted[discretePlace(len(sorted), share)]
	}
	at := share * float64(len(sorted)-1)
	low := int(at)
	part := at - float64(low)
	if part == 0 {
		return sorted[low]
	}
	if columnar.IsFloat(a.words.dt) {
		return floatWord(between(wordFloat(sorted[low]), wordFloat(sorted[low+1]), part))
	}
	return wordBetween(sorted[low], sorted[low+1], part)
}

// wordBetween is between for whole numbers, from the lower one, exactly: their distance may take
// 64 bits. A half is rounded up.
func wordBetween(from, to int64, part float64) int64 {
	const exact, prec = 1 << 53, 64 + 53
	way := uint64(to) - uint64(from)
	if way <= exact {
		return from + int64(math.Round(float64(way)*part))
	}
	product := new(big.Float).SetPrec(prec).SetUint64(way)
	product.Mul(product, big.NewFloat(part))
	whole, _ := product.Add(product, big.NewFloat(0.5)).Uint64()
	return int64(uint64(from) + whole)
}

var _ Absorber = (*percentiles)(nil)

// medianOfTimes is the overload of median for times.
func medianOfTimes() AggregateOverload {
	return AggregateOverload{Args: []Matcher{timeArg}, Result: firstArgType, New: newPercentiles(false, false)}
}
