package tidemill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/sql"
	"github.com/tidemill/tidemill/logical/sql/ast"
	"github.com/tidemill/tidemill/physical/eval"
)

// RunOptions change how a script is run.
type RunOptions struct {
	// Trigger overrides those of the sinks.
	Trigger *Trigger
	// Checkpoint overrides that of the one query of the script.
	Checkpoint string
	// Settings are applied after each SET of the script: they win.
	Settings map[string]string
	// Listener makes the listener of one query, by its name; may be nil.
	Listener func(query string) incremental.Listener
}

// Script is a file of SQL whose INSERTs run as streaming queries.
type Script struct {
	s         *Session
	file, src string
	stmts     []ast.Statement
	o         RunOptions
	inserts   []*insert
	started   *atomic.Bool // shared by copies
}

// insert is one INSERT INTO of a script.
type insert struct {
	position int // in stmts
	sink     *logical.SinkDecl
	job      *job // as its sink says it, without a plan
	// repeats and goesOn are what its trigger and on_failure say.
	repeats, goesOn bool
	name            string
	path            string
	checkpoint      string
	outputs         []string  // directories of files that it writes
	after           []*insert // earlier ones whose output it reads
	// grown are the columns of streams that new files widened during this run.
	grown map[string]map[string]string
	done  chan struct{} // closed when it has ended
	err   error
}

// OpenScript parses a script and checks everything that can be checked before
// anything runs: names, types, options, the shape of every query. file is what errors
// call the text. The session is not changed: what the script declares and sets is its
// own.
func (s *Session) OpenScript(ctx context.Context, file, src string, o RunOptions) (*Script, error) {
	return acting(ctx, s, func() (*Script, error) { return s.openScript(ctx, file, src, o) })
}

func (s *Session) openScript(ctx context.Context, file, src string, o RunOptions) (*Script, error) {
	stmts, err := sql.Parse(src)
	if err != nil {
		return nil, inFile(err, file)
	}
	sc := &Script{s: s, file: file, src: src, stmts: stmts, o: o, started: &atomic.Bool{}}
	for i, st := range stmts {
		if _, ok := st.(*ast.Insert); !ok {
			continue
		}
		if err := sc.addInsert(ctx, i); err != nil {
			return nil, err
		}
	}
	switch {
	case len(sc.inserts) == 0:
		return nil, logical.Usagef("%s has no INSERT INTO; nothing to run", file)
	case o.Checkpoint != "" && len(sc.inserts) > 1:
		return nil, logical.Usagef("--checkpoint names one directory, but %s has %d INSERTs; use the checkpoint option of each sink", file, len(sc.inserts))
	}
	if err := sc.checkCheckpoints(); err != nil {
		return nil, err
	}
	feeds := make([]feed, len(sc.inserts))
	for i, in := range sc.inserts {
		feeds[i].in = in
		feeds[i].job, feeds[i].plan, feeds[i].err = sc.plan(ctx, in)
	}
	if err := sc.checkCycles(ctx, feeds); err != nil {
		return nil, err
	}
	for _, f := range feeds {
		if err := f.check(); err != nil {
			return nil, err
		}
	}
	return sc, nil
}

// check refuses an INSERT that its start would refuse. One that reads what an earlier one
// writes, by columns that its files tell, is left to its start: they may not be there yet,
// or be those of an older query.
func (f feed) check() error {
	err := f.err
	if err == nil {
		err = f.job.feedsItself(f.plan)
	}
	if err == nil || isWaiting(err) {
		return nil
	}
	for _, earlier := range f.in.after {
		if f.job != nil && slices.ContainsFunc(f.job.told, earlier.feeds) {
			return nil
		}
	}
	return err
}

// checkCheckpoints refuses two INSERTs that would remember in one checkpoint.
func (sc *Script) checkCheckpoints() error {
	checkpoints := map[string]string{}
	resolved := func(p string) string { return vfs.Resolve(sc.s.opts.fs, connector.CleanPath(p)) }
	for _, in := range sc.inserts {
		if in.checkpoint != "" {
			key := resolved(in.checkpoint)
			if other, ok := checkpoints[key]; ok {
				return logical.Usagef("%s: the INSERTs into %s and %s have one checkpoint, %s; give each its own", sc.file, other, in.sink.Name, path.Clean(in.checkpoint))
			}
			checkpoints[key] = in.sink.Name
		}
	}
	return nil
}

// checkBeside refuses two INSERTs of which one writes where the other does, or below.
func (sc *Script) checkBeside(earlier, in *insert) error {
	for _, one := range earlier.written() {
		for _, other := range in.written() {
			below, above := sc.s.liesIn(other, one), sc.s.liesIn(one, other)
			switch {
			case below && above:
				return logical.Usagef("%s: the INSERTs into %s and %s write to one output, %s; give each a path of its own, or join them with UNION ALL", sc.file, earlier.sink.Name, in.sink.Name, path.Clean(other))
			case below:
				return sc.nested(in, earlier, other, one)
			case above:
				return sc.nested(earlier, in, one, other)
			}
		}
	}
	return nil
}

