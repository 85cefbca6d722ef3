package gen

import (
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Data is a table made from a seed, batch by batch. Rows is how often fill is called: it
// makes a row each time, but for lines of orders, of which it makes those of one order.
type Data struct {
	Schema *arrow.Schema
	Rows   int64
	fill   func(r *rand.Rand, b *array.RecordBuilder, row int64)
	seed   uint64
}

// batchRows is how many rows one random stream makes; the content of a row depends on
// the seed and the number of its batch alone.
const batchRows = columnar.DefaultBatchRows

// Each calls f with every batch, in order. A batch is released after the call.
func (d *Data) Each(f func(arrow.RecordBatch) error) error {
	b := array.NewRecordBuilder(memory.DefaultAllocator, d.Schema)
	defer b.Release()
	for at := int64(0); at < d.Rows; {
		n := min(batchRows, d.Rows-at)
		r := rand.New(rand.NewPCG(d.seed, uint64(at)))
		for i := range n {
			d.fill(r, b, at+i)
		}
		batch := b.NewRecordBatch()
		err := f(batch)
		batch.Release()
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}

// H2O is the table of the well-known group-by benchmark: groups is the number of
// small groups (id1, id2, id4, id5); id3 and id6 have rows/groups large ones.
func H2O(seed uint64, rows, groups int64) *Data {
	many := max(rows/groups, 1)
	schema := columnar.NewSchema(
		columnar.Field("id1", columnar.String), columnar.Field("id2", columnar.String), columnar.Field("id3", columnar.String),
		columnar.Field("id4", columnar.Int64), columnar.Field("id5", columnar.Int64), columnar.Field("id6", columnar.Int64),
		columnar.Field("v1", columnar.Int64), columnar.Field("v2", columnar.Int64), columnar.Field("v3", columnar.Float64),
	)
	var text []byte
	return &Data{Schema: schema, Rows: rows, seed: seed, fill: func(r *rand.Rand, b *array.RecordBuilder, _ int64) {
		for c := range 2 {
			text = appendPadded(append(text[:0], "id"...), r.Int64N(groups)+1, 3)
			b.Field(c).(*array.StringBuilder).Append(string(text))
		}
		text = appendPadded(append(text[:0], "id"...), r.Int64N(many)+1, 10)
		b.Field(2).(*array.StringBuilder).Append(string(text))
		for c, n := range []int64{groups, groups, many, 5, 15} {
			b.Field(3 + c).(*array.Int64Builder).Append(r.Int64N(n) + 1)
		}
		b.Field(8).(*array.Float64Builder).Append(float64(r.Int64N(100_000_000)) / 1e6)
	}}
}

// eventStart is 2024-01-01T00:00:00Z in microseconds.
const eventStart = 1704067200 * 1_000_000

// Events is a stream of readings: 100 rows a second of event time in order but for a
// jitter of a second, keys distinct keys, a value in cents. Grouped by windows of ten
// seconds and 1,000 keys about two rows in three begin a group.
func Events(seed uint64, rows, keys int64) *Data {
	schema := columnar.NewSchema(columnar.Field("ts", columnar.Timestamp), columnar.Field("key", columnar.Int64), columnar.Field("value", columnar.Float64))
	return &Data{Schema: schema, Rows: rows, seed: seed, fill: func(r *rand.Rand, b *array.RecordBuilder, row int64) {
		b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(eventStart + row*10_000 + r.Int64N(1_000_000)))
		b.Field(1).(*array.Int64Builder).Append(r.Int64N(keys))
		b.Field(2).(*array.Float64Builder).Append(float64(r.Int64N(1_000_000)) / 100)
	}}
}

// appendPadded appends v with at least width digits.
func appendPadded(dst []byte, v int64, width int) []byte {
	var digits [20]byte
	at := len(digits)
	for v > 0 || at > len(digits)-width {
		at--
		digits[at] = byte('0' + v%10)
		v /= 10
	}
	return append(dst, digits[at:]...)
}

// Sum is a number that tells whether the data is what it was.
func Sum(d *Data) (uint64, error) {
	sum := uint64(0)
	err := d.Each(func(b arrow.RecordBatch) error {
		for _, c := range b.Columns() {
			for i := range c.Len() {
				for _, v := range []byte(c.ValueStr(i)) {
					sum = (sum ^ uint64(v)) * 0x100000001b3
				}
			}
		}
		return nil
	})
	return sum, err
}
