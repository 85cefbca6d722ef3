package physical

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// Shared is a part of a plan that stands in it several times and is run once: who comes
// first runs it and keeps its rows until all have had them. Each place is a node of its
// own; only the first shows its input.
type Shared struct {
	ID    int
	input Plan
	first bool
}

func (p *Shared) Schema() *arrow.Schema { return p.input.Schema() }

// Children is the input, of the first.
func (p *Shared) Children() []Plan {
	if p.first {
		return []Plan{p.input}
	}
	return nil
}

// WithChildren returns p: another input would not be shared.
func (p *Shared) WithChildren([]Plan) Plan { return p }

func (p *Shared) String() string {
	again := ""
	if !p.first {
		again = "yes"
	}
	return args("Shared", "id", fmt.Sprintf("s%d", p.ID), "again", again)
}

// sharedRuns are the parts of one run that are run once.
type sharedRuns struct {
	mu   sync.Mutex
	runs map[int]*sharedRun
}

// sharedRun is one such part: its rows, once there are.
type sharedRun struct {
	plan    *Shared
	ec      *ExecContext
	account *account

	mu      sync.Mutex
	users   int
	done    bool
	batches []arrow.RecordBatch
}

// use is the run of p, with one user more.
func (s *sharedRuns) use(ec *ExecContext, p *Shared) *sharedRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[p.ID]
	if r == nil {
		alone := *ec
		alone.keys = nil // what joins above one place leave out, others want
		r = &sharedRun{plan: p, ec: &alone, account: ec.account(p, "shared rows")}
		s.runs[p.ID] = r
	}
	r.users++
	return r
}

// Open gives the rows to n Readers.
func (p *Shared) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	if ec.shared == nil { // opened by itself
		return Open(ctx, ec, p.input, n)
	}
	use := &sharedUse{run: ec.shared.use(ec, p)}
	use.open.Store(int64(n))
	readers := make([]columnar.Reader, n)
	for i := range readers {
		readers[i] = &sharedReader{use: use}
	}
	return readers, nil
}

// rows are the rows, borrowed; who asks first reads them. An error is not kept: it may be
// that that one was told to stop.
func (r *sharedRun) rows(ctx context.Context) ([]arrow.RecordBatch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return r.batches, nil
	}
	in, err := OpenOne(ctx, r.ec, r.plan.input)
	if err != nil {
		return nil, err
	}
	err = r.read(ctx, in)
	if closeErr := in.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		r.drop()
		return nil, err
	}
	r.done = true
	return r.batches, nil
}

func (r *sharedRun) read(ctx context.Context, in columnar.Reader) error {
	for {
		b, err := in.Next(ctx)
		if isEnd(err) {
			return nil
		}
		if err != nil {
			return err
		}
		columnar.Share(b)
		r.batches = append(r.batches, b)
		if err := r.account.add(batchBytes(b)); err != nil {
			return err
		}
	}
}

// leave is the end of one user; after the last the rows are given back.
func (r *sharedRun) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users--; r.users == 0 {
		r.drop()
		r.done = false
	}
}

func (r *sharedRun) drop() {
	releaseBatches(r.batches)
	r.batches = nil
	r.account.release()
}

// sharedUse is one place where the rows are read, by several Readers.
type sharedUse struct {
	run  *sharedRun
	next atomic.Int64
	open atomic.Int64
}

type sharedReader struct {
	use    *sharedUse
	at     int64
	closed bool
}

func (r *sharedReader) Schema() *arrow.Schema { return r.use.run.plan.Schema() }

// Position puts each batch into a unit of its own.
func (r *sharedReader) Position() int64 { return r.at << columnar.OrdinalShift }

func (r *sharedReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.closed {
		return nil, io.EOF
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	batches, err := r.use.run.rows(ctx)
	if err != nil {
		return nil, err
	}
	r.at = r.use.next.Add(1) - 1
	if r.at >= int64(len(batches)) {
		return nil, io.EOF
	}
	b := batches[r.at]
	b.Retain()
	return b, nil
}

func (r *sharedReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.use.open.Add(-1) == 0 {
		r.use.run.leave()
	}
	return nil
}
