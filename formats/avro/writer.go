package avro

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
)

// blockBytes is about how many bytes of records a block is made of.
const blockBytes = 256 << 10

// maxRow is how many bytes a row may have, so that its block, compressed or not, can be
// read again.
const maxRow = maxBlock / 2

// writer implements codec.Writer.
type writer struct {
	out    io.Writer
	mem    memory.Allocator
	z      *compressor
	marker [markerSize]byte
	rows   []byte // of the block being filled
	count  int64
	size   int64 // written
	err    error
	closed bool
}

// NewWriter starts a file. What the header's metadata has beside schema and codec is the
// metadata of the options.
func (f *format) NewWriter(w io.Writer, schema *arrow.Schema, opts codec.WriterOptions) (codec.Writer, error) {
	text, err := schemaText(schema)
	if err != nil {
		return nil, err
	}
	z, err := newCompressor(f.options.Compression, f.options.CompressionLevel)
	if err != nil {
		return nil, err
	}
	out := &writer{out: w, mem: opts.Mem, z: z}
	if out.mem == nil {
		out.mem = memory.DefaultAllocator
	}
	meta := maps.Clone(opts.Metadata)
	if meta == nil {
		meta = map[string]string{}
	}
	meta[schemaKey], meta[codecKey] = text, z.name()
	head := header(meta)
	// A random marker would make two files of the same rows differ.
	out.marker = xxh3.Hash128(head).Bytes()
	return out, out.write(head, out.marker[:])
}

// header is the header without its marker.
func header(meta map[string]string) []byte {
	head := binary.AppendVarint([]byte(magic), int64(len(meta)))
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		for _, text := range []string{key, meta[key]} {
			head = append(binary.AppendVarint(head, int64(len(text))), text...)
		}
	}
	return append(head, 0)
}

func (w *writer) write(parts ...[]byte) error {
	for _, p := range parts {
		n, err := w.out.Write(p)
		w.size += int64(n)
		if err != nil {
			w.err = err
			return err
		}
	}
	return nil
}

func (w *writer) Write(b arrow.RecordBatch) error {
	if w.err != nil {
		return w.err
	}
	plain := columnar.Plain(w.mem, b)
	defer plain.Release()
	record, err := encodeRecord(plain.Schema().Fields(), plain.Columns())
	if err != nil {
		return err
	}
	for row := range int(plain.NumRows()) {
		rows, err := record(w.rows, row)
		if err != nil {
			column, err := located(err)
			w.err = fmt.Errorf("column %s: %w", column, err)
			return w.err
		}
		if len(rows) > maxRow {
			w.err = fmt.Errorf("a row of %d bytes cannot be written to an Avro file; at most %d MiB can", len(rows)-len(w.rows), maxRow>>20)
			return w.err
		}
		w.rows = rows
		w.count++
		if len(w.rows) >= blockBytes {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the block being filled.
func (w *writer) flush() error {
	data, err := w.z.block(w.rows)
	if err != nil {
		w.err = err
		return err
	}
	head := binary.AppendVarint(binary.AppendVarint(nil, w.count), int64(len(data)))
	w.rows, w.count = w.rows[:0], 0
	return w.write(head, data, w.marker[:])
}

func (w *writer) Size() int64 { return w.size + int64(len(w.rows)) }

func (w *writer) Close() error {
	if w.closed || w.err != nil {
		return w.err
	}
	w.closed = true
	if w.count == 0 {
		return nil
	}
	return w.flush()
}
