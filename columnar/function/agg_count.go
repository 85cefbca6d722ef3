package function

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

func countAggregate() *Aggregate {
	return &Aggregate{
		Name:    "count",
		Doc:     "The number of rows; with arguments, of rows in which none of them is null.",
		Example: "SELECT count(x) FROM (VALUES (1), (NULL), (3)) AS t(x) = 2",
		Overloads: []AggregateOverload{
			{Result: resultType(columnar.Int64), New: newCount},
			{Args: []Matcher{anyArg}, Variadic: true, Result: resultType(columnar.Int64), New: newCount},
		},
	}
}

func countIfAggregate() *Aggregate {
	return &Aggregate{
		Name:    "count_if",
		Aliases: []string{"countif"},
		Doc:     "The number of rows for which the condition is true.",
		Example: "SELECT count_if(x > 1) FROM (VALUES (1), (NULL), (3)) AS t(x) = 1",
		Overloads: []AggregateOverload{{
			Args:   []Matcher{exactArg(columnar.Boolean)},
			Result: resultType(columnar.Int64),
			New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
				return &countAccumulator{mem: mem, condition: true}, nil
			},
		}},
	}
}

func newCount(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
	return &countAccumulator{mem: mem}, nil
}

// countAccumulator counts rows, rows without nulls, or rows where a condition holds.
type countAccumulator struct {
	mem       memory.Allocator
	condition bool
	n         []int64
	bools     []uint8
}

func (a *countAccumulator) Fields() []arrow.Field {
	return []arrow.Field{stateField("count", columnar.Int64)}
}

func (a *countAccumulator) Resize(groups int) { a.n = extend(a.n, groups, 0) }
func (a *countAccumulator) Bytes() int64      { return bytesOfSlice(a.n, 8) + int64(cap(a.bools)) }
func (a *countAccumulator) Release()          { a.n, a.bools = nil, nil }

func (a *countAccumulator) Update(groups []uint32, args []columnar.Datum) error {
	a.add(groups, args, 1)
	return nil
}

// Retract takes rows back.
func (a *countAccumulator) Retract(groups []uint32, args []columnar.Datum) error {
	a.add(groups, args, -1)
	return nil
}

func (a *countAccumulator) add(groups []uint32, args []columnar.Datum, by int64) {
	if a.condition {
		a.addIf(groups, args[0], by)
		return
	}
	var nullable []validity
	for _, d := range args {
		if d.Array().DataType().ID() == arrow.NULL || d.IsNullConstant() {
			return
		}
		if v := validityOf(d.Array()); !d.IsConstant() && v.bits != nil {
			nullable = append(nullable, v)
		}
	}
	n := a.n
	switch len(nullable) {
	case 0:
		if len(n) == 1 {
			n[0] += by * int64(len(groups))
			return
		}
		for _, g := range groups {
			n[g] += by
		}
	case 1:
		bits, at := nullable[0].bits, nullable[0].offset
		for i, g := range groups {
			n[g] += by * int64(bits[(at+i)>>3]>>((at+i)&7)&1)
		}
	default:
	rows:
		for i, g := range groups {
			for _, v := range nullable {
				if !v.is(i) {
					continue rows
				}
			}
			n[g] += by
		}
	}
}

func (a *countAccumulator) addIf(groups []uint32, d columnar.Datum, by int64) {
	values, valid, none := boolsArg(d, len(groups), &a.bools)
	if none {
		return
	}
	n := a.n
	if valid.bits == nil {
		for i, g := range groups {
			n[g] += by * int64(values[i])
		}
		return
	}
	for i, g := range groups {
		if valid.is(i) {
			n[g] += by * int64(values[i])
		}
	}
}

func (a *countAccumulator) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.Fields(), state, len(groups)); err != nil {
		return err
	}
	n := fixedOf[int64](state[0])
	for i, g := range groups {
		a.n[g] += n[i]
	}
	return nil
}

func (a *countAccumulator) Load(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.Fields(), state, len(groups)); err != nil {
		return err
	}
	n := fixedOf[int64](state[0])
	for i, g := range groups {
		a.n[g] = n[i]
	}
	return nil
}

func (a *countAccumulator) Clear(groups []uint32) {
	for _, g := range groups {
		a.n[g] = 0
	}
}

func (a *countAccumulator) State(groups []uint32) ([]arrow.Array, error) {
	r, err := a.Result(groups)
	return []arrow.Array{r}, err
}

func (a *countAccumulator) Result(groups []uint32) (arrow.Array, error) {
	o := newOut[int64](a.mem, columnar.Int64, len(groups))
	for i, g := range groups {
		o.values[i] = a.n[g]
	}
	return o.array(), nil
}
