package columnartest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// RandomOptions shape random batches. The zero value gives full-range values with
// one null in eight, sliced columns, plain text.
type RandomOptions struct {
	Rows       int
	Nulls      float64 // share of nulls; 0 is 1/8, negative is none, 1 is all
	Distinct   int     // at most so many different values a column; 0 is no limit
	Dictionary bool    // VARCHAR and BINARY columns are dictionary-encoded
	Dense      bool    // columns start at offset 0; otherwise they are slices with an offset
}

// Random returns a batch of schema made from seed, the same each time: extremes,
// NaN, -0.0, infinities, empty and multi-byte text, dates before 1970 are frequent.
// It is released when t ends.
func Random(t testing.TB, mem memory.Allocator, schema *arrow.Schema, seed uint64, o RandomOptions) arrow.RecordBatch {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0x7469646d))
	columns := make([]arrow.Array, schema.NumFields())
	fields := make([]arrow.Field, schema.NumFields())
	for i, f := range schema.Fields() {
		columns[i] = randomColumn(t, mem, f.Type, r, o)
		f.Type = columns[i].DataType()
		fields[i] = f
	}
	b := array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(o.Rows))
	for _, c := range columns {
		c.Release()
	}
	t.Cleanup(b.Release)
	return b
}

// RandomColumn is a column of Random. It is released when t ends.
func RandomColumn(t testing.TB, mem memory.Allocator, dt arrow.DataType, seed uint64, o RandomOptions) arrow.Array {
	t.Helper()
	a := randomColumn(t, mem, dt, rand.New(rand.NewPCG(seed, 0x7469646d)), o)
	t.Cleanup(a.Release)
	return a
}

func randomColumn(t testing.TB, mem memory.Allocator, dt arrow.DataType, r *rand.Rand, o RandomOptions) arrow.Array {
	before, after := 0, 0
	if !o.Dense {
		before, after = r.IntN(70), r.IntN(5)
	}
	if dt.ID() == arrow.NULL {
		return array.NewNull(o.Rows)
	}
	var pool []any
	for range o.Distinct {
		pool = append(pool, randomValue(dt, r))
	}
	b := columnar.NewBuilder(mem, dt)
	defer b.Release()
	nulls := o.Nulls
	if nulls == 0 {
		nulls = 1.0 / 8
	}
	for range before + o.Rows + after {
		var v any
		switch {
		case r.Float64() < nulls:
		case len(pool) > 0:
			v = pool[r.IntN(len(pool))]
		default:
			v = randomValue(dt, r)
		}
		if err := b.Append(v); err != nil {
			t.Fatalf("bug: %v", err)
		}
	}
	a := b.NewArray()
	defer a.Release()
	if id := dt.ID(); o.Dictionary && (id == arrow.STRING || id == arrow.BINARY) {
		encoded := Encode(mem, a)
		defer encoded.Release()
		return array.NewSlice(encoded, int64(before), int64(before+o.Rows))
	}
	return array.NewSlice(a, int64(before), int64(before+o.Rows))
}

// Encode is a VARCHAR or BINARY column as Dictionary<int32, …>; nulls have no code.
// The caller releases it.
func Encode(mem memory.Allocator, a arrow.Array) arrow.Array {
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: a.DataType()}
	codes := array.NewInt32Builder(mem)
	defer codes.Release()
	values := columnar.NewBuilder(mem, a.DataType())
	defer values.Release()
	seen := map[string]int32{}
	for i := range a.Len() {
		if a.IsNull(i) {
			codes.AppendNull()
			continue
		}
		v := columnar.Value(a, i)
		key, ok := v.(string)
		if !ok {
			key = string(v.([]byte))
		}
		code, ok := seen[key]
		if !ok {
			code = int32(len(seen))
			seen[key] = code
			_ = values.Append(v) // of the column's own type
		}
		codes.Append(code)
	}
	c, d := codes.NewArray(), values.NewArray()
	defer c.Release()
	defer d.Release()
	return array.NewDictionaryArray(dt, c, d)
}

var (
	specialInts   = []int64{0, 1, -1, 2, 7, 10, 100, 127, -128, 32767, -32768, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}
	specialFloats = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -2.5, math.NaN(), math.Float64frombits(0x7ff8000000000123), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1e15 + 0.5}
	specialTexts  = []string{"", "a", "A", "b", "ab", " ", "NULL", "0", "-1", "true", "é", "ß", "日本", "😀", "a\u0301", "x\x00y", "longer than twelve bytes", "a,b", "\"", "\n", "%", "_", "2024-01-01"}
)

