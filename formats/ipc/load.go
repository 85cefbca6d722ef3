package ipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codecs of a compressed body.
const (
	codecNone = -1
	codecLZ4  = 0
	codecZstd = 1
)

// maxRows is the largest number of rows of a record batch.
const maxRows = math.MaxInt32

// body is the metadata of a record batch, or of the values of a dictionary, and where
// its buffers are.
type body struct {
	*flat
	src      io.ReaderAt
	offset   int64 // of the body in the file
	size     int64
	rows     int
	nodes    vector
	buffers  vector
	variadic vector
	codec    int
	version  int
}

// newBody reads the table RecordBatch.
func newBody(src io.ReaderAt, m *message, t table, offset int64) (*body, error) {
	b := &body{
		flat: m.flat, src: src, offset: offset, size: m.body, codec: codecNone, version: m.version,
		nodes: t.vector(1, 16), buffers: t.vector(2, 16), variadic: t.vector(4, 8),
	}
	rows := t.i64(0)
	if rows < 0 || rows > maxRows {
		return nil, fmt.Errorf("it has a batch of %d rows", rows)
	}
	b.rows = int(rows)
	if c := t.table(3); c.exists() {
		b.codec = c.u8(0)
		if b.codec > codecZstd || c.u8(1) != 0 {
			return nil, fmt.Errorf("its compression has number %d, which is not known", b.codec)
		}
	}
	return b, m.err
}

// node is the rows of the i-th field.
func (b *body) node(i int) (rows int, nulls int64, err error) {
	if i >= b.nodes.n {
		return 0, 0, errMetadata
	}
	n := b.nodes.i64(2 * i)
	if n < 0 || n > maxRows {
		return 0, 0, errMetadata
	}
	return int(n), b.nodes.i64(2*i + 1), nil
}

// span is where the i-th buffer is in the body.
func (b *body) span(i int) (offset, length int64, err error) {
	if i >= b.buffers.n {
		return 0, 0, errMetadata
	}
	offset, length = b.buffers.i64(2*i), b.buffers.i64(2*i+1)
	if offset < 0 || length < 0 || offset > b.size || length > b.size-offset {
		return 0, 0, errMetadata
	}
	return offset, length, nil
}

// cursor is the place of a field among the nodes and buffers of a body.
type cursor struct{ node, buffer, variadic int }

// skip moves the cursor behind a field.
func (c *cursor) skip(f *field, b *body) error {
	c.node++
	if f.dict != nil {
		c.buffer += layoutBuffers[layoutFixed]
		return nil
	}
	c.buffer += layoutBuffers[f.layout]
	switch f.layout {
	case layoutView:
		n, err := c.views(b)
		if err != nil {
			return err
		}
		c.buffer += n
	case layoutUnion:
		if f.dense {
			c.buffer++
		}
		if b.version < newestVersion {
			c.buffer++ // unions had validity before version 5
		}
	}
	for _, child := range f.children {
		if err := c.skip(child, b); err != nil {
			return err
		}
	}
	return nil
}

// views is how many buffers of bytes the next field of views has.
func (c *cursor) views(b *body) (int, error) {
	if c.variadic >= b.variadic.n {
		return 0, errMetadata
	}
	n := b.variadic.i64(c.variadic)
	c.variadic++
	if n < 0 || n > int64(b.buffers.n) {
		return 0, errMetadata
	}
	return int(n), nil
}

// loader makes columns of the bodies of a file. It is used by one goroutine.
type loader struct {
	x    *index
	src  io.ReaderAt
	mem  memory.Allocator
	zone *time.Location
	read int64 // bytes of buffers read
	// dictionaries are the values decoded so far, by id.
	dictionaries map[int64]*values
	// changing are the messages of each dictionary, of a stream where they change.
	changing map[int64][]block
	zstd     *zstd.Decoder
	lz4      *lz4.Reader

	b *body  // being loaded
	c cursor // in it
	// piece is a part of the body that was read in one go.
	piece struct {
		from int64
		buf  *memory.Buffer
	}
}

func newLoader(x *index, src io.ReaderAt, mem memory.Allocator, zone *time.Location) *loader {
	return &loader{x: x, src: src, mem: mem, zone: zone, dictionaries: map[int64]*values{}, changing: x.dictionaries}
}

// release gives everything back.
func (l *loader) release() {
	l.dropPiece()
	for id := range l.dictionaries {
		l.forget(id)
	}
	if l.zstd != nil {
		l.zstd.Close()
		l.zstd = nil
	}
}

func (l *loader) forget(id int64) {
	if v := l.dictionaries[id]; v != nil {
		v.array.Release()
	}
	delete(l.dictionaries, id)
}

