package function

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

func sumAggregate() *Aggregate {
	return &Aggregate{
		Name: "sum",
		Doc: "The sum of the values that are not null; null if there are none. Integers give BIGINT, decimals ten " +
			"digits more; a sum that does not fit is an error. DOUBLE sums are rounded once, whatever the order, and infinite only if the sum is. Of intervals months, days and hours are summed apart.",
		Example: "SELECT sum(x) FROM (VALUES (1), (NULL), (3)) AS t(x) = 4",
		Overloads: []AggregateOverload{
			{Args: []Matcher{integerArg}, Result: resultType(columnar.Int64), New: newIntegerSum(false)},
			{Args: []Matcher{decimalArg}, Result: sumDecimalType, New: newDecimalSum(false)},
			{Args: []Matcher{doubleArg}, Result: resultType(columnar.Float64), New: newDoubleSum(false)},
			{Args: []Matcher{exactArg(columnar.Interval)}, Result: resultType(columnar.Interval), New: newIntervalSum("sum")},
		},
	}
}

func avgAggregate() *Aggregate {
	return &Aggregate{
		Name:    "avg",
		Aliases: []string{"mean"},
		Doc: "The mean of the values that are not null; null if there are none. Integers and doubles give DOUBLE, " +
			"computed from the exact sum; decimals four digits more after the point. Of intervals what months are left over becomes days (30 a month), and of days hours.",
		Example: "SELECT avg(x) FROM (VALUES (1), (NULL), (4)) AS t(x) = 2.5",
		Overloads: []AggregateOverload{
			{Args: []Matcher{integerArg}, Result: resultType(columnar.Float64), New: newIntegerSum(true)},
			{Args: []Matcher{decimalArg}, Result: avgDecimalType, New: newDecimalSum(true)},
			{Args: []Matcher{doubleArg}, Result: resultType(columnar.Float64), New: newDoubleSum(true)},
			{Args: []Matcher{exactArg(columnar.Interval)}, Result: resultType(columnar.Interval), New: newIntervalSum("avg")},
		},
	}
}

func sumDecimalType(args []arrow.DataType) (arrow.DataType, error) {
	d := args[0].(*arrow.Decimal128Type)
	return columnar.Decimal(min(d.Precision+10, columnar.MaxPrecision), d.Scale), nil
}

func avgDecimalType(args []arrow.DataType) (arrow.DataType, error) {
	d := args[0].(*arrow.Decimal128Type)
	return columnar.Decimal(min(d.Precision+4, columnar.MaxPrecision), min(d.Scale+4, columnar.MaxPrecision)), nil
}

func newIntegerSum(mean bool) newAccumulator {
	return func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
		switch args[0].ID() {
		case arrow.INT8:
			return &integerSum[int8]{mem: mem, mean: mean}, nil
		case arrow.INT16:
			return &integerSum[int16]{mem: mem, mean: mean}, nil
		case arrow.INT32:
			return &integerSum[int32]{mem: mem, mean: mean}, nil
		}
		return &integerSum[int64]{mem: mem, mean: mean}, nil
	}
}

// integerSum is sum and avg of integers. A sum is exact whatever the order of rows:
// it is sum + carry * 2^64, and carries exist only once some sum has left 64 bits.
// Whether it fits BIGINT is decided by Result.
type integerSum[T int8 | int16 | int32 | int64] struct {
	mem     memory.Allocator
	mean    bool
	cells   []integerCell
	carry   []int64 // per group; nil until needed
	scratch []T
}

type integerCell struct{ n, sum int64 }

var integerSumFields = []arrow.Field{
	stateField("count", columnar.Int64), stateField("sum", columnar.Int64), stateField("carry", columnar.Int64),
}

func (a *integerSum[T]) Fields() []arrow.Field { return integerSumFields }

func (a *integerSum[T]) Resize(groups int) {
	a.cells = extend(a.cells, groups, integerCell{})
	if a.carry != nil {
		a.carry = extend(a.carry, groups, 0)
	}
}

