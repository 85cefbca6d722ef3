package parquet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// TestParts compares the parts of row groups with the whole, on random files with pages of
// all sizes, with and without filters that leave pages out.
func TestParts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 12))
		m := vfs.NewMem()
		file := pagedFile(t, r, m)
		mem := columnartest.Mem(t)
		filters := [][]expr.Expr{nil, {pagedFilter(t, r, 2)}}[seed%2]
		var whole, parts []connector.Unit
		for _, columns := range [][]int{{0, 1, 2, 3, 4, 5, 6}, {0, 7}} {
			stats := &connector.ScanStats{}
			f, _ := New(Options{})
			req := connector.ScanRequest{Mem: mem, Columns: columns, Stats: stats, BatchRows: 100 + r.IntN(2000), Filters: filters, SplitBytes: 1}
			units, err := f.Units(t.Context(), file, codec.Columns{Schema: pagedSchema, CorruptColumn: -1}, req)
			if err != nil {
				t.Fatal(err)
			}
			whole, parts = units, nil
			groups := 0
			for _, u := range units {
				for _, g := range u.(*unit).groups {
					groups++
					one := *u.(*unit)
					one.groups = []int{g}
					parts = append(parts, one.divide(1+r.Int64N(2000))...)
				}
			}
			if flat := len(columns) == 7; groups > 0 && flat != (len(parts) > groups) {
				t.Errorf("seed %d, columns %v: %d parts of %d row groups", seed, columns, len(parts), groups)
			}
			schema := columnar.Select(pagedSchema, columns)
			want := passingUnits(t, mem, whole, schema)
			read := stats.Rows.Swap(0)
			got := passingUnits(t, mem, parts, schema)
			if !slices.Equal(got, want) || stats.Rows.Load() != read {
				t.Fatalf("seed %d, columns %v: %d rows, undivided %d", seed, columns, len(got), len(want))
			}
		}
		if m.OpenFiles() != 0 {
			t.Errorf("%d files are left open", m.OpenFiles())
		}
	}
}

// TestDivided: what is large and alone is divided, at the pages this package writes.
func TestDivided(t *testing.T) {
	t.Parallel()
	schema := columnar.NewSchema(columnar.Field("id", columnar.Int64), columnar.Field("s", columnar.String))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	const rows = 200_000
	for i := range int64(rows) {
		b.Field(0).(*array.Int64Builder).Append(i * 7919 % 1_000_003)
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("text ", i%50_000))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	for _, c := range []struct {
		groupRows int
		columns   []int
		split     int64
		want      []string
	}{
		{rows, []int{0, 1}, 0, []string{"a row group 0 rows 0-65535", "a row group 0 rows 65536-131071", "a row group 0 rows 131072-199999"}},
		{rows, []int{0, 1}, 1, []string{"a row group 0"}},
		{rows, nil, 0, []string{"a row group 0"}}, // the number of rows alone
		{130_000, []int{0, 1}, 0, []string{"a row group 0", "a row group 1"}},
		{140_000, []int{0, 1}, 0, []string{"a row group 0 rows 0-65535", "a row group 0 rows 65536-139999", "a row group 1"}},
	} {
		m := vfs.NewMem()
		writeFile(t, m, "a", schema, WriterConfig{RowGroupRows: c.groupRows}, batch)
		f, _ := New(Options{})
		if c.columns == nil {
			c.columns = []int{}
		}
		mem := columnartest.Mem(t)
		units, err := f.Units(t.Context(), inputFile(t, m, "a"), codec.Columns{Schema: schema}, connector.ScanRequest{Mem: mem, Columns: c.columns, SplitBytes: c.split})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range units {
			got = append(got, u.(*unit).Name())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("row groups of %d, columns %v: %q, want %q", c.groupRows, c.columns, got, c.want)
		}
		if n := len(passingUnits(t, mem, units, columnar.Select(schema, c.columns))); n != rows {
			t.Errorf("%d rows of %d", n, rows)
		}
	}
}
