package function

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// momentAggregates are made of sums of powers of one DOUBLE, or of two.
func momentAggregates() []*Aggregate {
	two := func(name, doc, example string, result func(c *momentCell) (float64, bool), aliases ...string) *Aggregate {
		return momentAggregate(name, doc, example, pairSums, result, aliases...)
	}
	one := func(name, doc, example string, k *momentKind, result func(c *momentCell) (float64, bool), aliases ...string) *Aggregate {
		return momentAggregate(name, doc, example, k, result, aliases...)
	}
	const xy = "Rows in which either is null are skipped."
	from := func(call string) string {
		return "SELECT " + call + " FROM (VALUES (1, 1), (3, 2), (5, 3)) AS t(y, x) = "
	}
	return []*Aggregate{
		two("covar_pop", "The population covariance of two numbers. "+xy, "SELECT covar_pop(y, x) FROM (VALUES (1, 1), (3, 3)) AS t(y, x) = 1.0", func(c *momentCell) (float64, bool) {
			return c.sxy() / c.count(), c.n > 0
		}),
		two("covar_samp", "The sample covariance of two numbers; null for less than two rows. "+xy, from("covar_samp(y, x)")+"2.0", func(c *momentCell) (float64, bool) {
			return c.sxy() / (c.count() - 1), c.n > 1
		}),
		two("corr", "The correlation of two numbers, from -1 to 1; null where one of them is always the same. "+xy, from("corr(y, x)")+"1.0", func(c *momentCell) (float64, bool) {
			r := c.sxy() / math.Sqrt(c.sxx()*c.syy())
			return math.Max(-1, math.Min(1, r)), c.n > 1 && c.sxx() != 0 && c.syy() != 0
		}),
		two("weighted_avg", "The mean of the first number, each weighted by the second; null where the weights add up to nothing. "+xy, "SELECT weighted_avg(y, w) FROM (VALUES (1, 1), (3, 3)) AS t(y, w) = 2.5", func(c *momentCell) (float64, bool) {
			return c.meanY() + c.sxy()/(c.count()*c.meanX()), c.n > 0 && c.meanX() != 0
		}, "wavg"),
		two("regr_avgx", "The mean of the second number, x. "+xy, from("regr_avgx(y, x)")+"2.0", func(c *momentCell) (float64, bool) { return c.meanX(), c.n > 0 }),
		two("regr_avgy", "The mean of the first number, y. "+xy, from("regr_avgy(y, x)")+"3.0", func(c *momentCell) (float64, bool) { return c.meanY(), c.n > 0 }),
		two("regr_sxx", "The sum of squares of the distance of x from its mean. "+xy, from("regr_sxx(y, x)")+"2.0", func(c *momentCell) (float64, bool) { return c.sxx(), c.n > 0 }),
		two("regr_syy", "The sum of squares of the distance of y from its mean. "+xy, from("regr_syy(y, x)")+"8.0", func(c *momentCell) (float64, bool) { return c.syy(), c.n > 0 }),
		two("regr_sxy", "The sum of products of the distances of x and y from their means. "+xy, from("regr_sxy(y, x)")+"4.0", func(c *momentCell) (float64, bool) { return c.sxy(), c.n > 0 }),
		two("regr_slope", "The slope of the straight line that comes nearest to the points (x, y); null where x is always the same. "+xy, from("regr_slope(y, x)")+"2.0", func(c *momentCell) (float64, bool) {
			return c.sxy() / c.sxx(), c.n > 0 && c.sxx() != 0
		}),
		two("regr_intercept", "Where that line is for x = 0. "+xy, from("regr_intercept(y, x)")+"-1.0", func(c *momentCell) (float64, bool) {
			return c.meanY() - c.sxy()/c.sxx()*c.meanX(), c.n > 0 && c.sxx() != 0
		}),
		two("regr_r2", "The share of the variance of y that the line explains. "+xy, from("regr_r2(y, x)")+"1.0", func(c *momentCell) (float64, bool) {
			if c.syy() == 0 {
				return 1, c.n > 0 && c.sxx() != 0
			}
			return c.sxy() * c.sxy() / (c.sxx() * c.syy()), c.n > 0 && c.sxx() != 0
		}),
		regrCountAggregate(),
		one("skewness", "How lopsided the values are about their mean (of the population); null for no value and where all are the same.", "SELECT skewness(x) FROM (VALUES (1), (2), (3)) AS t(x) = 0.0", powerSums, func(c *momentCell) (float64, bool) {
			_, m2, m3, _ := c.central()
			return m3 / math.Pow(m2, 1.5), c.n > 0 && m2 > 0
		}),
		one("kurtosis", "How heavy the tails of the values are beside a normal distribution (excess, of the population); null for no value and where all are the same.", "SELECT kurtosis(x) FROM (VALUES (1), (2), (3)) AS t(x) = -1.5", powerSums, func(c *momentCell) (float64, bool) {
			_, m2, _, m4 := c.central()
			return m4/(m2*m2) - 3, c.n > 0 && m2 > 0
		}, "kurtosis_pop"),
		one("sem", "The standard error of the mean.", "SELECT sem(x) FROM (VALUES (1), (1)) AS t(x) = 0.0", powerSums, func(c *momentCell) (float64, bool) {
			_, m2, _, _ := c.central()
			return math.Sqrt(m2 / c.count()), c.n > 0
		}),
		one("geomean", "The geometric mean of positive numbers; null for no value.", "SELECT geomean(x) FROM (VALUES (2), (2)) AS t(x) = 2.0", logSum, func(c *momentCell) (float64, bool) {
			return math.Exp(c.f[0].hi / c.count()), c.n > 0
		}, "geometric_mean"),
		one("product", "The product of the values that are not null; null for no value.", "SELECT product(x) FROM (VALUES (2), (NULL), (3)) AS t(x) = 6.0", productOf, func(c *momentCell) (float64, bool) {
			return math.Ldexp(c.f[0].hi, int(c.f[1].hi)), c.n > 0
		}),
	}
}

