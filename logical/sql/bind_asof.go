package sql

import (
	"errors"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// joinAsof binds ASOF JOIN: with ON, or with USING, whose last column is the time.
func (b *binder) joinAsof(n *ast.Join, kind logical.JoinKind, left, right *relation, outer *env) (*relation, error) {
	cond := logical.NewAsofCondition(left.node, right.node)
	var pairs [][2]column
	for i, id := range n.Using {
		pair, c, err := b.usingPair(n, id, left, right, logical.AsofUsingOperator(i, len(n.Using)))
		if err != nil {
			return nil, err
		}
		if err := cond.Add(c); err != nil {
			return nil, b.refused(id, err)
		}
		pairs = append(pairs, pair)
	}
	if n.On != nil {
		e := b.bothSides(left, right, outer)
		for _, x := range conjuncts(n.On, nil) {
			c, err := e.condition(x, "ON")
			if err != nil {
				return nil, err
			}
			if err := cond.Add(c); err != nil {
				return nil, b.refused(x, err)
			}
		}
	}
	j, err := cond.Join(kind)
	if err != nil {
		return nil, b.refused(n, err)
	}
	return b.mergeUsing(n, kind, joined(j, left, right), pairs)
}

// refused puts the place of n on an *UnsupportedError of another package; what would work
// becomes the hint.
func (b *binder) refused(n ast.Node, err error) error {
	var u *logical.UnsupportedError
	if errors.As(err, &u) {
		return b.unsupported(n, u.What, u.Reason, u.Remedy)
	}
	return b.wrap(n, err)
}
