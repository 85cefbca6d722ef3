package incremental

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/incremental/stateful"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/physical"
)

// Late rows are kept in two steps. While the batch runs, operators note which rows of
// which scan were late (stateful.LateRows). When its output has been staged, the units
// that have late rows are read once more, with all columns of their streams: rows that
// are not late cost nothing.

// The columns that a late row is kept with, behind those of its stream.
const (
	lateReason = iota
	lateOperator
	lateWatermark
	lateStream
	lateFile
	lateColumns // how many there are
)

var lateFields = [lateColumns]arrow.Field{
	lateReason:    columnar.Field("late_reason", columnar.String),
	lateOperator:  columnar.Field("late_operator", columnar.String),
	lateWatermark: columnar.Field("late_watermark", columnar.Timestamp),
	lateStream:    columnar.Field("late_stream", columnar.String),
	lateFile:      columnar.Field("late_file", columnar.String),
}

// lateLayout is the columns of the late rows of a query: those of its streams by name,
// then what is said of each row.
type lateLayout struct {
	schema  *arrow.Schema
	streams map[string][]int // by stream: where its columns go
	own     map[*stateful.LateRows][]int
}

// newLateLayout joins the columns of all scans and inputs that rows may have been late
// in. Columns of one name and type are one; of another type, the later gets its stream
// or operator in front.
func newLateLayout(states []*stateful.Instance) *lateLayout {
	l := &lateLayout{streams: map[string][]int{}, own: map[*stateful.LateRows][]int{}}
	var u columnUnion
	for _, s := range states {
		for _, rows := range s.Kept() {
			for _, scan := range rows.Scans() {
				stream := scan.Scan.Stream
				if _, known := l.streams[stream.Name]; !known {
					l.streams[stream.Name] = u.add(stream.Name, stream.Schema)
				}
			}
		}
	}
	for _, s := range states {
		for _, rows := range s.Kept() {
			if schema, _ := rows.Own(); schema != nil {
				l.own[rows] = u.add(rows.Operator(), schema)
			}
		}
	}
	for _, f := range lateFields {
		for u.find(f.Name) >= 0 {
			f.Name = "_" + f.Name
		}
		u.fields = append(u.fields, f)
	}
	l.schema = arrow.NewSchema(u.fields, nil)
	return l
}

// columnUnion is columns of distinct names.
type columnUnion struct{ fields []arrow.Field }

func (u *columnUnion) find(name string) int {
	for i, f := range u.fields {
		if strings.EqualFold(f.Name, name) {
			return i
		}
	}
	return -1
}

// add adds the columns of s and returns where each is.
func (u *columnUnion) add(of string, s *arrow.Schema) []int {
	at := make([]int, s.NumFields())
	taken := map[int]bool{}
	for i, f := range s.Fields() {
		f.Nullable = true
		for at[i] = u.find(f.Name); at[i] >= 0; at[i] = u.find(f.Name) {
			if !taken[at[i]] && arrow.TypeEqual(u.fields[at[i]].Type, f.Type) {
				break
			}
			f.Name = of + "." + f.Name
		}
		if at[i] < 0 {
			at[i] = len(u.fields)
			u.fields = append(u.fields, f)
		}
		taken[at[i]] = true
	}
	return at
}

// lateOutput is the late rows of the batch; ok is false if there are none.
func (r *batchRun) lateOutput(s *streamExecution, entry *checkpoint.OffsetEntry) (out connector.SideOutput, ok bool) {
	if r.lateRows() == 0 {
		return connector.SideOutput{}, false
	}
	l := newLateLayout(r.states)
	reader := &lateRowsReader{run: r, s: s, entry: entry, layout: l}
	for _, state := range r.states {
		for _, rows := range state.Kept() {
			for _, scan := range rows.Scans() {
				reader.parts = append(reader.parts, &latePart{rows: rows, scan: scan})
			}
			if _, batches := rows.Own(); len(batches) > 0 {
				reader.parts = append(reader.parts, &latePart{rows: rows, batches: batches})
			}
		}
	}
	return connector.SideOutput{Name: "late", Data: reader}, true
}

