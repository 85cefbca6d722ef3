package text

import (
	"bytes"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
)

type writer struct{ out *codec.TextWriter }

// NewWriter starts a file of lines. What would not be read as the line it was is refused:
// a null, and a text that holds a line end.
func (f *format) NewWriter(w io.Writer, schema *arrow.Schema, _ codec.WriterOptions) (codec.Writer, error) {
	if schema.NumFields() != 1 || schema.Field(0).Type.ID() != arrow.STRING && schema.Field(0).Type.ID() != arrow.BINARY {
		return nil, fmt.Errorf("a text file has one column of type VARCHAR, not %s; make one of them, as with CAST or concat, or choose another format", columnar.SchemaString(schema))
	}
	out, err := codec.NewTextWriter(w, f.opts.Compression, f.opts.CompressionLevel)
	return &writer{out}, err
}

func (w *writer) Write(b arrow.RecordBatch) error {
	c, name := b.Column(0), b.Schema().Field(0).Name
	for row := range int(b.NumRows()) {
		if c.IsNull(row) {
			return fmt.Errorf("column %s: a text file cannot hold a null, which would be an empty line; use coalesce or another format", name)
		}
		before := len(w.out.Buffer())
		buf := columnar.AppendValue(w.out.Buffer(), c, row, nil)
		if bytes.ContainsAny(buf[before:], "\r\n") {
			return fmt.Errorf("column %s: a line of a text file cannot hold a line end, as in %s; use replace or another format", name, shown(buf[before:]))
		}
		if err := w.out.Took(append(buf, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// shown is the start of a value, quoted.
func shown(value []byte) string {
	const most = 40
	if len(value) > most {
		return fmt.Sprintf("%q…", value[:most])
	}
	return fmt.Sprintf("%q", value)
}

func (w *writer) Size() int64  { return w.out.Size() }
func (w *writer) Close() error { return w.out.Close() }
