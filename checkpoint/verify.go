package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"

	"github.com/tidemill/tidemill/internal/vfs"
)

// Report is what Verify found.
type Report struct {
	Path     string
	Metadata Metadata
	// Problems are what is wrong, in the order of the files; none means whole.
	Problems []Problem
	// LastPlanned and LastCommitted are the newest batches, NoBatch if none.
	LastPlanned, LastCommitted int64
	// LastGood is the newest batch that can be gone on from: its commit, the entries
	// of all batches before it, and its state are whole. NoBatch if there is none.
	LastGood int64
	// History is the newest batch in the history.
	History int64
	// StateFiles and StateBytes are what the retained commits name.
	StateFiles int
	StateBytes int64
	// Strays are files that belong to nothing and do no harm.
	Strays []string
}

// Problem is one thing that is wrong.
type Problem struct {
	Path  string
	Batch int64 // NoBatch if it is of none in particular
	Text  string
}

// String is one line.
func (p Problem) String() string {
	if p.Batch == NoBatch {
		return fmt.Sprintf("%s: %s", p.Path, p.Text)
	}
	return fmt.Sprintf("%s (batch %d): %s", p.Path, p.Batch, p.Text)
}

// Whole reports whether nothing is wrong.
func (r Report) Whole() bool { return len(r.Problems) == 0 }

// Verify reads every file of a checkpoint and says what is wrong with it. It takes
// no lock and changes nothing. The error is about looking (fs.ErrNotExist: this is
// no checkpoint); what is wrong with the checkpoint is in the Report.
func Verify(fsys vfs.FS, dir string) (Report, error) {
	var report Report
	err := Inspect(fsys, dir, func(v *View) error {
		c := checker{v: v, d: v.d, badEntry: math.MaxInt64, badState: map[int64]bool{}, checked: map[string]error{}}
		if err := c.run(); err != nil {
			return err
		}
		report = c.report
		if len(c.report.Problems) > 0 {
			// Start over if the query moved on while we looked.
			return errProblems
		}
		return nil
	})
	if errors.Is(err, errProblems) {
		err = nil
	}
	return report, err
}

// errProblems makes Inspect look again after a change.
var errProblems error = &CorruptError{Batch: NoBatch, Reason: "there are problems"}

// checker is one look.
type checker struct {
	v      *View
	d      *Dir
	report Report

	badEntry int64 // first batch whose entries are not whole
	badState map[int64]bool
	checked  map[string]error // state files by path and hash
}

func (c *checker) problem(name string, batch int64, format string, args ...any) {
	c.report.Problems = append(c.report.Problems, Problem{Path: name, Batch: batch, Text: fmt.Sprintf(format, args...)})
}

// entryProblem is a problem with which a batch, and what follows, is not whole.
func (c *checker) entryProblem(name string, batch int64, err error) {
	c.problem(name, batch, "%s", reason(err))
	c.badEntry = min(c.badEntry, batch)
}

// reason is the text of an error without the path, which stands before it.
func reason(err error) string {
	var e *CorruptError
	var v *IncompatibleError
	switch {
	case errors.As(err, &e) && e.Err != nil:
		return e.Reason + ": " + e.Err.Error()
	case errors.As(err, &e):
		return e.Reason
	case errors.As(err, &v):
		return v.Reasons[0]
	case errors.Is(err, fs.ErrNotExist):
		return "the file is missing"
	}
	return err.Error()
}

func (c *checker) run() error {
	c.report.Path = c.d.path
	batches, err := c.v.Batches()
	if err != nil {
		return c.asProblem(err)
	}
	c.report.LastPlanned, c.report.LastCommitted = batches.LastPlanned(), batches.LastCommitted()
	c.report.History = batches.History
	if c.report.Metadata, err = c.v.Metadata(); err != nil {
		c.problem(c.d.file(metadataName), NoBatch, "%s", reason(err))
	}
	if _, err := c.v.Plan(); err != nil && (!errors.Is(err, fs.ErrNotExist) || batches.LastPlanned() != NoBatch) {
		c.problem(c.d.file(planName), NoBatch, "%s", reason(err))
	}
	c.checkHistory()
	c.checkBatches(batches)
	if batches.Prepared > batches.LastCommitted() {
		if _, err := c.v.Prepared(batches.Prepared); err != nil {
			c.problem(c.d.prepared.Path(batches.Prepared), batches.Prepared, "%s", reason(err))
		}
	}
	c.checkSources(batches)
	c.findGood(batches)
	return c.findStrays()
}

// asProblem turns a damaged listing into a problem.
func (c *checker) asProblem(err error) error {
	var e *CorruptError
	if errors.As(err, &e) {
		c.report.LastGood = NoBatch
		c.problem(e.Path, e.Batch, "%s", e.Reason)
		return nil
	}
	return err
}

// checkHistory reads all of the history: every batch from 0 on, once.
func (c *checker) checkHistory() {
	next := int64(0)
	for entry, err := range c.d.history.Range(0, everything) {
		if err != nil {
			c.problemOf(err)
			return
		}
		if entry.Batch != next {
			c.problem(c.d.history.segs.dir, next, "the batch is missing")
			next = entry.Batch
		}
		next++
	}
}

// problemOf notes an error with the path it carries.
func (c *checker) problemOf(err error) {
	var e *CorruptError
	if errors.As(err, &e) {
		c.problem(e.Path, e.Batch, "%s", reason(err))
		return
	}
	c.problem(c.d.path, NoBatch, "%v", err)
}

