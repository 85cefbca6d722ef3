package text

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
	"github.com/tidemill/tidemill/logical/connector"
)

// Options are the options of the format. The zero value reads and writes UTF-8.
type Options struct {
	Encoding    codec.Encoding
	Mode        codec.Mode
	Compression codec.Compression
	// CompressionLevel of written files: 0 is the usual one (see codec.MaxLevel).
	CompressionLevel int
}

// Keys are the options ParseOptions takes.
func Keys() []string { return codec.ReadNames((&Options{}).keys()) }

// WriteKeys are those that mean something when writing.
func WriteKeys() []string { return []string{"compression", "compression_level"} }

func (o *Options) keys() []connector.Key {
	return []connector.Key{
		codec.EncodingKey(&o.Encoding),
		codec.ModeKey(&o.Mode),
		codec.CompressionKey(&o.Compression),
		codec.LevelKey(&o.CompressionLevel),
	}
}

// ParseOptions decodes option strings; an unknown key or a text that is none of its
// values is a *connector.OptionError.
func ParseOptions(options map[string]string) (Options, error) {
	var o Options
	err := connector.Decode(options, o.keys()...)
	return o, err
}

// Validate says what is wrong with o: nothing can be.
func (o *Options) Validate() error { return nil }

// Schema is the columns of every text file.
func Schema() *arrow.Schema {
	return columnar.NewSchema(columnar.Field("value", columnar.String))
}

// format implements codec.Format.
type format struct{ opts Options }

// New makes the format.
func New(opts Options) (codec.Format, error) { return &format{opts}, nil }

func (f *format) Name() string { return "text" }

// Extension is .txt with the ending of the compression.
func (f *format) Extension() string { return ".txt" + f.opts.Compression.Extension() }

// Infer is Schema, as soon as there is a file.
func (f *format) Infer(_ context.Context, files []codec.File) (codec.Inferred, bool, error) {
	return codec.Inferred{Schema: Schema()}, len(files) > 0, nil
}

// WithPinned returns f: text makes no choices.
func (f *format) WithPinned(pinned map[string]string) (codec.Format, error) {
	for k := range pinned {
		return nil, fmt.Errorf("format text pins no option %q", k)
	}
	return f, nil
}

// CheckColumns implements codec.FixedColumns.
func (f *format) CheckColumns(s *arrow.Schema) error {
	if s.NumFields() != 1 || s.Field(0).Type.ID() != arrow.STRING && s.Field(0).Type.ID() != arrow.BINARY {
		return &connector.OptionError{Key: "format", Value: "text", HasValue: true,
			Reason: "a text source has one column of type VARCHAR, not " + columnar.SchemaString(s)}
	}
	return nil
}

// Units divides a file into ranges that are read apart.
func (f *format) Units(ctx context.Context, file codec.File, schema codec.Columns, req connector.ScanRequest) ([]connector.Unit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := f.CheckColumns(schema.Schema); err != nil {
		return nil, err
	}
	ranges, err := codec.Ranges(file, f.opts.Compression, f.opts.Encoding, req.SplitBytes, func([]byte) bool { return true })
	if err != nil {
		return nil, err
	}
	if req.Mem == nil {
		req.Mem = memory.DefaultAllocator
	}
	if req.BatchRows <= 0 {
		req.BatchRows = columnar.DefaultBatchRows
	}
	units := make([]connector.Unit, len(ranges))
	for i, r := range ranges {
		units[i] = &unit{f: f, file: file, r: r, req: req, schema: schema.Schema}
	}
	return units, nil
}

// unit is one range of a file.
type unit struct {
	f      *format
	file   codec.File
	r      codec.Range
	req    connector.ScanRequest
	schema *arrow.Schema
}

func (u *unit) Name() string {
	if !u.r.Divided {
		return u.file.Path
	}
	return fmt.Sprintf("%s[%d:%d]", u.file.Path, u.r.Start, u.r.End)
}

func (u *unit) Bytes() int64 { return u.r.End - u.r.Start }

func (u *unit) Open(ctx context.Context) (columnar.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in, err := codec.OpenInput(codec.InputSpec{File: u.file, Range: u.r, Compression: u.f.opts.Compression,
		Encoding: u.f.opts.Encoding, Mode: u.f.opts.Mode, Stats: u.req.Stats})
	if err != nil {
		return nil, err
	}
	r := &reader{unit: u, in: in, pos: in.Lo(), schema: columnar.Select(u.schema, u.req.Columns)}
	if r.column, err = cells.NewColumn(u.req.Mem, u.schema.Field(0).Type, &cells.Rules{}); err == nil && u.r.Divided && u.r.Start > 0 {
		err = r.skipLine()
	}
	if err != nil {
		r.Close()
		return nil, r.explain(err)
	}
	return r, nil
}

// chunkRows is how many lines are found before they are copied.
const chunkRows = 1024

// reader reads one unit.
type reader struct {
	*unit
	in     *codec.Input
	schema *arrow.Schema
	column *cells.Column
	cells  []cells.Cell
	pos    int
	lf     int  // no LF stands in [pos, lf); 0: not known
	afterC bool // the line before ended in a CR that an LF may follow
	rows   int
	done   bool
	failed error
}

func (r *reader) Schema() *arrow.Schema { return r.schema }

