package stateful

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
)

// Where late rows are kept, the input of an operator that judges rows carries two
// hidden columns from the streams' scans up to its LateFilter: which scan a row was made
// of, and which row of that. They go through what passes rows on; a row that comes out of
// a state has nulls there.
const (
	scanName = "\x00scan"
	rowName  = "\x00row"
)

// trace is a plan with the hidden columns behind its own.
type trace struct {
	node      logical.Node
	scan, row *expr.Column
}

// traced is the plan n as the input of a LateFilter, with the hidden columns where late
// rows are kept; n itself where they are not.
func (i *Instance) traced(n logical.Node) logical.Node {
	if i.lateKeeper == nil || i.watermarks.Late == nil {
		return n
	}
	rows := &LateRows{operator: i.op.name, watermark: *i.watermarks.Late, keeper: i.lateKeeper}
	t := rows.trace(n)
	columns := make([]expr.Named, 0, len(n.Schema().Columns)+2)
	for _, c := range n.Schema().Columns {
		columns = append(columns, expr.Pass(c))
	}
	t.node = logical.NewProject(t.node, append(columns, expr.Pass(t.scan), expr.Pass(t.row)))
	rows.ownSchema = n.Schema().Arrow()
	i.kept = append(i.kept, rows)
	return &Traced{node: n, with: t.node, rows: rows}
}

// tracedJoin is a join whose sides are traced where their rows are judged.
func (i *Instance) tracedJoin(x *logical.Join) *logical.Join {
	children := slices.Clone(x.Children())
	for k := range children {
		if i.op.join.sides[k].lateTime != nil {
			children[k] = i.traced(children[k])
		}
	}
	return x.WithChildren(children).(*logical.Join)
}

// trace adds the hidden columns to n, behind or among its own.
func (l *LateRows) trace(n logical.Node) trace {
	switch x := n.(type) {
	case *logical.StreamScan:
		s := &LateScan{Scan: x, units: map[int64]*rowSet{}}
		l.scans = append(l.scans, s)
		numbered := &Numbered{input: x, number: int64(len(l.scans) - 1), scan: hiddenColumn(scanName), row: hiddenColumn(rowName)}
		return trace{numbered, numbered.scan, numbered.row}
	case *logical.Filter, *logical.Alias, *logical.Watermark, *logical.Window, *logical.Expand, *logical.Unnest, *logical.AsofJoin:
		children := slices.Clone(n.Children())
		t := l.trace(children[0])
		children[0] = t.node
		t.node = n.WithChildren(children)
		return t
	case *logical.Project:
		t := l.trace(x.Input)
		columns := append(slices.Clone(x.Columns), expr.Pass(t.scan), expr.Pass(t.row))
		t.node = logical.NewProject(t.node, columns)
		return t
	case *logical.Union:
		return l.traceUnion(x)
	case *logical.Join:
		if x.State == "" {
			return l.traceJoin(x)
		}
	}
	return l.untraced(n)
}

func hiddenColumn(name string) *expr.Column {
	return &expr.Column{ID: expr.NewID(), Name: name, DataType: columnar.Int64, Null: true}
}

// traceUnion gives every input the hidden columns as its last.
func (l *LateRows) traceUnion(u *logical.Union) trace {
	inputs := make([]logical.Node, len(u.Inputs))
	for i, in := range u.Inputs {
		t := l.trace(in)
		var columns []expr.Named
		for _, c := range in.Schema().Columns {
			columns = append(columns, expr.Pass(c))
		}
		inputs[i] = logical.NewProject(t.node, append(columns, expr.Pass(t.scan), expr.Pass(t.row)))
	}
	t := trace{scan: hiddenColumn(scanName), row: hiddenColumn(rowName)}
	output := slices.Clone(u.Output.Columns)
	t.node = &logical.Union{Inputs: inputs, Output: logical.NewSchema(append(output, t.scan, t.row)...)}
	return t
}

// traceJoin follows the stream of a join with a bounded table.
func (l *LateRows) traceJoin(j *logical.Join) trace {
	children := slices.Clone(j.Children())
	side := leftSide
	if logical.IsStreaming(j.Right) {
		side = rightSide
	}
	t := l.trace(children[side])
	children[side] = t.node
	t.node = j.WithChildren(children)
	return t
}

