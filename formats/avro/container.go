package avro

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// magic begins a file.
const magic = "Obj\x01"

// markerSize is the bytes of what stands behind the header and each block.
const markerSize = 16

// Keys of the header's metadata.
const (
	schemaKey = "avro.schema"
	codecKey  = "avro.codec"
)

// Sizes that are taken, at most.
const (
	maxHeader = 64 << 20
	maxBlock  = 512 << 20 // as it is stored, and decompressed
	maxCount  = 1<<31 - 1
)

// block is some records of a file.
type block struct {
	offset int64 // of its head
	data   int64 // where its records begin
	size   int64 // of them, as they are stored
	rows   int64
}

// index is what is known of a file without reading its records.
type index struct {
	path   string
	size   int64
	root   *node
	codec  string
	marker [markerSize]byte
	blocks []block
}

// damaged says what is wrong with the file at a place.
func (x *index) damaged(offset int64, err error) *connector.RecordError {
	return &connector.RecordError{File: x.path, Reason: fmt.Sprintf("the Avro file is damaged at byte %d: %v", offset, err), Err: err}
}

// refused is about a file that is whole, but none that can be read.
func (x *index) refused(format string, args ...any) *connector.RecordError {
	return &connector.RecordError{File: x.path, Reason: fmt.Sprintf(format, args...)}
}

// openFile opens a file that must be as it was found.
func openFile(f codec.File) (vfs.File, error) {
	h, err := f.FS.Open(f.Path)
	if err != nil {
		return nil, err
	}
	info, err := h.Stat()
	if err == nil && info.Size() != f.Size {
		err = &connector.FileChangedError{Path: f.Path, Was: f.FileIdentity}
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// readAt reads all of p. That the file ends before is io.ErrUnexpectedEOF.
func readAt(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// readHeader reads schema, codec and marker; end is where the first block begins.
func readHeader(r io.ReaderAt, path string, size int64) (x *index, end int64, err error) {
	x = &index{path: path, size: size}
	if size == 0 {
		return nil, 0, x.refused("the file is empty: not even the header of an Avro file")
	}
	for window := int64(64 << 10); ; window *= 4 {
		head := make([]byte, min(window, size))
		if err := readAt(r, head, 0); err != nil {
			return nil, 0, x.shrunk(0, err)
		}
		if err := x.checkMagic(head); err != nil {
			return nil, 0, err
		}
		c := &cursor{buf: head, pos: min(len(magic), len(head))}
		meta := readMetadata(c)
		copy(x.marker[:], c.next(markerSize))
		switch {
		case c.err == nil:
			return x, int64(c.pos), x.take(meta)
		case !errors.Is(c.err, errCut):
			return nil, 0, x.damaged(int64(len(magic)), fmt.Errorf("its header: %w", c.err))
		case window >= maxHeader:
			return nil, 0, x.damaged(0, fmt.Errorf("its header is larger than %d MiB", maxHeader>>20))
		case window >= size:
			return nil, 0, x.damaged(size, errors.New("it is cut off in its header"))
		}
	}
}

// checkMagic says what a file is that is none of Avro.
func (x *index) checkMagic(head []byte) error {
	compression := codec.DetectCompression(x.path, head)
	switch {
	case bytes.HasPrefix(head, []byte(magic[:min(len(magic), len(head))])):
		return nil
	case compression != codec.CompressionNone:
		return x.refused("the file is compressed as a whole (%s); decompress it: Avro compresses its blocks by itself", compression)
	case bytes.HasPrefix(head, []byte("PAR1")):
		return x.refused("it is a Parquet file; read it as format = 'parquet'")
	}
	return x.refused("it does not begin as an Avro container file does; single messages without a header cannot be read")
}

func readMetadata(c *cursor) map[string]string {
	meta := map[string]string{}
	for c.err == nil {
		n, _ := c.elements(2)
		if n == 0 {
			break
		}
		for range n {
			key := string(c.bytes())
			meta[key] = string(c.bytes())
		}
	}
	return meta
}

// take takes the metadata over.
func (x *index) take(meta map[string]string) error {
	text, ok := meta[schemaKey]
	if !ok {
		return x.damaged(0, errors.New("its header has no schema"))
	}
	var err error
	if x.root, err = readSchema(text); err != nil {
		return x.refused("its schema cannot be read: %v", err)
	}
	if x.codec = meta[codecKey]; x.codec == "" {
		x.codec = codecNull
	}
	if !knownCodec(x.codec) {
		return x.refused("its blocks are compressed by %q; have it written with one of %s", x.codec, codecNames)
	}
	return nil
}

// maxHead is the most bytes that count and size of a block take.
const maxHead = 2 * 10

// walk finds the blocks, which begin at an offset, and sees to it that each ends in the
// marker.
func (x *index) walk(ctx context.Context, r io.ReaderAt, at int64) error {
	head := make([]byte, markerSize+maxHead)
	if err := readAt(r, head[markerSize:markerSize+min(maxHead, x.size-at)], at); err != nil {
		return x.shrunk(at, err)
	}
	for at < x.size {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := x.readBlock(head[markerSize:markerSize+min(maxHead, x.size-at)], at)
		if err != nil {
			return err
		}
		end := b.data + b.size
		if err := readAt(r, head[:min(int64(len(head)), x.size-end)], end); err != nil {
			return x.shrunk(end, err)
		}
		if !bytes.Equal(head[:markerSize], x.marker[:]) {
			return x.damaged(end, fmt.Errorf("the block that begins at byte %d does not end in the file's marker", at))
		}
		if b.rows > 0 {
			x.blocks = append(x.blocks, b)
		}
		at = end + markerSize
	}
	return nil
}

// shrunk is an error of reading what the file was large enough for.
func (x *index) shrunk(at int64, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return x.damaged(at, err)
	}
	return err
}

// readBlock reads the head of the block at an offset, whose marker must be in the file.
func (x *index) readBlock(head []byte, at int64) (block, error) {
	c := &cursor{buf: head}
	b := block{offset: at, rows: c.long(), size: c.long()}
	b.data = at + int64(c.pos)
	switch {
	case c.err != nil:
		return b, x.damaged(at, fmt.Errorf("the head of a block: %w", c.err))
	case b.rows < 0 || b.rows > maxCount:
		return b, x.damaged(at, fmt.Errorf("a block claims to have %d records", b.rows))
	case b.size < 0 || b.size > maxBlock:
		return b, x.damaged(at, fmt.Errorf("a block claims to have %d bytes; at most %d MiB can be read", b.size, maxBlock>>20))
	case b.size+markerSize > x.size-b.data:
		return b, x.damaged(at, fmt.Errorf("a block of %d bytes is cut off: the file ends at byte %d", b.size, x.size))
	case x.codec == codecNull && x.root.least > 0 && b.rows > b.size/int64(x.root.least):
		return b, x.damaged(at, fmt.Errorf("a block of %d bytes claims to have %d records", b.size, b.rows))
	}
	return b, nil
}

// readIndex reads the header of a file and finds its blocks. Errors of the content are
// *connector.RecordErrors.
func readIndex(ctx context.Context, r io.ReaderAt, path string, size int64) (*index, error) {
	x, at, err := readHeader(r, path, size)
	if err != nil {
		return nil, err
	}
	return x, x.walk(ctx, r, at)
}
