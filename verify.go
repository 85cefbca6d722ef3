package tidemill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/formats"
	"github.com/tidemill/tidemill/formats/file"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// Verification is what Script.Verify found of one query.
type Verification struct {
	Query, Output string
	// Upto is the newest batch that was looked at, -1 if there is none.
	Upto int64
	// Batches, Files and Rows are what was derived again and compared.
	Batches, Files, Rows int64
	// Differing is how many rows differ; Differences the first of them, and whatever
	// else is not as it was committed.
	Differing   int64
	Differences []Difference
	// Unverified are batches that could not be derived again.
	Unverified []Unverified
	// LeftOver tells what of a batch that is not published lies about: it runs now, or was
	// cut off. It is no part of the output, and no pattern reads it.
	LeftOver []string
	// Skipped says why nothing of the query can be verified, "" otherwise.
	Skipped string
}

// Difference is one row, or one file, that is not what the inputs give.
type Difference struct {
	Batch int64  // -1 if it is of none
	File  string // "" for a row that no file has
	Text  string
}

// Unverified are batches that could not be derived again, and why. Expected says that the
// query itself has its inputs cleaned away.
type Unverified struct {
	From, To int64
	Reason   string
	Expected bool
}

// Verified says that all that was compared is as committed, and that nothing is open but
// what the query cleans away.
func (v *Verification) Verified() bool {
	if v == nil {
		return false
	}
	open := slices.ContainsFunc(v.Unverified, func(u Unverified) bool { return !u.Expected })
	return len(v.Differences) == 0 && !open
}

// maxDifferences is how many differences of a query are told.
const maxDifferences = 10

func (v *Verification) differs(d Difference, rows int64) {
	v.Differing += rows
	if len(v.Differences) < maxDifferences {
		v.Differences = append(v.Differences, d)
	}
}

// skip notes a batch that cannot be derived again, with those beside it for the same
// reason as one.
func (v *Verification) skip(batch int64, reason string, expected bool) {
	if n := len(v.Unverified); n > 0 {
		if last := &v.Unverified[n-1]; last.To == batch-1 && last.Reason == reason && last.Expected == expected {
			last.To = batch
			return
		}
	}
	v.Unverified = append(v.Unverified, Unverified{batch, batch, reason, expected})
}

// Verify derives the committed output of every query of the script again from its logged
// inputs, batch after batch with fresh state, and compares: rows as sets in which rows
// may repeat, floats to two units in the last place, everything else exactly. It writes
// nothing, and may be called while the queries run. What was found comes with an error,
// too, which says what could not be looked at.
func (sc *Script) Verify(ctx context.Context) ([]Verification, error) {
	if err := sc.made(ctx); err != nil {
		return nil, err
	}
	var found []Verification
	var errs []error
	for _, in := range sc.inserts {
		v, err := sc.verifyInsert(ctx, in)
		if err != nil {
			errs = append(errs, fmt.Errorf("query %s: %w", in.name, err))
			continue
		}
		found = append(found, *v)
	}
	return found, errors.Join(errs...)
}

