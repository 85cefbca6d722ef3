package function

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

func varianceAggregate(name string, sample, root bool, aliases ...string) *Aggregate {
	doc, example := "variance", "SELECT var_pop(x) FROM (VALUES (1), (NULL), (3)) AS t(x) = 1.0"
	switch {
	case root && sample:
		example = "SELECT stddev_samp(x) FROM (VALUES (1), (2), (3)) AS t(x) = 1.0"
	case root:
		example = "SELECT stddev_pop(x) FROM (VALUES (1), (NULL), (3)) AS t(x) = 1.0"
	case sample:
		example = "SELECT var_samp(x) FROM (VALUES (1), (NULL), (3)) AS t(x) = 2.0"
	}
	if root {
		doc = "standard deviation"
	}
	of, few := "population ", "no value"
	if sample {
		of, few = "sample ", "less than two values"
	}
	return &Aggregate{
		Name:    name,
		Aliases: aliases,
		Doc:     "The " + of + doc + " of the values that are not null; null for " + few + ".",
		Example: example,
		Overloads: []AggregateOverload{{
			Args:   []Matcher{doubleArg},
			Result: resultType(columnar.Float64),
			New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
				return &variance{mem: mem, sample: sample, root: root}, nil
			},
		}},
	}
}

// variance keeps, per group, the sums of d and d*d, where d is the distance of each
// value from the first one, in double-double arithmetic. Since that first value is
// itself one of the data, its distance from the mean is at most sqrt(n) standard
// deviations, so the closing subtraction loses at most n of the 104 bits: every order
// of rows and of merging gives the same double to the last bits, also for values far
// from zero.
type variance struct {
	mem     memory.Allocator
	sample  bool
	root    bool
	cells   []varianceCell
	scratch []float64
}

type varianceCell struct {
	n     int64
	shift float64
	sum   dd // of d
	sq    dd // of d*d
}

var varianceFields = []arrow.Field{
	stateField("count", columnar.Int64), stateField("shift", columnar.Float64),
	stateField("sum", columnar.Float64), stateField("sum_rest", columnar.Float64),
	stateField("squares", columnar.Float64), stateField("squares_rest", columnar.Float64),
}

func (a *variance) Fields() []arrow.Field { return varianceFields }
func (a *variance) Resize(groups int)     { a.cells = extend(a.cells, groups, varianceCell{}) }
func (a *variance) Bytes() int64          { return bytesOfSlice(a.cells, 48) + bytesOfSlice(a.scratch, 8) }
func (a *variance) Release()              { a.cells, a.scratch = nil, nil }

func (a *variance) Update(groups []uint32, args []columnar.Datum) error {
	values, valid, none := fixedArg(args[0], len(groups), &a.scratch)
	if none {
		return nil
	}
	for i, g := range groups {
		if valid.is(i) {
			a.cells[g].add(values[i])
		}
	}
	return nil
}

func (c *varianceCell) add(v float64) {
	if c.n == 0 {
		c.shift = v
	}
	c.n++
	d := ddDiff(v, c.shift)
	c.sum.accumulate(d)
	c.sq.accumulate(d.times(d))
}

// ordered is the cell with sums that other operations than add take.
func (c varianceCell) ordered() varianceCell {
	c.sum, c.sq = c.sum.ordered(), c.sq.ordered()
	return c
}

// merge adds o, moved to the shift of c: with e = o.shift - c.shift, the sum grows by
// n*e, the squares by 2*e*sum + n*e*e.
func (c *varianceCell) merge(o varianceCell) {
	if o.n == 0 {
		return
	}
	if c.n == 0 {
		*c = o
		return
	}
	*c = c.ordered()
	e := ddDiff(o.shift, c.shift)
	ne := e.scale(float64(o.n))
	c.sq = c.sq.add(o.sq).add(e.mul(o.sum).scale(2)).add(ne.mul(e))
	c.sum = c.sum.add(o.sum).add(ne)
	c.n += o.n
}

func (c *varianceCell) result(sample, root bool) (v float64, ok bool) {
	n := float64(c.n)
	if sample {
		n--
	}
	if n <= 0 {
		return 0, false
	}
	m2 := c.sq.add(c.sum.mul(c.sum).div(float64(c.n)).scale(-1))
	v = m2.hi / n
	if v < 0 {
		v = 0
	}
	if root {
		v = math.Sqrt(v)
	}
	return v, true
}

