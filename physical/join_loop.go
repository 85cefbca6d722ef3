package physical

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// LoopJoin joins by any condition: every row of one side meets every row of the other,
// which is kept.
type LoopJoin struct {
	Left, Right Plan
	Kind        logical.JoinKind
	On          expr.Expr // over the columns of left, then right; nil: always
	BuildLeft   bool      // the left side is kept, not the right
	schema      *arrow.Schema
	pairs       *arrow.Schema
	filter      *eval.Filter
}

// NewLoopJoin joins left and right.
func NewLoopJoin(kind logical.JoinKind, left, right Plan, on expr.Expr) (*LoopJoin, error) {
	j := &LoopJoin{Left: left, Right: right, Kind: kind, On: on}
	j.schema, j.pairs = joinSchema(kind, left.Schema(), right.Schema()), joined(left.Schema(), right.Schema())
	if on != nil {
		f, err := eval.CompileFilter(j.pairs, on)
		if err != nil {
			return nil, err
		}
		j.filter = f
	}
	return j, nil
}

func (p *LoopJoin) Schema() *arrow.Schema { return p.schema }

// Children are left and right.
func (p *LoopJoin) Children() []Plan { return []Plan{p.Left, p.Right} }

// WithChildren joins other inputs.
func (p *LoopJoin) WithChildren(c []Plan) Plan {
	n := *p
	n.Left, n.Right = c[0], c[1]
	return &n
}

func (p *LoopJoin) String() string {
	on := ""
	if p.On != nil {
		on = p.On.String()
	}
	build := ""
	if p.BuildLeft {
		build = "left"
	}
	return args("LoopJoin", "kind", p.Kind.String(), "on", on, "build", build)
}

// Open streams the side that is not kept with n Readers.
func (p *LoopJoin) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	probe, build := p.Left, p.Right
	if p.BuildLeft {
		probe, build = build, probe
	}
	side, inputs, err := openSides(ctx, ec, ec, p, probe, build, n, p.filter != nil && p.filter.IsVolatile())
	if err != nil {
		return nil, err
	}
	out := joinOutput{pairs: p.pairs, build: side, buildLeft: p.BuildLeft, sides: sidesOf(p.Kind, p.BuildLeft), residual: p.filter}
	side.track = out.sides.buildMatched || out.sides.buildUnmatched
	for i, in := range inputs {
		r := newJoinReader(ec, p.schema, in, out)
		r.begin = func() (pairing, error) { return &loopPairs{buildRows: side.store.rows()}, nil }
		inputs[i] = r
	}
	return inputs, nil
}