func (sc *Script) verifyInsert(ctx context.Context, in *insert) (*Verification, error) {
	v := &Verification{Query: in.name, Output: in.path, Upto: checkpoint.NoBatch}
	if c := in.sink.Options["connector"]; in.path == "" || c != "" && c != "filesystem" {
		v.Skipped = "its rows went to " + c + ", not to files"
		return v, nil
	}
	f := &verifier{sc: sc, in: in, found: v, out: connector.CleanPath(in.path), seen: vfs.NewOverlay(sc.s.opts.fs)}
	for _, step := range []func(context.Context) error{f.prepare, f.strangers, f.batches} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// verifier compares what one query committed with what its inputs give.
type verifier struct {
	sc        *Script
	in        *insert
	out       string // the directory
	log       *logged
	found     *Verification
	published map[int64]file.Publication
	last      int64        // newest batch published
	seen      *vfs.Overlay // where it is looked at: a table stays there as it was
	committed *outputReader
	derived   *outputReader
	fsys      *vfs.Overlay // where it is derived
}

// prepare reads checkpoint and manifest: first what must be published, then what is, then
// how that was made, so that a query that runs meanwhile is seen whole.
func (f *verifier) prepare(ctx context.Context) error {
	before, err := f.sc.logged(ctx, f.in)
	if err != nil {
		return err
	}
	query, err := f.readPublished(ctx)
	if err != nil {
		return err
	}
	if query != before.meta.ID {
		return &connector.RefusedError{Path: f.in.path, Reason: "it is the output of another query than the checkpoint " + f.in.checkpoint}
	}
	if f.log, err = f.sc.logged(ctx, f.in); err != nil {
		return err
	}
	f.found.Upto = max(f.last, before.committed)
	if n := int64(len(f.log.batches)); f.found.Upto >= n {
		return &connector.RefusedError{Path: f.in.checkpoint, Reason: fmt.Sprintf("the output holds batch %d, and it knows only %d batches", f.found.Upto, n)}
	}
	f.committed, err = newOutputReader(ctx, f.sc.on(f.seen), f.in)
	return err
}

// readPublished reads the manifest, and the table where the query replaces one: a query
// that runs replaces it again at any time, so it is read until it is that of a batch.
func (f *verifier) readPublished(ctx context.Context) (query string, err error) {
	tried := checkpoint.NoBatch
	for {
		list, id, err := file.Published(f.sc.s.opts.fs, f.out)
		if err != nil {
			return "", err
		}
		f.published, f.last = map[int64]file.Publication{}, checkpoint.NoBatch
		for _, p := range list {
			f.published[p.Batch] = p
			f.last = max(f.last, p.Batch)
		}
		newest := f.published[f.last]
		if !newest.Replaces {
			return id, nil
		}
		decided, err := file.Decided(f.sc.s.opts.fs, f.out)
		if err != nil {
			return "", err
		}
		ok, err := f.keepTable(ctx, append(decided, newest))
		if err != nil || ok || tried == f.last {
			return id, err // one that is no batch's, though none came since, is for compare
		}
		tried = f.last
	}
}

// keepTable copies the table, so that it stays; ok says that it is that of one of the
// batches, which is the newest then.
func (f *verifier) keepTable(ctx context.Context, candidates []file.Publication) (ok bool, err error) {
	tables := ofSide(candidates[len(candidates)-1].Files, "")
	if len(tables) != 1 {
		return true, nil
	}
	name := tables[0].Path
	data, err := vfs.ReadFile(f.sc.s.opts.fs, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := vfs.WriteAtomic(f.seen, name, data); err != nil {
		return false, err
	}
	hash, err := file.ContentHash(ctx, f.seen, name)
	for _, c := range slices.Backward(candidates) {
		for _, t := range ofSide(c.Files, "") {
			if t.Path == name && t.Hash == hash {
				f.published[c.Batch], f.last = c, c.Batch
				return true, err
			}
		}
	}
	return false, err
}

// strangers finds files that look like the query's own, and that no batch wrote: whoever
// reads the directory with a pattern reads them, too. What a killed run leaves no pattern
// matches.
func (f *verifier) strangers(context.Context) error {
	j := &job{session: f.sc.s, name: f.in.name}
	if err := j.configure(f.in.sink, f.sc.o); err != nil {
		return err
	}
	found, err := file.FindUnpublished(f.sc.s.opts.fs, formats.Files(), j.options)
	if err != nil {
		return err
	}
	for _, name := range found.Strays {
		batch := checkpoint.NoBatch
		if _, err := fmt.Sscanf(path.Base(name), "part-%d-", &batch); err != nil {
			batch = checkpoint.NoBatch
		}
		f.found.differs(Difference{Batch: batch, File: name, Text: "no batch wrote this file"}, 0)
	}
	for _, p := range found.Nested {
		f.found.differs(Difference{Batch: checkpoint.NoBatch, File: p.Path, Text: nestedText(p)}, 0)
	}
	for _, batch := range found.Decided {
		f.found.LeftOver = append(f.found.LeftOver, fmt.Sprintf("the publication of batch %d is begun; the next start ends it", batch))
	}
	if n := len(found.Staged); n > 0 {
		text := found.Staged[0]
		if n > 1 {
			text += fmt.Sprintf(", and %d more,", n-1)
		}
		f.found.LeftOver = append(f.found.LeftOver, text+" of a batch that is not published; the next start clears that away")
	}
	return nil
}

// nestedText says what another query keeps among the files of the output.
func nestedText(p file.Place) string {
	thing := "the output"
	if p.Checkpoint {
		thing = "the checkpoint"
	}
	return thing + " of another query nests with this output, and whoever reads the one by a pattern takes files of the other for rows"
}

// open opens the query where the batch after last begins.
func (f *verifier) open(ctx context.Context, last *checkpoint.CommitEntry) (*incremental.Replay, error) {
	from := int64(0)
	if last != nil {
		from = last.Batch + 1
	}
	var err error
	if f.fsys, err = f.log.overlay(from); err != nil {
		return nil, err
	}
	sc := f.sc.on(f.fsys)
	_, cfg, err := f.log.config(ctx, sc)
	if err != nil {
		return nil, err
	}
	r, err := incremental.OpenReplay(ctx, cfg, last)
	if err != nil {
		return nil, err
	}
	if f.derived, err = newOutputReader(ctx, sc, f.in); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// batches derives one batch after the other. After one that cannot be, a query that
// keeps state goes on where the state that a batch left is kept.
func (f *verifier) batches(ctx context.Context) (err error) {
	r, err := f.open(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for id := int64(0); id <= f.found.Upto; id++ {
		ok, err := f.batch(ctx, r, id)
		if err != nil {
			return err
		}
		if ok || !r.Stateful() {
			continue
		}
		next, last, err := f.resumable(id + 1)
		if err != nil || next > f.found.Upto {
			return err
		}
		again, err := f.open(ctx, last)
		if err != nil {
			return err
		}
		err = r.Close()
		if r = again; err != nil {
			return err
		}
		id = next - 1
	}
	return nil
}

// resumable finds the first batch from id on whose state before it is kept.
func (f *verifier) resumable(id int64) (int64, *checkpoint.CommitEntry, error) {
	for ; id <= f.found.Upto; id++ {
		last, ok, err := f.log.commitBefore(id)
		if err != nil || ok {
			return id, last, err
		}
		f.found.skip(id, "the state before it is not kept, and cannot be derived", f.found.Unverified[len(f.found.Unverified)-1].Expected)
	}
	return id, nil, nil
}

// batch derives one batch and compares it; ok is false if it could not be derived.
func (f *verifier) batch(ctx context.Context, r *incremental.Replay, id int64) (ok bool, err error) {
	logged := f.log.batches[id]
	lost, err := r.Lost(ctx, &logged.entry, &f.log.batches[len(f.log.batches)-1].entry)
	if err != nil {
		return false, err
	}
	if len(lost) > 0 {
		expected := !slices.ContainsFunc(lost, func(l incremental.LostInput) bool { return !l.Cleaned })
		f.found.skip(id, lostText(lost), expected)
		return false, nil
	}
	now, err := r.Run(ctx, &logged.entry)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		f.found.skip(id, "it cannot be run again: "+err.Error(), false)
		return false, nil
	}
	if changed := otherContent(logged.commit, now); changed != "" {
		f.found.skip(id, changed+" changed since, though not its size and time", false)
		return false, nil
	}
	return true, f.compare(ctx, id)
}

// otherContent is an input file whose content is not what the batch read the first time.
func otherContent(was, now *checkpoint.CommitEntry) string {
	if was == nil {
		return ""
	}
	hashes := map[string]string{}
	for _, in := range was.Inputs {
		hashes[in.Source+"\x00"+in.Path] = in.Hash
	}
	for _, in := range now.Inputs {
		if h := hashes[in.Source+"\x00"+in.Path]; h != "" && in.Hash != "" && h != in.Hash {
			return in.Path + " of " + in.Source
		}
	}
	for i, h := range was.ManyInputs {
		if i >= len(now.ManyInputs) {
			break
		}
		for n := range h.Files {
			a, b := h.Hash(n), now.ManyInputs[i].Hash(n)
			if a != "" && b != "" && a != b {
				return fmt.Sprintf("file %d of %s in this batch", n+1, h.Source)
			}
		}
	}
	return ""
}