func (a *variance) load(state []arrow.Array, groups int) (func(i int) varianceCell, error) {
	if err := checkState(varianceFields, state, groups); err != nil {
		return nil, err
	}
	n := fixedOf[int64](state[0])
	var f [5][]float64
	for k := range f {
		f[k] = fixedOf[float64](state[k+1])
	}
	return func(i int) varianceCell {
		return varianceCell{n: n[i], shift: f[0][i], sum: dd{f[1][i], f[2][i]}, sq: dd{f[3][i], f[4][i]}}
	}, nil
}

func (a *variance) Merge(groups []uint32, state []arrow.Array) error {
	at, err := a.load(state, len(groups))
	if err != nil {
		return err
	}
	for i, g := range groups {
		a.cells[g].merge(at(i))
	}
	return nil
}

func (a *variance) Load(groups []uint32, state []arrow.Array) error {
	at, err := a.load(state, len(groups))
	if err != nil {
		return err
	}
	for i, g := range groups {
		a.cells[g] = at(i)
	}
	return nil
}

func (a *variance) Clear(groups []uint32) {
	for _, g := range groups {
		a.cells[g] = varianceCell{}
	}
}

func (a *variance) State(groups []uint32) ([]arrow.Array, error) {
	n := newOut[int64](a.mem, columnar.Int64, len(groups))
	var f [5]*out[float64]
	for k := range f {
		f[k] = newOut[float64](a.mem, columnar.Float64, len(groups))
	}
	for i, g := range groups {
		c := a.cells[g].ordered()
		n.values[i] = c.n
		for k, v := range [5]float64{c.shift, c.sum.hi, c.sum.lo, c.sq.hi, c.sq.lo} {
			f[k].values[i] = v
		}
	}
	state := []arrow.Array{n.array()}
	for _, o := range f {
		state = append(state, o.array())
	}
	return state, nil
}

func (a *variance) Result(groups []uint32) (arrow.Array, error) {
	o := newOut[float64](a.mem, columnar.Float64, len(groups))
	for i, g := range groups {
		c := a.cells[g].ordered()
		v, ok := c.result(a.sample, a.root)
		if !ok {
			o.null(i)
			continue
		}
		o.values[i] = v
	}
	return o.array(), nil
}

// dd is a double-double: the unevaluated sum of two doubles, about 104 bits.
type dd struct{ hi, lo float64 }

// ddDiff is a - b, exactly.
func ddDiff(a, b float64) dd {
	s, e := twoSum(a, -b)
	return dd{s, e}
}

func (x dd) add(y dd) dd {
	s, e := twoSum(x.hi, y.hi)
	t, f := twoSum(x.lo, y.lo)
	s, e = quickTwoSum(s, e+t)
	s, e = quickTwoSum(s, e+f)
	return dd{s, e}
}

// accumulate is add at half the price for a running sum: what roundings lose is summed
// up beside it, as a plain double, and may become larger than the last bit of hi.
func (x *dd) accumulate(y dd) {
	s, e := twoSum(x.hi, y.hi)
	x.hi = s
	x.lo += e + y.lo
}

// ordered is x with lo below the last bit of hi again, as accumulate does not leave it.
func (x dd) ordered() dd {
	if !isFinite(x.hi) {
		return x
	}
	s, e := twoSum(x.hi, x.lo)
	return dd{s, e}
}

// times is mul for accumulate: lo may be larger than the last bit of hi.
func (x dd) times(y dd) dd {
	p := x.hi * y.hi
	return dd{p, math.FMA(x.hi, y.hi, -p) + (x.hi*y.lo + x.lo*y.hi)}
}

// quickTwoSum is twoSum where a is not smaller than b.
func quickTwoSum(a, b float64) (s, e float64) {
	s = a + b
	return s, b - (s - a)
}

func (x dd) mul(y dd) dd {
	p := x.hi * y.hi
	e := math.FMA(x.hi, y.hi, -p)
	e += x.hi*y.lo + x.lo*y.hi
	s, e := quickTwoSum(p, e)
	return dd{s, e}
}

func (x dd) square() dd { return x.mul(x) }

func (x dd) scale(k float64) dd { return x.mul(dd{hi: k}) }

func (x dd) div(k float64) dd {
	q := x.hi / k
	r := math.FMA(-q, k, x.hi) + x.lo
	s, e := quickTwoSum(q, r/k)
	return dd{s, e}
}
