package stateful

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/eval"
)

// SymmetricHashJoin joins two streams in one batch: new rows of each side with the rows
// of the other that the state holds. Both inputs are scattered by the keys, so that each
// Reader gets the rows that fall to the state shards it owns, and works in this order:
//
//  1. Left rows that are not late and hold by the conditions over left alone are matched
//     with the stored right rows, then stored with a mark whether they had a match.
//  2. Right rows likewise, with the stored left rows, to which those of step 1 belong. A
//     right row that step 3 would remove is not stored, unless it comes out unmatched.
//  3. Rows that can match nothing any more leave the state; where unmatched rows come
//     out (left, right, full), those without the mark do, with nulls.
//
// A semi join gives each left row once, at its first match; one that had its match in
// step 1 is not stored. A row with a null key matches nothing, and is kept only where it
// comes out unmatched.
type SymmetricHashJoin struct {
	inst     *Instance
	sides    [2]joinInput
	schema   *arrow.Schema // of the result
	ordered  bool          // two more columns say in which order rows come out
	residual *eval.Filter  // over the columns of residualOf; nil: none
	// residualOf are the columns that the condition over pairs reads, of both sides, by
	// their places in the side.
	residualOf [2][]int
}

// joinInput is one side of the join as the optimizer left it.
type joinInput struct {
	*joinSide
	plan    physical.Plan // with the ordinal, scattered by the keys
	state   *eval.Program // the columns of the table but matched: keys, values, perhaps the time of eviction
	filter  *eval.Filter  // conditions over this side alone; nil: none
	columns []int         // for each column of the result from this side: its place in the plan
	stored  []int         // and its place in the table
}

// planJoin plans a join of streams for one batch.
func planJoin(pl *physical.Planner, x *logical.Join, inst *Instance) (physical.Plan, error) {
	s := inst.op.join
	p := &SymmetricHashJoin{inst: inst, schema: x.Schema().Arrow(), ordered: pl.WantsOrder()}
	for i, in := range x.Children() {
		var err error
		if p.sides[i], err = planSide(pl, in, &s.sides[i], inst); err != nil {
			return nil, err
		}
	}
	if err := p.compileResidual(s.parts.Rest); err != nil {
		return nil, err
	}
	if !p.ordered {
		return p, nil
	}
	p.schema = withOrder(p.schema)
	return &joinOrder{input: p, schema: x.Schema().Arrow()}, nil
}

// planSide plans [LateFilter] > Exchange by the keys, and compiles what is computed of
// its rows.
func planSide(pl *physical.Planner, n logical.Node, side *joinSide, inst *Instance) (joinInput, error) {
	s := joinInput{joinSide: side}
	schema := n.Schema()
	in, err := pl.PlanOrdinal(n)
	if err != nil {
		return s, err
	}
	if c := side.lateTime; c != nil {
		time, err := physical.Bind(c, schema)
		if err != nil {
			return s, err
		}
		if in, err = lateFilter(in, time, side.lateMark.Offset, inst, expands(n)); err != nil {
			return s, err
		}
	}
	computed := append([]expr.Expr(nil), side.keys...)
	for _, c := range side.values {
		computed = append(computed, c)
	}
	if side.evict >= len(side.keys)+len(side.values) {
		computed = append(computed, side.bound.Time)
	}
	bound, err := physical.BindAll(computed, schema)
	if err != nil {
		return s, err
	}
	if s.state, err = eval.Compile(in.Schema(), bound...); err != nil {
		return s, err
	}
	if len(side.conds) > 0 {
		conds, err := physical.BindAll(side.conds, schema)
		if err != nil {
			return s, err
		}
		if s.filter, err = eval.CompileFilter(in.Schema(), conds...); err != nil {
			return s, err
		}
	}
	for i, c := range side.schema.Columns {
		at := schema.Index(c.ID)
		if at < 0 {
			return s, fmt.Errorf("bug: the optimizer has dropped %s from a side of %s", c, inst.op.name)
		}
		s.columns, s.stored = append(s.columns, at), append(s.stored, side.columns[i])
	}
	s.plan, err = physical.NewExchange(in, bound[:len(side.keys)]...)
	return s, err
}

