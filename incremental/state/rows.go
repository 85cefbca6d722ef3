package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/arena"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

// Rows live in segments, so that growing copies nothing.
const (
	segmentBits = 16
	segmentRows = 1 << segmentBits
	smallRows   = 1 << 10 // of a first segment that may still double
)

// segments holds width elements of T a row. For width 2, row 65537 is segs[1][2:4].
type segments[T any] struct {
	width int
	segs  [][]T
}

// grow makes room for rows; those added are zero.
func (s *segments[T]) grow(rows int) {
	if rows == 0 || s.width == 0 {
		return
	}
	want := (rows + segmentRows - 1) >> segmentBits
	if len(s.segs) == 0 {
		s.segs = append(s.segs, nil)
	}
	if first := len(s.segs[0]) / s.width; first < min(rows, segmentRows) {
		size := smallRows
		for size < min(rows, segmentRows) {
			size *= 2
		}
		g := make([]T, size*s.width)
		copy(g, s.segs[0])
		s.segs[0] = g
	}
	for len(s.segs) < want {
		s.segs = append(s.segs, make([]T, segmentRows*s.width))
	}
}

// shrink lets go of the segments that lie wholly beyond rows.
func (s *segments[T]) shrink(rows int) {
	keep := max((rows+segmentRows-1)>>segmentBits, 1)
	if keep < len(s.segs) {
		clear(s.segs[keep:])
		s.segs = s.segs[:keep]
	}
}

func (s *segments[T]) row(r uint32) []T {
	if s.width == 0 {
		return nil
	}
	at := int(r&(segmentRows-1)) * s.width
	return s.segs[r>>segmentBits][at : at+s.width]
}

func (s *segments[T]) bytes(size int) int64 {
	n := 0
	for _, seg := range s.segs {
		n += len(seg)
	}
	return int64(n * size)
}

// rowColumn says where a column lies in a packed row.
type rowColumn struct {
	dt    arrow.DataType
	width int  // bytes: 1, 2, 4, 8 or 16; a text is a cell of 16
	word  int  // first word
	shift uint // bits into the word, for widths below 8
	text  bool
	codec *keyenc.Codec // of nested columns, which are kept as bytes
	// A derived column has the word of the one it is derived from, and is plus away from it.
	derived bool
	from    int
	plus    int64
}

// rowStore keeps typed rows packed into words, wide columns first. A text is two
// words, as in package group: length uint32 | bytes 0-3, then bytes 4-11, or for more
// than twelve bytes its place in the arena.
type rowStore struct {
	columns   []rowColumn
	stride    int  // words a row
	nullWords int  // words of null bits a row
	canonical bool // keys: one NaN, one zero, one form of an interval
	narrow    bool // some columns share a word
	texts     []int
	words     segments[uint64]
	nulls     segments[uint64] // no segments until something is null
	arena     arena.Arena
}

const shortText = 12

func newRowStore(fields []arrow.Field, canonical bool, derived ...DerivedColumn) (*rowStore, error) {
	s := &rowStore{columns: make([]rowColumn, len(fields)), canonical: canonical, nullWords: (len(fields) + 63) / 64}
	for i, f := range fields {
		c, err := newRowColumn(f, canonical)
		if err != nil {
			return nil, err
		}
		if c.text {
			s.texts = append(s.texts, i)
		}
		s.columns[i] = c
	}
	for _, d := range derived {
		c := &s.columns[d.Column]
		c.derived, c.from, c.plus = true, d.From, d.Plus
	}
	s.layOut()
	return s, nil
}

