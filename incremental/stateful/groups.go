package stateful

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/eval"
)

// timersTable holds the timers of groups, ordered by when they are due.
const timersTable = "timers"

// expiresColumn says when a value with a time to live is gone.
const expiresColumn = "expires"

// describeGroups keeps a table a variable, called as it is, and one of timers.
func describeGroups(m *logical.MapGroups, mode connector.OutputMode) (*Operator, error) {
	spec := m.Function.Spec()
	o := &Operator{node: m, name: m.State, kind: spec.Verb, mode: mode}
	keys := make([]string, len(m.Keys))
	for i, k := range m.Keys {
		keys[i] = Unqualified(k.Expr) + " " + columnar.TypeName(k.Expr.Type())
	}
	o.text = fmt.Sprintf("keys=[%s] mode=%s timers=%s", strings.Join(keys, ", "), spec.Mode, spec.Time)
	tables, err := groupTables(spec, keyColumns(m))
	o.spec = state.Spec{Operator: m.State, Tables: tables}
	return o, err
}

// keyColumns are the keys as the query calls them, with the types the function takes.
func keyColumns(m *logical.MapGroups) []arrow.Field {
	out := slices.Clone(m.Function.Spec().Key)
	for i, k := range m.Keys {
		out[i].Name = k.Name
	}
	return out
}

// groupTables are the tables of a function's state.
func groupTables(spec *logical.GroupSpec, key []arrow.Field) ([]state.TableSchema, error) {
	var out []state.TableSchema
	for _, v := range spec.Variables {
		if v.Name == timersTable || slices.ContainsFunc(out, func(t state.TableSchema) bool { return strings.EqualFold(t.Name, v.Name) }) {
			return nil, fmt.Errorf("%s: the name of state variable %s is taken", spec.Verb, v.Name)
		}
		t := state.TableSchema{Name: v.Name, MultiRow: v.Kind != logical.ValueVariable, Values: slices.Concat(v.Key, v.Value)}
		if v.TTL > 0 {
			t.Order = state.Order{By: state.ByValueColumn, Column: len(t.Values)}
			t.Values = append(t.Values, columnar.Field(expiresColumn, columnar.Timestamp))
		}
		out = append(out, named(t, key))
	}
	if spec.Time != logical.NoTimers {
		out = append(out, named(state.TableSchema{
			Name: timersTable, MultiRow: true, Order: state.Order{By: state.ByValueColumn},
			Values: []arrow.Field{columnar.Field("due", columnar.Timestamp)},
		}, key))
	}
	return out, nil
}

// named gives t its key, and all columns distinct names.
func named(t state.TableSchema, key []arrow.Field) state.TableSchema {
	var names []string
	for _, f := range slices.Concat(key, t.Values) {
		names = append(names, f.Name)
	}
	names = uniqueNames(names)
	t.Key = renamed(key, names)
	t.Values = renamed(t.Values, names[len(key):])
	return t
}

func renamed(list []arrow.Field, names []string) []arrow.Field {
	out := slices.Clone(list)
	for i := range out {
		out[i].Name = names[i]
	}
	return out
}

// groupVariables tells plan.json of the state variables of an operator, nil if it has
// none.
func groupVariables(n logical.Node) []checkpoint.Variable {
	m, ok := n.(*logical.MapGroups)
	if !ok {
		return nil
	}
	var out []checkpoint.Variable
	for _, v := range m.Function.Spec().Variables {
		x := checkpoint.Variable{Name: v.Name, Kind: v.Kind.String(), Type: v.TypeText()}
		if v.TTL > 0 {
			x.TTL = v.TTL.String()
		}
		out = append(out, x)
	}
	return out
}

// isBeside says whether a table does not count as rows of the operator's state.
func (o *Operator) isBeside(table string) bool {
	if _, ok := o.node.(*logical.MapGroups); ok {
		return table == timersTable
	}
	return isSide(table)
}

// groupTime is the clock of an operator's timers.
func groupTime(n logical.Node) logical.GroupTime {
	if m, ok := n.(*logical.MapGroups); ok {
		return m.Function.Spec().Time
	}
	return logical.NoTimers
}

// TimersDue says whether a batch without data would fire timers of processing time.
func (o *Operator) TimersDue(ctx context.Context, p *state.Provider, last *checkpoint.CommitEntry, now int64) (bool, error) {
	if groupTime(o.node) != logical.ProcessingTimers {
		return false, nil
	}
	files, _ := last.StateOf(o.name)
	store, err := p.Look(ctx, o.spec, files)
	if err != nil {
		return false, fmt.Errorf("state of %s: %w", o.name, err)
	}
	bound := dueBound(o.node.(*logical.MapGroups).Function.Spec(), now)
	for _, s := range store.Table(timersTable).Shards() {
		if first, ok := s.Min(); ok && first <= bound {
			return true, nil
		}
	}
	return false, nil
}

