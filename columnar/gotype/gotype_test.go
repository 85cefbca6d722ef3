package gotype_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/gotype"
)

type userID string

type point struct {
	X, Y float64
	Tags []string
}

type Base struct {
	ID   int64
	Kind *string
}

type everything struct {
	Base
	User     userID
	Small    int8
	Age      int16
	Count    int32
	Plain    int
	U8       uint8
	U16      uint16
	U32      uint32
	U64      uint64
	U        uint
	Ratio    float32
	Amount   float64 `tidemill:"price"`
	Yes      bool
	At       time.Time
	Took     time.Duration
	Raw      []byte
	Points   []point
	Scores   map[string]int64
	ByNumber map[int16][]float64
	Maybe    *point
	When     *time.Time
	Where    point `tidemill:"where,inline"`
	HTTPCode int32
	Skipped  func() `tidemill:"-"`
}

func TestFields(t *testing.T) {
	t.Parallel()
	r, err := gotype.For[everything]()
	if err != nil {
		t.Fatal(err)
	}
	want := "id BIGINT, kind VARCHAR, user VARCHAR, small TINYINT, age SMALLINT, count INTEGER, plain BIGINT, u8 SMALLINT, u16 INTEGER, u32 BIGINT, " +
		"u64 DECIMAL(20,0), u DECIMAL(20,0), ratio REAL, price DOUBLE, yes BOOLEAN, at TIMESTAMP, took BIGINT, raw BINARY, " +
		"points ARRAY<STRUCT<x DOUBLE, y DOUBLE, tags ARRAY<VARCHAR>>>, scores MAP<VARCHAR, BIGINT>, by_number MAP<SMALLINT, ARRAY<DOUBLE>>, " +
		"maybe STRUCT<x DOUBLE, y DOUBLE, tags ARRAY<VARCHAR>>, when TIMESTAMP, x DOUBLE, y DOUBLE, tags ARRAY<VARCHAR>, http_code INTEGER"
	if got := columnar.SchemaString(arrow.NewSchema(r.Fields(), nil)); got != strings.ReplaceAll(want, "when ", `when `) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// value makes a random value of a type, with nils and empties.
func value(r *rand.Rand, t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.UnixMicro(r.Int64N(1<<50) - 1<<49).UTC()))
		return v
	case v.CanInt():
		v.SetInt(int64(r.Uint64()) >> (64 - t.Bits()))
	case v.CanUint():
		v.SetUint(r.Uint64() >> (64 - t.Bits()))
	case v.CanFloat():
		v.SetFloat(float64(float32(r.NormFloat64())))
	}
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.String:
		v.SetString(strings.Repeat(fmt.Sprint(r.IntN(100)), r.IntN(9)))
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			p := reflect.New(t.Elem())
			p.Elem().Set(value(r, t.Elem()))
			v.Set(p)
		}
	case reflect.Slice:
		if r.IntN(4) > 0 {
			n := r.IntN(4)
			v.Set(reflect.MakeSlice(t, n, n))
			for i := range n {
				v.Index(i).Set(value(r, t.Elem()))
			}
		}
	case reflect.Map:
		if r.IntN(4) > 0 {
			v.Set(reflect.MakeMap(t))
			for range r.IntN(4) {
				v.SetMapIndex(value(r, t.Key()), value(r, t.Elem()))
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && f.Type.Kind() != reflect.Func {
				v.Field(i).Set(value(r, f.Type))
			}
		}
	}
	return v
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	rows, err := gotype.For[everything]()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := make([]everything, r.IntN(20))
		for i := range in {
			in[i] = value(r, reflect.TypeFor[everything]()).Interface().(everything)
			in[i].ID = int64(i)
		}
		columns, err := rows.Encode(mem, in)
		if err != nil {
			t.Fatal(err)
		}
		from := r.IntN(len(in) + 1)
		n := r.IntN(len(in) - from + 1)
		out := make([]everything, n)
		// As slices, whose offset is not zero, and from their middle.
		cut := r.IntN(from + 1)
		sliced := make([]arrow.Array, len(columns))
		for i, c := range columns {
			sliced[i] = array.NewSlice(c, int64(cut), int64(c.Len()))
		}
		if err := rows.Decode(sliced, from-cut, out); err != nil {
			t.Fatal(err)
		}
		for _, c := range append(sliced, columns...) {
			c.Release()
		}
		if !reflect.DeepEqual(out, append([]everything{}, in[from:from+n]...)) {
			t.Fatalf("seed %d: got %+v, want %+v", seed, out, in[from:from+n])
		}
	}
}

func TestPlainType(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	rows, err := gotype.For[*int64]()
	if err != nil {
		t.Fatal(err)
	}
	seven := int64(7)
	columns, err := rows.Encode(mem, []*int64{nil, &seven})
	if err != nil {
		t.Fatal(err)
	}
	defer columns[0].Release()
	if got := fmt.Sprint(rows.Fields()[0].Name, columns[0]); got != "value[(null) 7]" {
		t.Error(got)
	}
	plain, err := gotype.For[int64]()
	if err != nil {
		t.Fatal(err)
	}
	err = plain.Decode(columns, 0, make([]int64, 2))
	if err == nil || err.Error() != "it is NULL, which its Go type cannot be; make it a pointer, or filter the rows" {
		t.Error(err)
	}
	if err := plain.Decode(columns, 1, make([]int64, 1)); err != nil {
		t.Error(err)
	}
}

func TestRangeErrors(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	wide, _ := gotype.For[int16]()
	narrow, _ := gotype.For[uint8]()
	for _, x := range []int16{-1, 256} {
		columns, err := wide.Encode(mem, []int16{x})
		if err != nil {
			t.Fatal(err)
		}
		if err := narrow.Decode(columns, 0, make([]uint8, 1)); err == nil || !strings.Contains(err.Error(), "does not fit uint8") {
			t.Error(err)
		}
		columns[0].Release()
	}
	instants, _ := gotype.For[time.Time]()
	if _, err := instants.Encode(mem, []time.Time{time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("a year beyond TIMESTAMP passed")
	}
}

type selfish struct{ Next *selfish }

type endless []endless

type clash struct {
	A int64 `tidemill:"x"`
	X int64
}

func TestUnmappable(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]func() error{
		"holds itself":                       errOf[selfish],
		"endless holds itself":               errOf[endless],
		"fields A and X are both called x":   errOf[clash],
		"a chan int cannot be a column":      errOf[struct{ C chan int }],
		"neither a number nor text":          errOf[map[struct{ A int }]int],
		"has two ways to be NULL":            errOf[*[]int],
		"field F: a func() cannot be":        errOf[struct{ F func() }],
		"struct {} has no exported fields":   errOf[[]struct{}],
		"a interface {} cannot be a column;": errOf[struct{ Any any }],
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func errOf[T any]() error {
	_, err := gotype.For[T]()
	return err
}

func BenchmarkDecode(b *testing.B) {
	type row struct {
		At    time.Time
		User  string
		Price int64
	}
	mem := columnar.NewPool()
	rows, _ := gotype.For[row]()
	in := make([]row, 16384)
	for i := range in {
		in[i] = row{time.UnixMicro(int64(i)).UTC(), fmt.Sprint("user", i%100), int64(i)}
	}
	columns, err := rows.Encode(mem, in)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := rows.Decode(columns, 0, in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(in))/b.Elapsed().Seconds(), "rows/s")
}
