package codec

import (
	"bytes"
	"io"
)

// flushSize is how much text a TextWriter collects before it hands it on.
const flushSize = 64 << 10

// TextWriter is the lower half of a writer of lines: it collects, compresses and
// counts them.
type TextWriter struct {
	w       io.WriteCloser
	counter *counter
	buf     []byte
	begun   bool
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// NewTextWriter writes to w, which it never closes.
func NewTextWriter(w io.Writer, c Compression, level int) (*TextWriter, error) {
	count := &counter{w: w}
	out, err := c.NewWriter(count, level)
	if err != nil {
		return nil, err
	}
	return &TextWriter{w: out, counter: count, buf: make([]byte, 0, flushSize+flushSize/4)}, nil
}

// Buffer is the text not yet handed on. Append to it and give it to Took.
func (t *TextWriter) Buffer() []byte { return t.buf }

// Took takes the buffer back with more text in it.
func (t *TextWriter) Took(buf []byte) error {
	t.buf = buf
	if len(buf) < flushSize {
		return nil
	}
	return t.flush()
}

func (t *TextWriter) flush() error {
	if !t.begun && misread(t.buf) {
		if _, err := io.WriteString(t.w, byteOrderMark); err != nil {
			return err
		}
	}
	t.begun = true
	_, err := t.w.Write(t.buf)
	t.buf = t.buf[:0]
	return err
}

// byteOrderMark is U+FEFF at the beginning of a file in UTF-8: a reader passes over one.
const byteOrderMark = "\xEF\xBB\xBF"

// misread says whether a text of UTF-8 is taken for something else by its beginning: for a
// mark, for UTF-16, for compressed, or for no text. Behind a mark it is not.
func misread(text []byte) bool {
	return bytes.HasPrefix(text, []byte(byteOrderMark)) || DetectCompression("", text) != CompressionNone || foreign(text) != "" || Encoding{}.detect(text) != Encoding{}
}

// Size is the number of bytes written, and still held here, about.
func (t *TextWriter) Size() int64 { return t.counter.n + int64(len(t.buf)) }

// Close writes what is left and the end of the compressed stream.
func (t *TextWriter) Close() error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.w.Close()
}
