package group

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

// canonical is a text that is equal for equal values and only for them.
func canonical(a arrow.Array, i int) string {
	if d, ok := a.(*array.Dictionary); ok {
		if d.IsNull(i) {
			return "null"
		}
		return canonical(d.Dictionary(), d.GetValueIndex(i))
	}
	if a.IsNull(i) || a.DataType().ID() == arrow.NULL {
		return "null"
	}
	switch a := a.(type) {
	case *array.Float64:
		return fmt.Sprint(a.Value(i) + 0) // -0.0 + 0 is 0.0
	case *array.Float32:
		return fmt.Sprint(a.Value(i) + 0)
	case *array.MonthDayNanoInterval:
		return fmt.Sprint(columnar.IntervalLength(a.Value(i)))
	case *array.Struct:
		s := "{"
		for f := range a.NumField() {
			s += canonical(a.Field(f), i) + ","
		}
		return s + "}"
	case *array.Map:
		from, to := a.ValueOffsets(i)
		var entries []string
		for j := int(from); j < int(to); j++ {
			entries = append(entries, canonical(a.Keys(), j)+":"+canonical(a.Items(), j))
		}
		slices.Sort(entries)
		return strings.Join(entries, ",")
	case *array.List:
		from, to := a.ValueOffsets(i)
		s := "["
		for j := int(from); j < int(to); j++ {
			s += canonical(a.ListValues(), j) + ","
		}
		return s + "]"
	}
	return fmt.Sprintf("%q", a.ValueStr(i))
}

func canonicalRow(keys []arrow.Array, i int) string {
	s := ""
	for _, a := range keys {
		s += canonical(a, i) + "|"
	}
	return s
}

var keyTypes = map[string][]arrow.DataType{
	"none":      {},
	"null":      {columnar.Null},
	"boolean":   {columnar.Boolean},
	"tinyint":   {columnar.Int8},
	"smallint":  {columnar.Int16},
	"integer":   {columnar.Int32},
	"bigint":    {columnar.Int64},
	"real":      {columnar.Float32},
	"double":    {columnar.Float64},
	"decimal":   {columnar.Decimal(20, 3)},
	"date":      {columnar.Date},
	"time":      {columnar.Time},
	"timestamp": {columnar.Timestamp},
	"interval":  {columnar.Interval},
	"varchar":   {columnar.String},
	"binary":    {columnar.Binary},
	"array":     {columnar.ListOf(columnar.String)},
	"struct":    {arrow.StructOf(columnar.Field("a", columnar.Float64), columnar.Field("b", columnar.String))},
	"map":       {arrow.MapOf(columnar.String, columnar.Int32)},
	"two words": {columnar.Timestamp, columnar.Int64},
	"one word":  {columnar.Int32, columnar.Int16, columnar.Boolean, columnar.Int8},
	"mixed":     {columnar.String, columnar.Int32, columnar.Timestamp, columnar.Binary, columnar.Null},
	"wide":      {columnar.Decimal(38, 0), columnar.Boolean, columnar.Interval, columnar.Float64, columnar.String, columnar.Date},
	"nested":    {columnar.Int8, columnar.ListOf(columnar.Int16), columnar.String},
}

// TestIdsEqualWhereValuesEqual feeds random batches, plain and encoded, and compares
// ids with those of a map of canonical texts; also when all hashes collide.
func TestIdsEqualWhereValuesEqual(t *testing.T) {
	t.Parallel()
	for name, types := range keyTypes {
		for _, mask := range []uint32{0, 1, 0x80000001} {
			t.Run(fmt.Sprintf("%s/mask=%x", name, mask), func(t *testing.T) {
				t.Parallel()
				checkTable(t, types, mask)
			})
		}
	}
}

