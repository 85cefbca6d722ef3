package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
)

// valueForm is how the values of the current page are stored.
type valueForm uint8

const (
	formFixed valueForm = iota // values of fixed width, one after another
	formCodes                  // codes of the dictionary
	formBits                   // booleans, a bit each
	formRuns                   // booleans, run-length encoded
	formTexts                  // texts, each after its length
	formDense                  // texts, one after another, with offsets
)

// leafReader reads one column chunk into vectors. It decodes as many values as are
// asked for, straight from the page to the vector.
type leafReader struct {
	leaf    *node
	pages   *chunkPages
	page    dataPage
	left    int // levels left in the page
	vector  vector
	stored  int // width of a stored value, 0 if they vary
	convert converter
	widen   widening
	native  int // width of the engine type before widening

	form    valueForm
	data    []byte // formFixed: values left; formTexts: bytes left
	bit     int    // formBits: next bit
	codes   hybrid // formCodes, formRuns
	offsets []uint32
	scratch []byte // decoded pages of delta encodings

	keepCodes   bool        // the reader may give codes out
	dictionary  arrow.Array // of texts
	dictFixed   []byte      // of values of fixed width, converted
	dictLen     int
	defs, slots []byte // levels of the rows being read
	reps        []byte
}

func newLeafReader(mem memory.Allocator, leaf *node, want arrow.DataType, zone *time.Location, pages *chunkPages) (*leafReader, error) {
	w, err := newWidening(leaf.typ, want)
	if err != nil {
		return nil, err
	}
	return &leafReader{
		leaf: leaf, pages: pages, stored: storedWidth(leaf), convert: newConverter(leaf, zone), widen: w, native: width(leaf.typ),
		vector: vector{mem: mem, typ: want, width: width(want), text: want.ID() == arrow.STRING},
	}, nil
}

func (r *leafReader) close() {
	r.vector.release()
	r.pages.close()
	if r.dictionary != nil {
		r.dictionary.Release()
		r.dictionary = nil
	}
}

