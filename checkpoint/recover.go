package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Action is what to do with a batch on start.
type Action int

// The actions. After any but PlanBatch, carry it out up to Dir.Commit and call
// Recover again.
const (
	// PlanBatch: nothing is open. Batch is the next one; it is planned anew.
	PlanBatch Action = iota
	// RunBatch: the batch was planned and is not visible. It is run with Entry, from
	// step 2; or withdrawn (Dir.WithdrawBatch), if an input changed.
	RunBatch
	// RollForward: the batch is visible and its state, named by Prepared, was
	// checked. Only Dir.Commit remains.
	RollForward
	// Rebuild: the batch is visible, but what it left is lost. It is run with Entry
	// for its state, its rows are drained and dropped; then prepared/N is written
	// and committed. An input that changed ends the query.
	Rebuild
)

// String names the action.
func (a Action) String() string {
	return [...]string{"plan", "run", "roll forward", "rebuild"}[a]
}

// SinkState is what the sink says when the query starts, after it finished a
// publishing that was decided.
type SinkState struct {
	// Last is the newest batch made visible, NoBatch if none; Known is false if the
	// sink cannot know (connector.Sink.LastBatch).
	Last  int64
	Known bool
	// Replaces is true if each batch replaces the whole output (complete mode): a
	// lost output can be written again.
	Replaces bool
	// Name says in errors which output it is.
	Name string
}

// Recovery is where to go on.
type Recovery struct {
	Action Action
	// Batch is the batch the action is about.
	Batch int64
	// Entry is its logged intent; nil for PlanBatch.
	Entry *OffsetEntry
	// Last is the commit of the batch before: where Batch starts. nil for batch 0.
	Last *CommitEntry
	// Prepared is what a RollForward commits.
	Prepared *CommitEntry
	// RewriteOutput says that the sink lost a whole table that Last describes
	// (SinkState.Replaces): the next batch must write it, with or without new rows.
	RewriteOutput bool
	// Notes are what was found damaged and how it was repaired, to be logged.
	Notes []string

	newest *OffsetEntry // the newest that stands; later than Entry if that is rebuilt
}

// NamedEntry is the newest entry of the log of source i that the offsets name, for
// Dir.SourceLog.
func (r Recovery) NamedEntry(i int) int64 { return r.newest.NamedEntry(i) }

// Recover says where the query goes on. It reads every retained entry and the state
// files of the version to start from.
//
// What it repairs: a damaged offsets entry is derived from the commit or the
// prepared entry of its batch; the newest one is forgotten if its batch was
// certainly not visible. A newest commit that is damaged or absent is rolled
// forward from prepared, or rebuilt by running its batch again for its state. State
// that is damaged is rebuilt from the state before. Everything else is ErrCorrupt
// naming the file (an older entry missing or damaged), or ErrIncompatible (an
// output that is behind or ahead of the checkpoint). Nothing is written then.
func (d *Dir) Recover(sink SinkState) (Recovery, error) {
	r := recovery{d: d, sink: sink}
	result, err := r.run()
	if err != nil {
		return Recovery{}, err
	}
	if r.planned != NoBatch {
		if result.newest, err = r.entry(r.planned); err != nil {
			return Recovery{}, err
		}
	}
	for _, repair := range r.repairs {
		if err := repair(); err != nil {
			return Recovery{}, err
		}
	}
	if err := d.dropStale(result); err != nil {
		return Recovery{}, err
	}
	result.Notes = r.notes
	return result, nil
}

