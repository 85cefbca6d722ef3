package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var (
	errCut    = errors.New("it is cut off")
	errVarint = errors.New("a number in it has no end")
	errLength = errors.New("it has a length that is not possible")
)

// cursor decodes Avro's binary encoding. After an error, which stays, everything it gives
// is zero or empty.
type cursor struct {
	buf []byte
	pos int
	err error
	// empty counts elements that take no bytes, so that a few bytes cannot stand for
	// any number of them.
	empty int64
	depth int // of a value being skipped
	// symbols are the bytes of symbols of enums, which are short in the file.
	symbols int
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.pos = len(c.buf)
}

// where adds to an error the name of the field it is in.
func (c *cursor) where(field string) { c.err = &fieldError{field, c.err} }

// rest is how many bytes are left.
func (c *cursor) rest() int { return len(c.buf) - c.pos }

// long reads a zigzag number. Most have one byte: branches, lengths, what is small.
func (c *cursor) long() int64 {
	if c.pos < len(c.buf) && c.buf[c.pos] < 0x80 {
		b := c.buf[c.pos]
		c.pos++
		return int64(b>>1) ^ -int64(b&1)
	}
	return c.longer()
}

// longer reads a zigzag number of up to ten bytes.
func (c *cursor) longer() int64 {
	v, n := binary.Uvarint(c.buf[c.pos:])
	if n <= 0 {
		if n == 0 && c.rest() < binary.MaxVarintLen64 {
			c.fail(errCut)
		} else {
			c.fail(errVarint)
		}
		return 0
	}
	c.pos += n
	return int64(v>>1) ^ -int64(v&1)
}

// int reads a number of 32 bits.
func (c *cursor) int() int32 {
	v := c.long()
	if v != int64(int32(v)) {
		c.fail(fmt.Errorf("an int of it is %d, which has more than 32 bits", v))
		return 0
	}
	return int32(v)
}

// next is the next n bytes, which belong to the block.
func (c *cursor) next(n int) []byte {
	if n > c.rest() {
		c.fail(errCut)
		return nil
	}
	p := c.buf[c.pos : c.pos+n]
	c.pos += n
	return p
}

// bytes reads a length and so many bytes.
func (c *cursor) bytes() []byte {
	n := c.long()
	switch {
	case n < 0:
		c.fail(errLength)
		return nil
	case n > int64(c.rest()):
		c.fail(errCut)
		return nil
	}
	return c.next(int(n))
}

func (c *cursor) boolean() bool {
	p := c.next(1)
	if p == nil {
		return false
	}
	if p[0] > 1 {
		c.fail(fmt.Errorf("a boolean of it is %d", p[0]))
	}
	return p[0] == 1
}

func (c *cursor) float() float32 {
	p := c.next(4)
	if p == nil {
		return 0
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(p))
}

func (c *cursor) double() float64 {
	p := c.next(8)
	if p == nil {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(p))
}

// maxEmpty is how many elements that take no bytes one batch may have.
const maxEmpty = 1 << 20

// elements reads how many elements of an array or a map follow, each of which takes at
// least so many bytes; 0 ends it. size is their bytes, -1 where the file does not say.
func (c *cursor) elements(least int) (n int, size int64) {
	count, size := c.long(), int64(-1)
	if count < 0 {
		if size = c.long(); size < 0 || size > int64(c.rest()) || count == math.MinInt64 {
			c.fail(errLength)
			return 0, 0
		}
		count = -count
	}
	if least == 0 {
		if count > maxEmpty || c.empty+count > maxEmpty {
			c.fail(fmt.Errorf("it has more than %d elements that are nothing", maxEmpty))
			return 0, 0
		}
		c.empty += count
	} else if count > int64(c.rest()/least) {
		c.fail(errCut)
		return 0, 0
	}
	return int(count), size
}
