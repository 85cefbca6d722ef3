package codec

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/tidemill/tidemill/logical/connector"
)

// Compression is how the bytes of a whole file are compressed.
type Compression uint8

const (
	CompressionAuto Compression = iota // read: by the first bytes, then the name; written: none
	CompressionNone
	Gzip
	Zstd
	Bzip2
	LZ4
	Snappy
	XZ
)

var compressionNames = []string{"auto", "none", "gzip", "zstd", "bzip2", "lz4", "snappy", "xz"}

var compressionExtensions = [...]string{Gzip: ".gz", Zstd: ".zst", Bzip2: ".bz2", LZ4: ".lz4", Snappy: ".snappy", XZ: ".xz"}

// String is the word of the compression option.
func (c Compression) String() string { return compressionNames[c] }

// Extension is what the name of a file compressed so ends in, with its dot; "" if it
// is not compressed.
func (c Compression) Extension() string { return compressionExtensions[c] }

// CompressionKey is the option compression.
func CompressionKey(p *Compression) connector.Key {
	return connector.FuncKey("compression", "a compression", func(text string) error {
		c, err := ParseCompression(text)
		*p = c
		return err
	})
}

// ParseCompression reads the text of the compression option: a name of String or an
// ending of a file name.
func ParseCompression(text string) (Compression, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	for i, name := range compressionNames {
		if word == name || i > 1 && word == compressionExtensions[i][1:] {
			return Compression(i), nil
		}
	}
	switch word {
	case "uncompressed", "":
		return CompressionNone, nil
	case "zstandard":
		return Zstd, nil
	}
	return 0, fmt.Errorf("it takes %s", strings.Join(compressionNames, ", "))
}

// CompressionOf is the compression a file's name speaks of, CompressionNone if it
// speaks of none.
func CompressionOf(name string) Compression {
	ext := strings.ToLower(path.Ext(name))
	for c := Gzip; c <= XZ; c++ {
		if ext == c.Extension() {
			return c
		}
	}
	return CompressionNone
}

// The first bytes of compressed files. No text begins with any of them; of bzip2 more is
// looked at, in isBzip2.
var magics = [...]string{Gzip: "\x1f\x8b", Zstd: "\x28\xb5\x2f\xfd", Bzip2: "BZh", LZ4: "\x04\x22\x4d\x18", Snappy: "\xff\x06\x00\x00sNaPpY", XZ: "\xfd7zXZ\x00"}

// DetectCompression decides how a file is compressed by its first bytes, at least ten if
// it has them, and its name.
func DetectCompression(name string, head []byte) Compression {
	return CompressionAuto.detect(name, head)
}

// detect decides how a file is compressed whose first bytes are head.
func (c Compression) detect(name string, head []byte) Compression {
	if c != CompressionAuto {
		return c
	}
	byName := CompressionOf(name)
	for m := Gzip; m <= XZ; m++ {
		if bytes.HasPrefix(head, []byte(magics[m])) && (m != Bzip2 || byName == Bzip2 || isBzip2(head)) {
			return m
		}
	}
	switch {
	case bytes.HasPrefix(head, []byte(lz4OldMagic)):
		return LZ4
	case isSkippable(head):
		return ofSkippable(byName, head)
	case len(head) == 0:
		return CompressionNone
	}
	return byName
}

// isSkippable says whether head begins with a frame that readers of zstd and LZ4 pass over.
func isSkippable(head []byte) bool {
	return len(head) >= 4 && head[0]&0xF0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18"
}

// ofSkippable is zstd or LZ4, which both know skippable frames: what follows the first one,
// if head reaches so far, or what the name says. Zstd is the one that writes them.
func ofSkippable(byName Compression, head []byte) Compression {
	if len(head) >= 8 {
		size := int64(binary.LittleEndian.Uint32(head[4:]))
		switch rest := head[min(8+size, int64(len(head))):]; {
		case bytes.HasPrefix(rest, []byte(magics[Zstd])):
			return Zstd
		case bytes.HasPrefix(rest, []byte(magics[LZ4])):
			return LZ4
		}
	}
	if byName == LZ4 {
		return LZ4
	}
	return Zstd
}

// isBzip2 says whether head, of ten bytes or more, is that of a bzip2 file and not of a
// text that begins with BZh: a level follows, then the magic number of a block or, in an
// empty file, that of the end.
func isBzip2(head []byte) bool {
	if len(head) < 10 || head[3] < '1' || head[3] > '9' {
		return false
	}
	number := string(head[4:10])
	return number == "\x31\x41\x59\x26\x53\x59" || number == "\x17\x72\x45\x38\x50\x90"
}

