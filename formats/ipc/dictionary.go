package ipc

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// values are those of a dictionary; array is nil while they are being loaded.
type values struct{ array arrow.Array }

// decoded is a dictionary-encoded column, plain.
func (l *loader) decoded(f *field) (arrow.Array, error) {
	rows, nulls, err := l.b.node(l.c.node)
	l.c.node++
	if err != nil {
		return nil, err
	}
	valid, nulls, err := l.validity(rows, nulls)
	if err != nil {
		return nil, err
	}
	defer releaseBuffers(valid)
	index := f.dict.index
	buf, err := l.sized(int64(rows) * int64(index.width))
	if err != nil {
		return nil, err
	}
	defer buf.Release()
	if int(nulls) == rows {
		return columnar.Nulls(l.mem, f.typ, rows), nil // it may have no dictionary
	}
	dictionary, err := l.dictionary(f)
	if err != nil {
		return nil, err
	}
	codes, err := codesOf(buf.Bytes(), index, rows, valid, dictionary.Len())
	if err != nil {
		return nil, err
	}
	return kernel.Take(l.mem, dictionary, codes)
}

// codesOf reads indexes into a dictionary of n values, -1 where the row is null.
func codesOf(raw []byte, index *field, rows int, valid *memory.Buffer, n int) ([]int32, error) {
	codes := make([]int32, rows)
	isSigned := columnar.IsInteger(index.typ) && index.convert.run == nil
	ok := true
	switch {
	case index.width == 1 && isSigned:
		ok = narrow(codes, arrow.Int8Traits.CastFromBytes(raw), n, valid)
	case index.width == 1:
		ok = narrow(codes, raw, n, valid)
	case index.width == 2 && isSigned:
		ok = narrow(codes, arrow.Int16Traits.CastFromBytes(raw), n, valid)
	case index.width == 2:
		ok = narrow(codes, arrow.Uint16Traits.CastFromBytes(raw), n, valid)
	case index.width == 4 && isSigned:
		ok = narrow(codes, arrow.Int32Traits.CastFromBytes(raw), n, valid)
	case index.width == 4:
		ok = narrow(codes, arrow.Uint32Traits.CastFromBytes(raw), n, valid)
	default: // what does not fit in 63 bits is negative, and no index
		ok = narrow(codes, arrow.Int64Traits.CastFromBytes(raw), n, valid)
	}
	if !ok {
		return nil, fmt.Errorf("it points beyond the %d values of its dictionary", n)
	}
	return codes, nil
}

func narrow[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64](codes []int32, raw []T, n int, valid *memory.Buffer) bool {
	for i := range codes {
		switch v := int64(raw[i]); {
		case !isValid(valid, i):
			codes[i] = -1
		case v < 0 || v >= int64(n):
			return false
		default:
			codes[i] = int32(v)
		}
	}
	return true
}

// dictionary is the values of a field's dictionary, borrowed.
func (l *loader) dictionary(f *field) (arrow.Array, error) {
	id := f.dict.id
	if v := l.dictionaries[id]; v != nil {
		if v.array == nil || !arrow.TypeEqual(v.array.DataType(), f.typ) {
			return nil, errMetadata // it holds itself, or two columns differ about it
		}
		return v.array, nil
	}
	blocks := l.changing[id]
	if len(blocks) == 0 {
		return nil, fmt.Errorf("its dictionary %d is missing", id)
	}
	v := &values{}
	l.dictionaries[id] = v
	a, err := l.loadDictionary(f, blocks)
	if err != nil {
		delete(l.dictionaries, id)
		return nil, err
	}
	v.array = a
	return a, nil
}

// loadDictionary loads the values in blocks, aside from the batch being loaded.
func (l *loader) loadDictionary(f *field, blocks []block) (arrow.Array, error) {
	b, c, piece := l.b, l.c, l.piece
	l.piece.buf = nil
	defer func() {
		l.dropPiece()
		l.b, l.c, l.piece = b, c, piece
	}()
	plain := *f
	plain.dict = nil
	var parts []arrow.Array
	defer func() { releaseArrays(parts) }()
	for _, block := range blocks {
		m, err := l.open(block)
		if err != nil {
			return nil, err
		}
		l.c = cursor{}
		if l.b, err = newBody(l.src, m, m.header.table(1), block.offset+block.meta); err != nil {
			return nil, err
		}
		a, err := l.column(&plain)
		if err != nil {
			return nil, fmt.Errorf("dictionary: %w", err)
		}
		parts = append(parts, a)
	}
	if len(parts) == 1 {
		parts[0].Retain()
		return parts[0], nil
	}
	return kernel.Concat(l.mem, parts)
}
