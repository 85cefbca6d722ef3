package logical

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

// AsofJoin pairs each row of Left with the nearest row of Right: of those whose keys are
// equal and for which Nearest holds, the one closest to the left row; of several equally
// close the last in arrival order. A left row that has none is dropped by an inner join
// and padded with nulls by a left one. Null is near to nothing, and equals nothing unless
// the key is null-safe.
type AsofJoin struct {
	Kind        JoinKind // InnerJoin or LeftJoin
	Left, Right Node
	Keys        []JoinKey
	Nearest     Nearest
	schema      *Schema
}

// Nearest is the inequality of an as-of join.
type Nearest struct {
	Left, Right expr.Expr // over columns of that side, of one type
	// Op is >= or > for the nearest earlier row of the right side, <= or < for the nearest
	// later one.
	Op string
}

func (n Nearest) String() string { return fmt.Sprintf("%s %s %s", n.Left, n.Op, n.Right) }

func (k JoinKey) String() string {
	op := "="
	if k.NullSafe {
		op = "IS NOT DISTINCT FROM"
	}
	return fmt.Sprintf("%s %s %s", k.Left, op, k.Right)
}

// NewAsofJoin joins left and right, where kind is InnerJoin or LeftJoin.
func NewAsofJoin(kind JoinKind, left, right Node, keys []JoinKey, nearest Nearest) *AsofJoin {
	return &AsofJoin{Kind: kind, Left: left, Right: right, Keys: keys, Nearest: nearest,
		schema: NewJoin(kind, left, right, nil).Schema()}
}

func (j *AsofJoin) Schema() *Schema  { return j.schema }
func (j *AsofJoin) Children() []Node { return []Node{j.Left, j.Right} }
func (j *AsofJoin) WithChildren(c []Node) Node {
	return NewAsofJoin(j.Kind, c[0], c[1], j.Keys, j.Nearest)
}

// Exprs are left and right of each key, then those of the inequality.
func (j *AsofJoin) Exprs() []expr.Expr {
	var out []expr.Expr
	for _, k := range j.Keys {
		out = append(out, k.Left, k.Right)
	}
	return append(out, j.Nearest.Left, j.Nearest.Right)
}

func (j *AsofJoin) WithExprs(exprs []expr.Expr) Node {
	keys, nearest := slices.Clone(j.Keys), j.Nearest
	for i := range keys {
		keys[i].Left, keys[i].Right = exprs[2*i], exprs[2*i+1]
	}
	nearest.Left, nearest.Right = exprs[2*len(keys)], exprs[2*len(keys)+1]
	return NewAsofJoin(j.Kind, j.Left, j.Right, keys, nearest)
}

func (j *AsofJoin) String() string {
	s := "AsofJoin " + j.Kind.String()
	if len(j.Keys) > 0 {
		parts := make([]string, len(j.Keys))
		for i, k := range j.Keys {
			parts[i] = k.String()
		}
		s += " on=[" + strings.Join(parts, ", ") + "]"
	}
	return s + " nearest=" + j.Nearest.String()
}

// AsofCondition is the condition of an as-of join, taken apart as it is added: exactly
// one inequality of both sides, any number of equalities of both, and conditions on one
// side alone, which say for which rows of the left side, and among which of the right,
// the nearest is looked for.
type AsofCondition struct {
	left, right Node
	keys        []JoinKey
	nearest     *Nearest
	ofLeft      []expr.Expr
	ofRight     []expr.Expr
}

// NewAsofCondition is the condition without any part, for a join of left and right.
func NewAsofCondition(left, right Node) *AsofCondition {
	return &AsofCondition{left: left, right: right}
}