// dueBound is the latest due time of timers that fire when their clock shows now.
func dueBound(spec *logical.GroupSpec, now int64) int64 {
	if spec.Strict && now > math.MinInt64 {
		return now - 1
	}
	return now
}

// PlanBoundedGroups is the strategy for MapGroups over bounded data: the function is
// called once a key, without state of before; timers do not fire.
func PlanBoundedGroups(pl *physical.Planner, n logical.Node) (physical.Plan, error) {
	m, ok := n.(*logical.MapGroups)
	if !ok || m.State != "" {
		return nil, nil
	}
	return planGroups(pl, m, nil)
}

// planGroups plans a MapGroups: [LateFilter] > MapGroups. inst is nil over bounded data.
func planGroups(pl *physical.Planner, m *logical.MapGroups, inst *Instance) (physical.Plan, error) {
	p := &MapGroups{inst: inst, key: keyColumns(m), spec: m.Function.Spec(), function: m.Function, schema: m.Schema().Arrow(), hasTime: m.HasTime}
	input := m.Input
	if inst != nil && m.Late != nil {
		input = inst.traced(input)
	}
	in, err := pl.PlanOrdinal(input)
	if err != nil {
		return nil, err
	}
	if inst != nil && m.Late != nil {
		late, err := physical.Bind(m.Late, m.Input.Schema())
		if err != nil {
			return nil, err
		}
		if in, err = lateFilter(in, late, m.LateOffset, inst, expands(m.Input)); err != nil {
			return nil, err
		}
	}
	if p.input, err = newGroupInput(in, m.Keys, m.Rows, m.Input.Schema()); err != nil {
		return nil, err
	}
	if m.Initial == nil || inst != nil && inst.store != nil && inst.store.Version() > 0 {
		return p, nil
	}
	if in, err = pl.PlanOrdinal(m.Initial); err != nil {
		return nil, err
	}
	p.initial, err = newGroupInput(in, m.InitialKeys, m.InitialRows, m.Initial.Schema())
	return p, err
}

// groupInput is a plan whose rows are grouped: keys and columns of a row.
type groupInput struct {
	plan    physical.Plan // with the ordinal, last
	keys    int
	types   []arrow.DataType // of the keys
	rows    *arrow.Schema    // the columns of a row
	program *eval.Program    // keys, then the columns
}

func newGroupInput(in physical.Plan, keys, rows []expr.Named, schema *logical.Schema) (*groupInput, error) {
	g := &groupInput{plan: in, keys: len(keys)}
	var exprs []expr.Expr
	var fields []arrow.Field
	for i, n := range slices.Concat(keys, rows) {
		e, err := physical.Bind(n.Expr, schema)
		if err != nil {
			return nil, err
		}
		exprs = append(exprs, e)
		if i < len(keys) {
			g.types = append(g.types, e.Type())
		} else {
			fields = append(fields, columnar.Field(n.Name, e.Type()))
		}
	}
	g.rows = arrow.NewSchema(fields, nil)
	var err error
	g.program, err = eval.Compile(in.Schema(), exprs...)
	return g, err
}

// MapGroups calls a user's function for the groups of one batch, in this order:
//
//  1. In the first batch of a query the initial state is stored.
//  2. Values whose time to live is over are removed.
//  3. The function is called for each key with rows, in the order of keys, with all of
//     them in order of arrival.
//  4. It is called for timers that are due, those set in step 3 too, in the order of
//     when, then of keys.
//
// The function is called by one goroutine, and what it does depends on nothing but the
// state and the batch: a batch that is run again gives the same calls.
type MapGroups struct {
	input    *groupInput
	initial  *groupInput // nil: none, or not the first batch
	spec     *logical.GroupSpec
	function logical.GroupFunction
	key      []arrow.Field
	schema   *arrow.Schema
	hasTime  bool
	inst     *Instance // nil over bounded data
}

// Schema is what the function emits.
func (p *MapGroups) Schema() *arrow.Schema { return p.schema }

// Children are the input, and in the first batch the initial state.
func (p *MapGroups) Children() []physical.Plan {
	out := []physical.Plan{p.input.plan}
	if p.initial != nil {
		out = append(out, p.initial.plan)
	}
	return out
}

// WithChildren returns p: its inputs are part of it.
func (p *MapGroups) WithChildren([]physical.Plan) physical.Plan { return p }

func (p *MapGroups) String() string {
	if p.inst == nil {
		return "MapGroups " + p.spec.Verb
	}
	return fmt.Sprintf("MapGroups %s %s mode=%s", p.inst.op.name, p.spec.Verb, p.spec.Mode)
}

// Open makes one Reader.
func (p *MapGroups) Open(ctx context.Context, ec *physical.ExecContext, _ int) ([]columnar.Reader, error) {
	r := &groupsReader{plan: p, ec: ec}
	if err := r.open(ctx); err != nil {
		_ = r.Close()
		return nil, err
	}
	return []columnar.Reader{r}, nil
}
