package ipc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// magic stands at both ends of a file with a footer.
const magic = "ARROW1"

const (
	// firstBlock is where the messages of a file with a footer begin.
	firstBlock = 8
	// continuation begins a message, since version 0.15.
	continuation = 0xFFFFFFFF
	// maxMetadata is the largest metadata of one message.
	maxMetadata = 256 << 20
)

// Kinds of messages.
const (
	messageSchema = iota + 1
	messageDictionary
	messageBatch
)

// block is a message: metadata with what stands before it, and a body.
type block struct {
	offset     int64
	meta       int64
	body       int64
	dictionary bool
}

// index is what is known of a file without reading its bodies.
type index struct {
	path    string
	size    int64
	fields  []*field
	batches []block
	// dictionaries are the messages of each dictionary by its id, the first and then
	// what was added to it.
	dictionaries map[int64][]block
	// ordered is set for a stream whose dictionaries change on the way: all its messages
	// in order. dictionaries is nil then.
	ordered []block
}

// damaged says what is wrong with a file as a whole.
func damaged(path string, err error) *connector.RecordError {
	return &connector.RecordError{File: path, Reason: fmt.Sprintf("the Arrow file is damaged: %v", err), Err: err}
}

// refused is about a file that is whole, but none that can be read.
func refused(path, reason string) *connector.RecordError {
	return &connector.RecordError{File: path, Reason: reason}
}

// content is the bytes of a file, from the disk or, if it was compressed as a whole, from
// memory.
type content interface {
	io.ReaderAt
	io.Closer
}

// maxInMemory bounds a file that is compressed as a whole.
const maxInMemory = 4 << 30

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// openContent opens a file. size is that of what was compressed.
func openContent(f codec.File) (c content, size int64, err error) {
	h, err := f.FS.Open(f.Path)
	if err != nil {
		return nil, 0, err
	}
	closeOn := func(err error) (content, int64, error) { return nil, 0, errors.Join(err, h.Close()) }
	info, err := h.Stat()
	if err != nil {
		return closeOn(err)
	}
	if info.Size() != f.Size {
		return closeOn(&connector.FileChangedError{Path: f.Path, Was: f.FileIdentity})
	}
	head := make([]byte, min(16, f.Size))
	if _, err := h.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return closeOn(err)
	}
	compression := codec.DetectCompression(f.Path, head)
	if compression == codec.CompressionNone || bytes.HasPrefix(head, []byte(magic)) {
		return h, f.Size, nil
	}
	data, err := decompressed(h, f.Size, compression)
	if err != nil {
		return closeOn(refused(f.Path, fmt.Sprintf("the file is damaged: %s: %v", compression, err)))
	}
	return inMemory{bytes.NewReader(data)}, int64(len(data)), h.Close()
}

func decompressed(h io.ReaderAt, size int64, c codec.Compression) ([]byte, error) {
	r, err := c.NewReader(io.NewSectionReader(h, 0, size))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxInMemory+1))
	if err == nil && len(data) > maxInMemory {
		err = fmt.Errorf("it is larger than %d GiB when decompressed; decompress it, or compress the buffers in it", maxInMemory>>30)
	}
	return data, err
}

// readIndex finds the messages of a file. Errors of the content are
// *connector.RecordErrors.
func readIndex(ctx context.Context, c content, path string, size int64) (*index, error) {
	x := &index{path: path, size: size, dictionaries: map[int64][]block{}}
	if size == 0 {
		return nil, refused(path, "the file is empty: not even the schema of an Arrow file")
	}
	head := make([]byte, min(size, firstBlock))
	if err := readAt(c, head, 0); err != nil {
		return nil, err
	}
	var err error
	switch {
	case bytes.HasPrefix(head, []byte(magic)):
		err = x.readFooter(c)
	case bytes.HasPrefix(head, []byte("FEA1")):
		return nil, refused(path, "it is a Feather file of version 1; write it again as version 2, which is Arrow IPC")
	case bytes.HasPrefix(head, []byte("PAR1")):
		return nil, refused(path, "it is a Parquet file; read it as format = 'parquet'")
	default:
		err = x.walk(ctx, c)
	}
	if err != nil && !isFileError(err) && ctx.Err() == nil {
		return nil, damaged(path, err)
	}
	return x, err
}

