package logical

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// MapGroups calls a user's function for every group of rows, with state of its own for
// each: mapGroupsWithState and its kin. The output is what the function emits; it
// carries no watermark.
type MapGroups struct {
	Input Node
	// Keys are the grouping keys and Rows the columns of a row, with the types the
	// function takes.
	Keys []expr.Named
	Rows []expr.Named
	// Initial is a bounded plan of the state before the first batch, nil for none; its
	// keys and rows.
	Initial     Node
	InitialKeys []expr.Named
	InitialRows []expr.Named
	// Late is the column of the input by which rows are judged late, nil for none: only
	// where timers are of event time. LateOffset, in microseconds, is what closes it.
	Late       *expr.Column
	LateOffset int64
	// HasTime says that the input has an event time.
	HasTime  bool
	Output   *Schema
	Function GroupFunction
	// State is the stable name of the node's state in a checkpoint, given before
	// optimization; "" where no state is kept.
	State string
}

// GroupTime is the clock of the timers of groups.
type GroupTime uint8

// The clocks.
const (
	NoTimers         GroupTime = iota // no timers
	ProcessingTimers                  // the batch time
	EventTimers                       // the watermark
)

func (t GroupTime) String() string {
	if t > EventTimers {
		return fmt.Sprintf("GroupTime(%d)", t)
	}
	return [...]string{"none", "processing time", "event time"}[t]
}

// GroupVariableKind is what a state variable holds for each key.
type GroupVariableKind uint8

// The kinds of state variables.
const (
	ValueVariable GroupVariableKind = iota // at most one value
	ListVariable                           // values, in the order they were added
	MapVariable                            // a value an entry key
)

func (k GroupVariableKind) String() string { return [...]string{"value", "list", "map"}[k] }

// GroupVariable is a named piece of the state of each group.
type GroupVariable struct {
	Name string
	Kind GroupVariableKind
	// Key is the columns of the keys of a MapVariable, Value those of the values.
	Key, Value []arrow.Field
	// TTL is after how much time, measured by the batch time, what was written
	// disappears; 0 is never.
	TTL time.Duration
}

// TypeText is the columns, with types.
func (v GroupVariable) TypeText() string {
	value := columnar.SchemaString(arrow.NewSchema(v.Value, nil))
	if v.Kind == MapVariable {
		return columnar.SchemaString(arrow.NewSchema(v.Key, nil)) + " → " + value
	}
	return value
}

// GroupSpec says what a GroupFunction takes, keeps and gives.
type GroupSpec struct {
	Verb string // mapGroupsWithState, …
	// Mode is what the function emits: rows that stand (Append), or newest values
	// (Update).
	Mode connector.OutputMode
	Time GroupTime
	// Strict timers fire when they are before the clock, others also when equal.
	Strict bool
	// VisitAll calls the function in each batch for every key with a value in the first
	// variable, also without rows.
	VisitAll bool
	// Once says that a query may have one such function and no other.
	Once      bool
	Key       []arrow.Field
	Row       []arrow.Field
	Initial   []arrow.Field // of a row of initial state
	Output    []arrow.Field
	Variables []GroupVariable
}

// GroupFunction is the function behind a MapGroups node, without its Go types. It is
// immutable and safe for concurrent use.
type GroupFunction interface {
	// Spec says what the function takes, keeps and gives. It is the same each time.
	Spec() *GroupSpec
	// Open begins the calls of one batch, or of one bounded query.
	Open(env *GroupEnv) (GroupRun, error)
}

// GroupEnv is what one run of a GroupFunction is given. It is used by one goroutine.
type GroupEnv struct {
	Mem memory.Allocator
	Now int64 // the batch time, microseconds
	// Watermark is what state is evicted by; nil while there is none. HasWatermark
	// says whether the input has an event time at all.
	Watermark    *int64
	HasWatermark bool
	Bounded      bool // the input ends
	// Variable is where a variable is kept; Timers holds the TIMESTAMPs of timers.
	Variable func(name string) GroupStore
	Timers   GroupStore // nil without timers
}

// GroupRow is a stored row, valid until the end of the batch or its deletion.
type GroupRow uint64

