package avro

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// format implements codec.Format.
type format struct{ options Options }

// New makes the format.
func New(o Options) (codec.Format, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &format{o}, nil
}

func (f *format) Name() string      { return "avro" }
func (f *format) Extension() string { return ".avro" }

// WithPinned returns f: an Avro file says all by itself.
func (f *format) WithPinned(map[string]string) (codec.Format, error) { return f, nil }

// Infer widens the columns of the sample's files to their common types. Columns that only
// later files have come after those of earlier ones.
func (f *format) Infer(ctx context.Context, files []codec.File) (codec.Inferred, bool, error) {
	return codec.InferFiles(ctx, files, func(file codec.File) (*arrow.Schema, error) {
		x, err := readFileHeader(file)
		if err = f.options.Mode.Dropped(err, nil); err != nil || x == nil {
			return nil, err
		}
		s, other := engineSchema(x.root)
		if other >= 0 {
			return nil, &connector.RecordError{File: file.Path, Column: x.root.names[other],
				Reason: x.root.children[other].why + ", for which there is no type; declare the columns you want"}
		}
		return s, nil
	})
}

func readFileHeader(file codec.File) (x *index, err error) {
	err = withFile(file, func(h vfs.File) error {
		x, _, err = readHeader(h, file.Path, file.Size)
		return err
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

func readFileIndex(ctx context.Context, file codec.File) (x *index, err error) {
	err = withFile(file, func(h vfs.File) error {
		x, err = readIndex(ctx, h, file.Path, file.Size)
		return err
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

func withFile(file codec.File, do func(h vfs.File) error) error {
	h, err := openFile(file)
	if err != nil {
		return err
	}
	return errors.Join(do(h), h.Close())
}

// Units are runs of blocks.
func (f *format) Units(ctx context.Context, file codec.File, schema codec.Columns, req connector.ScanRequest) ([]connector.Unit, error) {
	x, err := readFileIndex(ctx, file)
	if err != nil {
		return nil, f.droppedFile(ctx, file, err, req.Stats)
	}
	typed := codec.Typed{Path: x.path, Mode: f.options.Mode}
	for i, c := range x.root.children {
		typed.Fields = append(typed.Fields, columnar.Field(x.root.names[i], c.typ))
	}
	return codec.ReadTyped(typed, schema, req, func(schema codec.Columns, req connector.ScanRequest) ([]connector.Unit, error) {
		return f.units(ctx, file, x, schema, req)
	})
}

// units are those of a file whose columns are found by name and have types that fit.
func (f *format) units(ctx context.Context, file codec.File, x *index, schema codec.Columns, req connector.ScanRequest) ([]connector.Unit, error) {
	p, err := newPlan(x, schema.Schema, req, f.options.TimeZone)
	if err != nil {
		return nil, err
	}
	if f.options.Mode == codec.Drop {
		if err := f.wholeFile(ctx, file, x, schema.Schema, req); err != nil {
			return nil, f.droppedFile(ctx, file, err, req.Stats)
		}
	}
	units := makeUnits(file, p)
	if len(units) == 0 {
		return nil, codec.HashFile(ctx, file)
	}
	return units, nil
}

// droppedFile is dropped for a file that counts as read.
func (f *format) droppedFile(ctx context.Context, file codec.File, err error, stats *connector.ScanStats) error {
	if err := f.options.Mode.Dropped(err, stats); err != nil {
		return err
	}
	return codec.HashFile(ctx, file)
}

// wholeFile decodes every column once.
func (f *format) wholeFile(ctx context.Context, file codec.File, x *index, schema *arrow.Schema, req connector.ScanRequest) error {
	p, err := newPlan(x, schema, connector.ScanRequest{Mem: req.Mem}, f.options.TimeZone)
	if err != nil {
		return err
	}
	file.Hash = nil
	for _, u := range makeUnits(file, p) {
		r, err := u.Open(ctx)
		if err != nil {
			return err
		}
		for _, err2 := range columnar.All(ctx, r) {
			err = err2
		}
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// unitBytes is about how much of a file one unit reads.
const unitBytes = 4 << 20

// makeUnits divides the blocks of a file. Which they are does not depend on the columns
// that are read.
func makeUnits(file codec.File, p *plan) []connector.Unit {
	var units []connector.Unit
	list := p.x.blocks
	for i := 0; i < len(list); {
		from, bytes := i, int64(0)
		for i < len(list) && (i == from || bytes+list[i].size <= unitBytes) {
			bytes += list[i].size
			i++
		}
		units = append(units, &unit{file: file, plan: p, blocks: list[from:i], from: from, bytes: bytes})
	}
	return units
}

// unit is some blocks of one file.
type unit struct {
	file   codec.File
	plan   *plan
	blocks []block
	from   int // number of the first
	bytes  int64
}

func (u *unit) Name() string {
	if len(u.blocks) == 1 {
		return fmt.Sprintf("%s block %d", u.file.Path, u.from)
	}
	return fmt.Sprintf("%s blocks %d-%d", u.file.Path, u.from, u.from+len(u.blocks)-1)
}

// Bytes are those of all columns, as they are stored.
func (u *unit) Bytes() int64 { return u.bytes }

// Open starts reading. The first unit takes the file's content hash, where one is wanted.
func (u *unit) Open(ctx context.Context) (columnar.Reader, error) {
	if u.from == 0 {
		if err := codec.HashFile(ctx, u.file); err != nil {
			return nil, err
		}
	}
	h, err := openFile(u.file)
	if err != nil {
		return nil, err
	}
	r, err := newReader(u.plan, h, u.blocks)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return r, nil
}

// RowCount is the number of rows of a file by the heads of its blocks.
func RowCount(file codec.File) (int64, error) {
	x, err := readFileIndex(context.Background(), file)
	if err != nil {
		return 0, err
	}
	rows := int64(0)
	for _, b := range x.blocks {
		rows += b.rows
	}
	return rows, nil
}
