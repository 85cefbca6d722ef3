package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// scanPlan is what one scan reads from one file.
type scanPlan struct {
	meta    *fileMeta
	columns []*columnPlan
	schema  *arrow.Schema // of the Readers: columns, then hidden ones
	hidden  []string
	rows    int   // of a batch
	bytes   int64 // of a batch; 0 is batchBytes
	zone    *time.Location
	codes   bool        // give dictionary codes out
	pages   *pagePruner // nil: all rows are read
	mem     memory.Allocator
	stats   *connector.ScanStats
}

// newScanPlan matches the columns wanted of want with those of the file. columns are
// positions in want; nil is all.
func newScanPlan(m *fileMeta, want *arrow.Schema, columns []int) (*scanPlan, error) {
	p := &scanPlan{meta: m, schema: columnar.Select(want, columns)}
	names := make([]string, len(m.root.children))
	for i, c := range m.root.children {
		names[i] = c.name
	}
	fields := codec.NewFields(names)
	for _, f := range p.schema.Fields() {
		at, err := fields.Of(m.path, want, f.Name)
		if err != nil {
			return nil, err
		}
		var n *node
		if at >= 0 {
			n = m.root.children[at]
		}
		c, err := planColumn(n, f.Name, f.Type)
		if err != nil {
			return nil, &connector.RecordError{File: m.path, Column: f.Name, Reason: err.Error(), Err: err}
		}
		p.columns = append(p.columns, c)
	}
	return p, nil
}

// addHidden appends the hidden columns asked for.
func (p *scanPlan) addHidden(names []string) error {
	fields := p.schema.Fields()
	for _, name := range names {
		if name != connector.HiddenFile {
			return fmt.Errorf("bug: no hidden column %q in parquet files", name)
		}
		fields = append(fields[:len(fields):len(fields)], columnar.Field(name, columnar.String))
	}
	p.hidden = names
	p.schema = arrow.NewSchema(fields, nil)
	return nil
}

// groupReader reads row groups of one file, one after another.
type groupReader struct {
	plan    *scanPlan
	file    vfs.File
	owned   bool // file is closed with the reader
	groups  []int
	current int // row group being read
	columns []*columnReader
	row     int64       // next row of it
	average int64       // bytes of a row of it, by the footer
	width   int64       // bytes of a row, of the batch before
	part    rowRange    // of the only group, as in unit
	ranges  []rowRange  // of it, left to read
	path    arrow.Array // dictionary of the hidden file column
	schemas map[string]*arrow.Schema
	err     error
	closed  bool
}

func newGroupReader(p *scanPlan, f vfs.File, owned bool, groups []int) *groupReader {
	return &groupReader{plan: p, file: f, owned: owned, groups: groups, current: -1, schemas: map[string]*arrow.Schema{}}
}

func (r *groupReader) Schema() *arrow.Schema { return r.plan.schema }

func (r *groupReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	for len(r.ranges) == 0 {
		if err := r.nextGroup(); err != nil {
			return nil, r.fail(err)
		}
	}
	if err := r.skipTo(r.ranges[0].from); err != nil {
		return nil, r.fail(err)
	}
	n := int(min(r.ranges[0].to-r.row, r.fitting()))
	b, err := r.readBatch(n)
	if err != nil {
		return nil, r.fail(err)
	}
	r.row += int64(n)
	r.measure(b)
	if r.row == r.plan.meta.footer.RowGroups[r.current].NumRows {
		if err := r.endGroup(); err != nil {
			b.Release()
			return nil, r.fail(err)
		}
	}
	if r.ranges[0].from = r.row; r.row == r.ranges[0].to {
		r.ranges = r.ranges[1:]
	}
	if r.plan.stats != nil {
		r.plan.stats.Rows.Add(int64(n))
	}
	return b, nil
}

// fail makes err final.
func (r *groupReader) fail(err error) error {
	r.err = err
	return err
}

// nextGroup opens the next row group that has rows.
func (r *groupReader) nextGroup() error {
	r.closeColumns()
	if len(r.groups) == 0 {
		return io.EOF
	}
	r.current, r.groups = r.groups[0], r.groups[1:]
	group := &r.plan.meta.footer.RowGroups[r.current]
	if group.NumRows == 0 {
		return nil
	}
	r.row, r.ranges = 0, []rowRange{{0, group.NumRows}}
	if r.plan.pages != nil {
		var pruned int
		if r.ranges, pruned = r.plan.pages.ranges(r.file, r.current); r.plan.stats != nil && r.part.from == 0 {
			r.plan.stats.PagesPruned.Add(int64(pruned))
		}
	}
	r.ranges = r.part.within(r.ranges)
	if len(r.ranges) == 0 {
		return nil
	}
	window, partly := r.window(), !isWhole(r.ranges, group.NumRows)
	if partly && len(r.ranges) > 1 {
		window = smallWindow
	}
	r.average = 0
	open := func(leaf *node) *chunkPages {
		pages := newChunkPages(r.file, r.plan.meta, r.current, leaf, window)
		r.average += pages.meta.TotalUncompressedSize / group.NumRows
		pages.least = r.plan.rows
		if partly {
			pages.places = r.plan.meta.pageLocations(r.file, r.current, leaf)
			pages.window = int(min(int64(window), max(smallWindow, pages.bytes(r.ranges))))
		}
		if r.plan.stats != nil {
			r.plan.stats.Bytes.Add(pages.bytes(r.ranges))
		}
		return pages
	}
	for _, c := range r.plan.columns {
		cr, err := newColumnReader(r.plan.mem, c, r.plan.zone, r.plan.codes, open)
		if err != nil {
			return r.columnError(c, err)
		}
		r.columns = append(r.columns, cr)
	}
	return nil
}