// GroupStore keeps rows for keys: at most one a key of a ValueVariable. Values are the
// columns of a MapVariable's key, then those of the value.
type GroupStore interface {
	// Find looks n keys up: the rows of key i are rows[from[i]:from[i+1]], in the order
	// they were appended.
	Find(keys []arrow.Array, n int) (from []uint32, rows []GroupRow, err error)
	// Get returns the values of rows, to be released.
	Get(rows []GroupRow) ([]arrow.Array, error)
	// Append adds a row for each of n keys.
	Append(keys, values []arrow.Array, n int) error
	// Set overwrites rows.
	Set(rows []GroupRow, values []arrow.Array) error
	// Delete removes rows, each once.
	Delete(rows []GroupRow) error
}

// GroupRun calls the function. It is used by one goroutine; the keys of one call are
// distinct, in the order in which the function is to see them.
type GroupRun interface {
	// Initial gives the rows of initial state, one a key.
	Initial(ctx context.Context, keys []arrow.Array, n int, rows []arrow.Array) error
	// Rows calls the function for n keys: the rows of key i are from[i] to from[i+1].
	Rows(ctx context.Context, keys []arrow.Array, n int, rows []arrow.Array, from []int) error
	// Timers calls the function for timers that are due: number i is that of key of[i]
	// at due[i].
	Timers(ctx context.Context, keys []arrow.Array, n int, of []int, due []int64) error
	// Take returns the columns of what was emitted since the last call, and how many
	// rows.
	Take() (columns []arrow.Array, n int, err error)
	// Close ends the run. What was not written by then is lost.
	Close() error
}

// Schema is what the function emits.
func (m *MapGroups) Schema() *Schema { return m.Output }

// Children are the input, and the initial state if there is one.
func (m *MapGroups) Children() []Node {
	if m.Initial != nil {
		return []Node{m.Input, m.Initial}
	}
	return []Node{m.Input}
}

// WithChildren replaces input and initial state.
func (m *MapGroups) WithChildren(c []Node) Node {
	n := *m
	n.Input = c[0]
	if m.Initial != nil {
		n.Initial = c[1]
	}
	return &n
}

// Exprs are the keys and columns, of the input, then the initial state.
func (m *MapGroups) Exprs() []expr.Expr {
	out := slices.Concat(namedExprs(m.Keys), namedExprs(m.Rows), namedExprs(m.InitialKeys), namedExprs(m.InitialRows))
	if m.Late != nil {
		out = append(out, m.Late)
	}
	return out
}

// WithExprs replaces them.
func (m *MapGroups) WithExprs(exprs []expr.Expr) Node {
	n := *m
	for _, list := range []*[]expr.Named{&n.Keys, &n.Rows, &n.InitialKeys, &n.InitialRows} {
		k := len(*list)
		*list = withNamedExprs(*list, exprs[:k])
		exprs = exprs[k:]
	}
	if n.Late != nil {
		if c, ok := exprs[0].(*expr.Column); ok {
			n.Late = c
		}
	}
	return &n
}

func (m *MapGroups) String() string {
	spec := m.Function.Spec()
	text := fmt.Sprintf("MapGroups %s keys=[%s] mode=%s", spec.Verb, namedList(m.Keys), spec.Mode)
	if spec.Time != NoTimers {
		text += " timers=" + strings.ReplaceAll(spec.Time.String(), " ", "-")
	}
	return text
}

// WithState names the node's state.
func (m *MapGroups) WithState(name string) *MapGroups {
	n := *m
	n.State = name
	return &n
}

// withOutput gives the output other columns.
func (m *MapGroups) withOutput(s *Schema) *MapGroups {
	n := *m
	n.Output = s
	return &n
}

// GroupAliases says how the columns of a GroupFunction are found in an input: by other
// names than their own, too. Value is set if it takes the one column there is.
type GroupAliases struct {
	Names [][]string // of each column; may be nil
	Value bool
}

