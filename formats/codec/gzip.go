package codec

import (
	"bufio"
	"io"

	"github.com/klauspost/compress/gzip"
)

// gzipMembers reads the members of a gzip file as one text. Zero bytes between and behind
// them are padding, as gzip(1) has it: tapes and object stores leave some.
type gzipMembers struct {
	b *bufio.Reader
	z *gzip.Reader
}

func newGzipReader(r io.Reader) (io.ReadCloser, error) {
	m := &gzipMembers{b: bufio.NewReaderSize(r, 64<<10)}
	z, err := gzip.NewReader(m.b)
	if err != nil {
		return nil, err
	}
	m.z = z
	z.Multistream(false)
	return m, nil
}

func (m *gzipMembers) Read(p []byte) (int, error) {
	for {
		n, err := m.z.Read(p)
		if err == io.EOF {
			err = m.next()
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// next begins the next member; io.EOF if there is none.
func (m *gzipMembers) next() error {
	for {
		c, err := m.b.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			break
		}
	}
	if err := m.b.UnreadByte(); err != nil {
		return err
	}
	if err := m.z.Reset(m.b); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	m.z.Multistream(false)
	return nil
}

func (m *gzipMembers) Close() error { return m.z.Close() }
