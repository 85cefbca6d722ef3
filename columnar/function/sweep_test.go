package function

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

// TestSweep gives every aggregate columns of all types it takes, with and without
// DISTINCT, of random values, of nulls only, and none. It does not panic, and gives one
// result, or one error, whether the rows come at once, in batches, in parts that are
// merged or absorbed, or with the state saved and loaded in between. The
// result has the type that was declared.
func TestSweep(t *testing.T) {
	t.Parallel()
	for _, f := range aggregates() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			for _, types := range aggregateSignatures(f) {
				for _, distinct := range []bool{false, true}[:min(len(types), 1)+1] {
					for seed, o := range []columnartest.RandomOptions{{Rows: 23}, {Rows: 20, Distinct: 3}, {Rows: 5, Nulls: 1}, {Rows: 0}} {
						sweepAggregate(t, f, types, distinct, uint64(seed), o)
					}
				}
			}
		})
	}
}

var sweepTypes = []arrow.DataType{
	columnar.Int64, columnar.Float64, columnar.String, columnar.Boolean, columnar.Decimal(38, 0), columnar.Timestamp,
	columnar.Int8, columnar.Int16, columnar.Int32, columnar.Float32, columnar.Decimal(38, 38), columnar.Decimal(10, 2), columnar.Binary,
	columnar.Date, columnar.Time, columnar.Interval, columnar.ListOf(columnar.Float64), columnar.ListOf(columnar.String),
	arrow.StructOf(columnar.Field("a", columnar.Float64), columnar.Field("b", columnar.String)), columnar.ListOf(columnar.ListOf(columnar.Int64)),
	arrow.MapOf(columnar.String, columnar.Int64),
}

// aggregateSignatures are argument types that overloads of f take as they are: the first
// type of each argument, the second of each and so on.
func aggregateSignatures(f *Aggregate) [][]arrow.DataType {
	var all [][]arrow.DataType
	known := map[string]bool{}
	for _, o := range f.Overloads {
		n := len(o.Args)
		if o.Variadic {
			n++
		}
		candidates := make([][]arrow.DataType, n)
		most := 1
		for k := range candidates {
			for _, dt := range sweepTypes {
				if want, _, ok := o.Args[min(k, len(o.Args)-1)].Match(dt); ok && arrow.TypeEqual(want, dt) {
					candidates[k] = append(candidates[k], dt)
				}
			}
			most = max(most, len(candidates[k]))
		}
		for i := range most {
			types := make([]arrow.DataType, n)
			for k, c := range candidates {
				types[k] = c[(i+3*k)%len(c)]
			}
			if _, err := f.Resolve(types); err == nil && !known[fmt.Sprint(types)] {
				known[fmt.Sprint(types)] = true
				all = append(all, types)
			}
		}
	}
	return all
}

// aggregateSweep is an aggregate over columns. All but the first argument of most
// aggregates are constants; those that are not are taken from the first rows of columns.
type aggregateSweep struct {
	t        *testing.T
	mem      memory.Allocator
	title    string
	sig      *AggregateSignature
	distinct bool
	columns  []arrow.Array
	fixed    []bool // which arguments are constants
	rows     int
}

// constantArguments are the arguments from which on an aggregate takes constants.
var constantArguments = map[string]int{
	"first": 1, "last": 1, "any_value": 1, "listagg": 1, "percentile": 1, "percentile_disc": 1, "approx_quantile": 1, "approx_top_k": 1,
	"histogram_numeric": 1,
}

func sweepAggregate(t *testing.T, f *Aggregate, types []arrow.DataType, distinct bool, seed uint64, o columnartest.RandomOptions) {
	sig, err := f.Resolve(types)
	if err != nil {
		t.Fatal(err)
	}
	s := &aggregateSweep{t: t, mem: columnartest.Mem(t), sig: sig, distinct: distinct, rows: o.Rows, fixed: make([]bool, len(types))}
	s.title = fmt.Sprintf("%s(%v) distinct=%v seed=%d", f.Name, types, distinct, seed)
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s panics: %v", s.title, p)
		}
	}()
	for k, dt := range types {
		from, constant := constantArguments[f.Name]
		s.fixed[k] = constant && k >= from
		if s.fixed[k] {
			s.columns = append(s.columns, constantArgument(t, s.mem, dt))
			continue
		}
		s.columns = append(s.columns, columnartest.RandomColumn(t, s.mem, dt, seed*31+uint64(k), o))
	}
	s.check()
}

// constantArgument is a value that an aggregate may take as its further argument.
func constantArgument(t *testing.T, mem memory.Allocator, dt arrow.DataType) arrow.Array {
	var v any = "|"
	switch dt.ID() {
	case arrow.BOOL:
		v = true
	case arrow.FLOAT64:
		v = 0.25
	case arrow.LIST:
		v = []any{0.5, 1.0}
	case arrow.INT64, arrow.INT32:
		v = 3
	}
	a, err := columnar.Column(mem, dt, v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Release)
	return a
}

// open is an accumulator with a neighbour group before and behind.
func (s *aggregateSweep) open() Accumulator {
	var a Accumulator
	var err error
	if s.distinct {
		a, err = NewDistinct(s.mem, nil, s.sig.Overload, s.sig.Args)
	} else {
		a, err = s.sig.Overload.New(s.mem, s.sig.Args)
	}
	if err != nil {
		s.t.Fatalf("%s: %v", s.title, err)
	}
	a.Resize(3)
	return a
}