// MapGroups calls f for the groups of g. initial is the state before the first batch,
// grouped by the same keys; nil is none. The columns the function takes are found by
// name; their types are widened, never narrowed.
func (g *GroupedData) MapGroups(f GroupFunction, key, row GroupAliases, initial *GroupedData, initialRow GroupAliases) *DataFrame {
	if g == nil {
		return FailedDataFrame(nil)
	}
	if f == nil {
		return FailedDataFrame(Usagef("mapGroups: the function is nil"))
	}
	spec := f.Spec()
	return g.input.then(spec.Verb, func(d *DataFrame) (Node, error) {
		m := &MapGroups{Input: d.node, Function: f, Output: &Schema{}}
		var err error
		if m.Keys, m.Rows, err = g.groupColumns(spec.Key, key, spec.Row, row); err != nil {
			return nil, err
		}
		if initial != nil {
			if m.Initial, m.InitialKeys, m.InitialRows, err = initial.initialColumns(spec, key, initialRow); err != nil {
				return nil, fmt.Errorf("initial state: %w", err)
			}
		}
		for _, f := range spec.Output {
			m.Output.Columns = append(m.Output.Columns, &expr.Column{ID: expr.NewID(), Name: f.Name, DataType: f.Type, Null: true})
		}
		late, offset := eventTimeColumn(d.node)
		m.HasTime = late != nil
		if spec.Time == EventTimers {
			m.Late, m.LateOffset = late, offset
		}
		return m, nil
	})
}

// initialColumns are the columns of the initial state, whose IDs must not clash with
// those of the input.
func (g *GroupedData) initialColumns(spec *GroupSpec, key, row GroupAliases) (Node, []expr.Named, []expr.Named, error) {
	if _, err := g.input.Plan(); err != nil {
		return nil, nil, nil, err
	}
	if IsStreaming(g.input.node) {
		return nil, nil, nil, &UnsupportedError{What: "initial state that is a stream", Reason: "it must be there before the first batch",
			Remedy: "read its files as a bounded table"}
	}
	fresh := &GroupedData{input: &DataFrame{node: Refresh(g.input.node), reg: g.input.reg}, keys: g.keys}
	keys, rows, err := fresh.groupColumns(spec.Key, key, spec.Initial, row)
	return fresh.input.node, keys, rows, err
}

// groupColumns types the keys and finds the columns of a row.
func (g *GroupedData) groupColumns(key []arrow.Field, keyAliases GroupAliases, row []arrow.Field, rowAliases GroupAliases) (keys, rows []expr.Named, err error) {
	given := make([]expr.Named, len(g.keys))
	for i, t := range g.keys {
		if u, ok := t.Expr.(*expr.Unresolved); ok && u.Window != nil {
			return nil, nil, errors.New("a window cannot be a key of a function with state; compute its start as a column, or keep times in the state")
		}
		if given[i], err = g.input.named(t, false); err != nil {
			return nil, nil, err
		}
	}
	if keys, err = pickColumns(given, key, keyAliases, "the key"); err != nil {
		return nil, nil, err
	}
	if len(keys) != len(given) {
		return nil, nil, fmt.Errorf("it is grouped by %d keys, but the Go type of the key has %d fields", len(given), len(keys))
	}
	all := passAll(g.input.node.Schema())
	if rowAliases.Value && len(all) > 1 {
		all = otherThan(all, given)
	}
	rows, err = pickColumns(all, row, rowAliases, "a row")
	return keys, rows, err
}

// otherThan are the columns that are not grouped by.
func otherThan(all, keys []expr.Named) []expr.Named {
	return slices.DeleteFunc(all, func(c expr.Named) bool {
		return slices.ContainsFunc(keys, func(k expr.Named) bool { return expr.Equal(k.Expr, c.Expr) })
	})
}

// pickColumns finds fields among columns and widens them to the types of fields.
func pickColumns(columns []expr.Named, fields []arrow.Field, a GroupAliases, what string) ([]expr.Named, error) {
	s := namedSchema(columns)
	out := make([]expr.Named, len(fields))
	for i, f := range fields {
		at := -1
		names := []string{f.Name}
		if i < len(a.Names) {
			names = append(names, a.Names[i]...)
		}
		for _, name := range names {
			if c, err := s.Lookup("", name); err == nil {
				at = s.Index(c.ID)
				break
			}
		}
		if at < 0 && a.Value && len(columns) == 1 {
			at = 0
		}
		if at < 0 {
			return nil, missingColumn(s, f.Name, a, what)
		}
		c := columns[at]
		if common, ok := columnar.Common(f.Type, c.Expr.Type()); !ok || !arrow.TypeEqual(common, f.Type) {
			return nil, fmt.Errorf("column %s is %s, but the Go type of %s takes %s; cast it, or change the Go type",
				c.Name, columnar.TypeName(c.Expr.Type()), what, columnar.TypeName(f.Type))
		}
		out[i] = expr.As(expr.CastTo(c.Expr, f.Type), f.Name)
		if a.Value {
			out[i].Name = c.Name
		}
	}
	return out, nil
}

