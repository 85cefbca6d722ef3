package parquet

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/columnar"
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
	coded  []byte // its codes, run-length encoded
}

const firstSlots = 1024

// reset forgets the texts but keeps the memory.
func (d *dictionaryWriter) reset() {
	d.plain, d.ends, d.codes = d.plain[:0], d.ends[:0], d.codes[:0]
	d.total, d.source, d.known = 0, nil, d.known[:0]
	d.makeSlots(firstSlots)
}

// makeSlots makes n free slots.
func (d *dictionaryWriter) makeSlots(n int) {
	if n > cap(d.slots) {
		d.slots = make([]uint64, n)
		return
	}
	d.slots = d.slots[:n]
	clear(d.slots)
}

// bytes is the memory it keeps.
func (d *dictionaryWriter) bytes() int {
	return cap(d.plain) + 4*cap(d.ends) + 8*cap(d.slots) + 4*cap(d.codes) + 4*cap(d.known) + cap(d.used) + cap(d.coded)
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
	d.makeSlots(2 * len(d.slots))
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
		d.known = slices.Grow(d.known[:0], values.Len())[:values.Len()]
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
	b, err := appendCodes(b, &d.coded, d.codes, len(d.ends))
	if err != nil {
		return nil, err
	}
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

// appendCodes appends the width of codes of a dictionary of n values, and the codes, which
// are encoded into scratch.
func appendCodes(b []byte, scratch *[]byte, codes []int32, n int) ([]byte, error) {
	width := bits.Len(uint(max(n-1, 1)))
	e := rle.Encoding{BitWidth: width}
	coded, err := e.EncodeInt32(*scratch, codes)
	*scratch = coded
	return append(append(b, byte(width)), coded...), err
}

// valueDictionary gives numbers of four or eight bytes codes, in order of first sight.
type valueDictionary struct {
	values []uint64
	slots  []uint32 // code+1, 0: free; a power of two, a quarter full at most
	codes  []int32  // of the page being encoded
	coded  []byte   // these, run-length encoded
}

// Numbers are coded while they are so few that a code has at most half their bytes.
const (
	maxValues   = 1 << 14
	valueSample = 8192
	uniqueTest  = 512 // values of a page that tell a column of unique ones
	firstValues = 256 // room to begin with: few different values stay in the fastest cache
)

// encode codes a page of values of size bytes each. It is false if there are too many
// different ones; then the values are as they were, and nothing more can be coded.
func (d *valueDictionary) encode(values []byte, size int) bool {
	n := len(values) / size
	if len(d.values) == 0 && d.hardlyRepeats(values, size) {
		return false
	}
	d.makeRoom(len(d.values) + firstValues)
	d.codes = slices.Grow(d.codes[:0], n)[:n]
	sampled := len(d.values)
	last, code, ok := numberAt(values, size, 0), int32(0), false
	for i := range d.codes {
		// Sorted columns come in runs.
		if v := numberAt(values, size, i); !ok || v != last {
			last = v
			code, ok = d.code(v)
		}
		d.codes[i] = code
		// Most columns of many values are found out early.
		if !ok || i == valueSample && len(d.values)-sampled > valueSample/2 {
			d.values = d.values[:sampled] // the slots are not used any more
			return false
		}
	}
	return true
}

func numberAt(values []byte, size, i int) uint64 {
	if size == 8 {
		return binary.LittleEndian.Uint64(values[8*i:])
	}
	return uint64(binary.LittleEndian.Uint32(values[4*i:]))
}

// hardlyRepeats says whether at most one value is met twice among pairs of neighbours
// taken here and there: a key, which no dictionary makes smaller. By the birthday rule
// so few of one page's values that a dictionary pays would meet several times. The
// places are irregular, so that values which come round are met, too.
func (d *valueDictionary) hardlyRepeats(values []byte, size int) bool {
	n := len(values) / size
	pairs := min(n/2, uniqueTest) / 2
	if pairs < uniqueTest/8 {
		return false
	}
	d.makeRoom(2 * pairs)
	stride := n / pairs
	for k := range pairs {
		at := k*stride + int(valueHash(uint64(k))%uint64(stride-1))
		d.code(numberAt(values, size, at))
		d.code(numberAt(values, size, at+1))
	}
	different := len(d.values)
	d.reset()
	return different >= 2*pairs-1
}

// makeRoom makes slots for n values.
func (d *valueDictionary) makeRoom(n int) {
	if 4*n <= len(d.slots) {
		return
	}
	clear(d.slots)
	if size := 1 << bits.Len(uint(4*n-1)); size <= cap(d.slots) {
		d.slots = d.slots[:size]
	} else {
		d.slots = make([]uint32, size)
		columnar.Touch(d.slots)
	}
	mask := uint64(len(d.slots) - 1)
	for i, v := range d.values {
		at := valueHash(v) & mask
		for d.slots[at] != 0 {
			at = (at + 1) & mask
		}
		d.slots[at] = uint32(i + 1)
	}
}

func valueHash(v uint64) uint64 { return v * 0x9e3779b97f4a7c15 >> 40 }

func (d *valueDictionary) code(v uint64) (int32, bool) {
	mask := uint64(len(d.slots) - 1)
	for i := valueHash(v) & mask; ; i = (i + 1) & mask {
		s := d.slots[i]
		if s == 0 {
			if len(d.values) == maxValues {
				return 0, false
			}
			d.values = append(d.values, v)
			d.slots[i] = uint32(len(d.values))
			if 4*len(d.values) > len(d.slots) {
				d.makeRoom(2 * len(d.values))
			}
			return int32(len(d.values) - 1), true
		}
		if d.values[s-1] == v {
			return int32(s - 1), true
		}
	}
}

// plain is the content of the dictionary page.
func (d *valueDictionary) plain(size int) []byte {
	b := make([]byte, 0, len(d.values)*size)
	for _, v := range d.values {
		if size == 8 {
			b = binary.LittleEndian.AppendUint64(b, v)
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	}
	return b
}

// bytes is the memory it keeps.
func (d *valueDictionary) bytes() int {
	return 8*cap(d.values) + 4*cap(d.slots) + 4*cap(d.codes) + cap(d.coded)
}

// reset forgets the values but keeps the memory. What is beyond the slots is zero.
func (d *valueDictionary) reset() {
	clear(d.slots)
	d.values, d.slots = d.values[:0], d.slots[:0]
}
