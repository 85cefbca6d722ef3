package columnartest_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

const everyType = `a:boolean  b:tinyint  c:smallint  d:integer  e:bigint  f:real  g:double  h:varchar  i:binary  j:date  k:time  l:timestamp  m:interval  n:decimal(38,6)  o:array<bigint>  p:struct<x bigint, y varchar>  q:map<varchar, double>  r:array<struct<z array<varchar>>>`

func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	const text = `
id:bigint  name:varchar  at:timestamp               price:decimal(10,2)  tags:array<varchar>  s:struct<a bigint, b double>
-1         ""            1969-12-31T23:59:59.5Z     1.50                 ["x","y z"]          {"a":1,"b":2.5}
NULL       NULL          2024-02-29T00:00:00Z       -0.05                []                   {"a":null,"b":1}
2          "NULL"        NULL                       NULL                 NULL                 NULL
3          a b           10000-01-01T00:00:00Z      0.00                 [null]               {"a":3,"b":"NaN"}
`
	b := columnartest.Batch(t, mem, text)
	again := columnartest.Batch(t, mem, columnar.Text(b.Schema(), []arrow.RecordBatch{b}, columnar.TextOptions{Ordered: true}))
	columnartest.Equal(t, []arrow.RecordBatch{b}, []arrow.RecordBatch{again}, columnartest.DiffOptions{Ordered: true})
}

func TestRandomRoundTrip(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	schema := columnartest.Schema(t, everyType)
	for seed := range uint64(20) {
		b := columnartest.Random(t, mem, schema, seed, columnartest.RandomOptions{Rows: 50, Dictionary: seed%2 == 0})
		same := columnartest.Random(t, mem, schema, seed, columnartest.RandomOptions{Rows: 50, Dictionary: seed%2 == 0})
		if d := columnartest.Diff([]arrow.RecordBatch{b}, []arrow.RecordBatch{same}, columnartest.DiffOptions{}); d != "" {
			t.Fatal(d)
		}
		again := columnartest.Batch(t, mem, columnar.Text(b.Schema(), []arrow.RecordBatch{b}, columnar.TextOptions{Ordered: true}))
		if d := columnartest.Diff([]arrow.RecordBatch{b}, []arrow.RecordBatch{again}, columnartest.DiffOptions{Ordered: true}); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	a := columnartest.Batch(t, mem, "x:bigint  y:double\n1  0.1\n2  0.2\n3  NULL")
	b := columnartest.Batch(t, mem, "x:bigint  y:double\n3  NULL\n1  0.10000000000000002\n2  0.2")
	one := []arrow.RecordBatch{a}
	two := []arrow.RecordBatch{b}
	if d := columnartest.Diff(one, two, columnartest.DiffOptions{ULP: 2}); d != "" {
		t.Errorf("2 ulp: %s", d)
	}
	want := "3 rows wanted, 3 got\n- 1  0.1\n+ 1  0.10000000000000002\n"
	if d := columnartest.Diff(one, two, columnartest.DiffOptions{}); d != want {
		t.Errorf("got %s", d)
	}
	if d := columnartest.Diff(one, two, columnartest.DiffOptions{Ordered: true, ULP: 2}); d == "" {
		t.Errorf("order does not count")
	}
}

func TestReaders(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := columnartest.Random(t, mem, columnartest.Schema(t, everyType), 7, columnartest.RandomOptions{Rows: 100})
	r := columnartest.Watch(t, columnartest.Split(b.Schema(), []arrow.RecordBatch{b}, 1, 7, 64))
	defer r.Close()
	got, err := columnar.Drain(t.Context(), columnartest.InjectNulls(mem, r, 3))
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for _, g := range got {
		rows += g.NumRows()
		if !g.Column(4).IsNull(int(4%3)) && g.NumRows() > 1 {
			t.Errorf("no null injected")
		}
		g.Release()
	}
	if rows != 100 {
		t.Errorf("%d rows", rows)
	}
}