func (sc *Script) nested(inner, outer *insert, below, above string) error {
	return logical.Usagef("%s: the output %s of the INSERT into %s lies in %s, which the INSERT into %s writes, and whoever reads that by a pattern would take the rows of both; give each a path of its own",
		sc.file, path.Clean(below), inner.sink.Name, path.Clean(above), outer.sink.Name)
}

// written are the places that in writes to.
func (in *insert) written() []string {
	if in.outputs == nil && in.path != "" { // a connector of the user's
		return []string{in.path}
	}
	return in.outputs
}

// inFile names the file in errors of the parser.
func inFile(err error, file string) error {
	var one *sql.Error
	var all sql.ErrorList
	switch {
	case errors.As(err, &all):
		for _, e := range all {
			e.File = file
		}
	case errors.As(err, &one):
		one.File = file
	}
	return err
}

// isWaiting says whether a query cannot be planned yet because its stream has neither
// columns nor files.
func isWaiting(err error) bool {
	var none *connector.NoFilesError
	return errors.As(err, &none) && none.Stream != ""
}

// addInsert notes an INSERT, its sink and which earlier outputs it reads.
func (sc *Script) addInsert(ctx context.Context, position int) error {
	in := &insert{position: position, done: make(chan struct{})}
	p, _, err := sc.prepare(ctx, position, nil)
	if err != nil {
		return err
	}
	target := sc.stmts[position].(*ast.Insert).Sink.Text
	sink, ok := p.Catalog.Sink(target)
	if !ok {
		_, err := p.Plan(ctx, sc.src, sc.stmts[position]) // says so, with its place
		if err == nil {
			err = fmt.Errorf("bug: sink %s is unknown", target)
		}
		return err
	}
	j := &job{session: sc.s, name: sink.Name}
	if err := j.configure(sink, sc.o); err != nil {
		return sc.place(in, err)
	}
	in.sink, in.job, in.path, in.name = sink, j, sink.Options["path"], j.name
	in.checkpoint = checkpointDir(j.checkpoint, j.options["path"])
	in.outputs = j.outputs()
	for _, earlier := range sc.inserts {
		if err := sc.checkBeside(earlier, in); err != nil {
			return err
		}
	}
	if err := sc.checkApart(in); err != nil {
		return sc.place(in, err)
	}
	if err := j.checkPlaces(); err != nil {
		return sc.place(in, err)
	}
	in.repeats, in.goesOn = j.trigger.Repeats(), j.goesOn
	in.after = sc.readsOutputsOf(p.Catalog)
	sc.inserts = append(sc.inserts, in)
	return nil
}

// checkApart refuses an INSERT whose checkpoint and files, or those of an earlier one, lie
// in each other.
func (sc *Script) checkApart(in *insert) error {
	if err := sc.s.checkApart(in.checkpoint, in.outputs); err != nil {
		return err
	}
	for _, earlier := range sc.inserts {
		if err := cmp.Or(sc.s.checkApart(in.checkpoint, earlier.outputs), sc.s.checkApart(earlier.checkpoint, in.outputs)); err != nil {
			return err
		}
	}
	return nil
}

// readsOutputsOf finds the earlier INSERTs of whose outputs a declared stream reads one.
func (sc *Script) readsOutputsOf(c *logical.Catalog) []*insert {
	var found []*insert
	for _, name := range c.Names() {
		e, _ := c.Lookup(name)
		d, ok := e.Stream.(*sql.Declaration)
		if !ok {
			continue
		}
		for _, earlier := range sc.inserts {
			if !slices.Contains(found, earlier) && earlier.feeds(d.Source) {
				found = append(found, earlier)
			}
		}
	}
	return found
}

// feeds says whether d reads what in writes, be it rows kept beside the output.
func (in *insert) feeds(d *logical.SourceDecl) bool {
	p := d.Options["path"]
	if p == "" {
		return false
	}
	return in.job.readBack(d) != "" || slices.ContainsFunc(in.written(), func(out string) bool { return in.job.session.liesIn(p, out) })
}

