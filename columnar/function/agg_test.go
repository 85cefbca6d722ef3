package function

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

// aggRow is one row as the reference sees it.
type aggRow struct {
	args    []any // nil is null
	ordinal int64
}

// aggCase is an aggregate with argument types and what it means, written down plainly.
// want sees the rows of one group by ordinal; the result is what columnar.Value gives.
type aggCase struct {
	name     string
	args     []arrow.DataType
	distinct bool
	want     func(rows []aggRow) any
	constant string // text of the second argument, if it is a constant
}

func aggLookup(t testing.TB, name string) *Aggregate {
	t.Helper()
	for _, a := range aggregates() {
		if a.Name == name || slices.Contains(a.Aliases, name) {
			return a
		}
	}
	t.Fatalf("no aggregate %s", name)
	return nil
}

func present(rows []aggRow) []aggRow {
	return slices.DeleteFunc(slices.Clone(rows), func(r aggRow) bool {
		for _, a := range r.args {
			if a == nil {
				return true
			}
		}
		return false
	})
}

func toBig(v any, scale int32) *big.Rat {
	switch v := v.(type) {
	case decimal128.Num:
		r := new(big.Rat).SetInt(v.BigInt())
		return r.Quo(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	case float64:
		return new(big.Rat).SetFloat64(v)
	case float32:
		return new(big.Rat).SetFloat64(float64(v))
	}
	var n int64
	fmt.Sscan(fmt.Sprint(v), &n)
	return new(big.Rat).SetInt64(n)
}

func wantSumInt(rows []aggRow) any {
	rows = present(rows)
	if len(rows) == 0 {
		return nil
	}
	s := new(big.Rat)
	for _, r := range rows {
		s.Add(s, toBig(r.args[0], 0))
	}
	if !s.Num().IsInt64() {
		return errOverflow
	}
	return s.Num().Int64()
}

var errOverflow = errors.New("overflow")

// wantSumFloat is the exact sum rounded once; plain where a value is not finite.
func wantSumFloat(rows []aggRow, mean bool) any {
	rows = present(rows)
	if len(rows) == 0 {
		return nil
	}
	s, plain, special := new(big.Rat), 0.0, false
	for _, r := range rows {
		f := asFloat(r.args[0])
		plain += f
		if !isFinite(f) {
			special = true
			continue
		}
		s.Add(s, new(big.Rat).SetFloat64(f))
	}
	if special {
		if mean {
			return plain / float64(len(rows))
		}
		return plain
	}
	if mean {
		s.Quo(s, new(big.Rat).SetInt64(int64(len(rows))))
	}
	f, _ := s.Float64()
	return f
}

func asFloat(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case float32:
		return float64(v)
	}
	f, _ := toBig(v, 0).Float64()
	return f
}

func wantDecimal(precision, scale, in int32, mean bool) func(rows []aggRow) any {
	return func(rows []aggRow) any {
		rows = present(rows)
		if len(rows) == 0 {
			return nil
		}
		s := new(big.Rat)
		for _, r := range rows {
			s.Add(s, toBig(r.args[0], in))
		}
		if mean {
			s.Quo(s, new(big.Rat).SetInt64(int64(len(rows))))
		}
		text := s.FloatString(int(scale)) // rounds half away from zero
		v, ok := new(big.Int).SetString(strings.Replace(text, ".", "", 1), 10)
		if !ok {
			panic(text)
		}
		if len(strings.TrimLeft(new(big.Int).Abs(v).String(), "0")) > int(precision) {
			return errOverflow
		}
		return decimal128.FromBigInt(v)
	}
}

