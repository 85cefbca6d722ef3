package physical

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical"
)

// SetOp is INTERSECT or EXCEPT: rows of the left input, in their order, by how often
// they are in the right one. It gives one Reader.
type SetOp struct {
	Left, Right Plan
	Kind        logical.SetOpKind
	All         bool
}

// NewSetOp combines inputs of the same column types.
func NewSetOp(kind logical.SetOpKind, all bool, left, right Plan) *SetOp {
	return &SetOp{left, right, kind, all}
}

func (p *SetOp) Schema() *arrow.Schema { return p.Left.Schema() }

// Children are left and right.
func (p *SetOp) Children() []Plan { return []Plan{p.Left, p.Right} }

// WithChildren combines other inputs.
func (p *SetOp) WithChildren(c []Plan) Plan { return NewSetOp(p.Kind, p.All, c[0], c[1]) }

func (p *SetOp) String() string {
	all := ""
	if p.All {
		all = "true"
	}
	return args("SetOp", "kind", p.Kind.String(), "all", all)
}

// Open gathers both inputs.
func (p *SetOp) Open(ctx context.Context, ec *ExecContext, _ int) ([]columnar.Reader, error) {
	left, err := OpenOne(ctx, ec, p.Left)
	if err != nil {
		return nil, err
	}
	right, err := OpenOne(ctx, ec, p.Right)
	if err != nil {
		_ = left.Close() // the first error counts
		return nil, err
	}
	types := make([]arrow.DataType, p.Schema().NumFields())
	for i, f := range p.Schema().Fields() {
		types[i] = f.Type
	}
	table, err := group.New(ec.Mem, types, group.Options{Budget: ec.Budget, Who: p.Kind.String()})
	if err != nil {
		_ = columnar.CloseAll([]columnar.Reader{left, right})
		return nil, err
	}
	r := &setOpReader{operator: operator{schema: p.Schema(), input: left}, plan: p, ec: ec, right: right, table: table}
	r.account = ec.account(p, p.Kind.String())
	return []columnar.Reader{r}, nil
}

type setOpReader struct {
	operator
	plan    *SetOp
	ec      *ExecContext
	right   columnar.Reader
	table   group.Table
	account *account
	built   bool
	// left says how often a row may still be given (INTERSECT) or left out (EXCEPT
	// ALL), by id; for EXCEPT -1 is a row already given.
	left []int64
	ids  []uint32
	rows []int32
}

func (r *setOpReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if !r.built {
		if err := r.build(ctx); err != nil {
			return nil, err
		}
		r.built = true
	}
	for {
		b, err := r.input.Next(ctx)
		if err != nil {
			return nil, err
		}
		err = r.intern(b)
		if err == nil {
			r.choose()
		}
		if err != nil || len(r.rows) == 0 {
			b.Release()
			if err != nil {
				return nil, err
			}
			continue
		}
		out := kernel.FilterBatch(r.ec.Mem, b, r.rows)
		b.Release()
		return out, nil
	}
}

func (r *setOpReader) build(ctx context.Context) error {
	for b, err := range columnar.All(ctx, r.right) {
		if err != nil {
			return err
		}
		if err := r.intern(b); err != nil {
			return err
		}
		for _, id := range r.ids {
			if r.plan.All {
				r.left[id]++
			} else {
				r.left[id] = 1
			}
		}
	}
	return r.right.Close()
}

func (r *setOpReader) intern(b arrow.RecordBatch) error {
	r.ids = resize(r.ids, int(b.NumRows()))
	if err := r.table.Intern(b.Columns(), r.ids); err != nil {
		return err
	}
	n := r.table.Len()
	if len(b.Columns()) == 0 {
		n = 1
	}
	for len(r.left) < n {
		r.left = append(r.left, 0)
	}
	return r.account.set(int64(cap(r.left)) * 8)
}

// choose selects the rows of the interned batch that are given.
func (r *setOpReader) choose() {
	r.rows = r.rows[:0]
	for i, id := range r.ids {
		n := r.left[id]
		give := n > 0
		switch {
		case r.plan.Kind == logical.Intersect:
			r.left[id] = max(n-1, 0) // without ALL it was 1
		case r.plan.All:
			give = !give
			r.left[id] = max(n-1, 0)
		default:
			give = n == 0
			if give {
				r.left[id] = -1
			}
		}
		if give {
			r.rows = append(r.rows, int32(i))
		}
	}
}

func (r *setOpReader) Close() error {
	r.table.Release()
	r.account.release()
	return columnar.CloseAll([]columnar.Reader{r.input, r.right})
}
