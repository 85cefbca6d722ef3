package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/avro"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/formats/json"
	"github.com/tidemill/tidemill/formats/parquet"
)

var errBrokenPipe = syscall.EPIPE

// resultFormats are the words of --format.
var resultFormats = []string{"table", "csv", "jsonl", "parquet", "arrow", "avro"}

func checkFormat(format string) error {
	if slices.Contains(resultFormats, format) {
		return nil
	}
	return usagef("there is no format %q%s", format, columnar.DidYouMean(format, resultFormats))
}

// result is rows and how they are shown.
type result struct {
	rows   *tidemill.Rows
	rest   iter.Seq2[arrow.RecordBatch, error] // the rows after them, but of a table; may be nil
	format string                              // one of resultFormats
	zone   *time.Location
	toFile bool
}

// encode writes the result.
func (r *result) encode(w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	var err error
	switch r.format {
	case "table":
		err = writeTable(buffered, r.rows, r.zone)
	case "arrow":
		err = r.writeArrow(buffered)
	default:
		err = r.writeFormat(buffered)
	}
	if err != nil {
		return err
	}
	return buffered.Flush()
}

// batches are all rows.
func (r *result) batches() iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range r.rows.Batches() {
			if !yield(b, nil) {
				return
			}
		}
		if r.rest != nil {
			r.rest(yield)
		}
	}
}

func writeTable(w io.Writer, rows *tidemill.Rows, zone *time.Location) error {
	text := columnar.Text(rows.Schema(), rows.Batches(), columnar.TextOptions{Ordered: true, Untyped: true, Location: zone})
	_, err := fmt.Fprintf(w, "%s%s\n", text, count(rows.NumRows(), "row"))
	return err
}

// print writes the result to stdout. A reader that has gone away (head, less) is no error.
func (r *result) print() error {
	err := r.encode(os.Stdout)
	if errors.Is(err, errBrokenPipe) {
		return nil
	}
	return err
}

// count is n things, in English.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// writeArrow writes an IPC file to a file, and an IPC stream, which needs no end to be
// read, to anything else.
func (r *result) writeArrow(w io.Writer) error {
	iw, err := newArrowWriter(w, r.rows.Schema(), r.toFile)
	if err != nil {
		return err
	}
	for b, err := range r.batches() {
		if err != nil {
			return err
		}
		if err := iw.Write(b); err != nil {
			return err
		}
	}
	return iw.Close()
}

// arrowWriter is what the two writers of package ipc have in common.
type arrowWriter interface {
	Write(arrow.RecordBatch) error
	Close() error
}

func newArrowWriter(w io.Writer, schema *arrow.Schema, toFile bool) (arrowWriter, error) {
	if toFile {
		return ipc.NewFileWriter(w, ipc.WithSchema(schema))
	}
	return ipc.NewWriter(w, ipc.WithSchema(schema)), nil
}

func (r *result) writeFormat(w io.Writer) error {
	f, err := formatOf(r.format, r.zone)
	if err != nil {
		return err
	}
	fw, err := f.NewWriter(w, r.rows.Schema(), codec.WriterOptions{Mem: memory.DefaultAllocator, Printed: true})
	if err != nil {
		return err
	}
	for b, err := range r.batches() {
		if err != nil {
			return err
		}
		if err := fw.Write(b); err != nil {
			return err
		}
	}
	return fw.Close()
}

func formatOf(name string, zone *time.Location) (codec.Format, error) {
	switch name {
	case "csv":
		return csv.New(csv.Options{Header: csv.HeaderYes, Location: zone})
	case "jsonl":
		return json.New(json.Options{})
	case "parquet":
		return parquet.New(parquet.Options{})
	case "avro":
		return avro.New(avro.Options{})
	}
	return nil, fmt.Errorf("bug: format %s", name)
}