func (a *integerSum[T]) Bytes() int64 {
	return bytesOfSlice(a.cells, 16) + bytesOfSlice(a.carry, 8) + bytesOfSlice(a.scratch, 8)
}

func (a *integerSum[T]) Release() { a.cells, a.carry, a.scratch = nil, nil, nil }

func (a *integerSum[T]) Update(groups []uint32, args []columnar.Datum) error {
	values, valid, none := fixedArg(args[0], len(groups), &a.scratch)
	if none {
		return nil
	}
	cells := a.cells
	values = values[:len(groups)]
	if valid.bits != nil {
		for i, g := range groups {
			if valid.is(i) {
				a.add(g, int64(values[i]), 1)
			}
		}
		return nil
	}
	for i, g := range groups {
		v := int64(values[i])
		c := &cells[g]
		s := c.sum + v
		if (s^c.sum)&(s^v) < 0 {
			a.overflowed(g, v)
		}
		c.sum = s
		c.n++
	}
	return nil
}

// Retract takes rows back.
func (a *integerSum[T]) Retract(groups []uint32, args []columnar.Datum) error {
	values, valid, none := fixedArg(args[0], len(groups), &a.scratch)
	if none {
		return nil
	}
	for i, g := range groups {
		if !valid.is(i) {
			continue
		}
		v := int64(values[i])
		if v == math.MinInt64 { // has no opposite
			a.add(g, math.MaxInt64, 0)
			a.add(g, 1, -1)
			continue
		}
		a.add(g, -v, -1)
	}
	return nil
}

// add adds v, and n to the count.
func (a *integerSum[T]) add(g uint32, v, n int64) {
	c := &a.cells[g]
	s := c.sum + v
	if (s^c.sum)&(s^v) < 0 {
		a.overflowed(g, v)
	}
	c.sum = s
	c.n += n
}

// overflowed notes that adding v wrapped the sum of g.
func (a *integerSum[T]) overflowed(g uint32, v int64) {
	if a.carry == nil {
		a.carry = make([]int64, len(a.cells))
	}
	if v > 0 {
		a.carry[g]++
	} else {
		a.carry[g]--
	}
}

func (a *integerSum[T]) carryOf(g uint32) int64 {
	if a.carry == nil {
		return 0
	}
	return a.carry[g]
}

func (a *integerSum[T]) setCarry(g uint32, v int64) {
	if v == 0 && a.carry == nil {
		return
	}
	if a.carry == nil {
		a.carry = make([]int64, len(a.cells))
	}
	a.carry[g] = v
}

func (a *integerSum[T]) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(integerSumFields, state, len(groups)); err != nil {
		return err
	}
	n, sum, carry := fixedOf[int64](state[0]), fixedOf[int64](state[1]), fixedOf[int64](state[2])
	for i, g := range groups {
		a.add(g, sum[i], n[i])
		if carry[i] != 0 {
			a.setCarry(g, a.carryOf(g)+carry[i])
		}
	}
	return nil
}

func (a *integerSum[T]) Load(groups []uint32, state []arrow.Array) error {
	if err := checkState(integerSumFields, state, len(groups)); err != nil {
		return err
	}
	n, sum, carry := fixedOf[int64](state[0]), fixedOf[int64](state[1]), fixedOf[int64](state[2])
	for i, g := range groups {
		a.cells[g] = integerCell{n: n[i], sum: sum[i]}
		a.setCarry(g, carry[i])
	}
	return nil
}

func (a *integerSum[T]) Clear(groups []uint32) {
	for _, g := range groups {
		a.cells[g] = integerCell{}
		a.setCarry(g, 0)
	}
}

func (a *integerSum[T]) State(groups []uint32) ([]arrow.Array, error) {
	n := newOut[int64](a.mem, columnar.Int64, len(groups))
	sum := newOut[int64](a.mem, columnar.Int64, len(groups))
	carry := newOut[int64](a.mem, columnar.Int64, len(groups))
	for i, g := range groups {
		n.values[i], sum.values[i], carry.values[i] = a.cells[g].n, a.cells[g].sum, a.carryOf(g)
	}
	return []arrow.Array{n.array(), sum.array(), carry.array()}, nil
}

