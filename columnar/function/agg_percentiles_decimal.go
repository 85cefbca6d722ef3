package function

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

func newDecimalPercentiles(list bool) newAccumulator {
	return func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
		a := &decimalPercentiles{mem: mem, dt: args[0], shares: newShares(list)}
		a.fields = []arrow.Field{stateField("values", columnar.ListOf(a.dt)), stateField("percentile", a.shares.dataType())}
		return a, nil
	}
}

// decimalPercentiles is percentile_disc of decimals, which no word holds: the values of
// each group as they came.
type decimalPercentiles struct {
	mem     memory.Allocator
	dt      arrow.DataType
	shares  shares
	fields  []arrow.Field
	values  [][]decimal128.Num
	held    int64
	scratch []decimal128.Num
}

func (a *decimalPercentiles) Fields() []arrow.Field { return a.fields }
func (a *decimalPercentiles) Resize(groups int)     { a.values = extend(a.values, groups, nil) }
func (a *decimalPercentiles) Release()              { a.values, a.scratch, a.held = nil, nil, 0 }

func (a *decimalPercentiles) Bytes() int64 {
	return bytesOfSlice(a.values, 24) + bytesOfSlice(a.scratch, 16) + a.held
}

func (a *decimalPercentiles) add(g uint32, values ...decimal128.Num) {
	before := cap(a.values[g])
	a.values[g] = append(a.values[g], values...)
	a.held += int64(cap(a.values[g])-before) * 16
}

func (a *decimalPercentiles) Update(groups []uint32, args []columnar.Datum) error {
	a.shares.take(args[1].Array())
	values, valid, none := fixedArg(args[0], len(groups), &a.scratch)
	if none {
		return nil
	}
	for i, g := range groups {
		if valid.is(i) {
			a.add(g, values[i])
		}
	}
	return nil
}

func (a *decimalPercentiles) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	lists := state[0].(*array.List)
	values := fixedOf[decimal128.Num](lists.ListValues())
	for i, g := range groups {
		if lists.IsValid(i) {
			from, to := lists.ValueOffsets(i)
			a.add(g, values[from:to]...)
		}
	}
	a.shares.take(state[1])
	return nil
}

func (a *decimalPercentiles) Load(groups []uint32, state []arrow.Array) error {
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *decimalPercentiles) Clear(groups []uint32) {
	for _, g := range groups {
		a.held -= int64(cap(a.values[g])) * 16
		a.values[g] = nil
	}
}

func (a *decimalPercentiles) State(groups []uint32) ([]arrow.Array, error) {
	lengths := make([]int, len(groups))
	var all []decimal128.Num
	for i, g := range groups {
		lengths[i] = len(a.values[g])
		all = append(all, a.values[g]...)
	}
	if len(all) > math.MaxInt32 {
		return nil, errPlaces
	}
	values := newOut[decimal128.Num](a.mem, a.dt, len(all))
	copy(values.values, all)
	elems := values.array()
	defer elems.Release()
	return []arrow.Array{listColumn(a.mem, elems, lengths), a.shares.column(a.mem, len(groups))}, nil
}

func (a *decimalPercentiles) Result(groups []uint32) (arrow.Array, error) {
	empty := make([]bool, len(groups))
	var found []decimal128.Num
	for i, g := range groups {
		sorted := slices.Clone(a.values[g])
		slices.SortFunc(sorted, decimal128.Num.Cmp)
		if empty[i] = len(sorted) == 0; !empty[i] {
			for _, share := range a.shares.of {
				found = append(found, sorted[discretePlace(len(sorted), share)])
			}
		} else if !a.shares.list {
			found = append(found, decimal128.Num{})
		}
	}
	values := newOut[decimal128.Num](a.mem, a.dt, len(found))
	copy(values.values, found)
	for i := range groups {
		if empty[i] && !a.shares.list {
			values.null(i)
		}
	}
	return a.shares.results(a.mem, values.array(), empty), nil
}
