package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
)

// Provider opens versions of the states of a query's operators and joins their files in
// the background. Its methods are used by one goroutine, that of the query's loop.
type Provider struct {
	files  Files
	opts   Options
	stores map[string]*Store

	mu       sync.Mutex // guards what follows, shared with background work
	ready    []joined   // finished, not yet named by a believed version
	running  []joined
	failed   error
	believed map[string]believed
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	// inBatch is set while a batch runs: background work then yields to it.
	inBatch atomic.Bool
}

// believed is what makes up a version of an operator's state, and how many rows its tables
// have.
type believed struct {
	checkpoint.OperatorState
	live map[string]int64
}

// joined is a file that replaces some that follow each other: a snapshot, if they are a
// table's first.
type joined struct {
	operator string
	table    string
	from     []checkpoint.StateFile
	file     checkpoint.StateFile
}

// NewProvider makes a Provider over the state files in files.
func NewProvider(files Files, opts Options) *Provider {
	if opts.Mem == nil {
		opts.Mem = memory.NewGoAllocator()
	}
	opts.Shards = max(opts.Shards, 1)
	p := &Provider{files: files, opts: opts, stores: map[string]*Store{}, believed: map[string]believed{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Open returns the Store of an operator at the version that state names: the zero
// OperatorState is version 0, which is empty. A Store that is live at that version is
// handed back without reading. An Open of another version gives up the one before.
func (p *Provider) Open(ctx context.Context, spec Spec, state checkpoint.OperatorState) (*Store, error) {
	p.inBatch.Store(true)
	if s := p.stores[spec.Operator]; s != nil {
		if !s.poisoned && !s.dirty && s.version == state.Version && sameState(s.files, state) && s.isFor(spec) {
			s.dirty = true
			return s, nil
		}
		s.Abort()
	}
	s, err := newStore(p, spec)
	if err != nil {
		return nil, err
	}
	state.Operator = spec.Operator
	if err := s.load(ctx, cloneState(state)); err != nil {
		s.release()
		return nil, err
	}
	s.dirty, s.rows = true, s.live()
	p.stores[spec.Operator] = s
	p.believe(believed{state, s.rows})
	return s, nil
}

// Live is the Store of an operator that is in memory, at whatever version, nil for none: of
// one that is being committed, Open gives the same Store afterwards, if all goes well.
func (p *Provider) Live(operator string) *Store { return p.stores[operator] }

// Look opens a Store between batches, to be read only: the next Open of that version is
// handed the same Store.
func (p *Provider) Look(ctx context.Context, spec Spec, state checkpoint.OperatorState) (*Store, error) {
	s, err := p.Open(ctx, spec, state)
	if err == nil {
		s.dirty = false
		p.inBatch.Store(false)
	}
	return s, err
}

// isFor says whether the Store has the tables of spec.
func (s *Store) isFor(spec Spec) bool {
	return slices.EqualFunc(s.tables, spec.Tables, func(t *Table, o TableSchema) bool {
		return t.schema.Name == o.Name && t.schema.MultiRow == o.MultiRow && t.schema.Order == o.Order &&
			sameFields(t.schema.Key, o.Key) && slices.Equal(t.schema.Derived, o.Derived) && sameFields(t.schema.Values, o.Values) && len(t.schema.Aggregates) == len(o.Aggregates)
	})
}

func sameFields(a, b []arrow.Field) bool {
	return slices.EqualFunc(a, b, func(x, y arrow.Field) bool { return x.Name == y.Name && arrow.TypeEqual(x.Type, y.Type) })
}

// sameState says whether two lists name the same files. A snapshot in place of the
// files it was made of is the same.
func sameState(a, b checkpoint.OperatorState) bool {
	return slices.EqualFunc(a.Files, b.Files, func(x, y checkpoint.StateFile) bool { return x.Name == y.Name && x.Hash == y.Hash })
}

func (p *Provider) forget(s *Store) {
	if p.stores[s.operator] == s {
		delete(p.stores, s.operator)
	}
}

// Abort gives up every Store: see Store.Abort.
func (p *Provider) Abort() {
	for _, s := range p.stores {
		s.Abort()
	}
}

// believe notes the newest version that a commit names.
func (p *Provider) believe(state believed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state.OperatorState = cloneState(state.OperatorState)
	p.believed[state.Operator] = state
	p.ready = slices.DeleteFunc(p.ready, func(r joined) bool {
		return r.operator == state.Operator && slices.ContainsFunc(state.Files, func(f checkpoint.StateFile) bool { return f.Name == r.file.Name })
	})
}

// Committed says that commits/N-1 names version N of every operator: from here on its
// files may be joined.
func (p *Provider) Committed(version int64) {
	ahead := false // the next batch has opened its version already
	for _, s := range p.stores {
		ahead = ahead || s.dirty
		if s.version == version && !s.poisoned {
			p.believe(believed{s.files, s.rows})
		}
	}
	p.inBatch.Store(ahead)
}

// adopt replaces files by those that they were joined into, where these are ready.
func (p *Provider) adopt(state checkpoint.OperatorState) checkpoint.OperatorState {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := cloneState(state)
	for _, r := range p.ready {
		if r.operator == state.Operator {
			out.Files = replaced(out.Files, r)
		}
	}
	return out
}

// replaced is files, of all tables, with r in place of those it was made of, if they are all
// there.
func replaced(files []checkpoint.StateFile, r joined) []checkpoint.StateFile {
	isFrom := func(f checkpoint.StateFile) bool {
		return slices.ContainsFunc(r.from, func(o checkpoint.StateFile) bool { return f.Table == r.table && f.Name == o.Name && f.Hash == o.Hash })
	}
	rest := slices.DeleteFunc(slices.Clone(files), isFrom)
	if len(files)-len(rest) != len(r.from) {
		return files
	}
	return slices.Insert(rest, slices.IndexFunc(files, isFrom), r.file)
}

// Maintain starts to join files of believed versions, where that is due and not under way. The next Commit names them in place of what they were made of.
// It never looks at live memory. It returns the error of earlier background work.
func (p *Provider) Maintain(ctx context.Context) error {
	p.mu.Lock()
	err := p.failed
	p.failed = nil
	var due []joined
	for _, state := range p.believed {
		for _, table := range tablesOf(state.OperatorState) {
			list := state.TableFiles(table)
			first, isDue := p.opts.Snapshots.Due(list, state.live[table])
			if !isDue || p.busy(state.Operator, table) {
				continue
			}
			if s := p.stores[state.Operator]; s == nil || !s.Table(table).joinsChanges() {
				first = 0
			}
			due = append(due, joined{operator: state.Operator, table: table, from: list[first:], file: joinedFile(list, first)})
		}
	}
	p.running = append(p.running, due...)
	p.mu.Unlock()
	for _, s := range due {
		if p.opts.Inline {
			p.join(ctx, s)
			continue
		}
		p.wg.Go(func() { p.join(p.ctx, s) })
	}
	if p.opts.Inline && err == nil {
		p.mu.Lock()
		err, p.failed = p.failed, nil
		p.mu.Unlock()
	}
	return err
}

// joinedFile is what the files of a table from first on become.
func joinedFile(list []checkpoint.StateFile, first int) checkpoint.StateFile {
	f := checkpoint.StateFile{Table: list[0].Table, Kind: checkpoint.Snapshot, To: list[len(list)-1].To}
	if first > 0 {
		f.Kind, f.From = checkpoint.Change, list[first].From
		for _, o := range list[first:] {
			if b := o.EvictionBound; b != nil && (f.EvictionBound == nil || *b > *f.EvictionBound) {
				f.EvictionBound = b
			}
		}
	}
	f.Name = checkpoint.StateFileName(f.Table, f.Kind, f.From, f.To)
	return f
}

func tablesOf(state checkpoint.OperatorState) []string {
	var names []string
	for _, f := range state.Files {
		if !slices.Contains(names, f.Table) {
			names = append(names, f.Table)
		}
	}
	return names
}

// busy says whether files of the table are being joined or what they became waits to be
// named.
func (p *Provider) busy(operator, table string) bool {
	of := func(s joined) bool { return s.operator == operator && s.table == table }
	return slices.ContainsFunc(p.running, of) || slices.ContainsFunc(p.ready, of)
}

// join makes one file of some. If the process dies meanwhile, a file is left over that
// nothing names.
func (p *Provider) join(ctx context.Context, s joined) {
	file, err := p.writeJoined(ctx, s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = slices.DeleteFunc(p.running, func(r joined) bool { return r.operator == s.operator && r.table == s.table })
	switch {
	case err == nil:
		s.file = file
		p.ready = append(p.ready, s)
	case !errors.Is(err, context.Canceled):
		p.failed = fmt.Errorf("joining files of the state of %s: %w", s.operator, err)
	}
}

func (p *Provider) writeJoined(ctx context.Context, s joined) (checkpoint.StateFile, error) {
	m, err := newMerger(ctx, p.opts.Mem, p.files, s.operator, s.from)
	if err != nil {
		return s.file, err
	}
	defer m.close()
	worked := time.Now()
	var pace pace
	return writeFile(p.files, s.operator, &m.layout, s.file, func(write func(arrow.RecordBatch) error) error {
		return m.batches(ctx, s.file.Kind, func(b arrow.RecordBatch) error {
			err := write(b)
			p.yield(ctx, &pace, time.Since(worked))
			worked = time.Now()
			return err
		})
	})
}

// pace is how long a background job still has to rest for what it has worked. A rest that
// took longer than it should, since every core was busy, counts for the next ones.
type pace struct{ owed time.Duration }

// shortRest is worth no timer.
const shortRest = time.Millisecond

// yield makes background work rest half as long as it has worked, while a batch runs: it
// takes at most two thirds of a core from it.
func (p *Provider) yield(ctx context.Context, pace *pace, worked time.Duration) {
	if p.opts.Inline || !p.inBatch.Load() {
		return
	}
	if pace.owed += worked / 2; pace.owed < shortRest {
		return
	}
	start := time.Now()
	t := time.NewTimer(pace.owed)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	pace.owed -= time.Since(start)
}

// InUse names the files that background work reads or has made and that no commit may
// name: they must not be removed.
func (p *Provider) InUse() []checkpoint.OperatorState {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []checkpoint.OperatorState
	for _, s := range slices.Concat(p.running, p.ready) {
		out = append(out, checkpoint.OperatorState{Operator: s.operator, Files: append(slices.Clone(s.from), s.file)})
	}
	return out
}

// Wait returns when no background work is running.
func (p *Provider) Wait() { p.wg.Wait() }

// Close ends background work, gives up every Store and returns the error of background
// work that nobody has seen.
func (p *Provider) Close() error {
	p.cancel()
	p.wg.Wait()
	p.Abort()
	return p.failed
}
