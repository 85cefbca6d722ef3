package incremental

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// open checks the query, locks and opens its checkpoint, binds and locks the output.
// Whatever refuses the query is found here, before anything runs.
func open(ctx context.Context, cfg Config) (*streamExecution, error) {
	x := &streamExecution{cfg: cfg, growth: newGrowthWatch()}
	if err := guarded(func() error { return x.open(ctx) }); err != nil {
		return nil, errors.Join(err, x.abandon(err))
	}
	return x, nil
}

func (x *streamExecution) open(ctx context.Context) (err error) {
	cfg := x.cfg
	if err := logical.Check(cfg.Plan, cfg.Mode); err != nil {
		return err
	}
	if x.exec, err = newIncrementalExecution(cfg, checkpoint.ReadsForm); err != nil {
		return err
	}
	if err := x.exec.checkConstants(); err != nil {
		return err
	}
	x.dir, err = checkpoint.Open(cfg.FS, cfg.Checkpoint, checkpoint.Options{
		Retain: cfg.Retain, FoldEvery: cfg.FoldEvery, ID: cfg.ID, Engine: cfg.Engine,
	})
	if err != nil {
		return err
	}
	notes, err := x.checkPlan()
	if err != nil {
		return err
	}
	committed, err := x.dir.Commits().IDs()
	if err != nil {
		return err
	}
	if len(committed) > 0 {
		for _, note := range notes {
			cfg.Listener.warn(note)
		}
	}
	x.exec.keepIn(x.dir)
	output := Output{QueryID: x.dir.Metadata().ID}
	if n := len(committed); n > 0 {
		output.Committed = committed[n-1] + 1
	}
	if x.sink, err = cfg.Sink(ctx, output); err != nil {
		return err
	}
	if err := checkSides(cfg, x.sink); err != nil {
		return err
	}
	x.watermarks, err = newWatermarks(x.exec.analyzed, cfg.Policy)
	return err
}

// checkPlan refuses a query that is not the checkpoint's, and says what of it changed. A
// checkpoint of the former form is judged by that form, and brought into the present one
// where its states are the same in both; else the query goes on in the former one. So does
// one whose plan.json is lost.
func (x *streamExecution) checkPlan() (notes []string, err error) {
	was, lost := x.dir.Plan()
	if lost == nil && !was.IsFormer() {
		if x.exec, err = x.exec.arranged(was); err != nil {
			return nil, err
		}
		return was.Notes(x.exec.plan), x.dir.CheckPlan(x.exec.plan)
	}
	if lost != nil {
		if err := x.dir.CheckPlan(x.exec.plan); !errors.Is(err, checkpoint.ErrCorrupt) {
			return nil, err
		}
	}
	former, err := newIncrementalExecution(x.cfg, checkpoint.FormerReads)
	if err != nil {
		return nil, err
	}
	if lost != nil || was.Check("", former.plan) != nil || was.Check("", x.exec.plan) != nil {
		x.exec = former
	}
	return was.Notes(former.plan), x.dir.CheckPlan(x.exec.plan)
}

// abandon closes what a start that failed with cause has opened. A checkpoint made by a
// start that was refused before the output knew of it goes, too: a refused run leaves
// nothing behind.
func (x *streamExecution) abandon(cause error) error {
	var refused *connector.RefusedError
	var option *connector.OptionError
	known := errors.As(cause, &refused) || errors.As(cause, &option) || errors.Is(cause, logical.ErrUnsupported)
	if x.dir == nil || x.sink != nil || !known {
		return x.close()
	}
	dir := x.dir
	x.dir = nil
	return errors.Join(x.close(), dir.Discard())
}

// checkSides refuses to keep rows where the sink has no place for them.
func checkSides(cfg Config, sink connector.Sink) error {
	if k, ok := sink.(connector.SideKeeper); ok && k.KeepsSides() {
		return nil
	}
	for key, wanted := range map[string]bool{"late_rows": cfg.KeepLate, "bad_rows": cfg.KeepBad} {
		if wanted {
			return &connector.OptionError{Key: key, Value: "keep", HasValue: true,
				Reason: "the sink has no place beside its output; use one of files, or leave it out: the rows are counted in progress"}
		}
	}
	return nil
}

