package json

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
)

// writer writes one object a line.
type writer struct {
	out  *codec.TextWriter
	keys [][]byte // with what stands before and behind them: {"a": and ,"b":
}

// NewWriter starts a file of lines.
func (f *format) NewWriter(w io.Writer, schema *arrow.Schema, _ codec.WriterOptions) (codec.Writer, error) {
	seen := map[string]bool{}
	jw := &writer{}
	for i, field := range schema.Fields() {
		if seen[field.Name] {
			return nil, fmt.Errorf("two columns are called %q, and a JSON object holds a key once; rename one with AS", field.Name)
		}
		seen[field.Name] = true
		key := []byte{','}
		if i == 0 {
			key[0] = '{'
		}
		key = columnar.AppendJSONString(key, field.Name)
		jw.keys = append(jw.keys, append(key, ':'))
	}
	out, err := codec.NewTextWriter(w, f.opts.Compression, f.opts.CompressionLevel)
	jw.out = out
	return jw, err
}

func (w *writer) Write(b arrow.RecordBatch) error {
	columns := b.Columns()
	for row := range int(b.NumRows()) {
		buf := w.out.Buffer()
		if len(columns) == 0 {
			buf = append(buf, '{')
		}
		for i, c := range columns {
			buf = append(buf, w.keys[i]...)
			buf = columnar.AppendJSON(buf, c, row)
		}
		if err := w.out.Took(append(buf, '}', '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) Size() int64  { return w.out.Size() }
func (w *writer) Close() error { return w.out.Close() }
