package kernel

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Concat is the values of arrays, one after another: of one type, though some may
// be dictionary-encoded. It stays encoded where all share one dictionary; otherwise
// it is plain. The only error is text of more than 2 GiB. The caller releases it.
func Concat(mem memory.Allocator, arrays []arrow.Array) (arrow.Array, error) {
	if len(arrays) == 0 {
		panic("bug: concat of nothing")
	}
	if len(arrays) == 1 {
		arrays[0].Retain()
		return arrays[0], nil
	}
	encoded := 0
	for _, a := range arrays {
		if a.DataType().ID() == arrow.DICTIONARY {
			encoded++
		}
	}
	if encoded == len(arrays) && shareDictionary(arrays) {
		return concatCodes(mem, arrays)
	}
	if encoded > 0 {
		plain := make([]arrow.Array, len(arrays))
		for i, a := range arrays {
			plain[i] = columnar.PlainColumn(mem, a)
			defer plain[i].Release()
		}
		arrays = plain
	}
	out, err := array.Concatenate(arrays, mem)
	if err != nil {
		return nil, fmt.Errorf("batches cannot be put together: %w; make them smaller with SET batch_rows", err)
	}
	return out, nil
}

func shareDictionary(arrays []arrow.Array) bool {
	first := arrays[0].(*array.Dictionary).Dictionary().Data()
	for _, a := range arrays[1:] {
		d := a.(*array.Dictionary).Dictionary().Data()
		if d == first {
			continue
		}
		// Two views of the same memory.
		if d.Len() != first.Len() || d.Offset() != first.Offset() || len(d.Buffers()) != len(first.Buffers()) {
			return false
		}
		for i, b := range d.Buffers() {
			if b != first.Buffers()[i] {
				return false
			}
		}
	}
	return true
}

func concatCodes(mem memory.Allocator, arrays []arrow.Array) (arrow.Array, error) {
	codes := make([]arrow.Array, len(arrays))
	for i, a := range arrays {
		codes[i] = a.(*array.Dictionary).Indices()
	}
	all, err := array.Concatenate(codes, mem)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	return array.NewDictionaryArray(arrays[0].DataType(), all, arrays[0].(*array.Dictionary).Dictionary()), nil
}

// ConcatBatches is the rows of batches, one after another, as one batch. The types
// of schema are plain; a column that is dictionary-encoded in the result has a
// dictionary type in the result's own schema. The caller releases it.
func ConcatBatches(mem memory.Allocator, schema *arrow.Schema, batches []arrow.RecordBatch) (arrow.RecordBatch, error) {
	if len(batches) == 1 {
		batches[0].Retain()
		return batches[0], nil
	}
	rows := int64(0)
	for _, b := range batches {
		rows += b.NumRows()
	}
	columns := make([]arrow.Array, schema.NumFields())
	fields := make([]arrow.Field, schema.NumFields())
	for i := range columns {
		fields[i] = schema.Field(i)
		if len(batches) == 0 {
			columns[i] = columnar.Nulls(mem, fields[i].Type, 0)
		} else {
			parts := make([]arrow.Array, len(batches))
			for k, b := range batches {
				parts[k] = b.Column(i)
			}
			c, err := Concat(mem, parts)
			if err != nil {
				return nil, fmt.Errorf("column %s: %w", fields[i].Name, err)
			}
			columns[i] = c
		}
		defer columns[i].Release()
		fields[i].Type = columns[i].DataType()
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, rows), nil
}
