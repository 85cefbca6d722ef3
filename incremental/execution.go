package incremental

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/incremental/stateful"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/optimizer"
	"github.com/tidemill/tidemill/physical"
)

// incrementalExecution plans the micro-batches of one query: IncrementalExecution. The
// logical plan is named and optimized once; each batch plans it over its own data.
type incrementalExecution struct {
	cfg       Config
	analyzed  logical.Node // with the names of states
	optimized logical.Node
	streams   []*logical.Stream // each once, in order of first use
	tables    []*logical.Scan   // bounded tables, each name once
	operators []*stateful.Operator
	plan      checkpoint.Plan
	provider  *state.Provider
	timings   timings
	// observe and planned tell a Replay what operators there are and what rows they give.
	observe func(p physical.Plan, b arrow.RecordBatch)
	planned func(p physical.Plan)
}

// newIncrementalExecution prepares a query for a checkpoint of a form: names its states,
// those of kept as there, optimizes its plan, describes it for plan.json.
func newIncrementalExecution(cfg Config, form int, kept ...checkpoint.Operator) (*incrementalExecution, error) {
	x := &incrementalExecution{cfg: cfg}
	numbered, err := logical.NumberSources(cfg.Plan)
	if err != nil {
		return nil, err
	}
	streamJoins := logical.StreamJoins
	if form == checkpoint.FormerReads {
		streamJoins = logical.FormerStreamJoins
	}
	merged, err := streamJoins(numbered)
	if err != nil {
		return nil, err
	}
	analyzed, nodes, err := nameStates(stateful.StateColumns(merged), cfg.Mode, cfg.Registry, kept)
	if err != nil {
		return nil, err
	}
	x.analyzed = analyzed
	o, err := optimizer.New(&function.Env{Mem: cfg.Mem, Location: cfg.Location}, cfg.DisableRules...)
	if err != nil {
		return nil, err
	}
	if x.optimized, _, err = o.Optimize(analyzed); err != nil {
		return nil, err
	}
	x.findInputs()
	for _, n := range nodes {
		op, err := stateful.Describe(n, cfg.Mode, form)
		if err != nil {
			return nil, err
		}
		x.operators = append(x.operators, op)
	}
	if x.plan, err = x.describePlan(); err != nil {
		return nil, err
	}
	return x, nil
}

// keepIn says where the states are kept.
func (x *incrementalExecution) keepIn(dir *checkpoint.Dir) {
	x.provider = state.NewProvider(dir, state.Options{
		Mem: x.cfg.Mem, Shards: x.shards(), Budget: x.cfg.Budget,
		Snapshots: x.cfg.Snapshots, Inline: x.cfg.InlineSnapshots,
	})
}

func (x *incrementalExecution) shards() int { return max(x.cfg.Parallel, 1) }

// findInputs lists the streams and bounded tables of the plan.
func (x *incrementalExecution) findInputs() {
	streams, tables := map[string]bool{}, map[string]bool{}
	logical.Walk(x.analyzed, func(n logical.Node) bool {
		switch s := n.(type) {
		case *logical.StreamScan:
			if key := strings.ToLower(s.Stream.Name); !streams[key] {
				streams[key] = true
				x.streams = append(x.streams, s.Stream)
			}
		case *logical.Scan:
			if !tables[s.Name] {
				tables[s.Name] = true
				x.tables = append(x.tables, s)
			}
		}
		return true
	})
}

// describePlan is what of the query its checkpoint depends on.
func (x *incrementalExecution) describePlan() (checkpoint.Plan, error) {
	p := checkpoint.Plan{Settings: x.cfg.Settings}
	for _, op := range x.operators {
		o, err := op.Checkpoint()
		if err != nil {
			return p, err
		}
		p.Operators = append(p.Operators, o)
	}
	for _, s := range x.streams {
		p.Sources = append(p.Sources, checkpoint.Source{
			Name: s.Name, Kind: s.Decl.Connector(), Identity: connector.CleanPath(s.Decl.Options["path"]),
			Schemas: []checkpoint.SourceSchema{{Version: 1, Columns: fields(s.Schema), Options: s.Pinned}},
		})
	}
	return p, nil
}

