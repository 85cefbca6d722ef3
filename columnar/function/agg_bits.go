package function

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// bitAggregates combine the bits of integers.
func bitAggregates() []*Aggregate {
	one := func(name, doc, example string, same bool, f func(a, b int64) int64) *Aggregate {
		return &Aggregate{Name: name, Doc: doc + " Null for no value.", Example: example, Overloads: []AggregateOverload{{
			Args: []Matcher{bigintArg}, Result: resultType(columnar.Int64), IgnoresDistinct: same,
			New: func(mem memory.Allocator, _ []arrow.DataType) (Accumulator, error) {
				return &bitsOf{mem: mem, f: f}, nil
			},
		}}}
	}
	return []*Aggregate{
		one("bit_and", "The bits that are set in every value.", "SELECT bit_and(x) FROM (VALUES (6), (NULL), (3)) AS t(x) = 2", true, func(a, b int64) int64 { return a & b }),
		one("bit_or", "The bits that are set in some value.", "SELECT bit_or(x) FROM (VALUES (6), (NULL), (3)) AS t(x) = 7", true, func(a, b int64) int64 { return a | b }),
		one("bit_xor", "The bits that are set in an odd number of values.", "SELECT bit_xor(x) FROM (VALUES (6), (NULL), (3)) AS t(x) = 5", false, func(a, b int64) int64 { return a ^ b }),
	}
}

// bigintArg takes every integer as BIGINT.
var bigintArg = aggArg{"BIGINT", func(a arrow.DataType) (arrow.DataType, int, bool) {
	switch {
	case a.ID() == arrow.INT64:
		return a, 0, true
	case a.ID() == arrow.NULL || columnar.IsInteger(a):
		return columnar.Int64, 1, true
	}
	return nil, 0, false
}}

// bitsOf holds one integer for each group, null before the first value.
type bitsOf struct {
	mem     memory.Allocator
	f       func(a, b int64) int64
	values  []int64
	set     []bool
	scratch []int64
}

var bitFields = []arrow.Field{stateField("bits", columnar.Int64)}

func (a *bitsOf) Fields() []arrow.Field { return bitFields }
func (a *bitsOf) Resize(groups int) {
	a.values, a.set = extend(a.values, groups, 0), extend(a.set, groups, false)
}
func (a *bitsOf) Bytes() int64 {
	return bytesOfSlice(a.values, 8) + bytesOfSlice(a.set, 1) + bytesOfSlice(a.scratch, 8)
}
func (a *bitsOf) Release() { a.values, a.set, a.scratch = nil, nil, nil }

func (a *bitsOf) Update(groups []uint32, args []columnar.Datum) error {
	values, valid, none := fixedArg(args[0], len(groups), &a.scratch)
	if !none {
		a.add(groups, values, valid)
	}
	return nil
}

func (a *bitsOf) add(groups []uint32, values []int64, valid validity) {
	for i, g := range groups {
		switch {
		case !valid.is(i):
		case a.set[g]:
			a.values[g] = a.f(a.values[g], values[i])
		default:
			a.values[g], a.set[g] = values[i], true
		}
	}
}

func (a *bitsOf) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(bitFields, state, len(groups)); err != nil {
		return err
	}
	a.add(groups, fixedOf[int64](state[0]), validityOf(state[0]))
	return nil
}

func (a *bitsOf) Load(groups []uint32, state []arrow.Array) error {
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *bitsOf) Clear(groups []uint32) {
	for _, g := range groups {
		a.values[g], a.set[g] = 0, false
	}
}

func (a *bitsOf) State(groups []uint32) ([]arrow.Array, error) {
	r, err := a.Result(groups)
	return []arrow.Array{r}, err
}

func (a *bitsOf) Result(groups []uint32) (arrow.Array, error) {
	o := newOut[int64](a.mem, columnar.Int64, len(groups))
	for i, g := range groups {
		if o.values[i] = a.values[g]; !a.set[g] {
			o.null(i)
		}
	}
	return o.array(), nil
}
