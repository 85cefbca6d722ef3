package keyenc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// ErrMalformed is matched by the error for bytes that Encode cannot have written.
var ErrMalformed = errors.New("malformed key")

// Decode returns the columns that keys stand for. It never fails for what the same
// Codec encoded; other bytes give an error matching ErrMalformed.
func (c *Codec) Decode(mem memory.Allocator, keys *Keys) ([]arrow.Array, error) {
	builders := make([]array.Builder, len(c.types))
	for i, dt := range c.types {
		builders[i] = array.NewBuilder(mem, dt)
		defer builders[i].Release()
		builders[i].Reserve(keys.Len())
	}
	d := decoder{orders: c.orders}
	for k := range keys.Len() {
		rest := keys.Key(k)
		var err error
		for i := range c.types {
			if rest, err = d.decodeColumn(builders[i], i, rest); err != nil {
				return nil, fmt.Errorf("key %d, column %d: %w", k, i, err)
			}
		}
		if len(rest) > 0 {
			return nil, fmt.Errorf("key %d: %d bytes left over: %w", k, len(rest), ErrMalformed)
		}
	}
	columns := make([]arrow.Array, len(builders))
	for i, b := range builders {
		columns[i] = b.NewArray()
	}
	return columns, nil
}

// decoder is one call of Decode: the goroutines that share a Codec may decode at once.
type decoder struct {
	orders []Order
	plain  []byte // the rest of a key, not inverted
	text   []byte // a text with zero bytes
}

func (d *decoder) decodeColumn(b array.Builder, i int, src []byte) ([]byte, error) {
	if len(src) == 0 {
		return nil, ErrMalformed
	}
	null := nullFirst
	if d.orders[i].NullsLast {
		null = nullLast
	}
	marker, src := src[0], src[1:]
	switch marker {
	case null:
		b.AppendNull()
		return src, nil
	case present:
	default:
		return nil, fmt.Errorf("marker %#x: %w", marker, ErrMalformed)
	}
	if !d.orders[i].Desc {
		return d.decodeValue(b, src)
	}
	// Values end themselves, so the rest of the key is inverted for reading and
	// what is left over is found by its length.
	d.plain = append(d.plain[:0], src...)
	invert(d.plain)
	rest, err := d.decodeValue(b, d.plain)
	if err != nil {
		return nil, err
	}
	return src[len(src)-len(rest):], nil
}

// decodeCell reads a marker and a value.
func (d *decoder) decodeCell(b array.Builder, src []byte) ([]byte, error) {
	if len(src) == 0 {
		return nil, ErrMalformed
	}
	switch src[0] {
	case nullFirst:
		b.AppendNull()
		return src[1:], nil
	case present:
		return d.decodeValue(b, src[1:])
	}
	return nil, fmt.Errorf("marker %#x: %w", src[0], ErrMalformed)
}

// decodeValue appends the value src begins with and returns what follows it.
func (d *decoder) decodeValue(b array.Builder, src []byte) ([]byte, error) {
	switch b := b.(type) {
	case *array.StringBuilder:
		v, rest, err := d.decodeText(src)
		if err != nil {
			return nil, err
		}
		b.BinaryBuilder.Append(v)
		return rest, nil
	case *array.BinaryBuilder:
		v, rest, err := d.decodeText(src)
		if err != nil {
			return nil, err
		}
		b.Append(v)
		return rest, nil
	case *array.StructBuilder:
		b.Append(true)
		var err error
		for f := range b.NumField() {
			if src, err = d.decodeCell(b.FieldBuilder(f), src); err != nil {
				return nil, err
			}
		}
		return src, nil
	case *array.MapBuilder:
		b.Append(true)
		return d.decodeMap(b, src)
	case *array.ListBuilder:
		b.Append(true)
		return decodeElements(src, func(src []byte) ([]byte, error) { return d.decodeCell(b.ValueBuilder(), src) })
	}
	w := fixedWidth(b.Type()) // which nested builders make anew each time
	switch {
	case w == 0:
		return nil, fmt.Errorf("a value of type %s: %w", b.Type(), ErrMalformed)
	case len(src) < w:
		return nil, ErrMalformed
	}
	return src[w:], appendFixed(b, src[:w])
}