func newRowColumn(f arrow.Field, canonical bool) (c rowColumn, err error) {
	c.dt = f.Type
	switch f.Type.ID() {
	case arrow.STRING, arrow.BINARY:
		c.width, c.text = 16, true
	case arrow.LIST, arrow.STRUCT, arrow.MAP:
		c.codec, err = keyenc.New([]arrow.DataType{f.Type}, []keyenc.Order{{Exact: !canonical}})
		c.width, c.text = 16, true
	case arrow.BOOL:
		c.width = 1
	default:
		fixed, ok := f.Type.(arrow.FixedWidthDataType)
		if !ok || !columnar.Supported(f.Type) {
			return c, fmt.Errorf("column %s of type %s cannot be kept as state", f.Name, columnar.TypeName(f.Type))
		}
		c.width = fixed.BitWidth() / 8
	}
	return c, err
}

// layOut gives the columns their places in a row.
func (s *rowStore) layOut() {
	var order []int
	for i := range s.columns {
		if !s.columns[i].derived {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return s.columns[b].width - s.columns[a].width })
	at := 0
	for _, i := range order {
		c := &s.columns[i]
		c.word, c.shift = at/8, uint(at%8)*8
		at += c.width
		s.narrow = s.narrow || c.width < 8
	}
	for i := range s.columns {
		if c := &s.columns[i]; c.derived {
			c.word = s.columns[c.from].word
		}
	}
	s.stride = (at + 7) / 8
	s.words.width = s.stride
	s.nulls.width = s.nullWords
}

func (s *rowStore) bytes() int64 { return s.words.bytes(8) + s.nulls.bytes(8) + int64(s.arena.Room()) }

// grow makes room for rows slots.
func (s *rowStore) grow(rows int) {
	s.words.grow(rows)
	if s.nulls.segs != nil {
		s.nulls.grow(rows)
	}
}

func (s *rowStore) shrink(rows int) {
	s.words.shrink(rows)
	if s.nulls.segs != nil {
		s.nulls.shrink(rows)
	}
}

// packed is a batch in the form of a rowStore. Its memory is used again.
type packed struct {
	n      int
	words  []uint64
	nulls  []uint64
	null   bool     // something is null
	long   bool     // some text is not short
	data   [][]byte // per column: what its long texts point into
	keys   []keyenc.Keys
	plain  []arrow.Array // decoded dictionaries, until release
	hashes []uint64
}

func (p *packed) release() {
	for _, a := range p.plain {
		a.Release()
	}
	p.plain = p.plain[:0]
	clear(p.data)
}

// pack brings n rows of columns into p. only is the one column to pack, or -1.
func (s *rowStore) pack(mem memory.Allocator, columns []arrow.Array, n int, p *packed, only int) error {
	p.n, p.null, p.long = n, false, false
	p.words = resized(p.words, n*s.stride)
	p.nulls = resized(p.nulls, n*s.nullWords)
	if s.narrow {
		clear(p.words)
	}
	p.data = resized(p.data, len(s.columns))
	p.keys = resized(p.keys, len(s.columns))
	for i := range s.columns {
		if only >= 0 && i != only {
			continue
		}
		a := columns[0]
		if only < 0 {
			a = columns[i]
		}
		if a.Len() != n {
			return fmt.Errorf("bug: a state column of %d rows, not %d", a.Len(), n)
		}
		if a.DataType().ID() == arrow.DICTIONARY {
			a = columnar.PlainColumn(mem, a)
			p.plain = append(p.plain, a)
		}
		if !arrow.TypeEqual(a.DataType(), s.columns[i].dt) {
			return fmt.Errorf("bug: state column %d is %s, not %s", i, a.DataType(), s.columns[i].dt)
		}
		if err := s.packColumn(i, a, p); err != nil {
			return err
		}
	}
	return nil
}

func (s *rowStore) packColumn(number int, a arrow.Array, p *packed) error {
	c := &s.columns[number]
	if p.n == 0 {
		return nil
	}
	switch {
	case c.derived:
		return s.checkDerived(number, a, p)
	case c.codec != nil:
		k := &p.keys[number]
		k.Reset()
		if err := c.codec.Encode([]arrow.Array{a}, k); err != nil {
			return err
		}
		p.data[number] = k.Data
		packTexts(c, p, s.stride, k.Data, k.Offsets)
	case c.text:
		d := a.Data()
		offsets := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+p.n+1]
		if d.Buffers()[2] != nil {
			p.data[number] = d.Buffers()[2].Bytes()
		}
		packTexts(c, p, s.stride, p.data[number], offsets)
	default:
		s.packFixed(c, a, p)
	}
	if a.NullN() > 0 {
		s.packNulls(number, a, p)
	}
	return nil
}

