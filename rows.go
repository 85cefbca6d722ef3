package tidemill

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"iter"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/physical"
)

// Rows is a whole result in memory. Release it once. A nil Rows has none.
type Rows struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
}

// NewRows takes over batches of a schema: Release releases them.
func NewRows(schema *arrow.Schema, batches []arrow.RecordBatch) *Rows {
	return &Rows{schema: schema, batches: batches}
}

// collect adds the batches of in, whose query has this budget: what it gives is held as what it
// works with.
func (r *Rows) collect(ctx context.Context, in columnar.Reader, budget *columnar.Budget) error {
	for b, err := range columnar.All(ctx, in) {
		if err != nil {
			return err
		}
		if err := budget.Reserve("the whole result", physical.BatchBytes(b)); err != nil {
			return err
		}
		b.Retain()
		r.batches = append(r.batches, b)
	}
	return nil
}

// Schema is the columns.
func (r *Rows) Schema() *arrow.Schema {
	if r == nil {
		return nil
	}
	return r.schema
}

// Batches are the rows as Arrow batches, borrowed.
func (r *Rows) Batches() []arrow.RecordBatch {
	if r == nil {
		return nil
	}
	return r.batches
}

// NumRows is the number of rows.
func (r *Rows) NumRows() int64 {
	n := int64(0)
	for _, b := range r.Batches() {
		n += b.NumRows()
	}
	return n
}

// Value is one value as a Go value: nil for null, bool, int8 to int64, float32 and
// float64, string, []byte; time.Time in UTC for TIMESTAMP and DATE, time.Duration since
// midnight for TIME; the exact text of a DECIMAL; []any for an array, map[string]any for a
// struct, [][2]any for a map. A row or column that is not there is nil, too.
func (r *Rows) Value(row int64, column int) any {
	for _, b := range r.Batches() {
		if row >= 0 && row < b.NumRows() && column >= 0 && int64(column) < b.NumCols() {
			return goValue(b.Column(column), int(row))
		}
		row -= b.NumRows()
	}
	return nil
}

// All goes through the rows in order, as their Go values.
func (r *Rows) All() iter.Seq2[int64, []any] {
	return func(yield func(int64, []any) bool) {
		n := int64(0)
		for _, b := range r.Batches() {
			for i := range int(b.NumRows()) {
				values := make([]any, b.NumCols())
				for c := range values {
					values[c] = goValue(b.Column(c), i)
				}
				if !yield(n, values) {
					return
				}
				n++
			}
		}
	}
}

// goValue is value i of a column, as Value gives it.
func goValue(a arrow.Array, i int) any {
	if columnar.IsNull(a, i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Timestamp:
		return time.UnixMicro(int64(a.Value(i))).UTC()
	case *array.Date32:
		return time.Unix(int64(a.Value(i))*24*60*60, 0).UTC()
	case *array.Time64:
		return time.Duration(a.Value(i)) * time.Microsecond
	case *array.Decimal128:
		return string(columnar.AppendValue(nil, a, i, time.UTC))
	case *array.List:
		from, to := a.ValueOffsets(i)
		out := make([]any, 0, to-from)
		for j := int(from); j < int(to); j++ {
			out = append(out, goValue(a.ListValues(), j))
		}
		return out
	case *array.Map:
		from, to := a.ValueOffsets(i)
		out := make([][2]any, 0, to-from)
		for j := int(from); j < int(to); j++ {
			out = append(out, [2]any{goValue(a.Keys(), j), goValue(a.Items(), j)})
		}
		return out
	case *array.Struct:
		out := make(map[string]any, a.NumField())
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			out[f.Name] = goValue(a.Field(k), i)
		}
		return out
	}
	return columnar.Value(a, i)
}

// String prints the rows as text, in order.
func (r *Rows) String() string {
	if r.Schema() == nil {
		return ""
	}
	return columnar.Text(r.schema, r.batches, columnar.TextOptions{Ordered: true})
}

// Release gives the memory back; the rows are gone then. It may be repeated.
func (r *Rows) Release() {
	for _, b := range r.Batches() {
		b.Release()
	}
	if r != nil {
		r.batches = nil
	}
}

func (s *Session) now() time.Time {
	if s.opts.clock != nil {
		return s.opts.clock.Now()
	}
	return time.Now()
}

// randomSalt makes random functions without a seed give other values in each bounded query.
func randomSalt() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
