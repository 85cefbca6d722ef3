package stateful

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// The sides of a join, in the order in which a batch is processed.
const (
	leftSide = iota
	rightSide
)

// joinState is what a join of two streams keeps: the rows of both sides that may still
// match.
type joinState struct {
	kind  logical.JoinKind
	parts logical.JoinParts
	sides [2]joinSide
}

// joinSide is one side of a join and how its rows are kept. The columns of its table
// are, in this order:
//
//	k, lower(name)   the keys
//	v, ts            the columns of the side that are not keys as they stand
//	matched          where it matters whether a row has had a match
//	evict_time       where rows are evicted by something computed, as ts + delay
type joinSide struct {
	table  string
	schema *logical.Schema // of the side
	keys   []expr.Expr
	conds  []expr.Expr // over this side alone
	bound  *logical.JoinBound
	// columns says for each column of the side which one of the table it is.
	columns []int
	values  []*expr.Column // v, ts
	matched int            // a column of the table, or -1
	evict   int            // the column of the table that is bound.Time; -1 without bound
	// padded side: its rows without a match come out, with nulls for the other side.
	padded   bool
	lateTime *expr.Column // the event time rows are judged late by; nil: never
	lateMark logical.EventTime
}

// describeJoin keeps both sides. What is kept follows from the analyzed plan alone.
func describeJoin(j *logical.Join, mode connector.OutputMode, form int) (*Operator, error) {
	s := &joinState{kind: j.Kind, parts: logical.PartsOf(j)}
	o := &Operator{node: j, name: j.State, kind: "symmetricHashJoin", mode: mode, join: s, spec: state.Spec{Operator: j.State}}
	left, right := logical.JoinBounds(j)
	s.sides = [2]joinSide{
		{table: "left", schema: j.Left.Schema(), conds: s.parts.Left, bound: left, padded: j.Kind == logical.LeftJoin || j.Kind == logical.FullJoin},
		{table: "right", schema: j.Right.Schema(), conds: s.parts.Right, bound: right, padded: j.Kind == logical.RightJoin || j.Kind == logical.FullJoin},
	}
	for _, k := range s.parts.Keys {
		s.sides[leftSide].keys = append(s.sides[leftSide].keys, k.Left)
		s.sides[rightSide].keys = append(s.sides[rightSide].keys, k.Right)
	}
	for i, in := range j.Children() {
		side := &s.sides[i]
		tracked := side.padded || j.Kind == logical.SemiJoin && i == leftSide
		o.spec.Tables = append(o.spec.Tables, side.layOut(tracked))
		side.lateTime, side.lateMark = lateColumn(in, side.bound)
		o.evicted = o.evicted || side.bound != nil
	}
	o.text = s.text(j, o.spec.Tables, form)
	return o, nil
}

// text tells what the state of a join means, with types.
func (s *joinState) text(j *logical.Join, tables []state.TableSchema, form int) string {
	var sb strings.Builder
	on := s.sided(j.On)
	if form > checkpoint.FormerReads {
		on = newReader(form).normal(on)
	}
	fmt.Fprintf(&sb, "%s on=%s", s.kind, on)
	for _, t := range tables {
		fmt.Fprintf(&sb, " %s keys=[%s] values=[%s]", t.Name, typedNames(t.Key), typedNames(t.Values))
	}
	return sb.String()
}

// sided is a condition with left and right in place of table names, so that an alias
// in the query may change.
func (s *joinState) sided(e expr.Expr) expr.Expr {
	out, err := expr.Transform(e, func(x expr.Expr) (expr.Expr, error) {
		c, ok := x.(*expr.Column)
		if !ok {
			return x, nil
		}
		n := *c
		n.Qualifier = s.sides[rightSide].table
		if s.sides[leftSide].schema.Has(c.ID) {
			n.Qualifier = s.sides[leftSide].table
		}
		return &n, nil
	})
	if err != nil {
		return e // the function above returns none
	}
	return out
}