// checkDerived makes sure that a column is what its row store derives it to be, and marks
// its nulls.
func (s *rowStore) checkDerived(number int, a arrow.Array, p *packed) error {
	c := &s.columns[number]
	values, wrong := raw[int64](a, 1), false
	if a.NullN() == 0 && !p.null {
		for i, v := range values {
			wrong = wrong || v != int64(p.words[i*s.stride+c.word])+c.plus
		}
	} else {
		for i, v := range values {
			null := p.null && p.nulls[i*s.nullWords+c.from/64]>>(c.from%64)&1 != 0
			wrong = wrong || a.IsNull(i) != null || !null && v != int64(p.words[i*s.stride+c.word])+c.plus
			if null {
				p.nulls[i*s.nullWords+number/64] |= 1 << (number % 64)
			}
		}
	}
	if wrong {
		return fmt.Errorf("bug: state column %d is not always %d after column %d", number, c.plus, c.from)
	}
	return nil
}

func packTexts[T int | int32](c *rowColumn, p *packed, stride int, data []byte, offsets []T) {
	for i := range p.n {
		w, x, long := cellOf(data, int(offsets[i]), int(offsets[i+1]))
		at := i*stride + c.word
		p.words[at], p.words[at+1] = w, x
		p.long = p.long || long
	}
}

// cellOf makes the two words of data[from:to]; the place of a long text is from.
func cellOf(data []byte, from, to int) (w, x uint64, long bool) {
	n := to - from
	if n > shortText {
		return uint64(uint32(n)) | uint64(binary.LittleEndian.Uint32(data[from:]))<<32, uint64(from), true
	}
	if n > 0 && from+16 <= len(data) {
		lo := binary.LittleEndian.Uint64(data[from:])
		hi := binary.LittleEndian.Uint64(data[from+4:])
		w = uint64(n) | lo&(1<<(8*min(n, 4))-1)<<32
		if n > 4 {
			x = hi & (^uint64(0) >> (64 - 8*(n-4)))
		}
		return w, x, false
	}
	var b [16]byte
	copy(b[:], data[from:to])
	return uint64(n) | uint64(binary.LittleEndian.Uint32(b[:]))<<32, binary.LittleEndian.Uint64(b[4:]), false
}

// raw is the values of a fixed-width array as a slice of T, perRow of them a row.
func raw[T any](a arrow.Array, perRow int) []T {
	d := a.Data()
	b := d.Buffers()[1].Bytes()
	var zero T
	all := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
	return all[d.Offset()*perRow : (d.Offset()+d.Len())*perRow]
}

func (s *rowStore) packFixed(c *rowColumn, a arrow.Array, p *packed) {
	switch {
	case c.dt.ID() == arrow.BOOL:
		b := a.(*array.Boolean)
		for i := range p.n {
			if b.Value(i) {
				p.words[i*s.stride+c.word] |= 1 << c.shift
			}
		}
	case s.canonical && c.dt.ID() == arrow.FLOAT64:
		for i, v := range raw[float64](a, 1) {
			p.words[i*s.stride+c.word] = canonical64(v)
		}
	case s.canonical && c.dt.ID() == arrow.FLOAT32:
		for i, v := range raw[float32](a, 1) {
			p.words[i*s.stride+c.word] |= uint64(canonical32(v)) << c.shift
		}
	case s.canonical && c.dt.ID() == arrow.INTERVAL_MONTH_DAY_NANO:
		v := raw[uint64](a, 2)
		for i := range p.n {
			at := i*s.stride + c.word
			p.words[at], p.words[at+1] = columnar.IntervalBits(v[2*i], v[2*i+1])
		}
	case c.width == 1:
		packNarrow(p.words, s.stride, c, raw[uint8](a, 1))
	case c.width == 2:
		packNarrow(p.words, s.stride, c, raw[uint16](a, 1))
	case c.width == 4:
		packNarrow(p.words, s.stride, c, raw[uint32](a, 1))
	case c.width == 8:
		for i, v := range raw[uint64](a, 1) {
			p.words[i*s.stride+c.word] = v
		}
	default:
		v := raw[uint64](a, 2)
		for i := range p.n {
			at := i*s.stride + c.word
			p.words[at], p.words[at+1] = v[2*i], v[2*i+1]
		}
	}
}

