package physicaltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/physical"
)

// Case is a plan to be run in many ways.
type Case struct {
	// Schema is the columns of the input, as columnartest.Schema reads them.
	Schema string
	// Plan puts the operator under test over scans of tables with Schema. It is asked
	// for Inputs scans; 0 is one.
	Plan   func(t testing.TB, inputs []physical.Plan) physical.Plan
	Inputs int
	// Distinct is how many different values a column has; 0 is few.
	Distinct int
	// MaxRows leaves larger inputs out; 0 is no limit. For what takes quadratic time.
	MaxRows int
	// Ordered says that the result has an order that nothing may change.
	Ordered bool
	// ULP is how far doubles may be apart.
	ULP int
	// KeepsOn is set for operators that need not read their whole input: an error in
	// it may then go unseen.
	KeepsOn bool
}

// errInjected is the error of a failing input.
var errInjected = errors.New("injected")

// Run runs c: over 0, 1, 2, 3, 1000 and random numbers of rows, with some, only and no
// nulls; for each cut into batches of 1, 2, 3, 64 and 1000 rows, sliced, with encoded
// text, in one and several units, with 1, 2 and 4 goroutines. All must give
// the result of the plain way. Then it breaks off: an error of the input, Close after
// some batches, a cancelled context.
func Run(t *testing.T, c Case) {
	t.Helper()
	if c.Inputs == 0 {
		c.Inputs = 1
	}
	r := rand.New(rand.NewPCG(7, 11))
	inputs := []struct {
		rows  int
		nulls float64 // share; -1 is none
	}{{0, -1}, {1, -1}, {1, 1}, {2, 0.2}, {3, -1}, {50 + r.IntN(100), -1}, {50 + r.IntN(100), 1}, {50 + r.IntN(100), 0.2}, {1000, 0.2}}
	for _, in := range inputs {
		if c.MaxRows > 0 && in.rows > c.MaxRows {
			continue
		}
		t.Run(fmt.Sprintf("rows=%d nulls=%v", in.rows, in.nulls), func(t *testing.T) { c.runOn(t, in.rows, in.nulls) })
	}
	t.Run("breaking off", c.breakOff)
}

// variant is one way to give the input and run the plan.
type variant struct {
	batch    int // rows a batch
	units    int
	parallel int
	encoded  bool
	rows     int // ExecContext.BatchRows
}

func (v variant) String() string {
	return fmt.Sprintf("batch=%d units=%d parallel=%d encoded=%v batchRows=%d", v.batch, v.units, v.parallel, v.encoded, v.rows)
}

var variants = []variant{
	{1, 1, 1, false, 0}, {2, 3, 2, false, 3}, {3, 2, 4, true, 1}, {64, 5, 2, true, 0},
	{1000, 1, 2, false, 7}, {100, 10, 4, false, 64}, {100000, 4, 2, true, 1000},
}

func (c Case) runOn(t *testing.T, rows int, nulls float64) {
	mem := columnartest.Mem(t)
	whole := make([]arrow.RecordBatch, c.Inputs)
	encoded := make([]arrow.RecordBatch, c.Inputs)
	for i := range whole {
		o := columnartest.RandomOptions{Rows: rows, Nulls: nulls, Distinct: c.Distinct}
		if o.Distinct == 0 {
			o.Distinct = 7
		}
		whole[i] = columnartest.Random(t, mem, columnartest.Schema(t, c.Schema), uint64(rows+i*7919), o)
		encoded[i] = encode(t, mem, whole[i])
	}
	plain := c.plan(t, whole, whole, variant{batch: rows + 1, units: 1})
	want := collect(t, mem, plain, &physical.ExecContext{Mem: mem, Parallel: 1})
	for i, v := range variants {
		if v.batch < 10 && rows > 200 {
			continue // slow, and no different from fewer rows
		}
		p := c.plan(t, whole, encoded, v)
		ec := &physical.ExecContext{Mem: mem, Parallel: v.parallel, BatchRows: v.rows, Metrics: &physical.Metrics{}}
		for range 1 + i%2 { // a plan may be opened twice
			got := collect(t, mem, p, ec)
			if d := columnartest.Diff(want, got, columnartest.DiffOptions{Ordered: c.Ordered, ULP: c.ULP}); d != "" {
				t.Errorf("%s:\n%s%s", v, physical.Explain(p), d)
			}
			release(got)
		}
		if t.Failed() {
			break
		}
	}
	release(want)
}

