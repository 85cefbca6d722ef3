package memory

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// Result is what queries wrote under one name. It outlives them, within the process.
// It is safe for concurrent use.
type Result struct {
	mu     sync.Mutex
	schema *arrow.Schema
	query  string
	last   int64
	// batches is what each micro-batch brought, in order; of a query in complete mode
	// the newest only.
	batches []Batch
}

// Batch is what one micro-batch brought.
type Batch struct {
	ID   int64
	Mode connector.OutputMode
	Rows []arrow.RecordBatch
}

// Schema is the columns of the rows, nil if no batch came yet.
func (r *Result) Schema() *arrow.Schema {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.schema
}

// Batches are the micro-batches, to be released by the caller with Release.
func (r *Result) Batches() []Batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.batches)
	for _, b := range out {
		retainAll(b.Rows)
	}
	return out
}

// Release gives back the rows of b.
func (b Batch) Release() { releaseAll(b.Rows) }

// Table is the rows as a table: all that were appended or updated, or the newest whole
// result. ok is false if no batch came yet. The caller releases it.
func (r *Result) Table() (t *Table, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.schema == nil {
		return nil, false
	}
	var rows []arrow.RecordBatch
	for _, b := range r.batches {
		rows = append(rows, b.Rows...)
	}
	t, err := NewTable(r.schema, rows...)
	return t, err == nil
}

// Clear gives back all rows and forgets which query wrote them.
func (r *Result) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
}

func (r *Result) clear() {
	for _, b := range r.batches {
		b.Release()
	}
	r.batches, r.schema, r.query, r.last = nil, nil, "", -1
}

// Sink writes into a Result. Of a query that wrote to it before, in this process, it
// knows the last batch; another query begins with an empty Result.
type Sink struct {
	result *Result
	known  bool
}

var _ connector.Sink = (*Sink)(nil)

// NewSink opens r for a query.
func NewSink(r *Result, queryID string) *Sink {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.query == queryID && queryID != ""
	if !known {
		r.clear()
		r.query = queryID
	}
	return &Sink{result: r, known: known}
}

// NewResult makes an empty Result.
func NewResult() *Result { return &Result{last: -1} }

// LastBatch implements connector.Sink. A sink that began empty cannot know what a
// process before this one was given.
func (s *Sink) LastBatch(context.Context) (int64, bool, error) {
	s.result.mu.Lock()
	defer s.result.mu.Unlock()
	return s.result.last, s.known || s.result.last >= 0, nil
}

// Description implements connector.Describer.
func (s *Sink) Description() string { return "MemorySink" }

// Recover implements connector.Sink: publishing cannot stop half-way.
func (s *Sink) Recover(context.Context) (connector.Staged, error) { return nil, nil }

// Close implements connector.Sink; the rows stay in the Result.
func (s *Sink) Close() error { return nil }

// Stage implements connector.Sink.
func (s *Sink) Stage(ctx context.Context, b connector.SinkBatch) (connector.Staged, error) {
	rows, err := columnar.Drain(ctx, b.Data)
	if err != nil {
		return nil, err
	}
	return &staged{result: s.result, schema: b.Data.Schema(), batch: Batch{b.ID, b.Mode, rows}}, nil
}

type staged struct {
	result *Result
	schema *arrow.Schema
	batch  Batch
	rows   int64
	done   bool
}

// Publish implements connector.Staged.
func (st *staged) Publish(context.Context) error {
	if st.done {
		return nil
	}
	st.done = true
	st.rows = count(st.batch.Rows)
	r := st.result
	r.mu.Lock()
	defer r.mu.Unlock()
	if st.batch.ID <= r.last {
		st.batch.Release()
		return nil
	}
	if st.batch.Mode == connector.Complete {
		for _, b := range r.batches {
			b.Release()
		}
		r.batches = nil
	}
	r.schema, r.last = st.schema, st.batch.ID
	r.batches = append(r.batches, st.batch)
	return nil
}

// Discard implements connector.Staged.
func (st *staged) Discard() error {
	if !st.done {
		st.done = true
		st.rows = count(st.batch.Rows)
		st.batch.Release()
	}
	return nil
}

// Rows implements connector.Staged.
func (st *staged) Rows() int64 {
	if st.done {
		return st.rows
	}
	return count(st.batch.Rows)
}

func count(batches []arrow.RecordBatch) int64 {
	rows := int64(0)
	for _, b := range batches {
		rows += b.NumRows()
	}
	return rows
}

func retainAll(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Retain()
	}
}

func releaseAll(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// Store holds the Results and Streams of a session by name, in any case. It is safe
// for concurrent use.
type Store struct {
	mu      sync.Mutex
	results map[string]*Result
	streams map[string]*Stream
}

// NewStore makes an empty Store.
func NewStore() *Store {
	return &Store{results: map[string]*Result{}, streams: map[string]*Stream{}}
}

// Result is the Result of a name, made if it is not there.
func (s *Store) Result(name string) *Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.ToLower(name)
	if s.results[key] == nil {
		s.results[key] = NewResult()
	}
	return s.results[key]
}

// AddStream names a stream; one of that name is replaced.
func (s *Store) AddStream(name string, stream *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[strings.ToLower(name)] = stream
}

// Connector is the connector memory over a store: a sink writes the Result of the
// query's name (or of option name), a table reads it, a source is a Stream of that
// name.
func Connector(store *Store) connector.Connector {
	name := func(env connector.Env) (string, error) {
		n := env.QueryName
		if n == "" {
			n = env.Name
		}
		err := connector.Decode(env.Options, connector.TextKey("name", &n))
		return n, err
	}
	find := func(env connector.Env) (*Stream, error) {
		n, err := name(env)
		if err != nil {
			return nil, err
		}
		store.mu.Lock()
		defer store.mu.Unlock()
		if s := store.streams[strings.ToLower(n)]; s != nil {
			return s, nil
		}
		return nil, &connector.OptionError{Key: "name", Value: n, HasValue: true, Reason: "there is no stream of that name in memory"}
	}
	return connector.Connector{
		Name: "memory",
		Doc:  "rows in the process",
		Table: func(_ context.Context, env connector.Env) (connector.Table, error) {
			n, err := name(env)
			if err != nil {
				return nil, err
			}
			t, ok := store.Result(n).Table()
			if !ok {
				return nil, &connector.OptionError{Key: "name", Value: n, HasValue: true, Reason: "no query has written rows under that name yet"}
			}
			return t, nil
		},
		Discover: func(_ context.Context, env connector.Env) (connector.Discovery, error) {
			s, err := find(env)
			if err != nil {
				return connector.Discovery{}, err
			}
			return connector.Discovery{Schema: s.schema}, nil
		},
		Source: func(_ context.Context, env connector.Env) (connector.Source, error) { return find(env) },
		Sink: func(_ context.Context, env connector.Env) (connector.Sink, error) {
			n, err := name(env)
			if err != nil {
				return nil, err
			}
			return NewSink(store.Result(n), env.QueryID), nil
		},
	}
}
