package physical

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// SessionMerge merges sessions that overlap or touch, by key, and gives each row the
// bounds of its merged session in place of its own. It is for bounded input, which it
// keeps as a whole; rows keep their order. It gives one Reader.
type SessionMerge struct {
	unaryPlan
	Keys       []expr.Expr
	Start, End int // positions of the bounds in the input
	program    *eval.Program
}

// NewSessionMerge merges the sessions of input by keys, over positions of its columns.
func NewSessionMerge(input Plan, keys []expr.Expr, start, end int) (*SessionMerge, error) {
	program, err := eval.Compile(input.Schema(), keys...)
	if err != nil {
		return nil, err
	}
	return &SessionMerge{unaryPlan{input}, keys, start, end, program}, nil
}

func (p *SessionMerge) Schema() *arrow.Schema { return p.Input.Schema() }

// WithChildren merges the sessions of another input.
func (p *SessionMerge) WithChildren(c []Plan) Plan {
	return &SessionMerge{unaryPlan{c[0]}, p.Keys, p.Start, p.End, p.program}
}

func (p *SessionMerge) String() string { return args("SessionMerge", "keys", list(p.Keys)) }

// Open gathers the input.
func (p *SessionMerge) Open(ctx context.Context, ec *ExecContext, _ int) ([]columnar.Reader, error) {
	in, err := OpenOne(ctx, ec, p.Input)
	if err != nil {
		return nil, err
	}
	r := &sessionReader{operator: operator{schema: p.Schema(), input: in}, plan: p, ec: ec, account: ec.account(p, "session windows")}
	return []columnar.Reader{r}, nil
}

type sessionReader struct {
	operator
	plan    *SessionMerge
	ec      *ExecContext
	account *account
	read    bool
	batches []arrow.RecordBatch
	starts  []int64 // of all rows
	ends    []int64
	row     int64
}

// session is a row's own session.
type session struct {
	start int64
	key   uint32
	row   uint32
}

func (r *sessionReader) Position() int64 { return r.row }

func (r *sessionReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if !r.read {
		r.read = true
		if err := r.merge(ctx); err != nil {
			return nil, err
		}
	}
	if len(r.batches) == 0 {
		return nil, io.EOF
	}
	b := r.batches[0]
	r.batches = r.batches[1:]
	defer b.Release()
	n := b.NumRows()
	columns := retained(b.Columns())
	for at, values := range map[int][]int64{r.plan.Start: r.starts, r.plan.End: r.ends} {
		columns[at].Release()
		buf, out := kernel.Make[int64](r.ec.Mem, int(n))
		copy(out, values[r.row:])
		columns[at] = kernel.Wrap(columnar.Timestamp, int(n), 0, nil, buf)
	}
	r.row += n
	return takeBatch(r.schema, columns, n), nil
}

// merge reads everything and merges the sessions of each key in order of their start.
func (r *sessionReader) merge(ctx context.Context) error {
	list, err := r.collect(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b session) int {
		if c := cmp.Compare(a.key, b.key); c != 0 {
			return c
		}
		return cmp.Compare(a.start, b.start)
	})
	for i := 0; i < len(list); {
		first := list[i]
		end := r.ends[first.row]
		j := i + 1
		for j < len(list) && list[j].key == first.key && list[j].start <= end {
			end = max(end, r.ends[list[j].row])
			j++
		}
		for ; i < j; i++ {
			r.starts[list[i].row], r.ends[list[i].row] = first.start, end
		}
	}
	return nil
}

func (r *sessionReader) collect(ctx context.Context) ([]session, error) {
	table, err := group.New(r.ec.Mem, r.plan.program.Types(), group.Options{Budget: r.ec.Budget, Who: "session windows"})
	if err != nil {
		return nil, err
	}
	defer table.Release()
	env := r.ec.Env()
	var list []session
	var ids []uint32
	for {
		b, err := r.input.Next(ctx)
		if isEnd(err) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		r.batches = append(r.batches, b)
		if err := r.account.add(batchBytes(b) + 32*b.NumRows()); err != nil {
			return nil, err
		}
		env.Begin(b)
		keys, err := r.plan.program.EvalColumns(env, b)
		if err != nil {
			return nil, err
		}
		ids = resize(ids, int(b.NumRows()))
		err = table.Intern(keys, ids)
		releaseAll(keys)
		if err != nil {
			return nil, err
		}
		starts := kernel.Values[int64](b.Column(r.plan.Start))
		for i, id := range ids {
			list = append(list, session{starts[i], id, uint32(len(list))})
		}
		r.starts = append(r.starts, starts...)
		r.ends = append(r.ends, kernel.Values[int64](b.Column(r.plan.End))...)
	}
}

func (r *sessionReader) Close() error {
	releaseBatches(r.batches)
	r.batches, r.starts, r.ends = nil, nil, nil
	r.account.release()
	return r.input.Close()
}
