package incremental

import (
	"context"
	"errors"
	"time"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// streamExecution is the state of the loop. It belongs to one goroutine.
type streamExecution struct {
	cfg Config
	q   *Query
	dir *checkpoint.Dir

	sink    connector.Sink
	sources []*sourceState
	exec    *incrementalExecution

	currentBatchID int64
	last           *checkpoint.CommitEntry // of the batch before; nil before batch 0
	watermarks     *watermarks
	rewriteOutput  bool // the sink lost a table that each batch replaces
	withdrawals    int  // how often in a row a batch was planned anew
	lastStart      time.Time
	growth         *growthWatch
	eager          bool          // the next batch may follow at once
	alone          bool          // but not overlap: there is no memory for two
	beside         bool          // the batch under way overlapped with another
	begun          *begunBatch   // nil: it has not set out
	wake           chan struct{} // has one while a source may have something new
}

// sourceState is one source of the query. Its committed offset is the end of the last
// committed batch; availableOffset the end of the batch under way.
type sourceState struct {
	name   string
	source connector.Source
	log    *checkpoint.SourceLog
	limit  connector.Limit

	committed connector.Offset // committedOffsets
	available connector.Offset // availableOffsets
	// before is the end of the batch before the last: what the source may discard.
	before connector.Offset
}

// guarded is f in a goroutine of the query: a panic is a bug of ours unless it says what
// of a user's it is of.
func guarded(f func() error) error { return columnar.Guard("", f) }

// guardedLoop is loop as the query's goroutine runs it.
func (x *streamExecution) guardedLoop(ctx context.Context) error {
	err := guarded(func() error { return x.loop(ctx) })
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		x.rememberError(err)
	}
	return err
}

// rememberError leaves the error where the status command finds it; a checkpoint that
// cannot be written to keeps the error it is.
func (x *streamExecution) rememberError(err error) {
	batch := x.currentBatchID
	var in *BatchError
	if errors.As(err, &in) {
		batch = in.Batch
	}
	_ = x.dir.SetLastError(checkpoint.LastError{
		Time: x.cfg.Clock.Now().UnixMicro(), Batch: batch, Message: err.Error(),
	})
}

// loop runs batches by the trigger until there is nothing left or the query is
// stopped.
func (x *streamExecution) loop(ctx context.Context) error {
	if err := x.recover(ctx); err != nil {
		return err
	}
	switch x.cfg.Trigger.Kind {
	case Once:
		return x.runOnce(ctx)
	case AvailableNow:
		return x.runAvailable(ctx)
	}
	return x.runForever(ctx)
}

// runOnce runs a pending eviction batch, if there is one, then one batch over all
// that is there.
func (x *streamExecution) runOnce(ctx context.Context) error {
	for _, s := range x.sources {
		s.limit = connector.Limit{}
		if _, err := s.source.Target(ctx); err != nil { // all that is there, or nothing
			return err
		}
	}
	evict, err := x.wantsEvictionBatch(ctx)
	if err != nil {
		return x.inBatch(err)
	}
	if evict {
		for _, s := range x.sources {
			s.available = s.committed
		}
		if err := x.runPlanned(ctx, false); err != nil {
			return err
		}
	}
	_, err = x.step(ctx, dataOnly)
	return err
}

// runAvailable fixes what is there now and runs it, as many batches as the limits ask
// for, then the closing batch.
func (x *streamExecution) runAvailable(ctx context.Context) error {
	for _, s := range x.sources {
		target, err := s.source.Target(ctx)
		if err != nil {
			return err
		}
		s.limit.Until = target
	}
	x.eager = true
	for {
		ran, err := x.step(ctx, dataOrEviction)
		if err != nil || !ran {
			return err
		}
		if x.stopping() {
			return errStopped
		}
	}
}

// runForever runs batches until the query is stopped.
func (x *streamExecution) runForever(ctx context.Context) error {
	if x.cfg.Trigger.Kind == Default {
		x.listen()
		x.eager = true
	}
	for {
		start := x.cfg.Clock.Now()
		ran, err := x.step(ctx, dataOrEviction)
		if err != nil {
			return err
		}
		if !ran {
			x.q.setStatus("Waiting for data to arrive", false, false)
			x.q.idle()
		}
		if err := x.pause(ctx, start, ran); err != nil {
			return err
		}
	}
}

// listen lets sources end a pause that waits for data.
func (x *streamExecution) listen() {
	x.wake = make(chan struct{}, 1)
	for _, s := range x.sources {
		if n, ok := s.source.(connector.Notifier); ok {
			n.Notify(func() {
				select {
				case x.wake <- struct{}{}:
				default:
				}
			})
		}
	}
}

// pause waits for the next trigger, or for the next look at idle sources: sooner if one
// of them may have something new.
func (x *streamExecution) pause(ctx context.Context, start time.Time, ran bool) error {
	wait := x.cfg.Trigger.next(start).Sub(x.cfg.Clock.Now())
	if !ran && wait < x.cfg.Poll && x.cfg.Trigger.Kind == Default {
		wait = x.cfg.Poll
	}
	if wait <= 0 {
		if x.stopping() {
			return errStopped
		}
		return ctx.Err()
	}
	sleeping, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-x.q.stop:
			cancel()
		case <-x.wake:
			cancel()
		case <-sleeping.Done():
		}
	}()
	err := x.cfg.Clock.Sleep(sleeping, wait)
	switch {
	case x.stopping():
		return errStopped
	case ctx.Err() != nil:
		return ctx.Err()
	case sleeping.Err() != nil:
		return nil // woken
	}
	return err
}

func (x *streamExecution) stopping() bool {
	select {
	case <-x.q.stop:
		return true
	default:
		return false
	}
}

// close gives everything back.
func (x *streamExecution) close() error {
	var errs []error
	x.forgetBegun()
	if x.exec != nil {
		errs = append(errs, x.exec.close())
	}
	for _, s := range x.sources {
		errs = append(errs, s.source.Close())
	}
	if x.sink != nil {
		errs = append(errs, x.sink.Close())
	}
	if x.dir != nil {
		errs = append(errs, x.dir.Close())
	}
	return errors.Join(errs...)
}
