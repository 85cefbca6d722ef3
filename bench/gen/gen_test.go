package gen

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/parquet"
	"github.com/tidemill/tidemill/internal/vfs"
)

// TestSeeded pins the data: benchmarks of different days must be over the same rows.
func TestSeeded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		data *Data
		want uint64
	}{
		{"h2o", H2O(1, 20000, 100), 4129104589514978141},
		{"events", Events(1, 20000, 1000), 11827854372478841459},
	} {
		got, err := Sum(c.data)
		if err != nil || got != c.want {
			t.Errorf("%s: the sum is %d, want %d; %v", c.name, got, c.want, err)
		}
	}
}

// TestTPCH pins the tables of the decision support benchmark at a small scale, and what
// their columns promise each other.
func TestTPCH(t *testing.T) {
	t.Parallel()
	for i, want := range []uint64{
		6783877645948657596, 4702213912109032512, 8481182213580236729, 11318028971277558065,
		18026066033636965967, 16291116455308583207, 12660552689620080153, 1378646766276614472,
	} {
		d, err := TPCH(1, TPCHTables[i], 0.001)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Sum(d)
		if err != nil || got != want {
			t.Errorf("%s: the sum is %d, want %d; %v", TPCHTables[i], got, want, err)
		}
	}
	if _, err := TPCH(1, "orderz", 1); err == nil {
		t.Error("a table orderz was made")
	}
	w := &warehouse{suppliers: 1000, parts: 20_000}
	for part := int64(1); part <= w.parts; part++ {
		seen := map[int64]bool{}
		for i := range int64(suppliersOfPart) {
			s := w.supplierOf(part, i)
			if s < 1 || s > w.suppliers || seen[s] {
				t.Fatalf("supplier %d of part %d is %d, twice or out of range", i, part, s)
			}
			seen[s] = true
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	want := map[string]string{
		"csv":   "ts,key,value\n2024-01-01T00:00:00.",
		"jsonl": `{"ts":"2024-01-01T00:00:00.`,
	}
	for _, format := range Formats {
		names, err := Landing(m, format, format, Events(7, 250, 10), 100)
		if err != nil || len(names) != 3 {
			t.Fatal(names, err)
		}
		data, err := vfs.ReadFile(m, names[0])
		if err != nil || !strings.HasPrefix(string(data), want[format]) {
			t.Errorf("%s: %.60q, %v", format, data, err)
		}
	}
	f, err := parquet.OpenFile(m, "parquet/part-00002.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := f.Reader(memory.DefaultAllocator, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows := int64(0)
	for b, err := range columnar.All(context.Background(), r) {
		if err != nil {
			t.Fatal(err)
		}
		rows += b.NumRows()
	}
	if rows != 50 || f.NumRows() != 50 {
		t.Errorf("%d rows", rows)
	}
	if err := Write(m, "x", "xml", Events(1, 1, 1)); err == nil {
		t.Error("format xml was written")
	}
}

func TestPadded(t *testing.T) {
	t.Parallel()
	for v, want := range map[int64]string{1: "001", 999: "999", 1234: "1234"} {
		if got := string(appendPadded(nil, v, 3)); got != want {
			t.Errorf("%d: %s, want %s", v, got, want)
		}
	}
}