func (a *integerSum[T]) Result(groups []uint32) (arrow.Array, error) {
	if a.mean {
		return a.means(groups), nil
	}
	for _, g := range groups {
		if a.carryOf(g) != 0 {
			return nil, &OverflowError{Function: "sum", Type: columnar.Int64}
		}
	}
	o := newOut[int64](a.mem, columnar.Int64, len(groups))
	for i, g := range groups {
		c := a.cells[g]
		if c.n == 0 {
			o.null(i)
			continue
		}
		o.values[i] = c.sum
	}
	return o.array(), nil
}

func (a *integerSum[T]) means(groups []uint32) arrow.Array {
	o := newOut[float64](a.mem, columnar.Float64, len(groups))
	for i, g := range groups {
		c := a.cells[g]
		switch {
		case c.n == 0:
			o.null(i)
		case a.carryOf(g) == 0 && c.sum > -1<<53 && c.sum < 1<<53:
			o.values[i] = float64(c.sum) / float64(c.n)
		default:
			o.values[i] = bigMean(c, a.carryOf(g))
		}
	}
	return o.array()
}

// bigMean divides a sum that no double holds exactly.
func bigMean(c integerCell, carry int64) float64 {
	sum := new(big.Int).Lsh(big.NewInt(carry), 64)
	sum.Add(sum, big.NewInt(c.sum))
	f, _ := new(big.Rat).SetFrac(sum, big.NewInt(c.n)).Float64()
	return f
}

func newDecimalSum(mean bool) newAccumulator {
	return func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
		result := sumDecimalType
		if mean {
			result = avgDecimalType
		}
		dt, err := result(args)
		if err != nil {
			return nil, err
		}
		scale := args[0].(*arrow.Decimal128Type).Scale
		return &decimalSum{
			mem: mem, mean: mean, scale: scale, result: dt.(*arrow.Decimal128Type),
			fields: []arrow.Field{
				stateField("count", columnar.Int64),
				stateField("sum", columnar.Decimal(columnar.MaxPrecision, scale)),
				stateField("carry", columnar.Int64),
			},
		}, nil
	}
}

// decimalSum is sum and avg of decimals, exact as integerSum is: sum + carry * 2^128.
type decimalSum struct {
	mem     memory.Allocator
	mean    bool
	scale   int32
	result  *arrow.Decimal128Type
	fields  []arrow.Field
	cells   []decimalCell
	carry   []int64 // per group; nil until needed
	scratch []decimal128.Num
}

type decimalCell struct {
	n  int64
	lo uint64
	hi int64
}

func (a *decimalSum) Fields() []arrow.Field { return a.fields }

func (a *decimalSum) Resize(groups int) {
	a.cells = extend(a.cells, groups, decimalCell{})
	if a.carry != nil {
		a.carry = extend(a.carry, groups, 0)
	}
}

func (a *decimalSum) Bytes() int64 {
	return bytesOfSlice(a.cells, 24) + bytesOfSlice(a.carry, 8) + bytesOfSlice(a.scratch, 16)
}

func (a *decimalSum) Release() { a.cells, a.carry, a.scratch = nil, nil, nil }

func (a *decimalSum) Update(groups []uint32, args []columnar.Datum) error {
	values, valid, none := fixedArg(args[0], len(groups), &a.scratch)
	if none {
		return nil
	}
	if valid.bits == nil {
		a.addAll(groups, values)
		return nil
	}
	for i, g := range groups {
		if valid.is(i) {
			a.add(g, values[i].LowBits(), values[i].HighBits(), 1)
		}
	}
	return nil
}

