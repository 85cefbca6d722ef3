package stateful

import (
	"context"
	"slices"

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
// ordinal.
type LateFilter struct {
	input   physical.Plan
	program *eval.Program
	text    string
	bound   int64
	ordinal int // position of the ordinal column; -1: every row counts
	inst    *Instance
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
		input: in, program: program, text: time.String(), bound: *inst.watermarks.Late - offset, ordinal: -1, inst: inst,
	}
	if expanded && physical.HasOrdinal(in.Schema()) {
		f.ordinal = in.Schema().NumFields() - 1
	}
	return f, nil
}

// Schema is the input's.
func (p *LateFilter) Schema() *arrow.Schema { return p.input.Schema() }

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
	if len(late) == 0 {
		b.Retain()
		return b, nil
	}
	r.plan.inst.late.Add(r.count(b, late))
	if len(r.keep) == 0 {
		return nil, nil
	}
	return kernel.FilterBatch(r.env.Mem, b, r.keep), nil
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

// count is the number of input rows that the late rows were made from.
func (r *lateReader) count(b arrow.RecordBatch, late []int32) int64 {
	if r.plan.ordinal < 0 {
		return int64(len(late))
	}
	all := b.Column(r.plan.ordinal).(*array.Int64).Int64Values()
	ordinals := make([]int64, len(late))
	for i, row := range late {
		ordinals[i] = all[row]
	}
	slices.Sort(ordinals)
	ordinals = slices.Compact(ordinals)
	n := int64(len(ordinals))
	if ordinals[0] == r.last {
		n--
	}
	r.last = ordinals[len(ordinals)-1]
	return n
}
