package connectortest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/connector"
)

// TestTable is the conformance suite of connector.Table. open is called once a case
// and returns a table with at least two columns and three rows, always the same.
func TestTable(t *testing.T, open func(t *testing.T) connector.Table) {
	t.Run("ReadTwice", func(t *testing.T) {
		mem := columnartest.Mem(t)
		table := open(t)
		first := Rows(t, mem, units(t, table, connector.ScanRequest{Mem: mem}))
		if len(first) < 3 {
			t.Fatalf("the suite needs three rows, there are %d", len(first))
		}
		second := Rows(t, mem, units(t, table, connector.ScanRequest{Mem: mem}))
		if !slices.Equal(first, second) {
			t.Errorf("read twice, two results:\n%s\n--\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
		}
		if c, ok := table.(connector.RowCounter); ok {
			if n, known := c.RowCount(); known && n != int64(len(first)) {
				t.Errorf("RowCount is %d, there are %d rows", n, len(first))
			}
		}
	})
	t.Run("Columns", func(t *testing.T) { testColumns(t, open(t)) })
	t.Run("BatchRows", func(t *testing.T) {
		mem := columnartest.Mem(t)
		table := open(t)
		want := Rows(t, mem, units(t, table, connector.ScanRequest{Mem: mem}))
		for _, n := range []int{1, 2, 1000} {
			got := Rows(t, mem, units(t, table, connector.ScanRequest{Mem: mem, BatchRows: n}))
			if !slices.Equal(got, want) {
				t.Errorf("with BatchRows %d: other rows", n)
			}
		}
	})
	t.Run("HiddenFile", func(t *testing.T) {
		mem := columnartest.Mem(t)
		table := open(t)
		req := connector.ScanRequest{Mem: mem, Hidden: []string{connector.HiddenFile}}
		for _, row := range Rows(t, mem, units(t, table, req)) {
			if strings.Count(row, "|") < table.Schema().NumFields() {
				t.Fatalf("row %q has no hidden column", row)
			}
		}
	})
	t.Run("Concurrent", func(t *testing.T) { testConcurrent(t, open(t)) })
	t.Run("CloseEarly", func(t *testing.T) {
		mem := columnartest.Mem(t)
		for _, u := range units(t, open(t), connector.ScanRequest{Mem: mem, BatchRows: 1}) {
			closeAfter(t, u, 0)
			closeAfter(t, u, 1)
		}
	})
	t.Run("Cancelled", func(t *testing.T) {
		mem := columnartest.Mem(t)
		us := units(t, open(t), connector.ScanRequest{Mem: mem})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, err := us[0].Open(ctx)
		if err != nil {
			return
		}
		defer r.Close()
		if b, err := r.Next(ctx); err == nil {
			b.Release()
			t.Error("Next with a cancelled context gave a batch")
		}
	})
}

func units(t testing.TB, table connector.Table, req connector.ScanRequest) []connector.Unit {
	t.Helper()
	us, err := table.Units(t.Context(), req)
	if err != nil {
		t.Fatalf("Units: %v", err)
	}
	return us
}

func testColumns(t *testing.T, table connector.Table) {
	mem := columnartest.Mem(t)
	n := table.Schema().NumFields()
	if n < 2 {
		t.Fatalf("the suite needs two columns, there are %d", n)
	}
	all := Rows(t, mem, units(t, table, connector.ScanRequest{Mem: mem}))
	order := make([]int, n)
	for i := range order {
		order[i] = n - 1 - i
	}
	for _, columns := range [][]int{order, {n - 1}, {0}, {1, 0}, {}} {
		us := units(t, table, connector.ScanRequest{Mem: mem, Columns: columns})
		got := Rows(t, mem, us)
		if len(got) != len(all) {
			t.Errorf("columns %v: %d rows, not %d", columns, len(got), len(all))
			continue
		}
		for i, row := range got {
			cells := strings.Split(all[i], "|")
			var want []string
			for _, c := range columns {
				want = append(want, cells[c])
			}
			if len(cells) == n && row != strings.Join(want, "|") {
				t.Errorf("columns %v: row %d is %q, not %q", columns, i, row, strings.Join(want, "|"))
			}
		}
	}
}

func testConcurrent(t *testing.T, table connector.Table) {
	mem := columnartest.Mem(t)
	us := units(t, table, connector.ScanRequest{Mem: mem})
	want := Rows(t, mem, us)
	const workers = 4
	results := make([][]string, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for _, u := range us {
				r, err := u.Open(t.Context())
				if err != nil {
					t.Errorf("Open: %v", err)
					return
				}
				rows, err := drain(t.Context(), mem, r)
				if err != nil {
					t.Errorf("Next: %v", err)
				}
				results[w] = append(results[w], rows...)
			}
		})
	}
	wg.Wait()
	for _, got := range results {
		if !slices.Equal(got, want) {
			t.Errorf("units opened by several goroutines gave other rows")
		}
	}
}

// closeAfter reads n batches and closes.
func closeAfter(t *testing.T, u connector.Unit, n int) {
	t.Helper()
	r, err := u.Open(t.Context())
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	for range n {
		if b, err := r.Next(t.Context()); err == nil {
			b.Release()
		}
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
