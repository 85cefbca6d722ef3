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