// addAll is add for rows without a null.
func (a *decimalSum) addAll(groups []uint32, values []decimal128.Num) {
	cells := a.cells
	for i, v := range values[:len(groups)] {
		c := &cells[groups[i]]
		hi := v.HighBits()
		l, carry := bits.Add64(c.lo, v.LowBits(), 0)
		h := c.hi + hi + int64(carry)
		if (h^c.hi)&(h^hi) < 0 {
			a.add(groups[i], v.LowBits(), hi, 1)
			continue
		}
		c.lo, c.hi, c.n = l, h, c.n+1
	}
}

// Retract takes rows back.
func (a *decimalSum) Retract(groups []uint32, args []columnar.Datum) error {
	values, valid, none := fixedArg(args[0], len(groups), &a.scratch)
	if none {
		return nil
	}
	for i, g := range groups {
		if valid.is(i) {
			v := values[i].Negate() // 38 digits never reach the value without opposite
			a.add(g, v.LowBits(), v.HighBits(), -1)
		}
	}
	return nil
}

func (a *decimalSum) add(g uint32, lo uint64, hi, n int64) {
	c := &a.cells[g]
	l, carry := bits.Add64(c.lo, lo, 0)
	h := c.hi + hi + int64(carry)
	// As integers of 128 bits: both signs differ from that of the result.
	if (h^c.hi)&(h^hi) < 0 {
		by := int64(1)
		if hi < 0 {
			by = -1
		}
		a.setCarry(g, a.carryOf(g)+by)
	}
	c.lo, c.hi = l, h
	c.n += n
}

func (a *decimalSum) carryOf(g uint32) int64 {
	if a.carry == nil {
		return 0
	}
	return a.carry[g]
}

func (a *decimalSum) setCarry(g uint32, v int64) {
	if v == 0 && a.carry == nil {
		return
	}
	if a.carry == nil {
		a.carry = make([]int64, len(a.cells))
	}
	a.carry[g] = v
}

func (a *decimalSum) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	n, sum, carry := fixedOf[int64](state[0]), fixedOf[decimal128.Num](state[1]), fixedOf[int64](state[2])
	for i, g := range groups {
		a.add(g, sum[i].LowBits(), sum[i].HighBits(), n[i])
		if carry[i] != 0 {
			a.setCarry(g, a.carryOf(g)+carry[i])
		}
	}
	return nil
}

func (a *decimalSum) Load(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	n, sum, carry := fixedOf[int64](state[0]), fixedOf[decimal128.Num](state[1]), fixedOf[int64](state[2])
	for i, g := range groups {
		a.cells[g] = decimalCell{n: n[i], lo: sum[i].LowBits(), hi: sum[i].HighBits()}
		a.setCarry(g, carry[i])
	}
	return nil
}

func (a *decimalSum) Clear(groups []uint32) {
	for _, g := range groups {
		a.cells[g] = decimalCell{}
		a.setCarry(g, 0)
	}
}

func (a *decimalSum) State(groups []uint32) ([]arrow.Array, error) {
	n := newOut[int64](a.mem, columnar.Int64, len(groups))
	sum := newOut[decimal128.Num](a.mem, a.fields[1].Type, len(groups))
	carry := newOut[int64](a.mem, columnar.Int64, len(groups))
	for i, g := range groups {
		c := a.cells[g]
		n.values[i], sum.values[i], carry.values[i] = c.n, decimal128.New(c.hi, c.lo), a.carryOf(g)
	}
	return []arrow.Array{n.array(), sum.array(), carry.array()}, nil
}

func (a *decimalSum) Result(groups []uint32) (arrow.Array, error) {
	o := newOut[decimal128.Num](a.mem, a.result, len(groups))
	for i, g := range groups {
		c := a.cells[g]
		if c.n == 0 {
			o.null(i)
			continue
		}
		v, ok := decimal128.New(c.hi, c.lo), a.carryOf(g) == 0
		if a.mean {
			v, ok = a.divide(c, a.carryOf(g))
		}
		if !ok || !columnar.FitsPrecision(v, a.result.Precision) {
			o.array().Release()
			name := "sum"
			if a.mean {
				name = "avg"
			}
			return nil, &OverflowError{Function: name, Type: a.result}
		}
		o.values[i] = v
	}
	return o.array(), nil
}

