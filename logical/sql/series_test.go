package sql

import (
	"errors"
	"io"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

func readSeries(t *testing.T, s *series, req connector.ScanRequest) []int64 {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	req.Mem = mem
	units, err := s.Units(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, u := range units {
		r, err := u.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for {
			b, err := r.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if b.NumRows() == 0 {
				t.Error("batch without rows")
			}
			got = append(got, b.Column(0).(*array.Int64).Int64Values()...)
			b.Release()
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return got
}

func TestSeries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    series
		want []int64
	}{
		{series{start: 0, stop: 5, step: 1}, []int64{0, 1, 2, 3, 4}},
		{series{start: 0, stop: 5, step: 2}, []int64{0, 2, 4}},
		{series{start: 0, stop: 6, step: 2}, []int64{0, 2, 4}},
		{series{start: 0, stop: 6, step: 2, inclusive: true}, []int64{0, 2, 4, 6}},
		{series{start: 5, stop: 0, step: -2}, []int64{5, 3, 1}},
		{series{start: 5, stop: 1, step: -2, inclusive: true}, []int64{5, 3, 1}},
		{series{start: 5, stop: 0, step: 1}, nil},
		{series{start: 1, stop: 1, step: 1}, nil},
		{series{start: 1, stop: 1, step: 1, inclusive: true}, []int64{1}},
		{series{start: math.MaxInt64 - 1, stop: math.MaxInt64, step: 1, inclusive: true}, []int64{math.MaxInt64 - 1, math.MaxInt64}},
		{series{start: math.MinInt64, stop: math.MaxInt64, step: math.MaxInt64}, []int64{math.MinInt64, -1, math.MaxInt64 - 1}},
	} {
		got := readSeries(t, &c.s, connector.ScanRequest{BatchRows: 2})
		if len(got) != len(c.want) {
			t.Errorf("%+v gives %v, want %v", c.s, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%+v gives %v, want %v", c.s, got, c.want)
				break
			}
		}
	}
}

func TestSeriesUnitsAreInOrder(t *testing.T) {
	t.Parallel()
	const rows = seriesUnitRows + 10
	got := readSeries(t, &series{stop: rows, step: 1}, connector.ScanRequest{})
	if len(got) != rows {
		t.Fatalf("%d rows", len(got))
	}
	for i, v := range got {
		if v != int64(i) {
			t.Fatalf("row %d is %d", i, v)
		}
	}
	if got := readSeries(t, &series{stop: rows, step: 1}, connector.ScanRequest{Limit: 3}); len(got) != 3 {
		t.Errorf("%d rows with limit 3", len(got))
	}
}

// TestStructKernels makes structs of columns and constants and takes them apart again.
func TestStructKernels(t *testing.T) {
	t.Parallel()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	a, err := columnar.Column(mem, columnar.Int64, int64(1), nil, int64(3))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	x := &expr.Column{ID: 1, Name: "x", DataType: columnar.Int64}
	made := structOf([]string{"p", "q"}, []expr.Expr{x, stringLiteral("k")}).(*expr.Call)
	env := &function.Env{Mem: mem}
	kernel, err := made.Signature.Overload.Bind(made.Signature.Args, nil)
	if err != nil {
		t.Fatal(err)
	}
	constant, err := columnar.Constant(mem, columnar.String, "k")
	if err != nil {
		t.Fatal(err)
	}
	defer constant.Release()
	s, err := kernel(env, []columnar.Datum{columnar.ColumnDatum(a), constant}, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	if got, want := s.Array().String(), `{[1 (null) 3] ["k" "k" "k"]}`; got != want {
		t.Errorf("struct %s, want %s", got, want)
	}
	column := &expr.Column{ID: 2, Name: "s", DataType: s.Type()}
	take := fieldOf(column, 1).(*expr.Call)
	kernel, err = take.Signature.Overload.Bind(take.Signature.Args, nil)
	if err != nil {
		t.Fatal(err)
	}
	q, err := kernel(env, []columnar.Datum{s}, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Release()
	if got, want := q.Array().String(), `["k" "k" "k"]`; got != want {
		t.Errorf("field %s, want %s", got, want)
	}
	nulls, err := columnar.Column(mem, s.Type(), []any{int64(1), "k"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer nulls.Release()
	q2, err := kernel(env, []columnar.Datum{columnar.ColumnDatum(nulls)}, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer q2.Release()
	if got, want := q2.Array().String(), `["k" (null)]`; got != want {
		t.Errorf("field %s, want %s", got, want)
	}
}
