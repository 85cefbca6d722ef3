package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// testFormats are a plain kind of CSV (a header, commas, no quotes, null is nothing),
// under two names, so that mixtures can be tested. This package knows nothing of real
// formats, and its tests need none.
var testFormats = Formats{
	{Name: "csv", Extensions: []string{".csv", ".tsv"}, ReadKeys: []string{"header", "null"}, WriteKeys: []string{"header"}, New: newPlain},
	{Name: "other", Extensions: []string{".other"}, ReadKeys: []string{"special"}, New: newPlain},
}

func newPlain(env FormatEnv) (codec.Format, error) { return plain{env.Options["pinned"]}, nil }

type plain struct{ pinned string }

func (plain) Name() string      { return "csv" }
func (plain) Extension() string { return ".csv" }

func (p plain) WithPinned(pinned map[string]string) (codec.Format, error) {
	return plain{pinned["first"]}, nil
}

func (p plain) Pin(files []codec.File, _ codec.Columns) (map[string]string, error) {
	for _, f := range files {
		if f.Size > 0 {
			return map[string]string{"first": f.Path}, nil
		}
	}
	return nil, nil
}

func plainLines(f codec.File) ([]string, error) {
	data, err := vfs.ReadFile(f.FS, f.Path)
	if err != nil {
		return nil, err
	}
	if f.Hash != nil {
		for i := 0; i*codec.HashBlock < len(data); i++ {
			f.Hash.Set(i, xxh3.Hash128(data[i*codec.HashBlock:min((i+1)*codec.HashBlock, len(data))]))
		}
	}
	text := strings.TrimSuffix(string(data), "\n")
	if text == "" {
		return nil, nil
	}
	if strings.Contains(text, "BAD") {
		return nil, &connector.RecordError{File: f.Path, Line: 1, Reason: "it says BAD"}
	}
	return strings.Split(text, "\n"), nil
}

func (p plain) Infer(_ context.Context, files []codec.File) (codec.Inferred, bool, error) {
	var fields []arrow.Field
	for _, f := range files {
		lines, err := plainLines(f)
		if err != nil || len(lines) == 0 {
			if err != nil {
				return codec.Inferred{}, false, err
			}
			continue
		}
		for i, name := range strings.Split(lines[0], ",") {
			if _, n := columnar.Lookup(arrow.NewSchema(fields, nil), name); n > 0 {
				continue
			}
			dt := columnar.Int64
			for _, line := range lines[1:] {
				if cells := strings.Split(line, ","); i < len(cells) {
					if _, err := strconv.Atoi(cells[i]); err != nil {
						dt = columnar.String
					}
				}
			}
			fields = append(fields, columnar.Field(name, dt))
		}
	}
	return codec.Inferred{Schema: arrow.NewSchema(fields, nil)}, len(fields) > 0, nil
}

func (p plain) Units(_ context.Context, f codec.File, schema codec.Columns, req connector.ScanRequest) ([]connector.Unit, error) {
	return []connector.Unit{&plainUnit{f, schema.Schema, req}}, nil
}

type plainUnit struct {
	f      codec.File
	schema *arrow.Schema
	req    connector.ScanRequest
}

func (u *plainUnit) Name() string { return u.f.Path }
func (u *plainUnit) Bytes() int64 { return u.f.Size }

func (u *plainUnit) Open(ctx context.Context) (columnar.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lines, err := plainLines(u.f)
	if err != nil {
		return nil, err
	}
	r := &plainReader{u: u, schema: columnar.Select(u.schema, u.req.Columns)}
	if len(lines) > 0 {
		r.names, r.lines = strings.Split(lines[0], ","), lines[1:]
	}
	return r, nil
}

type plainReader struct {
	u      *plainUnit
	schema *arrow.Schema
	names  []string
	lines  []string
}

func (r *plainReader) Schema() *arrow.Schema { return r.schema }
func (r *plainReader) Close() error          { r.lines = nil; return nil }

func (r *plainReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := min(len(r.lines), max(r.u.req.BatchRows, 0))
	if r.u.req.BatchRows <= 0 {
		n = len(r.lines)
	}
	if n == 0 {
		return nil, io.EOF
	}
	columns := make([]arrow.Array, r.schema.NumFields())
	for i, f := range r.schema.Fields() {
		values := make([]any, n)
		for row, line := range r.lines[:n] {
			for c, cell := range strings.Split(line, ",") {
				if c < len(r.names) && strings.EqualFold(r.names[c], f.Name) && cell != "" {
					values[row] = cell
					if f.Type.ID() == arrow.INT64 {
						values[row], _ = strconv.ParseInt(cell, 10, 64)
					}
				}
			}
		}
		var err error
		if columns[i], err = columnar.Column(r.u.req.Mem, f.Type, values...); err != nil {
			return nil, err
		}
		defer columns[i].Release()
	}
	r.lines = r.lines[n:]
	return array.NewRecordBatch(r.schema, columns, int64(n)), nil
}

func (plain) NewWriter(w io.Writer, schema *arrow.Schema, _ codec.WriterOptions) (codec.Writer, error) {
	var names []string
	for _, f := range schema.Fields() {
		names = append(names, f.Name)
	}
	n, err := fmt.Fprintln(w, strings.Join(names, ","))
	return &plainWriter{w: w, size: int64(n)}, err
}

type plainWriter struct {
	w    io.Writer
	size int64
}

var errPlainWriter = errors.New("this value cannot be written")

func (p *plainWriter) Write(b arrow.RecordBatch) error {
	for row := range int(b.NumRows()) {
		var cells []string
		for _, c := range b.Columns() {
			text := ""
			if !c.IsNull(row) {
				text = string(columnar.AppendValue(nil, c, row, nil))
			}
			if text == "unwritable" {
				return errPlainWriter
			}
			cells = append(cells, text)
		}
		n, err := fmt.Fprintln(p.w, strings.Join(cells, ","))
		if err != nil {
			return err
		}
		p.size += int64(n)
	}
	return nil
}

func (p *plainWriter) Size() int64  { return p.size }
func (p *plainWriter) Close() error { return nil }
