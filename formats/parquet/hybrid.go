package parquet

import (
	"encoding/binary"
	"errors"

	"github.com/parquet-go/bitpack"
)

// padding is how many bytes may be read (not used) beyond the end of a page.
const padding = 64

var errShort = errors.New("the page ends in the middle of its values")

// hybrid decodes Parquet's run-length and bit-packed hybrid, which holds levels,
// dictionary codes and booleans, a few values at a time. It never reads more values
// than it is asked for, whatever the lengths of runs in a damaged page.
type hybrid struct {
	data  []byte // at least padding bytes of capacity follow
	width uint
	left  int    // values left in the current run
	value uint32 // of a run-length run
	// A bit-packed run is read from data[start:], at value number index of it.
	packed bool
	start  int
	index  int
	pos    int // where the next run begins
}

func newHybrid(data []byte, width uint) hybrid { return hybrid{data: data, width: width} }

// next starts the next run.
func (h *hybrid) next() error {
	for h.left == 0 {
		if h.width == 0 {
			// Nothing is stored: every value is 0.
			h.packed, h.value, h.left = false, 0, 1<<30
			return nil
		}
		header, n := binary.Uvarint(h.data[h.pos:])
		if n <= 0 || header>>1 > 1<<31 {
			return errShort
		}
		h.pos += n
		count := int(header >> 1)
		if header&1 == 0 {
			bytes := int(h.width+7) / 8
			if h.pos+bytes > len(h.data) {
				return errShort
			}
			var v uint32
			for i := range bytes {
				v |= uint32(h.data[h.pos+i]) << (8 * i)
			}
			h.packed, h.value, h.left = false, v, count
			h.pos += bytes
			continue
		}
		// The last run of a page may lack the padding of its last group.
		bytes := min(count*int(h.width), len(h.data)-h.pos)
		h.packed, h.start, h.index = true, h.pos, 0
		h.left = min(count*8, bytes*8/int(h.width))
		h.pos += bytes
		if h.left == 0 && count > 0 {
			return errShort
		}
	}
	return nil
}

// repeated consumes up to n values as long as they are v in run-length runs, and
// returns how many it consumed.
func (h *hybrid) repeated(v uint32, n int) (int, error) {
	done := 0
	for done < n {
		if h.left == 0 {
			if err := h.next(); err != nil {
				return done, err
			}
		}
		if h.packed || h.value != v {
			return done, nil
		}
		k := min(n-done, h.left)
		h.left -= k
		done += k
	}
	return done, nil
}

// codes decodes len(dst) values.
func (h *hybrid) codes(dst []int32) error {
	for len(dst) > 0 {
		if h.left == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		k := min(len(dst), h.left)
		if h.packed {
			h.unpackCodes(dst[:k])
		} else {
			fill := dst[:k]
			for i := range fill {
				fill[i] = int32(h.value)
			}
		}
		h.left -= k
		dst = dst[k:]
	}
	return nil
}

// unpackCodes reads len(dst) values of the current bit-packed run: whole groups of
// eight by the vector kernel, what stands before and after them one by one.
func (h *hybrid) unpackCodes(dst []int32) {
	i := 0
	for ; i < len(dst) && h.index&7 != 0; i++ {
		dst[i] = int32(h.bits(h.index))
		h.index++
	}
	if whole := (len(dst) - i) &^ 7; whole > 0 {
		from := h.start + h.index/8*int(h.width)
		in := h.data[from : from+whole/8*int(h.width)]
		bitpack.Unpack(dst[i:i+whole], in[:len(in)+bitpack.PaddingInt32], h.width)
		i += whole
		h.index += whole
	}
	for ; i < len(dst); i++ {
		dst[i] = int32(h.bits(h.index))
		h.index++
	}
}

// bits is value number i of the current bit-packed run.
func (h *hybrid) bits(i int) uint32 {
	bit := i * int(h.width)
	from := h.start + bit>>3
	word := binary.LittleEndian.Uint64(h.data[from : from+8 : cap(h.data)])
	return uint32(word >> (bit & 7) & (1<<h.width - 1))
}

// levels decodes len(dst) values of at most eight bits.
func (h *hybrid) levels(dst []byte) error {
	for len(dst) > 0 {
		if h.left == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		k := min(len(dst), h.left)
		if h.packed {
			h.unpackLevels(dst[:k])
		} else {
			fill := dst[:k]
			for i := range fill {
				fill[i] = byte(h.value)
			}
		}
		h.left -= k
		dst = dst[k:]
	}
	return nil
}

func (h *hybrid) unpackLevels(dst []byte) {
	i := 0
	for ; i < len(dst) && h.index&7 != 0; i++ {
		dst[i] = byte(h.bits(h.index))
		h.index++
	}
	at := h.start + h.index/8*int(h.width)
	for ; i+8 <= len(dst); i += 8 {
		word := binary.LittleEndian.Uint64(h.data[at : at+8 : cap(h.data)])
		if h.width == 1 {
			word = spreadBits(byte(word))
			binary.LittleEndian.PutUint64(dst[i:], word)
		} else {
			mask := byte(1<<h.width - 1)
			for j := range 8 {
				dst[i+j] = byte(word>>(uint(j)*h.width)) & mask
			}
		}
		at += int(h.width)
		h.index += 8
	}
	for ; i < len(dst); i++ {
		dst[i] = byte(h.bits(h.index))
		h.index++
	}
}

// spreadBits makes bit i of b the value, 0 or 1, of byte i.
func spreadBits(b byte) uint64 {
	x := uint64(b) * 0x0101010101010101 & 0x8040201008040201
	return (x + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101
}

// gatherBits is the opposite: bit i is set where byte i of x is not v. All bytes
// are below 128.
func gatherDiffering(x uint64, v byte) byte {
	x ^= uint64(v) * 0x0101010101010101
	x = (x + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101
	return byte(x * 0x0102040810204080 >> 56)
}

// bitPackedLevels decodes the deprecated BIT_PACKED encoding of levels: most
// significant bit first, no header.
func bitPackedLevels(dst, data []byte, width uint) error {
	if (len(dst)*int(width)+7)/8 > len(data) {
		return errShort
	}
	bit := 0
	for i := range dst {
		v := byte(0)
		for range width {
			v = v<<1 | data[bit>>3]>>(7-bit&7)&1
			bit++
		}
		dst[i] = v
	}
	return nil
}
