package text

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
)

type writer struct{ out *codec.TextWriter }

// NewWriter starts a file of lines. A null is an empty line.
func (f *format) NewWriter(w io.Writer, schema *arrow.Schema, _ codec.WriterOptions) (codec.Writer, error) {
	if schema.NumFields() != 1 || schema.Field(0).Type.ID() != arrow.STRING && schema.Field(0).Type.ID() != arrow.BINARY {
		return nil, fmt.Errorf("a text file takes one column of type VARCHAR, not %s", columnar.SchemaString(schema))
	}
	out, err := codec.NewTextWriter(w, f.opts.Compression, f.opts.CompressionLevel)
	return &writer{out}, err
}

func (w *writer) Write(b arrow.RecordBatch) error {
	c := b.Column(0)
	for row := range int(b.NumRows()) {
		buf := columnar.AppendValue(w.out.Buffer(), c, row, nil)
		if err := w.out.Took(append(buf, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) Size() int64  { return w.out.Size() }
func (w *writer) Close() error { return w.out.Close() }