// prepare runs the CREATEs and SETs before a statement in a session of their own, so
// that every query has its own settings and streams, with the columns its checkpoint
// keeps.
func (sc *Script) prepare(ctx context.Context, upto int, pins map[string]map[string]string) (*sql.Planner, *Session, error) {
	own := *sc.s
	own.catalog = sc.s.catalog.Clone()
	own.settings = &sharedSettings{now: sc.s.settings.get()}
	r := own.resolver(pins)
	p := own.planner(own.catalog, r, sc.file, false)
	if err := sc.override(&own, p, r); err != nil {
		return nil, nil, err
	}
	for _, st := range sc.stmts[:upto] {
		switch st.(type) {
		case *ast.Create, *ast.Set:
		default:
			continue
		}
		planned, err := p.Plan(ctx, sc.src, st)
		if err != nil {
			return nil, nil, err
		}
		if planned.Setting == nil {
			continue
		}
		if err := own.Set(planned.Setting.Name, planned.Setting.Value); err != nil {
			return nil, nil, planned.SettingError(sc.file, sc.src, err)
		}
		if err := sc.override(&own, p, r); err != nil {
			return nil, nil, err
		}
	}
	return p, &own, nil
}

// override applies the settings of RunOptions, which win over the script's, and tells
// planner and resolver what holds now.
func (sc *Script) override(own *Session, p *sql.Planner, r *formats.Resolver) error {
	for _, name := range slices.Sorted(maps.Keys(sc.o.Settings)) {
		if err := own.Set(name, sc.o.Settings[name]); err != nil {
			return err
		}
	}
	p.Location = own.Location()
	r.Location = p.Location
	return nil
}

// plan plans an INSERT as a streaming query. The job comes back with an error, too, once
// the sink's options are known.
func (sc *Script) plan(ctx context.Context, in *insert) (*job, logical.Node, error) {
	j := &job{session: sc.s, name: in.name, grown: in.grown}
	if err := j.configure(in.sink, sc.o); err != nil {
		return nil, nil, sc.place(in, err)
	}
	dir := checkpointDir(j.checkpoint, j.options["path"])
	pins, err := sc.s.pins(dir)
	if err != nil {
		return nil, nil, asRefusal(dir, err)
	}
	if pins == nil {
		pins = map[string]map[string]string{}
	}
	maps.Copy(pins, in.grown)
	p, own, err := sc.prepare(ctx, in.position, pins)
	if err != nil {
		return j, nil, err
	}
	j.session = own
	p.Resolver = &tellingResolver{p.Resolver, j}
	planned, err := p.Plan(ctx, sc.src, sc.stmts[in.position])
	if err != nil {
		return j, nil, err
	}
	if err := logical.Check(planned.Plan, j.mode); err != nil {
		return j, nil, sc.place(in, err)
	}
	if err := j.checkConstants(planned.Plan); err != nil {
		return j, nil, sc.underlined(in, err)
	}
	if err := own.connectors.CheckSink(j.connector, j.sinkEnv(planned.Plan.Schema())); err != nil {
		return j, nil, sc.place(in, err)
	}
	return j, planned.Plan, nil
}

// place says where in the text an error lies that knows no place: at the option of the
// sink it is about, else at the INSERT.
func (sc *Script) place(in *insert, err error) error {
	target := sc.stmts[in.position].(*ast.Insert).Sink
	var node ast.Node = target
	var option *connector.OptionError
	if errors.As(err, &option) {
		for _, st := range sc.stmts[:in.position] {
			c, ok := st.(*ast.Create)
			if !ok || c.Kind != ast.CreateSink || !strings.EqualFold(c.Name.Text, target.Text) {
				continue
			}
			node = c.Name
			for _, o := range c.Options {
				if strings.EqualFold(o.Key.Text, option.Key) {
					node = o
				}
			}
		}
	}
	return inFile(sql.At(sc.src, node, err), sc.file)
}

// underlined shows the place of an error of an expression in the text.
func (sc *Script) underlined(in *insert, err error) error {
	var failed *eval.Error
	if !errors.As(err, &failed) || failed.Place.Source == nil || failed.Place.Source.Text != sc.src {
		return err
	}
	var at ast.Node
	ast.Walk(sc.stmts[in.position], func(n ast.Node) bool {
		if _, ok := n.(ast.Expr); ok && n.Pos() == failed.Place.Offset && (at == nil || n.End() > at.End()) {
			at = n
		}
		return true
	})
	if at == nil {
		return err // it is in a view or a computed column
	}
	return inFile(sql.At(sc.src, at, &eval.Error{Expr: failed.Expr, Err: failed.Err}), sc.file)
}

// Running is a script whose queries run. Its methods are safe for concurrent use.
type Running struct {
	sc      *Script
	stop    chan struct{}
	once    sync.Once
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	mu      sync.Mutex
	queries []*Query
	err     error // why nothing runs
}

// runs says whether there is anything to wait for or to end.
func (r *Running) runs() bool { return r != nil && r.sc != nil }