// dropStale removes prepared entries that belong to no open batch, so that their
// state files can be collected.
func (d *Dir) dropStale(r Recovery) error {
	ids, err := d.prepared.IDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		// A later one may stand: batch id-1 is rebuilt first.
		if id < r.Batch || r.Action == PlanBatch {
			if err := d.fs.Remove(d.prepared.Path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// recovery is one run of Recover.
type recovery struct {
	d    *Dir
	sink SinkState

	folded  int64 // newest batch in the history
	planned int64 // newest batch with an offsets entry, NoBatch if none
	// committed is the newest batch up to which all commits can be read; it is less
	// than the newest file if that is damaged, which sets damaged.
	committed int64
	damaged   bool
	offsets   []int64
	commits   []int64

	// entries are offsets entries that were derived, and are not on disk yet.
	entries map[int64]OffsetEntry
	repairs []func() error
	notes   []string
}

func (r *recovery) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *recovery) run() (Recovery, error) {
	r.planned = NoBatch
	if err := r.list(); err != nil {
		return Recovery{}, err
	}
	if len(r.offsets) == 0 && len(r.commits) == 0 {
		return r.fresh()
	}
	for _, step := range []func() error{r.findNewest, r.checkCommits, r.checkOffsets, r.checkAhead} {
		if err := step(); err != nil {
			return Recovery{}, err
		}
	}
	if r.committed < r.planned {
		return r.pending(r.committed + 1)
	}
	return r.idle()
}

// list reads what is there, without what a fold has yet to remove.
func (r *recovery) list() (err error) {
	r.entries = map[int64]OffsetEntry{}
	if r.folded, err = r.d.history.Last(); err != nil {
		return err
	}
	if r.offsets, err = r.d.offsets.IDs(); err != nil {
		return err
	}
	if r.commits, err = r.d.commits.IDs(); err != nil {
		return err
	}
	old := func(id int64) bool { return id <= r.folded }
	r.offsets = slices.DeleteFunc(r.offsets, old)
	r.commits = slices.DeleteFunc(r.commits, old)
	return nil
}

// fresh is a checkpoint without entries.
func (r *recovery) fresh() (Recovery, error) {
	if r.folded != NoBatch {
		return Recovery{}, corrupt(r.d.offsets.Path(r.folded+1), r.folded+1, "the file is missing", nil)
	}
	if r.sink.Known && r.sink.Last != NoBatch {
		return Recovery{}, incompatible(r.d.path, fmt.Sprintf(
			"output %s holds batches up to %d, and the checkpoint has none; give the checkpoint that wrote them, or another output",
			r.sink.Name, r.sink.Last))
	}
	return Recovery{Action: PlanBatch, Batch: 0}, nil
}

func newest(ids []int64) int64 {
	if len(ids) == 0 {
		return NoBatch
	}
	return ids[len(ids)-1]
}

// findNewest finds the newest planned batch. Its offsets file may be lost while its
// commit or prepared entry, which has a copy, is there.
func (r *recovery) findNewest() error {
	r.planned = max(newest(r.offsets), r.folded)
	next := r.planned + 1
	switch last := newest(r.commits); {
	case last > next:
		return corrupt(r.d.offsets.Path(next), next, "the file is missing", nil)
	case last == next:
		c, err := r.d.commits.Get(last)
		if errors.Is(err, ErrCorrupt) {
			return corrupt(r.d.offsets.Path(last), last, "the file is missing, and the commit of the batch is damaged", nil)
		}
		if err != nil {
			return err
		}
		r.derive(last, c, "missing", "its commit")
	default:
		p, err := r.d.prepared.Get(next)
		// Without offsets the batch stands only if it may be visible.
		if err == nil && (!r.sink.Known || r.sink.Last >= next) {
			r.derive(next, p, "missing", "the prepared entry")
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrCorrupt) {
			return err
		}
	}
	return nil
}

// derive takes the offsets entry of a batch from the copy in c, and plans to write it.
func (r *recovery) derive(id int64, c CommitEntry, how, from string) {
	r.note("%s was %s and is derived from %s", r.d.offsets.Path(id), how, from)
	r.entries[id] = c.Offsets
	if !slices.Contains(r.offsets, id) {
		r.offsets = append(r.offsets, id)
	}
	r.planned = max(r.planned, id)
	r.repairs = append(r.repairs, func() error { return r.d.offsets.Put(id, c.Offsets) })
}

// checkCommits finds the newest batch up to which all commits are whole.
func (r *recovery) checkCommits() error {
	first, last := r.folded+1, newest(r.commits)
	r.committed = r.folded
	for id := first; id <= last; id++ {
		path := r.d.commits.Path(id)
		if _, ok := slices.BinarySearch(r.commits, id); !ok {
			return corrupt(path, id, "the file is missing", nil)
		}
		err := r.d.commits.check(id)
		switch {
		case err == nil:
			r.committed = id
		case errors.Is(err, ErrCorrupt) && id == last:
			r.damaged = true
			r.note("%s is damaged", path)
		default:
			return err
		}
	}
	// offsets/N follows commits/N-1: more than two batches without a commit cannot
	// come from a crash, and two only if the newest commit was taken away.
	if r.planned > r.committed+2 {
		return corrupt(r.d.commits.Path(r.committed+1), r.committed+1, "the file is missing", nil)
	}
	return nil
}

// checkOffsets makes sure of all offsets entries, deriving damaged ones.
func (r *recovery) checkOffsets() error {
	for id := r.folded + 1; id <= r.planned; id++ {
		if _, ok := r.entries[id]; ok {
			continue
		}
		path := r.d.offsets.Path(id)
		if !slices.Contains(r.offsets, id) {
			return corrupt(path, id, "the file is missing", nil)
		}
		err := r.d.offsets.check(id)
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrCorrupt) {
			return err
		}
		if err := r.rescueOffsets(id, err); err != nil {
			return err
		}
	}
	return nil
}

// rescueOffsets derives a damaged entry, or forgets that of an invisible batch;
// otherwise it returns cause.
func (r *recovery) rescueOffsets(id int64, cause error) error {
	if c, err := r.d.commits.Get(id); err == nil {
		r.derive(id, c, "damaged", "its commit")
		return nil
	}
	p, err := r.d.prepared.Get(id)
	if err == nil {
		r.derive(id, p, "damaged", "the prepared entry")
		return nil
	}
	// Nothing is published before prepared/N is there. If it is there and cannot be
	// read, only the sink can say that the batch is not visible.
	lost := errors.Is(err, fs.ErrNotExist)
	visible := r.sink.Known && r.sink.Last >= id || !r.sink.Known && !lost
	if id != r.planned || r.damaged || visible {
		return cause
	}
	r.note("%s was damaged; its batch was not visible and is planned again", r.d.offsets.Path(id))
	r.planned = id - 1
	r.repairs = append(r.repairs, func() error { return r.d.WithdrawBatch(id) })
	return nil
}

// checkAhead refuses an output that holds batches this checkpoint does not know.
func (r *recovery) checkAhead() error {
	if !r.sink.Known || r.sink.Last <= r.planned {
		return nil
	}
	return incompatible(r.d.path, fmt.Sprintf(
		"output %s holds batches up to %d, and the checkpoint knows batches up to %d; it is an older copy, or not the checkpoint of this output",
		r.sink.Name, r.sink.Last, r.planned))
}

// entry reads an offsets entry, or takes the derived one.
func (r *recovery) entry(id int64) (*OffsetEntry, error) {
	if e, ok := r.entries[id]; ok {
		return &e, nil
	}
	e, err := r.d.offsets.Get(id)
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// commit reads a commit; nil for the one before batch 0.
func (r *recovery) commit(id int64) (*CommitEntry, error) {
	if id == NoBatch {
		return nil, nil
	}
	c, err := r.d.commits.Get(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, corrupt(r.d.commits.Path(id), id, "the file is missing", nil)
	}
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// idle is when every planned batch is committed.
func (r *recovery) idle() (Recovery, error) {
	last, err := r.commit(r.committed)
	if err != nil {
		return Recovery{}, err
	}
	if rebuilt, again, err := r.checkState(last); again || err != nil {
		return rebuilt, err
	}
	behind, err := r.behind(r.committed)
	if err != nil {
		return Recovery{}, err
	}
	return Recovery{Action: PlanBatch, Batch: r.committed + 1, Last: last, RewriteOutput: behind}, nil
}

// pending is when batch id was planned and has no commit that can be read.
func (r *recovery) pending(id int64) (Recovery, error) {
	last, err := r.commit(id - 1)
	if err != nil {
		return Recovery{}, err
	}
	if rebuilt, again, err := r.checkState(last); again || err != nil {
		return rebuilt, err
	}
	behind, err := r.behind(id - 1)
	if err != nil {
		return Recovery{}, err
	}
	entry, err := r.entry(id)
	if err != nil {
		return Recovery{}, err
	}
	result := Recovery{Action: RunBatch, Batch: id, Entry: entry, Last: last, RewriteOutput: behind}
	// A sink that does not know is given a batch again unless a commit, even a
	// damaged one, or a later batch shows that it was visible.
	visible := r.sink.Last >= id
	if !r.sink.Known {
		visible = r.damaged || id < r.planned
	}
	if !visible {
		return result, nil
	}
	prepared, err := r.d.prepared.Get(id)
	if err == nil {
		err = r.d.VerifyState(&prepared)
	}
	switch {
	case err == nil:
		result.Action, result.Prepared = RollForward, &prepared
		return result, nil
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrCorrupt):
		return Recovery{}, err
	}
	// Both entries of the newest batch gone, and of the one before, too: that is no
	// newest commit taken away.
	if id < r.planned && r.sink.Known && r.sink.Last >= r.planned && !r.hasPrepared(r.planned) {
		return Recovery{}, corrupt(r.d.commits.Path(id), id, "the file is missing", nil)
	}
	result.Action = Rebuild
	r.note("batch %d is visible and what it left is lost; it is run again for its state", id)
	return result, nil
}

func (r *recovery) hasPrepared(id int64) bool { return r.d.prepared.check(id) == nil }

// checkState looks at the state that the next batch starts from. If it is damaged,
// the batch that made it is rebuilt from the state before, if that is whole.
func (r *recovery) checkState(c *CommitEntry) (Recovery, bool, error) {
	if c == nil {
		return Recovery{}, false, nil
	}
	cause := r.d.VerifyState(c)
	if cause == nil || !errors.Is(cause, ErrCorrupt) {
		return Recovery{}, false, cause
	}
	if c.Batch-1 <= r.folded && c.Batch != 0 {
		return Recovery{}, false, cause
	}
	before, err := r.commit(c.Batch - 1)
	if err != nil {
		return Recovery{}, false, cause
	}
	if before != nil && r.d.VerifyState(before) != nil {
		return Recovery{}, false, cause
	}
	if r.sink.Known && r.sink.Last < c.Batch && !r.sink.Replaces {
		if _, err := r.behind(c.Batch); err != nil {
			return Recovery{}, false, err
		}
	}
	entry, err := r.entry(c.Batch)
	if err != nil {
		return Recovery{}, false, cause
	}
	r.note("%v; batch %d is run again for its state", cause, c.Batch)
	return Recovery{Action: Rebuild, Batch: c.Batch, Entry: entry, Last: before}, true, nil
}

// behind reports whether the output lost rows of batches up to committed. That is
// an error unless each batch replaces the output. Batches without rows need not be
// in the output.
func (r *recovery) behind(committed int64) (bool, error) {
	if !r.sink.Known || r.sink.Last >= committed {
		return false, nil
	}
	lost := false
	for c, err := range r.d.history.Range(r.sink.Last+1, r.folded) {
		if err != nil {
			return false, err
		}
		if lost = c.Counters.Out > 0; lost {
			break
		}
	}
	for id := max(r.sink.Last, r.folded) + 1; id <= committed && !lost; id++ {
		c, err := r.commit(id)
		if err != nil {
			return false, err
		}
		lost = c.Counters.Out > 0
	}
	switch {
	case !lost:
		return false, nil
	case r.sink.Replaces:
		return true, nil
	}
	return false, r.lostOutput(committed)
}

func (r *recovery) lostOutput(committed int64) error {
	holds := "no batch"
	if r.sink.Last != NoBatch {
		holds = fmt.Sprintf("batches up to %d only", r.sink.Last)
	}
	return incompatible(r.d.path, fmt.Sprintf(
		"the checkpoint has committed batches up to %d, and output %s holds %s; put the output back, or start over with a new checkpoint and a new output",
		committed, r.sink.Name, holds))
}
