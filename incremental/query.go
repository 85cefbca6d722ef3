package incremental

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// Config is one streaming query. FS, Checkpoint, Plan, Sink and Registry are
// required; the other fields have useful zero values.
type Config struct {
	Name string
	// Plan is bound but not optimized.
	Plan    logical.Node
	Mode    connector.OutputMode
	Trigger Trigger
	FS      vfs.FS
	// Checkpoint is the directory that holds everything a restart needs.
	Checkpoint string
	// ID is the query id of a new checkpoint; empty: a random one.
	ID string
	// Sink opens the output.
	Sink     func(ctx context.Context, o Output) (connector.Sink, error)
	SinkName string // for messages and progress
	// Settings are those a checkpoint pins: another value at a restart is refused.
	Settings map[string]string
	// KeepLate has late rows written beside the output, which must be a
	// connector.SideKeeper; KeepBad malformed records.
	KeepLate, KeepBad bool
	Policy            WatermarkPolicy
	Registry          *function.Registry
	// DisableRules leaves optimizer rules out.
	DisableRules []string

	Parallel  int // goroutines per stage; 0: GOMAXPROCS
	BatchRows int
	Location  *time.Location // session time zone; nil: UTC
	Budget    *columnar.Budget
	Mem       memory.Allocator

	Clock    Clock
	Listener Listener
	Engine   string // version, for the checkpoint's metadata
	// Retain is how many batches keep their own log files, 0 for 100; older ones are
	// folded into history FoldEvery at a time, 0 for 50.
	Retain    int
	FoldEvery int
	// NamedInputs is how many files the commit of a batch names at most, 0 for 10,000; of a
	// batch of more it has their hashes alone.
	NamedInputs int
	Snapshots   checkpoint.SnapshotPolicy
	// InlineSnapshots joins state files within the batch, not in the background: for
	// tests that count calls.
	InlineSnapshots bool
	// Poll is how often sources are asked when there was nothing new; 0: 100 ms.
	Poll time.Duration
}

// Output is what a sink must know of the query that opens it.
type Output struct {
	QueryID string
	// Committed is how many batches the checkpoint says are committed; 0 for a new one.
	Committed int64
}

// Query is a running streaming query: StreamExecution. Its methods are safe for
// concurrent use.
type Query struct {
	name, id, runID string

	stop     chan struct{} // closed: end after the running batch
	stopOnce sync.Once
	cancel   context.CancelFunc // ends at once
	done     chan struct{}

	mu       sync.Mutex
	err      error
	status   Status
	recent   []Progress
	idleAt   int64         // number of times the loop found nothing to do
	idleWake chan struct{} // closed and replaced when idleAt grows
}

// Status says what a query is doing.
type Status struct {
	Message         string `json:"message"`
	IsDataAvailable bool   `json:"isDataAvailable"`
	IsTriggerActive bool   `json:"isTriggerActive"`
}

// recentProgress is how many progress reports a Query keeps.
const recentProgress = 100

// Start opens the checkpoint, recovers, and runs the query in the background. What
// refuses the query (its shape, the checkpoint, the output) is returned at once. The
// query outlives ctx only until ctx ends: that stops it as a kill would.
func Start(ctx context.Context, cfg Config) (*Query, error) {
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithCancel(ctx)
	x, err := open(ctx, cfg)
	if err != nil {
		cancel()
		return nil, err
	}
	q := newQuery(cfg, x.dir.Metadata().ID, uuid.NewString(), cancel)
	x.q = q
	err = guarded(func() error {
		cfg.Listener.started(q.id, q.runID, q.name)
		return nil
	})
	if err != nil {
		cancel()
		return nil, errors.Join(err, x.close())
	}
	columnar.Go(func() error { return x.guardedLoop(ctx) }, func(err error) { q.ended(x, err) })
	return q, nil
}

func newQuery(cfg Config, id, runID string, cancel context.CancelFunc) *Query {
	return &Query{
		name: cfg.Name, id: id, runID: runID,
		stop: make(chan struct{}), cancel: cancel, done: make(chan struct{}),
		idleWake: make(chan struct{}),
		status:   Status{Message: "Initializing sources"},
	}
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = SystemClock{}
	}
	if c.Mem == nil {
		c.Mem = columnar.NewPool()
	}
	if c.Poll == 0 {
		c.Poll = 100 * time.Millisecond
	}
	if c.BatchRows == 0 {
		c.BatchRows = columnar.DefaultBatchRows
	}
	if c.NamedInputs == 0 {
		c.NamedInputs = manyInputs
	}
	return c
}

// ended closes what the query held and tells everyone that err ended it.
func (q *Query) ended(x *streamExecution, err error) {
	if closeErr := guarded(x.close); err == nil {
		err = closeErr
	}
	q.setErr(err)
	told := guarded(func() error {
		x.cfg.Listener.terminated(err)
		return nil
	})
	if told != nil {
		q.setErr(errors.Join(err, told))
	}
	q.cancel()
	close(q.done)
}