// latePart is the late rows of one scan, or those an operator was given by another.
type latePart struct {
	rows    *stateful.LateRows
	scan    *stateful.LateScan
	batches []arrow.RecordBatch
}

// lateRowsReader gives the late rows of a batch, part by part.
type lateRowsReader struct {
	run    *batchRun
	s      *streamExecution
	entry  *checkpoint.OffsetEntry
	layout *lateLayout
	parts  []*latePart
	ready  []arrow.RecordBatch
	unit   *lateUnit   // being read
	units  []*lateUnit // of the first part, to be read after it
}

// lateUnit is a unit of a scan that has late rows.
type lateUnit struct {
	unit   connector.Unit
	reader columnar.Reader
	rows   []int64 // numbers that are still to come
	row    int64   // number of the next row of reader
	part   *latePart
	file   bool // its last column is the path of the file
}

func (r *lateRowsReader) Schema() *arrow.Schema { return r.layout.schema }

func (r *lateRowsReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch {
		case len(r.ready) > 0:
			b := r.ready[0]
			r.ready = r.ready[1:]
			return b, nil
		case r.unit != nil:
			if err := r.readUnit(ctx); err != nil {
				return nil, err
			}
		case len(r.units) > 0:
			r.unit, r.units = r.units[0], r.units[1:]
		case len(r.parts) == 0:
			return nil, io.EOF
		default:
			p := r.parts[0]
			r.parts = r.parts[1:]
			if err := r.openPart(ctx, p); err != nil {
				return nil, err
			}
		}
	}
}

func (r *lateRowsReader) Close() error {
	for _, b := range r.ready {
		b.Release()
	}
	r.ready, r.parts, r.units = nil, nil, nil
	if r.unit == nil || r.unit.reader == nil {
		return nil
	}
	err := r.unit.reader.Close()
	r.unit = nil
	return err
}

// openPart makes the rows of an operator's input ready, or finds the units of a scan to
// read again.
func (r *lateRowsReader) openPart(ctx context.Context, p *latePart) error {
	if p.scan == nil {
		for _, b := range p.batches {
			r.ready = append(r.ready, r.describe(p, b, r.layout.own[p.rows], nil))
		}
		return nil
	}
	var units []connector.Unit
	for u, rows := range p.scan.Units() {
		if units == nil {
			var err error
			if units, err = r.listUnits(ctx, p); err != nil {
				return err
			}
		}
		if u >= int64(len(units)) {
			return fmt.Errorf("bug: unit %d of stream %s has late rows, but there are %d", u, p.scan.Scan.Stream.Name, len(units))
		}
		unit := &lateUnit{unit: units[u], part: p, file: r.hasFiles(p)}
		for row := range rows {
			unit.rows = append(unit.rows, row)
		}
		r.units = append(r.units, unit)
	}
	return nil
}

// listUnits lists the same units as the scan of the batch, now with all columns.
func (r *lateRowsReader) listUnits(ctx context.Context, p *latePart) ([]connector.Unit, error) {
	scan := p.scan.Scan
	filters, err := physical.BindAll(scan.Filters, scan.Full)
	if err != nil {
		return nil, err
	}
	req := connector.ScanRequest{
		Columns: allColumns(scan), Filters: filters, BatchRows: r.s.cfg.BatchRows, Mem: r.s.cfg.Mem, Again: true,
	}
	if r.hasFiles(p) {
		req.Hidden = []string{connector.HiddenFile}
	}
	return rangeUnits(scan.Stream.Name, r.s, r.entry)(ctx, req)
}

// allColumns are all columns of a stream, and behind them the hidden ones that its scan
// reads: which units there are may depend on those.
func allColumns(scan *logical.StreamScan) []int {
	n := scan.Stream.Schema.NumFields()
	columns := make([]int, n)
	for i := range columns {
		columns[i] = i
	}
	for _, i := range scan.Positions {
		if i >= n {
			columns = append(columns, i)
		}
	}
	return columns
}

