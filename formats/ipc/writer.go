package ipc

import (
	"io"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
)

// NewWriter writes a file with a footer: Feather version 2. Each batch written is a
// record batch of the file.
func (f *format) NewWriter(w io.Writer, schema *arrow.Schema, opts codec.WriterOptions) (codec.Writer, error) {
	mem := opts.Mem
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	out := &counter{w: w}
	// Not with mem: the bitmap of a column where all is null is allocated and taken to be
	// zero, which memory of a pool is not.
	options := []ipc.Option{ipc.WithSchema(withMetadata(schema, opts.Metadata))}
	switch f.options.Compression {
	case LZ4:
		options = append(options, ipc.WithLZ4())
	case Zstd:
		options = append(options, ipc.WithZstd())
	}
	file, err := ipc.NewFileWriter(out, options...)
	if err != nil {
		return nil, err
	}
	return &writer{file: file, out: out, mem: mem, schema: schema}, nil
}

// withMetadata is the schema with metadata of the file.
func withMetadata(s *arrow.Schema, m map[string]string) *arrow.Schema {
	keys := slices.Sorted(maps.Keys(m))
	values := make([]string, len(keys))
	for i, k := range keys {
		values[i] = m[k]
	}
	meta := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(s.Fields(), &meta)
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// writer implements codec.Writer.
type writer struct {
	file   *ipc.FileWriter
	out    *counter
	mem    memory.Allocator
	schema *arrow.Schema
}

func (w *writer) Write(b arrow.RecordBatch) error {
	plain := columnar.Plain(w.mem, b)
	defer plain.Release()
	out := array.NewRecordBatch(w.schema, plain.Columns(), plain.NumRows())
	defer out.Release()
	return w.file.Write(out)
}

func (w *writer) Size() int64 { return w.out.n }

func (w *writer) Close() error { return w.file.Close() }
