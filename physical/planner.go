package physical

import (
	"fmt"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// A Strategy plans the logical nodes it knows and returns nil for others. It plans
// children with Planner.Plan. The first that answers wins.
type Strategy func(pl *Planner, n logical.Node) (Plan, error)

// Planner turns a logical plan into a physical one. It is used by one goroutine.
type Planner struct {
	Strategies []Strategy
	want       request
	sessions   map[expr.ID]bool // by their start: merged by the aggregate above
	rows       *logical.Estimator
	keys       KeyID // given last
}

// request is what a parent wants beside the rows.
type request struct {
	ordinal bool // the hidden ordinal column, last
	ordered bool // an order of rows that does not depend on timing
}

// NewPlanner asks first the given strategies, then those for batch execution.
func NewPlanner(first ...Strategy) *Planner {
	return &Planner{
		Strategies: append(append([]Strategy(nil), first...), Batch...),
		sessions:   map[expr.ID]bool{},
		rows:       logical.NewEstimator(),
	}
}

// Plan plans n. The columns of the result are those of n's schema, in order.
func (pl *Planner) Plan(n logical.Node) (Plan, error) {
	return pl.plan(n, request{ordered: pl.want.ordered})
}

// PlanOrdinal plans n with the hidden ordinal column behind its columns.
func (pl *Planner) PlanOrdinal(n logical.Node) (Plan, error) {
	return pl.plan(n, request{ordinal: true, ordered: true})
}

// PlanOrdered plans n such that the order of its rows does not depend on timing.
func (pl *Planner) PlanOrdered(n logical.Node) (Plan, error) {
	return pl.plan(n, request{ordered: true})
}

// PlanUnordered plans n for a parent to which the order of rows does not matter.
func (pl *Planner) PlanUnordered(n logical.Node) (Plan, error) { return pl.plan(n, request{}) }

// PlanSame plans the child of a node that passes rows on one by one: it is asked for
// what the node is asked for, the ordinal column included.
func (pl *Planner) PlanSame(n logical.Node) (Plan, error) { return pl.plan(n, pl.want) }

// WantsOrdinal says whether the node being planned is asked for the hidden ordinal
// column. A strategy that does not give it has the rows numbered in arrival order.
func (pl *Planner) WantsOrdinal() bool { return pl.want.ordinal }

// WantsOrder says whether the node being planned is asked for an order of rows that does
// not depend on timing.
func (pl *Planner) WantsOrder() bool { return pl.want.ordered }

// RawSessions says that the parent of w merges its sessions itself: w then only gives
// each row its own bounds.
func (pl *Planner) RawSessions(w *logical.Window) { pl.sessions[w.Start.ID] = true }

func (pl *Planner) plan(n logical.Node, want request) (Plan, error) {
	before := pl.want
	pl.want = want
	defer func() { pl.want = before }()
	for _, s := range pl.Strategies {
		p, err := s(pl, n)
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue
		}
		switch has := HasOrdinal(p.Schema()); {
		case want.ordinal && !has:
			return NewNumber(p), nil
		case has && !want.ordinal:
			return dropOrdinal(p)
		}
		return p, nil
	}
	return nil, &logical.UnsupportedError{What: n.String(), Reason: "no operator executes it"}
}

func dropOrdinal(p Plan) (Plan, error) {
	s := withoutOrdinal(p.Schema())
	columns := make([]expr.Named, s.NumFields())
	for i, f := range s.Fields() {
		columns[i] = expr.Named{Expr: &expr.Ref{Index: i, Name: f.Name, DataType: f.Type, Null: true}, Name: f.Name}
	}
	return NewProject(p, columns)
}

// ordinalRef is the hidden ordinal column of p.
func ordinalRef(p Plan) *expr.Ref {
	return &expr.Ref{Index: p.Schema().NumFields() - 1, Name: columnar.OrdinalName, DataType: columnar.Int64}
}

// Bind replaces the columns of e by their positions in s.
func Bind(e expr.Expr, s *logical.Schema) (expr.Expr, error) {
	return expr.BindRefs(e, s.Index)
}

// BindAll is Bind for several expressions.
func BindAll(list []expr.Expr, s *logical.Schema) ([]expr.Expr, error) {
	out := make([]expr.Expr, len(list))
	for i, e := range list {
		b, err := Bind(e, s)
		if err != nil {
			return nil, err
		}
		out[i] = b
	}
	return out, nil
}

// BindNamed is Bind for named expressions.
func BindNamed(list []expr.Named, s *logical.Schema) ([]expr.Named, error) {
	out := make([]expr.Named, len(list))
	for i, n := range list {
		b, err := Bind(n.Expr, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		n.Expr = b
		out[i] = n
	}
	return out, nil
}

// refsTo are the columns of s by position.
func refsTo(s *logical.Schema) []expr.Named {
	out := make([]expr.Named, len(s.Columns))
	for i, c := range s.Columns {
		out[i] = expr.Named{Expr: &expr.Ref{Index: i, Name: c.Name, DataType: c.DataType, Null: c.Null}, Name: c.Name, ID: c.ID}
	}
	return out
}