// skipLine goes behind the line that the range begins in. A line that begins exactly
// with the range is the range before's.
func (r *reader) skipLine() error {
	for {
		if i := r.lineEnd(); i >= 0 {
			r.pass(i)
			return nil
		}
		if r.in.Final() || r.in.Hi() >= r.in.Limit() {
			r.done = true // no line begins in the range
			return nil
		}
		if err := r.more(r.in.Hi()); err != nil {
			return err
		}
	}
}

// more reads on from index keep.
func (r *reader) more(keep int) error {
	err := r.in.More(keep)
	r.pos, r.lf = r.in.Lo(), 0
	return err
}

// pass goes behind the line end at i.
func (r *reader) pass(i int) {
	buf := r.in.Buf()
	r.pos = i + 1
	r.afterC = false
	if buf[i] == '\r' {
		if r.pos == r.in.Hi() {
			r.afterC = true
		} else if buf[r.pos] == '\n' {
			r.pos++
		}
	}
}

// lineEnd is the first LF or CR from pos on, -1 if the window has none.
func (r *reader) lineEnd() int {
	buf, hi := r.in.Buf(), r.in.Hi()
	if r.lf < r.pos {
		r.lf = hi
		if i := bytes.IndexByte(buf[r.pos:hi], '\n'); i >= 0 {
			r.lf = r.pos + i
		}
	}
	if i := bytes.IndexByte(buf[r.pos:max(r.pos, r.lf)], '\r'); i >= 0 {
		return r.pos + i
	}
	if r.lf < hi {
		return r.lf
	}
	return -1
}

// Next fills a batch.
func (r *reader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.failed != nil {
		return nil, r.failed
	}
	for !r.done && !codec.BatchFull(r.rows, r.req.BatchRows, r.column.TextBytes()) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.fill(min(chunkRows, r.req.BatchRows-r.rows)); err != nil {
			return nil, r.fail(r.explain(err))
		}
	}
	if r.rows == 0 {
		if err := r.in.Finish(); err != nil {
			return nil, r.fail(err)
		}
		return nil, r.fail(io.EOF)
	}
	return r.batch(), nil
}

func (r *reader) fail(err error) error {
	r.failed = err
	return err
}

// fill adds up to most lines to the batch.
func (r *reader) fill(most int) error {
	r.cells = r.cells[:0]
	for len(r.cells) < most && !r.done {
		buf, hi := r.in.Buf(), r.in.Hi()
		if r.afterC && r.pos < hi {
			r.afterC = false
			if buf[r.pos] == '\n' {
				r.pos++
			}
		}
		i := r.lineEnd()
		switch {
		case r.pos > r.in.Limit() || r.pos == hi && r.in.Final():
			r.done = true
		case i >= 0:
			r.cells = append(r.cells, cells.Quoted(r.pos, i))
			r.pass(i)
		case r.in.Final():
			r.cells = append(r.cells, cells.Quoted(r.pos, hi))
			r.pos = hi
		case len(r.cells) > 0:
			return r.append()
		default:
			if err := r.more(r.pos); err != nil {
				return err
			}
		}
	}
	return r.append()
}

// append copies the lines found.
func (r *reader) append() error {
	buf := r.in.Buf()
	bad := r.column.Append(buf, r.cells)
	r.rows += len(r.cells)
	if len(bad) == 0 {
		return nil
	}
	describe := func(i int32) connector.RecordError {
		return connector.RecordError{File: r.file.Path, Column: r.unit.schema.Field(0).Name,
			Reason: (&cells.Rules{}).Misfit(buf, r.cells[i], columnar.String)}
	}
	if r.f.opts.Mode == codec.Fail {
		e := describe(bad[0])
		start, _ := r.cells[bad[0]].Span()
		e.Line = r.in.Line(r.in.Offset(start))
		return &e
	}
	for _, i := range bad {
		start, end := r.cells[i].Span()
		codec.CountMalformed(r.req.Stats, r.in, start, end, func() connector.RecordError { return describe(i) })
	}
	if r.f.opts.Mode == codec.Drop {
		r.rows -= len(r.cells)
		r.column.Truncate(r.rows)
		for k := len(bad) - 1; k >= 0; k-- {
			r.cells = append(r.cells[:bad[k]], r.cells[bad[k]+1:]...)
		}
		r.column.Append(buf, r.cells)
		r.rows += len(r.cells)
	}
	return nil
}

// explain names file and line of a line that is too long to be read.
func (r *reader) explain(err error) error {
	if errors.Is(err, codec.ErrRecordSize) {
		return &connector.RecordError{File: r.file.Path, Line: r.in.Line(r.in.Offset(r.in.Lo())), Reason: fmt.Sprintf("the line is larger than %d MiB", codec.MaxRecord>>20), Err: err}
	}
	return err
}

// batch hands the lines over. Columns may ask for none of them, or for them twice.
func (r *reader) batch() arrow.RecordBatch {
	a := r.column.Finish()
	defer a.Release()
	arrays := make([]arrow.Array, r.schema.NumFields())
	for i := range arrays {
		arrays[i] = a
	}
	b := array.NewRecordBatch(r.schema, arrays, int64(r.rows))
	codec.CountRows(r.req.Stats, r.rows)
	r.rows = 0
	return b
}

// Close releases everything. It may be called more than once.
func (r *reader) Close() error {
	if r.column != nil {
		r.column.Release()
	}
	if r.failed == nil {
		r.failed = io.EOF
	}
	return r.in.Close()
}
