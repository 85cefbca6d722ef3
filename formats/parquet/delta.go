package parquet

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/parquet-go/bitpack"
)

// maxDelta bounds the values of a delta-encoded page, whose size says little about
// their number.
const maxDelta = 1 << 26

// deltaHeader begins a run of delta-encoded integers.
type deltaHeader struct {
	blocks int // mini blocks in a block
	mini   int // values in a mini block, a multiple of 32
	values int
	first  int64
}

// readDeltaHeader returns what follows it, too. There may be at most most values, so
// that memory is only allocated for as many as a page can have.
func readDeltaHeader(src []byte, most int) (h deltaHeader, rest []byte, err error) {
	var fields [3]uint64
	for i := range fields {
		v, n := binary.Uvarint(src)
		if n <= 0 {
			return h, nil, errShort
		}
		fields[i], src = v, src[n:]
	}
	block, blocks, values := fields[0], fields[1], fields[2]
	if block == 0 || blocks == 0 || block > 1<<16 || block%blocks != 0 || block/blocks%32 != 0 {
		return h, nil, fmt.Errorf("a page has blocks of %d values in %d parts", block, blocks)
	}
	if values > uint64(most) || values > maxDelta {
		return h, nil, fmt.Errorf("a page of %d values claims to hold %d", most, values)
	}
	first, n := binary.Varint(src)
	if n <= 0 {
		return h, nil, errShort
	}
	return deltaHeader{int(blocks), int(block / blocks), int(values), first}, src[n:], nil
}

// readDeltas decodes a run of delta-encoded integers at the beginning of src, after which
// padding bytes may be read, and returns what follows it. The memory of dst is used again.
// Sums wrap around: some writers take the differences of 32 bits in 64.
func readDeltas[T int32 | int64](dst []T, src []byte, most int) ([]T, []byte, error) {
	h, src, err := readDeltaHeader(src, most)
	if err != nil {
		return nil, nil, err
	}
	if cap(dst) < h.values {
		dst = make([]T, h.values)
	}
	if dst = dst[:h.values]; h.values == 0 {
		return dst, src, nil
	}
	dst[0] = T(h.first)
	for at := 1; at < len(dst); {
		least, n := binary.Varint(src)
		if n <= 0 || len(src)-n < h.blocks {
			return nil, nil, errShort
		}
		widths := src[n : n+h.blocks]
		src = src[n+h.blocks:]
		for _, width := range widths {
			k := min(h.mini, len(dst)-at)
			if k == 0 {
				break
			}
			// The last mini block of a page may lack its padding.
			size := h.mini / 8 * int(width)
			if width > 64 || (k*int(width)+7)/8 > len(src) {
				return nil, nil, errShort
			}
			unpackDeltas(dst[at:at+k], src, uint(width))
			sumDeltas(dst[at-1:at+k], T(least))
			src = src[min(size, len(src)):]
			at += k
		}
	}
	return dst, src, nil
}

// unpackDeltas reads len(dst) values of a width, of which dst keeps the lower bits.
func unpackDeltas[T int32 | int64](dst []T, src []byte, width uint) {
	size := (len(dst)*int(width) + 7) / 8
	switch {
	case width == 0:
		clear(dst)
	case width <= 8*uint(unsafe.Sizeof(dst[0])):
		bitpack.Unpack(dst, src[:size+bitpack.PaddingInt64:cap(src)], width)
	default:
		for i := range dst {
			bit := i * int(width)
			dst[i] = T(binary.LittleEndian.Uint64(src[bit>>3:bit>>3+8:cap(src)]) >> (bit & 7))
		}
	}
}

// sumDeltas makes values of the differences behind the first.
func sumDeltas[T int32 | int64](values []T, least T) {
	last := values[0]
	for i := range values[1:] {
		last += values[1+i] + least
		values[1+i] = last
	}
}

// readLengths decodes the lengths of texts, and returns what follows them and their sum.
func readLengths(dst []int32, src []byte, most int) (lengths []int32, rest []byte, sum int64, err error) {
	if lengths, rest, err = readDeltas(dst, src, most); err != nil {
		return nil, nil, 0, err
	}
	for _, n := range lengths {
		if n < 0 {
			return nil, nil, 0, fmt.Errorf("a text is %d bytes long", n)
		}
		sum += int64(n)
	}
	return lengths, rest, sum, nil
}

// readDeltaTexts decodes a page of texts that stand one after another behind their lengths,
// and checks that the page is used up. offsets and dst are used again.
func readDeltaTexts(dst, src []byte, offsets []uint32, most int) ([]byte, []uint32, error) {
	lengths, rest, sum, err := readLengths(nil, src, most)
	if err != nil {
		return nil, nil, err
	}
	if sum != int64(len(rest)) {
		return nil, nil, errShort
	}
	offsets = append(offsets[:0], 0)
	at := uint32(0)
	for _, n := range lengths {
		at += uint32(n)
		offsets = append(offsets, at)
	}
	return append(dst[:0], rest...), offsets, nil
}

// readPrefixedTexts does the same for texts of which each is the beginning of the one before
// and a rest: all lengths of the beginnings stand first, then the rests as texts.
func readPrefixedTexts(dst, src []byte, offsets []uint32, most int) ([]byte, []uint32, error) {
	prefixes, src, same, err := readLengths(nil, src, most)
	if err != nil {
		return nil, nil, err
	}
	rests, src, sum, err := readLengths(nil, src, most)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case len(rests) != len(prefixes) || sum != int64(len(src)):
		return nil, nil, errShort
	case same+sum > math.MaxInt32:
		return nil, nil, errTooMuchText
	}
	dst, offsets = resized(dst, int(min(same+sum, maxPooled)))[:0], append(offsets[:0], 0)
	last := 0 // where the text before begins
	for i, n := range prefixes {
		if int(n) > len(dst)-last {
			return nil, nil, fmt.Errorf("a text begins with %d bytes of one of %d", n, len(dst)-last)
		}
		begin := dst[last : last+int(n)]
		last = len(dst)
		dst = append(append(dst, begin...), src[:rests[i]]...)
		src = src[rests[i]:]
		offsets = append(offsets, uint32(len(dst)))
	}
	return dst, offsets, nil
}
