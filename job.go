package tidemill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/formats"
	"github.com/tidemill/tidemill/formats/file"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// job is one streaming query about to start: a plan, where it goes, what it remembers.
type job struct {
	session    *Session
	name       string
	connector  string
	options    map[string]string // of the sink's connector
	openSink   func(ctx context.Context, env connector.Env) (connector.Sink, error)
	checkpoint string
	mode       OutputMode
	trigger    Trigger
	goesOn     bool // on_failure = 'continue'
	listener   incremental.Listener
	// keepLate and keepBad write late rows and malformed records beside the output.
	keepLate, keepBad bool
	// starts tells a query that writes from one that is looked at.
	starts bool
	// grown are the pins of streams that new files widened during this run; they go before
	// those of the checkpoint.
	grown map[string]map[string]string
	// told is what it reads that has its columns told by the files.
	told []*logical.SourceDecl
}

// queryOptions are the options of CREATE SINK that are the query's, not the connector's.
var queryOptions = []string{"connector", "output_mode", "checkpoint", "trigger", "query_name", "on_failure", "late_rows", "bad_rows"}

// configure takes the query's options from a sink. What neither the sink nor o says
// stays as it is.
func (j *job) configure(d *logical.SinkDecl, o RunOptions) error {
	j.options = maps.Clone(d.Options)
	j.connector = d.Options["connector"]
	mine := map[string]string{}
	for _, key := range queryOptions {
		if v, ok := j.options[key]; ok && key != "connector" {
			mine[key] = v
		}
		delete(j.options, key)
	}
	var onFailure, late, bad uint8
	err := connector.Decode(mine,
		connector.EnumKey("output_mode", &j.mode, "append", "update", "complete"),
		connector.TextKey("checkpoint", &j.checkpoint),
		connector.FuncKey("trigger", "available-now, once or an interval such as '10 seconds'", func(text string) (err error) {
			j.trigger, err = incremental.ParseTrigger(text, connector.ParseDuration)
			return err
		}),
		connector.TextKey("query_name", &j.name),
		connector.EnumKey("on_failure", &onFailure, "stop", "continue"),
		connector.EnumKey("late_rows", &late, "drop", "keep"),
		connector.EnumKey("bad_rows", &bad, "count", "keep"))
	if err != nil {
		return err
	}
	j.keepLate, j.keepBad = late != 0, bad != 0
	if err := j.checkKept(); err != nil {
		return err
	}
	j.goesOn = onFailure == 1
	if o.Checkpoint != "" {
		j.checkpoint = o.Checkpoint
	}
	if err := connector.CheckLocal("checkpoint", j.checkpoint); err != nil {
		return err
	}
	if o.Trigger != nil {
		j.trigger = *o.Trigger
		if err := j.trigger.Check(); err != nil {
			return err
		}
	}
	if o.Listener != nil {
		j.listener = o.Listener(j.name)
	}
	return nil
}

// checkKept refuses to keep rows beside an output that has no path: where would they go?
// A sink of the caller's own is asked once it is open.
func (j *job) checkKept() error {
	if j.openSink != nil || j.options["path"] != "" {
		return nil
	}
	for _, o := range []struct {
		key  string
		keep bool
	}{{"late_rows", j.keepLate}, {"bad_rows", j.keepBad}} {
		if o.keep {
			return &connector.OptionError{Key: o.key, Value: "keep", HasValue: true,
				Reason: "the sink has no path beside which rows could be kept; write to files, or leave it out: the rows are counted in progress"}
		}
	}
	return nil
}

// checkpointDir is where the query remembers; "" is a temporary place in memory, for
// sinks without a path.
func checkpointDir(stated, sinkPath string) string {
	if stated != "" || sinkPath == "" {
		return connector.CleanPath(stated)
	}
	return strings.TrimRight(connector.CleanPath(sinkPath), "/") + ".checkpoint"
}

