package incremental

import (
	"context"
	"errors"
	"maps"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/incremental/stateful"
	"github.com/tidemill/tidemill/logical/connector"
)

// A batch may set out even while the one before it still stages and saves: as soon as the
// last row of that one was handed to the sink, its workers are free. What the next batch
// must not see yet it waits for (stateful.Instance.Enter), what must not be on disk yet is
// held in memory (checkpoint.SourceLog.Hold). If the batch before fails, the loop is set
// back to where it stood.

// place is where the loop stands: its variables between two batches.
type place struct {
	batch       int64
	withdrawals int
	rewrite     bool
	marks       watermarks
	sources     []sourceOffsets
}

type sourceOffsets struct{ committed, available, before connector.Offset }

func (x *streamExecution) place() *place {
	p := &place{batch: x.currentBatchID, withdrawals: x.withdrawals, rewrite: x.rewriteOutput, marks: *x.watermarks}
	p.marks.seen = maps.Clone(x.watermarks.seen)
	for _, s := range x.sources {
		p.sources = append(p.sources, sourceOffsets{s.committed, s.available, s.before})
	}
	return p
}

// setOutBeside begins the next batch while b, whose rows are all read, is still being
// staged and its state saved. Rows that b keeps aside need their memory until it is staged.
func (x *streamExecution) setOutBeside(ctx context.Context, entry *checkpoint.OffsetEntry, b *batchResult) {
	if !x.maySetOut() || x.cfg.KeepLate || x.cfg.KeepBad {
		return
	}
	for _, op := range x.exec.operators {
		if !op.MayWait() {
			return
		}
	}
	x.beside, b.before, b.sources = true, x.place(), x.sourceMetrics()
	for _, s := range x.sources {
		s.log.Hold()
	}
	b.endEventTimes(x.watermarks, entry)
	x.advance(entry, b.ends)
	b.ahead = x.setOut(ctx, x.exec.openLater)
}

// turnBack undoes setOutBeside: b has failed. What the sources hold for the next batch they
// go on holding; it is adopted when that batch is planned again.
func (x *streamExecution) turnBack(b *batchResult) {
	if b.before == nil {
		return
	}
	x.forgetBegun()
	p := b.before
	x.currentBatchID, x.withdrawals, x.rewriteOutput, *x.watermarks = p.batch, p.withdrawals, p.rewrite, p.marks
	for i, o := range p.sources {
		s := x.sources[i]
		s.committed, s.available, s.before = o.committed, o.available, o.before
	}
}

// letIn gives the batch that set out beside the last one the state that one left, and
// makes durable what its sources have noted.
func (x *streamExecution) letIn(ctx context.Context) {
	if b := x.begun; b != nil && b.run != nil && x.enterStates(ctx, b.run) != nil {
		b.run.release() // it is planned in its turn
		b.run = nil
	}
	if err := x.writeHeld(); err != nil {
		x.forgetBegun()
		x.begun = &begunBatch{err: err}
	}
}

func (x *streamExecution) enterStates(ctx context.Context, run *batchRun) error {
	for _, s := range run.states {
		if err := s.Enter(ctx, x.exec.provider, x.last); err != nil {
			return err
		}
	}
	return nil
}

func (x *streamExecution) writeHeld() error {
	for _, s := range x.sources {
		if err := s.log.WriteHeld(); err != nil {
			return err
		}
	}
	return nil
}

// openLater opens the states as the batch that is being saved will leave them.
func (x *incrementalExecution) openLater(_ context.Context, _ *checkpoint.CommitEntry, marks func(*stateful.Operator) stateful.Watermarks) ([]*stateful.Instance, error) {
	var states []*stateful.Instance
	for _, op := range x.operators {
		inst := op.OpenLater(x.provider, marks(op))
		if inst == nil {
			return nil, errors.New("bug: the state of " + op.Name() + " is not in memory")
		}
		states = append(states, inst)
	}
	return states, nil
}