// compareAny orders Go values of one type, NaN last, and structs as []any.
func compareAny(x, y any) int {
	if x == nil || y == nil {
		return cmp.Compare(b2i(x != nil), b2i(y != nil))
	}
	switch x := x.(type) {
	case string:
		return cmp.Compare(x, y.(string))
	case []byte:
		return bytes.Compare(x, y.([]byte))
	case bool:
		return cmp.Compare(b2i(x), b2i(y.(bool)))
	case float64, float32:
		return cmp.Compare(floatWord(asFloat(x)+0), floatWord(asFloat(y)+0))
	case decimal128.Num:
		return x.Cmp(y.(decimal128.Num))
	case []any:
		for i := range x {
			if i >= len(y.([]any)) {
				return 1
			}
			if c := compareAny(x[i], y.([]any)[i]); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(x), len(y.([]any)))
	case arrow.Timestamp:
		return cmp.Compare(x, y.(arrow.Timestamp))
	case arrow.Date32:
		return cmp.Compare(x, y.(arrow.Date32))
	case arrow.Time64:
		return cmp.Compare(x, y.(arrow.Time64))
	case arrow.MonthDayNanoInterval:
		return b2i(lessInterval(y.(arrow.MonthDayNanoInterval), x)) - b2i(lessInterval(x, y.(arrow.MonthDayNanoInterval)))
	}
	return toBig(x, 0).Cmp(toBig(y, 0))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func wantExtreme(sign int) func(rows []aggRow) any {
	return func(rows []aggRow) any {
		var best any
		for _, r := range present(rows) {
			if best == nil || compareAny(r.args[0], best)*sign > 0 {
				best = r.args[0]
			}
		}
		return best
	}
}

func wantBy(sign int) func(rows []aggRow) any {
	return func(rows []aggRow) any {
		var best *aggRow
		for i, r := range rows {
			if r.args[1] != nil && (best == nil || compareAny(r.args[1], best.args[1])*sign > 0) {
				best = &rows[i]
			}
		}
		if best == nil {
			return nil
		}
		return best.args[0]
	}
}

func wantVariance(sample, root bool) func(rows []aggRow) any {
	return func(rows []aggRow) any {
		rows = present(rows)
		n := int64(len(rows))
		if n == 0 || sample && n == 1 {
			return nil
		}
		mean, sum := new(big.Rat), new(big.Rat)
		for _, r := range rows {
			if f := asFloat(r.args[0]); !isFinite(f) {
				return math.NaN()
			}
			mean.Add(mean, toBig(r.args[0], 0))
		}
		mean.Quo(mean, new(big.Rat).SetInt64(n))
		for _, r := range rows {
			d := new(big.Rat).Sub(toBig(r.args[0], 0), mean)
			sum.Add(sum, d.Mul(d, d))
		}
		if sample {
			n--
		}
		f, _ := sum.Quo(sum, new(big.Rat).SetInt64(n)).Float64()
		if root {
			f = math.Sqrt(f)
		}
		return f
	}
}

func wantFirst(last, skip bool) func(rows []aggRow) any {
	return func(rows []aggRow) any {
		var v any
		for _, r := range rows {
			if skip && r.args[0] == nil {
				continue
			}
			if v = r.args[0]; !last {
				return v
			}
		}
		return v
	}
}

func wantList(rows []aggRow) any {
	out := []any{}
	for _, r := range rows {
		if r.args[0] != nil {
			out = append(out, r.args[0])
		}
	}
	return out
}

// wantDistinct keeps the first of equal rows.
func wantDistinct(want func([]aggRow) any) func(rows []aggRow) any {
	return func(rows []aggRow) any {
		seen := map[string]bool{}
		var out []aggRow
		for _, r := range rows {
			k := fmt.Sprintf("%#v", r.args)
			for i, a := range r.args {
				if f, ok := a.(float64); ok {
					k = fmt.Sprint(i, f+0)
				}
			}
			if !seen[k] {
				seen[k] = true
				out = append(out, r)
			}
		}
		return want(out)
	}
}

func wantCount(rows []aggRow) any { return int64(len(present(rows))) }

func aggCases() []aggCase {
	types := func(t ...arrow.DataType) []arrow.DataType { return t }
	structs := arrow.StructOf(columnar.Field("a", columnar.Timestamp), columnar.Field("b", columnar.String))
	cases := []aggCase{
		{name: "count", want: func(rows []aggRow) any { return int64(len(rows)) }},
		{name: "count", args: types(columnar.String), want: wantCount},
		{name: "count", args: types(columnar.Int64, columnar.Boolean, columnar.String), want: wantCount},
		{name: "count_if", args: types(columnar.Boolean), want: func(rows []aggRow) any {
			n := int64(0)
			for _, r := range rows {
				n += int64(b2i(r.args[0] == true))
			}
			return n
		}},
		{name: "sum", args: types(columnar.Int8), want: wantSumInt},
		{name: "sum", args: types(columnar.Int16), want: wantSumInt},
		{name: "sum", args: types(columnar.Int32), want: wantSumInt},
		{name: "sum", args: types(columnar.Int64), want: wantSumInt},
		{name: "sum", args: types(columnar.Float64), want: func(r []aggRow) any { return wantSumFloat(r, false) }},
		{name: "sum", args: types(columnar.Decimal(12, 3)), want: wantDecimal(22, 3, 3, false)},
		{name: "sum", args: types(columnar.Decimal(38, 2)), want: wantDecimal(38, 2, 2, false)},
		{name: "avg", args: types(columnar.Int32), want: func(r []aggRow) any { return wantSumFloat(r, true) }},
		{name: "avg", args: types(columnar.Int64), want: func(rows []aggRow) any {
			rows = present(rows)
			if len(rows) == 0 {
				return nil
			}
			s := new(big.Rat)
			for _, r := range rows {
				s.Add(s, toBig(r.args[0], 0))
			}
			f, _ := s.Quo(s, new(big.Rat).SetInt64(int64(len(rows)))).Float64()
			return f
		}},
		{name: "avg", args: types(columnar.Float64), want: func(r []aggRow) any { return wantSumFloat(r, true) }},
		{name: "avg", args: types(columnar.Decimal(12, 3)), want: wantDecimal(16, 7, 3, true)},
		{name: "avg", args: types(columnar.Decimal(38, 2)), want: wantDecimal(38, 6, 2, true)},
		{name: "bool_and", args: types(columnar.Boolean), want: wantExtreme(-1)},
		{name: "bool_or", args: types(columnar.Boolean), want: wantExtreme(1)},
		{name: "var_samp", args: types(columnar.Float64), want: wantVariance(true, false)},
		{name: "var_pop", args: types(columnar.Float64), want: wantVariance(false, false)},
		{name: "stddev", args: types(columnar.Float64), want: wantVariance(true, true)},
		{name: "stddev_pop", args: types(columnar.Float64), want: wantVariance(false, true)},
		{name: "first", args: types(columnar.Int64, columnar.Boolean), constant: "true", want: wantFirst(false, true)},
		{name: "last", args: types(columnar.String, columnar.Boolean), constant: "true", want: wantFirst(true, true)},
		{name: "last", args: types(columnar.String, columnar.Boolean), constant: "false", want: wantFirst(true, false)},
		{name: "min_by", args: types(columnar.String, columnar.Float64), want: wantBy(-1)},
		{name: "max_by", args: types(columnar.Int32, columnar.String), want: wantBy(1)},
		{name: "max_by", args: types(columnar.ListOf(columnar.Int32), columnar.Decimal(9, 1)), want: wantBy(1)},
		{name: "collect_list", args: types(columnar.Int64), want: wantList},
		{name: "collect_list", args: types(columnar.String), want: wantList},
		{name: "collect_list", args: types(structs), want: wantList},
		{name: "collect_set", args: types(columnar.Int32), want: wantDistinct(wantList)},
		{name: "listagg", args: types(columnar.String, columnar.String), constant: ", ", want: wantJoin(", ")},
		{name: "listagg", args: types(columnar.String), want: wantJoin("")},
		{name: "median", args: types(columnar.Float64), want: wantPercentile(0.5)},
		{name: "percentile", args: types(columnar.Float64, columnar.Float64), constant: "0.3", want: wantPercentile(0.3)},
		{name: "count", distinct: true, args: types(columnar.String), want: wantDistinct(wantCount)},
		{name: "count", distinct: true, args: types(columnar.Int16, columnar.String), want: wantDistinct(wantCount)},
		{name: "sum", distinct: true, args: types(columnar.Int32), want: wantDistinct(wantSumInt)},
		{name: "avg", distinct: true, args: types(columnar.Int16), want: wantDistinct(func(r []aggRow) any { return wantSumFloat(r, true) })},
		{name: "listagg", distinct: true, args: types(columnar.String, columnar.String), constant: "|", want: wantDistinct(wantJoin("|"))},
	}
	for _, dt := range []arrow.DataType{
		columnar.Boolean, columnar.Int8, columnar.Int16, columnar.Int32, columnar.Int64, columnar.Float32, columnar.Float64,
		columnar.Decimal(38, 5), columnar.String, columnar.Binary, columnar.Date, columnar.Time, columnar.Timestamp, columnar.Interval,
		structs, columnar.ListOf(columnar.String),
	} {
		cases = append(cases,
			aggCase{name: "min", args: types(dt), want: wantExtreme(-1)},
			aggCase{name: "max", args: types(dt), want: wantExtreme(1)},
			aggCase{name: "first", args: types(dt), want: wantFirst(false, false)},
			aggCase{name: "last", args: types(dt), want: wantFirst(true, false)})
	}
	return append(cases, intervalCases()...)
}

func wantJoin(between string) func(rows []aggRow) any {
	return func(rows []aggRow) any {
		var texts []string
		for _, r := range rows {
			if r.args[0] != nil {
				texts = append(texts, r.args[0].(string))
			}
		}
		if texts == nil {
			return nil
		}
		return strings.Join(texts, between)
	}
}

func wantPercentile(p float64) func(rows []aggRow) any {
	return func(rows []aggRow) any {
		var v []float64
		for _, r := range rows {
			if r.args[0] != nil {
				v = append(v, r.args[0].(float64))
			}
		}
		if v == nil {
			return nil
		}
		slices.SortFunc(v, func(x, y float64) int { return cmp.Compare(floatWord(x), floatWord(y)) })
		at := p * float64(len(v)-1)
		i := int(at)
		if f := at - float64(i); f > 0 {
			return v[i] + (v[i+1]-v[i])*f
		}
		return v[i]
	}
}

// aggData is random input of a case: rows with groups and ordinals.
type aggData struct {
	c      aggCase
	sig    *AggregateSignature
	mem    memory.Allocator
	groups []uint32
	cols   []arrow.Array // after the casts Resolve asks for: none in these cases
	ords   arrow.Array
	want   []any // per group
}

const aggGroups = 12 // the last stays empty

func newAggData(t *testing.T, c aggCase, seed uint64, rows int) *aggData {
	t.Helper()
	mem := columnartest.Mem(t)
	sig, err := aggLookup(t, c.name).Resolve(c.args)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	d := &aggData{c: c, sig: sig, mem: mem, groups: make([]uint32, rows)}
	for i, dt := range c.args {
		o := columnartest.RandomOptions{Rows: rows}
		if c.distinct {
			o.Distinct = 6
		}
		d.cols = append(d.cols, columnartest.RandomColumn(t, mem, dt, seed+uint64(i)*77, o))
	}
	b := array.NewInt64Builder(mem)
	defer b.Release()
	order := rnd.Perm(rows)
	for _, o := range order {
		b.Append(int64(o) + 5)
	}
	d.ords = b.NewArray()
	t.Cleanup(d.ords.Release)
	byGroup := make([][]aggRow, aggGroups)
	for i := range rows {
		g := uint32(rnd.IntN(aggGroups - 1))
		d.groups[i] = g
		row := aggRow{ordinal: int64(order[i])}
		for k, a := range d.cols {
			if k == 1 && c.constant != "" {
				row.args = append(row.args, c.constant)
				continue
			}
			row.args = append(row.args, columnar.Value(a, i))
		}
		byGroup[g] = append(byGroup[g], row)
	}
	for _, rows := range byGroup {
		slices.SortFunc(rows, func(x, y aggRow) int { return cmp.Compare(x.ordinal, y.ordinal) })
		d.want = append(d.want, c.want(rows))
	}
	return d
}

func (d *aggData) newAccumulator(t *testing.T, groups int) Accumulator {
	t.Helper()
	var a Accumulator
	var err error
	if d.c.distinct {
		a, err = NewDistinct(d.mem, nil, d.sig.Overload, d.sig.Args)
	} else {
		a, err = d.sig.Overload.New(d.mem, d.sig.Args)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.Resize(groups)
	return a
}

// update adds rows from to to.
func (d *aggData) update(t *testing.T, a Accumulator, from, to int, shift uint32) {
	t.Helper()
	if err := a.Update(shifted(d.groups[from:to], shift), d.datums(t, from, to)); err != nil {
		t.Fatal(err)
	}
}

func shifted(groups []uint32, by uint32) []uint32 {
	out := slices.Clone(groups)
	for i := range out {
		out[i] += by
	}
	return out
}

func (d *aggData) datums(t *testing.T, from, to int) []columnar.Datum {
	t.Helper()
	var args []columnar.Datum
	for k, a := range d.cols {
		if k == 1 && d.c.constant != "" {
			text := d.c.constant
			if d.sig.Args[k].ID() == arrow.STRING {
				text = `"` + text + `"`
			}
			c := columnartest.Column(t, d.mem, columnar.TypeName(d.sig.Args[k]), text)
			args = append(args, columnar.ConstantDatum(c))
			continue
		}
		s := array.NewSlice(a, int64(from), int64(to))
		t.Cleanup(s.Release)
		args = append(args, columnar.ColumnDatum(s))
	}
	if d.sig.Overload.Ordered {
		s := array.NewSlice(d.ords, int64(from), int64(to))
		t.Cleanup(s.Release)
		args = append(args, columnar.ColumnDatum(s))
	}
	return args
}

func rangeIDs(from, n int) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(from + i)
	}
	return ids
}