// momentCell is the state of one group. What its sums are says the momentKind; values
// are counted from the first one, which a cell keeps as its shift, so that the closing
// subtractions lose little.
type momentCell struct {
	n              int64
	shiftX, shiftY float64
	f              [5]dd
}

// momentKind says how values come into the sums and how two cells become one.
type momentKind struct {
	args  int
	add   func(c *momentCell, x, y float64)
	merge func(c *momentCell, o momentCell) // neither is empty
}

func (c *momentCell) count() float64 { return float64(c.n) }

// pairSums are the sums of x, y, x*x, y*y and x*y.
var pairSums = &momentKind{
	args: 2,
	add:  (*momentCell).addPair,
	merge: func(c *momentCell, o momentCell) {
		n := o.count()
		ex, ey := ddDiff(o.shiftX, c.shiftX), ddDiff(o.shiftY, c.shiftY)
		moved := [5]dd{
			o.f[0].add(ex.scale(n)), o.f[1].add(ey.scale(n)),
			o.f[2].add(ex.mul(o.f[0]).scale(2)).add(ex.square().scale(n)),
			o.f[3].add(ey.mul(o.f[1]).scale(2)).add(ey.square().scale(n)),
			o.f[4].add(ex.mul(o.f[1])).add(ey.mul(o.f[0])).add(ex.mul(ey).scale(n)),
		}
		for i, d := range moved {
			c.f[i] = c.f[i].add(d)
		}
	},
}

func (c *momentCell) addPair(y, x float64) {
	if c.n == 0 {
		c.shiftX, c.shiftY = x, y
	}
	dx, dy := ddDiff(x, c.shiftX), ddDiff(y, c.shiftY)
	c.f[0].accumulate(dx)
	c.f[1].accumulate(dy)
	c.f[2].accumulate(dx.times(dx))
	c.f[3].accumulate(dy.times(dy))
	c.f[4].accumulate(dx.times(dy))
}

// ordered is the cell with sums that other operations than addPair take.
func (c momentCell) ordered() momentCell {
	for i := range c.f {
		c.f[i] = c.f[i].ordered()
	}
	return c
}

func (c *momentCell) meanX() float64 { return c.shiftX + c.f[0].hi/c.count() }
func (c *momentCell) meanY() float64 { return c.shiftY + c.f[1].hi/c.count() }

// about is the sum of products of distances from the means.
func (c *momentCell) about(products, a, b dd) float64 {
	return products.add(a.mul(b).div(c.count()).scale(-1)).hi
}

func (c *momentCell) sxx() float64 { return math.Max(0, c.about(c.f[2], c.f[0], c.f[0])) }
func (c *momentCell) syy() float64 { return math.Max(0, c.about(c.f[3], c.f[1], c.f[1])) }
func (c *momentCell) sxy() float64 { return c.about(c.f[4], c.f[0], c.f[1]) }

