package tidemill

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats"
	"github.com/tidemill/tidemill/formats/callback"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// Query is a running streaming query.
type Query = incremental.Query

// Progress reports one micro-batch of a query.
type Progress = incremental.Progress

// Listener is told what a query does.
type Listener = incremental.Listener

// Trigger decides when micro-batches start.
type Trigger = incremental.Trigger

// OutputMode is what of the result is written each batch.
type OutputMode = connector.OutputMode

// The output modes.
const (
	Append   = connector.Append
	Update   = connector.Update
	Complete = connector.Complete
)

// AvailableNow processes what is there at the start, in as many batches as the limits
// ask for, and ends.
func AvailableNow() Trigger { return Trigger{Kind: incremental.AvailableNow} }

// Once processes what is there in one batch and ends.
func Once() Trigger { return Trigger{Kind: incremental.Once} }

// ProcessingTime starts a batch at every multiple of d.
func ProcessingTime(d time.Duration) Trigger {
	return Trigger{Kind: incremental.ProcessingTime, Interval: d}
}

// StreamWriter says where a streaming DataFrame goes and how. It is immutable; each
// method returns a changed copy. What is wrong is reported by Start.
type StreamWriter struct {
	s           *Session
	df          *logical.DataFrame
	name        string
	to          destination
	options     map[string]string // by Option
	partitionBy []string
	checkpoint  string
	mode        OutputMode
	trigger     Trigger
	listener    Listener
}

// destination is what the last of To, ToConnector, ToSink and ForeachBatch said.
type destination struct {
	connector string
	options   map[string]string
	open      func(ctx context.Context, env connector.Env) (connector.Sink, error)
	err       error
}

// WriteStream begins to say where df goes: Parquet files under the path of To, or
// another destination.
func (s *Session) WriteStream(df *logical.DataFrame) *StreamWriter {
	return &StreamWriter{s: s, df: df, to: destination{err: errNowhere}}
}

var errNowhere = logical.Usagef("the query has no destination; call To, ToConnector, ToSink or ForeachBatch")

func (w *StreamWriter) with(change func(*StreamWriter)) *StreamWriter {
	var n StreamWriter
	if w != nil {
		n = *w
	}
	change(&n)
	return &n
}

// To writes files under path. options is the Options of a format package; nil is Parquet.
func (w *StreamWriter) To(path string, options any) *StreamWriter {
	return w.with(func(w *StreamWriter) {
		format, m, err := formats.OptionsOf(options)
		if format == "" {
			format = "parquet"
		}
		if err == nil {
			m["path"], m["format"] = path, format
		}
		w.to = destination{connector: "filesystem", options: m}
		if err != nil {
			w.to.err = logical.Usagef("to: %w", err)
		}
	})
}

// ToConnector writes to any connector, with its options as in WITH (…).
func (w *StreamWriter) ToConnector(name string, options map[string]string) *StreamWriter {
	return w.with(func(w *StreamWriter) {
		m := map[string]string{}
		for k, v := range options {
			m[strings.ToLower(k)] = v
		}
		w.to = destination{connector: name, options: m}
	})
}

// ToSink writes to a sink of the caller's. open is called once at each start, and the
// query closes what it returns; name is what messages and progress call it. Panics and
// errors of the sink name it.
func (w *StreamWriter) ToSink(name string, open func(ctx context.Context, env connector.Env) (connector.Sink, error)) *StreamWriter {
	return w.with(func(w *StreamWriter) {
		w.to = destination{connector: name, open: open}
		switch {
		case name == "":
			w.to.err = logical.Usagef("toSink: the sink has no name")
		case open == nil:
			w.to.err = logical.Usagef("toSink: the function that opens %s is nil", name)
		}
	})
}

// ForeachBatch calls f with the rows of each micro-batch and its id, at least once: a
// batch under way in a crash is given again with the same id and rows, so that f gets
// exactly-once by remembering ids. rows ends when f returns, and f need not read all of
// them.
func (w *StreamWriter) ForeachBatch(f func(ctx context.Context, batchID int64, rows columnar.Reader) error) *StreamWriter {
	if f == nil {
		return w.with(func(w *StreamWriter) { w.to = destination{err: logical.Usagef("foreachBatch: the function is nil")} })
	}
	return w.ToSink("foreachBatch", func(context.Context, connector.Env) (connector.Sink, error) {
		return callback.New(func(ctx context.Context, batchID int64, rows columnar.Reader) error {
			return columnar.Guard("the function of foreachBatch", func() error { return f(ctx, batchID, rows) })
		}), nil
	})
}

// Option sets one more option of the destination or of the query, as in CREATE SINK …
// WITH: target_file_size, for instance. It wins over what To and ToConnector were given.
func (w *StreamWriter) Option(key, value string) *StreamWriter {
	return w.with(func(w *StreamWriter) {
		m := maps.Clone(w.options)
		if m == nil {
			m = map[string]string{}
		}
		m[strings.ToLower(key)] = value
		w.options = m
	})
}