// divide is the mean of c with the result's scale, rounded half away from zero.
func (a *decimalSum) divide(c decimalCell, carry int64) (decimal128.Num, bool) {
	sum := new(big.Int).Lsh(big.NewInt(carry), 128)
	sum.Add(sum, decimal128.New(c.hi, c.lo).BigInt())
	up := decimal128.GetScaleMultiplier(int(a.result.Scale - a.scale)).BigInt()
	sum.Mul(sum, up)
	n := big.NewInt(c.n)
	q, r := new(big.Int).QuoRem(sum, n, new(big.Int))
	if r.Abs(r).Lsh(r, 1).Cmp(n) >= 0 {
		q.Add(q, big.NewInt(int64(sum.Sign())))
	}
	if q.BitLen() > 127 {
		return decimal128.Num{}, false
	}
	return decimal128.FromBigInt(q), true
}

func newDoubleSum(mean bool) newAccumulator {
	return func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
		return &doubleSum{mem: mem, mean: mean}, nil
	}
}

// doubleSum is sum and avg of doubles. hi is the plain running sum, lo collects the
// rounding error of every addition (TwoSum), so hi + lo rounds the exact sum whatever
// the order of rows; where hi is infinite or not a number it stands alone. A sum that only
// on the way leaves the range of a double is kept scaled in over, its hi infinite.
type doubleSum struct {
	mem     memory.Allocator
	mean    bool
	cells   []doubleCell
	over    map[uint32]dd // sums out of range times overScale, by group; nil until needed
	scratch []float64
}

type doubleCell struct {
	n      int64
	hi, lo float64
}

// overScale leaves room for the sum of 2^64 doubles.
const overScale = 1.0 / (1 << 64)

// doubleSumFields: a count that is negative says that the sum is scaled by overScale.
var doubleSumFields = []arrow.Field{
	stateField("count", columnar.Int64), stateField("sum", columnar.Float64), stateField("rest", columnar.Float64),
}

func (a *doubleSum) Fields() []arrow.Field { return doubleSumFields }
func (a *doubleSum) Resize(groups int)     { a.cells = extend(a.cells, groups, doubleCell{}) }
func (a *doubleSum) Release()              { a.cells, a.over, a.scratch = nil, nil, nil }
func (a *doubleSum) Bytes() int64 {
	return bytesOfSlice(a.cells, 24) + bytesOfSlice(a.scratch, 8) + 64*int64(len(a.over))
}

func (a *doubleSum) Update(groups []uint32, args []columnar.Datum) error {
	values, valid, none := fixedArg(args[0], len(groups), &a.scratch)
	if none {
		return nil
	}
	cells := a.cells
	values = values[:len(groups)]
	if valid.bits != nil {
		for i, g := range groups {
			if valid.is(i) && !cells[g].add(values[i]) {
				a.leaveRange(g, dd{hi: values[i]})
			}
		}
		return nil
	}
	for i, g := range groups {
		if !cells[g].add(values[i]) {
			a.leaveRange(g, dd{hi: values[i]})
		}
	}
	return nil
}

// add adds v and counts it; false says that it is counted only, for leaveRange to add.
func (c *doubleCell) add(v float64) bool {
	s, e := twoSum(c.hi, v)
	c.n++
	if !isFinite(s) {
		return false
	}
	c.hi = s
	c.lo += e
	return true
}

// leaveRange adds v to a group where hi cannot take it: the sum is out of range, or
// something in it is infinite or not a number.
func (a *doubleSum) leaveRange(g uint32, v dd) {
	c := &a.cells[g]
	o, scaled := a.over[g]
	switch {
	case !isFinite(v.hi) && scaled: // the sum so far was finite
		delete(a.over, g)
		c.hi = v.hi
	case !isFinite(v.hi) || !isFinite(c.hi) && !scaled:
		c.hi += v.hi
	case scaled:
		a.addScaled(g, o, dd{v.hi * overScale, v.lo * overScale})
	default:
		a.addScaled(g, dd{c.hi * overScale, c.lo * overScale}, dd{v.hi * overScale, v.lo * overScale})
	}
}

