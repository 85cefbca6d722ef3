package codec

import (
	"bytes"
	"io"

	"github.com/tidemill/tidemill/logical/connector"
)

// Range is the part [Start, End) of a file's bytes whose records one unit reads:
// those that begin in it.
type Range struct {
	Start, End int64
	// Divided: the file has other ranges, so it is neither compressed nor in an
	// encoding other than UTF-8, and bytes are text.
	Divided bool
}

// headBytes is how much of a file is looked at to see whether it can be divided.
const headBytes = 64 << 10

// A file is divided into about rangesOfFile ranges of minRange to MaxRange bytes: so many
// that two or more workers finish close together, so large that opening one is little.
const (
	rangesOfFile = 16
	minRange     = 512 << 10
	MaxRange     = 8 << 20 // also for each of many files
)

// Ranges divides a file into ranges of about splitBytes (0: by the size of the file), if it
// is large, not compressed, UTF-8, and divisible says so about its first bytes. Small files
// are not even opened.
func Ranges(f File, c Compression, e Encoding, splitBytes int64, divisible func(head []byte) bool) ([]Range, error) {
	whole := []Range{{End: f.Size}}
	if splitBytes <= 0 {
		splitBytes = min(max(f.Size/rangesOfFile, minRange), MaxRange)
	}
	splitBytes = max(splitBytes, 4) // the mark of UTF-8 is not divided
	if f.Size <= splitBytes || !e.isUTF8() {
		return whole, nil
	}
	head, err := readHead(f)
	if err != nil {
		return nil, err
	}
	if c.detect(f.Path, head) != CompressionNone || !e.detect(head).isUTF8() || foreign(head) != "" || !divisible(head) {
		return whole, nil
	}
	var ranges []Range
	for at := int64(0); at < f.Size; at += splitBytes {
		ranges = append(ranges, Range{Start: at, End: min(at+splitBytes, f.Size), Divided: true})
	}
	return ranges, nil
}

// readHead reads the first bytes of a file.
func readHead(f File) ([]byte, error) {
	file, err := openFile(f)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, min(headBytes, f.Size))
	n, err := file.ReadAt(head, 0)
	if n < len(head) && err == io.EOF {
		err = &connector.FileChangedError{Path: f.Path, Was: f.FileIdentity}
	}
	if n == len(head) {
		err = nil
	}
	return head[:n], err
}

// ReadWindow reads the bytes [from, to) of a plain file into a buffer of its own and
// hands them to visit: a look at a range that another unit reads.
func ReadWindow(f File, from, to int64, visit func(p []byte)) error {
	file, err := openFile(f)
	if err != nil {
		return err
	}
	defer file.Close()
	buf := takeBuffer(int(min(to-from, streamChunk)))
	defer giveBuffer(buf)
	raw := &rawReader{f: f, file: file, off: from, quiet: true}
	for raw.off < to {
		n, err := raw.Read(buf[:min(int64(len(buf)), to-raw.off)])
		visit(buf[:n])
		if err != nil {
			return err
		}
	}
	return nil
}

// EndsInNewline says whether a text file ends in a line end, so that nobody can be in
// the middle of writing its last line. An empty file does, and a compressed one
// counts as ended.
func EndsInNewline(f File) (bool, error) {
	if f.Size == 0 {
		return true, nil
	}
	file, err := openFile(f)
	if err != nil {
		return false, err
	}
	defer file.Close()
	head := make([]byte, min(16, f.Size))
	if _, err := file.ReadAt(head, 0); err != nil && err != io.EOF {
		return false, err
	}
	if CompressionAuto.detect(f.Path, head) != CompressionNone {
		return true, nil
	}
	tail := make([]byte, min(4, f.Size))
	if _, err := file.ReadAt(tail, f.Size-int64(len(tail))); err != nil && err != io.EOF {
		return false, err
	}
	// The last byte, or in UTF-16 and UTF-32 little-endian the last that is not zero.
	tail = bytes.TrimRight(tail, "\x00")
	return bytes.HasSuffix(tail, []byte{'\n'}) || bytes.HasSuffix(tail, []byte{'\r'}), nil
}