// zstdMaxWindow bounds the memory a zstd file may ask for.
const zstdMaxWindow = 512 << 20

// NewReader decompresses r. Closing it does not close r. Members that follow one
// another (cat a.gz b.gz) are one text.
func (c Compression) NewReader(r io.Reader) (io.ReadCloser, error) {
	switch c {
	case Gzip:
		return newGzipReader(r)
	case Zstd:
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdMaxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case XZ:
		return newXZReader(r)
	case Bzip2:
		return io.NopCloser(newBzip2Reader(r)), nil
	case LZ4:
		return io.NopCloser(lz4.NewReader(&lz4Ends{r: r, whole: true})), nil
	case Snappy:
		b := bufio.NewReaderSize(r, 64<<10)
		if head, _ := b.Peek(10); string(head) == magics[Snappy] {
			return io.NopCloser(snappy.NewReader(b)), nil
		}
		return io.NopCloser(&hadoopSnappy{r: b}), nil
	}
	return io.NopCloser(r), nil
}

// NewWriter compresses to w. Closing it ends the stream and does not close w. level is 0
// for the usual one, or from 1, fast, to MaxLevel, small; what has fewer levels takes the
// nearest.
func (c Compression) NewWriter(w io.Writer, level int) (io.WriteCloser, error) {
	switch c {
	case Gzip:
		return gzip.NewWriterLevel(w, GzipLevel(level))
	case Zstd:
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(ZstdLevel(level)))
	case LZ4:
		z := lz4.NewWriter(w)
		if level > 0 {
			// Its levels are powers of two: 1<<9 is the first.
			return z, z.Apply(lz4.CompressionLevelOption(lz4.CompressionLevel(1 << (8 + min(level, 9)))))
		}
		return z, nil
	case Snappy:
		return snappy.NewBufferedWriter(w), nil
	}
	if err := c.CheckWritable(); err != nil {
		return nil, err
	}
	return nopWriteCloser{w}, nil
}

// CheckLevel refuses a level of a compression that has none; the error is a
// *connector.OptionError.
func (c Compression) CheckLevel(level int) error {
	return CheckLevel(level, max(c, CompressionNone).String(), Gzip.String(), Zstd.String(), LZ4.String())
}

// CheckWritable refuses what can only be read; the error is a *connector.OptionError.
func (c Compression) CheckWritable() error {
	if c != Bzip2 && c != XZ {
		return nil
	}
	return &connector.OptionError{Key: "compression", Value: c.String(), HasValue: true, Reason: "it can be read but not written; use zstd or gzip"}
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

// hadoopSnappy reads what Hadoop's and Spark's SnappyCodec write instead of the
// framing format: blocks of a total length and then, until it is reached, chunks of
// a compressed length and raw snappy. All lengths are four bytes, big-endian.
type hadoopSnappy struct {
	r       *bufio.Reader
	left    int // of the block
	chunk   []byte
	out     []byte
	outFrom int
}

const hadoopMaxChunk = 64 << 20

func (h *hadoopSnappy) Read(p []byte) (int, error) {
	for h.outFrom == len(h.out) {
		if err := h.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, h.out[h.outFrom:])
	h.outFrom += n
	return n, nil
}

func (h *hadoopSnappy) next() error {
	if h.left == 0 {
		n, err := h.length()
		if err != nil {
			return err
		}
		h.left = n
		return nil
	}
	n, err := h.length()
	if err != nil {
		return unexpected(err)
	}
	if n > hadoopMaxChunk {
		return snappy.ErrCorrupt
	}
	if cap(h.chunk) < n {
		h.chunk = make([]byte, n)
	}
	h.chunk = h.chunk[:n]
	if _, err := io.ReadFull(h.r, h.chunk); err != nil {
		return unexpected(err)
	}
	size, err := snappy.DecodedLen(h.chunk)
	if err != nil || size > h.left {
		return snappy.ErrCorrupt
	}
	h.out, err = snappy.Decode(h.out[:cap(h.out)], h.chunk)
	h.outFrom = 0
	h.left -= len(h.out)
	return err
}

func (h *hadoopSnappy) length() (int, error) {
	var b [4]byte
	if _, err := io.ReadFull(h.r, b[:]); err != nil {
		return 0, err
	}
	n := int(b[0])<<24 | int(b[1])<<16 | int(b[2])<<8 | int(b[3])
	if n > 1<<30 {
		return 0, snappy.ErrCorrupt
	}
	return n, nil
}

// unexpected turns the end of a stream where more must follow into the error it is.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
