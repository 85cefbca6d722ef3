package connectortest

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// Rows reads units one after another and returns each row as text, in order. It fails
// t if a Reader breaks a rule.
func Rows(t testing.TB, mem memory.Allocator, units []connector.Unit) []string {
	t.Helper()
	var rows []string
	for _, u := range units {
		rows = append(rows, UnitRows(t, mem, u)...)
	}
	return rows
}

// UnitRows reads one unit.
func UnitRows(t testing.TB, mem memory.Allocator, u connector.Unit) []string {
	t.Helper()
	r, err := u.Open(t.Context())
	if err != nil {
		t.Fatalf("%s: Open: %v", u.Name(), err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Errorf("%s: Close: %v", u.Name(), err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: second Close: %v", u.Name(), err)
		}
	}()
	return readerRows(t, mem, u.Name(), r)
}

func readerRows(t testing.TB, mem memory.Allocator, name string, r columnar.Reader) []string {
	t.Helper()
	var rows []string
	for b, err := range columnar.All(t.Context(), r) {
		if err != nil {
			t.Fatalf("%s: Next: %v", name, err)
		}
		if b.NumRows() == 0 {
			t.Fatalf("%s: a batch without rows", name)
		}
		checkSchema(t, name, r.Schema(), b)
		rows = append(rows, batchRows(mem, b)...)
	}
	if b, err := r.Next(t.Context()); b != nil || err == nil {
		t.Fatalf("%s: Next after the end gave %v, %v", name, b, err)
	}
	return rows
}

// checkSchema sees that a batch has the columns its Reader promised.
func checkSchema(t testing.TB, name string, want *arrow.Schema, b arrow.RecordBatch) {
	t.Helper()
	if int(b.NumCols()) != want.NumFields() {
		t.Fatalf("%s: a batch has %d columns, the Reader promised %d", name, b.NumCols(), want.NumFields())
	}
	for i, f := range want.Fields() {
		dt := b.Column(i).DataType()
		if !arrow.TypeEqual(dt, b.Schema().Field(i).Type) {
			t.Fatalf("%s: column %d is %s, its batch's schema says %s", name, i, dt, b.Schema().Field(i).Type)
		}
		if d, ok := dt.(*arrow.DictionaryType); ok {
			dt = d.ValueType
		}
		if !arrow.TypeEqual(dt, f.Type) {
			t.Fatalf("%s: column %s is %s, the Reader promised %s", name, f.Name, dt, f.Type)
		}
	}
}

// batchRows is each row as canonical text; a row without columns is "".
func batchRows(mem memory.Allocator, b arrow.RecordBatch) []string {
	plain := columnar.Plain(mem, b)
	defer plain.Release()
	rows := make([]string, plain.NumRows())
	for i := range rows {
		var cells []string
		for _, c := range plain.Columns() {
			cells = append(cells, string(columnar.AppendCanonical(nil, c, i, nil)))
		}
		rows[i] = strings.Join(cells, "|")
	}
	return rows
}

// BatchRows is the rows of batches as text.
func BatchRows(mem memory.Allocator, batches []arrow.RecordBatch) []string {
	var rows []string
	for _, b := range batches {
		rows = append(rows, batchRows(mem, b)...)
	}
	return rows
}

// drain is the rows of a Reader, which it closes.
func drain(ctx context.Context, mem memory.Allocator, r columnar.Reader) ([]string, error) {
	defer r.Close()
	batches, err := columnar.Drain(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	return BatchRows(mem, batches), nil
}

// newBatch makes a batch of SinkSchema that is released when t ends.
func newBatch(t testing.TB, id, s arrow.Array, rows int64) arrow.RecordBatch {
	b := array.NewRecordBatch(SinkSchema, []arrow.Array{id, s}, rows)
	t.Cleanup(b.Release)
	return b
}