// Start starts every INSERT, once: a script that is to run again is opened again. They run side by side; one that reads the output of an
// earlier one begins, under once and available-now, when that has drained. The end of
// ctx stops them at once.
func (sc *Script) Start(ctx context.Context) *Running {
	if err := sc.made(ctx); err != nil {
		return &Running{err: err}
	}
	if sc.started.Swap(true) {
		return &Running{err: errStarted}
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Running{sc: sc, stop: make(chan struct{}), cancel: cancel}
	for _, in := range sc.inserts {
		r.wg.Add(1)
		columnar.Go(func() error { return r.runInsert(ctx, in) }, func(err error) {
			defer r.wg.Done()
			defer close(in.done)
			in.err = err
			if in.err != nil {
				r.failed(in)
			}
		})
	}
	return r
}

// failed stops the others after their batch where triggers repeat; under once and
// available-now, and with on_failure = 'continue', they go on.
func (r *Running) failed(in *insert) {
	if in.repeats && !in.goesOn {
		r.RequestStop()
	}
}

// runInsert waits for what it depends on, then plans and runs one query to its end;
// again with more columns where files brought new ones.
func (r *Running) runInsert(ctx context.Context, in *insert) error {
	if !r.waitFor(ctx, in) {
		return nil
	}
	for {
		q, err := r.startInsert(ctx, in)
		if err != nil || q == nil {
			return err
		}
		err = q.Wait(context.WithoutCancel(ctx))
		var grown *connector.SchemaGrownError
		if !errors.As(err, &grown) {
			return err
		}
		name := strings.ToLower(grown.Stream)
		if maps.Equal(in.grown[name], grown.Pinned) {
			return fmt.Errorf("bug: stream %s was opened without its new columns: %w", grown.Stream, err)
		}
		if in.grown == nil {
			in.grown = map[string]map[string]string{}
		}
		in.grown[name] = grown.Pinned
		r.sc.s.opts.Warn(grown.Error())
	}
}

// waitFor waits, under once and available-now, for the queries whose output in reads.
// It returns false if the script was stopped meanwhile.
func (r *Running) waitFor(ctx context.Context, in *insert) bool {
	if in.repeats {
		return true
	}
	for _, earlier := range in.after {
		select {
		case <-earlier.done:
		case <-r.stop:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// startInsert plans and starts a query. A stream with neither columns nor files ends it
// under once and available-now (q is nil), and is waited for otherwise.
func (r *Running) startInsert(ctx context.Context, in *insert) (q *Query, err error) {
	for {
		j, plan, err := r.sc.plan(ctx, in)
		if err == nil {
			if q, err = j.start(ctx, plan); err == nil {
				r.add(q)
				return q, nil
			}
			if wrong := (*connector.OptionError)(nil); errors.As(err, &wrong) {
				err = r.sc.place(in, err)
			}
			return nil, err
		}
		if !isWaiting(err) || j == nil {
			return nil, err
		}
		if !j.trigger.Repeats() {
			var none *connector.NoFilesError
			errors.As(err, &none)
			r.sc.s.opts.Warn(fmt.Sprintf("%s: stream %s has no columns yet: %v; nothing to do", in.name, none.Stream, none))
			return nil, nil
		}
		if !r.sleep(ctx) {
			return nil, nil
		}
	}
}

// retryEvery is how often a stream without columns is looked at again.
const retryEvery = time.Second

// sleep waits a little; false if the script is to stop.
func (r *Running) sleep(ctx context.Context) bool {
	t := time.NewTimer(retryEvery)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.stop:
	case <-ctx.Done():
	}
	return false
}

// add remembers a started query; one that started after a stop was asked for stops
// after its batch, too.
func (r *Running) add(q *Query) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queries = append(r.queries, q)
	select {
	case <-r.stop:
		q.RequestStop()
	default:
	}
}

// RequestStop lets every query finish its batch and end.
func (r *Running) RequestStop() {
	if !r.runs() {
		return
	}
	r.once.Do(func() { close(r.stop) })
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.queries {
		q.RequestStop()
	}
}

// Kill ends every query at once, as a crash would.
func (r *Running) Kill() {
	if !r.runs() {
		return
	}
	r.RequestStop()
	r.cancel()
}

// Queries are those started so far.
func (r *Running) Queries() []*Query {
	if !r.runs() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.queries)
}

// Wait returns when all queries have ended: the errors of those that were refused, then
// of those that failed, joined; nil if there is none.
func (r *Running) Wait() error {
	switch {
	case r == nil || r.sc == nil && r.err == nil:
		return errNoScript
	case r.sc == nil:
		return r.err
	}
	r.wg.Wait()
	r.cancel()
	var errs []error
	for _, in := range r.sc.inserts {
		if in.err != nil {
			errs = append(errs, in.err)
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return int(KindOf(b)) - int(KindOf(a)) })
	return errors.Join(errs...)
}