// fileError is an error of the file system, not of what the file holds.
type fileError struct{ error }

func (e fileError) Unwrap() error { return e.error }

func isFileError(err error) bool {
	var f fileError
	return errors.As(err, &f)
}

// readAt reads all of p.
func readAt(c io.ReaderAt, p []byte, off int64) error {
	n, err := c.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case errors.Is(err, io.EOF) || err == nil:
		return io.ErrUnexpectedEOF
	}
	return fileError{err}
}

// readFooter reads where the messages are.
func (x *index) readFooter(c content) error {
	const tail = 4 + int64(len(magic))
	end := make([]byte, tail)
	if x.size < firstBlock+tail {
		return errors.New("it is cut off")
	}
	if err := readAt(c, end, x.size-tail); err != nil {
		return err
	}
	if string(end[4:]) != magic {
		return errors.New("it does not end in ARROW1: it is cut off, or still being written")
	}
	n := int64(binary.LittleEndian.Uint32(end))
	limit := x.size - tail - n
	if n > maxMetadata || limit < firstBlock {
		return errors.New("its footer has no possible size")
	}
	f := &flat{buf: make([]byte, n)}
	if err := readAt(c, f.buf, limit); err != nil {
		return err
	}
	footer := f.root()
	// Older writers left its version out; each message has one.
	var err error
	if x.fields, err = readSchema(footer.table(1)); err != nil {
		return err
	}
	dictionaries, err := blocksOf(footer.vector(2, blockSize), limit)
	if err != nil {
		return err
	}
	for _, b := range dictionaries {
		m, err := readMessage(c, b, limit)
		if err != nil {
			return err
		}
		if err := x.addDictionary(m, b); err != nil {
			return err
		}
	}
	x.batches, err = blocksOf(footer.vector(3, blockSize), limit)
	return errors.Join(err, f.err)
}

// blockSize is the bytes of a block in a footer.
const blockSize = 24

// blocksOf reads blocks, which end before limit.
func blocksOf(v vector, limit int64) ([]block, error) {
	list := make([]block, v.n)
	for i := range list {
		at := v.pos + blockSize*i
		b := block{offset: v.f.i64(at), meta: int64(v.f.i32(at + 8)), body: v.f.i64(at + 16)}
		if b.offset < firstBlock || b.meta < 8 || b.body < 0 || b.offset > limit || b.meta > limit-b.offset || b.body > limit-b.offset-b.meta {
			return nil, errors.New("its footer names a part that is not there")
		}
		list[i] = b
	}
	return list, nil
}

// message is the metadata of one message.
type message struct {
	*flat
	version int
	kind    int
	header  table
	body    int64
}

// readMessage reads the metadata of a block.
func readMessage(c io.ReaderAt, b block, limit int64) (*message, error) {
	if b.meta > maxMetadata {
		return nil, errMetadata
	}
	raw := make([]byte, b.meta)
	if err := readAt(c, raw, b.offset); err != nil {
		return nil, err
	}
	prefix := 4
	if binary.LittleEndian.Uint32(raw) == continuation {
		prefix = 8
	}
	m, err := parseMessage(raw[prefix:])
	if err == nil && m.body > limit-b.offset-b.meta {
		err = io.ErrUnexpectedEOF
	}
	return m, err
}

// Versions of the metadata, from 0: V4 and V5 can be read.
const (
	oldestVersion = 3
	newestVersion = 4
)

