package codec

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"sync"

	"github.com/tidemill/tidemill/formats/codec/cells"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// MaxRecord is the largest record that is read: a line, a JSON value, in bytes.
const MaxRecord = 512 << 20

const (
	streamChunk = 1 << 20  // bytes decoded at a time: what stays in cache
	tailChunk   = 64 << 10 // bytes read after a range, where its last record ends
)

// InputSpec says which bytes an Input reads.
type InputSpec struct {
	File        File
	Range       Range
	Compression Compression
	Encoding    Encoding
	Mode        Mode
	Stats       *connector.ScanStats
}

// Input is the text of one unit, decompressed and in UTF-8, seen through a window
// that the reader moves forward. It is used by one goroutine.
//
//	buf  [ pad | ... lo: first byte not yet read ... hi: end of what is here | pad ]
//
// The byte at hi is always a line feed that is not part of the text, so that a
// scanner need not ask for the end at each step.
type Input struct {
	spec InputSpec
	file vfs.File
	raw  *rawReader
	text io.Reader // raw, decompressed, decoded
	dec  io.Closer
	// ahead reads text in the background; nil where that does not pay. raw is its own then.
	ahead *readAhead
	comp  Compression

	buf    []byte
	lo, hi int
	base   int64 // offset in the text of buf[0]
	limit  int64 // records that begin at or after this offset are another unit's
	chunk  int
	final  bool
}

