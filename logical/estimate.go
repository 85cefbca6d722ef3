package logical

import (
	"math"
	"reflect"

	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// Estimator guesses how many rows the nodes of a plan give, from the numbers of rows
// that tables know. It asks a table once, and keeps what it found for each node. It is
// used by one goroutine, for one plan.
type Estimator struct {
	tables map[connector.Table]estimate
	nodes  map[Node]estimate
}

type estimate struct {
	rows  float64
	known bool
}

// NewEstimator returns an Estimator that knows nothing yet.
func NewEstimator() *Estimator {
	return &Estimator{tables: map[connector.Table]estimate{}, nodes: map[Node]estimate{}}
}

// Rows is about how many rows n gives; known is false where a table does not know its
// own.
func (s *Estimator) Rows(n Node) (rows float64, known bool) {
	e, seen := s.nodes[n]
	if !seen {
		e = s.estimate(n)
		s.nodes[n] = e
	}
	return e.rows, e.known
}

// Domain is about how many different values a column of n may have at most: the number
// of rows of the table it comes from.
func (s *Estimator) Domain(n Node, id expr.ID) float64 {
	switch x := n.(type) {
	case *Scan:
		e := s.table(x.Table)
		return e.rows
	case *Project:
		for _, c := range x.Columns {
			if in, ok := c.Expr.(*expr.Column); ok && c.ID == id {
				return s.Domain(x.Input, in.ID)
			}
		}
	case *Filter, *Sort, *Limit, *Distinct, *Alias, *Over, *Watermark, *Window, *Join, *AsofJoin:
		for _, c := range n.Children() {
			if c.Schema().Has(id) {
				return s.Domain(c, id)
			}
		}
	}
	rows, _ := s.Rows(n)
	return rows
}

// IsNarrow says whether n has far fewer rows than a column of it may have values, so
// that many rows of another table that are joined by it meet nothing.
func (s *Estimator) IsNarrow(n Node, id expr.ID) (narrow, known bool) {
	rows, known := s.Rows(n)
	return known && rows < 0.7*s.Domain(n, id), known
}

func (s *Estimator) estimate(n Node) estimate {
	switch x := n.(type) {
	case *Scan:
		e := s.table(x.Table)
		for _, f := range x.Filters {
			e.rows *= selectivity(f)
		}
		if x.Limit > 0 {
			e.rows = math.Min(e.rows, float64(x.Limit))
		}
		return e
	case *Values:
		return estimate{float64(len(x.Rows)), true}
	case *Limit:
		e := s.of(x.Input)
		if x.Count != NoLimit && (!e.known || float64(x.Count) < e.rows) {
			return estimate{float64(x.Count), true}
		}
		return e
	case *Filter:
		return s.of(x.Input).times(selectivity(x.Cond))
	case *Aggregate:
		if len(x.Keys) == 0 {
			return estimate{1, true}
		}
		return s.of(x.Input).times(0.5)
	case *Distinct:
		return s.of(x.Input).times(0.5)
	case *Expand:
		return s.of(x.Input).times(float64(len(x.Sets)))
	case *Union:
		total := estimate{known: true}
		for _, in := range x.Inputs {
			e := s.of(in)
			total = estimate{total.rows + e.rows, total.known && e.known}
		}
		return total
	case *Join:
		return s.join(x)
	case *SetOp:
		return s.of(x.Left)
	case *Project, *Alias, *Watermark, *Sort, *Over, *Window, *AsofJoin:
		return s.of(n.Children()[0])
	}
	return estimate{}
}

func (s *Estimator) of(n Node) estimate {
	rows, known := s.Rows(n)
	return estimate{rows, known}
}

func (e estimate) times(f float64) estimate { return estimate{e.rows * f, e.known} }

func (s *Estimator) table(t connector.Table) estimate {
	keep := reflect.TypeOf(t).Comparable()
	if keep {
		if e, seen := s.tables[t]; seen {
			return e
		}
	}
	var e estimate
	if c, ok := t.(connector.RowCounter); ok {
		n, known := c.RowCount()
		e = estimate{float64(n), known}
	}
	if keep {
		s.tables[t] = e
	}
	return e
}

// join takes one side of an equality for a key of the smaller table.
func (s *Estimator) join(j *Join) estimate {
	left, right := s.of(j.Left), s.of(j.Right)
	known := left.known && right.known
	switch j.Kind {
	case SemiJoin, AntiJoin:
		return left.times(0.5)
	}
	pairs := left.rows * right.rows
	domain, other := 1.0, 1.0
	for _, c := range expr.Conjuncts(j.On) {
		a, b, ok := columnsEqual(c)
		if !ok {
			other *= selectivity(c)
			continue
		}
		if !j.Left.Schema().Has(a.ID) {
			a, b = b, a
		}
		if j.Left.Schema().Has(a.ID) && j.Right.Schema().Has(b.ID) {
			domain *= math.Max(1, math.Min(s.Domain(j.Left, a.ID), s.Domain(j.Right, b.ID)))
		}
	}
	// The columns of a key of several are not independent of each other.
	pairs = pairs / math.Min(domain, math.Max(1, math.Max(left.rows, right.rows))) * other
	switch j.Kind {
	case LeftJoin:
		pairs = math.Max(pairs, left.rows)
	case RightJoin:
		pairs = math.Max(pairs, right.rows)
	case FullJoin:
		pairs = math.Max(pairs, left.rows+right.rows)
	}
	return estimate{pairs, known}
}

// columnsEqual takes an equality of two columns apart, whatever they are cast to.
func columnsEqual(e expr.Expr) (a, b *expr.Column, ok bool) {
	c, isCall := e.(*expr.Call)
	if !isCall || len(c.Args) != 2 || c.Func.Name != "=" && c.Func.Name != "is_not_distinct_from" {
		return nil, nil, false
	}
	a, b = castColumn(c.Args[0]), castColumn(c.Args[1])
	return a, b, a != nil && b != nil
}

// castColumn is the column that e is, or casts; nil if it is neither.
func castColumn(e expr.Expr) *expr.Column {
	if c, ok := e.(*expr.Cast); ok {
		e = c.Input
	}
	c, _ := e.(*expr.Column)
	return c
}

// selectivity is about the share of rows for which a condition is true. Nothing is
// known of the values; what counts is that narrow conditions come out narrow.
func selectivity(e expr.Expr) float64 {
	switch x := e.(type) {
	case *expr.Logic:
		share := 1.0
		for _, a := range x.Args {
			if x.Op == expr.And {
				share *= selectivity(a)
			} else {
				share *= 1 - selectivity(a)
			}
		}
		if x.Op == expr.Or {
			share = 1 - share
		}
		return share
	case *expr.In:
		return math.Min(0.5, 0.05*float64(len(x.List)))
	case *expr.Call:
		switch x.Func.Name {
		case "=", "is_not_distinct_from", "is_null":
			return 0.05
		case "<", "<=", ">", ">=":
			return 0.3
		case "like", "ilike", "starts_with", "contains", "regexp_matches":
			return 0.1
		case "not":
			return 1 - selectivity(x.Args[0])
		case "<>", "is_distinct_from", "is_not_null":
			return 0.9
		}
	}
	return 0.5
}

// Selectivity is about the share of rows for which cond is true, 1 for nil.
func Selectivity(cond expr.Expr) float64 {
	if cond == nil {
		return 1
	}
	return selectivity(cond)
}