// untraced gives rows that are not those of a stream nulls.
func (l *LateRows) untraced(n logical.Node) trace {
	l.own = true
	null := &expr.Literal{Value: columnar.NullConstant(memory.NewGoAllocator(), columnar.Int64).Array()}
	t := trace{scan: hiddenColumn(scanName), row: hiddenColumn(rowName)}
	var columns []expr.Named
	for _, c := range n.Schema().Columns {
		columns = append(columns, expr.Pass(c))
	}
	for _, c := range []*expr.Column{t.scan, t.row} {
		columns = append(columns, expr.Named{Expr: null, Name: c.Name, ID: c.ID})
	}
	t.node = logical.NewProject(n, columns)
	return t
}

// Numbered is the scan of a stream with two more columns: the scan's number and the
// row's ordinal.
type Numbered struct {
	input     *logical.StreamScan
	number    int64
	scan, row *expr.Column
}

// Schema is the scan's columns, then its number and the row's.
func (n *Numbered) Schema() *logical.Schema {
	columns := n.input.Schema().Columns
	return logical.NewSchema(append(columns[:len(columns):len(columns)], n.scan, n.row)...)
}

// Children is the scan.
func (n *Numbered) Children() []logical.Node { return []logical.Node{n.input} }

// WithChildren numbers another scan.
func (n *Numbered) WithChildren(c []logical.Node) logical.Node {
	m := *n
	m.input = c[0].(*logical.StreamScan)
	return &m
}

// Exprs is nothing.
func (n *Numbered) Exprs() []expr.Expr { return nil }

// WithExprs returns n.
func (n *Numbered) WithExprs([]expr.Expr) logical.Node { return n }

func (n *Numbered) String() string { return fmt.Sprintf("Numbered scan=%d", n.number) }

// Traced is a plan with hidden columns behind those of its Schema: rows for the
// LateFilter right above it, which takes them away.
type Traced struct {
	node logical.Node // without the columns
	with logical.Node
	rows *LateRows
}

// Schema is that of the plan without the hidden columns.
func (t *Traced) Schema() *logical.Schema { return t.node.Schema() }

// Children is the plan with the hidden columns.
func (t *Traced) Children() []logical.Node { return []logical.Node{t.with} }

// WithChildren traces another plan.
func (t *Traced) WithChildren(c []logical.Node) logical.Node {
	m := *t
	m.with = c[0]
	return &m
}

// Exprs is nothing.
func (t *Traced) Exprs() []expr.Expr { return nil }

// WithExprs returns t.
func (t *Traced) WithExprs([]expr.Expr) logical.Node { return t }

func (t *Traced) String() string { return "Traced" }

// PlanTrace is the physical.Strategy for the nodes that tracing adds.
func PlanTrace(pl *physical.Planner, n logical.Node) (physical.Plan, error) {
	switch x := n.(type) {
	case *Numbered:
		return planNumbered(pl, x)
	case *Traced:
		in, err := pl.PlanSame(x.with)
		if err != nil {
			return nil, err
		}
		return &tracedPlan{Plan: in, rows: x.rows}, nil
	}
	return nil, nil
}

func planNumbered(pl *physical.Planner, n *Numbered) (physical.Plan, error) {
	in, err := pl.PlanOrdinal(n.input)
	if err != nil {
		return nil, err
	}
	columns := positions(in.Schema(), in.Schema().NumFields())
	last := len(columns) - 1
	ordinal := columns[last]
	number, err := columnar.Constant(memory.NewGoAllocator(), columnar.Int64, n.number)
	if err != nil {
		return nil, err
	}
	columns = append(columns[:last],
		expr.Named{Expr: &expr.Literal{Value: number.Array()}, Name: scanName},
		expr.Named{Expr: ordinal.Expr, Name: rowName})
	if pl.WantsOrdinal() {
		columns = append(columns, ordinal)
	}
	return physical.NewProject(in, columns)
}

// tracedPlan is the input of a LateFilter, with the two hidden columns behind the
// others; only the ordinal stands behind them.
type tracedPlan struct {
	physical.Plan
	rows *LateRows
}

// hidden is where the two columns begin: the scan, then the row.
func (p *tracedPlan) hidden() int {
	n := p.Schema().NumFields() - 2
	if physical.HasOrdinal(p.Schema()) {
		n--
	}
	return n
}
