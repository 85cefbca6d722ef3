package tidemill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// Changes is what a script means for the checkpoint of one of its queries.
type Changes struct {
	Query, Checkpoint string
	// Batch is the newest batch the checkpoint knows, -1 if there is none.
	Batch int64
	// Running says that a query holds the checkpoint now: a start would have to wait for it.
	Running bool
	Parts   []ChangedPart
	// Refusal is why a start would be refused, nil if it would not.
	Refusal error
}

// ChangeVerdict is what becomes of a part of a query.
type ChangeVerdict string

// The verdicts.
const (
	Same          ChangeVerdict = "same"           // as the checkpoint has it; state and position are kept
	New           ChangeVerdict = "new"            // the checkpoint has nothing of it
	ChangesFreely ChangeVerdict = "changes freely" // the checkpoint does not depend on it
	WouldRefuse   ChangeVerdict = "refused"        // a start would be refused
)

// ChangedPart is one operator, source, setting or option.
type ChangedPart struct {
	Part, Name string
	Verdict    ChangeVerdict
	Text       string // what it is; for WouldRefuse what it was and what it is
}

// Changes compares every query of the script with its checkpoint: what of that it keeps,
// what may change and what would be refused. It writes nothing, and may be called while
// the queries run.
func (sc *Script) Changes(ctx context.Context) ([]Changes, error) {
	if err := sc.made(ctx); err != nil {
		return nil, err
	}
	var all []Changes
	for _, in := range sc.inserts {
		c, err := sc.changesOf(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("query %s: %w", in.name, err)
		}
		all = append(all, *c)
	}
	return all, nil
}

func (sc *Script) changesOf(ctx context.Context, in *insert) (*Changes, error) {
	c := &Changes{Query: in.name, Checkpoint: in.checkpoint, Batch: checkpoint.NoBatch}
	// A start tidies what it finds; here it does so in memory.
	j, plan, err := sc.on(vfs.NewOverlay(sc.s.opts.fs)).plan(ctx, in)
	if isWaiting(err) {
		var none *connector.NoFilesError
		errors.As(err, &none)
		c.Parts = []ChangedPart{{"source", none.Stream, New, "it has neither columns nor files yet"}}
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	cfg, err := j.config(ctx, plan)
	if err != nil {
		return c, c.refuse(err)
	}
	was, err := c.read(sc.s.opts.fs)
	if err != nil {
		return c, c.refuse(err)
	}
	now, err := incremental.Describe(cfg, was)
	if err != nil {
		return nil, err
	}
	c.compare(was, now)
	c.free(in, j, plan)
	return c, c.refuse(incremental.CheckStart(ctx, cfg))
}

// read reads what the checkpoint keeps of the query, which is nothing where there is none.
func (c *Changes) read(fsys vfs.FS) (was checkpoint.Plan, err error) {
	if c.Checkpoint == "" {
		return was, nil
	}
	err = checkpoint.Inspect(fsys, c.Checkpoint, func(v *checkpoint.View) error {
		b, err := v.Batches()
		if err != nil {
			return err
		}
		c.Batch = b.LastPlanned()
		if c.Running, err = v.Locked(); err != nil {
			return err
		}
		if was, err = v.Plan(); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return was, err
}

// refuse takes a refusal; any other error is returned.
func (c *Changes) refuse(err error) error {
	if err == nil || KindOf(err) == RefusalError {
		c.Refusal = err
		return nil
	}
	return err
}

// compare gives the verdict on each part that a checkpoint keeps. One without batches
// keeps nothing yet.
func (c *Changes) compare(was, now checkpoint.Plan) {
	texts := map[string]string{}
	for _, o := range now.Operators {
		texts["operator "+o.Name] = o.Text
	}
	for _, s := range now.Sources {
		texts["source "+s.Name] = s.Identity
	}
	for name, value := range now.Settings {
		texts["setting "+name] = value
	}
	fresh := c.Batch == checkpoint.NoBatch
	if fresh {
		was = now
	}
	for _, f := range was.Compare(now) {
		p := ChangedPart{Part: f.Part, Name: f.Name, Verdict: Same, Text: texts[f.Part+" "+f.Name]}
		switch {
		case fresh:
			p.Verdict = New
		case f.Verdict == checkpoint.Refused:
			p.Verdict = WouldRefuse
			p.Text = strings.TrimPrefix(f.Text, f.Part+" "+f.Name+": ")
		}
		c.Parts = append(c.Parts, p)
	}
}

// free lists what a checkpoint does not depend on: what it says now holds from the next
// batch on.
func (c *Changes) free(in *insert, j *job, plan logical.Node) {
	add := func(part, name, text string) {
		c.Parts = append(c.Parts, ChangedPart{part, name, ChangesFreely, text})
	}
	streams := map[string]bool{}
	logical.Walk(plan, func(n logical.Node) bool {
		switch n := n.(type) {
		case *logical.StreamScan:
			d := n.Stream.Decl
			if streams[n.Stream.Name] || d == nil {
				return true
			}
			streams[n.Stream.Name] = true
			for _, key := range slices.Sorted(maps.Keys(d.Options)) {
				if key != "path" && key != "connector" {
					add("source option", n.Stream.Name+"."+key, d.Options[key])
				}
			}
		case *logical.Watermark:
			add("watermark", n.Label, "delay "+n.Delay.String())
		}
		return true
	})
	pinned := j.pinned()
	for _, key := range slices.Sorted(maps.Keys(in.sink.Options)) {
		if _, kept := pinned["sink_"+key]; !kept && key != "output_mode" && key != "connector" && key != "checkpoint" {
			add("sink option", key, in.sink.Options[key])
		}
	}
}
