package sql

import (
	"context"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// series is the table of range(start, stop, step), and with the end included of
// generate_series: one BIGINT column, made as it is read.
type series struct {
	name              string
	start, stop, step int64
	inclusive         bool
}

// Schema is the one column.
func (s *series) Schema() *arrow.Schema {
	return columnar.NewSchema(arrow.Field{Name: s.name, Type: columnar.Int64})
}

// count is the number of rows. It fits in a uint64 but for the full range of BIGINT
// with both ends, which loses its last row nobody will wait for.
func (s *series) count() uint64 {
	var width uint64 // from start to stop
	switch {
	case s.step > 0 && s.stop >= s.start:
		width = uint64(s.stop) - uint64(s.start)
	case s.step < 0 && s.stop <= s.start:
		width = uint64(s.start) - uint64(s.stop)
	default:
		return 0
	}
	step := uint64(s.step)
	if s.step < 0 {
		step = -step
	}
	n := width / step
	if (s.inclusive || width%step != 0) && n < math.MaxUint64 {
		n++
	}
	return n
}

// RowCount is the number of rows, if it is a count at all.
func (s *series) RowCount() (int64, bool) {
	n := s.count()
	return int64(n), n <= math.MaxInt64
}

// SameTable says whether other is the same series.
func (s *series) SameTable(other connector.Table) bool {
	o, ok := other.(*series)
	return ok && *o == *s
}

// seriesUnitRows is how many rows one unit of a series has at most.
const seriesUnitRows = 1 << 22

// Units cuts the series into stretches that workers share.
func (s *series) Units(_ context.Context, req connector.ScanRequest) ([]connector.Unit, error) {
	rows := s.count()
	if req.Limit > 0 && uint64(req.Limit) < rows {
		rows = uint64(req.Limit)
	}
	// Few units even for a very long series: the rest is one of them.
	const maxUnits = 1024
	var units []connector.Unit
	for from := uint64(0); from < rows; {
		n := min(rows-from, seriesUnitRows)
		if len(units) == maxUnits {
			n = rows - from
		}
		units = append(units, &seriesUnit{s: s, req: req, from: from, rows: n})
		from += n
	}
	return units, nil
}

type seriesUnit struct {
	s          *series
	req        connector.ScanRequest
	from, rows uint64
}

func (u *seriesUnit) Name() string { return u.s.name }

func (u *seriesUnit) Bytes() int64 { return int64(min(u.rows, math.MaxInt64/8) * 8) }

func (u *seriesUnit) Open(context.Context) (columnar.Reader, error) {
	r := &seriesReader{unit: u, mem: u.req.Mem, batch: u.req.BatchRows, schema: columnar.Select(u.s.Schema(), u.req.Columns)}
	if r.mem == nil {
		r.mem = memory.NewGoAllocator()
	}
	if r.batch <= 0 {
		r.batch = columnar.DefaultBatchRows
	}
	return r, nil
}

// seriesReader makes the rows of one unit.
type seriesReader struct {
	unit   *seriesUnit
	mem    memory.Allocator
	batch  int
	schema *arrow.Schema
	done   uint64
}

func (r *seriesReader) Schema() *arrow.Schema { return r.schema }

func (r *seriesReader) Close() error {
	r.done = r.unit.rows
	return nil
}

// Next makes the next batch.
func (r *seriesReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := int(min(r.unit.rows-r.done, uint64(r.batch)))
	if n == 0 {
		return nil, io.EOF
	}
	first := r.unit.s.start + int64(r.unit.from+r.done)*r.unit.s.step
	r.done += uint64(n)
	columns := make([]arrow.Array, r.schema.NumFields())
	for i := range columns {
		columns[i] = r.column(first, n)
		defer columns[i].Release()
	}
	return array.NewRecordBatch(r.schema, columns, int64(n)), nil
}

func (r *seriesReader) column(first int64, n int) arrow.Array {
	buf := memory.NewResizableBuffer(r.mem)
	defer buf.Release()
	buf.Resize(n * 8)
	values := arrow.Int64Traits.CastFromBytes(buf.Bytes())[:n]
	for i := range values {
		values[i] = first
		first += r.unit.s.step
	}
	data := array.NewData(columnar.Int64, n, []*memory.Buffer{nil, buf}, nil, 0, 0)
	defer data.Release()
	return array.NewInt64Data(data)
}
