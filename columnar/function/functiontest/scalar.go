package functiontest

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
)

// TestScalar is the conformance suite of a scalar function: rows are arguments for which
// it gives a value, at least two of them, of which one may hold nulls. It checks that a
// value depends on its row alone, however rows are cut and whether an argument is a column
// or a constant, that rows that do not count cannot fail, and that nothing leaks.
func TestScalar(t *testing.T, f *function.Scalar, args []arrow.DataType, rows [][]any) {
	c := scalarCase{t: t, mem: columnartest.Mem(t), args: args, rows: rows}
	for i := range f.Overloads {
		if fits(f.Overloads[i].Args, args) {
			c.overload = &f.Overloads[i]
		}
	}
	if c.overload == nil {
		t.Fatalf("%s has no overload that takes %v as they are", f.Name, args)
	}
	if len(rows) < 2 {
		t.Fatalf("the suite needs two rows, there are %d", len(rows))
	}
	var err error
	if c.result, err = c.overload.Result(args); err != nil {
		t.Fatalf("Result: %v", err)
	}
	whole := c.call(rows, nil, false)
	t.Run("OneRow", func(*testing.T) {
		for i, row := range rows {
			c.same("a row alone", c.call([][]any{row}, nil, false), whole[i:i+1])
		}
	})
	t.Run("Constants", func(*testing.T) {
		for i, row := range rows {
			c.same("constants", c.call([][]any{row}, nil, true), whole[i:i+1])
		}
	})
	t.Run("Slice", func(*testing.T) { c.same("a slice", c.slice(1), whole[1:]) })
	t.Run("NoRows", func(*testing.T) { c.same("no rows", c.call(nil, nil, false), nil) })
	t.Run("Active", func(t *testing.T) {
		if !c.overload.Fallible {
			t.Skip("it cannot fail")
		}
		none := columnar.NewBitmap(len(rows))
		if _, err := c.eval(c.columns(rows), len(rows), none); err != nil {
			t.Errorf("it fails for rows that do not count: %v", err)
		}
	})
}

type scalarCase struct {
	t        *testing.T
	mem      memory.Allocator
	overload *function.Overload
	args     []arrow.DataType
	result   arrow.DataType
	rows     [][]any
}

// fits says whether an overload takes arguments of exactly these types.
func fits(matchers []function.Matcher, args []arrow.DataType) bool {
	if len(matchers) != len(args) {
		return false
	}
	for i, m := range matchers {
		if want, _, ok := m.Match(args[i]); !ok || !arrow.TypeEqual(want, args[i]) {
			return false
		}
	}
	return true
}

func (c *scalarCase) columns(rows [][]any) []arrow.Array {
	out := make([]arrow.Array, len(c.args))
	for k, dt := range c.args {
		b := columnar.NewBuilder(c.mem, dt)
		for _, row := range rows {
			if err := b.Append(row[k]); err != nil {
				c.t.Fatal(err)
			}
		}
		out[k] = b.NewArray()
		b.Release()
	}
	return out
}

// eval runs the kernel on columns, which it releases.
func (c *scalarCase) eval(columns []arrow.Array, rows int, active *columnar.Bitmap) ([]any, error) {
	return c.run(columns, rows, active, columnar.ColumnDatum)
}

// written is the text of an expression.
type written string

func (w written) String() string { return string(w) }

func (c *scalarCase) run(columns []arrow.Array, rows int, active *columnar.Bitmap, wrap func(arrow.Array) columnar.Datum) ([]any, error) {
	args := make([]columnar.Datum, len(columns))
	for i, a := range columns {
		args[i] = wrap(a)
		defer args[i].Release()
	}
	kernel, err := c.overload.Bind(c.args, make([]arrow.Array, len(c.args)))
	if err != nil {
		c.t.Fatalf("Bind: %v", err)
	}
	d, err := kernel(&function.Env{Mem: c.mem, Seed: 1, Expr: written("f(…)")}, args, rows, active)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	if got := d.Array().DataType(); !arrow.TypeEqual(got, c.result) {
		c.t.Errorf("the result is %s, not %s", got, c.result)
	}
	if !d.IsConstant() && d.Array().Len() != rows {
		c.t.Errorf("%d values for %d rows", d.Array().Len(), rows)
	}
	whole := columnar.Broadcast(c.mem, d, rows)
	defer whole.Release()
	values := make([]any, whole.Len())
	for i := range values {
		values[i] = columnar.Value(whole, i)
	}
	return values, nil
}

// call is the values of rows. Where an argument is null and the function leaves nulls to
// the evaluator, the value is null.
func (c *scalarCase) call(rows [][]any, active *columnar.Bitmap, constants bool) []any {
	c.t.Helper()
	wrap := columnar.ColumnDatum
	if constants {
		wrap = columnar.ConstantDatum
	}
	if active == nil && !c.overload.NullSafe {
		active = columnar.NewBitmap(len(rows))
		for i, row := range rows {
			if !hasNull(row) {
				active.Set(i)
			}
		}
	}
	values, err := c.run(c.columns(rows), len(rows), active, wrap)
	if err != nil {
		c.t.Fatalf("it fails: %v", err)
	}
	return c.nulled(rows, values)
}

func (c *scalarCase) nulled(rows [][]any, values []any) []any {
	for i, row := range rows {
		if !c.overload.NullSafe && hasNull(row) {
			values[i] = nil
		}
	}
	return values
}

func hasNull(row []any) bool {
	for _, v := range row {
		if v == nil {
			return true
		}
	}
	return false
}

// slice is the values of the rows from the given one on, of columns that begin before.
func (c *scalarCase) slice(from int) []any {
	whole := c.columns(c.rows)
	parts := make([]arrow.Array, len(whole))
	for i, a := range whole {
		parts[i] = array.NewSlice(a, int64(from), int64(a.Len()))
		a.Release()
	}
	rows := c.rows[from:]
	var active *columnar.Bitmap
	if !c.overload.NullSafe {
		active = columnar.NewBitmap(len(rows))
		for i, row := range rows {
			if !hasNull(row) {
				active.Set(i)
			}
		}
	}
	values, err := c.eval(parts, len(rows), active)
	if err != nil {
		c.t.Fatalf("it fails on a slice: %v", err)
	}
	return c.nulled(rows, values)
}

func (c *scalarCase) same(what string, got, want []any) {
	c.t.Helper()
	if !equal(got, want) {
		c.t.Errorf("%s: %v, not %v", what, got, want)
	}
}
