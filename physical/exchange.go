package physical

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// crew is a group of goroutines that work on one thing: the first error of one stops
// all. Nobody leaves a crew behind: stop or wait ends it.
type crew struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

func newCrew(ctx context.Context) *crew {
	c := &crew{}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// start runs f in a goroutine, with a context that ends when the crew does.
func (c *crew) start(f func(ctx context.Context) error) {
	c.wg.Add(1)
	columnar.Go(func() error { return f(c.ctx) }, func(err error) {
		defer c.wg.Done()
		if err != nil {
			c.cancel(err)
		}
	})
}

// failed is closed when the crew has failed or was stopped.
func (c *crew) failed() <-chan struct{} { return c.ctx.Done() }

// err is the first error, once the crew has failed.
func (c *crew) err() error { return context.Cause(c.ctx) }

// wait returns when all have ended: the first error, or nil.
func (c *crew) wait() error {
	c.wg.Wait()
	err := c.err()
	c.cancel(nil)
	return err
}

// stop ends the crew early and waits for it.
func (c *crew) stop() {
	c.cancel(context.Canceled)
	c.wg.Wait()
}

// inParallel calls f for 0 … n-1, each in its own goroutine (n = 1: in this one), and
// returns the first error once all have ended.
func inParallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	if n == 1 {
		return f(ctx, 0)
	}
	c := newCrew(ctx)
	for i := range n {
		c.start(func(ctx context.Context) error { return f(ctx, i) })
	}
	return c.wait()
}

// item is a batch on its way between goroutines.
type item struct {
	batch    arrow.RecordBatch
	position int64
	bytes    int64
}

// queue hands batches from one or more goroutines to one. It holds at most limit
// bytes (0: any number), but always takes one batch. Batches left in it are released
// by drop.
type queue struct {
	mu       sync.Mutex
	items    []item
	bytes    int64
	limit    int64
	ended    bool
	notEmpty chan struct{}
	notFull  chan struct{}
}

func newQueue(limit int64) *queue {
	return &queue{limit: limit, notEmpty: make(chan struct{}, 1), notFull: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// takePush puts x into the queue, waiting for room, and takes its batch over, also
// on error.
func (q *queue) takePush(ctx context.Context, x item) error {
	for {
		q.mu.Lock()
		if q.limit == 0 || len(q.items) == 0 || q.bytes < q.limit {
			q.items = append(q.items, x)
			q.bytes += x.bytes
			q.mu.Unlock()
			signal(q.notEmpty)
			return nil
		}
		q.mu.Unlock()
		select {
		case <-q.notFull:
		case <-ctx.Done():
			x.batch.Release()
			return context.Cause(ctx)
		}
	}
}

// end says that nothing more will come.
func (q *queue) end() {
	q.mu.Lock()
	q.ended = true
	q.mu.Unlock()
	signal(q.notEmpty)
}

// pop takes the next batch; io.EOF after the end. It fails with c, or with ctx.
func (q *queue) pop(ctx context.Context, c *crew) (item, error) {
	for {
		q.mu.Lock()
		if len(q.items) > 0 {
			x := q.items[0]
			q.items[0] = item{}
			q.items = q.items[1:]
			q.bytes -= x.bytes
			q.mu.Unlock()
			signal(q.notFull)
			return x, nil
		}
		ended := q.ended
		q.mu.Unlock()
		if ended {
			return item{}, io.EOF
		}
		select {
		case <-q.notEmpty:
		case <-ctx.Done():
			return item{}, ctx.Err()
		case <-c.failed():
			return item{}, c.err()
		}
	}
}

// drop releases what is left. Nobody pushes any more.
func (q *queue) drop() {
	for _, x := range q.items {
		x.batch.Release()
	}
	q.items = nil
}

// gatherBytes is how far one input of a gather may run ahead of the others, where no memory
// limit says less.
const gatherBytes = 32 << 20

// Gather reads inputs, each in a goroutine of its own, and merges their batches by
// position: the result has the order one Reader would have had. It owns the inputs.
// One input is returned as it is.
func Gather(ec *ExecContext, schema *arrow.Schema, inputs []columnar.Reader) columnar.Reader {
	if len(inputs) == 1 {
		return inputs[0]
	}
	return &gatherReader{schema: schema, inputs: inputs, ahead: ec.aheadBytes()}
}

type gatherReader struct {
	schema   *arrow.Schema
	inputs   []columnar.Reader
	ahead    int64 // bytes that one input may run ahead
	crew     *crew
	queues   []*queue
	heads    []item // batch nil: to be fetched
	ended    []bool
	position int64
}

func (r *gatherReader) Schema() *arrow.Schema { return r.schema }

func (r *gatherReader) Position() int64 { return r.position }

func (r *gatherReader) start(ctx context.Context) {
	r.crew = newCrew(ctx)
	r.heads = make([]item, len(r.inputs))
	r.ended = make([]bool, len(r.inputs))
	for _, in := range r.inputs {
		q := newQueue(r.ahead)
		r.queues = append(r.queues, q)
		r.crew.start(func(ctx context.Context) error { return pump(ctx, in, q) })
	}
}

// pump moves all batches of in to q.
func pump(ctx context.Context, in columnar.Reader, q *queue) error {
	for {
		b, err := in.Next(ctx)
		if errors.Is(err, io.EOF) {
			err = in.Close()
			q.end()
			return err
		}
		if err != nil {
			return err
		}
		if err := q.takePush(ctx, item{batch: b, position: PositionOf(in), bytes: batchBytes(b)}); err != nil {
			return err
		}
	}
}

func (r *gatherReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.inputs == nil {
		return nil, io.EOF
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.crew == nil {
		r.start(ctx)
	}
	best := -1
	for i := range r.heads {
		if r.heads[i].batch == nil && !r.ended[i] {
			x, err := r.queues[i].pop(ctx, r.crew)
			if errors.Is(err, io.EOF) {
				r.ended[i] = true
				continue
			}
			if err != nil {
				return nil, err
			}
			r.heads[i] = x
		}
		if r.heads[i].batch != nil && (best < 0 || r.heads[i].position < r.heads[best].position) {
			best = i
		}
	}
	if best < 0 {
		return nil, r.finish()
	}
	x := r.heads[best]
	r.heads[best] = item{}
	r.position = x.position
	return x.batch, nil
}

// finish is the end: io.EOF, or an error of closing the inputs.
func (r *gatherReader) finish() error {
	if err := r.crew.wait(); err != nil {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	return io.EOF
}

func (r *gatherReader) Close() error {
	if r.inputs == nil {
		return nil
	}
	if r.crew != nil {
		r.crew.stop()
		for i := range r.heads {
			if r.heads[i].batch != nil {
				r.heads[i].batch.Release()
			}
		}
		for _, q := range r.queues {
			q.drop()
		}
	}
	err := columnar.CloseAll(r.inputs)
	r.inputs = nil
	return err
}
