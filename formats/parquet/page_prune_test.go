package parquet

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pqfile "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/parquet-go/parquet-go"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// passing are the rows of a file for which the filters are true, as text. With advised
// the format is told of them. read is how many rows were decoded.
func passing(t *testing.T, file codec.File, schema *arrow.Schema, advised bool, filters ...expr.Expr) (lines []string, read int64) {
	t.Helper()
	f, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	mem := columnartest.Mem(t)
	req := connector.ScanRequest{Mem: mem, Stats: &connector.ScanStats{}, BatchRows: 700}
	if advised {
		req.Filters = filters
	}
	units, err := f.Units(t.Context(), file, codec.Columns{Schema: schema, CorruptColumn: -1}, req)
	if err != nil {
		t.Fatal(err)
	}
	return passingUnits(t, mem, units, schema, filters...), req.Stats.Rows.Load()
}

// passingUnits are the rows of units for which the filters are true, as text.
func passingUnits(t *testing.T, mem memory.Allocator, units []connector.Unit, schema *arrow.Schema, filters ...expr.Expr) (lines []string) {
	t.Helper()
	filter, err := eval.CompileFilter(schema, filters...)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range units {
		r, err := u.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range columnar.All(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, passingRows(t, mem, filter, b)...)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

func passingRows(t *testing.T, mem memory.Allocator, filter *eval.Filter, b arrow.RecordBatch) (lines []string) {
	t.Helper()
	p := columnar.Plain(mem, b)
	defer p.Release()
	rows, all, err := filter.Select(&eval.Env{Mem: mem}, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if all {
		rows = rows[:0]
		for i := range int(p.NumRows()) {
			rows = append(rows, int32(i))
		}
	}
	for _, i := range rows {
		var cells []string
		for _, c := range p.Columns() {
			cells = append(cells, strings.Clone(c.ValueStr(int(i))))
		}
		lines = append(lines, strings.Join(cells, "|"))
	}
	return lines
}

var pagedSchema = columnar.NewSchema(
	columnar.Field("id", columnar.Int64), columnar.Field("small", columnar.Int32), columnar.Field("f", columnar.Float64),
	columnar.Field("s", columnar.String), columnar.Field("few", columnar.String), columnar.Field("b", arrow.FixedWidthTypes.Boolean),
	columnar.Field("d", &arrow.Decimal128Type{Precision: 20, Scale: 2}), columnar.Field("list", arrow.ListOf(columnar.Int64)),
	columnar.Field("pair", arrow.StructOf(arrow.Field{Name: "x", Type: columnar.Int64, Nullable: true})),
)

// pagedFile is a file of many small pages whose values go along with the row number: so
// filters leave pages out. Some pages are all null, and some floats NaN.
func pagedFile(t *testing.T, r *rand.Rand, m vfs.FS) codec.File {
	t.Helper()
	rows := 6000 + r.IntN(6000)
	b := array.NewRecordBuilder(memory.DefaultAllocator, pagedSchema)
	defer b.Release()
	nullFrom := r.IntN(rows)
	for i := range rows {
		if i >= nullFrom && i < nullFrom+3000 || r.IntN(50) == 0 {
			for _, f := range b.Fields()[1:] {
				f.AppendNull()
			}
			b.Field(0).(*array.Int64Builder).Append(int64(i))
			continue
		}
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.Int32Builder).Append(int32(i/100 - 30))
		b.Field(2).(*array.Float64Builder).Append([]float64{float64(i), -float64(i), math.Copysign(0, -1), math.NaN()}[min(r.IntN(40), 3)*i/rows])
		b.Field(3).(*array.StringBuilder).Append(fmt.Sprintf("a rather long text, the same for all, and then %06d", i))
		b.Field(4).(*array.StringBuilder).Append(string(rune('a' + i*20/rows)))
		b.Field(5).(*array.BooleanBuilder).Append(i > rows/2)
		b.Field(6).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i) - 3000))
		list := b.Field(7).(*array.ListBuilder)
		list.Append(true)
		for k := range r.IntN(3) {
			list.ValueBuilder().(*array.Int64Builder).Append(int64(i + k))
		}
		b.Field(8).(*array.StructBuilder).Append(true)
		b.Field(8).(*array.StructBuilder).FieldBuilder(0).(*array.Int64Builder).Append(int64(i))
	}
	table := array.NewTableFromRecords(pagedSchema, []arrow.RecordBatch{b.NewRecordBatch()})
	props := pqfile.NewWriterProperties(
		pqfile.WithPageIndexEnabled(true), pqfile.WithDataPageSize([]int64{64, 4000, 20000}[r.IntN(3)]), pqfile.WithDictionaryDefault(r.IntN(2) == 0),
		pqfile.WithDataPageVersion([]pqfile.DataPageVersion{pqfile.DataPageV1, pqfile.DataPageV2}[r.IntN(2)]),
		pqfile.WithBatchSize([]int64{1024, 300, 1500}[r.IntN(3)]),
		pqfile.WithCompression([]compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Zstd}[r.IntN(3)]),
		pqfile.WithStoreDecimalAsInteger(r.IntN(2) == 0))
	var out bytes.Buffer
	if err := pqarrow.WriteTable(table, &out, int64(rows/(1+r.IntN(2))), props, pqarrow.NewArrowWriterProperties()); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteAtomic(m, "a", out.Bytes()); err != nil {
		t.Fatal(err)
	}
	return inputFile(t, m, "a")
}

