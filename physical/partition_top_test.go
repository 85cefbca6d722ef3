package physical

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
)

// batchesPlan gives batches, dealt to its Readers in turns.
type batchesPlan struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
}

func (p *batchesPlan) Schema() *arrow.Schema    { return p.schema }
func (p *batchesPlan) Children() []Plan         { return nil }
func (p *batchesPlan) WithChildren([]Plan) Plan { return p }
func (p *batchesPlan) String() string           { return "Batches" }

func (p *batchesPlan) Open(_ context.Context, _ *ExecContext, n int) ([]columnar.Reader, error) {
	out := make([]columnar.Reader, n)
	for i := range out {
		out[i] = &batchesReader{plan: p, next: i, step: n}
	}
	return out, nil
}

type batchesReader struct {
	plan       *batchesPlan
	next, step int
}

func (r *batchesReader) Schema() *arrow.Schema { return r.plan.schema }
func (r *batchesReader) Position() int64       { return int64(r.next-r.step) * 1000 }
func (r *batchesReader) Close() error          { return nil }

func (r *batchesReader) Next(context.Context) (arrow.RecordBatch, error) {
	if r.next >= len(r.plan.batches) {
		return nil, io.EOF
	}
	b := r.plan.batches[r.next]
	b.Retain()
	r.next += r.step
	return b, nil
}

// topRow is a row of the test: its number is its order of arrival.
type topRow struct {
	part, first, second any
	number              int64
}

var topSchema = arrow.NewSchema([]arrow.Field{
	columnar.Field("part", columnar.Int32), columnar.Field("first", columnar.Float64),
	columnar.Field("second", columnar.Int64), columnar.Field("number", columnar.Int64),
}, nil)

// TestPartitionTop checks against ranks counted row by row, with partitions of all sizes,
// nulls, NaN, both zeros, extremes and many ties: every row of a wanted rank is there, and
// among the rows that are, it has that rank, the others none that is wanted.
func TestPartitionTop(t *testing.T) {
	t.Parallel()
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 5))
		rows := topRows(r, []int{0, 1, 50, 3000}[r.IntN(4)], 1+r.IntN(300))
		c := topCase{
			rank: []string{"row_number", "rank", "dense_rank"}[r.IntN(3)], n: 1 + r.Int64N(4), readers: 1 + r.IntN(3),
			parted: r.IntN(4) > 0, keys: 1 + r.IntN(2), descending: r.IntN(2) == 0, nullsFirst: r.IntN(2) == 0, sample: 100 << r.IntN(10),
		}
		t.Run(fmt.Sprintf("seed %d %+v", seed, c), func(t *testing.T) {
			t.Parallel()
			c.check(t, rows)
		})
	}
}

func topRows(r *rand.Rand, n, parts int) []topRow {
	floats := []any{nil, math.NaN(), 0.0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.MaxFloat64, 1.5}
	rows := make([]topRow, n)
	for i := range rows {
		rows[i] = topRow{part: int32(r.IntN(parts)), first: floats[r.IntN(len(floats))], second: r.Int64N(3), number: int64(i)}
		if r.IntN(2) == 0 {
			rows[i].first = math.Floor(r.NormFloat64() * 5)
		}
		if r.IntN(20) == 0 {
			rows[i].part = nil
		}
	}
	return rows
}

type topCase struct {
	rank                           string
	n                              int64
	readers, keys, sample          int
	parted, descending, nullsFirst bool
}

func (c topCase) check(t *testing.T, rows []topRow) {
	kept := c.run(t, rows)
	want, got := c.ranks(rows), c.ranks(kept)
	for _, row := range rows {
		now, there := got[row.number]
		switch was := want[row.number]; {
		case was <= c.n && (!there || now != was):
			t.Fatalf("row %+v had rank %d and has %d (kept: %t)", row, was, now, there)
		case was > c.n && there && now <= c.n:
			t.Fatalf("row %+v had rank %d and has %d", row, was, now)
		}
	}
}

