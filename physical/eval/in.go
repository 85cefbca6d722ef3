package eval

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/columnar/keyenc"
	"github.com/tidemill/tidemill/logical/expr"
)

// members is a list of literals prepared for look-up: exactly one of the sets is used.
type members struct {
	ints  map[int64]struct{}
	texts map[string]struct{}
	keys  map[string]struct{} // of other types: encoded
	null  bool                // the list holds a NULL
}

func (c *compiler) in(x *expr.In) (int, error) {
	n := node{op: opIn, expr: x, dt: columnar.Boolean}
	var err error
	if n.members, err = literalMembers(x); err != nil {
		return 0, err
	}
	if n.members != nil {
		if n.args, err = c.all(x.Value); err != nil {
			return 0, err
		}
		return c.add(fmt.Sprintf("in %v (%s)", n.args, expr.List(x.List)), n), nil
	}
	if n.args, err = c.all(append([]expr.Expr{x.Value}, x.List...)...); err != nil {
		return 0, err
	}
	return c.add(fmt.Sprintf("in %v", n.args), n), nil
}

// literalMembers is the set of the list's values; nil if there is none, or the list holds
// anything else than literals of a type that can be looked up.
func literalMembers(x *expr.In) (*members, error) {
	var values []arrow.Array
	m := &members{}
	for _, e := range x.List {
		l, ok := e.(*expr.Literal)
		switch {
		case !ok:
			return nil, nil
		case l.IsNull():
			m.null = true
		default:
			values = append(values, l.Value)
		}
	}
	dt := x.Value.Type()
	if len(values) == 0 || arrow.IsNested(dt.ID()) {
		return nil, nil
	}
	if _, ok := intAt(values[0], 0); ok {
		m.ints = make(map[int64]struct{}, len(values))
		for _, a := range values {
			v, _ := intAt(a, 0)
			m.ints[v] = struct{}{}
		}
		return m, nil
	}
	if dt.ID() == arrow.STRING {
		m.texts = make(map[string]struct{}, len(values))
		for _, a := range values {
			m.texts[a.(*array.String).Value(0)] = struct{}{}
		}
		return m, nil
	}
	m.keys = make(map[string]struct{}, len(values))
	for _, a := range values {
		keys, err := encoded(a)
		if err != nil {
			return nil, err
		}
		m.keys[string(keys.Key(0))] = struct{}{}
	}
	return m, nil
}

// encoded are the values of a as keys.
func encoded(a arrow.Array) (*keyenc.Keys, error) {
	codec, err := keyenc.New([]arrow.DataType{a.DataType()}, nil)
	if err != nil {
		return nil, err
	}
	keys := &keyenc.Keys{}
	return keys, codec.Encode([]arrow.Array{a}, keys)
}

// intAt is value i of a column whose values are integers underneath.
func intAt(a arrow.Array, i int) (int64, bool) {
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(i)), true
	case *array.Int16:
		return int64(a.Value(i)), true
	case *array.Int32:
		return int64(a.Value(i)), true
	case *array.Int64:
		return a.Value(i), true
	case *array.Date32:
		return int64(a.Value(i)), true
	case *array.Timestamp:
		return int64(a.Value(i)), true
	case *array.Time64:
		return int64(a.Value(i)), true
	}
	return 0, false
}

