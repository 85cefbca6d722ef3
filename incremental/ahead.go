package incremental

import (
	"context"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// begunBatch is the next batch, begun while the one before it is being prepared, published
// and committed: its sources have been asked, and its operators compute. What it does to
// the state is in memory only, and its first durable step, offsets/N, comes in its own
// turn, after the commit of the one before. If the process dies, or stops, its source
// entries are adopted by the batch that is planned then.
type begunBatch struct {
	entry   *checkpoint.OffsetEntry
	run     *batchRun // nil: it is planned in its turn
	timings timings
	err     error // why there is no entry; it is the batch's
}

// maySetOut says whether the next batch is to be begun early: the trigger lets it follow
// at once, and a source knows of something to read. Files that are cleaned away would be
// taken for new ones too early.
func (x *streamExecution) maySetOut() bool {
	if !x.eager || x.alone || x.stopping() {
		return false
	}
	waiting := false
	for i, s := range x.sources {
		w, ok := s.source.(connector.Waiter)
		waiting = waiting || ok && w.Waiting()
		if clean := x.exec.streams[i].Decl.Options["clean_source"]; clean != "" && !strings.EqualFold(clean, "off") {
			return false
		}
	}
	return waiting
}

// setOut begins the next batch, if there is data for it, and says how long that took. The
// loop's variables are those of the next batch already.
func (x *streamExecution) setOut(ctx context.Context, open stateOpener) time.Duration {
	if !x.maySetOut() {
		return 0
	}
	start, before := time.Now(), x.exec.timings
	defer x.q.setStatus("Processing new data", true, true) // of the batch that is not visible yet
	b := &begunBatch{}
	data, err := x.findOffsets(ctx)
	if err == nil && data {
		x.watermarks.passIdle(x.cfg.Clock.Now().UnixMicro())
		b.entry, err = x.intent(ctx)
	}
	b.err = err
	if err == nil && data {
		// What fails here is met again in the batch's turn, where it is tried again, or
		// withdrawn if its inputs changed.
		if run, err := x.planBatch(ctx, b.entry, open); err == nil {
			run.reader = newAheadReader(ctx, run.reader)
			b.run = run
		}
	}
	took := time.Since(start)
	b.timings, x.exec.timings = x.exec.timings, before
	b.timings.early = took
	if data || err != nil {
		x.begun = b
	}
	return took
}

// forgetBegun gives up the batch that was begun, if there is one.
func (x *streamExecution) forgetBegun() {
	if x.begun == nil {
		return
	}
	if x.begun.run != nil {
		x.begun.run.release()
		x.exec.abort()
	}
	x.begun = nil
}

// aheadReader reads the first batch of rows before it is asked for, which makes the
// operators below it work.
type aheadReader struct {
	columnar.Reader
	cancel context.CancelFunc
	read   chan struct{} // closed once first and err are there
	first  arrow.RecordBatch
	err    error
	taken  bool
}

func newAheadReader(ctx context.Context, in columnar.Reader) *aheadReader {
	ctx, cancel := context.WithCancel(ctx)
	r := &aheadReader{Reader: in, cancel: cancel, read: make(chan struct{})}
	columnar.Go(func() (err error) {
		r.first, err = in.Next(ctx)
		return err
	}, func(err error) {
		r.err = err
		close(r.read)
	})
	return r
}

// Next implements columnar.Reader.
func (r *aheadReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.taken {
		return r.Reader.Next(ctx)
	}
	select {
	case <-r.read:
		r.taken = true
		return r.first, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close implements columnar.Reader.
func (r *aheadReader) Close() error {
	r.cancel()
	<-r.read
	if !r.taken {
		r.taken = true
		if r.first != nil {
			r.first.Release()
		}
	}
	return r.Reader.Close()
}