func packNarrow[T uint8 | uint16 | uint32](dst []uint64, stride int, c *rowColumn, src []T) {
	word, shift := c.word, c.shift&63
	for i, v := range src {
		dst[i*stride+word] |= uint64(v) << shift
	}
}

func canonical64(v float64) uint64 {
	if v == 0 {
		return 0
	}
	if v != v {
		v = math.NaN()
	}
	return math.Float64bits(v)
}

func canonical32(v float32) uint32 {
	if v == 0 {
		return 0
	}
	if v != v {
		return 0x7FC00000
	}
	return math.Float32bits(v)
}

// mask covers the bits of a column below 8 bytes in its word.
func (c *rowColumn) mask() uint64 {
	if c.width >= 8 {
		return ^uint64(0)
	}
	return (1<<(8*c.width) - 1) << c.shift
}

// packNulls marks null rows and clears their values.
func (s *rowStore) packNulls(number int, a arrow.Array, p *packed) {
	c := &s.columns[number]
	keep := ^c.mask()
	if !p.null {
		clear(p.nulls)
	}
	for i := range p.n {
		if a.IsValid(i) {
			continue
		}
		p.null = true
		p.nulls[i*s.nullWords+number/64] |= 1 << (number % 64)
		at := i*s.stride + c.word
		p.words[at] &= keep
		if c.width == 16 {
			p.words[at+1] = 0
		}
	}
}

var hashSeed = rand.Uint64()

const (
	mix1 = 0x9E3779B97F4A7C15
	mix2 = 0xD6E8FEB86659FD93
	mix3 = 0xA0761D6478BD642F
)

func fold(x, k uint64) uint64 {
	hi, lo := bits.Mul64(x, k)
	return hi ^ lo
}

// hash fills p.hashes.
func (s *rowStore) hash(p *packed) {
	p.hashes = resized(p.hashes, p.n)
	if p.long {
		for i := range p.hashes {
			p.hashes[i] = s.hashLong(p.words[i*s.stride:(i+1)*s.stride], s.packedNulls(p, i), func(c int, at uint64, n int) []byte {
				return p.data[c][at : at+uint64(n)]
			})
		}
		return
	}
	if !p.null { // as hashWords does
		seed, words := hashSeed, p.words
		for i := range p.hashes {
			h := seed
			for _, w := range words[:s.stride] {
				h = fold(h^w, mix1) + mix3
			}
			p.hashes[i], words = h*mix2, words[s.stride:]
		}
		return
	}
	for i := range p.hashes {
		p.hashes[i] = hashWords(p.words[i*s.stride:(i+1)*s.stride], s.packedNulls(p, i))
	}
}

func hashWords(words, nulls []uint64) uint64 {
	h := hashSeed
	for _, w := range words {
		h = fold(h^w, mix1) + mix3
	}
	h *= mix2
	for _, w := range nulls {
		h ^= w * mix3
	}
	return h
}

// hashLong is hashWords with the content of long texts in place of where they are.
func (s *rowStore) hashLong(words, nulls []uint64, text func(column int, at uint64, n int) []byte) uint64 {
	var buf [16]uint64
	row := append(buf[:0], words...)
	for _, c := range s.texts {
		if n := int(uint32(row[s.columns[c].word])); n > shortText {
			at := s.columns[c].word + 1
			row[at] = xxh3.HashSeed(text(c, row[at], n), hashSeed)
		}
	}
	return hashWords(row, nulls)
}