// check compares Result with the reference.
func (d *aggData) check(t *testing.T, what string, a Accumulator, shift uint32) {
	t.Helper()
	for i, want := range d.want {
		r, err := a.Result([]uint32{uint32(i) + shift})
		if want == errOverflow {
			var o *OverflowError
			if !errors.As(err, &o) {
				t.Fatalf("%s: group %d: overflow expected, got %v, %v", what, i, r, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: group %d: %v", what, i, err)
		}
		if !arrow.TypeEqual(r.DataType(), d.sig.Result) {
			t.Fatalf("%s: result is %s, not %s", what, r.DataType(), d.sig.Result)
		}
		if got := columnar.Value(r, 0); !sameValue(got, want) {
			t.Fatalf("%s: group %d is %v, not %v", what, i, got, want)
		}
		r.Release()
	}
}

// sameValue compares exactly, doubles to 2 ulp.
func sameValue(got, want any) bool {
	g, ok1 := got.(float64)
	w, ok2 := want.(float64)
	if ok1 && ok2 {
		if g == w || g != g && w != w {
			return true
		}
		return isFinite(g) && isFinite(w) && math.Abs(float64(int64(math.Float64bits(g))-int64(math.Float64bits(w)))) <= 2
	}
	if gl, ok := got.([]any); ok {
		wl, ok := want.([]any)
		if !ok || len(gl) != len(wl) {
			return false
		}
		for i := range gl {
			if !sameValue(gl[i], wl[i]) {
				return false
			}
		}
		return true
	}
	return fmt.Sprintf("%#v", got) == fmt.Sprintf("%#v", want) || (want != nil && got != nil && compareAny(got, want) == 0)
}

// TestAggregateLaws: every accumulator gives the reference result for whole, split,
// merged, saved and loaded, cleared and refilled input.
func TestAggregateLaws(t *testing.T) {
	t.Parallel()
	for _, c := range aggCases() {
		name := c.name
		if c.distinct {
			name += "_distinct"
		}
		for _, dt := range c.args {
			name += " " + columnar.TypeName(dt)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed, rows := range []int{0, 1, 65, 400} {
				checkLaws(t, newAggData(t, c, uint64(seed), rows), rows)
			}
		})
	}
}

func checkLaws(t *testing.T, d *aggData, rows int) {
	t.Helper()
	all := rangeIDs(0, aggGroups)
	whole := d.newAccumulator(t, aggGroups)
	defer whole.Release()
	d.update(t, whole, 0, rows, 0)
	d.check(t, "whole", whole, 0)

	// Split over three accumulators in parts, merged into a fourth, parts last to first.
	merged := d.newAccumulator(t, aggGroups+3)
	defer merged.Release()
	cuts := []int{0, rows / 7, rows / 2, rows}
	for p := 2; p >= 0; p-- {
		part := d.newAccumulator(t, aggGroups)
		for from := cuts[p]; from < cuts[p+1]; from += 50 {
			d.update(t, part, from, min(from+50, cuts[p+1]), 0)
		}
		state := d.state(t, part, all)
		if err := merged.Merge(rangeIDs(3, aggGroups), state); err != nil {
			t.Fatal(err)
		}
		part.Release()
	}
	d.check(t, "merged", merged, 3)

	// State does not change anything; Load overwrites what is there.
	state := d.state(t, whole, all)
	d.check(t, "after State", whole, 0)
	loaded := d.newAccumulator(t, aggGroups)
	defer loaded.Release()
	d.update(t, loaded, 0, rows/2, 0)
	loaded.Resize(aggGroups + 40)
	if err := loaded.Load(rangeIDs(40, aggGroups), state); err != nil {
		t.Fatal(err)
	}
	d.check(t, "loaded", loaded, 40)
	if err := loaded.Load(all, state); err != nil {
		t.Fatal(err)
	}
	d.check(t, "loaded over", loaded, 0)

	// A cleared group is neutral, and can be filled again; others keep their state.
	loaded.Clear(all)
	empty := d.newAccumulator(t, 1)
	defer empty.Release()
	d.sameResult(t, loaded, 3, empty, 0)
	d.update(t, loaded, 0, rows, 0)
	d.check(t, "refilled", loaded, 0)
	d.check(t, "neighbours", loaded, 40)
	if loaded.Bytes() <= 0 {
		t.Fatal("no bytes held")
	}
	d.checkRetract(t, rows)
}

func (d *aggData) state(t *testing.T, a Accumulator, groups []uint32) []arrow.Array {
	t.Helper()
	state, err := a.State(groups)
	if err != nil {
		t.Fatal(err)
	}
	fields := a.Fields()
	if len(fields) != len(state) {
		t.Fatalf("%d state columns, %d fields", len(state), len(fields))
	}
	for i, s := range state {
		t.Cleanup(s.Release)
		if !arrow.TypeEqual(s.DataType(), fields[i].Type) {
			t.Fatalf("state %s is %s, not %s", fields[i].Name, s.DataType(), fields[i].Type)
		}
	}
	if d.sig.Overload.Ordered && fields[0].Type.ID() != arrow.INT64 {
		t.Fatal("the first state column of an Ordered aggregate is its ordinal")
	}
	return state
}

func (d *aggData) sameResult(t *testing.T, a Accumulator, ga uint32, b Accumulator, gb uint32) {
	t.Helper()
	x, err := a.Result([]uint32{ga})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	y, err := b.Result([]uint32{gb})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Release()
	if !sameValue(columnar.Value(x, 0), columnar.Value(y, 0)) {
		t.Fatalf("results %s and %s", x, y)
	}
}

// checkRetract: rows added and taken back leave no trace.
func (d *aggData) checkRetract(t *testing.T, rows int) {
	t.Helper()
	a := d.newAccumulator(t, aggGroups)
	defer a.Release()
	r, ok := a.(Retractor)
	if !ok {
		return
	}
	half := rows / 2
	d.update(t, a, half, rows, 0)
	d.update(t, a, 0, rows, 0)
	if err := r.Retract(d.groups[half:rows], d.datums(t, half, rows)); err != nil {
		t.Fatal(err)
	}
	d.check(t, "retracted", a, 0)
}

// TestAggregateConstants: a constant argument counts as a column of it.
func TestAggregateConstants(t *testing.T) {
	t.Parallel()
	for _, c := range aggCases() {
		if len(c.args) == 0 || c.constant != "" {
			continue
		}
		d := newAggData(t, c, 3, 30)
		for row := range 5 {
			columns, constants := d.newAccumulator(t, aggGroups), d.newAccumulator(t, aggGroups)
			var wide, one []columnar.Datum
			for _, a := range d.cols {
				v := array.NewSlice(a, int64(row), int64(row+1))
				full, err := fullColumn(d.mem, columnar.ConstantDatum(v), a.DataType(), 30)
				if err != nil {
					t.Fatal(err)
				}
				wide, one = append(wide, columnar.ColumnDatum(full)), append(one, columnar.ConstantDatum(v))
			}
			if d.sig.Overload.Ordered {
				o := columnar.ColumnDatum(d.ords).Retain()
				wide, one = append(wide, o), append(one, o.Retain())
			}
			if err := columns.Update(d.groups, wide); err != nil {
				t.Fatal(err)
			}
			if err := constants.Update(d.groups, one); err != nil {
				t.Fatal(err)
			}
			for i := range wide {
				wide[i].Release()
				one[i].Release()
			}
			for g := range uint32(aggGroups) {
				x, err1 := columns.Result([]uint32{g})
				y, err2 := constants.Result([]uint32{g})
				if (err1 == nil) != (err2 == nil) {
					t.Fatalf("%s: %v and %v", c.name, err1, err2)
				}
				if err1 != nil {
					continue
				}
				if !sameValue(columnar.Value(x, 0), columnar.Value(y, 0)) {
					t.Fatalf("%s: column %s, constant %s", c.name, x, y)
				}
				x.Release()
				y.Release()
			}
			columns.Release()
			constants.Release()
		}
	}
}

// TestAge: what a group holds when it is aged comes before all later rows, whatever
// their ordinals.
func TestAge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []arrow.DataType
		want string
	}{
		{"first", []arrow.DataType{columnar.Int64}, "20"},
		{"last", []arrow.DataType{columnar.Int64}, "30"},
		{"collect_list", []arrow.DataType{columnar.Int64}, "[20,10,40,30]"},
		{"collect_set", []arrow.DataType{columnar.Int64}, "[20,10,40,30]"},
		{"max_by", []arrow.DataType{columnar.Int64, columnar.Int64}, "20"},
	}
	for _, tt := range tests {
		mem := columnartest.Mem(t)
		sig, err := aggLookup(t, tt.name).Resolve(tt.args)
		if err != nil {
			t.Fatal(err)
		}
		a, err := sig.Overload.New(mem, sig.Args)
		if err != nil {
			t.Fatal(err)
		}
		a.Resize(1)
		y := columnartest.Column(t, mem, "bigint", "1", "1")
		for _, batch := range [][2]string{{"10 20", "9 8"}, {"30 40", "7 6"}} {
			x := columnartest.Column(t, mem, "bigint", strings.Fields(batch[0])...)
			o := columnartest.Column(t, mem, "bigint", strings.Fields(batch[1])...)
			args := []columnar.Datum{columnar.ColumnDatum(x)}
			if len(tt.args) > 1 {
				args = append(args, columnar.ColumnDatum(y))
			}
			if err := a.Update([]uint32{0, 0}, append(args, columnar.ColumnDatum(o))); err != nil {
				t.Fatal(err)
			}
			// A save and restore in between changes nothing.
			a.(Ager).Age([]uint32{0})
			state, err := a.State([]uint32{0})
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Load([]uint32{0}, state); err != nil {
				t.Fatal(err)
			}
			releaseAll(state)
		}
		r, err := a.Result([]uint32{0})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(columnar.AppendJSON(nil, r, 0)); got != tt.want {
			t.Errorf("%s: %s, not %s", tt.name, got, tt.want)
		}
		r.Release()
		a.Release()
	}
}