func missingColumn(s *Schema, name string, a GroupAliases, what string) error {
	if a.Value {
		return fmt.Errorf("%s is a plain Go type, which takes one column, and there are %d (%s); select one, or use a struct",
			what, len(s.Columns), strings.Join(s.Names(), ", "))
	}
	return fmt.Errorf("the Go type of %s: %w", what, &UnknownColumnError{Name: name, Hint: columnar.DidYouMean(name, s.Names())})
}

// eventTimeColumn is the column of n by which its rows are judged late: the time itself
// rather than a window's bound, an end rather than a start.
func eventTimeColumn(n Node) (column *expr.Column, offset int64) {
	marks := EventTimes(n)
	var best EventTime
	for _, c := range n.Schema().Columns {
		m, ok := marks[c.ID]
		if ok && !m.IsOpen && (column == nil || m.Kind < best.Kind || m.Kind == best.Kind && m.Offset < best.Offset) {
			column, best = c, m
		}
	}
	return column, best.Offset
}

// checkMapGroups says whether a MapGroups is legal in a streaming plan.
func checkMapGroups(m *MapGroups, mode connector.OutputMode, up above) error {
	spec := m.Function.Spec()
	refuse := func(what, reason, remedy string) error {
		return &UnsupportedError{What: spec.Verb + what, Reason: reason, Remedy: remedy}
	}
	switch {
	case !IsStreaming(m.Input):
		return refuse(" over a bounded table with streaming initial state", "the state must be there first", "swap the two")
	case spec.Time == EventTimers && m.Late == nil:
		return refuse(" with timers of event time", "its input has no watermark", "add WithWatermark before it, or use processing time")
	case spec.Time == EventTimers && up.stateful != "":
		return refuse(" with timers of event time below "+up.stateful, "what it emits may be behind the watermark already",
			"write its rows to files and read those")
	case !up.aggregate && spec.Mode != mode:
		return refuse(fmt.Sprintf(" in mode %s in output mode %s", spec.Mode, mode), "the two must be the same", fmt.Sprintf("use output_mode = '%s'", spec.Mode))
	case up.aggregate && spec.Mode == connector.Update:
		return refuse(" in mode update below an aggregate", "a revised row could not be taken back above", "use mode append")
	}
	return nil
}

// checkAllGroups looks at all MapGroups of a plan together.
func checkAllGroups(n Node) error {
	var all []*MapGroups
	var err error
	Walk(n, func(x Node) bool {
		switch m := x.(type) {
		case *MapGroups:
			if IsStreaming(m) {
				all = append(all, m)
			}
		case *Watermark:
			if g := groupsBelow(m.Input); g != nil {
				err = &UnsupportedError{What: "a watermark above " + g.Function.Spec().Verb,
					Reason: "its timers would wait for the watermark, and the watermark for its rows", Remedy: "declare the watermark on the stream"}
			}
		}
		return err == nil
	})
	if err != nil || len(all) < 2 {
		return err
	}
	for _, m := range all {
		spec := m.Function.Spec()
		if spec.Once || spec.Mode != connector.Append {
			return &UnsupportedError{What: fmt.Sprintf("%s in mode %s beside another function with state", spec.Verb, spec.Mode),
				Reason: "a revised row of one could not be taken back in the other", Remedy: "use flatMapGroupsWithState in mode append, or two queries"}
		}
	}
	return nil
}

// groupsBelow is a streaming MapGroups below n, nil if there is none.
func groupsBelow(n Node) *MapGroups {
	var found *MapGroups
	Walk(n, func(x Node) bool {
		if m, ok := x.(*MapGroups); ok && IsStreaming(m) {
			found = m
		}
		return found == nil
	})
	return found
}
