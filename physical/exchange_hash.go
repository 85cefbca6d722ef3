package physical

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// Exchange hands rows to its Readers by the hash of keys: equal keys go to the same
// one. Rows of one input Reader keep their order. What a Reader has not fetched yet is
// kept, and reserved from the budget, so Readers may be read one after another.
type Exchange struct {
	unaryPlan
	Keys []expr.Expr
	// Ordered hands each Reader its rows in the order of arrival.
	Ordered bool
	program *eval.Program
}

// NewExchange partitions input by keys, over positions of its columns.
func NewExchange(input Plan, keys ...expr.Expr) (*Exchange, error) {
	program, err := eval.Compile(input.Schema(), keys...)
	if err != nil {
		return nil, err
	}
	return &Exchange{unaryPlan: unaryPlan{input}, Keys: keys, program: program}, nil
}

func (p *Exchange) Schema() *arrow.Schema { return p.Input.Schema() }

// WithChildren partitions another input.
func (p *Exchange) WithChildren(c []Plan) Plan {
	n := *p
	n.Input = c[0]
	return &n
}

func (p *Exchange) String() string {
	ordered := ""
	if p.Ordered {
		ordered = "true"
	}
	return args("Exchange", "hash", list(p.Keys), "ordered", ordered)
}

// Open makes n Readers.
func (p *Exchange) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := openAs(ctx, ec, p.Input, ec.parallel(), p.Ordered || p.program.IsVolatile())
	if err != nil {
		return nil, err
	}
	if n == 1 {
		return []columnar.Reader{Gather(ec, p.Schema(), inputs)}, nil
	}
	s := &exchange{plan: p, ec: ec, inputs: inputs, account: ec.account(p, "exchange")}
	readers := make([]columnar.Reader, n)
	for i := range readers {
		s.queues = append(s.queues, newQueue(0))
		readers[i] = &exchangeReader{shared: s, queue: s.queues[i]}
	}
	s.open.Store(int64(n))
	return readers, nil
}

// exchange is what the Readers of one Open share.
type exchange struct {
	plan   *Exchange
	ec     *ExecContext
	inputs []columnar.Reader
	queues []*queue
	open   atomic.Int64

	mu      sync.Mutex
	crew    *crew
	running atomic.Int64
	account *account // under mu
}

// begin starts a goroutine for each input, once.
func (s *exchange) begin(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crew != nil {
		return
	}
	s.crew = newCrew(ctx)
	s.running.Store(int64(len(s.inputs)))
	for _, in := range s.inputs {
		s.crew.start(func(ctx context.Context) error { return s.pump(ctx, in) })
	}
}

func (s *exchange) pump(ctx context.Context, in columnar.Reader) error {
	env := s.ec.Env()
	to := destinationsPool.Get().(*destinations)
	defer destinationsPool.Put(to)
	for {
		b, err := in.Next(ctx)
		if isEnd(err) {
			break
		}
		if err != nil {
			return err
		}
		env.Begin(b)
		err = s.scatter(ctx, env, b, PositionOf(in), to)
		b.Release()
		if err != nil {
			return err
		}
	}
	err := in.Close()
	if s.running.Add(-1) == 0 {
		for _, q := range s.queues {
			q.end()
		}
	}
	return err
}

// destinations is memory of a goroutine that scatters: the hashes of a batch, and its rows by
// queue.
type destinations struct {
	hashes []uint64
	rows   [][]int32
}

var destinationsPool = sync.Pool{New: func() any { return new(destinations) }}

// find fills d.
func (d *destinations) find(keys []arrow.Array, n, queues int) {
	for len(d.rows) < queues {
		d.rows = append(d.rows, nil)
	}
	d.rows = d.rows[:queues]
	d.hashes = resize(d.hashes, n)
	kernel.Hash(d.hashes, keys, partitionSeed)
	for k, r := range d.rows {
		d.rows[k] = slices.Grow(r[:0], n/len(d.rows)+n/8)
	}
	for i, h := range d.hashes {
		k := h >> 32 * uint64(queues) >> 32
		d.rows[k] = append(d.rows[k], int32(i))
	}
}

// scatter puts the rows of b into the queues.
func (s *exchange) scatter(ctx context.Context, env *eval.Env, b arrow.RecordBatch, position int64, to *destinations) error {
	keys, err := s.plan.program.EvalColumns(env, b)
	if err != nil {
		return err
	}
	defer releaseAll(keys)
	to.find(keys, int(b.NumRows()), len(s.queues))
	for k, r := range to.rows {
		if len(r) == 0 {
			continue
		}
		part := kernel.FilterBatch(env.Mem, b, r)
		size := batchBytes(part)
		if err := s.reserve(size); err != nil {
			part.Release()
			return err
		}
		if err := s.queues[k].takePush(ctx, item{part, position, size}); err != nil {
			return err
		}
	}
	return nil
}

func (s *exchange) reserve(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account.add(n)
}

type exchangeReader struct {
	shared   *exchange
	queue    *queue
	position int64
	closed   bool
}

func (r *exchangeReader) Schema() *arrow.Schema { return r.shared.plan.Schema() }

func (r *exchangeReader) Position() int64 { return r.position }

func (r *exchangeReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.closed {
		return nil, io.EOF
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.shared.begin(ctx)
	x, err := r.queue.pop(ctx, r.shared.crew)
	if err != nil {
		return nil, err
	}
	if err := r.shared.reserve(-x.bytes); err != nil {
		x.batch.Release()
		return nil, err
	}
	r.position = x.position
	return x.batch, nil
}

// Close of the last Reader ends the goroutines.
func (r *exchangeReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	s := r.shared
	if s.open.Add(-1) > 0 {
		return nil
	}
	if s.crew != nil {
		s.crew.stop()
	}
	for _, q := range s.queues {
		q.drop()
	}
	s.account.release()
	return columnar.CloseAll(s.inputs)
}
