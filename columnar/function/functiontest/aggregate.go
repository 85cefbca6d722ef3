package functiontest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
)

// equal compares values as text, so that nested ones and NaN are, too.
func equal(a, b []any) bool {
	return slices.EqualFunc(a, b, func(x, y any) bool { return fmt.Sprintf("%T %v", x, x) == fmt.Sprintf("%T %v", y, y) })
}

// TestAggregate is the conformance suite of an aggregate whose order of rows does not
// matter. rows are arguments, at least four, with nulls among them. It checks that a group
// does not see the rows of another, that state that is saved, merged and loaded gives
// what the rows would have given, and that nothing leaks.
func TestAggregate(t *testing.T, f *function.Aggregate, args []arrow.DataType, rows [][]any) {
	c := aggregateCase{t: t, mem: columnartest.Mem(t), args: args, rows: rows}
	for i := range f.Overloads {
		if fits(f.Overloads[i].Args, args) {
			c.overload = &f.Overloads[i]
		}
	}
	switch {
	case c.overload == nil:
		t.Fatalf("%s has no overload that takes %v as they are", f.Name, args)
	case c.overload.Ordered:
		t.Fatalf("%s depends on the order of rows", f.Name)
	case len(rows) < 4:
		t.Fatalf("the suite needs four rows, there are %d", len(rows))
	}
	a := c.open(2)
	empty := c.results(a, 0, 1)
	c.update(a, rows, 0)
	all := c.results(a, 0)
	c.same("a group that got nothing", c.results(a, 1), empty[1:])
	c.same("Result changes nothing", c.results(a, 0), all)
	a.Clear([]uint32{0})
	c.same("a cleared group", c.results(a, 0), empty[:1])
	a.Release()

	t.Run("Merge", func(*testing.T) { c.merge(all) })
	t.Run("Absorb", func(*testing.T) { c.absorb(all) })
	t.Run("Load", func(*testing.T) { c.load(all) })
	t.Run("Groups", func(*testing.T) { c.groups(empty[:1]) })
	t.Run("Resize", func(*testing.T) {
		a := c.open(1)
		defer a.Release()
		c.update(a, rows, 0)
		a.Resize(1000)
		c.same("after Resize", c.results(a, 0), all)
		c.same("a new group", c.results(a, 999), empty[:1])
	})
}

type aggregateCase struct {
	t        *testing.T
	mem      memory.Allocator
	overload *function.AggregateOverload
	args     []arrow.DataType
	rows     [][]any
}

func (c *aggregateCase) open(groups int) function.Accumulator {
	c.t.Helper()
	a, err := c.overload.New(c.mem, c.args)
	if err != nil {
		c.t.Fatalf("New: %v", err)
	}
	a.Resize(groups)
	return a
}

// update gives rows to a group.
func (c *aggregateCase) update(a function.Accumulator, rows [][]any, group uint32) {
	c.t.Helper()
	groups := slices.Repeat([]uint32{group}, len(rows))
	c.updateEach(a, rows, groups)
}

func (c *aggregateCase) updateEach(a function.Accumulator, rows [][]any, groups []uint32) {
	c.t.Helper()
	s := scalarCase{t: c.t, mem: c.mem, args: c.args}
	var args []columnar.Datum
	for _, column := range s.columns(rows) {
		d := columnar.ColumnDatum(column)
		defer d.Release()
		args = append(args, d)
	}
	if err := a.Update(groups, args); err != nil {
		c.t.Fatalf("Update: %v", err)
	}
}

func (c *aggregateCase) results(a function.Accumulator, groups ...uint32) []any {
	c.t.Helper()
	r, err := a.Result(groups)
	if err != nil {
		c.t.Fatalf("Result: %v", err)
	}
	defer r.Release()
	values := make([]any, r.Len())
	for i := range values {
		values[i] = columnar.Value(r, i)
	}
	return values
}

// state calls use with the state of a group, checked against Fields.
func (c *aggregateCase) state(a function.Accumulator, group uint32, use func([]arrow.Array) error) {
	c.t.Helper()
	columns, err := a.State([]uint32{group})
	if err != nil {
		c.t.Fatalf("State: %v", err)
	}
	for i, s := range columns {
		defer s.Release()
		if f := a.Fields()[i]; !arrow.TypeEqual(f.Type, s.DataType()) {
			c.t.Errorf("state column %s is %s, Fields says %s", f.Name, s.DataType(), f.Type)
		}
	}
	if err := use(columns); err != nil {
		c.t.Fatal(err)
	}
}

// merge splits the rows at every place and adds the state of the second part.
func (c *aggregateCase) merge(want []any) {
	for at := range len(c.rows) + 1 {
		a, b := c.open(1), c.open(3)
		c.update(a, c.rows[:at], 0)
		c.update(b, c.rows[at:], 2)
		c.state(b, 2, func(s []arrow.Array) error { return a.Merge([]uint32{0}, s) })
		c.same(fmt.Sprintf("merged after row %d", at), c.results(a, 0), want)
		a.Release()
		b.Release()
	}
}

// absorb does the same without state columns, where an accumulator can.
func (c *aggregateCase) absorb(want []any) {
	for at := range len(c.rows) + 1 {
		a, b := c.open(1), c.open(3)
		c.update(a, c.rows[:at], 0)
		c.update(b, c.rows[at:], 2)
		if absorber, ok := a.(function.Absorber); ok {
			if err := absorber.Absorb([]uint32{0}, b, []uint32{2}); err != nil {
				c.t.Fatalf("Absorb: %v", err)
			}
			c.same(fmt.Sprintf("absorbed after row %d", at), c.results(a, 0), want)
		}
		a.Release()
		b.Release()
	}
}

// load overwrites a group with the state of a part, and goes on with the rest.
func (c *aggregateCase) load(want []any) {
	for at := range len(c.rows) + 1 {
		a, b := c.open(1), c.open(1)
		c.update(b, c.rows[:at], 0)
		c.update(a, c.rows, 0) // to be overwritten
		c.state(b, 0, func(s []arrow.Array) error { return a.Load([]uint32{0}, s) })
		c.update(a, c.rows[at:], 0)
		c.same(fmt.Sprintf("loaded after row %d", at), c.results(a, 0), want)
		a.Release()
		b.Release()
	}
}

// groups spreads the rows over groups.
func (c *aggregateCase) groups(empty []any) {
	a := c.open(3)
	defer a.Release()
	groups := make([]uint32, len(c.rows))
	var parts [2][][]any
	for i, row := range c.rows {
		groups[i] = uint32(i%2) * 2
		parts[i%2] = append(parts[i%2], row)
	}
	c.updateEach(a, c.rows, groups)
	for k, part := range parts {
		b := c.open(1)
		c.update(b, part, 0)
		c.same("a group among others", c.results(a, uint32(k)*2), c.results(b, 0))
		b.Release()
	}
	c.same("the group without rows", c.results(a, 1), empty)
}

func (c *aggregateCase) same(what string, got, want []any) {
	c.t.Helper()
	if !equal(got, want) {
		c.t.Errorf("%s: %v, not %v", what, got, want)
	}
}
