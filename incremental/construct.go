package incremental

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/logical/connector"
)

// wanted says for what a step may run a batch.
type wanted uint8

const (
	dataOrEviction wanted = iota
	dataOnly
)

// maxWithdrawals is how many times in a row a batch is planned anew because its
// inputs changed under it.
const maxWithdrawals = 3

// step constructs the next batch and runs it; ran is false if there was nothing to
// do. A batch whose inputs changed before it was visible is withdrawn and planned
// again here.
func (x *streamExecution) step(ctx context.Context, want wanted) (ran bool, err error) {
	for {
		data, wanted, err := x.find(ctx, want)
		if err != nil || !wanted {
			return false, x.inBatch(err)
		}
		err = x.runPlanned(ctx, data)
		var changed *connector.FileChangedError
		if !errors.As(err, &changed) {
			return err == nil, err
		}
		if err := x.withdraw(ctx, changed); err != nil {
			return false, err
		}
	}
}

// find says whether there is data for the next batch, and whether a batch is wanted.
func (x *streamExecution) find(ctx context.Context, want wanted) (data, batch bool, err error) {
	if x.begun != nil {
		x.exec.timings = x.begun.timings
		return true, true, x.begun.err
	}
	if data, err = x.findOffsets(ctx); err != nil {
		return false, false, err
	}
	x.watermarks.passIdle(x.cfg.Clock.Now().UnixMicro())
	evict := false
	if want == dataOrEviction {
		evict, err = x.wantsEvictionBatch(ctx)
	}
	return data, data || evict || x.rewriteOutput, err
}

// inBatch says that err happened in the batch under way.
func (x *streamExecution) inBatch(err error) error { return x.inBatchOf(x.currentBatchID, err) }

// inBatchOf says in which batch err happened.
func (x *streamExecution) inBatchOf(batch int64, err error) error {
	var known *BatchError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &BatchError{Query: x.cfg.Name, Batch: batch, Err: err}
}

// findOffsets asks each source for the end of the next batch: availableOffsets. What
// the batch will read is durable in the sources' logs when it returns.
func (x *streamExecution) findOffsets(ctx context.Context) (newData bool, err error) {
	start := time.Now()
	for _, s := range x.sources {
		x.q.setStatus("Getting offsets from "+describe(s.source, s.name), false, true)
		end, err := s.source.LatestOffset(ctx, s.committed, s.limit)
		if err != nil {
			return false, err
		}
		s.available = end
		newData = newData || end != s.committed
	}
	took := time.Since(start)
	x.exec.timings = timings{latestOffset: took, early: took}
	return newData, nil
}

// wantsEvictionBatch says whether the watermark has moved past state, or a timer is due,
// so that a batch without data would evict or fire it.
func (x *streamExecution) wantsEvictionBatch(ctx context.Context) (bool, error) {
	if x.last == nil {
		return false, nil
	}
	if due, err := x.exec.timersDue(ctx, x.last, x.cfg.Clock.Now().UnixMicro()); due || err != nil {
		return due, err
	}
	if x.watermarks.evict == nil || !x.exec.evicts() {
		return false, nil
	}
	used := x.last.Offsets.EvictionWatermark
	return used == nil || *used < *x.watermarks.evict, nil
}

// runPlanned logs the offsets found and runs the batch: steps 1 to 6.
func (x *streamExecution) runPlanned(ctx context.Context, data bool) error {
	if data {
		x.q.setStatus("Writing offsets to log", true, true)
	} else {
		x.q.setStatus("No new data but cleaning up state", false, true)
	}
	var entry *checkpoint.OffsetEntry
	if x.begun != nil {
		entry = x.begun.entry
	} else {
		var err error
		if entry, err = x.intent(ctx); err != nil {
			return x.inBatch(err)
		}
	}
	start := time.Now()
	if err := x.writeHeld(); err != nil { // before they are named
		return x.inBatch(err)
	}
	if err := x.dir.Offsets().Add(entry.Batch, *entry); err != nil {
		return x.inBatch(err)
	}
	x.exec.timings.walCommit = time.Since(start)
	// If the process dies here, the next one runs this batch with these values.
	for i, s := range x.sources {
		s.log.SetNamed(entry.Sources[i].LastEntry)
	}
	return x.inBatch(x.runBatch(ctx, entry, publishRows))
}

// intent is the offsets entry of the next batch: everything that, with the state,
// determines its rows.
func (x *streamExecution) intent(ctx context.Context) (*checkpoint.OffsetEntry, error) {
	id := x.dir.Metadata().ID
	entry := &checkpoint.OffsetEntry{
		Batch: x.currentBatchID, Query: id,
		Time:          x.cfg.Clock.Now().UnixMicro(),
		Seed:          xxh3.HashStringSeed(id, uint64(x.currentBatchID)),
		LateWatermark: x.watermarks.late, EvictionWatermark: x.watermarks.evict,
		Maxima:        x.watermarks.maxima,
		SchemaVersion: 1, Plan: x.exec.plan.Fingerprint(), Settings: x.cfg.Settings,
	}
	for _, s := range x.sources {
		latest, err := s.log.Latest()
		if err != nil {
			return nil, err
		}
		entry.Sources = append(entry.Sources, checkpoint.SourceRange{
			Name: s.name, Start: s.committed, End: s.available, LastEntry: latest,
		})
	}
	tables, err := x.exec.tableFiles(ctx)
	entry.Tables = tables
	return entry, err
}

// withdraw forgets a batch that was logged and never visible, so that it can be
// planned again with the inputs as they are now.
func (x *streamExecution) withdraw(ctx context.Context, changed *connector.FileChangedError) error {
	x.withdrawals++
	if x.withdrawals > maxWithdrawals {
		return x.inBatch(fmt.Errorf("%w %d times in a row; set min_file_age so that files are read only once they are finished", changed, x.withdrawals))
	}
	x.cfg.Listener.warn(fmt.Sprintf("%v; batch %d is planned again", changed, x.currentBatchID))
	if err := x.dir.WithdrawBatch(x.currentBatchID); err != nil {
		return x.inBatch(err)
	}
	for _, s := range x.sources {
		s.log.SetNamed(x.named(s))
		if s.available == s.committed {
			continue
		}
		if err := s.source.Withdraw(ctx, s.committed, s.available); err != nil {
			return x.inBatch(err)
		}
	}
	return nil
}

// named is the newest entry of a source's log that the last commit names.
func (x *streamExecution) named(s *sourceState) int64 {
	for i, o := range x.sources {
		if o == s && x.last != nil {
			return x.last.Offsets.NamedEntry(i)
		}
	}
	return checkpoint.NoBatch
}

// describe is how progress names a source or sink.
func describe(v any, name string) string {
	if d, ok := v.(connector.Describer); ok {
		return d.Description()
	}
	return name
}