func checkTable(t *testing.T, types []arrow.DataType, mask uint32) {
	mem := columnartest.Mem(t)
	budget := columnar.NewBudget(0)
	table, err := New(mem, types, Options{Budget: budget, tagMask: mask})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		table.Release()
		table.Release()
		if budget.Used() != 0 {
			t.Errorf("%d bytes stay reserved", budget.Used())
		}
	}()
	for round := range 2 {
		want := map[string]uint32{}
		var order []string
		rows := []int{1, 63, 1025, 2, 700}
		if mask != 0 {
			rows = []int{1, 63, 300}
		}
		for k, n := range rows {
			o := columnartest.RandomOptions{Rows: n, Dictionary: k%2 == 1, Distinct: []int{0, 3, 0, 40}[k%4]}
			if k == 0 {
				o.Nulls = -1
			}
			keys := make([]arrow.Array, len(types))
			for c, dt := range types {
				keys[c] = columnartest.RandomColumn(t, mem, dt, uint64(100*round+10*k+c), o)
			}
			unknown := make([]uint32, n)
			if err := table.Find(keys, unknown); err != nil {
				t.Fatal(err)
			}
			for i, id := range unknown {
				w, ok := want[canonicalRow(keys, i)]
				if !ok {
					w = NotFound
				}
				if id != w {
					t.Fatalf("row %d (%s) is found as %d, not %d", i, canonicalRow(keys, i), id, w)
				}
			}
			ids := make([]uint32, n)
			if err := table.Intern(keys, ids); err != nil {
				t.Fatal(err)
			}
			for i, id := range ids {
				s := canonicalRow(keys, i)
				w, ok := want[s]
				if !ok {
					w = uint32(len(want))
					want[s] = w
					order = append(order, s)
				}
				if id != w {
					t.Fatalf("row %d (%s) has id %d, not %d", i, s, id, w)
				}
			}
			if table.Len() != len(want) {
				t.Fatalf("%d keys, not %d", table.Len(), len(want))
			}
		}
		checkKeysBack(t, table, types, order)
		if budget.Used() > table.Bytes()+4096 {
			t.Errorf("%d bytes reserved, %d held", budget.Used(), table.Bytes())
		}
		table.Reset()
		if table.Len() != 0 {
			t.Fatal("keys are left after Reset")
		}
	}
}

func checkKeysBack(t *testing.T, table Table, types []arrow.DataType, order []string) {
	t.Helper()
	ids := make([]uint32, len(order))
	for i := range ids {
		ids[i] = uint32(len(order) - 1 - i)
	}
	keys, err := table.Keys(ids)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != len(types) {
		t.Fatalf("%d key columns, not %d", len(keys), len(types))
	}
	for c, a := range keys {
		if !arrow.TypeEqual(a.DataType(), types[c]) {
			t.Fatalf("key column %d is %s", c, a.DataType())
		}
		defer a.Release()
	}
	for i, id := range ids {
		if len(types) > 0 && canonicalRow(keys, i) != order[id] {
			t.Fatalf("id %d has key %s, not %s", id, canonicalRow(keys, i), order[id])
		}
	}
}

func TestTooManyColumnsForOneWordOfNulls(t *testing.T) {
	t.Parallel()
	types := slices.Repeat([]arrow.DataType{columnar.Int8}, maxKeyColumns+6)
	checkTable(t, types, 0)
}

func TestTypesAreChecked(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	if _, err := New(mem, []arrow.DataType{arrow.PrimitiveTypes.Uint16}, Options{}); err == nil {
		t.Error("an unsigned key was accepted")
	}
	table, err := New(mem, []arrow.DataType{columnar.Int64}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	a := columnartest.RandomColumn(t, mem, columnar.Int32, 1, columnartest.RandomOptions{Rows: 3})
	if err := table.Intern([]arrow.Array{a}, make([]uint32, 3)); err == nil {
		t.Error("INTEGER was taken for BIGINT")
	}
}

func TestBudgetRefuses(t *testing.T) {
	t.Parallel()
	for _, types := range [][]arrow.DataType{{columnar.Int64}, {columnar.String}, {columnar.String, columnar.Int64}} {
		mem := columnartest.Mem(t)
		budget := columnar.NewBudget(200_000)
		table, err := New(mem, types, Options{Budget: budget, Who: "test"})
		if err != nil {
			t.Fatal(err)
		}
		var refused error
		for seed := uint64(0); refused == nil; seed++ {
			keys := make([]arrow.Array, len(types))
			for c, dt := range types {
				keys[c] = columnartest.RandomColumn(t, mem, dt, seed, columnartest.RandomOptions{Rows: 5000})
			}
			refused = table.Intern(keys, make([]uint32, 5000))
			if seed > 100 {
				t.Fatal("never refused")
			}
		}
		if !errors.Is(refused, columnar.ErrMemory) {
			t.Fatalf("refused with %v", refused)
		}
		table.Release()
		if budget.Used() != 0 {
			t.Fatalf("%d bytes stay reserved", budget.Used())
		}
	}
}

// TestRowTable compares pairs with a nested loop.
func TestRowTable(t *testing.T) {
	t.Parallel()
	for name, types := range keyTypes {
		if len(types) == 0 {
			continue
		}
		for _, safe := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/nullsafe=%v", name, safe), func(t *testing.T) {
				t.Parallel()
				checkJoin(t, types, safe)
			})
		}
	}
}

