package parquet

import (
	"bytes"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
)

// TestExactIntervals writes intervals that Parquet's own type cannot hold, nested too.
func TestExactIntervals(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	schema := columnar.NewSchema(columnar.Field("i", columnar.Interval), columnar.Field("l", arrow.ListOf(columnar.Interval)))
	rows := array.NewRecordBuilder(mem, schema)
	defer rows.Release()
	plain := rows.Field(0).(*array.MonthDayNanoIntervalBuilder)
	list := rows.Field(1).(*array.ListBuilder)
	for _, v := range []arrow.MonthDayNanoInterval{{Months: -1, Days: 2, Nanoseconds: -3000}, {Nanoseconds: 1 << 60}, {Days: -1 << 31}} {
		plain.Append(v)
		list.Append(true)
		list.ValueBuilder().(*array.MonthDayNanoIntervalBuilder).AppendValues([]arrow.MonthDayNanoInterval{v, {}}, []bool{true, false})
	}
	plain.AppendNull()
	list.AppendNull()
	want := rows.NewRecordBatch()
	defer want.Release()

	write := func(c WriterConfig) ([]byte, error) {
		var out bytes.Buffer
		w, err := NewFileWriter(&out, schema, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(want); err != nil {
			return nil, err
		}
		err = w.Close()
		return out.Bytes(), err
	}
	if _, err := write(WriterConfig{}); err == nil || !strings.Contains(err.Error(), "cast it to VARCHAR") {
		t.Errorf("as Parquet's type: %v", err)
	}
	data, err := write(WriterConfig{ExactIntervals: true})
	if err != nil {
		t.Fatal(err)
	}
	fsys := vfs.NewMem()
	if err := vfs.WriteAtomic(fsys, "x.parquet", data); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(fsys, "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := f.Reader(mem, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	if !array.RecordEqual(got, want) {
		t.Errorf("read %v, wrote %v", got, want)
	}
}
