// Package console is a sink that prints every batch: as a table for people, as one
// JSON object a row, or as CSV. It prints a batch when it is published; a batch may be
// printed again after a crash.
package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// Format is how rows are printed.
type Format uint8

// The formats.
const (
	Table Format = iota
	JSONL
	CSV
)

// Options of the console sink.
type Options struct {
	Format Format
	// Rows is how many rows of a batch Table prints; 0 is DefaultRows.
	Rows int64
	// Location is the clock of timestamps; nil is UTC.
	Location *time.Location
}

// DefaultRows is how many rows of a batch are printed as a table.
const DefaultRows = 20

// Connector is the connector console; it writes to Env.Stdout.
func Connector() connector.Connector {
	return connector.Connector{
		Name: "console",
		Doc:  "prints each batch",
		CheckSink: func(env connector.Env) error {
			_, err := decode(env)
			return err
		},
		Sink: func(_ context.Context, env connector.Env) (connector.Sink, error) {
			o, err := decode(env)
			if err != nil {
				return nil, err
			}
			if env.Stdout == nil {
				return nil, fmt.Errorf("bug: console sink without a writer")
			}
			return New(env.Stdout, o), nil
		},
	}
}

func decode(env connector.Env) (Options, error) {
	o := Options{Location: env.Location}
	err := connector.Decode(env.Options,
		connector.EnumKey("format", &o.Format, "table", "jsonl", "csv"),
		connector.IntKey("num_rows", &o.Rows, 1))
	return o, err
}

// Sink prints batches to a writer.
type Sink struct {
	out      io.Writer
	o        Options
	headDone bool // the CSV header is printed
}

var _ connector.Sink = (*Sink)(nil)

// New makes a sink that prints to out.
func New(out io.Writer, o Options) *Sink {
	if o.Rows == 0 {
		o.Rows = DefaultRows
	}
	return &Sink{out: out, o: o}
}

// LastBatch implements connector.Sink: what was printed is not remembered.
func (s *Sink) LastBatch(context.Context) (int64, bool, error) { return -1, false, nil }

// Recover implements connector.Sink.
func (s *Sink) Recover(context.Context) (connector.Staged, error) { return nil, nil }

// Close implements connector.Sink.
func (s *Sink) Close() error { return nil }

// Description implements connector.Describer.
func (s *Sink) Description() string { return "ConsoleSink" }

// Stage implements connector.Sink.
func (s *Sink) Stage(ctx context.Context, b connector.SinkBatch) (connector.Staged, error) {
	st := &staged{s: s}
	var table []arrow.RecordBatch
	defer func() {
		for _, b := range table {
			b.Release()
		}
	}()
	if s.o.Format == CSV && !s.headDone {
		st.text = appendHeader(st.text, b.Data.Schema())
	}
	kept := int64(0)
	for batch, err := range columnar.All(ctx, b.Data) {
		if err != nil {
			return nil, err
		}
		st.rows += batch.NumRows()
		switch s.o.Format {
		case JSONL:
			st.text = appendJSONL(st.text, batch)
		case CSV:
			st.text = appendCSV(st.text, batch, s.o.Location)
		default:
			if n := min(batch.NumRows(), s.o.Rows-kept); n > 0 {
				table = append(table, batch.NewSlice(0, n))
				kept += n
			}
		}
	}
	if s.o.Format == Table {
		st.text = s.table(b.ID, st.rows, kept, b.Data.Schema(), table)
	}
	return st, nil
}

func (s *Sink) table(id, rows, kept int64, schema *arrow.Schema, batches []arrow.RecordBatch) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "batch %d: %d rows\n", id, rows)
	if rows > 0 {
		out.WriteString(columnar.Text(schema, batches, columnar.TextOptions{Ordered: true, Location: s.o.Location}))
		if rows > kept {
			fmt.Fprintf(&out, "… %d more\n", rows-kept)
		}
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// appendJSONL writes each row as an object.
func appendJSONL(out []byte, b arrow.RecordBatch) []byte {
	heads := make([][]byte, b.NumCols())
	for i := range heads {
		sep := byte(',')
		if i == 0 {
			sep = '{'
		}
		heads[i] = append(columnar.AppendJSONString([]byte{sep}, b.ColumnName(i)), ':')
	}
	for row := range int(b.NumRows()) {
		if len(heads) == 0 {
			out = append(out, '{')
		}
		for i, c := range b.Columns() {
			out = append(out, heads[i]...)
			out = columnar.AppendJSON(out, c, row)
		}
		out = append(out, '}', '\n')
	}
	return out
}

func appendHeader(out []byte, s *arrow.Schema) []byte {
	for i, f := range s.Fields() {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendField(out, []byte(f.Name))
	}
	return append(out, '\n')
}

func appendCSV(out []byte, b arrow.RecordBatch, loc *time.Location) []byte {
	var value []byte
	for row := range int(b.NumRows()) {
		for i, c := range b.Columns() {
			if i > 0 {
				out = append(out, ',')
			}
			if c.IsNull(row) {
				continue
			}
			value = columnar.AppendValue(value[:0], c, row, loc)
			out = appendField(out, value)
		}
		out = append(out, '\n')
	}
	return out
}

// appendField quotes what must be quoted, the empty text too, which is not null.
func appendField(out, v []byte) []byte {
	if len(v) > 0 && !bytes.ContainsAny(v, ",\"\r\n") {
		return append(out, v...)
	}
	out = append(out, '"')
	out = append(out, bytes.ReplaceAll(v, []byte(`"`), []byte(`""`))...)
	return append(out, '"')
}

// staged is the text of a batch.
type staged struct {
	s    *Sink
	text []byte
	rows int64
	done bool
}

func (st *staged) Publish(context.Context) error {
	if st.done {
		return nil
	}
	if _, err := st.s.out.Write(st.text); err != nil {
		return fmt.Errorf("console: %w", err)
	}
	st.done, st.s.headDone = true, true
	return nil
}

func (st *staged) Discard() error { st.text = nil; return nil }
func (st *staged) Rows() int64    { return st.rows }
