package connector

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/internal/vfs"
)

// Env is what a connector is opened with.
type Env struct {
	// Name is what the statement called the table, stream or sink, for messages.
	Name string
	// Options are those of WITH (…), without "connector" and without what belongs
	// to the query (checkpoint, trigger, watermark and kin).
	Options map[string]string
	// Columns are the declared columns of a table or stream without computed ones,
	// nil if they are to be inferred; for a sink the columns of the rows it will get.
	Columns *arrow.Schema
	// Pinned is what an earlier Discover chose, as the checkpoint kept it.
	Pinned map[string]string
	// Listed is what that Discover handed on in Discovery.Listed, if it was just called.
	Listed any
	// Log is the durable memory of a source.
	Log BatchLog

	// QueryID is the identity a sink binds its output to.
	QueryID string
	// QueryName is how messages call the query, may be "".
	QueryName string
	// Checkpoint is where the query's checkpoint is, for messages.
	Checkpoint string
	// Committed is how many batches the query's checkpoint says are committed: 0 for
	// a new one. A sink that should hold them and does not refuses.
	Committed int64
	// Mode is the output mode of a sink's query.
	Mode OutputMode
	// Kept names the side outputs that a sink is to keep beside its own: "late", "bad".
	Kept []string
	// MemoryLimit is what the query may hold, of which a sink should hold a part; 0 is any
	// number of bytes.
	MemoryLimit int64

	FS       vfs.FS
	Mem      memory.Allocator
	Location *time.Location // session time zone; nil is UTC
	Stdout   io.Writer      // of the console sink
	// Warn is told, once each, what a user should know; nil drops it.
	Warn func(text string)
	// Now and Sleep are the clock; nil is the real one.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

// Warnf warns.
func (e *Env) Warnf(format string, args ...any) {
	if e.Warn != nil {
		e.Warn(fmt.Sprintf(format, args...))
	}
}

// Clock is the time now.
func (e *Env) Clock() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
}

// Wait sleeps for d, or until ctx ends.
func (e *Env) Wait(ctx context.Context, d time.Duration) error {
	if e.Sleep != nil {
		return e.Sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Discovery is what a stream will deliver.
type Discovery struct {
	Schema *arrow.Schema
	// Pinned is to be stored in the checkpoint and given back in Env.Pinned, so that
	// the stream keeps its columns.
	Pinned map[string]string
	// HasMetadata says that the source gives the hidden columns of files.
	HasMetadata bool
	// Listed is for the source that is opened next, in Env.Listed: what was found on the
	// way and need not be looked for again. Nothing keeps it; nil is nothing.
	Listed any
}

// Connector makes tables, sources and sinks. A nil function means it has none. Bad
// options are *OptionError; what makes an output unusable is *RefusedError.
type Connector struct {
	Name string
	Doc  string
	// Table opens a bounded table.
	Table func(ctx context.Context, env Env) (Table, error)
	// Discover finds the columns of a stream without opening it. It returns a
	// *NoFilesError where they cannot be known yet.
	Discover func(ctx context.Context, env Env) (Discovery, error)
	// Source opens a stream; Env.Pinned is what Discover returned, now or at the
	// first start.
	Source func(ctx context.Context, env Env) (Source, error)
	// Sink opens an output.
	Sink func(ctx context.Context, env Env) (Sink, error)
	// CheckSink finds wrong options of an output and touches nothing, so that a script is
	// refused before any of its queries runs; nil: Sink finds them.
	CheckSink func(env Env) error
}

// Registry maps names to connectors, and knows the names of the file formats. It is safe
// for concurrent use.
type Registry struct {
	mu         sync.RWMutex
	connectors []Connector
	formats    []string
}

// Add registers a connector; a name already taken is an error.
func (r *Registry) Add(c Connector) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.connectors, func(o Connector) bool { return strings.EqualFold(o.Name, c.Name) }) {
		return fmt.Errorf("connector %s is already registered", c.Name)
	}
	r.connectors = append(r.connectors, c)
	return nil
}

// Lookup finds a connector by name, in any case. "" is filesystem.
func (r *Registry) Lookup(name string) (Connector, error) {
	if name == "" {
		name = "filesystem"
	}
	for _, c := range r.all() {
		if strings.EqualFold(c.Name, name) {
			return c, nil
		}
	}
	return Connector{}, &OptionError{Key: "connector", Value: name, HasValue: true,
		Reason: "there is no such connector" + columnar.DidYouMean(name, r.Connectors())}
}

func (r *Registry) all() []Connector {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.connectors)
}