// run puts rows through PartitionTop, in batches of 64.
func (c topCase) run(t *testing.T, rows []topRow) []topRow {
	t.Helper()
	in := &batchesPlan{schema: topSchema}
	for part := range slices.Chunk(rows, 64) {
		in.batches = append(in.batches, topBatch(t, part))
	}
	ref := func(i int) expr.Expr {
		return &expr.Ref{Index: i, Name: topSchema.Field(i).Name, DataType: topSchema.Field(i).Type, Null: true}
	}
	var partition []expr.Expr
	if c.parted {
		partition = append(partition, ref(0))
	}
	order := []expr.Order{{Expr: ref(1), Descending: c.descending, NullsFirst: c.nullsFirst}, {Expr: ref(2)}}[:c.keys]
	p, err := NewPartitionTop(in, partition, order, c.rank, c.n)
	if err != nil {
		t.Fatal(err)
	}
	budget := columnar.NewBudget(1 << 30)
	readers, err := p.Open(t.Context(), &ExecContext{Mem: memory.DefaultAllocator, Budget: budget}, c.readers)
	if err != nil {
		t.Fatal(err)
	}
	var out []topRow
	for _, r := range readers {
		x := r.(*partitionTopReader)
		x.least, x.sample = 70, c.sample
		last := int64(-1)
		for {
			b, err := r.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if at := PositionOf(r); at < last || int64(b.Column(3).(*array.Int64).Value(0)) < at/1000*64 {
				t.Errorf("position %d after %d", at, last)
			} else {
				last = at
			}
			for _, n := range b.Column(3).(*array.Int64).Int64Values() {
				out = append(out, rows[n])
			}
			b.Release()
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := budget.Used(); n != 0 {
		t.Errorf("%d bytes are not given back", n)
	}
	slices.SortFunc(out, func(a, b topRow) int { return int(a.number - b.number) })
	return out
}

func topBatch(t *testing.T, rows []topRow) arrow.RecordBatch {
	t.Helper()
	columns := make([]arrow.Array, 4)
	for i, dt := range []arrow.DataType{columnar.Int32, columnar.Float64, columnar.Int64, columnar.Int64} {
		list := make([]any, len(rows))
		for k, r := range rows {
			list[k] = []any{r.part, r.first, r.second, r.number}[i]
		}
		c, err := columnar.Column(memory.DefaultAllocator, dt, list...)
		if err != nil {
			t.Fatal(err)
		}
		columns[i] = c
	}
	return takeBatch(topSchema, columns, int64(len(rows)))
}

// ranks are the ranks of rows by their numbers, each counted by looking at all others.
func (c topCase) ranks(rows []topRow) map[int64]int64 {
	parts := map[any][]topRow{}
	for _, r := range rows {
		key := r.part
		if !c.parted {
			key = 0
		}
		parts[key] = append(parts[key], r)
	}
	out := map[int64]int64{}
	for _, part := range parts {
		slices.SortStableFunc(part, c.compare)
		dense := int64(0)
		for i, r := range part {
			same := i > 0 && c.compare(part[i-1], r) == 0
			if !same {
				dense++
			}
			switch {
			case c.rank == "dense_rank":
				out[r.number] = dense
			case c.rank == "rank" && same:
				out[r.number] = out[part[i-1].number]
			default:
				out[r.number] = int64(i) + 1
			}
		}
	}
	return out
}

func (c topCase) compare(a, b topRow) int {
	x, xOK := a.first.(float64)
	y, yOK := b.first.(float64)
	sign := 0
	switch {
	case xOK != yOK:
		if sign = 1; xOK != c.nullsFirst {
			sign = -1
		}
	case !xOK || x == y || x != x && y != y:
	default:
		if sign = 1; y != y || x < y {
			sign = -1
		}
		if c.descending {
			sign = -sign
		}
	}
	if sign == 0 && c.keys == 2 {
		sign = int(a.second.(int64) - b.second.(int64))
	}
	return sign
}