func parseMessage(raw []byte) (*message, error) {
	m := &message{flat: &flat{buf: raw}}
	t := m.root()
	m.version, m.kind, m.header, m.body = t.i16(0, 0), t.u8(1), t.table(2), t.i64(3)
	switch {
	case m.err != nil:
		return m, m.err
	case m.body < 0 || !m.header.exists():
		return m, errMetadata
	case m.version < oldestVersion || m.version > newestVersion:
		return m, fmt.Errorf("its metadata is of version %d; versions 4 and 5 can be read", m.version+1)
	}
	return m, nil
}

// addDictionary notes a message with values of a dictionary.
func (x *index) addDictionary(m *message, b block) error {
	if m.kind != messageDictionary {
		return errMetadata
	}
	id, isDelta := m.header.i64(0), m.header.u8(2) != 0
	b.dictionary = true
	switch {
	case m.err != nil:
		return m.err
	case isDelta != (len(x.dictionaries[id]) > 0):
		return fmt.Errorf("dictionary %d is replaced, or added to before it is there", id)
	}
	x.dictionaries[id] = append(x.dictionaries[id], b)
	return nil
}

// walk goes through the messages of a stream.
func (x *index) walk(ctx context.Context, c content) error {
	changes := false
	for at, first := int64(0), true; ; first = false {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, m, err := x.next(c, at)
		switch {
		case first && !isFileError(err) && (err != nil || m == nil || m.kind != messageSchema):
			return errors.New("it does not begin as an Arrow file or stream does")
		case err != nil:
			return err
		case m == nil:
			x.settle(changes)
			return nil
		}
		at = b.offset + b.meta + b.body
		switch {
		case first:
			if x.fields, err = readSchema(m.header); err != nil {
				return err
			}
			continue
		case m.kind == messageDictionary:
			// What is only added to, or comes late, may still be read in one go.
			changes = changes || len(x.batches) > 0 || x.addDictionary(m, b) != nil
			b.dictionary = true
		case m.kind == messageBatch:
			x.batches = append(x.batches, b)
		default:
			return fmt.Errorf("it holds a message of kind %d, which is neither rows nor a dictionary", m.kind)
		}
		x.ordered = append(x.ordered, b)
	}
}

// settle forgets the order of messages where it does not matter.
func (x *index) settle(changes bool) {
	if changes {
		x.dictionaries = nil
	} else {
		x.ordered = nil
	}
}

var errNoEnd = errors.New("the mark of its end is missing: it was cut off, or its writer was not closed")

// next reads the message that begins at an offset; m is nil at the end.
func (x *index) next(c content, at int64) (b block, m *message, err error) {
	if at == x.size {
		return b, nil, errNoEnd
	}
	var head [8]byte
	n := min(8, x.size-at)
	if n < 4 {
		return b, nil, io.ErrUnexpectedEOF
	}
	if err := readAt(c, head[:n], at); err != nil {
		return b, nil, err
	}
	length, prefix := binary.LittleEndian.Uint32(head[:4]), int64(4)
	if length == continuation {
		if n < 8 {
			return b, nil, io.ErrUnexpectedEOF
		}
		length, prefix = binary.LittleEndian.Uint32(head[4:]), 8
	}
	if length == 0 {
		if behind := x.size - at - prefix; behind >= 8 {
			return b, nil, fmt.Errorf("%d bytes stand behind the mark of its end: is it two files in one?", behind)
		}
		return b, nil, nil
	}
	b = block{offset: at, meta: prefix + int64(length)}
	switch {
	case length > maxMetadata:
		return b, nil, errMetadata
	case b.meta > x.size-at:
		return b, nil, io.ErrUnexpectedEOF
	}
	raw := make([]byte, length)
	if err := readAt(c, raw, at+prefix); err != nil {
		return b, nil, err
	}
	m, err = parseMessage(raw)
	if err != nil {
		return b, nil, err
	}
	b.body = m.body
	if b.body > x.size-at-b.meta {
		return b, nil, io.ErrUnexpectedEOF
	}
	return b, m, nil
}
