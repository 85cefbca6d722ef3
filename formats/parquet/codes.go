package parquet

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go/format"
)

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