func fields(s *arrow.Schema) []checkpoint.Field {
	out := make([]checkpoint.Field, s.NumFields())
	for i, f := range s.Fields() {
		out[i] = checkpoint.Field{Name: f.Name, Type: columnar.TypeName(f.Type), Nullable: f.Nullable}
	}
	return out
}

// evicts says whether a moved watermark may remove state or emit rows.
func (x *incrementalExecution) evicts() bool {
	for _, op := range x.operators {
		if op.Evicts() {
			return true
		}
	}
	return false
}

// timersDue says whether a timer of processing time of some operator is due.
func (x *incrementalExecution) timersDue(ctx context.Context, last *checkpoint.CommitEntry, now int64) (bool, error) {
	for _, op := range x.operators {
		if due, err := op.TimersDue(ctx, x.provider, last, now); due || err != nil {
			return due, err
		}
	}
	return false, nil
}

// tableFiles are the bounded tables as they are now, for the log.
func (x *incrementalExecution) tableFiles(ctx context.Context) ([]checkpoint.TableFiles, error) {
	var out []checkpoint.TableFiles
	for _, t := range x.tables {
		files, ok := t.Table.(connector.FileSet)
		if !ok {
			continue
		}
		list, err := files.Files(ctx, "", "")
		if err != nil {
			return nil, err
		}
		entry := checkpoint.TableFiles{Name: t.Name}
		for _, f := range list {
			entry.Files = append(entry.Files, checkpoint.InputFile{Path: f.Path, Size: f.Size, ModTime: f.ModTime})
		}
		out = append(out, entry)
	}
	return out, nil
}

// unchangedTables makes sure that bounded tables are what was logged.
func (x *incrementalExecution) unchangedTables(ctx context.Context, entry *checkpoint.OffsetEntry) error {
	for _, t := range x.tables {
		files, ok := t.Table.(connector.FileSet)
		if !ok {
			continue
		}
		for _, logged := range entry.Tables {
			if logged.Name != t.Name {
				continue
			}
			if err := firstChanged(ctx, files, identities(logged.Files)); err != nil {
				return err
			}
		}
	}
	return nil
}

// identities are what is compared to know whether files changed.
func identities(files []checkpoint.InputFile) []connector.FileIdentity {
	out := make([]connector.FileIdentity, len(files))
	for i, f := range files {
		out[i] = f.Identity()
	}
	return out
}

// committed tells the states that their new version is believed.
func (x *incrementalExecution) committed(batchID int64) { x.provider.Committed(batchID + 1) }

// maintain makes snapshots in the background and removes old files: step 6.
func (x *incrementalExecution) maintain(ctx context.Context, dir *checkpoint.Dir) error {
	return errors.Join(x.provider.Maintain(ctx), dir.Maintain(x.provider.InUse()...))
}

// abort forgets what a failed attempt did to the states.
func (x *incrementalExecution) abort() {
	if x.provider != nil {
		x.provider.Abort()
	}
}

func (x *incrementalExecution) close() error {
	for _, op := range x.operators {
		op.Release()
	}
	if x.provider == nil {
		return nil
	}
	return x.provider.Close()
}

// batchRun is one attempt at one batch.
type batchRun struct {
	exec       *incrementalExecution
	reader     columnar.Reader
	scans      map[string]*connector.ScanStats // by stream name
	eventTimes *EventTimeStats
	states     []*stateful.Instance
	input      inputEnd
}

// stateOpener opens the state of every operator for a batch that follows last. marks are
// the watermarks of each.
type stateOpener func(ctx context.Context, last *checkpoint.CommitEntry, marks func(*stateful.Operator) stateful.Watermarks) ([]*stateful.Instance, error)

// openStates opens the version that last names.
func (x *incrementalExecution) openStates(ctx context.Context, last *checkpoint.CommitEntry, marks func(*stateful.Operator) stateful.Watermarks) ([]*stateful.Instance, error) {
	var states []*stateful.Instance
	for _, op := range x.operators {
		inst, err := op.Open(ctx, x.provider, last, marks(op))
		if err != nil {
			return nil, fmt.Errorf("state of %s: %w", op.Name(), err)
		}
		states = append(states, inst)
	}
	return states, nil
}