// batchBytes is about how many bytes a batch has, if nobody says less.
const batchBytes = 16 << 20

// fitting is how many rows make a batch: fewer where they are wide.
func (r *groupReader) fitting() int64 {
	most := r.plan.bytes
	if most <= 0 {
		most = batchBytes
	}
	return min(max(most/(max(r.average, r.width)+1), 1), int64(r.plan.rows))
}

// measure notes how wide the rows of a batch are. A dictionary is there once, however many
// rows a batch has.
func (r *groupReader) measure(b arrow.RecordBatch) {
	total := int64(0)
	for _, c := range b.Columns() {
		total += columnar.DataBytes(c.Data())
	}
	r.width = total / max(b.NumRows(), 1)
}

// Bytes read ahead of a column chunk: large reads for few columns, less for many.
const (
	largeWindow = 1 << 20
	smallWindow = 64 << 10
	allWindows  = 16 << 20
)

func (r *groupReader) window() int {
	return min(largeWindow, max(smallWindow, allWindows/max(1, len(r.plan.columns))))
}

// skipTo passes over the rows before row.
func (r *groupReader) skipTo(row int64) error {
	if row == r.row {
		return nil
	}
	for i, c := range r.columns {
		if err := r.skipColumn(c, row-r.row); err != nil {
			return r.columnError(r.plan.columns[i], err)
		}
	}
	r.row = row
	return nil
}

func (r *groupReader) skipColumn(c *columnReader, n int64) (err error) {
	defer recovered(&err)
	return c.skip(n, r.plan.rows)
}

// readBatch reads n rows of each column.
func (r *groupReader) readBatch(n int) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, 0, r.plan.schema.NumFields())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i, c := range r.columns {
		a, err := r.readColumn(c, n)
		if err != nil {
			return nil, r.columnError(r.plan.columns[i], err)
		}
		columns = append(columns, a)
	}
	for range r.plan.hidden {
		columns = append(columns, r.pathColumn(n))
	}
	return array.NewRecordBatch(r.schemaOf(columns), columns, int64(n)), nil
}

// endGroup checks that no column has more rows than the row group.
func (r *groupReader) endGroup() error {
	for i, c := range r.columns {
		if err := c.end(); err != nil {
			return r.columnError(r.plan.columns[i], err)
		}
	}
	return nil
}

func (r *groupReader) readColumn(c *columnReader, n int) (a arrow.Array, err error) {
	defer recovered(&err)
	return c.read(n)
}

func (r *groupReader) columnError(c *columnPlan, err error) error {
	var format *formatError
	var pathErr interface{ Timeout() bool }
	if errors.As(err, &pathErr) && !errors.As(err, &format) {
		// An error of the file system, not of the data.
		return fmt.Errorf("%s: %w", r.plan.meta.path, err)
	}
	return &connector.RecordError{
		File: r.plan.meta.path, Column: c.name,
		Reason: fmt.Sprintf("row group %d: %v", r.current, err), Err: err,
	}
}

// pathColumn is n times the path of the file, as a dictionary of one text.
func (r *groupReader) pathColumn(n int) arrow.Array {
	if r.path == nil {
		b := array.NewStringBuilder(r.plan.mem)
		defer b.Release()
		b.Append(r.plan.meta.path)
		r.path = b.NewArray()
	}
	buf := memory.NewResizableBuffer(r.plan.mem)
	defer buf.Release()
	buf.Resize(4 * n)
	clear(buf.Bytes())
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: columnar.String}
	data := array.NewDataWithDictionary(dt, n, []*memory.Buffer{nil, buf}, 0, 0, r.path.Data().(*array.Data))
	defer data.Release()
	return array.MakeFromData(data)
}

// schemaOf is the schema of a batch: that of the reader, with dictionary types where
// columns are encoded.
func (r *groupReader) schemaOf(columns []arrow.Array) *arrow.Schema {
	var key strings.Builder
	encoded := false
	for _, c := range columns {
		if c.DataType().ID() == arrow.DICTIONARY {
			key.WriteByte('d')
			encoded = true
		} else {
			key.WriteByte('-')
		}
	}
	if !encoded {
		return r.plan.schema
	}
	if s := r.schemas[key.String()]; s != nil {
		return s
	}
	fields := append([]arrow.Field(nil), r.plan.schema.Fields()...)
	for i, c := range columns {
		fields[i].Type = c.DataType()
	}
	s := arrow.NewSchema(fields, nil)
	r.schemas[key.String()] = s
	return s
}

func (r *groupReader) closeColumns() {
	for _, c := range r.columns {
		c.close()
	}
	r.columns = nil
}

func (r *groupReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.closeColumns()
	if r.path != nil {
		r.path.Release()
		r.path = nil
	}
	if r.err == nil {
		r.err = errors.New("bug: read from a closed reader")
	}
	if r.owned {
		return r.file.Close()
	}
	return nil
}