// nextPage makes the next page current; false at the end of the chunk.
func (r *leafReader) nextPage() (bool, error) {
	err := r.pages.next(&r.page, r.setDictionary)
	if err == io.EOF {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.left = r.page.values
	return true, r.openValues()
}

// openValues prepares to decode the values of the page.
func (r *leafReader) openValues() error {
	p := &r.page
	switch p.encoding {
	case format.Plain:
		r.data = p.data
		switch {
		case r.leaf.physical == format.Boolean:
			r.form, r.bit = formBits, 0
		case r.stored > 0:
			r.form = formFixed
		default:
			r.form = formTexts
		}
		return nil
	case format.RLEDictionary, format.PlainDictionary:
		return r.openCodes()
	case format.RLE:
		if r.leaf.physical != format.Boolean || len(p.data) < 4 {
			break
		}
		size := int64(binary.LittleEndian.Uint32(p.data))
		if size > int64(len(p.data)-4) {
			return errShort
		}
		r.form, r.codes = formRuns, newHybrid(p.data[4:4+size], 1)
		return nil
	case format.ByteStreamSplit:
		return r.openSplit()
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray, format.DeltaByteArray:
		return r.openDelta()
	}
	return fmt.Errorf("values of type %s are encoded as %s, which is not supported", r.leaf.physical, p.encoding)
}

func (r *leafReader) openCodes() error {
	if r.dictionary == nil && r.dictFixed == nil {
		return errors.New("a page uses a dictionary, but there is none")
	}
	r.form = formCodes
	if len(r.page.data) == 0 { // all null
		r.codes = newHybrid(nil, 1)
		return nil
	}
	width := uint(r.page.data[0])
	if width > 31 {
		return fmt.Errorf("dictionary codes of %d bits", width)
	}
	r.codes = newHybrid(r.page.data[1:], width)
	return nil
}

// openSplit brings the bytes of each value together again.
func (r *leafReader) openSplit() error {
	w := r.stored
	if w == 0 || r.leaf.physical == format.Boolean || len(r.page.data)%w != 0 {
		return errDamaged
	}
	n := len(r.page.data) / w
	r.scratch = resized(r.scratch, len(r.page.data))
	for b := range w {
		stream := r.page.data[b*n : (b+1)*n]
		for i, x := range stream {
			r.scratch[i*w+b] = x
		}
	}
	r.form, r.data = formFixed, r.scratch
	return nil
}

// maxDelta bounds the values of a delta-encoded page, whose size says little about
// their number.
const maxDelta = 1 << 26

// openDelta decodes the whole page.
func (r *leafReader) openDelta() (err error) {
	if err := checkDelta(r.page.data, r.page.values); err != nil {
		return err
	}
	switch {
	case r.page.encoding == format.DeltaBinaryPacked && r.leaf.physical == format.Int32:
		var out []int32
		out, err = new(delta.BinaryPackedEncoding).DecodeInt32(arrow.Int32Traits.CastFromBytes(r.scratch), r.page.data)
		r.form, r.scratch = formFixed, arrow.Int32Traits.CastToBytes(out)
	case r.page.encoding == format.DeltaBinaryPacked && r.leaf.physical == format.Int64:
		var out []int64
		out, err = new(delta.BinaryPackedEncoding).DecodeInt64(arrow.Int64Traits.CastFromBytes(r.scratch), r.page.data)
		r.form, r.scratch = formFixed, arrow.Int64Traits.CastToBytes(out)
	case r.page.encoding == format.DeltaByteArray && r.leaf.physical == format.FixedLenByteArray:
		r.form = formFixed
		r.scratch, err = new(delta.ByteArrayEncoding).DecodeFixedLenByteArray(r.scratch, r.page.data, r.stored)
	case r.leaf.physical == format.ByteArray && r.page.encoding != format.DeltaBinaryPacked:
		var e encoding.Encoding = new(delta.LengthByteArrayEncoding)
		if r.page.encoding == format.DeltaByteArray {
			e = new(delta.ByteArrayEncoding)
		}
		r.form = formDense
		r.scratch, r.offsets, err = e.DecodeByteArray(r.scratch, r.page.data, r.offsets)
		return err
	default:
		return fmt.Errorf("values of type %s are encoded as %s", r.leaf.physical, r.page.encoding)
	}
	r.data = r.scratch
	return err
}

// checkDelta refuses a page whose header claims more values than the page has,
// before memory is allocated for them.
func checkDelta(data []byte, values int) error {
	at := 0
	for i := range 3 { // block size, mini blocks in it, values
		v, n := binary.Uvarint(data[at:])
		if n <= 0 {
			return errShort
		}
		at += n
		if i == 2 && (v > uint64(values) || v > maxDelta) {
			return fmt.Errorf("a page of %d values claims to hold %d", values, v)
		}
	}
	return nil
}

// setDictionary decodes and converts a dictionary page.
func (r *leafReader) setDictionary(data []byte, n int) error {
	if r.dictionary != nil || r.dictFixed != nil {
		return errors.New("it has two dictionaries")
	}
	r.dictLen = n
	if r.vector.width == 0 {
		return r.setTextDictionary(data, n)
	}
	d := leafReader{leaf: r.leaf, stored: r.stored, convert: r.convert, widen: r.widen, native: r.native,
		vector: vector{mem: r.vector.mem, typ: r.vector.typ, width: r.vector.width}}
	d.page = dataPage{values: n, encoding: format.Plain, data: data}
	if err := d.openValues(); err != nil {
		return err
	}
	if d.stored > 0 && len(data)/d.stored < n && r.leaf.physical != format.Boolean || d.stored == 0 && len(data)/4 < n {
		return errShort
	}
	d.vector.reset(n)
	defer d.vector.release()
	if err := d.appendValues(n); err != nil {
		return err
	}
	r.dictFixed = append([]byte{}, d.vector.buf.Bytes()[:n*r.vector.width]...)
	return nil
}

func (r *leafReader) setTextDictionary(data []byte, n int) error {
	d := leafReader{leaf: r.leaf, stored: r.stored,
		vector: vector{mem: r.vector.mem, typ: r.vector.typ, text: r.vector.text}}
	d.page = dataPage{values: n, encoding: format.Plain, data: data}
	if err := d.openValues(); err != nil {
		return err
	}
	least := r.stored
	if least == 0 {
		least = 4 // the length of a text
	}
	if n > len(data)/least {
		return errShort
	}
	d.vector.reset(n)
	defer d.vector.release()
	if err := d.appendValues(n); err != nil {
		return err
	}
	d.vector.n = n
	r.dictionary = d.vector.finish(nil)
	return nil
}

// appendValues decodes the next k values densely behind slot vector.n. It does not
// make slots of them; spread does.
func (r *leafReader) appendValues(k int) error {
	if k == 0 {
		return nil
	}
	switch {
	case r.form == formCodes:
		return r.appendCodes(k)
	case r.vector.width == 0 && r.stored > 0:
		return r.appendFixedTexts(k)
	case r.vector.width == 0:
		return r.appendTexts(k)
	case r.form == formTexts || r.form == formDense:
		return r.appendTextDecimals(k)
	}
	raw, err := r.raw(k)
	if err != nil {
		return err
	}
	return r.convertTo(r.vector.fixed(k), raw, k)
}

// raw returns the next k stored values of fixed width.
func (r *leafReader) raw(k int) ([]byte, error) {
	switch r.form {
	case formBits:
		out := r.vector.scrapFor(k)
		if (r.bit+k+7)/8 > len(r.data) {
			return nil, errShort
		}
		unpackBits(out, r.data, r.bit)
		r.bit += k
		return out, nil
	case formRuns:
		out := r.vector.scrapFor(k)
		return out, r.codes.levels(out)
	}
	size := k * r.stored
	if size > len(r.data) {
		return nil, errShort
	}
	out := r.data[:size]
	r.data = r.data[size:]
	return out, nil
}

func unpackBits(dst, bitmap []byte, at int) {
	i := 0
	for ; i < len(dst) && at&7 != 0; i, at = i+1, at+1 {
		dst[i] = bitmap[at>>3] >> (at & 7) & 1
	}
	for ; i+8 <= len(dst); i, at = i+8, at+8 {
		binary.LittleEndian.PutUint64(dst[i:], spreadBits(bitmap[at>>3]))
	}
	for ; i < len(dst); i, at = i+1, at+1 {
		dst[i] = bitmap[at>>3] >> (at & 7) & 1
	}
}

func (r *leafReader) convertTo(dst, raw []byte, k int) error {
	if r.widen == nil {
		return r.convert(dst, raw, k)
	}
	r.vector.scrap2 = resized(r.vector.scrap2, k*r.native)
	if err := r.convert(r.vector.scrap2, raw, k); err != nil {
		return err
	}
	return r.widen(dst, r.vector.scrap2, k)
}

// appendCodes appends codes, or the values they stand for.
func (r *leafReader) appendCodes(k int) error {
	v := &r.vector
	if v.codes || r.startCodes() {
		v.codes = true
		return r.readCodes(v.codeRoom(k))
	}
	if cap(v.lookup) < k {
		v.lookup = make([]int32, max(k, 1024))
	}
	codes := v.lookup[:k]
	if err := r.readCodes(codes); err != nil {
		return err
	}
	switch v.width {
	case 0:
		return v.gatherTexts(codes, r.dictionary)
	case 1:
		gather(v.fixed(k), r.dictFixed, codes)
	case 2:
		gather(arrow.Int16Traits.CastFromBytes(v.fixed(k)), arrow.Int16Traits.CastFromBytes(r.dictFixed), codes)
	case 4:
		gather(arrow.Int32Traits.CastFromBytes(v.fixed(k)), arrow.Int32Traits.CastFromBytes(r.dictFixed), codes)
	case 8:
		gather(arrow.Int64Traits.CastFromBytes(v.fixed(k)), arrow.Int64Traits.CastFromBytes(r.dictFixed), codes)
	default:
		gather(arrow.Decimal128Traits.CastFromBytes(v.fixed(k)), arrow.Decimal128Traits.CastFromBytes(r.dictFixed), codes)
	}
	return nil
}

// startCodes says whether the array about to be begun should hold codes.
func (r *leafReader) startCodes() bool {
	return r.keepCodes && r.form == formCodes && r.vector.width == 0 && r.vector.n == 0
}

// readCodes fills dst with codes that are in the dictionary.
func (r *leafReader) readCodes(dst []int32) error {
	if err := r.codes.codes(dst); err != nil {
		return err
	}
	top := uint32(0)
	for _, c := range dst {
		top = max(top, uint32(c))
	}
	if int64(top) >= int64(r.dictLen) {
		return fmt.Errorf("code %d is not in the dictionary of %d values", top, r.dictLen)
	}
	return nil
}

func gather[T any](dst, values []T, codes []int32) {
	dst = dst[:len(codes)]
	for i, c := range codes {
		dst[i] = values[c]
	}
}

// gatherTexts appends the texts of the codes.
func (v *vector) gatherTexts(codes []int32, dictionary arrow.Array) error {
	values, from := textsOf(dictionary)
	ends := v.ends(len(codes))
	total := int64(0)
	for i, c := range codes {
		total += int64(from[c+1] - from[c])
		ends[i+1] = int32(int64(v.used) + total)
	}
	room, err := v.bytes(int(total))
	if err != nil {
		return err
	}
	at := 0
	for _, c := range codes {
		at += copy(room[at:], values[from[c]:from[c+1]])
	}
	v.used += at
	return nil
}

// textsOf is the bytes and offsets of a text or binary array.
func textsOf(a arrow.Array) ([]byte, []int32) {
	offsets := a.(interface{ ValueOffsets() []int32 }).ValueOffsets()
	var values []byte
	if b := a.Data().Buffers()[2]; b != nil {
		values = b.Bytes()
	}
	return values, offsets
}

// appendTexts appends texts of a plain or delta-encoded page.
func (r *leafReader) appendTexts(k int) error {
	v := &r.vector
	if v.codes {
		if err := r.dropCodes(); err != nil {
			return err
		}
	}
	ends, start := v.ends(k), v.used
	var err error
	if r.form == formDense {
		err = v.appendDense(ends, r.scratch, &r.offsets)
	} else {
		r.data, err = v.appendPrefixed(ends, r.data)
	}
	if err != nil {
		return err
	}
	if v.text && !validText(v.data.Bytes(), ends) {
		v.used = start
		return errors.New("a text is not valid UTF-8")
	}
	return nil
}

// dropCodes turns the codes gathered so far into texts: the chunk gives up its
// dictionary in the middle of a batch.
func (r *leafReader) dropCodes() error {
	v := &r.vector
	codes := append([]int32(nil), arrow.Int32Traits.CastFromBytes(v.buf.Bytes())[:v.n]...)
	n := v.n
	v.codes, v.n = false, 0
	if v.valid != nil && v.nulls > 0 {
		// Null slots stand for nothing; they would drag texts along.
		return v.gatherValid(codes, r.dictionary, n)
	}
	err := v.gatherTexts(codes, r.dictionary)
	v.n = n
	return err
}

func (v *vector) gatherValid(codes []int32, dictionary arrow.Array, n int) error {
	values, from := textsOf(dictionary)
	ends := v.ends(n)
	bitmap := v.valid.Bytes()
	for i, c := range codes {
		if bitmap[i>>3]>>(i&7)&1 != 0 {
			text := values[from[c]:from[c+1]]
			room, err := v.bytes(len(text))
			if err != nil {
				return err
			}
			v.used += copy(room, text)
		}
		ends[i+1] = int32(v.used)
	}
	v.n = n
	return nil
}

// appendPrefixed appends texts that stand after their lengths, and returns the rest
// of data.
func (v *vector) appendPrefixed(ends []int32, data []byte) ([]byte, error) {
	k := len(ends) - 1
	at, base := 0, int64(v.used)
	for i := range k {
		if at+4 > len(data) {
			return nil, errShort
		}
		size := int64(binary.LittleEndian.Uint32(data[at:]))
		if size > int64(len(data)-at-4) {
			return nil, errShort
		}
		at += 4 + int(size)
		base += size
		ends[i+1] = int32(base)
	}
	room, err := v.bytes(int(base) - v.used)
	if err != nil {
		return nil, err
	}
	from, to := 0, 0
	for i := range k {
		size := int(ends[i+1] - ends[i])
		from += 4
		// Most texts are short: two words are faster than a call. Both sides have
		// room for the excess (padding; vector.bytes).
		if size <= 16 && from+16 <= cap(data) {
			src := data[from : from+16 : cap(data)]
			binary.LittleEndian.PutUint64(room[to:], binary.LittleEndian.Uint64(src))
			binary.LittleEndian.PutUint64(room[to+8:], binary.LittleEndian.Uint64(src[8:]))
		} else {
			copy(room[to:], data[from:from+size])
		}
		from += size
		to += size
	}
	v.used += to
	return data[at:], nil
}

// appendDense appends the next texts of a decoded page.
func (v *vector) appendDense(ends []int32, data []byte, offsets *[]uint32) error {
	k := len(ends) - 1
	from := *offsets
	if len(from) < k+1 {
		return errShort
	}
	*offsets = from[k:]
	first, last := from[0], from[k]
	room, err := v.bytes(int(last - first))
	if err != nil {
		return err
	}
	copy(room, data[first:last])
	base := int64(v.used) - int64(first)
	for i := range k {
		ends[i+1] = int32(base + int64(from[i+1]))
	}
	v.used += int(last - first)
	return nil
}

// appendFixedTexts appends values of fixed length as texts: UUIDs and raw bytes.
func (r *leafReader) appendFixedTexts(k int) error {
	v := &r.vector
	if v.codes {
		if err := r.dropCodes(); err != nil {
			return err
		}
	}
	raw, err := r.raw(k)
	if err != nil {
		return err
	}
	const uuidText = 36
	size := r.stored
	if v.text {
		size = uuidText
	}
	ends := v.ends(k)
	room, err := v.bytes(k * size)
	if err != nil {
		return err
	}
	if v.text {
		for i := range k {
			copy(room[i*uuidText:], uuid.UUID(raw[i*uuidLength:(i+1)*uuidLength]).String())
		}
	} else {
		copy(room, raw)
	}
	for i := range k {
		ends[i+1] = int32(v.used + (i+1)*size)
	}
	v.used += k * size
	return nil
}

// appendTextDecimals appends decimals stored as byte arrays.
func (r *leafReader) appendTextDecimals(k int) error {
	var t vector
	t.mem = r.vector.mem
	t.reset(k)
	defer t.release()
	ends := t.ends(k)
	var err error
	if r.form == formDense {
		err = t.appendDense(ends, r.scratch, &r.offsets)
	} else {
		r.data, err = t.appendPrefixed(ends, r.data)
	}
	if err != nil {
		return err
	}
	r.vector.scrap2 = resized(r.vector.scrap2, k*16)
	out := arrow.Decimal128Traits.CastFromBytes(r.vector.scrap2)
	for i := range k {
		if out[i], err = bigEndianDecimal(t.data.Bytes()[ends[i]:ends[i+1]]); err != nil {
			return err
		}
	}
	if r.widen == nil {
		copy(r.vector.fixed(k), r.vector.scrap2)
		return nil
	}
	return r.widen(r.vector.fixed(k), r.vector.scrap2, k)
}

// scrapFor is k bytes that live until the next call.
func (v *vector) scrapFor(k int) []byte {
	v.scrap = resized(v.scrap, k)
	return v.scrap
}

// resized is b with length n; its content is undefined.
func resized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n+n/4)[:n]
	}
	return b[:n]
}

