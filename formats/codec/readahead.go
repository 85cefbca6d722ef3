package codec

import "io"

// Pieces of text that are decoded before they are asked for.
const (
	aheadPieces = 4
	aheadBytes  = 256 << 10
	// aheadLeast is the size of a file below which it does not pay.
	aheadLeast = 64 << 10
)

// readAhead reads a stream some pieces ahead in a goroutine of its own, so that a file is
// decompressed beside being parsed. It is used by one goroutine and must be closed; what
// the stream reads from belongs to it until then, or until Read has returned an error.
type readAhead struct {
	pieces chan piece  // in order
	free   chan []byte // buffers to fill
	stop   chan struct{}
	at     []byte // of the piece at hand, what was not read
	last   piece
}

type piece struct {
	text []byte
	err  error // that came behind it
}

func newReadAhead(r io.Reader) *readAhead {
	a := &readAhead{pieces: make(chan piece, aheadPieces), free: make(chan []byte, aheadPieces), stop: make(chan struct{})}
	for range aheadPieces {
		a.free <- nil
	}
	go a.run(r)
	return a
}

// run fills pieces until the end of r or until it is stopped.
func (a *readAhead) run(r io.Reader) {
	defer close(a.pieces)
	for {
		var p piece
		select {
		case <-a.stop:
			return
		case p.text = <-a.free:
		}
		if p.text == nil {
			p.text = takeBuffer(aheadBytes)
		}
		n := 0
		for n < aheadBytes && p.err == nil {
			var k int
			k, p.err = r.Read(p.text[n:aheadBytes])
			n += k
		}
		p.text = p.text[:n]
		a.pieces <- p // there is room for all
		if p.err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (a *readAhead) Read(p []byte) (int, error) {
	for len(a.at) == 0 {
		if a.last.err != nil {
			return 0, a.last.err
		}
		if a.last.text != nil {
			a.free <- a.last.text[:cap(a.last.text)]
		}
		a.last = <-a.pieces
		a.at = a.last.text
	}
	n := copy(p, a.at)
	a.at = a.at[n:]
	return n, nil
}

// Close ends the goroutine and waits for it.
func (a *readAhead) Close() {
	close(a.stop)
	for p := range a.pieces {
		giveBuffer(p.text[:cap(p.text)])
	}
	giveBuffer(a.last.text[:cap(a.last.text)])
	for len(a.free) > 0 {
		b := <-a.free
		giveBuffer(b[:cap(b)])
	}
	a.at, a.last = nil, piece{err: io.ErrClosedPipe}
}
