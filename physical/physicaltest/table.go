package physicaltest

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/physical"
)

// Table is a bounded table of batches in memory. Its units are read in the order
// given. It ignores filters and limits, as it may.
type Table struct {
	schema *arrow.Schema
	units  [][]arrow.RecordBatch
	// Wrap, if set, is put around the Reader of each unit.
	Wrap func(unit int, r columnar.Reader) columnar.Reader
}

// NewTable makes a table; the batches are borrowed until the test ends. The types of
// schema are plain, also where batches are dictionary-encoded.
func NewTable(schema *arrow.Schema, units ...[]arrow.RecordBatch) *Table {
	return &Table{schema: schema, units: units}
}

// Schema is the columns of the table.
func (t *Table) Schema() *arrow.Schema { return t.schema }

// Units are the units, reading the requested columns.
func (t *Table) Units(_ context.Context, req connector.ScanRequest) ([]connector.Unit, error) {
	units := make([]connector.Unit, len(t.units))
	for i := range t.units {
		units[i] = unit{t, i, req.Columns}
	}
	return units, nil
}

// RowCount is the number of rows.
func (t *Table) RowCount() (int64, bool) {
	n := int64(0)
	for _, u := range t.units {
		for _, b := range u {
			n += b.NumRows()
		}
	}
	return n, true
}

type unit struct {
	table   *Table
	index   int
	columns []int
}

func (u unit) Name() string { return fmt.Sprintf("unit %d", u.index) }

func (u unit) Bytes() int64 { return int64(len(u.table.units[u.index])) }

func (u unit) Open(context.Context) (columnar.Reader, error) {
	schema := columnar.Select(u.table.schema, u.columns)
	var batches []arrow.RecordBatch
	for _, b := range u.table.units[u.index] {
		part := selectColumns(b, u.columns)
		defer part.Release()
		batches = append(batches, part)
	}
	r := columnar.FromBatches(schema, batches...)
	if u.table.Wrap != nil {
		r = u.table.Wrap(u.index, r)
	}
	return r, nil
}

func selectColumns(b arrow.RecordBatch, columns []int) arrow.RecordBatch {
	if columns == nil {
		b.Retain()
		return b
	}
	arrays := make([]arrow.Array, len(columns))
	for i, c := range columns {
		arrays[i] = b.Column(c)
	}
	return array.NewRecordBatch(columnar.Select(b.Schema(), columns), arrays, b.NumRows())
}

// Scan is a plan that reads all of table.
func Scan(t testing.TB, table connector.Table) *physical.Scan {
	t.Helper()
	s, err := physical.NewScan(physical.ScanSpec{Name: "t", Schema: table.Schema(), Units: table.Units})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
