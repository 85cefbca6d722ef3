package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/parquet"
)

// The tables of the corpus: t has every simple type with nulls, extremes and Unicode,
// u is CSV and joins with it by k, n is nested, e is empty.
var (
	tSchema = columnar.NewSchema(
		columnar.Field("id", columnar.Int64), columnar.Field("k", columnar.Int32), columnar.Field("s", columnar.String),
		columnar.Field("d", columnar.Float64), columnar.Field("f", columnar.Float32), columnar.Field("dec", columnar.Decimal(12, 2)),
		columnar.Field("b", columnar.Boolean), columnar.Field("day", columnar.Date), columnar.Field("ts", columnar.Timestamp),
		columnar.Field("tiny", columnar.Int8), columnar.Field("big", columnar.Int64),
	)
	nSchema = columnar.NewSchema(
		columnar.Field("id", columnar.Int64), columnar.Field("xs", columnar.ListOf(columnar.Int64)),
		columnar.Field("st", arrow.StructOf(columnar.Field("a", columnar.Int64), columnar.Field("b", columnar.String))),
		columnar.Field("words", columnar.ListOf(columnar.String)),
	)
)

var texts = []string{"", "a", "A", "abc", "ABC", " blank ", "naïve", "Straße", "日本語", "😀 smile", "100%", "under_score", "it's", "x,y", "line\nbreak", "zebra"}

func appendT(b *array.RecordBuilder, i int) {
	put := func(c int, null bool, set func()) {
		if null {
			b.Field(c).AppendNull()
		} else {
			set()
		}
	}
	put(0, false, func() { b.Field(0).(*array.Int64Builder).Append(int64(i)) })
	put(1, i%7 == 3, func() { b.Field(1).(*array.Int32Builder).Append(int32(i % 5)) })
	put(2, i%9 == 4, func() { b.Field(2).(*array.StringBuilder).Append(texts[i%len(texts)]) })
	doubles := []float64{0, math.Copysign(0, -1), 1.5, -2.25, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 1e-300, 0.1, 123456.789, -7}
	put(3, i%11 == 6, func() { b.Field(3).(*array.Float64Builder).Append(doubles[i%len(doubles)]) })
	put(4, i%5 == 2, func() { b.Field(4).(*array.Float32Builder).Append(float32(i) / 4) })
	put(5, i%8 == 1, func() { b.Field(5).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i-30) * 12345)) })
	put(6, i%6 == 5, func() { b.Field(6).(*array.BooleanBuilder).Append(i%2 == 0) })
	put(7, i%10 == 7, func() { b.Field(7).(*array.Date32Builder).Append(arrow.Date32((i - 20) * 397)) })
	put(8, i%12 == 8, func() {
		b.Field(8).(*array.TimestampBuilder).Append(arrow.Timestamp(int64(i-20)*86_399_123_457*31 + 1_700_000_000_000_000/2))
	})
	put(9, i%4 == 1, func() { b.Field(9).(*array.Int8Builder).Append(int8(i*7 - 128)) })
	bigs := []int64{math.MaxInt64, math.MinInt64, 0, 1, -1, 1 << 40}
	put(10, i%13 == 9, func() { b.Field(10).(*array.Int64Builder).Append(bigs[i%len(bigs)]) })
}

func appendN(b *array.RecordBuilder, i int) {
	b.Field(0).(*array.Int64Builder).Append(int64(i))
	xs := b.Field(1).(*array.ListBuilder)
	if i%5 == 4 {
		xs.AppendNull()
	} else {
		xs.Append(true)
		for j := range i % 4 {
			if j == 2 {
				xs.ValueBuilder().AppendNull()
			} else {
				xs.ValueBuilder().(*array.Int64Builder).Append(int64(i * j))
			}
		}
	}
	st := b.Field(2).(*array.StructBuilder)
	if i%6 == 3 {
		st.AppendNull()
	} else {
		st.Append(true)
		st.FieldBuilder(0).(*array.Int64Builder).Append(int64(i) * 10)
		st.FieldBuilder(1).(*array.StringBuilder).Append(texts[i%len(texts)])
	}
	words := b.Field(3).(*array.ListBuilder)
	words.Append(true)
	for _, w := range texts[:i%3+1] {
		words.ValueBuilder().(*array.StringBuilder).Append(w)
	}
}

// writeTables makes the files and returns their paths by table.
func writeTables(t testing.TB, dir string) map[string]string {
	t.Helper()
	paths := map[string]string{"t": dir + "/t.parquet", "n": dir + "/n.parquet", "e": dir + "/e.parquet", "u": dir + "/u.csv"}
	writeParquet(t, paths["t"], tSchema, 60, appendT)
	writeParquet(t, paths["n"], nSchema, 24, appendN)
	writeParquet(t, paths["e"], tSchema, 0, appendT)
	var csv strings.Builder
	csv.WriteString("k,name,weight\n")
	for i := range 12 {
		fmt.Fprintf(&csv, "%d,name %d,%d.5\n", i%7, i, i)
	}
	csv.WriteString(",no key,1.5\n")
	if err := os.WriteFile(paths["u"], []byte(csv.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return paths
}

func writeParquet(t testing.TB, path string, s *arrow.Schema, rows int, add func(*array.RecordBuilder, int)) {
	t.Helper()
	h, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	w, err := parquet.NewFileWriter(h, s, parquet.WriterConfig{RowGroupRows: 17})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for i := range rows {
		add(b, i)
	}
	if rows > 0 {
		batch := b.NewRecordBatch()
		defer batch.Release()
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
