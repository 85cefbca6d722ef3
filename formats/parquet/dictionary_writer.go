package parquet

import (
	"bytes"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/zeebo/xxh3"
)

// dictionaryWriter gives texts codes in order of first sight.
//
//	plain  04 00 00 00 p a r k  03 00 00 00 s e a     as the dictionary page stores it
//	ends   8 15                                        of each text in plain
//	slots  hash (upper half) | code+1, 0: free         open addressing, a power of two
type dictionaryWriter struct {
	plain []byte
	ends  []uint32
	slots []uint64
	codes []int32 // of the page being filled
	total int     // codes given out in all
	// The dictionary of the batches written last, and its codes in ours (-1: not
	// looked up yet). All batches of a row group share one.
	source arrow.Array
	known  []int32
	used   []bool // by the page being ended
}

const firstSlots = 1024

func newDictionaryWriter() *dictionaryWriter {
	return &dictionaryWriter{slots: make([]uint64, firstSlots)}
}

// text is the text of a code.
func (d *dictionaryWriter) text(code int32) []byte {
	from := uint32(0)
	if code > 0 {
		from = d.ends[code-1]
	}
	return d.plain[from+4 : d.ends[code]]
}

// code is the code of v, a new one if v was not seen.
func (d *dictionaryWriter) code(v []byte) int32 {
	hash := xxh3.Hash(v)
	mask := uint64(len(d.slots) - 1)
	tag := hash &^ (1<<32 - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := d.slots[i]
		if s == 0 {
			return d.insert(i, tag, v)
		}
		if code := int32(s) - 1; s&^(1<<32-1) == tag && bytes.Equal(d.text(code), v) {
			return code
		}
	}
}

func (d *dictionaryWriter) insert(slot, tag uint64, v []byte) int32 {
	code := int32(len(d.ends))
	n := len(v)
	d.plain = append(d.plain, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	d.plain = append(d.plain, v...)
	d.ends = append(d.ends, uint32(len(d.plain)))
	d.slots[slot] = tag | uint64(code+1)
	if len(d.ends)*5 > len(d.slots)*3 {
		d.grow()
	}
	return code
}

func (d *dictionaryWriter) grow() {
	d.slots = make([]uint64, 2*len(d.slots))
	mask := uint64(len(d.slots) - 1)
	for code := range d.ends {
		hash := xxh3.Hash(d.text(int32(code)))
		i := hash & mask
		for d.slots[i] != 0 {
			i = (i + 1) & mask
		}
		d.slots[i] = hash&^(1<<32-1) | uint64(code+1)
	}
}

// translation maps the codes of another dictionary to ours; -1 is not known yet.
func (d *dictionaryWriter) translation(values arrow.Array) []int32 {
	if d.source == nil || d.source.Data() != values.Data() {
		// The array is only compared, never read, once its batch is released; it is
		// kept reachable so that no other takes its place.
		d.source = values
		d.known = make([]int32, values.Len())
		for i := range d.known {
			d.known[i] = -1
		}
	}
	return d.known
}

// A dictionary larger than this, or with fewer than two values a text on the average,
// costs more than it saves.
const (
	maxDictionary = 4 << 20
	minSample     = 8 << 10
)

func (d *dictionaryWriter) tooLarge() bool {
	total := d.total + len(d.codes)
	return len(d.plain) > maxDictionary || total >= minSample && len(d.ends) > total/2
}

// appendPage appends the codes of the page to b, and adds the texts they stand for to
// x; then the next page begins.
func (d *dictionaryWriter) appendPage(b []byte, x *extremes) ([]byte, error) {
	width := bits.Len(uint(max(len(d.ends)-1, 1)))
	e := rle.Encoding{BitWidth: width}
	coded, err := e.EncodeInt32(nil, d.codes)
	if err != nil {
		return nil, err
	}
	b = append(append(b, byte(width)), coded...)
	d.used = append(d.used[:0], make([]bool, len(d.ends))...)
	for _, c := range d.codes {
		d.used[c] = true
	}
	for c, used := range d.used {
		if used {
			x.addBytes(d.text(int32(c)))
		}
	}
	d.total += len(d.codes)
	d.codes = d.codes[:0]
	return b, nil
}
