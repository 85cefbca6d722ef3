package logical

import (
	"fmt"
	"maps"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
)

// Unnest repeats each row once for every element of Lists, arrays or maps, side by side;
// shorter ones are filled up with nulls. Output is the input's columns, then the element
// of each array and the key and value of each map, then the place if it is wanted.
type Unnest struct {
	unary
	Lists []expr.Expr
	// Elements are the columns of each list: one of an array, two of a map.
	Elements [][]*expr.Column
	// Outer keeps a row without elements, once, with nulls.
	Outer bool
	// Place is the element's number (BIGINT), from First on; nil: not wanted.
	Place *expr.Column
	First int64
	// Dropped are columns of the input that nothing above uses: they are not repeated, the
	// lists themselves above all.
	Dropped map[expr.ID]bool
}

// NewUnnest repeats input for the elements of lists; fresh IDs for their columns.
func NewUnnest(input Node, lists []expr.Expr, outer bool) (*Unnest, error) {
	u := &Unnest{unary: unary{input}, Lists: lists, Outer: outer}
	column := func(name string, dt arrow.DataType) *expr.Column {
		return &expr.Column{ID: expr.NewID(), Name: name, DataType: dt, Null: true}
	}
	for _, l := range lists {
		switch t := l.Type().(type) {
		case *arrow.ListType:
			u.Elements = append(u.Elements, []*expr.Column{column("col", t.Elem())})
		case *arrow.MapType:
			u.Elements = append(u.Elements, []*expr.Column{column("key", t.KeyType()), column("value", t.ItemType())})
		default:
			return nil, fmt.Errorf("%s is %s; only an ARRAY or a MAP can be unnested", l, columnar.TypeName(l.Type()))
		}
	}
	return u, nil
}

// WithPlace adds the element's number, counted from first.
func (u *Unnest) WithPlace(name string, first int64) *Unnest {
	n := *u
	n.Place = &expr.Column{ID: expr.NewID(), Name: name, DataType: columnar.Int64, Null: u.Outer}
	n.First = first
	return &n
}

// WithoutUnused drops the columns of the input that are not used; changed says that there
// are more of them than before.
func (u *Unnest) WithoutUnused(used func(expr.ID) bool) (n *Unnest, changed bool) {
	dropped := maps.Clone(u.Dropped)
	for _, c := range u.Input.Schema().Columns {
		if used(c.ID) || dropped[c.ID] {
			continue
		}
		if dropped == nil {
			dropped = map[expr.ID]bool{}
		}
		dropped[c.ID], changed = true, true
	}
	if !changed {
		return u, false
	}
	m := *u
	m.Dropped = dropped
	return &m, true
}

// Kept are the columns of the input that are repeated, as positions.
func (u *Unnest) Kept() []int {
	var kept []int
	for i, c := range u.Input.Schema().Columns {
		if !u.Dropped[c.ID] {
			kept = append(kept, i)
		}
	}
	return kept
}

func (u *Unnest) Schema() *Schema {
	in := u.Input.Schema().Columns
	columns := make([]*expr.Column, 0, len(in)+len(u.Elements)+1)
	for _, i := range u.Kept() {
		columns = append(columns, in[i])
	}
	for _, e := range u.Elements {
		columns = append(columns, e...)
	}
	if u.Place != nil {
		columns = append(columns, u.Place)
	}
	return NewSchema(columns...)
}
func (u *Unnest) WithChildren(c []Node) Node {
	n := *u
	n.Input = c[0]
	return &n
}
func (u *Unnest) Exprs() []expr.Expr { return u.Lists }
func (u *Unnest) WithExprs(exprs []expr.Expr) Node {
	n := *u
	n.Lists = exprs
	return &n
}
func (u *Unnest) String() string {
	s := "Unnest " + expr.List(u.Lists)
	if u.Outer {
		s += " outer"
	}
	if u.Place != nil {
		s += fmt.Sprintf(" places from %d", u.First)
	}
	var dropped []string
	for _, c := range u.Input.Schema().Columns {
		if u.Dropped[c.ID] {
			dropped = append(dropped, c.Name)
		}
	}
	if len(dropped) > 0 {
		s += " without " + strings.Join(dropped, ", ")
	}
	return s
}