func (s *rowStore) packedNulls(p *packed, i int) []uint64 {
	if !p.null {
		return nil
	}
	return p.nulls[i*s.nullWords : (i+1)*s.nullWords]
}

func (s *rowStore) rowNulls(row uint32) []uint64 {
	if s.nulls.segs == nil {
		return nil
	}
	return s.nulls.row(row)
}

// hashRow is the hash of a stored row.
func (s *rowStore) hashRow(row uint32) uint64 {
	words := s.words.row(row)
	for _, c := range s.texts {
		if uint32(words[s.columns[c].word]) > shortText {
			return s.hashLong(words, s.rowNulls(row), s.arenaText)
		}
	}
	return hashWords(words, s.rowNulls(row))
}

func (s *rowStore) arenaText(_ int, at uint64, n int) []byte { return s.arena.Text(at, n) }

// equal compares a stored row with row i of p.
func (s *rowStore) equal(row uint32, p *packed, i int) bool {
	words, other := s.words.row(row), p.words[i*s.stride:(i+1)*s.stride]
	if p.long {
		if !s.equalLong(words, other, p) {
			return false
		}
	} else {
		for k, w := range words {
			if w != other[k] {
				return false
			}
		}
	}
	if !p.null && s.nulls.segs == nil {
		return true
	}
	return equalNulls(s.rowNulls(row), s.packedNulls(p, i))
}

// equalNulls compares null bits; absent ones are zero.
func equalNulls(a, b []uint64) bool {
	if a == nil {
		a, b = b, a
	}
	for i, w := range a {
		if b == nil && w != 0 || b != nil && w != b[i] {
			return false
		}
	}
	return true
}

func (s *rowStore) equalLong(words, other []uint64, p *packed) bool {
	texts := s.texts
	for k := 0; k < len(words); k++ {
		if words[k] == other[k] && !(len(texts) > 0 && k == s.columns[texts[0]].word) {
			continue
		}
		if len(texts) == 0 || k != s.columns[texts[0]].word || words[k] != other[k] {
			return false
		}
		c, n := texts[0], uint64(uint32(words[k]))
		texts = texts[1:]
		k++
		if n > shortText {
			if !bytes.Equal(s.arena.Text(words[k], int(n)), p.data[c][other[k]:other[k]+n]) {
				return false
			}
		} else if words[k] != other[k] {
			return false
		}
	}
	return true
}

// equalRows compares two stored rows.
func (s *rowStore) equalRows(a, b uint32) bool {
	x, y := s.words.row(a), s.words.row(b)
	texts := s.texts
	for k := 0; k < len(x); k++ {
		if x[k] != y[k] {
			return false
		}
		if len(texts) == 0 || k != s.columns[texts[0]].word {
			continue
		}
		n := uint64(uint32(x[k]))
		texts = texts[1:]
		k++
		if n <= shortText {
			if x[k] != y[k] {
				return false
			}
		} else if !bytes.Equal(s.arena.Text(x[k], int(n)), s.arena.Text(y[k], int(n))) {
			return false
		}
	}
	return equalNulls(s.rowNulls(a), s.rowNulls(b))
}

// put stores row i of p in a slot that is free or was freed.
func (s *rowStore) put(row uint32, p *packed, i, rows int) {
	words := s.words.row(row)
	copy(words, p.words[i*s.stride:(i+1)*s.stride])
	if p.long {
		for _, c := range s.texts {
			s.keepText(words, c, p)
		}
	}
	s.putNulls(row, p, i, rows)
}

// keepText copies a long text into the arena.
func (s *rowStore) keepText(words []uint64, c int, p *packed) {
	at := s.columns[c].word
	n := uint64(uint32(words[at]))
	if n <= shortText {
		return
	}
	from := words[at+1]
	words[at+1] = s.arena.Keep(p.data[c][from : from+n])
}