// powerSums are the sums of x, its square, cube and fourth power.
var powerSums = &momentKind{
	args: 1,
	add: func(c *momentCell, x, _ float64) {
		if c.n == 0 {
			c.shiftX = x
		}
		d := ddDiff(x, c.shiftX)
		power := d
		for i := range 4 {
			c.f[i] = c.f[i].add(power)
			power = power.mul(d)
		}
	},
	merge: func(c *momentCell, o momentCell) {
		n := o.count()
		e := ddDiff(o.shiftX, c.shiftX)
		e2 := e.square()
		moved := [4]dd{
			o.f[0].add(e.scale(n)),
			o.f[1].add(e.mul(o.f[0]).scale(2)).add(e2.scale(n)),
			o.f[2].add(e.mul(o.f[1]).scale(3)).add(e2.mul(o.f[0]).scale(3)).add(e2.mul(e).scale(n)),
			o.f[3].add(e.mul(o.f[2]).scale(4)).add(e2.mul(o.f[1]).scale(6)).add(e2.mul(e).mul(o.f[0]).scale(4)).add(e2.square().scale(n)),
		}
		for i, d := range moved {
			c.f[i] = c.f[i].add(d)
		}
	},
}

// central is the mean distance from the shift and the second to fourth central moments.
func (c *momentCell) central() (mean, m2, m3, m4 float64) {
	n := c.count()
	a, s2, s3, s4 := c.f[0].div(n), c.f[1].div(n), c.f[2].div(n), c.f[3].div(n)
	a2 := a.square()
	m2 = math.Max(0, s2.add(a2.scale(-1)).hi)
	m3 = s3.add(a.mul(s2).scale(-3)).add(a2.mul(a).scale(2)).hi
	m4 = s4.add(a.mul(s3).scale(-4)).add(a2.mul(s2).scale(6)).add(a2.square().scale(-3)).hi
	return a.hi, m2, m3, m4
}

// logSum is the sum of logarithms.
var logSum = &momentKind{
	args:  1,
	add:   func(c *momentCell, x, _ float64) { c.f[0] = c.f[0].add(dd{hi: math.Log(x)}) },
	merge: func(c *momentCell, o momentCell) { c.f[0] = c.f[0].add(o.f[0]) },
}

// productOf is a product as a number near one and a power of two, which no order of
// factors makes overflow.
var productOf = &momentKind{
	args: 1,
	add: func(c *momentCell, x, _ float64) {
		m, e := math.Frexp(x)
		c.times(dd{hi: m}, float64(e))
	},
	merge: func(c *momentCell, o momentCell) { c.times(o.f[0], o.f[1].hi) },
}

func (c *momentCell) times(by dd, exponent float64) {
	if c.n == 0 {
		c.f[0] = dd{hi: 1}
	}
	p := c.f[0].mul(by)
	if p.lo != p.lo { // of an infinite factor
		p.lo = 0
	}
	m, e := math.Frexp(p.hi)
	c.f[0] = dd{m, math.Ldexp(p.lo, -e)}
	c.f[1].hi += exponent + float64(e)
}

func momentAggregate(name, doc, example string, kind *momentKind, result func(c *momentCell) (float64, bool), aliases ...string) *Aggregate {
	args := []Matcher{doubleArg, doubleArg}[:kind.args]
	return &Aggregate{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []AggregateOverload{{
		Args: args, Result: resultType(columnar.Float64),
		New: func(mem memory.Allocator, _ []arrow.DataType) (Accumulator, error) {
			return &moments{mem: mem, kind: kind, result: result}, nil
		},
	}}}
}

// regrCountAggregate counts the rows in which both are there.
func regrCountAggregate() *Aggregate {
	return &Aggregate{Name: "regr_count", Doc: "The number of rows in which neither of two numbers is null.", Example: "SELECT regr_count(y, x) FROM (VALUES (1, 1), (3, NULL)) AS t(y, x) = 1", Overloads: []AggregateOverload{{
		Args: []Matcher{doubleArg, doubleArg}, Result: resultType(columnar.Int64),
		New: func(mem memory.Allocator, _ []arrow.DataType) (Accumulator, error) {
			return &moments{mem: mem, kind: pairSums}, nil
		},
	}}}
}

// moments holds the cells of all groups. Without a result function it counts.
type moments struct {
	mem    memory.Allocator
	kind   *momentKind
	result func(c *momentCell) (float64, bool)
	cells  []momentCell
	x, y   []float64
}