// checkBatches reads the retained entries and what they name.
func (c *checker) checkBatches(b Batches) {
	var before *CommitEntry
	first := b.History + 1
	if len(b.Offsets) > 0 && b.Offsets[0] > first {
		// One problem, not one for each batch.
		c.entryProblem(c.d.offsets.Path(first), first, fmt.Errorf(
			"batches %d to %d are neither here nor in the history", first, b.Offsets[0]-1))
		first = b.Offsets[0]
	}
	for id := first; id <= b.LastPlanned() || id <= b.LastCommitted(); id++ {
		offsets, err := c.d.offsets.Get(id)
		if err != nil {
			c.entryProblem(c.d.offsets.Path(id), id, err)
		}
		whole := err == nil
		if whole {
			c.checkStarts(id, offsets, before)
		}
		before = nil
		commit, err := c.d.commits.Get(id)
		if errors.Is(err, fs.ErrNotExist) && id == b.LastPlanned() && id == b.LastCommitted()+1 {
			break // the batch that is open
		}
		if err != nil {
			c.entryProblem(c.d.commits.Path(id), id, err)
			continue
		}
		before = &commit
		if whole {
			c.checkCopy(id, offsets, commit)
		}
		c.checkState(id, commit)
	}
}

// checkStarts compares where a batch starts with where the one before ended.
func (c *checker) checkStarts(id int64, e OffsetEntry, before *CommitEntry) {
	name := c.d.offsets.Path(id)
	if e.Batch != id {
		c.entryProblem(name, id, fmt.Errorf("the entry says that it is of batch %d", e.Batch))
	}
	if before == nil {
		return
	}
	for i, s := range e.Sources {
		if i < len(before.Sources) && before.Sources[i].End != s.Start {
			c.entryProblem(name, id, fmt.Errorf("source %s starts at %s, the batch before ended at %s",
				s.Name, s.Start, before.Sources[i].End))
		}
	}
}

// checkCopy compares the offsets entry with the copy in the commit.
func (c *checker) checkCopy(id int64, e OffsetEntry, commit CommitEntry) {
	a, errA := marshal(e)
	b, errB := marshal(commit.Offsets)
	if errA != nil || errB != nil || !bytes.Equal(a, b) || commit.Batch != id {
		c.entryProblem(c.d.commits.Path(id), id, errors.New("its copy of the offsets is not that of the offsets file"))
	}
}

// checkState checks the files of one version, each file once.
func (c *checker) checkState(id int64, commit CommitEntry) {
	for _, op := range commit.State {
		if op.Version != id+1 {
			c.entryProblem(c.d.commits.Path(id), id, fmt.Errorf("operator %s has version %d", op.Operator, op.Version))
		}
		for _, f := range op.Files {
			name := c.d.StatePath(op.Operator, f)
			key := name + " " + f.Hash
			err, seen := c.checked[key]
			if !seen {
				err = checkStateFile(c.d.fs, c.d.StateDir(op.Operator), f)
				c.checked[key] = err
				c.report.StateFiles++
				c.report.StateBytes += f.Size
				if err != nil {
					c.problem(name, id, "%s", reason(err))
				}
			}
			if err != nil {
				c.badState[id] = true
			}
		}
	}
}

// checkSources reads the logs of all sources, and looks for the entries that the retained
// batches name.
func (c *checker) checkSources(b Batches) {
	root := c.d.file(sourcesName)
	dirs, err := c.d.fs.ReadDir(root)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.problem(root, NoBatch, "%v", err)
		}
		return
	}
	for _, e := range dirs {
		i, err := strconv.Atoi(e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		log, there := c.v.SourceLog(i), map[int64]bool{}
		for entry, err := range log.Range(-1, everything) {
			if err != nil {
				c.problemOf(err)
				there = nil
				break
			}
			there[entry.ID] = true
		}
		if there != nil {
			c.checkNamed(i, log, there, b)
		}
	}
}

// checkNamed looks for the entries of a source that offsets name.
func (c *checker) checkNamed(source int, log *SourceLog, there map[int64]bool, b Batches) {
	for _, id := range b.Offsets {
		offsets, err := c.d.offsets.Get(id)
		if err != nil || source >= len(offsets.Sources) {
			continue // a problem already, or of an older plan
		}
		if n := offsets.Sources[source].LastEntry; n >= 0 && !there[n] {
			c.entryProblem(log.Path(n), id, fs.ErrNotExist)
			there[n] = true // one problem is enough
		}
	}
}

// findGood finds the newest batch to go on from.
func (c *checker) findGood(b Batches) {
	c.report.LastGood = NoBatch
	for _, id := range b.Commits {
		if id < c.badEntry && !c.badState[id] {
			c.report.LastGood = id
		}
	}
}

// findStrays lists what is left over.
func (c *checker) findStrays() error {
	err := vfs.Walk(c.d.fs, c.d.path, func(name string, e fs.DirEntry) error {
		switch dir := path.Base(path.Dir(name)); {
		case e.IsDir():
		case isTemp(name):
			c.report.Strays = append(c.report.Strays, name)
		case dir == offsetsName || dir == commitsName || dir == preparedName:
			if _, ok := parseID(e.Name()); !ok {
				c.report.Strays = append(c.report.Strays, name)
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went while we looked
	}
	return err
}