// addScaled makes the sum of a group that of two scaled ones.
func (a *doubleSum) addScaled(g uint32, o, v dd) {
	c := &a.cells[g]
	o.accumulate(v)
	if hi := o.hi / overScale; isFinite(hi) {
		delete(a.over, g)
		c.hi, c.lo = hi, o.lo/overScale
		return
	}
	if a.over == nil {
		a.over = map[uint32]dd{}
	}
	a.over[g] = o
	c.hi, c.lo = math.Copysign(math.Inf(1), o.hi), 0
}

// twoSum is a + b rounded, and what the rounding lost, exactly.
func twoSum(a, b float64) (s, e float64) {
	s = a + b
	t := s - a
	return s, (a - (s - t)) + (b - t)
}

func isFinite(v float64) bool { return v-v == 0 }

func (c *doubleCell) value() float64 {
	if !isFinite(c.hi) {
		return c.hi
	}
	return c.hi + c.lo
}

func (a *doubleSum) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(doubleSumFields, state, len(groups)); err != nil {
		return err
	}
	n, hi, lo := fixedOf[int64](state[0]), fixedOf[float64](state[1]), fixedOf[float64](state[2])
	for i, g := range groups {
		c := &a.cells[g]
		if n[i] < 0 {
			c.n -= n[i]
			a.mergeScaled(g, dd{hi[i], lo[i]})
			continue
		}
		if c.add(hi[i]) {
			c.lo += lo[i]
		} else {
			a.leaveRange(g, dd{hi[i], lo[i]})
		}
		c.n += n[i] - 1
	}
	return nil
}

func (a *doubleSum) mergeScaled(g uint32, v dd) {
	c := &a.cells[g]
	o, scaled := a.over[g]
	if !scaled {
		if !isFinite(c.hi) {
			return
		}
		o = dd{c.hi * overScale, c.lo * overScale}
	}
	a.addScaled(g, o, v)
}

func (a *doubleSum) Load(groups []uint32, state []arrow.Array) error {
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *doubleSum) Clear(groups []uint32) {
	for _, g := range groups {
		a.cells[g] = doubleCell{}
		if a.over != nil {
			delete(a.over, g)
		}
	}
}

func (a *doubleSum) State(groups []uint32) ([]arrow.Array, error) {
	n := newOut[int64](a.mem, columnar.Int64, len(groups))
	hi := newOut[float64](a.mem, columnar.Float64, len(groups))
	lo := newOut[float64](a.mem, columnar.Float64, len(groups))
	for i, g := range groups {
		c := a.cells[g]
		if o, scaled := a.over[g]; scaled {
			c = doubleCell{-c.n, o.hi, o.lo}
		}
		n.values[i], hi.values[i], lo.values[i] = c.n, c.hi, c.lo
	}
	return []arrow.Array{n.array(), hi.array(), lo.array()}, nil
}

func (a *doubleSum) Result(groups []uint32) (arrow.Array, error) {
	o := newOut[float64](a.mem, columnar.Float64, len(groups))
	for i, g := range groups {
		c, scale := a.cells[g], 1.0
		if x, scaled := a.over[g]; scaled {
			c.hi, c.lo, scale = x.hi, x.lo, overScale
		}
		switch {
		case c.n == 0:
			o.null(i)
		case !a.mean:
			o.values[i] = c.value() / scale
		default:
			o.values[i] = c.mean() / scale
		}
	}
	return o.array(), nil
}

// mean divides the double-double sum and corrects the quotient once.
func (c *doubleCell) mean() float64 {
	n := float64(c.n)
	v := c.value()
	q := v / n
	if !isFinite(q) || !isFinite(c.lo) {
		return q
	}
	s, e := twoSum(c.hi, c.lo)
	if q = s / n; !isFinite(q) {
		return q
	}
	return q + (math.FMA(-q, n, s)+e)/n
}
