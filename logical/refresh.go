package logical

import "github.com/tidemill/tidemill/logical/expr"

// Refresh copies a plan with fresh IDs for every column it makes, so that it can
// stand beside its original in one plan (a self-join, a union with itself).
func Refresh(n Node) Node {
	r := refresher{}
	return r.node(n)
}

// refresher maps old IDs to the columns that stand for them.
type refresher map[expr.ID]*expr.Column

func (r refresher) column(c *expr.Column) *expr.Column {
	n := *c
	if known, ok := r[c.ID]; ok {
		n.ID = known.ID
		return &n
	}
	n.ID = expr.NewID()
	r[c.ID] = &n
	return &n
}

func (r refresher) schema(s *Schema) *Schema {
	out := &Schema{Columns: make([]*expr.Column, len(s.Columns))}
	for i, c := range s.Columns {
		out.Columns[i] = r.column(c)
	}
	return out
}

func (r refresher) expr(e expr.Expr) expr.Expr {
	m, err := expr.Transform(e, func(x expr.Expr) (expr.Expr, error) {
		if c, ok := x.(*expr.Column); ok && r[c.ID] != nil {
			return r.column(c), nil
		}
		return x, nil // a column of a query around this plan stays what it is
	})
	if err != nil {
		panic("bug: " + err.Error()) // the function above returns none
	}
	return m
}

func (r refresher) exprs(list []expr.Expr) []expr.Expr {
	if list == nil {
		return nil
	}
	out := make([]expr.Expr, len(list))
	for i, e := range list {
		out[i] = r.expr(e)
	}
	return out
}

func (r refresher) named(list []expr.Named) []expr.Named {
	out := make([]expr.Named, len(list))
	for i, n := range list {
		n.Expr = r.expr(n.Expr)
		old := *n.Column()
		n.ID = r.column(&old).ID
		out[i] = n
	}
	return out
}

// node refreshes n after its children, which make the columns it uses.
func (r refresher) node(n Node) Node {
	children := n.Children()
	fresh := make([]Node, len(children))
	for i, c := range children {
		fresh[i] = r.node(c)
	}
	switch x := n.(type) {
	case *Scan:
		m := *x
		m.Full = r.schema(x.Full)
		m.Output = pick(m.Full, x.Positions)
		m.Filters = r.exprs(x.Filters)
		return &m
	case *StreamScan:
		m := *x
		m.Full = r.schema(x.Full)
		m.Output = pick(m.Full, x.Positions)
		m.Filters = r.exprs(x.Filters)
		return &m
	case *Values:
		return &Values{Rows: x.Rows, Output: r.schema(x.Output), Given: x.Given}
	case *Project:
		return NewProject(fresh[0], r.named(x.Columns))
	case *Aggregate:
		return NewAggregate(fresh[0], r.named(x.Keys), r.named(x.Aggs)).WithState(x.State)
	case *Union:
		return &Union{Inputs: fresh, Output: r.schema(x.Output)}
	case *Window:
		m := *x
		m.Input, m.Time = fresh[0], r.expr(x.Time)
		if m.Spec.Gap != nil {
			m.Spec.Gap = r.expr(m.Spec.Gap)
		}
		m.PartitionKeys = r.exprs(x.PartitionKeys)
		m.Start, m.End = r.column(x.Start), r.column(x.End)
		return &m
	case *Unnest:
		m := *x
		m.Input, m.Lists, m.Elements, m.Dropped = fresh[0], r.exprs(x.Lists), nil, nil
		for id := range x.Dropped {
			if m.Dropped == nil {
				m.Dropped = map[expr.ID]bool{}
			}
			m.Dropped[r[id].ID] = true
		}
		for _, e := range x.Elements {
			m.Elements = append(m.Elements, r.schema(&Schema{Columns: e}).Columns)
		}
		if x.Place != nil {
			m.Place = r.column(x.Place)
		}
		return &m
	case *Over:
		return NewOver(fresh[0], r.named(x.Functions))
	case *Expand:
		m := *x
		m.Input, m.Keys, m.Set = fresh[0], r.named(x.Keys), r.column(x.Set)
		return &m
	case *Watermark:
		return NewWatermark(fresh[0], r[x.Column].ID, x.Delay, x.Label)
	}
	if m, ok := n.(*MapGroups); ok {
		n = m.withOutput(r.schema(m.Output))
	}
	if len(fresh) > 0 {
		n = n.WithChildren(fresh)
	}
	if exprs := n.Exprs(); len(exprs) > 0 {
		n = n.WithExprs(r.exprs(exprs))
	}
	return n
}
