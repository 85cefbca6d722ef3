package tidemill

import (
	"context"
	"maps"
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
// method returns a changed copy.
type StreamWriter struct {
	s          *Session
	df         *logical.DataFrame
	name       string
	connector  string
	options    map[string]string
	checkpoint string
	mode       OutputMode
	trigger    Trigger
	listener   incremental.Listener
	each       func(ctx context.Context, batchID int64, rows columnar.Reader) error
	err        error
}

// WriteStream begins to say where df goes.
func (s *Session) WriteStream(df *logical.DataFrame) *StreamWriter {
	return &StreamWriter{s: s, df: df, connector: "filesystem", options: map[string]string{}}
}

func (w *StreamWriter) with(change func(*StreamWriter)) *StreamWriter {
	n := *w
	n.options = maps.Clone(w.options)
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
		w.connector, w.err = "filesystem", err
		maps.Copy(w.options, m)
		w.options["path"], w.options["format"] = path, format
	})
}

// ToConnector writes to any connector, with its options as in WITH (…).
func (w *StreamWriter) ToConnector(name string, options map[string]string) *StreamWriter {
	return w.with(func(w *StreamWriter) {
		w.connector = name
		maps.Copy(w.options, options)
	})
}

// ForeachBatch calls f with the rows of each micro-batch and its id, at least once: a
// batch under way in a crash is given again with the same id and rows. f must read rows
// to the end or return an error.
func (w *StreamWriter) ForeachBatch(f func(ctx context.Context, batchID int64, rows columnar.Reader) error) *StreamWriter {
	return w.with(func(w *StreamWriter) { w.connector, w.each = "", f })
}

// PartitionBy writes folders key=value by the given columns, which are left out of the
// files.
func (w *StreamWriter) PartitionBy(columns string) *StreamWriter {
	return w.with(func(w *StreamWriter) { w.options["partition_by"] = columns })
}

// Mode sets the output mode; Append is the default.
func (w *StreamWriter) Mode(m OutputMode) *StreamWriter {
	return w.with(func(w *StreamWriter) { w.mode = m })
}

// Checkpoint is where the query remembers; the default is the sink's path with
// ".checkpoint" added, or a temporary directory for sinks without a path.
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

// Listen is told what the query does.
func (w *StreamWriter) Listen(l incremental.Listener) *StreamWriter {
	return w.with(func(w *StreamWriter) { w.listener = l })
}

// Start starts the query. What refuses it is returned at once; what fails later is
// returned by Query.Wait.
func (w *StreamWriter) Start(ctx context.Context) (*Query, error) {
	if w.err != nil {
		return nil, w.err
	}
	plan, err := w.df.Plan()
	if err != nil {
		return nil, err
	}
	j := &job{
		session: w.s, name: w.name, connector: w.connector, options: w.options,
		checkpoint: w.checkpoint, mode: w.mode, trigger: w.trigger, listener: w.listener,
	}
	if w.each != nil {
		j.openSink = func(context.Context, connector.Env) (connector.Sink, error) {
			return callback.New("foreachBatch", w.each), nil
		}
	}
	return j.start(ctx, plan)
}
