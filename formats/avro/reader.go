package avro

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// reader reads some blocks of a file.
type reader struct {
	*plan
	file    vfs.File
	steps   []step
	vectors []vector // of the columns wanted; nil: the file has none of the name
	blocks  []block
	z       decompressor
	raw     []byte // the block at hand, as it is stored
	at      block
	left    int64 // records of it that are not read
	c       cursor
	err     error
	closed  bool
}

func newReader(p *plan, file vfs.File, blocks []block) (*reader, error) {
	steps, vectors, err := p.program()
	return &reader{plan: p, file: file, steps: steps, vectors: vectors, blocks: blocks, z: decompressor{codec: p.x.codec}}, err
}

func (r *reader) Schema() *arrow.Schema { return r.schema }

// Next gives the next rows, which may be of several blocks.
func (r *reader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	rows, err := r.fill(ctx)
	if err == nil && rows == 0 {
		err = io.EOF
	}
	if err != nil {
		r.err = err
		return nil, err
	}
	columns, err := finishAll(r.mem, r.schema.Fields(), r.vectors, rows)
	if err != nil {
		r.err = r.explain(err)
		return nil, r.err
	}
	out := array.NewRecordBatch(r.schema, columns, int64(rows))
	releaseArrays(columns)
	codec.CountRows(r.stats, rows)
	return out, nil
}

// fill decodes the records of a batch.
func (r *reader) fill(ctx context.Context) (rows int, err error) {
	r.c.empty, r.c.symbols = 0, 0
	for size := 0; !codec.BatchFull(rows, r.plan.rows, size+r.c.symbols); {
		if r.left == 0 {
			if len(r.blocks) == 0 {
				return rows, nil
			}
			if err := r.open(ctx); err != nil {
				return rows, err
			}
			continue
		}
		if r.isCounted() {
			n := min(r.left, int64(r.plan.rows-rows))
			rows, r.left = rows+int(n), r.left-n
			continue
		}
		from := r.c.pos
		run(r.steps, &r.c)
		if r.c.err != nil {
			return rows, r.explain(r.c.err)
		}
		size += r.c.pos - from
		rows++
		if r.left--; r.left == 0 && r.c.rest() > 0 {
			return rows, r.explain(fmt.Errorf("%d bytes are left behind the last record", r.c.rest()))
		}
	}
	return rows, nil
}

// isCounted says that no column is wanted: records are counted, not decoded.
func (r *reader) isCounted() bool { return len(r.vectors) == 0 }

// open reads and decompresses the next block.
func (r *reader) open(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b := r.blocks[0]
	r.blocks = r.blocks[1:]
	r.at, r.left = b, b.rows
	if r.isCounted() {
		return nil
	}
	if int64(cap(r.raw)) < b.size {
		r.raw = make([]byte, b.size)
	}
	r.raw = r.raw[:b.size]
	if err := readAt(r.file, r.raw, b.data); err != nil {
		return r.x.shrunk(b.data, err)
	}
	if r.stats != nil {
		r.stats.Bytes.Add(b.data - b.offset + b.size + markerSize)
	}
	records, err := r.z.open(r.raw)
	if err != nil {
		return r.x.damaged(b.offset, fmt.Errorf("a block: %s: %w", r.x.codec, err))
	}
	if least := int64(r.x.root.least); least > 0 && b.rows > int64(len(records))/least {
		return r.x.damaged(b.offset, fmt.Errorf("a block of %d bytes claims to have %d records", len(records), b.rows))
	}
	r.c.buf, r.c.pos = records, 0
	return nil
}

// explain names file, column and block of an error.
func (r *reader) explain(err error) error {
	column, err := located(err)
	return &connector.RecordError{File: r.x.path, Column: column, Err: err,
		Reason: fmt.Sprintf("the block at byte %d of the Avro file cannot be read: %v", r.at.offset, err)}
}

// Close releases everything. It may be called more than once.
func (r *reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.z.close()
	if r.err == nil {
		r.err = io.EOF
	}
	return r.file.Close()
}