func release(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// plan is the plan of c over tables laid out as v says.
func (c Case) plan(t testing.TB, whole, encoded []arrow.RecordBatch, v variant) physical.Plan {
	return c.planOver(t, c.tables(t, whole, encoded, v))
}

func (c Case) planOver(t testing.TB, tables []*Table) physical.Plan {
	inputs := make([]physical.Plan, len(tables))
	for i, table := range tables {
		inputs[i] = Scan(t, table)
	}
	return c.Plan(t, inputs)
}

func (c Case) tables(t testing.TB, whole, encoded []arrow.RecordBatch, v variant) []*Table {
	out := make([]*Table, len(whole))
	for i, b := range whole {
		schema := b.Schema()
		if v.encoded {
			b = encoded[i]
		}
		out[i] = NewTable(schema, cut(t, b, v.batch, v.units)...)
	}
	return out
}

// cut spreads the rows of b over units, in batches of size rows, released with t.
func cut(t testing.TB, b arrow.RecordBatch, size, units int) [][]arrow.RecordBatch {
	out := make([][]arrow.RecordBatch, units)
	n := int(b.NumRows())
	for u := range units {
		from, to := n*u/units, n*(u+1)/units
		for at := from; at < to; at += size {
			part := b.NewSlice(int64(at), int64(min(at+size, to)))
			t.Cleanup(part.Release)
			out[u] = append(out[u], part)
		}
	}
	return out
}

// encode is b with VARCHAR and BINARY columns dictionary-encoded, released with t.
func encode(t testing.TB, mem memory.Allocator, b arrow.RecordBatch) arrow.RecordBatch {
	columns := make([]arrow.Array, b.NumCols())
	fields := make([]arrow.Field, b.NumCols())
	for i, c := range b.Columns() {
		fields[i] = b.Schema().Field(i)
		if id := c.DataType().ID(); id == arrow.STRING || id == arrow.BINARY {
			columns[i] = columnartest.Encode(mem, c)
		} else {
			c.Retain()
			columns[i] = c
		}
		fields[i].Type = columns[i].DataType()
	}
	out := array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows())
	for _, c := range columns {
		c.Release()
	}
	t.Cleanup(out.Release)
	return out
}

// collect runs p and makes sure that batches do not change once they were given.
func collect(t testing.TB, mem memory.Allocator, p physical.Plan, ec *physical.ExecContext) []arrow.RecordBatch {
	t.Helper()
	ctx := context.Background()
	r, err := physical.Run(ctx, p, ec)
	if err != nil {
		t.Fatalf("open: %v\n%s", err, physical.Explain(p))
	}
	var batches []arrow.RecordBatch
	var texts []string
	for {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Errorf("next: %v\n%s", err, physical.Explain(p))
			break
		}
		if b.NumRows() == 0 {
			t.Errorf("an empty batch\n%s", physical.Explain(p))
		}
		if !columnar.EqualTypes(b.Schema(), r.Schema()) {
			t.Errorf("batch has columns %s, the plan %s", columnar.SchemaString(b.Schema()), columnar.SchemaString(r.Schema()))
		}
		batches, texts = append(batches, b), append(texts, text(b))
	}
	if _, err := r.Next(ctx); err == nil || !t.Failed() && !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	for i, b := range batches {
		if text(b) != texts[i] {
			t.Errorf("a batch changed after it was given\n%s", physical.Explain(p))
		}
	}
	return batches
}

func text(b arrow.RecordBatch) string {
	var sb strings.Builder
	for _, c := range b.Columns() {
		for i := range c.Len() {
			sb.Write(columnar.AppendJSON(nil, c, i))
			sb.WriteByte('|')
		}
	}
	return sb.String()
}

// breakOff ends runs before their end; nothing may leak or hang.
func (c Case) breakOff(t *testing.T) {
	mem := columnartest.Mem(t)
	whole := make([]arrow.RecordBatch, c.Inputs)
	for i := range whole {
		whole[i] = columnartest.Random(t, mem, columnartest.Schema(t, c.Schema), uint64(i+5), columnartest.RandomOptions{Rows: 400, Distinct: 9})
	}
	for _, parallel := range []int{1, 3} {
		ec := &physical.ExecContext{Mem: mem, Parallel: parallel, BatchRows: 16}
		v := variant{batch: 10, units: 7}
		for failing := range whole {
			for _, after := range []int64{0, 1, 35} {
				tables := c.tables(t, whole, whole, v)
				tables[failing].Wrap = func(unit int, r columnar.Reader) columnar.Reader {
					if unit == 3 {
						return columnartest.FailAt(r, after, errInjected)
					}
					return r
				}
				if err := drain(c.planOver(t, tables), ec); !errors.Is(err, errInjected) && !(c.KeepsOn && err == nil) {
					t.Errorf("an error of input %d after %d rows came out as %v", failing, after, err)
				}
			}
		}
		for _, batches := range []int{0, 1, 2, 5} {
			closeAfter(t, c.plan(t, whole, whole, v), ec, batches)
		}
		ctx, cancel := context.WithCancel(context.Background())
		r, err := physical.Run(ctx, c.plan(t, whole, whole, v), ec)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := r.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("under a cancelled context: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// drain runs p to its end or error.
func drain(p physical.Plan, ec *physical.ExecContext) error {
	batches, err := physical.Collect(context.Background(), p, ec)
	release(batches)
	return err
}

func closeAfter(t testing.TB, p physical.Plan, ec *physical.ExecContext, batches int) {
	ctx := context.Background()
	r, err := physical.Run(ctx, p, ec)
	if err != nil {
		t.Fatal(err)
	}
	for range batches {
		b, err := r.Next(ctx)
		if err != nil {
			break
		}
		b.Release()
	}
	if err := r.Close(); err != nil {
		t.Errorf("close after %d batches: %v", batches, err)
	}
	if b, err := r.Next(ctx); err == nil {
		b.Release()
		t.Errorf("Next after Close gives rows")
	}
}
