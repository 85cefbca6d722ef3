package ipc

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
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

func (f *format) Name() string      { return "arrow" }
func (f *format) Extension() string { return ".arrow" }

// WithPinned returns f: an Arrow file says all by itself.
func (f *format) WithPinned(map[string]string) (codec.Format, error) { return f, nil }

// Infer widens the columns of the sample's files to their common types. Columns that only
// later files have come after those of earlier ones.
func (f *format) Infer(ctx context.Context, files []codec.File) (codec.Inferred, bool, error) {
	return codec.InferFiles(ctx, files, func(file codec.File) (*arrow.Schema, error) {
		x, c, err := f.open(ctx, file, nil)
		if err != nil || x == nil {
			return nil, err
		}
		if err := c.Close(); err != nil {
			return nil, err
		}
		s, other := engineSchema(x.fields)
		if other != nil {
			return nil, &connector.RecordError{File: file.Path, Column: other.name,
				Reason: other.why + ", for which there is no type; declare the columns you want"}
		}
		return s, nil
	})
}

// open opens a file and finds its messages. With codec.Drop a damaged file is nil, and
// counted.
func (f *format) open(ctx context.Context, file codec.File, stats *connector.ScanStats) (*index, content, error) {
	c, size, err := openContent(file)
	if err != nil {
		return nil, nil, f.options.Mode.Dropped(err, stats)
	}
	x, err := readIndex(ctx, c, file.Path, size)
	if err != nil {
		return nil, nil, errors.Join(f.options.Mode.Dropped(err, stats), c.Close())
	}
	return x, c, nil
}

// Units are runs of record batches.
func (f *format) Units(ctx context.Context, file codec.File, schema codec.Columns, req connector.ScanRequest) ([]connector.Unit, error) {
	x, c, err := f.open(ctx, file, req.Stats)
	if err != nil || x == nil {
		if err == nil {
			err = codec.HashFile(ctx, file)
		}
		return nil, err
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	typed := codec.Typed{Path: x.path, Mode: f.options.Mode}
	for _, c := range x.fields {
		typed.Fields = append(typed.Fields, columnar.Field(c.name, c.typ))
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
			if err = f.options.Mode.Dropped(err, req.Stats); err == nil {
				err = codec.HashFile(ctx, file)
			}
			return nil, err
		}
	}
	units := makeUnits(file, p)
	if len(units) == 0 {
		return nil, codec.HashFile(ctx, file)
	}
	return units, nil
}

// wholeFile decodes every wanted column once.
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

// makeUnits divides the record batches of a file. Which they are does not depend on the
// columns that are read.
func makeUnits(file codec.File, p *plan) []connector.Unit {
	x := p.x
	if x.ordered != nil {
		return []connector.Unit{&unit{file: file, plan: p, blocks: x.ordered, last: len(x.batches) - 1, first: true}}
	}
	var units []connector.Unit
	for i := 0; i < len(x.batches); {
		from, bytes := i, int64(0)
		for i < len(x.batches) && (i == from || bytes+x.batches[i].body <= unitBytes) {
			bytes += x.batches[i].body
			i++
		}
		units = append(units, &unit{file: file, plan: p, blocks: x.batches[from:i], from: from, last: i - 1, first: from == 0})
	}
	return units
}

// unit is some record batches of one file.
type unit struct {
	file       codec.File
	plan       *plan
	blocks     []block
	from, last int // numbers of its record batches
	first      bool
}

func (u *unit) Name() string {
	if u.from >= u.last {
		return fmt.Sprintf("%s batch %d", u.file.Path, u.from)
	}
	return fmt.Sprintf("%s batches %d-%d", u.file.Path, u.from, u.last)
}

// Bytes are those of all columns.
func (u *unit) Bytes() int64 {
	n := int64(0)
	for _, b := range u.blocks {
		n += b.body
	}
	return n
}

// Open starts reading. The first unit takes the file's content hash, where one is wanted.
func (u *unit) Open(ctx context.Context) (columnar.Reader, error) {
	if u.first {
		if err := codec.HashFile(ctx, u.file); err != nil {
			return nil, err
		}
	}
	c, size, err := openContent(u.file)
	if err != nil {
		return nil, err
	}
	if size != u.plan.x.size {
		return nil, errors.Join(&connector.FileChangedError{Path: u.file.Path, Was: u.file.FileIdentity}, c.Close())
	}
	return newReader(u.plan, c, u.blocks), nil
}

// RowCount is the number of rows of a file by the metadata of its batches.
func RowCount(file codec.File) (int64, error) {
	f := format{}
	x, c, err := f.open(context.Background(), file, nil)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	rows := int64(0)
	for _, b := range x.batches {
		m, err := readMessage(c, b, x.size)
		if err != nil {
			return 0, err
		}
		rows += m.header.i64(0)
	}
	return rows, nil
}
