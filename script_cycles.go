package tidemill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/sql"
)

// feed is an INSERT as it was planned before any starts, and what it reads of files.
type feed struct {
	in    *insert
	job   *job
	plan  logical.Node
	err   error // of planning it
	reads []*logical.SourceDecl
}

// checkCycles refuses INSERTs of which each reads what the one before writes, and the
// first what the last does: they would never end. For one that feeds itself see check.
func (sc *Script) checkCycles(ctx context.Context, feeds []feed) (err error) {
	if len(feeds) < 2 {
		return nil
	}
	for i := range feeds {
		f := &feeds[i]
		switch {
		case f.err == nil:
			f.reads = streamsRead(f.plan)
		case isWaiting(f.err):
			if f.reads, err = sc.waitedFor(ctx, f.in, f.err); err != nil {
				return err
			}
		}
	}
	next := make([][]int, len(feeds)) // which read what it writes
	for i, from := range feeds {
		for k, to := range feeds {
			if i != k && from.job != nil && from.goesTo(to) != "" {
				next[i] = append(next[i], k)
			}
		}
	}
	for i := range feeds {
		if cycle := pathBack(next, i); cycle != nil {
			return sc.cycleError(feeds, cycle)
		}
	}
	return nil
}

// goesTo is the output of f that to reads, "" if there is none.
func (f feed) goesTo(to feed) string {
	for _, d := range to.reads {
		if out := f.job.readBack(d); out != "" {
			return out
		}
	}
	return ""
}

func streamsRead(plan logical.Node) []*logical.SourceDecl {
	var found []*logical.SourceDecl
	logical.Walk(plan, func(n logical.Node) bool {
		if scan, ok := n.(*logical.StreamScan); ok && scan.Stream.Decl != nil {
			found = append(found, scan.Stream.Decl)
		}
		return true
	})
	return found
}

// waitedFor is the stream without files by which an INSERT could not be planned yet.
func (sc *Script) waitedFor(ctx context.Context, in *insert, cause error) ([]*logical.SourceDecl, error) {
	p, _, err := sc.prepare(ctx, in.position, nil)
	if err != nil {
		return nil, err
	}
	var none *connector.NoFilesError
	if !errors.As(cause, &none) {
		return nil, nil
	}
	e, _ := p.Catalog.Lookup(none.Stream)
	d, ok := e.Stream.(*sql.Declaration)
	if !ok {
		return nil, nil
	}
	return []*logical.SourceDecl{d.Source}, nil
}

// pathBack is a shortest path from start to itself, nil if there is none.
func pathBack(next [][]int, start int) []int {
	from := map[int]int{}
	queue := []int{start}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, to := range next[at] {
			if _, ok := from[to]; ok {
				continue
			}
			from[to] = at
			if to != start {
				queue = append(queue, to)
				continue
			}
			cycle := []int{at}
			for ; at != start; cycle = append(cycle, at) {
				at = from[at]
			}
			slices.Reverse(cycle)
			return cycle
		}
	}
	return nil
}

func (sc *Script) cycleError(feeds []feed, cycle []int) error {
	steps := make([]string, len(cycle))
	for i, at := range cycle {
		to := feeds[cycle[(i+1)%len(cycle)]]
		steps[i] = fmt.Sprintf("%s writes %s, which %s reads", feeds[at].in.sink.Name, feeds[at].goesTo(to), to.in.sink.Name)
	}
	return logical.Usagef("%s: the INSERTs would feed each other without end: %s; write one of the outputs elsewhere", sc.file, strings.Join(steps, "; "))
}
