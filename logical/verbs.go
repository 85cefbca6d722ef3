package logical

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/logical/expr"
)

// SetOpOf is INTERSECT or EXCEPT of two inputs, whose columns are cast to their common
// types.
func SetOpOf(kind SetOpKind, all bool, left, right Node) (Node, error) {
	u, err := UnionOf(left, right)
	if err != nil {
		return nil, err
	}
	sides := u.Children()
	return &SetOp{Kind: kind, All: all, Left: sides[0], Right: sides[1]}, nil
}

// Intersect is the rows that are in both, each once. Columns meet by position.
func (d *DataFrame) Intersect(o *DataFrame) *DataFrame {
	return d.setOp("intersect", Intersect, false, o)
}

// IntersectAll is the rows that are in both, as often as in the one that has them less
// often.
func (d *DataFrame) IntersectAll(o *DataFrame) *DataFrame {
	return d.setOp("intersectAll", Intersect, true, o)
}

// Except is the rows that are not in o, each once.
func (d *DataFrame) Except(o *DataFrame) *DataFrame { return d.setOp("except", Except, false, o) }

// ExceptAll is the rows without those of o: each as often as it is there more often.
func (d *DataFrame) ExceptAll(o *DataFrame) *DataFrame { return d.setOp("exceptAll", Except, true, o) }

func (d *DataFrame) setOp(verb string, kind SetOpKind, all bool, o *DataFrame) *DataFrame {
	return d.then(verb, func(d *DataFrame) (Node, error) {
		right, err := other(o)
		if err != nil {
			return nil, err
		}
		return SetOpOf(kind, all, d.node, right)
	})
}

// Rename gives a column another name.
func (d *DataFrame) Rename(old, to string) *DataFrame {
	return d.then("rename", func(d *DataFrame) (Node, error) {
		c, err := d.node.Schema().Lookup("", old)
		if err != nil {
			return nil, err
		}
		columns := passAll(d.node.Schema())
		columns[d.node.Schema().Index(c.ID)] = expr.As(c, to)
		return NewProject(d.node, columns), nil
	})
}

// Sample keeps each row with a probability from 0 to 1.
func (d *DataFrame) Sample(probability float64) *DataFrame {
	return d.then("sample", func(d *DataFrame) (Node, error) {
		if !(probability >= 0 && probability <= 1) {
			return nil, fmt.Errorf("the probability is from 0 to 1, not %v", probability)
		}
		kept, err := d.resolve(expr.Func("random").Lt(expr.Lit(probability)), false)
		if err != nil {
			return nil, err
		}
		return NewFilter(d.node, kept), nil
	})
}

// Explode repeats each row for every element of an array, or key and value of a map, in
// columns of the given names (col; key and value) after the others. A row without elements
// goes.
func (d *DataFrame) Explode(list expr.Term, names ...string) *DataFrame {
	return d.explode("explode", list, false, false, names)
}

// ExplodeOuter is Explode that keeps a row without elements, once, with nulls.
func (d *DataFrame) ExplodeOuter(list expr.Term, names ...string) *DataFrame {
	return d.explode("explodeOuter", list, true, false, names)
}

// PosExplode is Explode with the number of the element, from 0, in a column (pos) before
// those of the element.
func (d *DataFrame) PosExplode(list expr.Term, names ...string) *DataFrame {
	return d.explode("posExplode", list, false, true, names)
}

func (d *DataFrame) explode(verb string, list expr.Term, outer, place bool, names []string) *DataFrame {
	return d.then(verb, func(d *DataFrame) (Node, error) {
		x, err := d.resolve(list, false)
		if err != nil {
			return nil, err
		}
		u, err := NewUnnest(d.node, []expr.Expr{x}, outer)
		if err != nil {
			return nil, err
		}
		made := u.Elements[0]
		if place {
			u = u.WithPlace("pos", 0)
			made = append([]*expr.Column{u.Place}, made...)
		}
		if len(names) > len(made) {
			return nil, fmt.Errorf("it makes %d columns, and %d names are given", len(made), len(names))
		}
		columns := passAll(d.node.Schema())
		for i, c := range made {
			if i < len(names) {
				columns = append(columns, expr.As(c, names[i]))
			} else {
				columns = append(columns, expr.Pass(c))
			}
		}
		return NewProject(u, columns), nil
	})
}

// WithWindow adds the columns window_start and window_end of the window that a row falls
// into, once for each such window; keys divide the sessions of a SessionWindow.
func (d *DataFrame) WithWindow(window expr.Term, keys ...expr.Term) *DataFrame {
	return d.then("withWindow", func(d *DataFrame) (Node, error) {
		u, ok := window.Expr.(*expr.Unresolved)
		if window.Err() == nil && (!ok || u.Window == nil) {
			return nil, errors.New("it takes a Window or a SessionWindow")
		}
		if window.Err() != nil {
			return nil, window.Err()
		}
		w, err := d.window(u)
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 && !w.IsSession() {
			return nil, errors.New("only a SessionWindow takes keys")
		}
		for _, k := range keys {
			x, err := d.resolve(k, false)
			if err != nil {
				return nil, err
			}
			w.PartitionKeys = append(slices.Clone(w.PartitionKeys), x)
		}
		return w, nil
	})
}
