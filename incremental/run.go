package incremental

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// purpose says what becomes of a batch's rows.
type purpose uint8

const (
	publishRows purpose = iota
	// dropRows runs a batch again for its state alone: it is visible already.
	dropRows
)

// maxAttempts is how often a batch that fails on I/O before anything is visible is
// tried.
const maxAttempts = 4

// runBatch runs a logged batch: steps 2 to 6 of the protocol in package checkpoint.
func (x *streamExecution) runBatch(ctx context.Context, entry *checkpoint.OffsetEntry, why purpose) error {
	x.q.setStatus("Processing new data", true, true)
	triggered := x.cfg.Clock.Now()
	start := time.Now()
	b, err := x.attemptBatch(ctx, entry, why)
	if err != nil {
		return err
	}
	prepared := b.commitEntry(x, entry)
	b.operators = b.run.stateProgress()
	b.release() // what it kept of rows is staged; the next batch needs the memory
	if b.before != nil {
		x.last = &prepared
		x.letIn(ctx)
	} else {
		b.sources = x.sourceMetrics()
		x.advance(entry, b.ends)
		x.last = &prepared
		b.ahead = x.setOut(ctx, x.exec.openStates)
	}
	if err := x.finishBatch(ctx, entry, &prepared, b); err != nil {
		x.forgetBegun()
		return x.inBatchOf(entry.Batch, err)
	}
	x.exec.timings.total = time.Since(start) - b.ahead + x.exec.timings.early + x.exec.timings.walCommit
	x.reportProgress(entry, &prepared, b, triggered)
	return nil
}

// finishBatch makes visible what was staged: the end of step 3 to step 6.
func (x *streamExecution) finishBatch(ctx context.Context, entry *checkpoint.OffsetEntry, prepared *checkpoint.CommitEntry, b *batchResult) error {
	if err := x.dir.Prepare(prepared); err != nil {
		return columnar.JoinErrors(err, b.discard())
	}
	// If the process dies here, the batch is run again and overwrites what it left.
	if b.staged != nil {
		if err := b.staged.Publish(ctx); err != nil {
			// What was decided stays: Discard knows.
			return columnar.JoinErrors(err, b.discard())
		}
	}
	// If the process dies here, the sink says it holds the batch: rolled forward.
	commitStart := time.Now()
	if err := x.dir.Commit(entry.Batch); err != nil {
		return err
	}
	x.exec.timings.commitOffsets = time.Since(commitStart)
	x.exec.committed(entry.Batch)
	return x.giveBack(ctx)
}

// advance sets the loop's variables, but for last, to the next batch. If the one before
// cannot be finished after all, the query ends, and the next start takes them from the
// checkpoint; if it is run once more, they are restored.
func (x *streamExecution) advance(entry *checkpoint.OffsetEntry, ends eventTimeEnds) {
	x.currentBatchID = entry.Batch + 1
	x.withdrawals = 0
	x.rewriteOutput = false
	x.watermarks.advance(ends.maxima, ends.next)
	for i, s := range x.sources {
		s.before = entry.Sources[i].Start
		s.committed = entry.Sources[i].End
	}
}

// giveBack is step 6.
func (x *streamExecution) giveBack(ctx context.Context) error {
	for _, s := range x.sources {
		// One batch behind: the newest batch can always be looked at, and replayed.
		if s.before != "" {
			if err := s.source.Commit(ctx, s.before); err != nil {
				return err
			}
		}
		if err := s.log.Compact(); err != nil {
			return err
		}
	}
	return x.exec.maintain(ctx, x.dir)
}

// batchResult is a batch that has run and is durable, but not visible.
type batchResult struct {
	run    *batchRun
	staged connector.Staged // nil where rows were dropped
	rows   int64
	inputs batchInputs
	state  []checkpoint.OperatorState
	ends   eventTimeEnds
	// What the progress report says of operators and sources, taken before the next batch
	// changes it.
	operators []StateOperatorProgress
	sources   []map[string]string
	// before is where the loop stood when the next batch set out beside this one; nil if
	// none did.
	before *place
	// ahead is how long the loop was busy with a next batch that set out after this one.
	ahead time.Duration
}

// eventTimeEnds is what a batch leaves to the watermark.
type eventTimeEnds struct {
	maxima, seen map[string]int64
	next         *int64
}

// endEventTimes moves the watermark by what the batch has seen, once it has read all.
func (b *batchResult) endEventTimes(w *watermarks, entry *checkpoint.OffsetEntry) {
	b.ends.maxima, b.ends.next = w.after(b.run.eventTimes.seen(), entry.Time)
	b.ends.seen = w.lastSeen()
}