func typedNames(list []arrow.Field) string {
	parts := make([]string, len(list))
	for i, f := range list {
		parts[i] = f.Name + " " + columnar.TypeName(f.Type)
	}
	return strings.Join(parts, ", ")
}

// layOut decides the columns of the side's table; tracked asks for matched.
func (s *joinSide) layOut(tracked bool) state.TableSchema {
	s.columns, s.matched, s.evict = make([]int, len(s.schema.Columns)), -1, -1
	for i, c := range s.schema.Columns {
		if s.columns[i] = s.keyOf(c); s.columns[i] < 0 {
			s.columns[i] = len(s.keys) + len(s.values)
			s.values = append(s.values, c)
		}
	}
	t := state.TableSchema{Name: s.table, MultiRow: true, Order: state.Order{By: state.ByKey}}
	var names []string
	var types []arrow.DataType
	add := func(name string, dt arrow.DataType) int {
		names, types = append(names, name), append(types, dt)
		return len(names) - 1
	}
	for _, k := range s.keys {
		add(nameOf(k), k.Type())
	}
	for _, c := range s.values {
		add(c.Name, c.DataType)
	}
	if tracked {
		s.matched = add("matched", columnar.Boolean)
	}
	if s.bound != nil {
		if s.evict = s.columnOf(s.bound.Time); s.evict < 0 {
			s.evict = add("evict_time", columnar.Timestamp)
		}
		t.Order = state.Order{By: state.ByKeyColumn, Column: s.evict}
		if s.evict >= len(s.keys) {
			t.Order = state.Order{By: state.ByValueColumn, Column: s.evict - len(s.keys)}
		}
	}
	for i, n := range uniqueNames(names) {
		f := columnar.Field(n, types[i])
		if i < len(s.keys) {
			t.Key = append(t.Key, f)
		} else {
			t.Values = append(t.Values, f)
		}
	}
	return t
}

// keyOf is the key that is c as it stands, or -1. Keys of which equal ones have several
// forms are kept in one of these, so they do not stand for the column.
func (s *joinSide) keyOf(c *expr.Column) int {
	if columnar.HasEqualForms(c.DataType) {
		return -1
	}
	for i, k := range s.keys {
		if x, ok := k.(*expr.Column); ok && x.ID == c.ID {
			return i
		}
	}
	return -1
}

// columnOf is the column of the table that holds e, or -1.
func (s *joinSide) columnOf(e expr.Expr) int {
	for i, k := range s.keys {
		if k == e {
			return i
		}
	}
	if c, ok := e.(*expr.Column); ok {
		if i := s.schema.Index(c.ID); i >= 0 {
			return s.columns[i]
		}
	}
	return -1
}

// KeyNames are the names of a join's keys, as its left side calls them.
func KeyNames(j *logical.Join) string {
	var parts []string
	for _, k := range logical.PartsOf(j).Keys {
		parts = append(parts, nameOf(k.Left))
	}
	return strings.Join(parts, ", ")
}

// nameOf is the name of a key in the state.
func nameOf(e expr.Expr) string {
	if c, ok := e.(*expr.Column); ok {
		return c.Name
	}
	return Unqualified(e)
}

// lateColumn is the column of a side by which its rows are judged late: that of the key
// that closes them, if it has a watermark on this side; else the event time.
func lateColumn(n logical.Node, bound *logical.JoinBound) (*expr.Column, logical.EventTime) {
	if bound != nil && !bound.Range {
		if c, ok := bound.Time.(*expr.Column); ok {
			if m, ok := logical.EventTimes(n)[c.ID]; ok && !m.IsOpen {
				return c, m
			}
		}
	}
	position, mark, ok := eventTimeOf(n)
	if !ok || mark.IsOpen {
		return nil, mark
	}
	return n.Schema().Columns[position], mark
}