func (d *decoder) decodeMap(b *array.MapBuilder, src []byte) ([]byte, error) {
	return decodeElements(src, func(src []byte) ([]byte, error) {
		if len(src) == 0 || src[0] != present {
			return nil, fmt.Errorf("a map key is null: %w", ErrMalformed)
		}
		src, err := d.decodeCell(b.KeyBuilder(), src)
		if err != nil {
			return nil, err
		}
		return d.decodeCell(b.ItemBuilder(), src)
	})
}

func decodeElements(src []byte, element func([]byte) ([]byte, error)) ([]byte, error) {
	for {
		if len(src) == 0 {
			return nil, ErrMalformed
		}
		marker := src[0]
		src = src[1:]
		switch marker {
		case listEnd:
			return src, nil
		case listMore:
		default:
			return nil, ErrMalformed
		}
		var err error
		if src, err = element(src); err != nil {
			return nil, err
		}
	}
}

// decodeText reads a text. It is a part of src, or of d until the next one.
func (d *decoder) decodeText(src []byte) (v, rest []byte, err error) {
	d.text = d.text[:0]
	for {
		i := bytes.IndexByte(src, 0)
		if i < 0 || i+1 >= len(src) {
			return nil, nil, ErrMalformed
		}
		part, end := src[:i], src[i+1]
		src = src[i+2:]
		switch {
		case end == 0 && len(d.text) == 0:
			return part, src, nil
		case end == 0:
			d.text = append(d.text, part...)
			return d.text, src, nil
		case end == escaped:
			d.text = append(append(d.text, part...), 0)
		default:
			return nil, nil, ErrMalformed
		}
	}
}

func appendFixed(b array.Builder, v []byte) error {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		if v[0] > 1 {
			return fmt.Errorf("boolean %#x: %w", v[0], ErrMalformed)
		}
		b.Append(v[0] == 1)
	case *array.Int8Builder:
		b.Append(int8(v[0] ^ 0x80))
	case *array.Int16Builder:
		b.Append(int16(binary.BigEndian.Uint16(v) ^ 1<<15))
	case *array.Int32Builder:
		b.Append(int32(binary.BigEndian.Uint32(v) ^ 1<<31))
	case *array.Date32Builder:
		b.Append(arrow.Date32(binary.BigEndian.Uint32(v) ^ 1<<31))
	case *array.Int64Builder:
		b.Append(int64(binary.BigEndian.Uint64(v) ^ 1<<63))
	case *array.Time64Builder:
		b.Append(arrow.Time64(binary.BigEndian.Uint64(v) ^ 1<<63))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(binary.BigEndian.Uint64(v) ^ 1<<63))
	case *array.Float32Builder:
		b.Append(float32From(binary.BigEndian.Uint32(v)))
	case *array.Float64Builder:
		b.Append(float64From(binary.BigEndian.Uint64(v)))
	case *array.Decimal128Builder:
		b.Append(decimal128.New(int64(binary.BigEndian.Uint64(v)^1<<63), binary.BigEndian.Uint64(v[8:])))
	case *array.MonthDayNanoIntervalBuilder:
		b.Append(arrow.MonthDayNanoInterval{
			Months:      int32(binary.BigEndian.Uint32(v) ^ 1<<31),
			Days:        int32(binary.BigEndian.Uint32(v[4:]) ^ 1<<31),
			Nanoseconds: int64(binary.BigEndian.Uint64(v[8:]) ^ 1<<63),
		})
	default:
		return fmt.Errorf("bug: builder of %s", b.Type())
	}
	return nil
}