func (b *batchResult) discard() error {
	if b.staged == nil {
		return nil
	}
	return b.staged.Discard()
}

func (b *batchResult) release() { b.run.release() }

// attemptBatch runs a batch until it is staged and its state written. Failures of
// I/O are tried again, as long as nothing is visible, up to maxAttempts.
func (x *streamExecution) attemptBatch(ctx context.Context, entry *checkpoint.OffsetEntry, why purpose) (*batchResult, error) {
	for attempt := 1; ; attempt++ {
		x.beside = x.begun != nil
		b, err := x.tryBatch(ctx, entry, why)
		if err == nil {
			return b, nil
		}
		x.exec.abort()
		if x.beside && !x.alone && errors.Is(err, columnar.ErrMemory) {
			x.alone = true // by itself it may have enough
			attempt--
			continue
		}
		if attempt == maxAttempts || !isTransient(err) || ctx.Err() != nil {
			return nil, err
		}
		x.cfg.Listener.warn(fmt.Sprintf("batch %d failed and is tried again (%d of %d): %v", entry.Batch, attempt, maxAttempts-1, err))
	}
}

// isTransient says whether trying again may help: an error of the device or the
// network, not of the data, the disk's fullness or permissions.
func isTransient(err error) bool {
	for _, lasting := range []error{fs.ErrNotExist, fs.ErrPermission, fs.ErrExist, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	for _, passing := range []error{syscall.EIO, syscall.EINTR, syscall.EAGAIN, syscall.ESTALE, syscall.ETIMEDOUT, syscall.ECONNRESET} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// tryBatch plans the batch over its offset ranges, stages its rows and writes its
// state.
func (x *streamExecution) tryBatch(ctx context.Context, entry *checkpoint.OffsetEntry, why purpose) (*batchResult, error) {
	b := &batchResult{}
	err := guarded(func() (err error) {
		b.run, err = x.takeBegun(ctx, entry)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := guarded(func() error { return x.stageBatch(ctx, entry, why, b) }); err != nil {
		b.run.release()
		x.turnBack(b)
		return nil, err
	}
	return b, nil
}

// stageBatch is tryBatch once the batch is planned.
func (x *streamExecution) stageBatch(ctx context.Context, entry *checkpoint.OffsetEntry, why purpose, b *batchResult) (err error) {
	run, start := b.run, time.Now()
	counted := &countingReader{Reader: run.reader}
	save := stateSave{run: run}
	defer save.end() // of a panic, too
	beside := x.besides(ctx, entry, why, b)
	defer beside.giveUp()
	counted.ended = func() {
		if save.start(ctx) {
			beside.allRead()
		}
	}
	if why == dropRows {
		err = drain(ctx, counted)
	} else {
		side := func() ([]connector.SideOutput, error) { return run.side(x, entry) }
		var in blame
		b.staged, err = x.sink.Stage(ctx, connector.SinkBatch{ID: entry.Batch, Mode: x.cfg.Mode, Data: in.watch(counted), Side: in.watchSides(side)})
		err = in.of(err)
	}
	err = columnar.JoinErrors(err, run.reader.Close())
	if err == nil {
		save.start(ctx) // unless the sink read to the end
	}
	b.state, err = save.wait(err)
	err = errors.Join(err, beside.wait())
	b.rows = counted.rows
	if err == nil {
		b.inputs, err = x.unchangedInputs(ctx, entry)
	}
	if err != nil {
		return columnar.JoinErrors(err, b.discard())
	}
	if b.before == nil {
		b.endEventTimes(x.watermarks, entry)
	}
	x.exec.timings.addBatch = time.Since(start)
	return nil
}

// takeBegun is the batch that was begun, or plans it now.
func (x *streamExecution) takeBegun(ctx context.Context, entry *checkpoint.OffsetEntry) (*batchRun, error) {
	if b := x.begun; b != nil {
		x.begun = nil
		if b.run != nil {
			return b.run, nil
		}
	}
	return x.planBatch(ctx, entry, x.exec.openStates)
}

func (x *streamExecution) planBatch(ctx context.Context, entry *checkpoint.OffsetEntry, open stateOpener) (*batchRun, error) {
	start := time.Now()
	run, err := x.exec.begin(ctx, x, entry, open)
	x.exec.timings.queryPlanning = time.Since(start)
	return run, err
}

// countingReader counts the rows that pass, and tells when there are no more.
type countingReader struct {
	columnar.Reader
	rows  int64
	ended func() // called once
}

func (r *countingReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := r.Reader.Next(ctx)
	if err == nil {
		r.rows += b.NumRows()
	}
	if errors.Is(err, io.EOF) && r.ended != nil {
		r.ended()
		r.ended = nil
	}
	return b, err
}

// stateSave writes the state of a batch beside what the sink does after it has read the
// last row: both are durable before prepared/N names them, in whatever order.
type stateSave struct {
	run   *batchRun
	done  chan struct{} // nil: not started
	files []checkpoint.OperatorState
	err   error
}

// start ends the operators, which may fail, and begins. The second time it does nothing.
func (s *stateSave) start(ctx context.Context) (ok bool) {
	if s.done != nil {
		return true
	}
	s.done = make(chan struct{})
	if s.err = s.run.reader.Close(); s.err != nil {
		close(s.done)
		return false
	}
	columnar.Go(func() (err error) {
		s.files, err = s.run.commitState(ctx)
		return err
	}, func(err error) {
		s.err = err
		close(s.done)
	})
	return true
}

// end returns when nothing is written any more.
func (s *stateSave) end() {
	if s.done != nil {
		<-s.done
	}
}

// wait returns the files once they are durable. err is what went wrong otherwise.
func (s *stateSave) wait(err error) ([]checkpoint.OperatorState, error) {
	if s.done == nil {
		return nil, err
	}
	<-s.done
	return s.files, errors.Join(err, s.err)
}

func drain(ctx context.Context, r columnar.Reader) error {
	for {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		b.Release()
	}
}

// unchangedInputs makes sure that what was read is what was logged, for streams and
// bounded tables alike, and returns the fingerprints of the stream files.
func (x *streamExecution) unchangedInputs(ctx context.Context, entry *checkpoint.OffsetEntry) (batchInputs, error) {
	inputs := batchInputs{most: x.cfg.NamedInputs}
	for i, s := range x.sources {
		files, ok := s.source.(connector.FileSet)
		if !ok || entry.Sources[i].Start == entry.Sources[i].End {
			continue
		}
		var part []connector.FileIdentity
		check := func() error {
			err := firstChanged(ctx, files, part)
			part = part[:0]
			return err
		}
		err := eachInput(ctx, files, entry.Sources[i], func(f connector.FileHash) error {
			inputs.add(s.name, f)
			if part = append(part, f.FileIdentity); len(part) < checkedFiles {
				return nil
			}
			return check()
		})
		if err == nil {
			err = check()
		}
		if err != nil {
			return batchInputs{}, err
		}
	}
	return inputs, x.exec.unchangedTables(ctx, entry)
}

// checkedFiles is how many files are compared with what was logged at a time: of a batch
// of a million no list is made.
const checkedFiles = 4096

// eachInput visits the files of a range, with the hashes taken while they were read.
func eachInput(ctx context.Context, files connector.FileSet, r checkpoint.SourceRange, visit func(f connector.FileHash) error) error {
	if h, ok := files.(connector.Hasher); ok {
		return h.EachHashed(ctx, r.Start, r.End, visit)
	}
	logged, err := files.Files(ctx, r.Start, r.End)
	for _, f := range logged {
		if err == nil {
			err = visit(connector.FileHash{FileIdentity: f})
		}
	}
	return err
}

func firstChanged(ctx context.Context, files connector.FileSet, logged []connector.FileIdentity) error {
	changed, err := files.Changed(ctx, logged)
	if err != nil || len(changed) == 0 {
		return err
	}
	return &connector.FileChangedError{Path: changed[0].Path, Was: changed[0]}
}

// commitEntry is what is written to prepared/N.
func (b *batchResult) commitEntry(x *streamExecution, entry *checkpoint.OffsetEntry) checkpoint.CommitEntry {
	c := checkpoint.CommitEntry{
		Batch: entry.Batch, Offsets: *entry, State: b.state,
		NextWatermark: b.ends.next, Maxima: b.ends.maxima, Seen: b.ends.seen, Inputs: b.inputs.files, ManyInputs: b.inputs.many,
		Counters: checkpoint.Counters{Out: b.rows, Late: b.run.lateRows()},
	}
	for i, s := range x.sources {
		stats := b.run.scans[s.name]
		end := checkpoint.SourceEnd{Name: s.name, End: entry.Sources[i].End}
		if stats != nil {
			end.Rows, end.Malformed = stats.Rows.Load(), stats.MalformedRows.Load()
		}
		c.Counters.In += end.Rows
		c.Counters.Malformed += end.Malformed
		c.Sources = append(c.Sources, end)
	}
	return c
}
