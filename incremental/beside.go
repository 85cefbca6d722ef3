package incremental

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental/stateful"
	"github.com/tidemill/tidemill/logical/connector"
)

// A batch may set out even while the one before it still computes: as soon as nothing is
// left to be read of that one, its workers run out of work. What the next batch must not
// see yet it waits for (stateful.Instance.Enter), what must not be on disk yet is held in
// memory (checkpoint.SourceLog.Hold). If the batch before fails, the loop is set back to
// where it stood.

// inputEnd tells when a batch has no more use for what the next one is made of: its sources
// have handed out the last of their units, and its watermarks have seen all rows.
type inputEnd struct {
	left atomic.Int64
	come chan struct{} // closed when nothing is left; nil: that is never known
}

// await adds one more thing to wait for while the batch is planned. What it returns says
// that this has happened, and may do so often.
func (e *inputEnd) await() func() {
	if e.come == nil {
		e.come = make(chan struct{})
	}
	e.left.Add(1)
	return sync.OnceFunc(func() {
		if e.left.Add(-1) == 0 {
			close(e.come)
		}
	})
}

// beside is the goroutine that begins the next batch while the loop's stages one. It alone
// touches the loop's variables and the sources until wait or giveUp has returned.
type beside struct {
	read chan struct{} // closed by allRead: the rows were read to their end
	stop chan struct{} // closed by giveUp
	done chan struct{} // nil: no batch may set out; closed when the goroutine has ended
	err  error
}

// besides lets the next batch set out beside b as soon as b's input has come to its end.
// Rows that b keeps aside need their memory until it is staged.
func (x *streamExecution) besides(ctx context.Context, entry *checkpoint.OffsetEntry, why purpose, b *batchResult) *beside {
	s := &beside{read: make(chan struct{}), stop: make(chan struct{})}
	if why != publishRows || !x.eager || x.alone || x.cfg.KeepLate || x.cfg.KeepBad {
		return s
	}
	for _, op := range x.exec.operators {
		if !op.MayWait() {
			return s
		}
	}
	s.done = make(chan struct{})
	columnar.Go(func() error {
		for _, ready := range []chan struct{}{b.run.input.come, s.read} {
			select {
			case <-ready:
			case <-s.read:
			case <-s.stop:
				return nil
			}
			if x.maySetOut() {
				x.setOutBeside(ctx, entry, b)
				return nil
			}
		}
		return nil
	}, func(err error) {
		s.err = err
		close(s.done)
	})
	return s
}

// allRead says that the sink has read the last row.
func (s *beside) allRead() { close(s.read) }

// wait returns once the next batch has set out, if it may, and nothing else touches the
// loop's variables. All rows were read, or the batch has failed.
func (s *beside) wait() error {
	if s.done == nil {
		return nil
	}
	select {
	case <-s.read:
	default:
		s.giveUp()
	}
	<-s.done
	return s.err
}

// giveUp lets nothing set out that has not yet, and waits for what does. It may follow wait.
func (s *beside) giveUp() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	if s.done != nil {
		<-s.done
	}
}

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

// setOutBeside begins the next batch beside b.
func (x *streamExecution) setOutBeside(ctx context.Context, entry *checkpoint.OffsetEntry, b *batchResult) {
	x.beside, b.before, b.sources = true, x.place(), x.sourceMetrics()
	for _, s := range x.sources {
		s.log.Hold()
	}
	b.endEventTimes(x.watermarks, entry)
	x.advance(entry, b.ends)
	x.setOut(ctx, x.exec.openLater)
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
