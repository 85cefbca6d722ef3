package csv

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
)

// writer writes RFC 4180 with line feeds: a header, null as nothing (or null_value),
// the empty text as "", nested values as JSON text.
type writer struct {
	out     *codec.TextWriter
	d       dialect
	rules   *cells.Rules
	null    []byte
	loc     *time.Location
	schema  *arrow.Schema
	printed bool // as codec.WriterOptions say
	// blanks says that a record may be a blank line.
	blanks bool
	// special[c]: a field that holds c must be in quotes.
	special [256]bool
	value   []byte
}

// NewWriter starts a file.
func (f *format) NewWriter(w io.Writer, schema *arrow.Schema, wo codec.WriterOptions) (codec.Writer, error) {
	if schema.NumFields() == 0 {
		return nil, fmt.Errorf("a CSV file needs a column")
	}
	d, rules, err := f.opts.compile("")
	if err != nil {
		return nil, err
	}
	cw := &writer{d: d, rules: rules, null: []byte(f.opts.NullValue), loc: f.opts.Location, schema: schema, printed: wo.Printed,
		blanks: wo.Printed || schema.NumFields() > 1 || f.opts.NullValue != ""}
	for _, c := range []byte{'\n', '\r', d.quote, d.escape, d.delimiter[0]} {
		cw.special[c] = true
	}
	if cw.out, err = codec.NewTextWriter(w, f.opts.Compression, f.opts.CompressionLevel); err != nil {
		return nil, err
	}
	if f.opts.Header != HeaderNo {
		return cw, cw.header()
	}
	return cw, nil
}

func (w *writer) header() (err error) {
	buf := w.out.Buffer()
	for i, field := range w.schema.Fields() {
		if i > 0 {
			buf = append(buf, w.d.delimiter...)
		}
		if buf, err = w.appendText(buf, []byte(field.Name)); err != nil {
			return fmt.Errorf("column %s: %w", field.Name, err)
		}
	}
	return w.out.Took(append(buf, '\n'))
}

func (w *writer) Write(b arrow.RecordBatch) (err error) {
	columns := b.Columns()
	for row := range int(b.NumRows()) {
		buf := w.out.Buffer()
		for i, c := range columns {
			if i > 0 {
				buf = append(buf, w.d.delimiter...)
			}
			if isNull(c, row) {
				if !w.blanks {
					return fmt.Errorf("column %s: a CSV file of one column cannot hold a null, which would be a blank line; set null_value or another format", w.schema.Field(0).Name)
				}
				buf = append(buf, w.null...)
				continue
			}
			if buf, err = w.appendValue(buf, c, row); err != nil {
				return fmt.Errorf("column %s: %w", w.schema.Field(i).Name, err)
			}
		}
		if err := w.out.Took(append(buf, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// isNull looks through a dictionary.
func isNull(c arrow.Array, row int) bool {
	if d, ok := c.(*array.Dictionary); ok && d.IsValid(row) {
		return d.Dictionary().IsNull(d.GetValueIndex(row))
	}
	return c.IsNull(row)
}

// appendValue appends a value that is not null as a field.
func (w *writer) appendValue(dst []byte, c arrow.Array, row int) ([]byte, error) {
	from := len(dst)
	var err error
	switch c := c.(type) {
	case *array.Int64:
		dst = strconv.AppendInt(dst, c.Value(row), 10)
	case *array.Float64:
		dst = columnar.AppendFloat(dst, c.Value(row), 64)
	case *array.Timestamp:
		switch us := int64(c.Value(row)); {
		case w.rules.Timestamp != nil:
			dst, err = w.rules.Timestamp.Append(dst, us, w.loc)
		case w.printed:
			dst = columnar.AppendTimestamp(dst, us, w.loc)
		default:
			dst = columnar.AppendStoredTimestamp(dst, us, w.loc)
		}
	case *array.Date32:
		if w.rules.Date != nil {
			dst, err = w.rules.Date.Append(dst, int64(c.Value(row))*columnar.MicrosPerDay, nil)
		} else {
			dst = columnar.AppendDate(dst, int64(c.Value(row)))
		}
	case *array.Dictionary:
		return w.appendValue(dst, c.Dictionary(), c.GetValueIndex(row))
	default:
		dst = columnar.AppendValue(dst, c, row, w.loc)
	}
	if err != nil || !w.needsQuotes(dst[from:]) {
		return dst, err
	}
	w.value = append(w.value[:0], dst[from:]...)
	return w.quote(dst[:from], w.value)
}

// needsQuotes says whether text would not come back as it is without quotes: it holds
// a mark, is nothing, or reads as null.
func (w *writer) needsQuotes(text []byte) bool {
	if len(text) == 0 || len(w.null) > 0 && bytes.Equal(text, w.null) {
		return true
	}
	for _, c := range text {
		if w.special[c] {
			return true
		}
	}
	return false
}

func (w *writer) appendText(dst, text []byte) ([]byte, error) {
	if !w.needsQuotes(text) {
		return append(dst, text...), nil
	}
	return w.quote(dst, text)
}

// quote appends text in quotes.
func (w *writer) quote(dst, text []byte) ([]byte, error) {
	if w.d.quote == 0 {
		if len(text) == 0 && len(w.null) > 0 {
			return dst, nil
		}
		return dst, fmt.Errorf("%q needs quotes, and quote is set to none", text[:min(len(text), math.MaxUint8)])
	}
	dst = append(dst, w.d.quote)
	for _, c := range text {
		if c == w.d.quote || c == w.d.escape {
			dst = append(dst, w.d.escape)
		}
		dst = append(dst, c)
	}
	return append(dst, w.d.quote), nil
}

func (w *writer) Size() int64  { return w.out.Size() }
func (w *writer) Close() error { return w.out.Close() }