func (q *Query) setErr(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
	q.status = Status{Message: "Stopped"}
	if err != nil {
		q.status.Message = "Terminated with exception: " + err.Error()
	}
}

var errNoQuery = logical.Usagef("the Query is nil; Start returns one that runs")

// orEnded is q, or a query that has ended by errNoQuery for one that was never started.
func (q *Query) orEnded() *Query {
	if q != nil && q.done != nil {
		return q
	}
	none := newQuery(Config{}, "", "", func() {})
	none.setErr(errNoQuery)
	close(none.done)
	return none
}

// ID is the query's identity, the same over restarts; RunID that of this run.
func (q *Query) ID() string    { return q.orEnded().id }
func (q *Query) RunID() string { return q.orEnded().runID }
func (q *Query) Name() string  { return q.orEnded().name }

// Done is closed when the query has ended.
func (q *Query) Done() <-chan struct{} { return q.orEnded().done }

// Wait returns when the query has ended, with what ended it: nil after Stop or an
// exhausted trigger. If ctx ends before, it returns the context's error and the query
// goes on.
func (q *Query) Wait(ctx context.Context) error {
	q = q.orEnded()
	if ctx == nil {
		return errNoContext
	}
	select {
	case <-q.done:
		return q.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Err is what ended the query; nil while it runs.
func (q *Query) Err() error {
	q = q.orEnded()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Stop lets the running batch finish and commit, then ends the query; it returns when
// that is done, or with ctx's error, having ended the query at once.
func (q *Query) Stop(ctx context.Context) error {
	q = q.orEnded()
	if ctx == nil {
		return errNoContext
	}
	q.RequestStop()
	select {
	case <-q.done:
		return q.Err()
	case <-ctx.Done():
		q.Kill()
		<-q.done
		return ctx.Err()
	}
}

// RequestStop is Stop without waiting.
func (q *Query) RequestStop() {
	q = q.orEnded()
	q.stopOnce.Do(func() { close(q.stop) })
}

// Kill ends the query in the middle of whatever it does; the next start recovers.
func (q *Query) Kill() { q.orEnded().cancel() }

// Status says what the query is doing.
func (q *Query) Status() Status {
	q = q.orEnded()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.status
}

// LastProgress is the newest progress report; ok is false before the first batch.
func (q *Query) LastProgress() (p Progress, ok bool) {
	q = q.orEnded()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.recent) == 0 {
		return Progress{}, false
	}
	return q.recent[len(q.recent)-1], true
}

// RecentProgress is the newest progress reports, at most 100, oldest first.
func (q *Query) RecentProgress() []Progress {
	q = q.orEnded()
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]Progress(nil), q.recent...)
}

var errNoContext = logical.Usagef("the context is nil; use context.Background()")

// ErrStopped is of a query that ended before it did what was asked of it.
var ErrStopped = errors.New("the query has stopped")

// ProcessAllAvailable returns when everything that was there at the call has been
// processed and committed, closing batches included. If the query ends before, it returns
// what ended it; ErrStopped after Stop. A query whose trigger is exhausted has processed
// what was there.
func (q *Query) ProcessAllAvailable(ctx context.Context) error {
	q = q.orEnded()
	if ctx == nil {
		return errNoContext
	}
	q.mu.Lock()
	// Two idle turns: the one under way may have looked before the call.
	want := q.idleAt + 2
	q.mu.Unlock()
	for {
		q.mu.Lock()
		reached, wake := q.idleAt >= want, q.idleWake
		q.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-wake:
		case <-q.done:
			if err := q.Err(); err != nil {
				return err
			}
			select {
			case <-q.stop:
				return ErrStopped
			default:
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (q *Query) idle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.idleAt++
	close(q.idleWake)
	q.idleWake = make(chan struct{})
}

func (q *Query) setStatus(message string, data, active bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.status = Status{Message: message, IsDataAvailable: data, IsTriggerActive: active}
}

func (q *Query) report(p Progress) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.recent = append(q.recent, p)
	if len(q.recent) > recentProgress {
		q.recent = q.recent[1:]
	}
}

// BatchError says in which batch of which query something went wrong.
type BatchError struct {
	Query string
	Batch int64
	Err   error
}

func (e *BatchError) Error() string {
	if e.Query == "" {
		return fmt.Sprintf("batch %d: %v", e.Batch, e.Err)
	}
	return fmt.Sprintf("query %s, batch %d: %v", e.Query, e.Batch, e.Err)
}

func (e *BatchError) Unwrap() error { return e.Err }

// errStopped ends the loop in an orderly way.
var errStopped = errors.New("stopped")