func checkJoin(t *testing.T, types []arrow.DataType, safe bool) {
	mem := columnartest.Mem(t)
	column := func(seed uint64, n int, dictionary bool) []arrow.Array {
		keys := make([]arrow.Array, len(types))
		for c, dt := range types {
			keys[c] = columnartest.RandomColumn(t, mem, dt, seed+uint64(c)<<8, columnartest.RandomOptions{Rows: n, Distinct: 4, Dictionary: dictionary})
		}
		return keys
	}
	table, err := NewRowTable(mem, types, slices.Repeat([]bool{safe}, len(types)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	// The same seed and Distinct make both sides draw from the same few values.
	build := []([]arrow.Array){column(1, 60, false), column(1, 90, true)}
	var rows []string
	for _, keys := range build {
		if err := table.Add(keys, keys[0].Len()); err != nil {
			t.Fatal(err)
		}
		for i := range keys[0].Len() {
			rows = append(rows, canonicalRow(keys, i))
		}
	}
	table.Build()
	if table.Len() != len(rows) {
		t.Fatalf("%d rows, not %d", table.Len(), len(rows))
	}
	probe := column(1, 80, false)
	var want [][2]uint32
	counts := make([]uint32, 80)
	for i := range 80 {
		s := canonicalRow(probe, i)
		for j, r := range rows {
			if s == r && (safe || !hasNull(s)) {
				want = append(want, [2]uint32{uint32(i), uint32(j)})
				counts[i]++
			}
		}
	}
	got := make([]uint32, 80)
	if err := table.Match(probe, got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, counts) {
		t.Fatalf("counts %v, not %v", got, counts)
	}
	for _, size := range []int{1, 7, 100000} {
		var p Prober
		if err := p.Start(table, probe, 80); err != nil {
			t.Fatal(err)
		}
		var pairs [][2]uint32
		l, r := make([]uint32, size), make([]uint32, size)
		for {
			n := p.Next(l, r)
			if n == 0 {
				break
			}
			for i := range n {
				pairs = append(pairs, [2]uint32{l[i], r[i]})
			}
		}
		if !slices.Equal(pairs, want) {
			t.Fatalf("size %d: %d pairs, not %d, or in another order", size, len(pairs), len(want))
		}
		for i := range 80 {
			if p.Matched(i) != (counts[i] > 0) {
				t.Fatalf("row %d: Matched is %v", i, p.Matched(i))
			}
		}
	}
}

func hasNull(row string) bool {
	return strings.HasPrefix(row, "null|") || strings.Contains(row, "|null|")
}

// TestRowTableSorted: the rows of each key in another order, some excluded.
func TestRowTableSorted(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	table, err := NewRowTable(mem, []arrow.DataType{columnar.Int64}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	build := columnartest.Column(t, mem, "bigint", "7", "8", "7", "NULL", "7", "8", "9")
	if err := table.Add([]arrow.Array{build}, 7); err != nil {
		t.Fatal(err)
	}
	table.Exclude(2)
	table.Exclude(6)
	table.Build()
	table.SortRows(func(a, b uint32) int { return int(b) - int(a) })
	probe := columnartest.Column(t, mem, "bigint", "8", "7", "9", "NULL", "1")
	var p Prober
	if err := p.Start(table, []arrow.Array{probe}, 5); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]uint32{{5, 1}, {4, 0}, {}, {}, {}} {
		from, to := p.Range(i)
		if got := table.Rows()[from:to]; !slices.Equal(got, want) {
			t.Errorf("probe row %d matches %v, not %v", i, got, want)
		}
	}
}

func TestRowTableUnique(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	table, err := NewRowTable(mem, []arrow.DataType{columnar.Int64}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	build := columnartest.Column(t, mem, "bigint", "3", "NULL", "1", "2")
	if err := table.Add([]arrow.Array{build}, 4); err != nil {
		t.Fatal(err)
	}
	table.Build()
	if !table.Unique() {
		t.Fatal("keys are unique")
	}
	probe := columnartest.Column(t, mem, "bigint", "1", "1", "5", "NULL", "3")
	var p Prober
	if err := p.Start(table, []arrow.Array{probe}, 5); err != nil {
		t.Fatal(err)
	}
	l, r := make([]uint32, 2), make([]uint32, 2)
	var pairs []uint32
	for n := p.Next(l, r); n > 0; n = p.Next(l, r) {
		for i := range n {
			pairs = append(pairs, l[i], r[i])
		}
	}
	if !slices.Equal(pairs, []uint32{0, 2, 1, 2, 4, 0}) {
		t.Fatalf("pairs %v", pairs)
	}
}

func TestPartition(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	hashes := make([]uint64, 1000)
	for i := range hashes {
		hashes[i] = rnd.Uint64()
	}
	order, bounds := make([]uint32, 1000), make([]uint32, 17)
	Partition(hashes, 4, order, bounds)
	for p := range 16 {
		part := order[bounds[p]:bounds[p+1]]
		if !slices.IsSorted(part) {
			t.Fatalf("partition %d is not in row order", p)
		}
		for _, r := range part {
			if hashes[r]>>60 != uint64(p) {
				t.Fatalf("row %d is in partition %d", r, p)
			}
		}
	}
	if bounds[16] != 1000 {
		t.Fatalf("%d rows placed", bounds[16])
	}
}

// TestInternDoesNotAllocate: a batch of known keys costs no allocation.
func TestInternDoesNotAllocate(t *testing.T) {
	mem := columnartest.Mem(t)
	for _, types := range [][]arrow.DataType{{columnar.Int64}, {columnar.String}, {columnar.String, columnar.Timestamp}} {
		table, err := New(mem, types, Options{})
		if err != nil {
			t.Fatal(err)
		}
		keys := make([]arrow.Array, len(types))
		for c, dt := range types {
			keys[c] = columnartest.RandomColumn(t, mem, dt, 5, columnartest.RandomOptions{Rows: 4096, Nulls: -1})
		}
		ids := make([]uint32, 4096)
		if n := testing.AllocsPerRun(20, func() {
			if err := table.Intern(keys, ids); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%v: %v allocations", types, n)
		}
		table.Release()
	}
}

func BenchmarkIntern(b *testing.B) {
	mem := memory.NewGoAllocator()
	const rows = 1 << 14
	for _, groups := range []int{100, 100_000, 10_000_000} {
		rnd := rand.New(rand.NewPCG(1, uint64(groups)))
		ints := func() arrow.Array {
			v := array.NewInt64Builder(mem)
			for range rows {
				v.Append(rnd.Int64N(int64(groups)) * 7919)
			}
			return v.NewArray()
		}
		times := func() arrow.Array {
			v := array.NewTimestampBuilder(mem, columnar.Timestamp.(*arrow.TimestampType))
			for range rows {
				v.Append(arrow.Timestamp(rnd.Int64N(int64(math.Sqrt(float64(groups))))) * 1e7)
			}
			return v.NewArray()
		}
		small := func() arrow.Array {
			v := array.NewInt64Builder(mem)
			for range rows {
				v.Append(rnd.Int64N(int64(math.Sqrt(float64(groups)))))
			}
			return v.NewArray()
		}
		texts := func() arrow.Array {
			v := array.NewStringBuilder(mem)
			for range rows {
				v.Append(fmt.Sprintf("id%010d", rnd.IntN(groups)))
			}
			return v.NewArray()
		}
		codes := func() arrow.Array {
			plain := texts()
			defer plain.Release()
			return columnartest.Encode(mem, plain)
		}
		benchIntern(b, fmt.Sprintf("bigint/%d", groups), ints)
		benchIntern(b, fmt.Sprintf("timestamp_bigint/%d", groups), times, small)
		benchIntern(b, fmt.Sprintf("varchar/%d", groups), texts)
		if groups <= 100_000 {
			benchIntern(b, fmt.Sprintf("dictionary/%d", groups), codes)
		}
		benchIntern(b, fmt.Sprintf("varchar_bigint/%d", groups), texts, small)
	}
}

// benchIntern interns 2^24 rows (2^22 with -short) made of 256 different batches.
func benchIntern(b *testing.B, name string, columns ...func() arrow.Array) {
	b.Run(name, func(b *testing.B) {
		const rows, batches = 1 << 14, 1024
		keys := make([][]arrow.Array, batches)
		for i := range keys {
			for _, c := range columns {
				keys[i] = append(keys[i], c())
			}
		}
		var types []arrow.DataType
		for _, a := range keys[0] {
			dt := a.DataType()
			if d, ok := dt.(*arrow.DictionaryType); ok {
				dt = d.ValueType
			}
			types = append(types, dt)
		}
		ids := make([]uint32, rows)
		for b.Loop() {
			t, err := New(memory.DefaultAllocator, types, Options{})
			if err != nil {
				b.Fatal(err)
			}
			for _, k := range keys {
				if err := t.Intern(k, ids); err != nil {
					b.Fatal(err)
				}
			}
			t.Release()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows/batches, "ns/row")
	})
}
