package parquet

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pqfile "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// bloomFile has four row groups whose statistics tell nothing apart: numbers and texts
// i*4+g for each group g. The column other has no bloom filter.
func bloomFile(t *testing.T, m vfs.FS) codec.File {
	t.Helper()
	schema := columnar.NewSchema(columnar.Field("id", columnar.Int64), columnar.Field("small", columnar.Int32), columnar.Field("s", columnar.String),
		columnar.Field("other", columnar.Int64), columnar.Field("f", columnar.Float64))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for g := range 4 {
		for i := range 1000 {
			v := i*4 + g
			b.Field(0).(*array.Int64Builder).Append(int64(v))
			b.Field(1).(*array.Int32Builder).Append(int32(v))
			b.Field(2).(*array.StringBuilder).Append(fmt.Sprint("k", v))
			b.Field(3).(*array.Int64Builder).Append(int64(v))
			b.Field(4).(*array.Float64Builder).Append(float64(v))
		}
	}
	table := array.NewTableFromRecords(schema, []arrow.RecordBatch{b.NewRecordBatch()})
	var out bytes.Buffer
	props := pqfile.NewWriterProperties(pqfile.WithBloomFilterEnabled(true), pqfile.WithBloomFilterEnabledFor("other", false), pqfile.WithDictionaryDefault(false))
	if err := pqarrow.WriteTable(table, &out, 1000, props, pqarrow.NewArrowWriterProperties()); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteAtomic(m, "a", out.Bytes()); err != nil {
		t.Fatal(err)
	}
	return inputFile(t, m, "a")
}

func literal(t *testing.T, dt arrow.DataType, v any) expr.Expr {
	t.Helper()
	d, err := columnar.Constant(memory.DefaultAllocator, dt, v)
	if err != nil {
		t.Fatal(err)
	}
	return &expr.Literal{Value: d.Array()}
}

func TestBloom(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	file := bloomFile(t, m)
	schema := columnar.NewSchema(columnar.Field("id", columnar.Int64), columnar.Field("small", columnar.Int32), columnar.Field("s", columnar.String),
		columnar.Field("other", columnar.Int64), columnar.Field("f", columnar.Float64))
	ref := func(i int) expr.Expr {
		return &expr.Ref{Index: i, Name: schema.Field(i).Name, DataType: schema.Field(i).Type, Null: true}
	}
	id, small, s, other, f := ref(0), ref(1), ref(2), ref(3), ref(4)
	text := func(v string) expr.Expr { return literal(t, columnar.String, v) }
	null := &expr.Literal{Value: columnar.NullConstant(memory.DefaultAllocator, columnar.Int64).Array()}
	for _, c := range []struct {
		filter expr.Expr
		most   int // a bloom filter may be wrong in one direction
		least  int
	}{
		{call(t, "=", id, int64Literal(2002)), 2, 1},
		{call(t, "=", int64Literal(2002), id), 2, 1},
		{call(t, "=", small, literal(t, columnar.Int32, int32(7))), 2, 1},
		{call(t, "=", s, text("k1234")), 2, 1},
		{call(t, "=", s, text("k1234x")), 1, 0},
		{&expr.In{Value: s, List: []expr.Expr{text("k0"), text("k1")}}, 3, 2},
		{&expr.In{Value: id, List: []expr.Expr{int64Literal(0), null}}, 2, 1},
		{&expr.Logic{Op: expr.And, Args: []expr.Expr{call(t, ">", id, int64Literal(5)), call(t, "=", s, text("k9"))}}, 2, 1},
		{&expr.Logic{Op: expr.Or, Args: []expr.Expr{call(t, "=", id, int64Literal(5)), call(t, "=", s, text("k9"))}}, 4, 4},
		{call(t, "=", other, int64Literal(2002)), 4, 4},
		{call(t, "=", f, literal(t, columnar.Float64, 2002.0)), 4, 4},
		{call(t, "<>", id, int64Literal(2002)), 4, 4},
	} {
		format, _ := New(Options{})
		stats := &connector.ScanStats{}
		units, err := format.Units(t.Context(), file, codec.Columns{Schema: schema}, connector.ScanRequest{Mem: columnartest.Mem(t), Filters: []expr.Expr{c.filter}, Stats: stats})
		groups := 4 - int(stats.GroupsPruned.Load())
		if err != nil || groups > c.most || groups < c.least || groups > 0 && len(units) == 0 {
			t.Errorf("%s: %d row groups, want %d to %d; %v", c.filter, groups, c.least, c.most, err)
		}
	}
	if m.OpenFiles() != 0 {
		t.Errorf("%d files are left open", m.OpenFiles())
	}
}

// TestPruneOtherSpelling: a column that the file has only in another spelling, as another
// column of the source, is null in it, whatever the statistics of the other say.
func TestPruneOtherSpelling(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	upper := columnar.NewSchema(columnar.Field("A", columnar.Int64))
	batch := columnartest.Batch(t, columnartest.Mem(t), "A:bigint\n1\n2\n")
	writeFile(t, m, "a", upper, WriterConfig{}, batch)
	schema := columnar.NewSchema(columnar.Field("a", columnar.Int64), columnar.Field("A", columnar.Int64))
	isNull := call(t, "is_null", &expr.Ref{Index: 0, Name: "a", DataType: columnar.Int64, Null: true})
	format, _ := New(Options{})
	units, err := format.Units(t.Context(), inputFile(t, m, "a"), codec.Columns{Schema: schema}, connector.ScanRequest{Mem: columnartest.Mem(t), Filters: []expr.Expr{isNull}})
	if err != nil || len(units) != 1 {
		t.Errorf("%d units, %v", len(units), err)
	}
}