// readRows appends n rows of a column that is not nested: every level is a slot.
func (r *leafReader) readRows(n int) error {
	for n > 0 {
		if r.left == 0 {
			more, err := r.nextPage()
			if err != nil {
				return err
			}
			if !more {
				return errors.New("its pages end before its rows do")
			}
		}
		k := min(n, r.left)
		if err := r.readSlots(k); err != nil {
			return err
		}
		r.left -= k
		n -= k
	}
	return nil
}

// readSlots appends k slots of the current page.
func (r *leafReader) readSlots(k int) error {
	full := byte(r.leaf.def)
	if full == 0 {
		return r.appendFull(k)
	}
	if r.page.def.plain == nil {
		// Pages without nulls are one run of full levels.
		m, err := r.page.def.stream.repeated(uint32(full), k)
		if err != nil {
			return err
		}
		if m > 0 {
			if err := r.appendFull(m); err != nil || m == k {
				return err
			}
			k -= m
		}
	}
	r.defs = resized(r.defs, k)
	if err := r.page.def.read(r.defs); err != nil {
		return err
	}
	return r.appendLevels(r.defs)
}

// appendFull appends k slots that all have a value.
func (r *leafReader) appendFull(k int) error {
	if err := r.appendValues(k); err != nil {
		return err
	}
	if r.vector.valid != nil {
		r.vector.marksAll(k)
	}
	r.vector.n += k
	return nil
}

// appendLevels appends a slot for each definition level.
func (r *leafReader) appendLevels(def []byte) error {
	nn := countLevel(def, byte(r.leaf.def))
	if nn == 0 {
		r.vector.codes = r.vector.codes || r.startCodes()
		r.vector.appendNulls(len(def))
		return nil
	}
	if err := r.appendValues(nn); err != nil {
		return err
	}
	r.vector.spread(def, byte(r.leaf.def), nn)
	return nil
}

func countLevel(def []byte, v byte) int {
	n, i := 0, 0
	for ; i+8 <= len(def); i += 8 {
		x := binary.LittleEndian.Uint64(def[i:]) ^ uint64(v)*0x0101010101010101
		// A byte of ones where the level differs; sum the bytes.
		x = (x + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101
		n += 8 - int(x*0x0101010101010101>>56)
	}
	for ; i < len(def); i++ {
		if def[i] == v {
			n++
		}
	}
	return n
}

// take makes the array of what was read and starts the next one.
func (r *leafReader) take() arrow.Array {
	return r.vector.finish(r.dictionary)
}