// PartitionBy writes folders key=value by the given columns, which are left out of the
// files.
func (w *StreamWriter) PartitionBy(columns ...string) *StreamWriter {
	return w.with(func(w *StreamWriter) { w.partitionBy = slices.Clone(columns) })
}

// Mode sets the output mode; Append is the default.
func (w *StreamWriter) Mode(m OutputMode) *StreamWriter {
	return w.with(func(w *StreamWriter) { w.mode = m })
}

// Checkpoint is where the query remembers; the default is the sink's path with
// ".checkpoint" added. A query whose sink has no path then remembers nothing beyond its
// end.
func (w *StreamWriter) Checkpoint(dir string) *StreamWriter {
	return w.with(func(w *StreamWriter) { w.checkpoint = dir })
}

// Trigger sets when batches start; the default is as soon as there is something new.
func (w *StreamWriter) Trigger(t Trigger) *StreamWriter {
	return w.with(func(w *StreamWriter) { w.trigger = t })
}

// Name names the query in progress and messages.
func (w *StreamWriter) Name(name string) *StreamWriter {
	return w.with(func(w *StreamWriter) { w.name = name })
}

// Listen sets the one that is told what the query does. Its functions are called from
// the query's goroutine, in order, and must not block.
func (w *StreamWriter) Listen(l Listener) *StreamWriter {
	return w.with(func(w *StreamWriter) { w.listener = l })
}

// Start starts the query, and returns once it holds its checkpoint and output. What
// refuses it is returned at once; what fails later is returned by Query.Wait. The query
// runs until its trigger is exhausted, it is stopped, or ctx ends, which stops it at
// once, as a crash would: the next start recovers.
func (w *StreamWriter) Start(ctx context.Context) (*Query, error) {
	return guarded(ctx, func() (*Query, error) {
		plan, err := w.checked()
		if err != nil {
			return nil, err
		}
		return w.start(ctx, plan)
	})
}

// checked is the plan, once everything said by itself is right.
func (w *StreamWriter) checked() (logical.Node, error) {
	if w == nil || w.s == nil {
		return nil, logical.Usagef("the StreamWriter has no session; make it with Session.WriteStream")
	}
	if err := w.s.made(); err != nil {
		return nil, err
	}
	plan, err := w.df.Plan()
	if err != nil {
		return nil, err
	}
	switch {
	case w.to.err != nil:
		return nil, w.to.err
	case w.mode > Complete:
		return nil, logical.Usagef("%s is no output mode; use Append, Update or Complete", w.mode)
	}
	if err := w.trigger.Check(); err != nil {
		return nil, err
	}
	return plan, checkStreams(plan)
}

func (w *StreamWriter) start(ctx context.Context, plan logical.Node) (*Query, error) {
	d := &logical.SinkDecl{Options: maps.Clone(w.to.options)}
	if d.Options == nil {
		d.Options = map[string]string{}
	}
	maps.Copy(d.Options, w.options)
	if len(w.partitionBy) > 0 {
		d.Options["partition_by"] = strings.Join(w.partitionBy, ",")
	}
	j := &job{session: w.s, name: w.name, mode: w.mode, trigger: w.trigger, openSink: w.to.open}
	if err := j.configure(d, RunOptions{Checkpoint: w.checkpoint}); err != nil {
		return nil, err
	}
	j.connector, j.listener = w.to.connector, w.listener
	if err := w.s.checkApart(checkpointDir(j.checkpoint, j.options["path"]), j.outputs()); err != nil {
		return nil, err
	}
	if j.openSink == nil { // before a checkpoint is made for it
		if err := w.s.connectors.CheckSink(j.connector, j.sinkEnv(plan.Schema())); err != nil {
			return nil, err
		}
	}
	return j.start(ctx, plan)
}

// checkStreams refuses what only a script can do, columns that grow, since the columns of
// a DataFrame are fixed; and two streams of one name, which a checkpoint could not tell
// apart.
func checkStreams(plan logical.Node) (err error) {
	streams := map[string]*logical.Stream{}
	logical.Walk(plan, func(n logical.Node) bool {
		scan, ok := n.(*logical.StreamScan)
		if !ok || err != nil {
			return err == nil
		}
		x := scan.Stream
		if other := streams[x.Name]; other != nil && other != x {
			err = logical.Usagef("stream %s was described twice, and files that landed in between changed its columns; describe it once, or declare them", x.Name)
		}
		streams[x.Name] = x
		if x.Decl != nil && strings.EqualFold(x.Decl.Options["schema_evolution"], "add") {
			err = &connector.OptionError{Key: "schema_evolution", Value: "add", HasValue: true,
				Reason: "the columns of a DataFrame cannot grow while it runs; declare them, or run the query as a script (OpenScript)"}
		}
		return err == nil
	})
	return err
}