// Add adds a part, perhaps of several joined by AND. An *UnsupportedError says which
// cannot be a part.
func (a *AsofCondition) Add(cond expr.Expr) error {
	for _, c := range expr.Conjuncts(cond) {
		if err := a.add(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *AsofCondition) add(c expr.Expr) error {
	left, right := a.left.Schema(), a.right.Schema()
	if key, ok := keyOf(c, left, right); ok {
		a.keys = append(a.keys, key)
		return nil
	}
	if n, ok := nearestOf(c, left, right); ok {
		if a.nearest != nil {
			return &UnsupportedError{What: "a second inequality of both sides in an as-of join", Reason: "which row is nearest would depend on both",
				Remedy: "keep one of them in ON, and put the other into WHERE, which is asked of the nearest row"}
		}
		a.nearest = &n
		return nil
	}
	switch ids := expr.Columns(c); {
	case left.Has(ids...):
		a.ofLeft = append(a.ofLeft, c)
	case right.Has(ids...):
		a.ofRight = append(a.ofRight, c)
	default:
		return &UnsupportedError{What: "such a condition in an as-of join", Reason: "the nearest row is found by equalities and one inequality of both sides",
			Remedy: "put it into WHERE, which is asked of the nearest row"}
	}
	return nil
}

// nearestOf reads an inequality of both sides, either way around.
func nearestOf(c expr.Expr, left, right *Schema) (Nearest, bool) {
	op, a, b, ok := comparison(c)
	if !ok || op == "=" {
		return Nearest{}, false
	}
	if isOver(b, left) && isOver(a, right) {
		op, a, b = turnedAround[op], b, a
	}
	return Nearest{Left: a, Right: b, Op: op}, isOver(a, left) && isOver(b, right)
}

// Join is the join by the parts added. The error is an *UnsupportedError if there is no
// inequality among them, or kind is not InnerJoin or LeftJoin.
func (a *AsofCondition) Join(kind JoinKind) (*AsofJoin, error) {
	if err := checkAsofKind(kind); err != nil {
		return nil, err
	}
	if a.nearest == nil {
		return nil, &UnsupportedError{What: "an as-of join without an inequality of both sides", Reason: "nothing says which row is the nearest",
			Remedy: "add one, such as l.ts >= r.ts, or leave ASOF out"}
	}
	left, right, nearest := a.left, a.right, *a.nearest
	if len(a.ofRight) > 0 {
		right = NewFilter(right, expr.All(a.ofRight))
	}
	if len(a.ofLeft) > 0 {
		if cond := expr.All(a.ofLeft); kind == InnerJoin {
			left = NewFilter(left, cond)
		} else { // a row for which it is not true stays, and nothing is near to null
			nearest.Left = &expr.Case{Whens: []expr.Expr{cond}, Thens: []expr.Expr{nearest.Left}}
		}
	}
	return NewAsofJoin(kind, left, right, a.keys, nearest), nil
}

func checkAsofKind(kind JoinKind) error {
	remedy := "use ASOF JOIN or ASOF LEFT JOIN"
	switch kind {
	case InnerJoin, LeftJoin:
		return nil
	case SemiJoin, AntiJoin:
		return &UnsupportedError{What: article(kind) + " as-of join", Reason: "which row is the nearest does not matter to it", Remedy: "leave ASOF out, with the same condition in ON"}
	case RightJoin, FullJoin:
		return &UnsupportedError{What: article(kind) + " as-of join", Reason: "the nearest row is looked for from the left side", Remedy: remedy}
	}
	return &UnsupportedError{What: article(kind) + " as-of join", Remedy: remedy}
}

// AsofUsing joins on columns of the same names, which appear once: the last is the time,
// of which the left row has the same or a later one, the others are equal.
func AsofUsing(reg *function.Registry, kind JoinKind, left, right Node, names []string) (Node, error) {
	if len(names) == 0 {
		return nil, errors.New("no columns to join on; the last one named is the time")
	}
	cond := NewAsofCondition(left, right)
	var merged []expr.Named
	used := map[expr.ID]bool{}
	for i, name := range names {
		l, r, err := bothSides(left, right, name)
		if err != nil {
			return nil, err
		}
		if used[l.ID] || used[r.ID] {
			return nil, fmt.Errorf("column %s is named twice", name)
		}
		used[l.ID], used[r.ID] = true, true
		merged = append(merged, expr.Pass(l))
		c, err := expr.NewCall(reg, AsofUsingOperator(i, len(names)), l, r)
		if err != nil {
			return nil, err
		}
		if err := cond.Add(c); err != nil {
			return nil, err
		}
	}
	join, err := cond.Join(kind)
	if err != nil {
		return nil, err
	}
	for _, c := range join.Schema().Columns {
		if !used[c.ID] {
			merged = append(merged, expr.Pass(c))
		}
	}
	return NewProject(join, merged), nil
}

// AsofUsingOperator is what column i of n in the USING of an as-of join is compared by.
func AsofUsingOperator(i, n int) string {
	if i == n-1 {
		return ">="
	}
	return "="
}