// pins reads what the checkpoint keeps of each stream; nil where there is none yet.
func (s *Session) pins(dir string) (map[string]map[string]string, error) {
	if dir == "" {
		return nil, nil
	}
	var plan checkpoint.Plan
	err := checkpoint.Inspect(s.opts.fs, dir, func(v *checkpoint.View) (err error) {
		plan, err = v.Plan()
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, checkpoint.ErrCorrupt) {
		return nil, nil // nothing is pinned; a damaged file is dealt with when it is opened
	}
	if err != nil {
		return nil, err
	}
	pins := map[string]map[string]string{}
	for _, source := range plan.Sources {
		if n := len(source.Schemas); n > 0 {
			pins[strings.ToLower(source.Name)] = source.Schemas[n-1].Options
		}
	}
	return pins, nil
}

// start starts the query.
func (j *job) start(ctx context.Context, plan logical.Node) (*Query, error) {
	if err := j.checkPlaces(); err != nil {
		return nil, err
	}
	j.starts = true
	cfg, err := j.config(ctx, plan)
	if err != nil {
		return nil, err
	}
	q, err := j.session.queries.start(j.name, func() (*Query, error) { return incremental.Start(ctx, cfg) })
	return q, asRefusal(cfg.Checkpoint, err)
}

// checkConstants finds what every batch would fail by.
func (j *job) checkConstants(plan logical.Node) error {
	s, set := j.session, j.session.settings.get()
	return incremental.CheckConstants(incremental.Config{
		Plan: logical.TypedNulls(plan), Mode: j.mode, Registry: s.functions, DisableRules: set.disabled, Location: set.zone, Mem: s.mem,
	})
}

// config is the query as package incremental runs it.
func (j *job) config(ctx context.Context, plan logical.Node) (incremental.Config, error) {
	s, set := j.session, j.session.settings.get()
	dir := checkpointDir(j.checkpoint, j.options["path"])
	if err := j.feedsItself(plan); err != nil {
		return incremental.Config{}, err
	}
	plan, err := j.repin(ctx, logical.TypedNulls(plan), dir)
	if err != nil {
		return incremental.Config{}, err
	}
	fsys := s.opts.fs
	if dir == "" {
		// A sink without a path forgets at exit anyway; so may its query.
		fsys, dir = vfs.NewMem(), "/checkpoint"
	}
	return incremental.Config{
		Name: j.name, Plan: plan, Mode: j.mode, Trigger: j.trigger,
		FS: fsys, Checkpoint: dir, SinkName: j.sinkName(), Settings: j.pinned(), Policy: set.policy,
		KeepLate: j.keepLate, KeepBad: j.keepBad,
		Sink: func(ctx context.Context, o incremental.Output) (connector.Sink, error) {
			return j.open(ctx, o, dir, plan.Schema())
		},
		Registry: s.functions, DisableRules: set.disabled,
		Parallel: int(set.threads), BatchRows: int(set.batchRows), Location: set.zone,
		Budget: set.budget(), Mem: s.mem, Clock: s.opts.clock, Listener: j.listened(), Engine: Version,
	}, nil
}

// feedsItself refuses a query whose output is among its own input: it would never end.
func (j *job) feedsItself(plan logical.Node) (err error) {
	logical.Walk(plan, func(n logical.Node) bool {
		scan, ok := n.(*logical.StreamScan)
		if !ok || scan.Stream.Decl == nil {
			return true
		}
		if out := j.readBack(scan.Stream.Decl); out != "" {
			err = logical.Usagef("the output %s lies in %s, which stream %s reads: the query would feed itself; write elsewhere", out, scan.Stream.Decl.Options["path"], scan.Stream.Name)
		}
		return err == nil
	})
	return err
}

// readBack is an output of the query that a stream would read, "" if there is none.
func (j *job) readBack(d *logical.SourceDecl) string {
	in := d.Options["path"]
	for i, out := range j.outputs() {
		sink := j.options
		if i > 0 { // rows kept beside the output
			sink = map[string]string{"path": out, "format": "parquet"}
		}
		if d.Connector() == "filesystem" && file.ReadsBack(j.session.opts.fs, formats.Files(), d.Options, sink) ||
			d.Connector() != "filesystem" && in != "" && j.session.liesIn(out, in) {
			return out
		}
	}
	return ""
}

// sinkName is how messages call the sink.
func (j *job) sinkName() string {
	if p := j.options["path"]; p != "" {
		return p
	}
	return j.connector
}

// listened is the listener, with the session's warnings where it has none.
func (j *job) listened() incremental.Listener {
	l := j.listener
	if l.Warn == nil {
		l.Warn = j.session.opts.Warn
	}
	return l
}

// pinned are the settings the checkpoint keeps.
func (j *job) pinned() map[string]string {
	set := j.session.settings.get()
	pinned := set.pinned()
	pinned["output_mode"] = j.mode.String()
	options := j.options
	if strings.EqualFold(j.connector, "filesystem") || j.connector == "" {
		options = file.PinnedOptions(formats.Files(), options)
	}
	for _, key := range []string{"path", "format", "partition_by"} {
		if v := options[key]; v != "" {
			pinned["sink_"+key] = v
		}
	}
	return pinned
}

// open opens the sink.
func (j *job) open(ctx context.Context, o incremental.Output, dir string, schema *logical.Schema) (connector.Sink, error) {
	s := j.session
	env := j.sinkEnv(schema)
	env.QueryID, env.Checkpoint, env.Committed = o.QueryID, dir, o.Committed
	if j.openSink != nil {
		return connector.GuardSink(j.connector, func() (connector.Sink, error) { return j.openSink(ctx, env) })
	}
	sink, err := s.connectors.Sink(ctx, j.connector, env)
	if err != nil || !j.starts {
		return sink, err
	}
	if err := j.checkMade(ctx, sink, o.Committed); err != nil {
		return nil, errors.Join(err, sink.Close())
	}
	return sink, nil
}

// sinkEnv is what the sink is opened with, but for what its checkpoint knows.
func (j *job) sinkEnv(schema *logical.Schema) connector.Env {
	s := j.session
	var kept []string
	if j.keepLate {
		kept = append(kept, "late")
	}
	if j.keepBad {
		kept = append(kept, "bad")
	}
	return connector.Env{
		Name: j.name, Options: maps.Clone(j.options), Kept: kept, Columns: schema.Arrow(), QueryName: j.name, Mode: j.mode, MemoryLimit: s.settings.get().memoryLimit,
		FS: s.opts.fs, Mem: s.mem, Location: s.Location(), Stdout: s.opts.Stdout, Warn: j.listened().Warn,
	}
}

// repin gives the streams of a plan the columns their checkpoint keeps: files that
// landed since the first start must not change them.
func (j *job) repin(ctx context.Context, plan logical.Node, dir string) (logical.Node, error) {
	pins, err := j.session.pins(dir)
	if err != nil {
		return nil, asRefusal(dir, err)
	}
	if pins == nil {
		pins = map[string]map[string]string{}
	}
	maps.Copy(pins, j.grown)
	return logical.Transform(plan, func(n logical.Node) (logical.Node, error) {
		scan, ok := n.(*logical.StreamScan)
		if !ok {
			return n, nil
		}
		pin := pins[strings.ToLower(scan.Stream.Name)]
		if pin == nil || maps.Equal(pin, scan.Stream.Pinned) {
			return n, nil
		}
		pinned, err := j.session.resolver(pins).Stream(ctx, scan.Stream.Decl)
		if err != nil {
			return nil, err
		}
		if !pinned.Schema.Equal(scan.Stream.Schema) {
			return nil, &connector.RefusedError{Path: dir,
				Reason: fmt.Sprintf("the columns of stream %s are not those the checkpoint keeps", scan.Stream.Name),
				Remedy: "declare the columns"}
		}
		m := *scan
		m.Stream = pinned
		return &m, nil
	})
}

// asRefusal makes an error of the filesystem, met on start before anything ran, a
// refusal that names the folder.
func asRefusal(dir string, err error) error {
	var pathError *fs.PathError
	if err == nil || KindOf(err) != FailedError || !errors.As(err, &pathError) {
		return err
	}
	return &connector.RefusedError{Path: dir, Reason: "the query cannot start", Err: err}
}