// OpenInput opens the file and fills the first window. In mode Drop, a compressed
// file that is damaged anywhere is counted and reads as empty.
func OpenInput(spec InputSpec) (*Input, error) {
	file, err := openFile(spec.File)
	if err != nil {
		return nil, err
	}
	in := &Input{spec: spec, file: file, limit: math.MaxInt64}
	if err := in.start(); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// openFile opens a file and checks, where its identity matters, that it is the one
// that was logged.
func openFile(f File) (vfs.File, error) {
	file, err := f.FS.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &connector.FileChangedError{Path: f.Path, Was: f.FileIdentity, Gone: true}
	}
	if err != nil {
		return nil, err
	}
	if err := checkIdentity(f, file); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// checkIdentity compares the open file with what was logged. A bounded query, which
// logs nothing, reads the bytes that were there when the file was listed.
func checkIdentity(f File, file vfs.File) error {
	if f.Hash == nil {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.Size || f.ModTime != 0 && info.ModTime().UnixMicro() != f.ModTime {
		return &connector.FileChangedError{Path: f.Path, Was: f.FileIdentity}
	}
	return nil
}

func (in *Input) start() error {
	r := in.spec.Range
	in.raw = &rawReader{f: in.spec.File, file: in.file, off: r.Start, end: r.End}
	if r.Divided {
		in.base, in.limit = r.Start, r.End
		in.text = in.raw
		in.chunk = int(min(r.End-r.Start+tailChunk, in.spec.File.Size-r.Start))
		return in.open()
	}
	head, err := in.head()
	if err != nil {
		return err
	}
	in.comp = in.spec.Compression.detect(in.spec.File.Path, head)
	if in.spec.File.Size == 0 {
		in.comp = CompressionNone
	}
	if err := in.checkForeign(head); err != nil {
		return err
	}
	if in.spec.Mode == Drop && in.comp != CompressionNone {
		if err := in.verify(); err != nil {
			return err
		}
	}
	return in.open()
}

// open sets the text up and fills the first window.
func (in *Input) open() error {
	if in.text == nil {
		text, dec, err := decoded(in.raw, in.comp, in.spec.Encoding)
		if err != nil {
			return in.damaged(err)
		}
		in.text, in.dec = text, dec
		in.chunk = streamChunk
		if in.comp != CompressionNone && in.spec.File.Size >= aheadLeast {
			in.ahead = newReadAhead(text)
			in.text = in.ahead
		}
		if in.comp == CompressionNone {
			in.chunk = int(min(in.spec.File.Size+1, streamChunk)) // one more byte finds the end
		}
	}
	in.buf = takeBuffer(in.chunk + 2*cells.Pad)
	in.lo, in.hi = cells.Pad, cells.Pad
	in.base -= cells.Pad
	if err := in.More(in.lo); err != nil {
		return err
	}
	if in.base+int64(in.lo) == 0 && bytes.HasPrefix(in.buf[in.lo:in.hi], []byte(byteOrderMark)) {
		in.lo += len(byteOrderMark)
	}
	return nil
}

// decoded is raw as UTF-8 text.
func decoded(raw io.Reader, c Compression, e Encoding) (io.Reader, io.Closer, error) {
	plain, err := c.NewReader(raw)
	if err != nil {
		return nil, nil, err
	}
	b := bufio.NewReaderSize(plain, 4096)
	head, err := b.Peek(headOfText)
	if err != nil && err != io.EOF { // which b would not say again
		plain.Close()
		return nil, nil, err
	}
	if e = e.detect(head); e.isUTF8() {
		return b, plain, nil // large reads pass the buffer by
	}
	return e.NewReader(b), plain, nil
}

func (in *Input) head() ([]byte, error) {
	head := make([]byte, min(16, in.spec.File.Size))
	n, err := in.file.ReadAt(head, 0)
	if n == len(head) || err == io.EOF {
		err = nil
	}
	return head[:n], err
}

// verify decompresses the whole file, once more than it will be read: what a batch
// has handed on cannot be taken back.
func (in *Input) verify() error {
	raw := &rawReader{f: in.spec.File, file: in.file, end: in.spec.File.Size, quiet: true}
	text, err := in.comp.NewReader(raw)
	if err == nil {
		_, err = io.Copy(io.Discard, text)
		text.Close()
	}
	if raw.err != nil {
		return raw.err
	}
	if err != nil {
		in.leaveOut(connector.RecordError{File: in.spec.File.Path,
			Reason: fmt.Sprintf("the file is damaged: %s: %v", in.comp, unexpected(err)), Err: err})
	}
	return nil
}

// leaveOut reads nothing of the file, which is counted.
func (in *Input) leaveOut(bad connector.RecordError) {
	in.spec.Stats.MalformedFile(bad)
	in.text = bytes.NewReader(nil)
	in.chunk = 1
}

// damaged tells a file that cannot be decoded from one that cannot be read.
func (in *Input) damaged(err error) error {
	if in.raw.err != nil {
		return in.raw.err
	}
	if in.comp == CompressionNone {
		return err
	}
	return &connector.RecordError{File: in.spec.File.Path,
		Reason: fmt.Sprintf("the file is damaged: %s: %v; mode = 'drop' leaves such files out", in.comp, unexpected(err)), Err: err}
}

// Buf is the buffer that the window is part of, with cells.Pad readable bytes before
// and after it. More may replace it.
func (in *Input) Buf() []byte { return in.buf }

// Lo and Hi are the window: what is here of the text and was not left behind.
func (in *Input) Lo() int { return in.lo }

// Hi is the end of the window.
func (in *Input) Hi() int { return in.hi }

// Final says that the text ends at Hi.
func (in *Input) Final() bool { return in.final }

// Offset is the position in the text of buffer index i.
func (in *Input) Offset(i int) int64 { return in.base + int64(i) }

// Limit is the buffer index at and beyond which records are another unit's.
func (in *Input) Limit() int {
	if in.limit == math.MaxInt64 {
		return math.MaxInt
	}
	return int(in.limit - in.base)
}

// ErrRecordSize says that a record is larger than MaxRecord.
var ErrRecordSize = fmt.Errorf("the record is larger than %d MiB; is a quote or bracket not closed?", MaxRecord>>20)

// More leaves behind what is before buffer index keep and reads on; what was at keep
// is at Lo then. At the end of the text Final becomes true. The window does not grow
// beyond MaxRecord: that is ErrRecordSize.
func (in *Input) More(keep int) error {
	n := in.hi - keep
	if n >= MaxRecord {
		return ErrRecordSize
	}
	want := max(in.chunk, n)
	if need := n + want + 2*cells.Pad; need > len(in.buf) {
		buf := takeBuffer(need)
		copy(buf[cells.Pad:], in.buf[keep:in.hi])
		giveBuffer(in.buf)
		in.buf = buf
	} else {
		copy(in.buf[cells.Pad:], in.buf[keep:in.hi])
	}
	in.base += int64(keep - cells.Pad)
	in.lo, in.hi = cells.Pad, cells.Pad+n
	err := in.fill(in.hi + want)
	in.buf[in.hi] = '\n'
	if in.limit != math.MaxInt64 {
		in.chunk = tailChunk
	}
	return err
}

func (in *Input) fill(to int) error {
	for in.hi < to && !in.final {
		n, err := in.text.Read(in.buf[in.hi:to])
		in.hi += n
		switch {
		case err == io.EOF:
			in.final = true
		case err != nil:
			return in.damaged(err)
		}
	}
	if in.text == io.Reader(in.raw) && in.raw.off == in.spec.File.Size {
		in.final = true
	}
	return nil
}

// Finish is called once all records were read. It sees to it that every byte of the
// range has gone into the content hash, and that the file is still the one logged.
func (in *Input) Finish() error {
	if in.spec.File.Hash == nil {
		return nil
	}
	in.endAhead()
	var scratch [32 << 10]byte
	for in.raw.off < in.raw.end {
		if _, err := in.raw.Read(scratch[:]); err != nil {
			return err
		}
	}
	return checkIdentity(in.spec.File, in.file)
}

// endAhead gives raw back.
func (in *Input) endAhead() {
	if in.ahead != nil {
		in.ahead.Close()
		in.ahead = nil
	}
}

// Close releases file and buffers. It may be called more than once.
func (in *Input) Close() error {
	in.endAhead()
	if in.dec != nil {
		in.dec.Close()
		in.dec = nil
	}
	giveBuffer(in.buf)
	in.buf = nil
	if in.file == nil {
		return nil
	}
	if in.spec.Stats != nil && in.raw != nil {
		in.spec.Stats.Bytes.Add(min(in.raw.off, in.raw.end) - in.spec.Range.Start)
	}
	err := in.file.Close()
	in.file = nil
	return err
}

// Line is the number, from 1, of the line in which offset off of the text stands; 0
// if that cannot be found out. The text is read again for it: lines are counted only
// when somebody asks.
func (in *Input) Line(off int64) (line int64) {
	err := in.texts().visit(in.file, []connector.Span{{Offset: off}}, 0, func(_ int, n int64, _ []byte) error {
		line = n
		return nil
	})
	if err != nil {
		return 0
	}
	return line
}

// texts reads parts of the file's text once more.
func (in *Input) texts() *texts {
	t := &texts{file: in.spec.File, divided: in.spec.Range.Divided, comp: in.comp, encoding: in.spec.Encoding}
	t.file.Hash = nil
	return t
}

// texts is the text of a file that was read before.
type texts struct {
	file     File
	divided  bool // bytes are text
	comp     Compression
	encoding Encoding
}

// Read implements connector.RecordText.
func (t *texts) Read(ctx context.Context, spans []connector.Span, most int, visit func(i int, line int64, text []byte) error) error {
	file, err := openFile(t.file)
	if err != nil {
		return err
	}
	defer file.Close()
	return t.visit(file, spans, most, func(i int, line int64, text []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return visit(i, line, text)
	})
}

func (t *texts) visit(file vfs.File, spans []connector.Span, most int, visit func(i int, line int64, text []byte) error) error {
	text := io.Reader(&rawReader{f: t.file, file: file, end: t.file.Size, quiet: true})
	if !t.divided {
		plain, dec, err := decoded(text, t.comp, t.encoding)
		if err != nil {
			return err
		}
		defer dec.Close()
		text = plain
	}
	buf := takeBuffer(streamChunk)
	defer giveBuffer(buf)
	var count lineCounter
	var record []byte
	at := int64(0)
	pass := func(n int64, keep bool) error {
		for n > 0 {
			k, err := text.Read(buf[:min(int64(len(buf)), n)])
			count.add(buf[:k])
			if keep {
				record = append(record, buf[:k]...)
			}
			at += int64(k)
			n -= int64(k)
			if err != nil && n > 0 {
				return err
			}
		}
		return nil
	}
	for i, s := range spans {
		if err := pass(s.Offset-at, false); err != nil {
			return err
		}
		line := count.lines + 1
		record = record[:0]
		if err := pass(min(s.Length, int64(most)), true); err != nil {
			return err
		}
		if err := visit(i, line, record); err != nil {
			return err
		}
	}
	return nil
}

// lineCounter counts the ends of lines: LF, CRLF and CR.
type lineCounter struct {
	lines   int64
	afterCR bool
}

func (c *lineCounter) add(p []byte) {
	if len(p) == 0 {
		return
	}
	if c.afterCR && p[0] == '\n' {
		c.lines--
	}
	c.lines += int64(bytes.Count(p, []byte{'\n'}))
	for rest := p; ; {
		i := bytes.IndexByte(rest, '\r')
		if i < 0 {
			break
		}
		if i+1 == len(rest) || rest[i+1] != '\n' {
			c.lines++
		}
		rest = rest[i+1:]
	}
	c.afterCR = p[len(p)-1] == '\r'
}

// rawReader reads the bytes of a file from off to the size that was listed, and takes
// the hash of those before end.
type rawReader struct {
	f     File
	file  vfs.File
	off   int64
	end   int64
	quiet bool  // no hash
	err   error // of the file, as opposed to what it holds
}

func (r *rawReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.off >= r.f.Size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.f.Size-r.off)]
	n, err := r.file.ReadAt(p, r.off)
	if !r.quiet {
		r.f.Hash.Add(r.off, p[:max(min(int64(n), r.end-r.off), 0)])
	}
	r.off += int64(n)
	switch {
	case n == len(p):
		return n, nil
	case err == io.EOF:
		r.err = &connector.FileChangedError{Path: r.f.Path, Was: r.f.FileIdentity}
	default:
		r.err = err
	}
	return n, r.err
}

// Buffers are kept for the next unit by powers of two. Larger ones are rare, and left
// to the garbage collector.
const (
	minBufferBits = 12
	maxBufferBits = 25
)

var buffers [maxBufferBits + 1]sync.Pool

func bufferClass(n int) int {
	class := minBufferBits
	for 1<<class < n {
		class++
	}
	return class
}

// takeBuffer returns a buffer of at least n bytes with any content.
func takeBuffer(n int) []byte {
	class := bufferClass(n)
	if class > maxBufferBits {
		return make([]byte, n)
	}
	// A range and its tail are just above a power of two: three quarters of the
	// steps between two powers would be waste.
	if b, ok := buffers[class].Get().(*[]byte); ok && len(*b) >= n {
		return *b
	}
	return make([]byte, n+n/64)
}

func giveBuffer(b []byte) {
	if class := bufferClass(len(b)); len(b) > 0 && class <= maxBufferBits {
		buffers[class].Put(&b)
	}
}
