package memory

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// Table is rows in memory. It is immutable, so that it may be read by anyone.
type Table struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
}

var (
	_ connector.Table      = (*Table)(nil)
	_ connector.RowCounter = (*Table)(nil)
)

// NewTable makes a table of batches with the columns of schema. It retains them until
// Release.
func NewTable(schema *arrow.Schema, batches ...arrow.RecordBatch) (*Table, error) {
	t := &Table{schema: schema}
	for _, b := range batches {
		if err := checkColumns(schema, b); err != nil {
			t.Release()
			return nil, err
		}
		if b.NumRows() > 0 {
			b.Retain()
			t.batches = append(t.batches, b)
		}
	}
	return t, nil
}

// checkColumns sees that a batch has the types of schema; dictionary-encoded columns
// count as what they hold.
func checkColumns(schema *arrow.Schema, b arrow.RecordBatch) error {
	if int(b.NumCols()) != schema.NumFields() {
		return fmt.Errorf("a batch has %d columns, not %d", b.NumCols(), schema.NumFields())
	}
	for i, f := range schema.Fields() {
		dt := b.Column(i).DataType()
		if d, ok := dt.(*arrow.DictionaryType); ok {
			dt = d.ValueType
		}
		if !arrow.TypeEqual(dt, f.Type) {
			return fmt.Errorf("column %s of a batch is %s, not %s", f.Name, columnar.TypeName(dt), columnar.TypeName(f.Type))
		}
	}
	return nil
}

// Release gives back the rows. Readers that are open keep what they need.
func (t *Table) Release() {
	for _, b := range t.batches {
		b.Release()
	}
	t.batches = nil
}

// Schema implements connector.Table.
func (t *Table) Schema() *arrow.Schema { return t.schema }

// RowCount implements connector.RowCounter.
func (t *Table) RowCount() (int64, bool) {
	rows := int64(0)
	for _, b := range t.batches {
		rows += b.NumRows()
	}
	return rows, true
}

// Units implements connector.Table: one a batch, so that several workers have some.
func (t *Table) Units(_ context.Context, req connector.ScanRequest) ([]connector.Unit, error) {
	return units("memory", t.schema, t.batches, req)
}

func units(name string, schema *arrow.Schema, batches []arrow.RecordBatch, req connector.ScanRequest) ([]connector.Unit, error) {
	out := make([]connector.Unit, len(batches))
	for i, b := range batches {
		out[i] = &unit{name: fmt.Sprintf("%s[%d]", name, i), schema: requested(schema, req), batch: b, req: req}
	}
	return out, nil
}

// requested is the schema of the columns asked for. Hidden columns are null: rows in
// memory come from no file.
func requested(schema *arrow.Schema, req connector.ScanRequest) *arrow.Schema {
	fields := append([]arrow.Field(nil), columnar.Select(schema, req.Columns).Fields()...)
	for _, name := range req.Hidden {
		fields = append(fields, columnar.Field(name, columnar.String))
	}
	return arrow.NewSchema(fields, nil)
}

// unit is one batch.
type unit struct {
	name   string
	schema *arrow.Schema
	batch  arrow.RecordBatch
	req    connector.ScanRequest
}

func (u *unit) Name() string { return u.name }

func (u *unit) Bytes() int64 {
	n := uint64(0)
	for _, c := range u.batch.Columns() {
		n += c.Data().SizeInBytes()
	}
	return int64(n)
}

// Open implements connector.Unit.
func (u *unit) Open(context.Context) (columnar.Reader, error) {
	size := int64(u.req.BatchRows)
	if size <= 0 {
		size = columnar.DefaultBatchRows
	}
	var parts []arrow.RecordBatch
	for at := int64(0); at < u.batch.NumRows(); at += size {
		p := u.part(at, min(at+size, u.batch.NumRows()))
		defer p.Release()
		parts = append(parts, p)
	}
	if u.req.Stats != nil {
		u.req.Stats.Rows.Add(u.batch.NumRows())
	}
	return columnar.FromBatches(u.schema, parts...), nil
}

// part is rows of the batch with the columns asked for.
func (u *unit) part(from, to int64) arrow.RecordBatch {
	columns := make([]arrow.Array, 0, u.schema.NumFields())
	if u.req.Columns == nil {
		for i := range int(u.batch.NumCols()) {
			columns = append(columns, array.NewSlice(u.batch.Column(i), from, to))
		}
	}
	for _, i := range u.req.Columns {
		columns = append(columns, array.NewSlice(u.batch.Column(i), from, to))
	}
	for range u.req.Hidden {
		columns = append(columns, columnar.Nulls(u.mem(), columnar.String, int(to-from)))
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = u.schema.Field(i)
		fields[i].Type = c.DataType()
		defer c.Release()
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, to-from)
}

func (u *unit) mem() memory.Allocator {
	if u.req.Mem != nil {
		return u.req.Mem
	}
	return memory.DefaultAllocator
}
