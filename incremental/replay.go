package incremental

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/uuid"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/physical"
)

// Replay runs logged batches again: the same execution as that of a Query, given the
// entries of the log instead of making them. It is meant for a checkpoint and an output
// on a vfs.Overlay, where checkpoint.Rewind hid the batches.
type Replay struct {
	x *streamExecution
}

// collectEvery is after how many batches a Replay removes old state files: they are in
// memory.
const collectEvery = 16

// OpenReplay opens a query where the batch after last begins, with the state that last
// names; nil is where batch 0 begins. A query that is not the checkpoint's is refused.
func OpenReplay(ctx context.Context, cfg Config, last *checkpoint.CommitEntry) (*Replay, error) {
	cfg = cfg.withDefaults()
	cfg.InlineSnapshots = true
	x, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	x.q = newQuery(cfg, x.dir.Metadata().ID, uuid.NewString(), func() {})
	start := checkpoint.Recovery{Action: checkpoint.PlanBatch, Last: last}
	if last != nil {
		start.Batch = last.Batch + 1
	}
	if err := x.resume(ctx, start); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return &Replay{x: x}, nil
}

// Stateful says whether a batch depends on those before it.
func (r *Replay) Stateful() bool { return len(r.x.exec.operators) > 0 }

// Observe has f called with the plan of each batch before it runs, then with the rows
// that each operator gives: see physical.ExecContext.
func (r *Replay) Observe(planned func(p physical.Plan), rows func(p physical.Plan, b arrow.RecordBatch)) {
	r.x.exec.planned, r.x.exec.observe = planned, rows
}

// Run runs a logged batch and gives its rows to the sink. It returns what the batch
// leaves; the next batch starts from it. A stateful query must be given its batches in
// order.
func (r *Replay) Run(ctx context.Context, entry *checkpoint.OffsetEntry) (*checkpoint.CommitEntry, error) {
	x := r.x
	x.currentBatchID = entry.Batch
	b, err := x.attemptBatch(ctx, entry, publishRows)
	if err != nil {
		return nil, x.inBatch(err)
	}
	defer b.release()
	c := b.commitEntry(x, entry)
	if err := x.dir.Prepared().Put(entry.Batch, c); err != nil {
		return nil, x.inBatch(errors.Join(err, b.discard()))
	}
	if err := b.staged.Publish(ctx); err != nil {
		return nil, x.inBatch(errors.Join(err, b.discard()))
	}
	return &c, x.inBatch(r.commit(ctx, &c))
}

// commit is steps 5 and 6 for a batch that nothing but the next one starts from. Sources
// are given nothing back: what they would clean away is not theirs here.
func (r *Replay) commit(ctx context.Context, c *checkpoint.CommitEntry) error {
	x := r.x
	if err := x.dir.Commit(c.Batch); err != nil {
		return err
	}
	x.last = c
	x.watermarks.advance(c.Maxima, c.NextWatermark)
	x.exec.committed(c.Batch)
	if err := x.dir.Commits().Purge(c.Batch); err != nil {
		return err
	}
	if err := x.exec.provider.Maintain(ctx); err != nil || c.Batch%collectEvery != 0 {
		return err
	}
	return x.dir.CollectState(x.exec.provider.InUse()...)
}

// LostInput is a file that a logged batch read and that is not there any more as it was.
type LostInput struct {
	Name string // of the stream or table
	Path string
	Gone bool // else it changed
	// Cleaned says that the stream's clean_source takes its files away. Its path is free then:
	// where a later batch read another file there, the one at hand was taken away, too.
	Cleaned bool
}

// Lost lists the inputs of a logged batch that cannot be read as they were. newest is the
// newest logged batch.
func (r *Replay) Lost(ctx context.Context, entry, newest *checkpoint.OffsetEntry) ([]LostInput, error) {
	var lost []LostInput
	for i, s := range r.x.sources {
		files, ok := s.source.(connector.FileSet)
		if !ok || entry.Sources[i].Start == entry.Sources[i].End {
			continue
		}
		logged, err := files.Files(ctx, entry.Sources[i].Start, entry.Sources[i].End)
		if err != nil {
			return nil, err
		}
		options := r.x.exec.streams[i].Decl.Options
		clean, rereads := options["clean_source"], strings.EqualFold(options["changed_files"], "reread")
		more, err := r.lost(ctx, s.name, files, logged)
		if err != nil {
			return nil, err
		}
		if len(more) > 0 && clean != "" && !strings.EqualFold(clean, "off") {
			later, err := files.Files(ctx, entry.Sources[i].End, newest.Sources[i].End)
			if err != nil {
				return nil, err
			}
			for k, l := range more {
				more[k].Cleaned = l.Gone || !rereads && slices.ContainsFunc(later, func(f connector.FileIdentity) bool { return f.Path == l.Path })
			}
		}
		lost = append(lost, more...)
	}
	for _, t := range r.x.exec.tables {
		files, ok := t.Table.(connector.FileSet)
		if !ok {
			continue
		}
		for _, logged := range entry.Tables {
			if logged.Name != t.Name {
				continue
			}
			more, err := r.lost(ctx, t.Name, files, identities(logged.Files))
			if err != nil {
				return nil, err
			}
			lost = append(lost, more...)
		}
	}
	return lost, nil
}

func (r *Replay) lost(ctx context.Context, name string, files connector.FileSet, logged []connector.FileIdentity) ([]LostInput, error) {
	changed, err := files.Changed(ctx, logged)
	if err != nil {
		return nil, err
	}
	var lost []LostInput
	for _, f := range changed {
		_, err := r.x.cfg.FS.Stat(f.Path)
		lost = append(lost, LostInput{Name: name, Path: f.Path, Gone: errors.Is(err, fs.ErrNotExist)})
	}
	return lost, nil
}

// Close ends it.
func (r *Replay) Close() error { return r.x.close() }

// CheckStart says whether a query would start on its checkpoint and output, nil if it
// would. It is meant for a vfs.Overlay, since a start tidies what it finds.
func CheckStart(ctx context.Context, cfg Config) (err error) {
	cfg = cfg.withDefaults()
	x, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	x.q = newQuery(cfg, x.dir.Metadata().ID, uuid.NewString(), func() {})
	staged, err := x.sink.Recover(ctx)
	if err != nil {
		return err
	}
	if staged != nil {
		if err := staged.Publish(ctx); err != nil {
			return err
		}
	}
	r, err := x.nextRecovery(ctx)
	if err != nil {
		return err
	}
	return x.resume(ctx, r)
}

// Describe is what a checkpoint of the query would keep of it: its operators, sources
// and settings, to be compared with what one keeps. Of cfg it needs Plan, Mode, Registry
// and Settings.
func Describe(cfg Config, was checkpoint.Plan) (checkpoint.Plan, error) {
	form := checkpoint.ReadsForm
	if was.IsFormer() {
		form = checkpoint.FormerReads
	}
	x, err := newIncrementalExecution(cfg.withDefaults(), form)
	if err == nil && form == checkpoint.ReadsForm {
		x, err = x.arranged(was)
	}
	if err != nil {
		return checkpoint.Plan{}, err
	}
	return x.plan, nil
}