// hasFiles says whether the rows of a part come from files.
func (r *lateRowsReader) hasFiles(p *latePart) bool {
	for _, s := range r.s.sources {
		if strings.EqualFold(s.name, p.scan.Scan.Stream.Name) {
			_, ok := s.source.(connector.FileSet)
			return ok
		}
	}
	return false
}

// readUnit reads the next batch of the unit, up to its last late row.
func (r *lateRowsReader) readUnit(ctx context.Context) (err error) {
	u := r.unit
	if u.reader == nil {
		if u.reader, err = u.unit.Open(ctx); err != nil {
			return err
		}
	}
	b, err := u.reader.Next(ctx)
	if err == io.EOF {
		return fmt.Errorf("bug: %s has %d rows, but row %d was late", u.unit.Name(), u.row, u.rows[0])
	}
	if err != nil {
		return err
	}
	defer b.Release()
	var rows []int32
	for len(u.rows) > 0 && u.rows[0] < u.row+b.NumRows() {
		rows = append(rows, int32(u.rows[0]-u.row))
		u.rows = u.rows[1:]
	}
	u.row += b.NumRows()
	if len(rows) > 0 {
		r.ready = append(r.ready, r.pick(u, b, rows))
	}
	if len(u.rows) > 0 {
		return nil
	}
	r.unit = nil
	return u.reader.Close()
}

// pick makes late rows of rows of a stream.
func (r *lateRowsReader) pick(u *lateUnit, b arrow.RecordBatch, rows []int32) arrow.RecordBatch {
	some := kernel.FilterBatch(r.s.cfg.Mem, b, rows)
	defer some.Release()
	plain := columnar.Plain(r.s.cfg.Mem, some)
	defer plain.Release()
	var file arrow.Array
	if u.file {
		file = plain.Column(int(plain.NumCols()) - 1)
	}
	return r.describe(u.part, plain, r.layout.streams[u.part.scan.Scan.Stream.Name], file)
}

// describe puts the columns of b where they belong and says why its rows are late. file
// is the paths of their files, nil if they have none.
func (r *lateRowsReader) describe(p *latePart, b arrow.RecordBatch, at []int, file arrow.Array) arrow.RecordBatch {
	mem, n := r.s.cfg.Mem, int(b.NumRows())
	columns := make([]arrow.Array, r.layout.schema.NumFields())
	for i, to := range at {
		columns[to] = b.Column(i)
		columns[to].Retain()
	}
	first := len(columns) - lateColumns
	set := func(column int, v any) {
		columns[first+column] = constantColumn(mem, lateFields[column].Type, v, n)
	}
	reason := p.rows.Reason()
	if p.scan == nil {
		reason += fmt.Sprintf("; the row is one that %s was given by another operator, not a stream's", p.rows.Operator())
	} else {
		set(lateStream, p.scan.Scan.Stream.Name)
	}
	set(lateReason, reason)
	set(lateOperator, p.rows.Operator())
	set(lateWatermark, arrow.Timestamp(p.rows.Watermark()))
	if file != nil {
		file.Retain()
		columns[first+lateFile] = file
	}
	for i, c := range columns {
		if c == nil {
			columns[i] = columnar.Nulls(mem, r.layout.schema.Field(i).Type, n)
		}
	}
	out := array.NewRecordBatch(r.layout.schema, columns, b.NumRows())
	for _, c := range columns {
		c.Release()
	}
	return out
}

// constantColumn is n times v.
func constantColumn(mem memory.Allocator, dt arrow.DataType, v any, n int) arrow.Array {
	d, err := columnar.Constant(mem, dt, v)
	if err != nil {
		return columnar.Nulls(mem, dt, n) // of our own values none is unfit
	}
	defer d.Release()
	return columnar.Broadcast(mem, d, n)
}