// begin plans the batch of entry and opens it: nothing has been read yet.
func (x *incrementalExecution) begin(ctx context.Context, s *streamExecution, entry *checkpoint.OffsetEntry, open stateOpener) (_ *batchRun, err error) {
	run := &batchRun{exec: x, scans: map[string]*connector.ScanStats{}, eventTimes: &EventTimeStats{}}
	defer func() {
		if err != nil {
			run.release()
		}
	}()
	marks := stateful.Watermarks{Late: entry.LateWatermark, Evict: entry.EvictionWatermark}
	run.states, err = open(ctx, s.last, func(op *stateful.Operator) stateful.Watermarks { return op.At(marks, x.cfg.Location) })
	if err != nil {
		return nil, err
	}
	if x.cfg.KeepLate {
		stateful.KeepLateRows(x.cfg.Budget, run.states)
	}
	plan, err := physical.NewPlanner(run.strategies(s, entry)...).Plan(x.optimized)
	if err != nil {
		return nil, err
	}
	if x.planned != nil {
		x.planned(plan)
	}
	run.reader, err = physical.Run(ctx, plan, &physical.ExecContext{
		Observe: x.observe,
		Mem:     x.cfg.Mem, Budget: x.cfg.Budget, BatchRows: x.cfg.BatchRows, Parallel: x.shards(),
		Now: entry.Time, Location: x.cfg.Location, Seed: entry.Seed,
		ScanStats: func(p *physical.Scan) *connector.ScanStats { return run.scans[p.Spec().Name] },
	})
	return run, err
}

// commitState writes the change files of every operator: version N+1.
func (r *batchRun) commitState(ctx context.Context) ([]checkpoint.OperatorState, error) {
	var out []checkpoint.OperatorState
	for _, s := range r.states {
		files, err := s.Commit(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, files)
	}
	return out, nil
}

// lateRows are the input rows that operators judged late.
func (r *batchRun) lateRows() int64 {
	n := int64(0)
	for _, s := range r.states {
		n += s.LateRows()
	}
	return n
}

// side is the rows kept beside the output.
func (r *batchRun) side(s *streamExecution, entry *checkpoint.OffsetEntry) ([]connector.SideOutput, error) {
	var out []connector.SideOutput
	if r.exec.cfg.KeepLate {
		if late, ok := r.lateOutput(s, entry); ok {
			out = append(out, late)
		}
	}
	if r.exec.cfg.KeepBad {
		bad, ok, err := r.badOutput(entry.Batch)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, bad)
		}
	}
	return out, nil
}

// stateProgress reports the operators, that nearest the output first as Spark does.
func (r *batchRun) stateProgress() []StateOperatorProgress {
	out := make([]StateOperatorProgress, 0, len(r.states))
	for i := len(r.states) - 1; i >= 0; i-- {
		m := r.states[i].Metrics()
		out = append(out, StateOperatorProgress{
			OperatorName: m.Kind, Name: m.Name,
			NumRowsTotal: m.Total, NumRowsUpdated: m.Updated, NumRowsRemoved: m.Removed,
			AllUpdatesTimeMs: m.UpdateTime.Milliseconds(), AllRemovalsTimeMs: m.RemovalTime.Milliseconds(),
			CommitTimeMs: m.CommitTime.Milliseconds(), MemoryUsedBytes: m.Bytes,
			NumRowsDroppedByWatermark: m.Late, NumLateRows: m.Late,
			NumShufflePartitions: int64(r.exec.shards()), NumStateStoreInstances: int64(r.exec.shards()),
			CustomMetrics: m.Custom,
		})
	}
	return out
}

func (r *batchRun) release() {
	if r.reader != nil {
		_ = r.reader.Close() // closing twice is allowed; its error was reported
	}
	for _, s := range r.states {
		s.Release()
	}
	for _, s := range r.scans {
		s.Kept.Release()
	}
}

// Explain shows the incremental plan of a streaming query: the physical plan with its
// stateful operators. Of cfg it needs Plan, Mode and Registry.
func Explain(cfg Config) (string, error) {
	x, err := newIncrementalExecution(cfg.withDefaults(), checkpoint.ReadsForm)
	if err != nil {
		return "", err
	}
	p, err := x.tryPlan()
	if err != nil {
		return "", err
	}
	return physical.Explain(p), nil
}