// evalIn is value IN (list): true where an element equals it; else null where it or
// an element is null; else false.
func (f *frame) evalIn(n *node, set *rowSet) (columnar.Datum, error) {
	value, err := f.eval(n.args[0], set)
	if err != nil {
		return columnar.Datum{}, err
	}
	found, unknown := columnar.NewBitmap(f.rows), columnar.NewBitmap(f.rows)
	unmarkValid(unknown, value, f.rows)
	column, err := f.broadcast(value)
	if err != nil {
		return columnar.Datum{}, err
	}
	defer column.Release()
	if m := n.members; m != nil {
		if err := m.mark(found, column); err != nil {
			return columnar.Datum{}, err
		}
		if m.null {
			unknown.SetAll()
		}
		unmarkNulls(found, column)
		return f.booleans(found, unknown, true), nil
	}
	rest := set
	for k, a := range n.args[1:] {
		if k > 0 && f.p.nodes[a].fallible {
			left := columnar.NewBitmap(f.rows)
			left.SetAll()
			left.AndNot(found)
			if rest = set.subset(left); rest.count == 0 {
				break
			}
		}
		d, err := f.eval(a, rest)
		if err != nil {
			return columnar.Datum{}, err
		}
		f.markEqual(found, column, d)
		nulls := columnar.NewBitmap(f.rows)
		unmarkValid(nulls, d, f.rows)
		unknown.Or(nulls)
	}
	return f.booleans(found, unknown, true), nil
}

// markEqual marks the rows where column equals d.
func (f *frame) markEqual(found *columnar.Bitmap, column arrow.Array, d columnar.Datum) {
	if d.Type().ID() == arrow.NULL || column.DataType().ID() == arrow.NULL {
		return
	}
	ar, br := make([]int32, f.rows), make([]int32, f.rows)
	for i := range ar {
		ar[i] = int32(i)
	}
	if !d.IsConstant() {
		copy(br, ar)
	}
	ar, _ = kernel.EqualPairs(column, d.Array(), ar, br, false)
	for _, i := range ar {
		found.Set(int(i))
	}
}

// unmarkValid makes b the rows where d is null.
func unmarkValid(b *columnar.Bitmap, d columnar.Datum, rows int) {
	valid := columnar.NewBitmap(rows)
	kernel.MarkValid(valid, d, rows)
	b.SetAll()
	b.AndNot(valid)
}

func unmarkNulls(b *columnar.Bitmap, a arrow.Array) {
	if a.NullN() == 0 {
		return
	}
	valid := columnar.NewBitmap(a.Len())
	kernel.MarkValid(valid, columnar.ColumnDatum(a), a.Len())
	b.And(valid)
}

// mark marks the rows of a whose value is a member; what it does with nulls is
// undefined.
func (m *members) mark(found *columnar.Bitmap, a arrow.Array) error {
	if m.keys != nil {
		return m.markKeys(found, a)
	}
	switch a := a.(type) {
	case *array.Int8:
		markInts(found, a.Int8Values(), m.ints)
	case *array.Int16:
		markInts(found, a.Int16Values(), m.ints)
	case *array.Int32:
		markInts(found, a.Int32Values(), m.ints)
	case *array.Date32:
		markInts(found, kernel.Values[int32](a), m.ints)
	case *array.Int64, *array.Timestamp, *array.Time64:
		markInts(found, kernel.Values[int64](a), m.ints)
	case *array.String:
		for i := range a.Len() {
			if _, ok := m.texts[a.Value(i)]; ok {
				found.Set(i)
			}
		}
	}
	return nil
}

func (m *members) markKeys(found *columnar.Bitmap, a arrow.Array) error {
	keys, err := encoded(a)
	if err != nil {
		return err
	}
	for i := range a.Len() {
		if _, ok := m.keys[string(keys.Key(i))]; ok {
			found.Set(i)
		}
	}
	return nil
}

// fewInts is up to how many values comparing them all beats a map.
const fewInts = 8

func markInts[T int8 | int16 | int32 | int64](found *columnar.Bitmap, values []T, set map[int64]struct{}) {
	words := found.Words()
	if len(set) <= fewInts {
		for v := range set {
			if int64(T(v)) != v {
				continue
			}
			want := T(v)
			for i, x := range values {
				bit := uint64(0)
				if x == want {
					bit = 1
				}
				words[i>>6] |= bit << (i & 63)
			}
		}
		return
	}
	for i, x := range values {
		if _, ok := set[int64(x)]; ok {
			words[i>>6] |= 1 << (i & 63)
		}
	}
}
