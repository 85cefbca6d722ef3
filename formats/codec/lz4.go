package codec

import (
	"encoding/binary"
	"io"
)

// lz4Magic begins a frame, lz4Legacy one of the first version of the format. Sixteen
// others, lz4Skippable and up, begin something to pass over.
const (
	lz4Magic     = 0x184d2204
	lz4Legacy    = 0x184c2102
	lz4Skippable = 0x184d2a50
)

// lz4OldMagic is lz4Legacy as a file begins with it.
const lz4OldMagic = "\x02\x21\x4c\x18"

// lz4Ends passes lz4 frames on and follows where they end: the decoder takes a file that
// ends between two blocks for a whole one. It checks nothing else. A legacy frame has no
// end that could be missed.
type lz4Ends struct {
	r     io.Reader
	skip  uint64  // bytes to pass over
	word  [4]byte // being read
	have  int     // bytes of word
	state lz4State
	flags byte
	whole bool // the file may end here, unless there is something to pass over
}

type lz4State uint8

const (
	lz4Frame lz4State = iota // a magic number is next
	lz4Flags                 // the flags of a frame
	lz4Block                 // the size of a block
	lz4OldBlock
	lz4Size // of something to pass over
)

func (e *lz4Ends) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.follow(p[:n])
	if err == io.EOF && (!e.whole || e.skip > 0 || e.have > 0) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// follow moves on over the bytes of b.
func (e *lz4Ends) follow(b []byte) {
	for len(b) > 0 {
		if e.skip > 0 {
			k := min(e.skip, uint64(len(b)))
			e.skip, b = e.skip-k, b[k:]
			continue
		}
		size := 4
		if e.state == lz4Flags {
			size = 1
		}
		k := copy(e.word[e.have:size], b)
		e.have, b = e.have+k, b[k:]
		if e.have == size {
			e.have = 0
			e.next(binary.LittleEndian.Uint32(e.word[:]))
		}
	}
}

// next takes in a word, of which flags are the first byte.
func (e *lz4Ends) next(word uint32) {
	switch e.state {
	case lz4Frame:
		e.frame(word)
	case lz4Flags:
		e.flags, e.state = byte(word), lz4Block
		e.skip = 2 // the block size, and the header's checksum
		if e.flags&(1<<3) != 0 {
			e.skip += 8 // the size of the content
		}
		if e.flags&1 != 0 {
			e.skip += 4 // of a dictionary
		}
	case lz4Block:
		if word == 0 {
			e.state, e.whole = lz4Frame, true
			if e.flags&(1<<2) != 0 {
				e.skip = 4 // the content's checksum
			}
			return
		}
		e.skip = uint64(word &^ (1 << 31))
		if e.flags&(1<<4) != 0 {
			e.skip += 4 // the block's checksum
		}
	case lz4OldBlock:
		if word == lz4Magic || word == lz4Legacy || word&^0xf == lz4Skippable {
			e.frame(word)
			return
		}
		e.skip = uint64(word)
	case lz4Size:
		e.state, e.skip, e.whole = lz4Frame, uint64(word), true
	}
}

// frame begins what a magic number announces. What is none is for the decoder to refuse.
func (e *lz4Ends) frame(magic uint32) {
	e.whole = false
	switch {
	case magic == lz4Magic:
		e.state = lz4Flags
	case magic == lz4Legacy:
		e.state, e.whole = lz4OldBlock, true
	case magic&^0xf == lz4Skippable:
		e.state = lz4Size
	default:
		e.whole = true
	}
}
