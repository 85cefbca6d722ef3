package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
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
	read    int // values of it that were read
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
	r.left, r.read = r.page.values, 0
	return true, r.openValues()
}

var errLong = errors.New("a page has more values than its header says")

// endPage checks, after the last level of a page, that it has no value beyond those that its
// levels and its header speak of: damage that makes them differ shifts all others.
func (r *leafReader) endPage() error {
	if nulls := r.page.nulls; nulls > 0 && r.page.values-r.read != nulls {
		return fmt.Errorf("a page has %d nulls, by its header %d", r.page.values-r.read, nulls)
	}
	long := false
	switch r.form {
	case formFixed:
		long = len(r.data) >= r.stored && !isFiller(r.data)
	case formTexts:
		long = len(r.data) >= 4 && !isFiller(r.data) // the length of a text
	case formDense:
		long = len(r.offsets) > 1
	case formBits:
		long = (r.bit+7)/8 < len(r.data) && !isFiller(r.data[(r.bit+7)/8:])
	}
	if long {
		return errLong
	}
	return nil
}

// isFiller says whether the bytes behind the last value of a page are what some writers,
// fastparquet for one, leave there.
func isFiller(rest []byte) bool { return len(rest) <= 8 && bytes.Count(rest, []byte{0}) == len(rest) }

// endChunk checks that no page is left after the last row.
func (r *leafReader) endChunk() error {
	if r.left > 0 || r.pages.left > 0 {
		return errors.New("its pages have more rows than the row group")
	}
	return nil
}

// openValues prepares to decode the values of the page.
func (r *leafReader) openValues() error {
	p := &r.page
	if err := r.pages.checkEncoding(p.encoding); err != nil {
		return err
	}
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
	case format.RLEDictionary, plainDictionary:
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

// openDelta decodes the whole page.
func (r *leafReader) openDelta() (err error) {
	page, physical := &r.page, r.leaf.physical
	switch {
	case page.encoding == format.DeltaBinaryPacked && physical == format.Int32:
		err = openDeltas(r, arrow.Int32Traits.CastFromBytes(r.scratch), arrow.Int32Traits.CastToBytes)
	case page.encoding == format.DeltaBinaryPacked && physical == format.Int64:
		err = openDeltas(r, arrow.Int64Traits.CastFromBytes(r.scratch), arrow.Int64Traits.CastToBytes)
	case page.encoding == format.DeltaByteArray && physical == format.FixedLenByteArray:
		err = r.openPrefixedFixed()
	case page.encoding == format.DeltaByteArray && physical == format.ByteArray:
		r.form = formDense
		r.scratch, r.offsets, err = readPrefixedTexts(r.scratch, page.data, r.offsets, page.values)
	case page.encoding == format.DeltaLengthByteArray && physical == format.ByteArray:
		r.form = formDense
		r.scratch, r.offsets, err = readDeltaTexts(r.scratch, page.data, r.offsets, page.values)
	default:
		return fmt.Errorf("values of type %s are encoded as %s", physical, page.encoding)
	}
	return err
}

func openDeltas[T int32 | int64](r *leafReader, dst []T, toBytes func([]T) []byte) error {
	values, rest, err := readDeltas(dst, r.page.data, r.page.values)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return errLong
	}
	r.form, r.scratch = formFixed, toBytes(values)
	r.data = r.scratch
	return nil
}

func (r *leafReader) openPrefixedFixed() (err error) {
	if r.scratch, r.offsets, err = readPrefixedTexts(r.scratch, r.page.data, r.offsets, r.page.values); err != nil {
		return err
	}
	for i, at := range r.offsets {
		if int(at) != i*r.stored {
			return errDamaged
		}
	}
	r.form, r.data = formFixed, r.scratch
	return nil
}

// appendValues decodes the next k values densely behind slot vector.n. It does not
// make slots of them; spread does.
func (r *leafReader) appendValues(k int) error {
	if k == 0 {
		return nil
	}
	r.read += k
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
	switch {
	case r.widen == nil && r.convert == nil:
		copy(dst, raw)
		return nil
	case r.widen == nil:
		return r.convert(dst, raw, k)
	}
	r.vector.scrap2 = resized(r.vector.scrap2, k*r.native)
	if r.convert == nil {
		copy(r.vector.scrap2, raw) // aligned
	} else if err := r.convert(r.vector.scrap2, raw, k); err != nil {
		return err
	}
	return r.widen(dst, r.vector.scrap2, k)
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
		if r.left -= k; r.left == 0 {
			if err := r.endPage(); err != nil {
				return err
			}
		}
		n -= k
	}
	return nil
}

// skipRows passes over n rows of a column that is not nested, between two arrays. Pages
// on the way are not even read where their places are known; of others, at most batch rows
// at a time are decoded for nothing.
func (r *leafReader) skipRows(n int64, batch int) error {
	if n >= int64(r.left) {
		skipped, err := r.pages.skip(n-int64(r.left), r.setDictionary)
		if err != nil {
			return err
		}
		if skipped > 0 {
			n -= int64(r.left) + skipped
			r.left = 0
		}
	}
	for n > 0 {
		k := int(min(n, int64(batch)))
		r.vector.reset(k)
		if err := r.readRows(k); err != nil {
			return err
		}
		r.take().Release()
		n -= int64(k)
	}
	return nil
}

// isSame says whether plain values are stored as the array has them.
func (r *leafReader) isSame() bool {
	return r.convert == nil && r.widen == nil && r.stored > 0 && r.stored == r.vector.width && r.leaf.physical != format.Boolean
}

// sliceRows makes the array of the next n rows a part of the page, without a copy; nil
// where that is not possible, and nothing was read.
func (r *leafReader) sliceRows(n int) (arrow.Array, error) {
	if !r.pages.share || n == 0 {
		return nil, nil
	}
	if r.left == 0 {
		if more, err := r.nextPage(); err != nil || !more {
			return nil, err
		}
	}
	if r.left < n || !r.pages.inShared {
		return nil, nil
	}
	levels := r.page.def.stream
	if r.leaf.def > 0 {
		if m, err := levels.repeated(uint32(r.leaf.def), n); err != nil || m < n {
			return nil, nil // there are nulls among them, or what is wrong is found again
		}
	}
	size := n * r.stored
	if size > len(r.data) {
		return nil, errShort
	}
	buf := r.pages.slice(r.data[:size])
	if buf == nil {
		return nil, nil
	}
	defer buf.Release()
	r.page.def.stream, r.data = levels, r.data[size:]
	r.read += n
	if r.left -= n; r.left == 0 {
		if err := r.endPage(); err != nil {
			return nil, err
		}
	}
	data := array.NewData(r.vector.typ, n, []*memory.Buffer{nil, buf}, nil, 0, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
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
