package physical

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// HashJoin joins by equal keys: one side is kept in a hash table, the other streams by,
// in parallel. A null key matches nothing, unless its column is null-safe.
type HashJoin struct {
	Left, Right Plan
	Spec        JoinSpec
	schema      *arrow.Schema
	pairs       *arrow.Schema
	leftKeys    *eval.Program
	rightKeys   *eval.Program
	residual    *eval.Filter
}

// JoinSpec is what is joined how.
type JoinSpec struct {
	Kind      logical.JoinKind
	LeftKeys  []expr.Expr // over positions of the left input
	RightKeys []expr.Expr // over positions of the right input, of the same types
	NullSafe  []bool      // by key: IS NOT DISTINCT FROM; nil is none
	Residual  expr.Expr   // over the columns of left, then right; nil: none
	BuildLeft bool        // the left side is kept, not the right
	// NullAware makes an anti join mean NOT IN: a null key on the right leaves no row,
	// one on the left none unless the right side is empty. BuildLeft is not set then.
	NullAware bool
	// Gives names key columns whose values of the build side the probe side is told.
	Gives []KeyGift
}

// KeyGift is that the values of a key column of a join's build side are a key set. The
// column is not null-safe, and columnar.IsWord of its type.
type KeyGift struct {
	Key    KeyID
	Column int // of the keys
}

// NewHashJoin joins left and right.
func NewHashJoin(left, right Plan, spec JoinSpec) (*HashJoin, error) {
	j := &HashJoin{Left: left, Right: right, Spec: spec}
	var err error
	if j.leftKeys, err = eval.Compile(left.Schema(), spec.LeftKeys...); err != nil {
		return nil, err
	}
	if j.rightKeys, err = eval.Compile(right.Schema(), spec.RightKeys...); err != nil {
		return nil, err
	}
	j.schema, j.pairs = joinSchema(spec.Kind, left.Schema(), right.Schema()), joined(left.Schema(), right.Schema())
	if spec.Residual != nil {
		if j.residual, err = eval.CompileFilter(j.pairs, spec.Residual); err != nil {
			return nil, err
		}
	}
	return j, nil
}

func (p *HashJoin) Schema() *arrow.Schema { return p.schema }

// Children are left and right.
func (p *HashJoin) Children() []Plan { return []Plan{p.Left, p.Right} }

// WithChildren joins other inputs.
func (p *HashJoin) WithChildren(c []Plan) Plan {
	n := *p
	n.Left, n.Right = c[0], c[1]
	return &n
}

func (p *HashJoin) String() string {
	on := make([]string, len(p.Spec.LeftKeys))
	for i := range on {
		op := "="
		if p.Spec.NullSafe != nil && p.Spec.NullSafe[i] {
			op = "IS NOT DISTINCT FROM"
		}
		on[i] = fmt.Sprintf("%s %s %s", p.Spec.LeftKeys[i], op, p.Spec.RightKeys[i])
	}
	build, residual := "right", ""
	if p.Spec.BuildLeft {
		build = "left"
	}
	if p.Spec.Residual != nil {
		residual = p.Spec.Residual.String()
	}
	kind := p.Spec.Kind.String()
	if p.Spec.NullAware {
		kind = "null-aware " + kind
	}
	return args("HashJoin", "kind", kind, "on", fmt.Sprint(on), "residual", residual, "build", build, "gives", p.gifts())
}

// gifts prints Gives by the keys of the build side.
func (p *HashJoin) gifts() string {
	keys := p.Spec.RightKeys
	if p.Spec.BuildLeft {
		keys = p.Spec.LeftKeys
	}
	parts := make([]string, len(p.Spec.Gives))
	for i, g := range p.Spec.Gives {
		parts[i] = fmt.Sprintf("%s of %s", g.Key, keys[g.Column])
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Open probes with n Readers.
func (p *HashJoin) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	probe, build := p.Left, p.Right
	probeKeys, buildKeys := p.leftKeys, p.rightKeys
	if p.Spec.BuildLeft {
		probe, build, probeKeys, buildKeys = build, probe, buildKeys, probeKeys
	}
	one := p.residual != nil && p.residual.IsVolatile() || probeKeys.IsVolatile()
	gifts := newKeyGifts(ec, p)
	side, inputs, err := openSides(ctx, ec, ec.withKeys(gifts.sets), p, probe, build, n, one)
	if err != nil {
		return nil, err
	}
	out := joinOutput{pairs: p.pairs, build: side, buildLeft: p.Spec.BuildLeft, sides: sidesOf(p.Spec.Kind, p.Spec.BuildLeft), residual: p.residual}
	side.track = out.sides.buildMatched || out.sides.buildUnmatched
	if side.table, err = group.NewRowTable(ec.Mem, buildKeys.Types(), p.Spec.NullSafe, group.Options{Budget: ec.Budget, Who: "join"}); err != nil {
		_ = columnar.CloseAll(append(inputs, side.input))
		return nil, err
	}
	env := ec.Env()
	fill := func(b arrow.RecordBatch) error { return fillTable(side.table, buildKeys, env, b, gifts) }
	side.finish = func() error {
		side.table.Build()
		gifts.complete()
		return nil
	}
	side.also = gifts.release
	for i, in := range inputs {
		r := newJoinReader(ec, p.schema, in, out)
		r.fill = fill
		r.whole = p.residual == nil && out.sides.pairs && out.sides.probeUnmatched
		r.begin = func() (pairing, error) {
			pairs := &hashPairs{keys: probeKeys, env: ec.Env(), table: side.table.View(), outer: r.whole}
			if p.Spec.NullAware {
				pairs.nullKey = func(row int) { r.hit.Set(row) }
				r.none = len(side.table.Rows()) < side.table.Len() // a null key matches nothing
			}
			return pairs, nil
		}
		inputs[i] = r
	}
	return inputs, nil
}

// fillTable adds the keys of the rows of b.
func fillTable(t *group.RowTable, keys *eval.Program, env *eval.Env, b arrow.RecordBatch, gifts keyGifts) error {
	columns, err := keys.EvalColumns(env, b)
	if err != nil {
		return err
	}
	defer releaseAll(columns)
	gifts.add(columns)
	return t.Add(columns, int(b.NumRows()))
}

// openSides opens the inputs of a join: build gathered, probe with n Readers and a context
// of its own.
func openSides(ctx context.Context, ec, probeContext *ExecContext, p, probe, build Plan, n int, one bool) (*buildSide, []columnar.Reader, error) {
	kept, err := OpenOne(ctx, ec, build)
	if err != nil {
		return nil, nil, err
	}
	inputs, err := openAs(ctx, probeContext, probe, n, one)
	if err != nil {
		_ = kept.Close() // the first error counts
		return nil, nil, err
	}
	side := &buildSide{mem: ec.Mem, store: newRowStore(ec.Mem, build.Schema(), ec.account(p, "join")), input: kept}
	side.open.Store(int64(len(inputs)))
	side.active.Store(int64(len(inputs)))
	return side, inputs, nil
}

// eachNullKey calls f for the rows in which some key is null.
func eachNullKey(keys []arrow.Array, f func(row int)) {
	for _, k := range keys {
		if id := k.DataType().ID(); k.NullN() == 0 && id != arrow.DICTIONARY && id != arrow.NULL {
			continue
		}
		for i := range k.Len() {
			if columnar.IsNull(k, i) {
				f(i)
			}
		}
	}
}
