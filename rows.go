package tidemill

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// Rows is a whole result in memory. Release it once.
type Rows struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
}

// NewRows takes over batches of a schema.
func NewRows(schema *arrow.Schema, batches []arrow.RecordBatch) *Rows {
	return &Rows{schema: schema, batches: batches}
}

// Schema is the columns.
func (r *Rows) Schema() *arrow.Schema { return r.schema }

// Batches are the rows as Arrow batches, borrowed.
func (r *Rows) Batches() []arrow.RecordBatch { return r.batches }

// NumRows is the number of rows.
func (r *Rows) NumRows() int64 {
	n := int64(0)
	for _, b := range r.batches {
		n += b.NumRows()
	}
	return n
}

// Value is one value as a Go value: nil for null, int64, float64, string, time.Time and
// kin as columnar.Value gives them.
func (r *Rows) Value(row int64, column int) any {
	for _, b := range r.batches {
		if row < b.NumRows() {
			return columnar.Value(b.Column(column), int(row))
		}
		row -= b.NumRows()
	}
	return nil
}

// String prints the rows as text, in order.
func (r *Rows) String() string {
	return columnar.Text(r.schema, r.batches, columnar.TextOptions{Ordered: true})
}

// Release gives the memory back.
func (r *Rows) Release() {
	for _, b := range r.batches {
		b.Release()
	}
	r.batches = nil
}

func (s *Session) now() time.Time {
	if s.opts.clock != nil {
		return s.opts.clock.Now()
	}
	return time.Now()
}

// randomSeed is that of random functions in a bounded query.
func randomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
