package gen

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/formats/parquet"
	"github.com/tidemill/tidemill/internal/vfs"
)

// Formats are the formats that Write knows.
var Formats = []string{"parquet", "csv", "jsonl"}

// Write writes the table into one file. A format that is not known makes none.
func Write(fsys vfs.FS, name, format string, d *Data) error {
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("format %q is unknown; known are %s", format, strings.Join(Formats, ", "))
	}
	h, err := fsys.Create(name)
	if err != nil {
		return err
	}
	defer h.Close()
	w := bufio.NewWriterSize(h, 1<<20)
	if err := encode(w, format, d); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return w.Flush()
}

func encode(w io.Writer, format string, d *Data) error {
	switch format {
	case "parquet":
		f, err := parquet.NewFileWriter(w, d.Schema, parquet.WriterConfig{})
		if err != nil {
			return err
		}
		if err := d.Each(f.Write); err != nil {
			return err
		}
		return f.Close()
	case "csv":
		return writeCSV(w, d)
	case "jsonl":
		return writeJSON(w, d)
	}
	panic("bug: no encoder for format " + format)
}

func writeCSV(w io.Writer, d *Data) error {
	var line []byte
	for i, f := range d.Schema.Fields() {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, f.Name...)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return err
	}
	return d.Each(func(b arrow.RecordBatch) error {
		for i := range int(b.NumRows()) {
			line = line[:0]
			for c, a := range b.Columns() {
				if c > 0 {
					line = append(line, ',')
				}
				line = appendValue(line, a, i, false)
			}
			if _, err := w.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeJSON(w io.Writer, d *Data) error {
	var line []byte
	return d.Each(func(b arrow.RecordBatch) error {
		for i := range int(b.NumRows()) {
			line = append(line[:0], '{')
			for c, a := range b.Columns() {
				if c > 0 {
					line = append(line, ',')
				}
				line = strconv.AppendQuote(line, d.Schema.Field(c).Name)
				line = appendValue(append(line, ':'), a, i, true)
			}
			if _, err := w.Write(append(line, '}', '\n')); err != nil {
				return err
			}
		}
		return nil
	})
}

// appendValue writes a value as text; the generated texts need no quoting in CSV.
func appendValue(dst []byte, a arrow.Array, i int, quote bool) []byte {
	switch a := a.(type) {
	case *array.String:
		if quote {
			return strconv.AppendQuote(dst, a.Value(i))
		}
		return append(dst, a.Value(i)...)
	case *array.Int64:
		return strconv.AppendInt(dst, a.Value(i), 10)
	case *array.Int32:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10)
	case *array.Decimal128:
		return append(dst, a.ValueStr(i)...)
	case *array.Date32:
		if quote {
			return strconv.AppendQuote(dst, a.ValueStr(i))
		}
		return append(dst, a.ValueStr(i)...)
	case *array.Float64:
		return strconv.AppendFloat(dst, a.Value(i), 'f', -1, 64)
	case *array.Timestamp:
		if quote {
			dst = append(dst, '"')
		}
		dst = time.UnixMicro(int64(a.Value(i))).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
		if quote {
			dst = append(dst, '"')
		}
		return dst
	}
	panic("bug: a column of type " + a.DataType().String())
}

// Landing writes the table as files of rowsPerFile rows, named in order, as a landing
// directory receives them. It returns their names.
func Landing(fsys vfs.FS, dir, format string, d *Data, rowsPerFile int64) ([]string, error) {
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, err
	}
	var names []string
	for at := int64(0); at < d.Rows; at += rowsPerFile {
		part := &Data{Schema: d.Schema, Rows: min(rowsPerFile, d.Rows-at), seed: d.seed + uint64(at)}
		part.fill = func(r *rand.Rand, b *array.RecordBuilder, row int64) { d.fill(r, b, at+row) }
		name := path.Join(dir, fmt.Sprintf("part-%05d.%s", len(names), format))
		if err := Write(fsys, name, format, part); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
