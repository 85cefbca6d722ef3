package stateful

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/physical"
)

// MayWait says whether a batch of the operator may set out before the version of the state
// it starts from is there: it touches the state only after the first of its input has come.
func (o *Operator) MayWait() bool {
	a, ok := o.node.(*logical.Aggregate)
	if !ok {
		return false
	}
	_, session := sessionOf(a)
	return !session
}

// OpenLater is Open for a batch that sets out while the batch before it saves its state:
// nobody reads beyond the gate until Enter. It is nil if no state is live.
func (o *Operator) OpenLater(p *state.Provider, w Watermarks) *Instance {
	store := p.Live(o.name)
	if store == nil {
		return nil
	}
	return &Instance{op: o, store: store, watermarks: w, gate: make(chan struct{})}
}

// Enter lets the batch use the state that last names. It fails if that is not the one the
// instance was opened with.
func (i *Instance) Enter(ctx context.Context, p *state.Provider, last *checkpoint.CommitEntry) error {
	files, _ := last.StateOf(i.op.name)
	store, err := p.Open(ctx, i.op.spec, files)
	if err != nil {
		return err
	}
	if store != i.store {
		return state.ErrPoisoned
	}
	close(i.gate)
	return nil
}

// behindGate are inputs of the operator whose first rows wait for Enter; what is below them
// works before.
func (i *Instance) behindGate(inputs []columnar.Reader) []columnar.Reader {
	if i.gate == nil {
		return inputs
	}
	out := make([]columnar.Reader, len(inputs))
	for n, in := range inputs {
		out[n] = &gatedReader{Reader: in, gate: i.gate}
	}
	return out
}

type gatedReader struct {
	columnar.Reader
	gate   <-chan struct{}
	passed bool
}

func (r *gatedReader) Position() int64 { return physical.PositionOf(r.Reader) }

func (r *gatedReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := r.Reader.Next(ctx)
	if r.passed {
		return b, err
	}
	select {
	case <-r.gate:
		r.passed = true
		return b, err
	case <-ctx.Done():
		if b != nil {
			b.Release()
		}
		return nil, context.Cause(ctx)
	}
}