func (s *rowStore) putNulls(row uint32, p *packed, i, rows int) {
	if p.null && s.nulls.segs == nil {
		s.nulls.grow(rows)
	}
	if s.nulls.segs == nil {
		return
	}
	if p.null {
		copy(s.nulls.row(row), s.packedNulls(p, i))
	} else {
		clear(s.nulls.row(row))
	}
}

// putNull makes a row all null.
func (s *rowStore) putNull(row uint32, rows int) {
	if len(s.columns) == 0 {
		return
	}
	clear(s.words.row(row))
	if s.nulls.segs == nil {
		s.nulls.grow(rows)
	}
	n := s.nulls.row(row)
	for c := range s.columns {
		n[c/64] |= 1 << (c % 64)
	}
}

// putColumn stores one column of row i of p, which was packed alone.
func (s *rowStore) putColumn(row uint32, p *packed, i, column, rows int) {
	c := &s.columns[column]
	words := s.words.row(row)
	src := p.words[i*s.stride : (i+1)*s.stride]
	if c.text {
		s.dropText(words, c)
	}
	mask := c.mask()
	words[c.word] = words[c.word]&^mask | src[c.word]&mask
	if c.width == 16 {
		words[c.word+1] = src[c.word+1]
	}
	if c.text {
		s.keepText(words, column, p)
	}
	if p.null && s.nulls.segs == nil {
		s.nulls.grow(rows)
	}
	if s.nulls.segs != nil {
		bit := uint64(1) << (column % 64)
		n := s.nulls.row(row)
		n[column/64] &^= bit
		if p.null {
			n[column/64] |= p.nulls[i*s.nullWords+column/64] & bit
		}
	}
}

func (s *rowStore) dropText(words []uint64, c *rowColumn) {
	if n := int(uint32(words[c.word])); n > shortText {
		s.arena.Drop(n)
	}
}

// free gives up what a row holds beside its slot.
func (s *rowStore) free(row uint32) {
	if len(s.texts) == 0 {
		return
	}
	words := s.words.row(row)
	for _, c := range s.texts {
		s.dropText(words, &s.columns[c])
	}
}

// move copies a row to another slot; the old one is not to be freed.
func (s *rowStore) move(from, to uint32) {
	copy(s.words.row(to), s.words.row(from))
	if s.nulls.segs != nil {
		copy(s.nulls.row(to), s.nulls.row(from))
	}
}

// staleText is the least dead text that is worth going through all rows.
const staleText = 1 << 20

// tidy copies the arena once half of it is dead. live ranges over the rows there are.
func (s *rowStore) tidy(live func(yield func(row uint32) bool)) {
	if !s.arena.IsStale(staleText) {
		return
	}
	old := s.arena
	s.arena = arena.Arena{}
	for row := range live {
		words := s.words.row(row)
		for _, c := range s.texts {
			at := s.columns[c].word
			if n := int(uint32(words[at])); n > shortText {
				words[at+1] = s.arena.Keep(old.Text(words[at+1], n))
			}
		}
	}
}

func (s *rowStore) isNull(row uint32, column int) bool {
	return s.nulls.segs != nil && s.nulls.row(row)[column/64]>>(column%64)&1 != 0
}

// prefix is the order prefix in an integer, date or timestamp column.
func (s *rowStore) prefix(row uint32, column int) int64 {
	if s.isNull(row, column) {
		return neverEvicted
	}
	c := &s.columns[column]
	w := s.words.row(row)[c.word] >> c.shift
	switch c.width {
	case 1:
		return int64(int8(w))
	case 2:
		return int64(int16(w))
	case 4:
		return int64(int32(w))
	}
	return int64(w) + c.plus
}

// resized returns s with length n; what it held is kept where it fits.
func resized[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	g := make([]T, n, max(n, 2*cap(s)))
	copy(g, s)
	return g
}
