package eval

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
)

// arguments evaluates the arguments of a call, those that may fail only for the rows
// that need them, and appends them to out. They are borrowed from the frame.
func (f *frame) arguments(n *node, set *rowSet, out []columnar.Datum) ([]columnar.Datum, error) {
	rest := set
	for k, a := range n.args {
		under := set
		if k > 0 && n.lazy != eager && f.p.nodes[a].fallible {
			switch {
			case n.lazy == firstValid:
				rest = f.where(out[k-1], rest, kernel.MarkValid, true)
				under = rest
			case k == 1:
				under = f.where(out[0], set, kernel.MarkTrue, false)
			default:
				under = f.where(out[0], set, kernel.MarkTrue, true)
			}
		} else if k > 0 && n.lazy == firstValid && f.anyFallible(n.args[k:]) {
			rest = f.where(out[k-1], rest, kernel.MarkValid, true)
		}
		d, err := f.eval(a, under)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func (f *frame) anyFallible(nodes []int) bool {
	for _, i := range nodes {
		if f.p.nodes[i].fallible {
			return true
		}
	}
	return false
}

// where is the rows of set that mark marks in d, or with not the other ones.
func (f *frame) where(d columnar.Datum, set *rowSet, mark func(*columnar.Bitmap, columnar.Datum, int), not bool) *rowSet {
	bits := columnar.NewBitmap(f.rows)
	mark(bits, d, f.rows)
	if not {
		all := columnar.NewBitmap(f.rows)
		all.SetAll()
		all.AndNot(bits)
		bits = all
	}
	return set.subset(bits)
}

// evalLogic is AND or OR with SQL's three values. In terms of the deciding value (false
// for AND, true for OR): a row that an operand decides is not looked at again.
func (f *frame) evalLogic(n *node, set *rowSet) (columnar.Datum, error) {
	decided := columnar.NewBitmap(f.rows) // rows some operand decides
	unknown := columnar.NewBitmap(f.rows) // rows some operand leaves open by null
	isTrue, isValid := columnar.NewBitmap(f.rows), columnar.NewBitmap(f.rows)
	rest := set
	for k, a := range n.args {
		if k > 0 && f.p.nodes[a].fallible {
			left := columnar.NewBitmap(f.rows)
			left.SetAll()
			left.AndNot(decided)
			if rest = set.subset(left); rest.count == 0 {
				break
			}
		}
		d, err := f.eval(a, rest)
		if err != nil {
			return columnar.Datum{}, err
		}
		kernel.MarkTrue(isTrue, d, f.rows)
		kernel.MarkValid(isValid, d, f.rows)
		f.done(a)
		// What is undefined outside of rest may only show in rows already decided,
		// or that do not count.
		t, v, dec, unk := isTrue.Words(), isValid.Words(), decided.Words(), unknown.Words()
		for w := range t {
			hit := t[w]
			if n.logic == expr.And {
				hit = v[w] &^ t[w]
			}
			dec[w] |= hit
			unk[w] |= ^v[w]
		}
	}
	return f.booleans(decided, unknown, n.logic == expr.Or), nil
}

// booleans is the column that is value where decided, else null where unknown, else
// not value.
func (f *frame) booleans(decided, unknown *columnar.Bitmap, value bool) columnar.Datum {
	values := decided
	if !value {
		values = columnar.NewBitmap(f.rows)
		values.SetAll()
		values.AndNot(decided)
	}
	a := kernel.Booleans(f.env.Mem, values, f.rows)
	valid := columnar.NewBitmap(f.rows)
	valid.SetAll()
	unknown.AndNot(decided)
	valid.AndNot(unknown)
	nulls := f.rows - valid.Count()
	if nulls == 0 {
		return columnar.ColumnDatum(a)
	}
	marks := kernel.Booleans(f.env.Mem, valid, f.rows)
	defer marks.Release()
	bits := marks.Data().Buffers()[1]
	bits.Retain()
	return columnar.ColumnDatum(takeMasked(f.env.Mem, a, bits, nulls))
}

// evalCase evaluates each branch for the rows that take it and puts them together.
func (f *frame) evalCase(n *node, set *rowSet) (columnar.Datum, error) {
	c := newChooser(f.rows)
	rest := set
	for k := range n.whens {
		cond, err := f.eval(n.args[2*k], rest)
		if err != nil {
			return columnar.Datum{}, err
		}
		taken := f.where(cond, rest, kernel.MarkTrue, false)
		f.done(n.args[2*k])
		if taken.count == 0 {
			continue
		}
		value, err := f.eval(n.args[2*k+1], taken)
		if err != nil {
			return columnar.Datum{}, err
		}
		c.add(value, taken.bits, n.dt)
		left := columnar.NewBitmap(f.rows)
		left.SetAll()
		left.AndNot(taken.bits)
		if rest = rest.subset(left); rest.count == 0 {
			break
		}
	}
	if len(n.args) > 2*n.whens && (rest == nil || rest.count > 0) {
		value, err := f.eval(n.args[2*n.whens], rest)
		if err != nil {
			return columnar.Datum{}, err
		}
		c.add(value, rest.bitmap(), n.dt)
	}
	d, err := c.result(f, n.dt)
	for k := range n.whens {
		f.done(n.args[2*k+1])
	}
	return d, err
}

// chooser puts a column together from several sources.
type chooser struct {
	choice  []int32 // the number of each row's source plus one; 0 is null
	sources []columnar.Datum
	whole   bool // one source gives all rows
}

func newChooser(rows int) *chooser { return &chooser{choice: make([]int32, rows)} }

// add gives rows (nil: all) the values of d.
func (c *chooser) add(d columnar.Datum, rows *columnar.Bitmap, dt arrow.DataType) {
	if d.Type().ID() == arrow.NULL && dt.ID() != arrow.NULL {
		return // an untyped NULL: they stay null
	}
	c.sources = append(c.sources, d)
	c.whole = len(c.sources) == 1 && (rows == nil || rows.Count() == len(c.choice))
	k := int32(len(c.sources))
	if rows == nil {
		for i := range c.choice {
			c.choice[i] = k
		}
		return
	}
	for _, i := range rows.Indices(nil) {
		c.choice[i] = k
	}
}

// result is the chosen column, the caller's.
func (c *chooser) result(f *frame, dt arrow.DataType) (columnar.Datum, error) {
	if len(c.sources) == 0 {
		return columnar.NullConstant(f.env.Mem, dt), nil
	}
	if c.whole {
		return c.sources[0].Retain(), nil
	}
	if d, ok := c.fixed(f, dt); ok {
		return d, nil
	}
	// The sources one after the other, constants once; then one take.
	arrays := make([]arrow.Array, len(c.sources))
	base := make([]int32, len(c.sources)+1)
	step := make([]int32, len(c.sources)+1)
	at := int32(0)
	for k, d := range c.sources {
		arrays[k] = d.Array()
		base[k+1] = at
		if !d.IsConstant() {
			step[k+1] = 1
		}
		at += int32(d.Array().Len())
	}
	all, err := kernel.Concat(f.env.Mem, arrays)
	if err != nil {
		return columnar.Datum{}, err
	}
	defer all.Release()
	base[0] = -1
	for i, k := range c.choice {
		c.choice[i] = base[k] + step[k]*int32(i)
	}
	if err := f.reserveTaken(all, c.choice); err != nil {
		return columnar.Datum{}, err
	}
	out, err := kernel.Take(f.env.Mem, all, c.choice)
	if err != nil {
		return columnar.Datum{}, err
	}
	return columnar.ColumnDatum(out), nil
}

// fixed chooses among columns of 1, 2, 4 or 8 bytes a value, none null, without the
// detour of result.
func (c *chooser) fixed(f *frame, dt arrow.DataType) (columnar.Datum, bool) {
	for _, d := range c.sources {
		if d.Array().NullN() > 0 {
			return columnar.Datum{}, false
		}
	}
	for _, k := range c.choice {
		if k == 0 {
			return columnar.Datum{}, false
		}
	}
	w, ok := dt.(arrow.FixedWidthDataType)
	if !ok {
		return columnar.Datum{}, false
	}
	switch w.BitWidth() {
	case 32:
		return choose[uint32](f, c, dt), true
	case 64:
		return choose[uint64](f, c, dt), true
	}
	return columnar.Datum{}, false
}

func choose[T uint32 | uint64](f *frame, c *chooser, dt arrow.DataType) columnar.Datum {
	buf, out := kernel.Make[T](f.env.Mem, f.rows)
	for k, d := range c.sources {
		values := kernel.Values[T](d.Array())
		number := int32(k + 1)
		if d.IsConstant() {
			v := values[0]
			for i, x := range c.choice {
				if x == number {
					out[i] = v
				}
			}
			continue
		}
		for i, x := range c.choice {
			if x == number {
				out[i] = values[i]
			}
		}
	}
	return columnar.ColumnDatum(kernel.Wrap(dt, f.rows, 0, nil, buf))
}