// pagedFilter is a random condition over pagedSchema.
func pagedFilter(t *testing.T, r *rand.Rand, depth int) expr.Expr {
	t.Helper()
	if depth > 0 && r.IntN(2) == 0 {
		op := []expr.LogicOp{expr.And, expr.Or}[r.IntN(2)]
		return &expr.Logic{Op: op, Args: []expr.Expr{pagedFilter(t, r, depth-1), pagedFilter(t, r, depth-1)}}
	}
	column := r.IntN(7)
	field := pagedSchema.Field(column)
	ref := &expr.Ref{Index: column, Name: field.Name, DataType: field.Type, Null: true}
	i := r.IntN(12000)
	value := func() expr.Expr {
		return literal(t, field.Type, []any{int64(i), int32(i/100 - 30), []float64{float64(i), 0, math.NaN(), -5}[r.IntN(4)],
			fmt.Sprintf("a rather long text, the same for all, and then %06d", i), string(rune('a' + i%21)), i%2 == 0, decimal128.FromI64(int64(i) - 3000)}[column])
	}
	switch r.IntN(8) {
	case 0:
		return call(t, []string{"is_null", "is_not_null"}[r.IntN(2)], ref)
	case 1:
		return &expr.In{Value: ref, List: []expr.Expr{value(), value()}}
	}
	return call(t, []string{"=", "<>", "<", "<=", ">", ">="}[r.IntN(6)], ref, value())
}

// TestPrunePages compares reading with filters and reading all, on random files.
func TestPrunePages(t *testing.T) {
	t.Parallel()
	left := int64(0)
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 11))
		m := vfs.NewMem()
		file := pagedFile(t, r, m)
		for range 5 {
			filter := pagedFilter(t, r, 2)
			want, all := passing(t, file, pagedSchema, false, filter)
			got, read := passing(t, file, pagedSchema, true, filter)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s: %d rows, without pruning %d", seed, filter, len(got), len(want))
			}
			left += all - read
		}
		if m.OpenFiles() != 0 {
			t.Errorf("%d files are left open", m.OpenFiles())
		}
	}
	if left < 50000 {
		t.Errorf("only %d rows were left out", left)
	}
}