// compileResidual compiles the condition over pairs against just the columns it reads.
func (p *SymmetricHashJoin) compileResidual(rest []expr.Expr) error {
	if len(rest) == 0 {
		return nil
	}
	read := columnSet{}.and(rest...)
	positions := map[expr.ID]int{}
	var fields []arrow.Field
	for i := range p.sides {
		for k, c := range p.sides[i].schema.Columns {
			if read[c.ID] {
				positions[c.ID] = len(fields)
				fields = append(fields, columnar.Field(c.Name, c.DataType))
				p.residualOf[i] = append(p.residualOf[i], k)
			}
		}
	}
	bound := make([]expr.Expr, len(rest))
	for i, e := range rest {
		var err error
		bound[i], err = expr.BindRefs(e, func(id expr.ID) int {
			if at, ok := positions[id]; ok {
				return at
			}
			return -1
		})
		if err != nil {
			return err
		}
	}
	var err error
	p.residual, err = eval.CompileFilter(arrow.NewSchema(fields, nil), bound...)
	return err
}

// Schema is the columns of left, then those of right, which a semi join leaves out.
func (p *SymmetricHashJoin) Schema() *arrow.Schema { return p.schema }

// Children are left and right.
func (p *SymmetricHashJoin) Children() []physical.Plan {
	return []physical.Plan{p.sides[leftSide].plan, p.sides[rightSide].plan}
}

// WithChildren returns p: its inputs are part of it.
func (p *SymmetricHashJoin) WithChildren([]physical.Plan) physical.Plan { return p }

func (p *SymmetricHashJoin) String() string {
	s := p.inst.op.join
	on := make([]string, len(s.parts.Keys))
	for i, k := range s.parts.Keys {
		op := "="
		if k.NullSafe {
			op = "IS NOT DISTINCT FROM"
		}
		on[i] = fmt.Sprintf("%s %s %s", k.Left, op, k.Right)
	}
	text := fmt.Sprintf("SymmetricHashJoin %s kind=%s on=[%s]", p.inst.op.name, s.kind, strings.Join(on, ", "))
	for i, conds := range [][]expr.Expr{s.parts.Left, s.parts.Right, s.parts.Rest} {
		if len(conds) > 0 {
			text += fmt.Sprintf(" %s=%s", [...]string{"left", "right", "residual"}[i], expr.All(conds))
		}
	}
	return text
}

// Open makes one Reader a shard.
func (p *SymmetricHashJoin) Open(ctx context.Context, ec *physical.ExecContext, _ int) ([]columnar.Reader, error) {
	shards := len(p.inst.store.Table(p.sides[leftSide].table).Shards())
	var inputs [2][]columnar.Reader
	for i := range p.sides {
		in, err := physical.Open(ctx, ec, p.sides[i].plan, shards)
		if err == nil && len(in) != shards {
			err = fmt.Errorf("bug: %d inputs for %d state shards", len(in), shards)
		}
		inputs[i] = in
		if err != nil {
			_ = columnar.CloseAll(append(inputs[leftSide], inputs[rightSide]...)) // the first error counts
			return nil, err
		}
	}
	readers := make([]columnar.Reader, shards)
	for k := range readers {
		r := &joinReader{plan: p, env: ec.Env(), size: columnar.DefaultBatchRows, most: ec.PartBytes()}
		if ec.BatchRows > 0 {
			r.size = ec.BatchRows
		}
		r.own, r.rows = make([]int32, r.size), make([]uint32, r.size)
		for i := range r.sides {
			in := inputs[i][k]
			if shards > 1 {
				in = &inOrder{input: in, ec: ec}
			}
			r.sides[i] = joinRun{joinInput: &p.sides[i], input: in, shard: p.inst.store.Table(p.sides[i].table).Shards()[k]}
		}
		readers[k] = r
	}
	return readers, nil
}