// recover brings the query to where the last run left it: what was published is
// rolled forward, what was only planned is run, or withdrawn if its inputs changed.
func (x *streamExecution) recover(ctx context.Context) error {
	staged, err := x.sink.Recover(ctx)
	if err != nil {
		return err
	}
	if staged != nil {
		if err := staged.Publish(ctx); err != nil {
			return err
		}
	}
	for {
		r, err := x.nextRecovery(ctx)
		if err != nil {
			return err
		}
		for _, note := range r.Notes {
			x.cfg.Listener.warn(note)
		}
		if err := x.resume(ctx, r); err != nil {
			return err
		}
		if r.Action == checkpoint.PlanBatch {
			x.rewriteOutput = r.RewriteOutput
			if w, ok := x.sink.(connector.Rewriter); ok && w.NeedsRewrite() {
				x.rewriteOutput = x.last != nil
			}
			return nil
		}
		if err := x.carryOut(ctx, r); err != nil {
			return x.inBatch(err)
		}
	}
}

func (x *streamExecution) nextRecovery(ctx context.Context) (checkpoint.Recovery, error) {
	last, known, err := x.sink.LastBatch(ctx)
	if err != nil {
		return checkpoint.Recovery{}, err
	}
	return x.dir.Recover(checkpoint.SinkState{
		Last: last, Known: known, Replaces: x.cfg.Mode == connector.Complete, Name: x.cfg.SinkName,
	})
}

// carryOut finishes the batch an earlier run left open.
func (x *streamExecution) carryOut(ctx context.Context, r checkpoint.Recovery) error {
	switch r.Action {
	case checkpoint.RollForward:
		if err := x.dir.Commit(r.Batch); err != nil {
			return err
		}
		x.advance(r.Entry, eventTimeEnds{maxima: r.Prepared.Maxima, next: r.Prepared.NextWatermark})
		x.last = r.Prepared
		return x.giveBack(ctx)
	case checkpoint.Rebuild:
		return x.runBatch(ctx, r.Entry, dropRows)
	case checkpoint.RunBatch:
		err := x.runBatch(ctx, r.Entry, publishRows)
		var changed *connector.FileChangedError
		if errors.As(err, &changed) {
			return x.withdraw(ctx, changed)
		}
		return err
	}
	return fmt.Errorf("bug: recovery action %s", r.Action)
}

// resume sets the variables of the loop to where r starts, and opens the sources the
// first time.
func (x *streamExecution) resume(ctx context.Context, r checkpoint.Recovery) error {
	x.currentBatchID = r.Batch
	x.last = r.Last
	if r.Last != nil {
		x.watermarks.restore(r.Last.Maxima, r.Last.Seen, r.Last.Offsets.EvictionWatermark, r.Last.NextWatermark)
	} else {
		x.watermarks.restore(nil, nil, nil, nil)
	}
	if x.sources == nil {
		if err := x.openSources(ctx, r); err != nil {
			return err
		}
	}
	for i, s := range x.sources {
		s.committed, s.before = "", ""
		if r.Last != nil {
			s.committed = r.Last.Offsets.Sources[i].End
			s.before = r.Last.Offsets.Sources[i].Start
		}
		s.available = s.committed
		if r.Entry != nil {
			s.available = r.Entry.Sources[i].End
		}
	}
	return nil
}

// openSources opens every stream of the plan once, with its durable memory.
func (x *streamExecution) openSources(ctx context.Context, r checkpoint.Recovery) error {
	for i, stream := range x.exec.streams {
		log, err := x.dir.SourceLog(i, r.NamedEntry(i))
		if err != nil {
			return err
		}
		source, err := stream.Open(ctx, log)
		if err != nil {
			return err
		}
		s := &sourceState{name: stream.Name, source: source, log: log}
		if l, ok := source.(connector.Limiter); ok {
			s.limit = l.Limit()
		}
		x.sources = append(x.sources, s)
	}
	return nil
}