// randomValue is a value columnar.Builder.Append takes, never nil at the top.
func randomValue(dt arrow.DataType, r *rand.Rand) any {
	switch t := dt.(type) {
	case *arrow.BooleanType:
		return r.IntN(2) == 0
	case *arrow.Int8Type:
		return int64(int8(randomInt(r)))
	case *arrow.Int16Type:
		return int64(int16(randomInt(r)))
	case *arrow.Int32Type:
		return int64(int32(randomInt(r)))
	case *arrow.Int64Type:
		return randomInt(r)
	case *arrow.Float32Type:
		return float32(randomFloat(r))
	case *arrow.Float64Type:
		return randomFloat(r)
	case *arrow.Decimal128Type:
		return randomDecimal(t, r)
	case *arrow.StringType:
		return randomText(r)
	case *arrow.BinaryType:
		b := make([]byte, r.IntN(6))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	case *arrow.Date32Type:
		return arrow.Date32(r.IntN(80000) - 40000)
	case *arrow.Time64Type:
		return arrow.Time64(r.Int64N(columnar.MicrosPerDay))
	case *arrow.TimestampType:
		us := (r.Int64N(80000)-40000)*columnar.MicrosPerDay + r.Int64N(columnar.MicrosPerDay)
		if r.IntN(2) == 0 {
			us = us / columnar.MicrosPerHour * columnar.MicrosPerHour
		}
		return arrow.Timestamp(us)
	case *arrow.MonthDayNanoIntervalType:
		return arrow.MonthDayNanoInterval{Months: int32(r.IntN(30) - 10), Days: int32(r.IntN(80) - 20), Nanoseconds: (r.Int64N(2e11) - 1e11) * 1000}
	}
	return randomNested(dt, r)
}

func randomInt(r *rand.Rand) int64 {
	switch r.IntN(3) {
	case 0:
		return specialInts[r.IntN(len(specialInts))]
	case 1:
		return int64(r.IntN(200) - 100)
	}
	return int64(r.Uint64())
}

func randomFloat(r *rand.Rand) float64 {
	switch r.IntN(3) {
	case 0:
		return specialFloats[r.IntN(len(specialFloats))]
	case 1:
		return float64(r.IntN(4000)-2000) / 16
	}
	return r.NormFloat64() * math.Pow(10, float64(r.IntN(20)-5))
}

func randomDecimal(t *arrow.Decimal128Type, r *rand.Rand) any {
	limit := decimal128.GetScaleMultiplier(int(t.Precision))
	v := decimal128.FromU64(uint64(r.IntN(1000)))
	switch r.IntN(4) {
	case 0:
		v = limit.Sub(decimal128.FromU64(1))
	case 1:
		v = decimal128.New(int64(r.Uint64()>>1), r.Uint64())
	}
	for !v.Less(limit) {
		v, _ = v.Div(decimal128.FromU64(1000))
	}
	if r.IntN(2) == 0 {
		v = v.Negate()
	}
	return v
}

func randomText(r *rand.Rand) string {
	s := specialTexts[r.IntN(len(specialTexts))]
	for range r.IntN(3) {
		s += specialTexts[r.IntN(len(specialTexts))]
	}
	return s
}

func randomNested(dt arrow.DataType, r *rand.Rand) any {
	maybe := func(t arrow.DataType) any {
		if r.IntN(6) == 0 {
			return nil
		}
		return randomValue(t, r)
	}
	switch t := dt.(type) {
	case *arrow.MapType:
		out := [][2]any{}
		for range r.IntN(4) {
			out = append(out, [2]any{randomValue(t.KeyType(), r), maybe(t.ItemType())})
		}
		return out
	case *arrow.ListType:
		out := []any{}
		for range r.IntN(4) {
			out = append(out, maybe(t.Elem()))
		}
		return out
	case *arrow.StructType:
		out := make([]any, t.NumFields())
		for i, f := range t.Fields() {
			out[i] = maybe(f.Type)
		}
		return out
	}
	panic("bug: random value of type " + dt.String())
}