// update gives rows to group 1, with their numbers as ordinals.
func (s *aggregateSweep) update(a Accumulator, rows []int32) error {
	args := make([]columnar.Datum, 0, len(s.columns)+1)
	defer func() {
		for _, d := range args {
			d.Release()
		}
	}()
	for k, c := range s.columns {
		if s.fixed[k] {
			c.Retain()
			args = append(args, columnar.ConstantDatum(c))
			continue
		}
		args = append(args, columnar.ColumnDatum(take(s.t, s.mem, c, rows)))
	}
	if s.sig.Overload.Ordered {
		b := array.NewInt64Builder(s.mem)
		defer b.Release()
		for _, r := range rows {
			b.Append(int64(r))
		}
		args = append(args, columnar.ColumnDatum(b.NewArray()))
	}
	return a.Update(slices.Repeat([]uint32{1}, len(rows)), args)
}

func take(t *testing.T, mem memory.Allocator, a arrow.Array, rows []int32) arrow.Array {
	b := columnar.NewBuilder(mem, a.DataType())
	defer b.Release()
	for _, r := range rows {
		if err := b.AppendFrom(a, int(r)); err != nil {
			t.Fatal(err)
		}
	}
	return b.NewArray()
}

// result is the value of a group, or an error, and whether there was one before.
func (s *aggregateSweep) result(a Accumulator, group uint32, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	r, err := a.Result([]uint32{group})
	if err != nil {
		return nil, err
	}
	defer r.Release()
	if !arrow.TypeEqual(r.DataType(), s.sig.Result) {
		s.t.Errorf("%s is %s, declared as %s", s.title, columnar.TypeName(r.DataType()), columnar.TypeName(s.sig.Result))
	}
	return columnar.Value(r, 0), nil
}

func (s *aggregateSweep) check() {
	all := make([]int32, s.rows)
	for i := range all {
		all[i] = int32(i)
	}
	whole := s.open()
	defer whole.Release()
	nothing, _ := s.result(whole, 0, nil)
	want, failed := s.result(whole, 1, s.update(whole, all))
	same := func(how string, a Accumulator, err error) {
		got, err := s.result(a, 1, err)
		s.same(how, got, err, want, failed)
		if v, err := s.result(a, 2, nil); err != nil || !almost(v, nothing) {
			s.t.Errorf("%s %s: the group beside is %v, %v", s.title, how, v, err)
		}
		a.Release()
	}
	for _, size := range []int{1, 7} {
		a := s.open()
		var err error
		for part := range slices.Chunk(all, size) {
			err = errors.Join(err, s.update(a, part))
		}
		same(fmt.Sprintf("in batches of %d", size), a, err)
	}
	half := len(all) / 3
	a, err := s.merged(all[:half], all[half:])
	same("merged", a, err)
	a, err = s.merged(all[half:], all[:half])
	same("merged backwards", a, err)
	a, err = s.absorbed(all[:half], all[half:])
	same("absorbed", a, err)
	a, err = s.loaded(all[:half], all[half:])
	same("saved and loaded", a, err)
}

// merged is one part with the state of another merged into it.
func (s *aggregateSweep) merged(first, second []int32) (Accumulator, error) {
	a, b := s.open(), s.open()
	defer b.Release()
	if err := errors.Join(s.update(a, first), s.update(b, second)); err != nil {
		return a, err
	}
	return a, s.state(b, func(state []arrow.Array) error { return a.Merge([]uint32{1}, state) })
}

// absorbed is merged without state columns, where there is such a way.
func (s *aggregateSweep) absorbed(first, second []int32) (Accumulator, error) {
	a, b := s.open(), s.open()
	defer b.Release()
	absorber, ok := a.(Absorber)
	if !ok {
		return a, s.update(a, slices.Concat(first, second))
	}
	if err := errors.Join(s.update(a, first), s.update(b, second)); err != nil {
		return a, err
	}
	return a, absorber.Absorb([]uint32{1}, b, []uint32{1})
}

// loaded goes on with a part after the state of another was saved and loaded over it all.
func (s *aggregateSweep) loaded(first, second []int32) (Accumulator, error) {
	a, b := s.open(), s.open()
	defer b.Release()
	if err := errors.Join(s.update(a, second), s.update(b, first)); err != nil {
		return a, err
	}
	err := s.state(b, func(state []arrow.Array) error { return a.Load([]uint32{1}, state) })
	if err != nil {
		return a, err
	}
	return a, s.update(a, second)
}

// state is the state columns of group 1.
func (s *aggregateSweep) state(a Accumulator, use func([]arrow.Array) error) error {
	state, err := a.State([]uint32{1})
	if err != nil {
		return err
	}
	defer releaseAll(state)
	for i, f := range a.Fields() {
		if !arrow.TypeEqual(f.Type, state[i].DataType()) {
			s.t.Errorf("%s: state %s is %s, not %s", s.title, f.Name, state[i].DataType(), f.Type)
		}
	}
	return use(state)
}

func (s *aggregateSweep) same(how string, got any, err error, want any, failed error) {
	switch {
	case (err != nil) != (failed != nil):
		s.t.Errorf("%s %s: %v, %v, not %v, %v", s.title, how, got, err, want, failed)
	case err == nil && !almost(got, want):
		s.t.Errorf("%s %s: %v, not %v", s.title, how, got, want)
	case err != nil && strings.Contains(err.Error(), "bug: "):
		s.t.Errorf("%s: %v", s.title, err)
	}
}

// almost is equal, doubles up to what the order of additions changes.
func almost(a, b any) bool {
	switch x := a.(type) {
	case float64:
		y, ok := b.(float64)
		return ok && (sameValue(x, y) || math.Abs(x-y) <= 1e-9*math.Max(math.Abs(x), math.Abs(y)))
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, almost)
	case [][2]any:
		y, ok := b.([][2]any)
		return ok && slices.EqualFunc(x, y, func(p, q [2]any) bool { return almost(p[0], q[0]) && almost(p[1], q[1]) })
	}
	return sameValue(a, b)
}