var momentFields = []arrow.Field{
	stateField("count", columnar.Int64), stateField("shift_x", columnar.Float64), stateField("shift_y", columnar.Float64),
	stateField("sum_1", columnar.Float64), stateField("rest_1", columnar.Float64), stateField("sum_2", columnar.Float64), stateField("rest_2", columnar.Float64),
	stateField("sum_3", columnar.Float64), stateField("rest_3", columnar.Float64), stateField("sum_4", columnar.Float64), stateField("rest_4", columnar.Float64),
	stateField("sum_5", columnar.Float64), stateField("rest_5", columnar.Float64),
}

func (a *moments) Fields() []arrow.Field { return momentFields }
func (a *moments) Resize(groups int)     { a.cells = extend(a.cells, groups, momentCell{}) }
func (a *moments) Bytes() int64 {
	return bytesOfSlice(a.cells, 104) + bytesOfSlice(a.x, 8) + bytesOfSlice(a.y, 8)
}
func (a *moments) Release() { a.cells, a.x, a.y = nil, nil, nil }

func (a *moments) Update(groups []uint32, args []columnar.Datum) error {
	x, validX, none := fixedArg(args[0], len(groups), &a.x)
	if none {
		return nil
	}
	y, validY := x, validX
	if a.kind.args == 2 {
		if y, validY, none = fixedArg(args[1], len(groups), &a.y); none {
			return nil
		}
	}
	if a.kind == pairSums && validX.bits == nil && validY.bits == nil {
		x, y = x[:len(groups)], y[:len(groups)]
		for i, g := range groups {
			c := &a.cells[g]
			c.addPair(x[i], y[i])
			c.n++
		}
		return nil
	}
	for i, g := range groups {
		if validX.is(i) && validY.is(i) {
			a.kind.add(&a.cells[g], x[i], y[i])
			a.cells[g].n++
		}
	}
	return nil
}

func (a *moments) load(state []arrow.Array, groups int) (func(i int) momentCell, error) {
	if err := checkState(momentFields, state, groups); err != nil {
		return nil, err
	}
	n := fixedOf[int64](state[0])
	var f [12][]float64
	for k := range f {
		f[k] = fixedOf[float64](state[k+1])
	}
	return func(i int) momentCell {
		c := momentCell{n: n[i], shiftX: f[0][i], shiftY: f[1][i]}
		for k := range c.f {
			c.f[k] = dd{f[2+2*k][i], f[3+2*k][i]}
		}
		return c
	}, nil
}

func (a *moments) Merge(groups []uint32, state []arrow.Array) error {
	at, err := a.load(state, len(groups))
	if err != nil {
		return err
	}
	for i, g := range groups {
		c, o := &a.cells[g], at(i)
		switch {
		case o.n == 0:
		case c.n == 0:
			*c = o
		default:
			*c = c.ordered()
			a.kind.merge(c, o)
			c.n += o.n
		}
	}
	return nil
}

func (a *moments) Load(groups []uint32, state []arrow.Array) error {
	at, err := a.load(state, len(groups))
	if err != nil {
		return err
	}
	for i, g := range groups {
		a.cells[g] = at(i)
	}
	return nil
}

func (a *moments) Clear(groups []uint32) {
	for _, g := range groups {
		a.cells[g] = momentCell{}
	}
}

func (a *moments) State(groups []uint32) ([]arrow.Array, error) {
	n := newOut[int64](a.mem, columnar.Int64, len(groups))
	var f [12]*out[float64]
	for k := range f {
		f[k] = newOut[float64](a.mem, columnar.Float64, len(groups))
	}
	for i, g := range groups {
		c := a.cells[g].ordered()
		n.values[i] = c.n
		f[0].values[i], f[1].values[i] = c.shiftX, c.shiftY
		for k, d := range c.f {
			f[2+2*k].values[i], f[3+2*k].values[i] = d.hi, d.lo
		}
	}
	state := []arrow.Array{n.array()}
	for _, o := range f {
		state = append(state, o.array())
	}
	return state, nil
}

func (a *moments) Result(groups []uint32) (arrow.Array, error) {
	if a.result == nil {
		o := newOut[int64](a.mem, columnar.Int64, len(groups))
		for i, g := range groups {
			o.values[i] = a.cells[g].n
		}
		return o.array(), nil
	}
	o := newOut[float64](a.mem, columnar.Float64, len(groups))
	for i, g := range groups {
		c := a.cells[g].ordered()
		v, ok := a.result(&c)
		if !ok {
			o.null(i)
			continue
		}
		o.values[i] = v
	}
	return o.array(), nil
}
