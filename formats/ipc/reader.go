package ipc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// plan is what one scan reads from one file.
type plan struct {
	x      *index
	schema *arrow.Schema // of the Readers
	// from is the field of the file that each column is read from, -1: it has none.
	from  []int
	mem   memory.Allocator
	zone  *time.Location
	rows  int // of a batch
	stats *connector.ScanStats
}

// newPlan matches the columns wanted of schema with those of the file.
func newPlan(x *index, schema *arrow.Schema, req connector.ScanRequest, zone *time.Location) (*plan, error) {
	p := &plan{x: x, schema: columnar.Select(schema, req.Columns), mem: req.Mem, zone: zone, rows: req.BatchRows, stats: req.Stats}
	if p.mem == nil {
		p.mem = memory.DefaultAllocator
	}
	if p.rows <= 0 {
		p.rows = columnar.DefaultBatchRows
	}
	names := codec.NewFields(x.columnNames())
	for _, f := range p.schema.Fields() {
		i, err := names.Of(x.path, schema, f.Name)
		if err != nil {
			return nil, err
		}
		p.from = append(p.from, i)
		if i < 0 {
			continue
		}
		if x.fields[i].typ == nil {
			err = errors.New(x.fields[i].why + ", which cannot be read")
		} else {
			err = codec.CanFit(x.fields[i].typ, f.Type)
		}
		if err != nil {
			return nil, &connector.RecordError{File: x.path, Column: f.Name, Reason: err.Error(), Err: err}
		}
	}
	return p, nil
}

func (x *index) columnNames() []string {
	names := make([]string, len(x.fields))
	for i, f := range x.fields {
		names[i] = f.name
	}
	return names
}

// reader reads some messages of a file.
type reader struct {
	*plan
	src     content
	l       *loader
	blocks  []block
	columns []arrow.Array // of the record batch being given out; of type NULL: all null
	given   int           // rows of it given
	left    int
	err     error
	closed  bool
	counted int64 // bytes told the stats
}

func newReader(p *plan, src content, blocks []block) *reader {
	r := &reader{plan: p, src: src, l: newLoader(p.x, src, p.mem, p.zone), blocks: blocks}
	if p.x.ordered != nil {
		r.l.changing = map[int64][]block{}
	}
	return r
}

func (r *reader) Schema() *arrow.Schema { return r.schema }

// Next gives the next rows of a record batch.
func (r *reader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	for r.left == 0 {
		r.drop()
		if len(r.blocks) == 0 {
			r.err = io.EOF
			return nil, r.err
		}
		b := r.blocks[0]
		r.blocks = r.blocks[1:]
		if err := r.read(b); err != nil {
			r.err = r.explain(err)
			return nil, r.err
		}
	}
	n := min(r.left, r.plan.rows)
	columns := make([]arrow.Array, len(r.columns))
	for i, c := range r.columns {
		if want := r.schema.Field(i).Type; c.DataType().ID() == arrow.NULL {
			columns[i] = columnar.Nulls(r.mem, want, n) // a file may say that it has any number of them
		} else {
			columns[i] = array.NewSlice(c, int64(r.given), int64(r.given+n))
		}
	}
	out := array.NewRecordBatch(r.schema, columns, int64(n))
	releaseArrays(columns)
	r.given += n
	r.left -= n
	codec.CountRows(r.stats, n)
	return out, nil
}

// explain names the file.
func (r *reader) explain(err error) error {
	var known *connector.RecordError
	switch {
	case errors.As(err, &known):
		return err
	case isFileError(err):
		return fmt.Errorf("%s: %w", r.x.path, err)
	}
	return damaged(r.x.path, err)
}

// read reads a message.
func (r *reader) read(b block) error {
	m, err := r.l.open(b)
	if err != nil {
		return err
	}
	if b.dictionary {
		return r.change(m, b)
	}
	if r.l.b, err = newBody(r.src, m, m.header, b.offset+b.meta); err != nil {
		return err
	}
	r.l.c = cursor{}
	columns, err := r.load()
	if r.stats != nil {
		r.stats.Bytes.Add(r.l.read - r.counted)
		r.counted = r.l.read
	}
	if err != nil {
		return err
	}
	r.columns, r.given, r.left = columns, 0, r.l.b.rows
	return nil
}

// change notes new values of a dictionary, on the way through a stream.
func (r *reader) change(m *message, b block) error {
	id, isDelta := m.header.i64(0), m.header.u8(2) != 0
	r.l.forget(id)
	if !isDelta {
		r.l.changing[id] = nil
	}
	r.l.changing[id] = append(r.l.changing[id], b)
	return m.err
}

// load loads the columns of a record batch, in the order of the file, and gives them in
// that of the plan.
func (r *reader) load() (columns []arrow.Array, err error) {
	columns = make([]arrow.Array, len(r.from))
	defer func() {
		if err == nil {
			return
		}
		for _, c := range columns {
			if c != nil {
				c.Release()
			}
		}
		columns = nil
	}()
	if len(r.x.fields) > 0 {
		if rows, _, err := r.l.b.node(0); err != nil || rows != r.l.b.rows {
			return columns, errMetadata
		}
	}
	for i, f := range r.x.fields {
		if err = r.loadField(i, f, columns); err != nil {
			return columns, err
		}
	}
	for k, i := range r.from {
		if i < 0 {
			columns[k] = array.NewNull(r.l.b.rows)
		}
	}
	return columns, r.l.b.err
}

// loadField loads field i of the file into the columns that are read from it.
func (r *reader) loadField(i int, f *field, columns []arrow.Array) error {
	var loaded arrow.Array
	for k, from := range r.from {
		if from != i {
			continue
		}
		if loaded == nil {
			var err error
			if loaded, err = r.l.column(f); err != nil {
				return r.columnError(f, err)
			}
			defer loaded.Release()
		}
		if loaded.DataType().ID() == arrow.NULL {
			loaded.Retain()
			columns[k] = loaded
			continue
		}
		var err error
		if columns[k], err = codec.Fit(r.mem, loaded, r.schema.Field(k).Type); err != nil {
			return r.columnError(f, err)
		}
	}
	if loaded != nil {
		return nil
	}
	return r.l.c.skip(f, r.l.b)
}

func (r *reader) columnError(f *field, err error) error {
	var misfit *misfitError
	switch {
	case isFileError(err):
		return err
	case errors.As(err, &misfit):
		return &connector.RecordError{File: r.x.path, Column: f.name, Reason: err.Error(), Err: err}
	}
	return &connector.RecordError{File: r.x.path, Column: f.name, Reason: fmt.Sprintf("the Arrow file is damaged: %v", err), Err: err}
}

func (r *reader) drop() {
	releaseArrays(r.columns)
	r.columns = nil
}

// Close releases everything. It may be called more than once.
func (r *reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.drop()
	r.left = 0
	r.l.release()
	if r.err == nil {
		r.err = io.EOF
	}
	return r.src.Close()
}