// TestPruneOwnPages: the pages of files written here, and of a writer that cuts the texts
// of its index off.
func TestPruneOwnPages(t *testing.T) {
	t.Parallel()
	type row struct {
		ID int64  `parquet:"id"`
		S  string `parquet:"s"`
	}
	schema := columnar.NewSchema(columnar.Field("id", columnar.Int64), columnar.Field("s", columnar.String))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	var rows []row
	for i := range 200000 {
		rows = append(rows, row{int64(i), fmt.Sprintf("%08d", i)})
		b.Field(0).(*array.Int64Builder).Append(rows[i].ID)
		b.Field(1).(*array.StringBuilder).Append(rows[i].S)
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	m := vfs.NewMem()
	writeFile(t, m, "own", schema, WriterConfig{}, batch)
	files := []codec.File{inputFile(t, m, "own"), foreign(t, m, "cut", rows, parquet.PageBufferSize(64<<10), parquet.ColumnIndexSizeLimit(func([]string) int { return 4 }))}
	id := &expr.Ref{Index: 0, Name: "id", DataType: columnar.Int64, Null: true}
	s := &expr.Ref{Index: 1, Name: "s", DataType: columnar.String, Null: true}
	for _, file := range files {
		for _, c := range []struct {
			filter expr.Expr
			rows   int
		}{
			{call(t, "=", id, int64Literal(150000)), 1},
			{call(t, ">", id, int64Literal(199990)), 9},
			{call(t, "<", id, int64Literal(10)), 10},
			{call(t, "=", s, literal(t, columnar.String, "00099999")), 1},
			{&expr.In{Value: s, List: []expr.Expr{literal(t, columnar.String, "00000000"), literal(t, columnar.String, "00199999")}}, 2},
		} {
			got, read := passing(t, file, schema, true, c.filter)
			if len(got) != c.rows || read > 150000 {
				t.Errorf("%s, %s: %d rows of %d read, want %d", file.Path, c.filter, len(got), read, c.rows)
			}
		}
	}
}

// TestPruneManyGroups: of many row groups, a few tell whether pages are looked at.
func TestPruneManyGroups(t *testing.T) {
	t.Parallel()
	type row struct {
		Sorted int64 `parquet:"sorted"`
		Mixed  int64 `parquet:"mixed"`
	}
	const group, groups = 10000, 8
	var rows []row
	for i := range group * groups {
		rows = append(rows, row{int64(i % group), int64(i * 7919 % group)})
	}
	file := foreign(t, vfs.NewMem(), "a", rows, parquet.PageBufferSize(8<<10), parquet.MaxRowsPerRowGroup(group))
	schema := columnar.NewSchema(columnar.Field("sorted", columnar.Int64), columnar.Field("mixed", columnar.Int64))
	for i, most := range []int64{groups * 3000, groups * group} {
		ref := &expr.Ref{Index: i, Name: schema.Field(i).Name, DataType: columnar.Int64, Null: true}
		got, read := passing(t, file, schema, true, call(t, "=", ref, int64Literal(5005)))
		if len(got) != groups || read > most || i == 1 && read < most {
			t.Errorf("%s: %d rows of %d read", ref.Name, len(got), read)
		}
	}
}

// TestDamagedIndex: an index that cannot be decoded, or contradicts itself, leaves nothing
// out; none makes a panic.
func TestDamagedIndex(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	file := pagedFile(t, rand.New(rand.NewPCG(1, 1)), m)
	data, err := vfs.ReadFile(m, file.Path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := m.Open(file.Path)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := readFooter(h, file.Path)
	_ = h.Close()
	if err != nil {
		t.Fatal(err)
	}
	filter := call(t, ">", &expr.Ref{Index: 0, Name: "id", DataType: columnar.Int64, Null: true}, int64Literal(5000))
	_, all := passing(t, file, pagedSchema, false, filter)
	chunk := meta.footer.RowGroups[0].Columns[0]
	for _, at := range []int64{chunk.ColumnIndexOffset, chunk.OffsetIndexOffset} {
		broken := bytes.Clone(data)
		broken[at] = 0xff
		if err := vfs.WriteAtomic(m, "broken", broken); err != nil {
			t.Fatal(err)
		}
		if lines, read := passing(t, inputFile(t, m, "broken"), pagedSchema, true, filter); read != all && len(meta.footer.RowGroups) == 1 || len(lines) == 0 {
			t.Errorf("%d of %d rows are read by a damaged index", read, all)
		}
	}
	for at := chunk.OffsetIndexOffset; at < chunk.OffsetIndexOffset+int64(chunk.OffsetIndexLength); at += 5 {
		broken := bytes.Clone(data)
		broken[at] ^= 0x15
		if err := vfs.WriteAtomic(m, "broken", broken); err != nil {
			t.Fatal(err)
		}
		f, _ := New(Options{})
		_, _ = scan(t, f, []codec.File{inputFile(t, m, "broken")}, pagedSchema, connector.ScanRequest{Mem: memory.DefaultAllocator, Columns: []int{0, 7}, Filters: []expr.Expr{filter}})
	}
}
