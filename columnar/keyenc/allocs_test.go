package keyenc_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

// TestAllocations: memory is taken for a batch of keys, not for each of them.
func TestAllocations(t *testing.T) {
	const rows = 2000
	struct1 := arrow.StructOf(arrow.Field{Name: "id", Type: columnar.Int64, Nullable: true}, arrow.Field{Name: "s", Type: columnar.String, Nullable: true})
	b := array.NewStructBuilder(memory.DefaultAllocator, struct1)
	for i := range rows {
		b.Append(true)
		b.FieldBuilder(0).(*array.Int64Builder).Append(int64(i))
		b.FieldBuilder(1).(*array.StringBuilder).Append(fmt.Sprintf("text %d with \x00 in it", i))
	}
	column := b.NewArray()
	texts := column.(*array.Struct).Field(1)
	for _, desc := range []bool{false, true} {
		codec, err := keyenc.New([]arrow.DataType{struct1, columnar.String}, []keyenc.Order{{Desc: desc}, {Desc: desc}})
		if err != nil {
			t.Fatal(err)
		}
		var keys keyenc.Keys
		encode := func() {
			keys.Reset()
			if err := codec.Encode([]arrow.Array{column, texts}, &keys); err != nil {
				t.Fatal(err)
			}
		}
		encode()
		if n := testing.AllocsPerRun(3, encode); n > 20 {
			t.Errorf("desc %t: %v allocations to encode %d keys", desc, n, rows)
		}
		decode := func() {
			columns, err := codec.Decode(memory.DefaultAllocator, &keys)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range columns {
				c.Release()
			}
		}
		if n := testing.AllocsPerRun(3, decode); n > 200 {
			t.Errorf("desc %t: %v allocations to decode %d keys", desc, n, rows)
		}
	}
}
