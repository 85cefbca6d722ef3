package stateful

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/eval"
)

// LateFilter drops and counts the rows that the watermark of the batch before has
// passed. An input row that a hopping window has made several of counts once: by its
// ordinal. Over a traced input it also notes which rows they are, and takes the hidden
// columns away.
type LateFilter struct {
	input   physical.Plan
	schema  *arrow.Schema
	program *eval.Program
	text    string
	bound   int64
	ordinal int // position of the ordinal column in the output; -1: every row counts
	inst    *Instance
	rows    *LateRows // nil: late rows are not kept
	hidden  int       // position of the two hidden columns, with rows
}

// lateFilter puts a LateFilter over in where the batch has a watermark to judge by. A
// row is late if time plus offset is at or before it.
func lateFilter(in physical.Plan, time expr.Expr, offset int64, inst *Instance, expanded bool) (physical.Plan, error) {
	if inst.watermarks.Late == nil {
		return in, nil
	}
	program, err := eval.Compile(in.Schema(), time)
	if err != nil {
		return nil, err
	}
	f := &LateFilter{
		input: in, schema: in.Schema(), program: program, text: time.String(), bound: *inst.watermarks.Late - offset, ordinal: -1, inst: inst,
	}
	if t, ok := in.(*tracedPlan); ok {
		f.input, f.rows, f.hidden = t.Plan, t.rows, t.hidden()
		f.schema = withoutHidden(in.Schema(), f.hidden)
		f.rows.reason = lateReason(time, offset)
	}
	if expanded && physical.HasOrdinal(f.schema) {
		f.ordinal = f.schema.NumFields() - 1
	}
	return f, nil
}

// lateReason says why rows were late.
func lateReason(judged expr.Expr, offset int64) string {
	what := Unqualified(judged)
	if offset != 0 {
		what = fmt.Sprintf("%s + %s", what, microseconds(offset))
	}
	return what + " is at or before the watermark"
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// withoutHidden is s without the two columns at position hidden.
func withoutHidden(s *arrow.Schema, hidden int) *arrow.Schema {
	return arrow.NewSchema(slices.Delete(slices.Clone(s.Fields()), hidden, hidden+2), nil)
}

// Schema is the input's, without its hidden columns.
func (p *LateFilter) Schema() *arrow.Schema { return p.schema }

// Children is the input.
func (p *LateFilter) Children() []physical.Plan { return []physical.Plan{p.input} }

// WithChildren filters another input.
func (p *LateFilter) WithChildren(c []physical.Plan) physical.Plan {
	n := *p
	n.input = c[0]
	return &n
}

func (p *LateFilter) String() string { return "LateFilter key=" + p.text }

// Open filters each Reader of the input.
func (p *LateFilter) Open(ctx context.Context, ec *physical.ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := physical.Open(ctx, ec, p.input, n)
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = &lateReader{Reader: in, plan: p, env: ec.Env(), last: -1}
	}
	return inputs, nil
}

type lateReader struct {
	columnar.Reader
	plan *LateFilter
	env  *eval.Env
	keep []int32
	// last is the ordinal of the newest late row: the windows of one input row may be
	// in two batches.
	last int64
}

// Position is the input's.
func (r *lateReader) Position() int64 { return physical.PositionOf(r.Reader) }

func (r *lateReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		b, err := r.Reader.Next(ctx)
		if err != nil {
			return nil, err
		}
		out, err := r.filter(b)
		b.Release()
		if out != nil || err != nil {
			return out, err
		}
	}
}

// filter returns the rows of b that are not late, nil if there are none.
func (r *lateReader) filter(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	columns, err := r.plan.program.EvalColumns(r.env, b)
	if err != nil {
		return nil, err
	}
	defer columns[0].Release()
	var late []int32
	r.keep, late = splitLate(columns[0], r.plan.bound, r.keep[:0])
	out := r.visible(b)
	if len(late) == 0 {
		return out, nil
	}
	defer out.Release()
	if err := r.note(b, out, late); err != nil {
		return nil, err
	}
	if len(r.keep) == 0 {
		return nil, nil
	}
	return kernel.FilterBatch(r.env.Mem, out, r.keep), nil
}

// visible is b without the hidden columns.
func (r *lateReader) visible(b arrow.RecordBatch) arrow.RecordBatch {
	if r.plan.rows == nil {
		b.Retain()
		return b
	}
	at := r.plan.hidden
	columns := slices.Delete(slices.Clone(b.Columns()), at, at+2)
	fields := slices.Delete(slices.Clone(b.Schema().Fields()), at, at+2)
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows())
}

// note counts the late rows of a batch, and keeps them where they are kept. visible is
// the batch without the hidden columns.
func (r *lateReader) note(b, visible arrow.RecordBatch, late []int32) error {
	if r.plan.rows == nil {
		r.plan.inst.late.Add(int64(len(r.fresh(visible, late))))
		return nil
	}
	scans := b.Column(r.plan.hidden).(*array.Int64)
	numbers := b.Column(r.plan.hidden + 1).(*array.Int64)
	n, own, err := r.plan.rows.add(scans, numbers, late)
	if err != nil {
		return err
	}
	if len(own) > 0 {
		own = r.fresh(visible, own)
		n += int64(len(own))
		if err := r.plan.rows.addOwn(r.env.Mem, visible, own); err != nil {
			return err
		}
	}
	r.plan.inst.late.Add(n)
	return nil
}

// splitLate divides rows by their time: at or before bound is late, null is not.
func splitLate(times arrow.Array, bound int64, keep []int32) (kept, late []int32) {
	values, isNull := instants(times)
	for i, t := range values {
		if t <= bound && !isNull(i) {
			late = append(late, int32(i))
		} else {
			keep = append(keep, int32(i))
		}
	}
	return keep, late
}

// instants are the values of a TIMESTAMP column in microseconds.
func instants(a arrow.Array) (values []int64, isNull func(int) bool) {
	t := a.(*array.Timestamp)
	raw := t.TimestampValues()
	values = arrow.Int64Traits.CastFromBytes(arrow.TimestampTraits.CastToBytes(raw))
	if t.NullN() == 0 {
		return values, func(int) bool { return false }
	}
	return values, t.IsNull
}

// fresh are those of the late rows that stand for input rows not met before, one each.
func (r *lateReader) fresh(b arrow.RecordBatch, late []int32) []int32 {
	if r.plan.ordinal < 0 {
		return late
	}
	all := b.Column(r.plan.ordinal).(*array.Int64).Int64Values()
	rows := slices.Clone(late)
	slices.SortStableFunc(rows, func(x, y int32) int { return cmp.Compare(all[x], all[y]) })
	rows = slices.CompactFunc(rows, func(x, y int32) bool { return all[x] == all[y] })
	last := r.last
	r.last = all[rows[len(rows)-1]]
	if all[rows[0]] == last {
		rows = rows[1:]
	}
	return rows
}
