package physical

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/physical/eval"
)

// A partial aggregation holds at most partialGroups groups, which stay in cache. When
// it has so many it gives them away, and if rows were not minReduction times as many
// it steps aside from then on. Measuring earlier, on the first batch, would take a key
// of 100,000 values for one without repetition.
const (
	minReduction  = 4
	partialGroups = 128 << 10
)

// PartialAggregate aggregates what each of its Readers is given and returns keys and
// states (AggregateSpec.StateSchema), to be merged by what is above: the same key may
// come several times, also from one Reader. Where grouping hardly reduces the rows it
// steps aside and only gives each row the form of a state. Text keys may be
// dictionary-encoded. It returns nothing for no rows.
type PartialAggregate struct {
	unaryPlan
	Spec *AggregateSpec
	// Kept is where tables come from and go to; nil: each run makes its own.
	Kept *Partials
}

// NewPartialAggregate aggregates input, whose schema is spec.In. No aggregate is over
// distinct values.
func NewPartialAggregate(input Plan, spec *AggregateSpec) *PartialAggregate {
	return &PartialAggregate{unaryPlan: unaryPlan{input}, Spec: spec}
}

func (p *PartialAggregate) Schema() *arrow.Schema { return p.Spec.StateSchema() }

// WithChildren aggregates another input.
func (p *PartialAggregate) WithChildren(c []Plan) Plan {
	n := *p
	n.Input = c[0]
	return &n
}

func (p *PartialAggregate) String() string {
	keys, aggs := p.Spec.describe()
	return args("PartialAggregate", "keys", keys, "aggs", aggs)
}

// Open aggregates each Reader of the input by itself.
func (p *PartialAggregate) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := openAs(ctx, ec, p.Input, n, p.Spec.program.IsVolatile())
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = &partialReader{operator: operator{schema: p.Schema(), input: in}, plan: p, ec: ec, env: ec.Env(), aside: p.Kept.stepsAside(), arrived: newArrivals(i)}
	}
	return inputs, nil
}

type partialReader struct {
	operator
	plan *PartialAggregate
	ec   *ExecContext
	env  *eval.Env

	g       *grouping
	rows    int // since the last flush
	aside   bool
	ended   bool
	giving  []uint32 // the groups being flushed; nil before the first is given
	give    int      // the next one of them
	given   int      // the most groups that were flushed at once
	firsts  []int64  // of the batch given last
	flush   bool
	arrived *arrivals
}

func (r *partialReader) Position() int64 { return 0 }

func (r *partialReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		if r.flush {
			if b, err := r.nextGroups(); b != nil || err != nil {
				return b, err
			}
			continue
		}
		if r.ended {
			return nil, io.EOF
		}
		if r.aside {
			return r.nextAside(ctx)
		}
		if err := r.advance(ctx); err != nil {
			return nil, err
		}
	}
}

// nextAside makes states of the rows of a batch, each a group of its own.
func (r *partialReader) nextAside(ctx context.Context) (arrow.RecordBatch, error) {
	in, number, err := r.nextRows(ctx)
	if err != nil {
		return nil, err
	}
	defer in.Release()
	if r.g == nil {
		if r.g, err = newGrouping(r.plan.Spec, r.ec, r.ec.account(r.plan, "aggregation"), 0); err != nil {
			return nil, err
		}
	}
	columns, err := r.g.statesOfRows(in)
	if err != nil {
		return nil, err
	}
	r.firsts = resize(r.firsts, in.Rows)
	for i := range r.firsts {
		r.firsts[i] = number + int64(i)
	}
	return takeBatch(r.schema, columns, int64(in.Rows)), nil
}

// nextRows is the keys and arguments of the next batch, to be released, and the number of
// its first row.
func (r *partialReader) nextRows(ctx context.Context) (*AggregateInput, int64, error) {
	if r.ended {
		return nil, 0, io.EOF
	}
	b, err := r.input.Next(ctx)
	if err != nil {
		r.ended = r.ended || isEnd(err)
		return nil, 0, err
	}
	defer b.Release()
	r.env.Begin(b)
	in, err := r.plan.Spec.Evaluate(r.env, b)
	return in, r.arrived.add(PositionOf(r.input), int(b.NumRows())), err
}

// advance reads until groups must be given away (flush) or the input ends (ended; what
// is left is then to be flushed too).
func (r *partialReader) advance(ctx context.Context) error {
	if r.g == nil {
		r.g = r.plan.Kept.take(r.ec, r.plan)
	}
	if r.g == nil {
		g, err := newGrouping(r.plan.Spec, r.ec, r.ec.account(r.plan, "aggregation"), 0)
		if err != nil {
			return err
		}
		r.g = g
	}
	for {
		b, err := r.input.Next(ctx)
		if isEnd(err) {
			n := r.g.groups() - r.g.idle
			r.ended, r.flush = true, n > 0
			r.plan.Kept.measured(r.rows, n)
			return nil
		}
		if err != nil {
			return err
		}
		r.env.Begin(b)
		r.rows += int(b.NumRows())
		err = r.g.update(r.env, b, r.arrived.add(PositionOf(r.input), int(b.NumRows())))
		b.Release()
		if err != nil {
			return err
		}
		if r.full() {
			r.flush = true
			return nil
		}
	}
}

// full says whether the groups so far should be given away.
func (r *partialReader) full() bool {
	return r.g.table != nil && r.g.groups() >= partialGroups
}

// nextGroups is some of the groups being flushed; nil when that is done.
func (r *partialReader) nextGroups() (arrow.RecordBatch, error) {
	if r.giving == nil {
		r.giving = r.g.met()
	}
	groups := r.giving[r.give:min(r.give+r.ec.PartRows(r.g.bytes(), len(r.giving)), len(r.giving))]
	if len(groups) == 0 {
		r.endFlush(len(r.giving))
		return nil, nil
	}
	r.give += len(groups)
	columns, err := r.g.states(groups)
	if err != nil {
		return nil, err
	}
	r.firsts = resize(r.firsts, len(groups))
	for i, g := range groups {
		r.firsts[i] = r.g.first[g]
	}
	return takeBatch(r.schema, columns, int64(len(groups))), nil
}

// endFlush goes on after so many groups were given away.
func (r *partialReader) endFlush(groups int) {
	r.given = max(r.given, groups)
	switch {
	case r.ended:
		r.plan.Kept.give(r.g, r.given, true)
		r.g = nil
	case groups*minReduction > r.rows:
		r.aside = true
		r.g.release()
		r.g = nil
	default:
		r.g.reset()
	}
	r.flush, r.giving, r.give, r.rows = false, nil, 0, 0
}

func (r *partialReader) Close() error {
	if r.g != nil {
		r.plan.Kept.give(r.g, max(r.given, r.g.groups()), false)
		r.g = nil
	}
	r.ended, r.flush = true, false
	return r.input.Close()
}
