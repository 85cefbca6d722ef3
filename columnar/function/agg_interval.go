package function

import (
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

func newIntervalSum(name string) newAccumulator {
	return func(mem memory.Allocator, _ []arrow.DataType) (Accumulator, error) {
		return &intervalSum{mem: mem, name: name}, nil
	}
}

// intervalSum is sum and avg of intervals. Whether a sum fits INTERVAL is decided by
// Result.
type intervalSum struct {
	mem     memory.Allocator
	name    string
	cells   []intervalCell
	scratch []arrow.MonthDayNanoInterval
}

// intervalCell holds the nanoseconds as seconds and a rest, of one sign each: neither
// leaves 64 bits before 2^30 of the longest intervals were added.
type intervalCell struct{ n, months, days, seconds, nanos int64 }

const nanosPerSecond = 1_000_000_000

var intervalSumFields = []arrow.Field{
	stateField("count", columnar.Int64), stateField("months", columnar.Int64), stateField("days", columnar.Int64),
	stateField("seconds", columnar.Int64), stateField("nanos", columnar.Int64),
}

func (a *intervalSum) Fields() []arrow.Field { return intervalSumFields }
func (a *intervalSum) Resize(groups int)     { a.cells = extend(a.cells, groups, intervalCell{}) }
func (a *intervalSum) Bytes() int64          { return bytesOfSlice(a.cells, 40) + bytesOfSlice(a.scratch, 16) }
func (a *intervalSum) Release()              { a.cells, a.scratch = nil, nil }

func (a *intervalSum) Update(groups []uint32, args []columnar.Datum) error {
	return a.add(groups, args, 1)
}

// Retract takes rows back.
func (a *intervalSum) Retract(groups []uint32, args []columnar.Datum) error {
	return a.add(groups, args, -1)
}

func (a *intervalSum) add(groups []uint32, args []columnar.Datum, sign int64) error {
	values, valid, none := fixedArg(args[0], len(groups), &a.scratch)
	if none {
		return nil
	}
	for i, g := range groups {
		if valid.is(i) {
			v := values[i]
			a.cells[g].add(intervalCell{sign, sign * int64(v.Months), sign * int64(v.Days), sign * (v.Nanoseconds / nanosPerSecond), sign * (v.Nanoseconds % nanosPerSecond)})
		}
	}
	return nil
}

func (c *intervalCell) add(o intervalCell) {
	c.n += o.n
	c.months += o.months
	c.days += o.days
	c.seconds += o.seconds
	c.nanos += o.nanos
}

func (a *intervalSum) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(intervalSumFields, state, len(groups)); err != nil {
		return err
	}
	var columns [5][]int64
	for k := range columns {
		columns[k] = fixedOf[int64](state[k])
	}
	for i, g := range groups {
		a.cells[g].add(intervalCell{columns[0][i], columns[1][i], columns[2][i], columns[3][i], columns[4][i]})
	}
	return nil
}

func (a *intervalSum) Load(groups []uint32, state []arrow.Array) error {
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *intervalSum) Clear(groups []uint32) {
	for _, g := range groups {
		a.cells[g] = intervalCell{}
	}
}

func (a *intervalSum) State(groups []uint32) ([]arrow.Array, error) {
	columns := make([]arrow.Array, len(intervalSumFields))
	for k := range columns {
		o := newOut[int64](a.mem, columnar.Int64, len(groups))
		for i, g := range groups {
			c := &a.cells[g]
			o.values[i] = [...]int64{c.n, c.months, c.days, c.seconds, c.nanos}[k]
		}
		columns[k] = o.array()
	}
	return columns, nil
}

func (a *intervalSum) Result(groups []uint32) (arrow.Array, error) {
	o := newOut[arrow.MonthDayNanoInterval](a.mem, columnar.Interval, len(groups))
	for i, g := range groups {
		c := a.cells[g]
		if c.n == 0 {
			o.null(i)
			continue
		}
		n := int64(1)
		if a.name == "avg" {
			n = c.n
		}
		v, ok := c.over(n)
		if !ok {
			o.array().Release()
			return nil, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: a.name + " overflows INTERVAL"}
		}
		o.values[i] = v
	}
	return o.array(), nil
}

// over is the sum divided by n; ok is false if it does not fit.
func (c intervalCell) over(n int64) (v arrow.MonthDayNanoInterval, ok bool) {
	nanos := new(big.Int).Mul(big.NewInt(c.seconds), big.NewInt(nanosPerSecond))
	nanos.Add(nanos, big.NewInt(c.nanos))
	if n > 1 {
		return columnar.DivideInterval(c.months, c.days, nanos, new(big.Rat).SetInt64(n))
	}
	v = arrow.MonthDayNanoInterval{Months: int32(c.months), Days: int32(c.days), Nanoseconds: nanos.Int64()}
	return v, int64(v.Months) == c.months && int64(v.Days) == c.days && nanos.IsInt64()
}

var _ Retractor = (*intervalSum)(nil)
