package parquet

import (
	"encoding/binary"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/uuid"
)

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