func TestSumOverflow(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	sum := func(typ string, values ...string) (arrow.Array, error) {
		col := columnartest.Column(t, mem, typ, values...)
		sig, err := aggLookup(t, "sum").Resolve([]arrow.DataType{col.DataType()})
		if err != nil {
			t.Fatal(err)
		}
		a, err := sig.Overload.New(mem, sig.Args)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Release()
		a.Resize(1)
		if err := a.Update(make([]uint32, len(values)), []columnar.Datum{columnar.ColumnDatum(col)}); err != nil {
			t.Fatal(err)
		}
		return a.Result([]uint32{0})
	}
	nines := strings.Repeat("9", 38)
	for _, c := range []struct {
		typ    string
		values []string
		want   string
	}{
		{"bigint", []string{"9223372036854775807", "1"}, ""},
		{"bigint", []string{"-9223372036854775808", "-1"}, ""},
		{"bigint", []string{"9223372036854775807", "1", "-1"}, "9223372036854775807"},
		{"bigint", []string{"-9223372036854775808", "-9223372036854775808", "9223372036854775807", "1"}, "-9223372036854775808"},
		{"decimal(38,0)", []string{nines, "1"}, ""},
		{"decimal(38,0)", []string{nines, nines, "-" + nines, "-1"}, strings.Repeat("9", 37) + "8"},
		{"decimal(38,0)", []string{"-" + nines, "-" + nines, "-" + nines, nines, nines}, "-" + nines},
	} {
		r, err := sum(c.typ, c.values...)
		if c.want == "" {
			var o *OverflowError
			if !errors.As(err, &o) || !strings.Contains(err.Error(), "CAST") {
				t.Errorf("sum of %v: %v", c.values, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("sum of %v: %v", c.values, err)
			continue
		}
		if got := string(columnar.AppendJSON(nil, r, 0)); got != c.want {
			t.Errorf("sum of %v is %s, not %s", c.values, got, c.want)
		}
		r.Release()
	}
}

// TestDoubleSumLeavesRange: a sum that is finite is, in whatever order its values come and
// whichever of them are summed apart.
func TestDoubleSumLeavesRange(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	for _, c := range []struct {
		values    []float64
		sum, mean float64
	}{
		{[]float64{1e308, 1e308, -1e308, -1e308, 3}, 3, 0.6},
		{[]float64{math.MaxFloat64, math.MaxFloat64, 1, -math.MaxFloat64, 1}, math.MaxFloat64, math.MaxFloat64 / 5},
		{[]float64{-1e308, -1e308, -1e308, 1e308}, -inf, -5e307},
		{[]float64{1e308, 1e308, -inf, 1}, -inf, -inf},
		{[]float64{1e308, 1e308, -inf, inf}, math.NaN(), math.NaN()},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, inf, math.MaxFloat64},
	} {
		permute(slices.Clone(c.values), func(order []float64) {
			for split := range len(order) + 1 {
				for name, want := range map[string]float64{"sum": c.sum, "avg": c.mean} {
					if got := sumInTwo(t, name, order[:split], order[split:]); got != want && !(got != got && want != want) {
						t.Fatalf("%s of %v and %v is %v, not %v", name, order[:split], order[split:], got, want)
					}
				}
			}
		})
	}
}

// permute calls f with every order of values from the k-th on.
func permute(values []float64, f func([]float64)) {
	var from func(k int)
	from = func(k int) {
		if k == len(values) {
			f(values)
			return
		}
		for i := k; i < len(values); i++ {
			values[k], values[i] = values[i], values[k]
			from(k + 1)
			values[k], values[i] = values[i], values[k]
		}
	}
	from(0)
}

// sumInTwo is an aggregate of a and b, each with an accumulator of its own, whose states
// are loaded and merged by a third.
func sumInTwo(t *testing.T, name string, a, b []float64) float64 {
	mem := columnartest.Mem(t)
	sig, err := aggLookup(t, name).Resolve([]arrow.DataType{columnar.Float64})
	if err != nil {
		t.Fatal(err)
	}
	made := func() Accumulator {
		acc, err := sig.Overload.New(mem, sig.Args)
		if err != nil {
			t.Fatal(err)
		}
		acc.Resize(1)
		return acc
	}
	group := []uint32{0}
	all := made()
	defer all.Release()
	for i, values := range [][]float64{a, b} {
		acc := made()
		builder := array.NewFloat64Builder(mem)
		builder.AppendValues(values, nil)
		d := columnar.ColumnDatum(builder.NewArray())
		builder.Release()
		err := acc.Update(make([]uint32, len(values)), []columnar.Datum{d})
		d.Release()
		if err != nil {
			t.Fatal(err)
		}
		state, err := acc.State(group)
		if err == nil && i == 0 {
			err = all.Load(group, state)
		} else if err == nil {
			err = all.Merge(group, state)
		}
		releaseAll(state)
		acc.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := all.Result(group)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	return r.(*array.Float64).Value(0)
}

// TestVarianceFarFromZero: values like timestamps in microseconds, in any order and
// split anyhow, give the same double to 2 ulp.
func TestVarianceFarFromZero(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(4, 4))
	rows := make([]aggRow, 3000)
	for i := range rows {
		rows[i].args = []any{1.7e15 + math.Floor(rnd.NormFloat64()*4)}
	}
	rows[0].args[0] = 1.7e15 + 1e6 // the shift of one order is an outlier
	want := wantVariance(true, false)(rows).(float64)
	for range 5 {
		var total varianceCell
		for at := 0; at < len(rows); {
			var part varianceCell
			end := min(at+1+rnd.IntN(1000), len(rows))
			for _, r := range rows[at:end] {
				part.add(r.args[0].(float64))
			}
			total.merge(part)
			at = end
		}
		if got, _ := total.result(true, false); !sameValue(got, want) {
			t.Fatalf("variance %v, not %v", got, want)
		}
		rnd.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
}

func TestDistinctPairs(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	budget := columnar.NewBudget(0)
	sig, err := aggLookup(t, "count").Resolve([]arrow.DataType{columnar.Int64})
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDistinct(mem, budget, sig.Overload, sig.Args)
	if err != nil {
		t.Fatal(err)
	}
	d.Resize(2)
	x := columnartest.Column(t, mem, "bigint", "1", "2", "1", "NULL", "1")
	if err := d.Update([]uint32{0, 0, 0, 0, 1}, []columnar.Datum{columnar.ColumnDatum(x)}); err != nil {
		t.Fatal(err)
	}
	of, values, _, err := d.Pairs([]uint32{1, 0})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(of, []uint32{0, 1, 1, 1}) || len(values) != 1 {
		t.Fatalf("pairs of %v", of)
	}
	columnartest.EqualArrays(t, columnartest.Column(t, mem, "bigint", "1", "1", "2", "NULL"), values[0])
	values[0].Release()
	// Many cleared groups do not stay in memory.
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	big := columnartest.Column(t, mem, "bigint", many...)
	for range 50 {
		if err := d.Update(make([]uint32, 1000), []columnar.Datum{columnar.ColumnDatum(big)}); err != nil {
			t.Fatal(err)
		}
		d.Clear([]uint32{0})
	}
	if n := d.set.Len(); n > 6000 {
		t.Errorf("%d pairs kept, 1 lives", n)
	}
	r, err := d.Result([]uint32{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	columnartest.EqualArrays(t, columnartest.Column(t, mem, "bigint", "0", "1"), r)
	d.Release()
	if budget.Used() != 0 {
		t.Errorf("%d bytes stay reserved", budget.Used())
	}
}

func TestAggregateTypes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []arrow.DataType
		want string
	}{
		{"sum", []arrow.DataType{columnar.Int8}, "BIGINT"},
		{"sum", []arrow.DataType{columnar.Float32}, "DOUBLE"},
		{"sum", []arrow.DataType{columnar.Null}, "BIGINT"},
		{"sum", []arrow.DataType{columnar.Decimal(30, 4)}, "DECIMAL(38,4)"},
		{"avg", []arrow.DataType{columnar.Int64}, "DOUBLE"},
		{"avg", []arrow.DataType{columnar.Decimal(10, 2)}, "DECIMAL(14,6)"},
		{"avg", []arrow.DataType{columnar.Decimal(38, 38)}, "DECIMAL(38,38)"},
		{"stddev", []arrow.DataType{columnar.Decimal(10, 2)}, "DOUBLE"},
		{"max", []arrow.DataType{columnar.Timestamp}, "TIMESTAMP"},
		{"count", nil, "BIGINT"},
		{"collect_list", []arrow.DataType{columnar.String}, "ARRAY<VARCHAR>"},
		{"sum", []arrow.DataType{columnar.String}, "DOUBLE"},
		{"sum", []arrow.DataType{columnar.Interval}, "INTERVAL"},
		{"sum", []arrow.DataType{columnar.Date}, "error"},
		{"median", []arrow.DataType{columnar.Date}, "TIMESTAMP"},
		{"percentile_disc", []arrow.DataType{columnar.Date, columnar.Float64}, "DATE"},
		{"percentile_disc", []arrow.DataType{columnar.Int64, columnar.Decimal(2, 1)}, "BIGINT"},
		{"quantile", []arrow.DataType{columnar.Decimal(20, 3), columnar.ListOf(columnar.Decimal(2, 1))}, "ARRAY<DECIMAL(20,3)>"},
		{"quantile_disc", []arrow.DataType{columnar.Null, columnar.Float64}, "DOUBLE"},
		{"percentile", []arrow.DataType{columnar.Int32, columnar.ListOf(columnar.Decimal(2, 1))}, "ARRAY<DOUBLE>"},
		{"max", []arrow.DataType{columnar.Interval}, "INTERVAL"},
		{"max", []arrow.DataType{arrow.MapOf(columnar.String, columnar.Int32)}, "error"},
		{"bool_and", []arrow.DataType{columnar.Int32}, "error"},
	} {
		sig, err := aggLookup(t, tt.name).Resolve(tt.args)
		got := "error"
		if err == nil {
			got = columnar.TypeName(sig.Result)
		}
		if got != tt.want {
			t.Errorf("%s(%v) is %s, not %s (%v)", tt.name, tt.args, got, tt.want, err)
		}
	}
}

func TestAggregatesAreDocumented(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	for _, a := range aggregates() {
		if err := r.AddAggregate(a); err != nil {
			t.Error(err)
		}
		if a.Doc == "" || !strings.HasSuffix(a.Doc, ".") || !strings.HasPrefix(a.Example, "SELECT ") || !strings.Contains(a.Example, " = ") {
			t.Errorf("%s needs a Doc and an Example", a.Name)
		}
	}
}

// TestUpdateDoesNotAllocate: adding a batch to known groups costs no allocation.
func TestUpdateDoesNotAllocate(t *testing.T) {
	mem := columnartest.Mem(t)
	groups := make([]uint32, 4096)
	for i := range groups {
		groups[i] = uint32(i % 100)
	}
	for _, c := range []struct {
		name string
		dt   arrow.DataType
	}{
		{"count", columnar.Int64}, {"sum", columnar.Int32}, {"sum", columnar.Float64}, {"sum", columnar.Decimal(10, 2)},
		{"min", columnar.Float64}, {"max", columnar.Timestamp}, {"max", columnar.String}, {"stddev", columnar.Float64},
	} {
		for _, nulls := range []float64{-1, 0.2} {
			col := columnartest.RandomColumn(t, mem, c.dt, 1, columnartest.RandomOptions{Rows: 4096, Nulls: nulls})
			sig, err := aggLookup(t, c.name).Resolve([]arrow.DataType{c.dt})
			if err != nil {
				t.Fatal(err)
			}
			a, err := sig.Overload.New(mem, sig.Args)
			if err != nil {
				t.Fatal(err)
			}
			a.Resize(100)
			args := []columnar.Datum{columnar.ColumnDatum(col)}
			if n := testing.AllocsPerRun(20, func() {
				if err := a.Update(groups, args); err != nil {
					t.Fatal(err)
				}
			}); n > 1 { // count lists its nullable arguments
				t.Errorf("%s %s: %v allocations", c.name, c.dt, n)
			}
			a.Release()
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	const rows = 1 << 14
	mem := memory.NewGoAllocator()
	for _, groups := range []int{1, 100, 100_000} {
		rnd := rand.New(rand.NewPCG(1, 1))
		ids := make([]uint32, rows)
		for i := range ids {
			ids[i] = uint32(rnd.IntN(groups))
		}
		for _, c := range []struct {
			name string
			dt   arrow.DataType
		}{
			{"count", columnar.Int64}, {"sum", columnar.Int64}, {"sum", columnar.Float64}, {"avg", columnar.Float64}, {"max", columnar.Int64},
			{"min", columnar.Float64}, {"max", columnar.String}, {"stddev", columnar.Float64}, {"skewness", columnar.Float64}, {"sum", columnar.Decimal(18, 2)},
		} {
			b.Run(fmt.Sprintf("%s/%s/%d", c.name, columnar.TypeName(c.dt), groups), func(b *testing.B) {
				col := columnartest.RandomColumn(b, mem, c.dt, 1, columnartest.RandomOptions{Rows: rows, Nulls: -1})
				sig, err := aggLookup(b, c.name).Resolve([]arrow.DataType{c.dt})
				if err != nil {
					b.Fatal(err)
				}
				a, err := sig.Overload.New(mem, sig.Args)
				if err != nil {
					b.Fatal(err)
				}
				a.Resize(groups)
				args := []columnar.Datum{columnar.ColumnDatum(col)}
				for b.Loop() {
					if err := a.Update(ids, args); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			})
		}
	}
}
