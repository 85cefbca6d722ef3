package codec

import (
	"bufio"
	"compress/bzip2"
	"io"
)

// bzip2Streams reads the streams of a bzip2 file as one text. Zero bytes between and behind
// them are padding, as in gzipMembers.
type bzip2Streams struct {
	b    *zeroTail
	z    io.Reader
	done bool // io.EOF was given, after which the decoder would go on
}

func newBzip2Reader(r io.Reader) *bzip2Streams {
	b := &zeroTail{b: bufio.NewReaderSize(r, 64<<10)}
	return &bzip2Streams{b: b, z: bzip2.NewReader(b)}
}

// errNoStream is what the decoder says of what follows a stream and is none.
const errNoStream = bzip2.StructuralError("bad magic value in continuation file")

func (s *bzip2Streams) Read(p []byte) (int, error) {
	if s.done {
		return 0, io.EOF
	}
	for {
		n, err := s.z.Read(p)
		if err == errNoStream && s.b.zeros >= 2 {
			err = s.next()
		}
		s.done = err == io.EOF
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// next begins the stream behind the padding; io.EOF if there is none.
func (s *bzip2Streams) next() error {
	if err := s.b.skipZeros(); err != nil {
		return err
	}
	s.z = bzip2.NewReader(s.b)
	return nil
}

// zeroTail gives the bytes of a file, and two more zeros behind one that ends in zero: the
// decoder looks two bytes beyond a stream, and a single zero there would read as a stream
// that is cut off.
type zeroTail struct {
	b     *bufio.Reader
	zeros int // how many of the last bytes given are zero
	made  int // of those behind the end
}

func (t *zeroTail) ReadByte() (byte, error) {
	c, err := t.b.ReadByte()
	if err == io.EOF && t.zeros > 0 && t.made < 2 {
		t.made++
		c, err = 0, nil
	}
	if c != 0 || err != nil {
		t.zeros = 0
	} else {
		t.zeros++
	}
	return c, err
}

// Read is what makes it an io.Reader; the decoder reads bytes.
func (t *zeroTail) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c, err := t.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
}

// skipZeros goes to the next byte that is not zero.
func (t *zeroTail) skipZeros() error {
	for {
		c, err := t.b.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			t.zeros = 0
			return t.b.UnreadByte()
		}
	}
}