// open reads the metadata of a block.
func (l *loader) open(b block) (*message, error) {
	m, err := readMessage(l.src, b, l.x.size)
	if err != nil {
		return nil, err
	}
	if want := map[bool]int{true: messageDictionary, false: messageBatch}[b.dictionary]; m.kind != want {
		return nil, errMetadata
	}
	return m, nil
}

func (l *loader) dropPiece() {
	if l.piece.buf != nil {
		l.piece.buf.Release()
		l.piece.buf = nil
	}
}

// wastable is how many bytes between the buffers of a column are read rather than left
// out.
const wastable = 256 << 10

// fetch reads the buffers of a column, from the cursor on, in one go where they lie
// together, as they do.
func (l *loader) fetch(f *field) error {
	l.dropPiece()
	end := l.c
	if err := end.skip(f, l.b); err != nil {
		return err
	}
	from, to, sum := l.b.size, int64(0), int64(0)
	for i := l.c.buffer; i < end.buffer; i++ {
		offset, length, err := l.b.span(i)
		if err != nil {
			return err
		}
		if length > 0 {
			from, to, sum = min(from, offset), max(to, offset+length), sum+length
		}
	}
	if sum == 0 || to-from > sum+wastable {
		return nil
	}
	buf, err := l.readPart(from, to-from)
	if err != nil {
		return err
	}
	l.piece.from, l.piece.buf = from, buf
	return nil
}

// readPart reads a part of the body.
func (l *loader) readPart(from, length int64) (*memory.Buffer, error) {
	buf := memory.NewResizableBuffer(l.mem)
	buf.Resize(int(length))
	if err := readAt(l.src, buf.Bytes(), l.b.offset+from); err != nil {
		buf.Release()
		return nil, err
	}
	l.read += length
	return buf, nil
}

// part is a part of the body, from the piece if it is there.
func (l *loader) part(from, length int64) (*memory.Buffer, error) {
	p := l.piece
	if p.buf == nil || from < p.from || from+length > p.from+int64(p.buf.Len()) {
		return l.readPart(from, length)
	}
	at := int(from - p.from)
	if at%8 == 0 {
		return memory.SliceBuffer(p.buf, at, int(length)), nil
	}
	// Values must be aligned.
	buf := memory.NewResizableBuffer(l.mem)
	buf.Resize(int(length))
	copy(buf.Bytes(), p.buf.Bytes()[at:])
	return buf, nil
}

// buffer is the next buffer, decompressed; nil if it is empty. The caller releases it.
func (l *loader) buffer() (*memory.Buffer, error) {
	offset, length, err := l.b.span(l.c.buffer)
	l.c.buffer++
	if err != nil || length == 0 {
		return nil, err
	}
	buf, err := l.part(offset, length)
	if err != nil || l.b.codec == codecNone {
		return buf, err
	}
	defer buf.Release()
	return l.decompress(buf.Bytes())
}

// Each byte of compressed data stands for at most so many.
const (
	lz4Ratio  = 256
	zstdRatio = 64 << 10
)

// decompress reads a buffer that begins with its size, -1 if it is not compressed.
func (l *loader) decompress(p []byte) (*memory.Buffer, error) {
	if len(p) < 8 {
		return nil, errors.New("a compressed part has no size")
	}
	size := int64(binary.LittleEndian.Uint64(p))
	p = p[8:]
	buf := memory.NewResizableBuffer(l.mem)
	if size == -1 {
		buf.Resize(len(p))
		copy(buf.Bytes(), p)
		return buf, nil
	}
	ratio := int64(lz4Ratio)
	if l.b.codec == codecZstd {
		ratio = zstdRatio
	}
	if size < 0 || size > (int64(len(p))+16)*ratio {
		buf.Release()
		return nil, fmt.Errorf("a compressed part of %d bytes claims to be %d", len(p), size)
	}
	buf.Resize(int(size))
	if err := l.inflate(buf.Bytes(), p); err != nil {
		buf.Release()
		return nil, fmt.Errorf("a compressed part is damaged: %w", err)
	}
	return buf, nil
}

// inflate fills dst with what src stands for.
func (l *loader) inflate(dst, src []byte) error {
	if l.b.codec == codecLZ4 {
		if l.lz4 == nil {
			l.lz4 = lz4.NewReader(nil)
		}
		l.lz4.Reset(bytes.NewReader(src))
		_, err := io.ReadFull(l.lz4, dst)
		return err
	}
	if l.zstd == nil {
		var err error
		if l.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)); err != nil {
			return err
		}
	}
	if err := l.zstd.Reset(bytes.NewReader(src)); err != nil {
		return err
	}
	_, err := io.ReadFull(l.zstd, dst)
	return err
}