// Connectors lists the names of the connectors.
func (r *Registry) Connectors() []string {
	var names []string
	for _, c := range r.all() {
		names = append(names, c.Name)
	}
	return names
}

// AddFormats registers names of file formats.
func (r *Registry) AddFormats(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.formats = append(r.formats, names...)
}

// Formats lists the file formats, for read_csv(…) and kin and for messages.
func (r *Registry) Formats() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.formats)
}

// Clone returns a copy to which a session's own connectors can be added.
func (r *Registry) Clone() *Registry {
	return &Registry{connectors: r.all(), formats: r.Formats()}
}

// Table opens a bounded table of the named connector.
func (r *Registry) Table(ctx context.Context, name string, env Env) (Table, error) {
	c, err := r.Lookup(name)
	if err != nil {
		return nil, err
	}
	if c.Table == nil {
		return nil, cannot(c, "be read as a table", func(c Connector) bool { return c.Table != nil }, r)
	}
	return c.Table(ctx, env)
}

// Discover finds the columns of a stream of the named connector.
func (r *Registry) Discover(ctx context.Context, name string, env Env) (Discovery, error) {
	c, err := r.Lookup(name)
	if err != nil {
		return Discovery{}, err
	}
	if c.Discover == nil {
		return Discovery{}, cannot(c, "be read as a stream", func(c Connector) bool { return c.Source != nil }, r)
	}
	return c.Discover(ctx, env)
}

// Source opens a stream of the named connector.
func (r *Registry) Source(ctx context.Context, name string, env Env) (Source, error) {
	c, err := r.Lookup(name)
	if err != nil {
		return nil, err
	}
	if c.Source == nil {
		return nil, cannot(c, "be read as a stream", func(c Connector) bool { return c.Source != nil }, r)
	}
	return c.Source(ctx, env)
}

// Sink opens an output of the named connector.
func (r *Registry) Sink(ctx context.Context, name string, env Env) (Sink, error) {
	c, err := r.Lookup(name)
	if err != nil {
		return nil, err
	}
	if c.Sink == nil {
		return nil, cannot(c, "be written to", func(c Connector) bool { return c.Sink != nil }, r)
	}
	return c.Sink(ctx, env)
}

// CheckSink finds what is wrong with the options of an output without opening it.
func (r *Registry) CheckSink(name string, env Env) error {
	c, err := r.Lookup(name)
	switch {
	case err != nil:
		return err
	case c.Sink == nil:
		return cannot(c, "be written to", func(c Connector) bool { return c.Sink != nil }, r)
	case c.CheckSink == nil:
		return nil
	}
	return c.CheckSink(env)
}

func cannot(c Connector, what string, can func(Connector) bool, r *Registry) error {
	var others []string
	for _, o := range r.all() {
		if can(o) {
			others = append(others, o.Name)
		}
	}
	return &OptionError{Key: "connector", Value: c.Name, HasValue: true,
		Reason: fmt.Sprintf("%s cannot %s; %s can", c.Name, what, strings.Join(others, ", "))}
}

// Limiter is implemented by Sources whose options bound a batch
// (max_files_per_trigger and kin). The engine passes the bounds to LatestOffset,
// except where one batch is to hold everything.
type Limiter interface{ Limit() Limit }

// Measured is implemented by Sources that tell something of themselves in progress: what
// waits to be read, for instance. Metrics is called after each batch; nil is nothing.
type Measured interface{ Metrics() map[string]string }

// Waiter is implemented by Sources that know, without looking, that something waits to be
// read behind the end of the newest batch: that batch may then be begun while the one
// before it is being published.
type Waiter interface{ Waiting() bool }

// FileHash is an input file and the hash of its content, taken while it was read; "" if it
// was not read whole, or not by this process.
type FileHash struct {
	FileIdentity
	Hash string
}

// Hasher is a FileSet that hashes the files it reads. EachHashed visits those of (start,
// end], in the order of Files, to be stored with the commit; the source forgets the hashes
// when all were visited. It is Files for batches of a million files, too.
type Hasher interface {
	EachHashed(ctx context.Context, start, end Offset, visit func(f FileHash) error) error
}

// Rewriter is implemented by sinks of whole results (output_mode = 'complete').
// NeedsRewrite says that the table the checkpoint believes in is gone: the engine runs
// one more batch, with or without new data, to write it again. LastBatch still counts
// what was committed.
type Rewriter interface{ NeedsRewrite() bool }

// FileTable is implemented by Tables of files. At is the table as it was when Files
// gave these: what a batch logged is what it reads, now and when it is run again.
type FileTable interface {
	Table
	FileSet
	At(files []FileIdentity) Table
}
