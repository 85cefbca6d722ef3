package incremental

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// What bad records are kept as. Line is null for a whole file that was left out, and raw
// then is, too; raw_bytes is the size of the record, of which raw is the beginning.
var badSchema = columnar.NewSchema(
	columnar.Field("stream", columnar.String),
	columnar.Field("file", columnar.String),
	columnar.Field("line", columnar.Int64),
	columnar.Field("column", columnar.String),
	columnar.Field("reason", columnar.String),
	columnar.Field("raw", columnar.String),
	columnar.Field("raw_bytes", columnar.Int64),
	columnar.Field("batch_id", columnar.Int64),
)

const (
	// maxRaw is how much of a bad record is kept.
	maxRaw = 64 << 10
	// rawBatch is how much text a batch of bad records holds, about.
	rawBatch = 4 << 20
)

// badOutput is the malformed records of the batch; ok is false if there are none.
func (r *batchRun) badOutput(batch int64) (out connector.SideOutput, ok bool, err error) {
	rows := &badRows{mem: r.exec.cfg.Mem, batch: batch}
	for _, s := range r.exec.streams {
		stats := r.scans[s.Name]
		if stats == nil || stats.Kept == nil {
			continue
		}
		files, err := stats.Kept.Files()
		if err != nil {
			return connector.SideOutput{}, false, err
		}
		for i := range files {
			rows.files = append(rows.files, &badFile{stream: s.Name, BadFile: files[i]})
		}
	}
	return connector.SideOutput{Name: "bad", Data: &badRowsReader{rows: rows}}, len(rows.files) > 0, nil
}

// badFile is the bad records of one file.
type badFile struct {
	stream string
	connector.BadFile
}

// badRows reads the texts of bad records again, file by file.
type badRows struct {
	mem   memory.Allocator
	batch int64
	files []*badFile
}

// all ranges over the rows. The batches are the consumer's.
func (r *badRows) all(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, f := range r.files {
			more, err := r.file(ctx, f, yield)
			if err != nil {
				yield(nil, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// errEnough ends the reading of texts when nobody wants more.
var errEnough = errors.New("no more rows are wanted")

// file gives the records of a file; more is false if no more are wanted.
func (r *badRows) file(ctx context.Context, f *badFile, yield func(arrow.RecordBatch, error) bool) (more bool, err error) {
	w := newBadWriter(r.mem, f, r.batch)
	defer w.release()
	var spans []connector.Span
	var texts []*connector.BadRecord
	for i := range f.Records {
		rec := &f.Records[i]
		if rec.At.Length == 0 || f.Text == nil {
			w.add(rec, 0, nil)
			continue
		}
		spans = append(spans, rec.At)
		texts = append(texts, rec)
	}
	if len(spans) > 0 {
		err = f.Text.Read(ctx, spans, maxRaw, func(i int, line int64, text []byte) error {
			w.add(texts[i], line, text)
			if w.isFull() && !yield(w.take(), nil) {
				return errEnough
			}
			return nil
		})
	}
	if err != nil {
		if errors.Is(err, errEnough) {
			return false, nil
		}
		return false, err
	}
	return w.rows == 0 || yield(w.take(), nil), nil
}

// badRowsReader is badRows as a Reader.
type badRowsReader struct {
	rows *badRows
	next func() (arrow.RecordBatch, error, bool)
	stop func()
	done bool
}

func (r *badRowsReader) Schema() *arrow.Schema { return badSchema }

func (r *badRowsReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.done {
		return nil, io.EOF
	}
	if r.next == nil {
		r.next, r.stop = iter.Pull2(r.rows.all(ctx))
	}
	b, err, ok := r.next()
	switch {
	case !ok:
		r.done = true
		return nil, io.EOF
	case err != nil:
		r.done = true
		return nil, err
	}
	return b, nil
}

func (r *badRowsReader) Close() error {
	r.done = true
	if r.stop != nil {
		r.stop()
	}
	return nil
}

// badWriter builds batches of bad records.
type badWriter struct {
	file  *badFile
	batch int64
	b     *array.RecordBuilder
	rows  int
	bytes int
}

func newBadWriter(mem memory.Allocator, f *badFile, batch int64) *badWriter {
	return &badWriter{file: f, batch: batch, b: array.NewRecordBuilder(mem, badSchema)}
}

// add appends a record; text is nil if it has none.
func (w *badWriter) add(rec *connector.BadRecord, line int64, text []byte) {
	str := func(i int) *array.StringBuilder { return w.b.Field(i).(*array.StringBuilder) }
	num := func(i int) *array.Int64Builder { return w.b.Field(i).(*array.Int64Builder) }
	str(0).Append(w.file.stream)
	str(1).Append(validText(w.file.Path))
	if rec.Column == "" {
		str(3).AppendNull()
	} else {
		str(3).Append(validText(rec.Column))
	}
	str(4).Append(validText(rec.Reason))
	if text == nil {
		num(2).AppendNull()
		str(5).AppendNull()
		num(6).AppendNull()
	} else {
		num(2).Append(line)
		str(5).Append(validText(string(text)))
		num(6).Append(rec.At.Length)
	}
	num(7).Append(w.batch)
	w.rows++
	w.bytes += len(text) + len(rec.Reason)
}

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func (w *badWriter) isFull() bool { return w.bytes >= rawBatch || w.rows >= columnar.DefaultBatchRows }

// take is the rows so far.
func (w *badWriter) take() arrow.RecordBatch {
	w.rows, w.bytes = 0, 0
	return w.b.NewRecordBatch()
}

func (w *badWriter) release() { w.b.Release() }
