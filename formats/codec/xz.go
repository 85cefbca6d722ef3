package codec

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"

	"github.com/ulikunitz/xz"
)

func newXZReader(r io.Reader) (io.ReadCloser, error) {
	d, err := xz.ReaderConfig{DictCap: 1 << 20}.NewReader(bufio.NewReaderSize(&xzEnd{r: r}, 64<<10))
	if err != nil {
		return nil, err
	}
	return io.NopCloser(d), nil
}

// xzFooter is the length of what a stream of an xz file ends in, xzFooterMagic its last bytes.
const (
	xzFooter      = 12
	xzFooterMagic = "YZ"
)

// xzEnd passes an xz file on and sees to it that it ends in a footer: the decoder takes a
// file that ends between two blocks, or before the first, for a whole one.
type xzEnd struct {
	r     io.Reader
	last  []byte // up to a footer's length of what came before the zero bytes at the end
	zeros int    // padding
}

func (e *xzEnd) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.follow(p[:n])
	if err == io.EOF && !e.whole() {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (e *xzEnd) follow(p []byte) {
	text := bytes.TrimRight(p, "\x00")
	if len(text) > 0 {
		e.last = append(append(e.last, make([]byte, min(e.zeros, xzFooter))...), text[max(0, len(text)-xzFooter):]...)
		e.last = slices.Delete(e.last, 0, max(0, len(e.last)-xzFooter))
		e.zeros = 0
	}
	e.zeros += len(p) - len(text)
}

// whole says whether what was read so far ends in a footer, which is its checksum, the
// size of the index, flags and the magic, and padding of four bytes or a multiple.
func (e *xzEnd) whole() bool {
	return e.zeros%4 == 0 && len(e.last) == xzFooter && string(e.last[10:]) == xzFooterMagic &&
		crc32.ChecksumIEEE(e.last[4:10]) == binary.LittleEndian.Uint32(e.last)
}
