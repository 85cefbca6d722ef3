package function

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// listScalars are further functions on ARRAY.
func listScalars() []*Scalar {
	one := []Matcher{listType}
	return []*Scalar{
		ofList("array_reverse", "The elements of an array in reverse order.", "array_reverse(array(1, 2, 3)) = [3,2,1]", one, func(_ *call, l kernel.Lists) func(int, func(k, j int)) {
			return func(i int, add func(k, j int)) {
				from, to := l.At(i)
				for j := to - 1; j >= from; j-- {
					add(0, j)
				}
			}
		}, "list_reverse"),
		ofList("array_compact", "The elements of an array that are not null.", "array_compact(array(1, NULL, 3)) = [1,3]", one, func(_ *call, l kernel.Lists) func(int, func(k, j int)) {
			return func(i int, add func(k, j int)) {
				from, to := l.At(i)
				for j := from; j < to; j++ {
					if !columnar.IsNull(l.Child, j) {
						add(0, j)
					}
				}
			}
		}),
		withValue("array_append", "An array with one more element at the end.", "array_append(array(1, 2), 3) = [1,2,3]", true, "list_append", "array_push_back"),
		withValue("array_prepend", "An array with one more element at the beginning.", "array_prepend(array(2, 3), 1) = [1,2,3]", false),
		arrayRemoveScalar(), arrayRepeatScalar(), flattenScalar(), sequenceScalar(), seriesScalar(),
		twoLists("array_union", "The different elements of two arrays.", "array_union(array(1, 2), array(2, 3)) = [1,2,3]", func(inLeft, inRight, isLeft bool) bool { return true }),
		twoLists("array_intersect", "The different elements of an array that are in another.", "array_intersect(array(1, 2), array(2, 3)) = [2]", func(inLeft, inRight, isLeft bool) bool { return isLeft && inRight }, "list_intersect"),
		twoLists("array_except", "The different elements of an array that are not in another.", "array_except(array(1, 2), array(2, 3)) = [1]", func(inLeft, inRight, isLeft bool) bool { return isLeft && !inRight }),
		arraysOverlapScalar(),
	}
}

// listsOf is argument k, of type t, as lists of another element type.
func (c *call) listsOf(k int, elem arrow.DataType) (kernel.Lists, func(), error) {
	a, err := c.argAs(k, columnar.ListOf(elem))
	if err != nil {
		return kernel.Lists{}, nil, err
	}
	d := columnar.ColumnDatum(a)
	if c.args[k].IsConstant() {
		d = columnar.ConstantDatum(a)
	}
	return kernel.ListsOf(d), a.Release, nil
}

// withValue is an array and an element more, both brought to a common type.
func withValue(name, doc, example string, end bool, aliases ...string) *Scalar {
	result := func(args []arrow.DataType) (arrow.DataType, error) {
		t, ok := columnar.Common(elemOf(args[0]), args[1])
		if !ok {
			return nil, fmt.Errorf("an array of %s takes no %s; cast one of them", columnar.TypeName(elemOf(args[0])), columnar.TypeName(args[1]))
		}
		return columnar.ListOf(t), nil
	}
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{listType, anyType}, Result: result, NullSafe: true, Fallible: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			out, err := result(args)
			if err != nil {
				return nil, err
			}
			return onAllRows(out, func(c *call) (arrow.Array, error) {
				l, release, err := c.listsOf(0, elemOf(out))
				if err != nil {
					return nil, err
				}
				defer release()
				value, err := c.argAs(1, elemOf(out))
				if err != nil {
					return nil, err
				}
				defer value.Release()
				whole := *c
				whole.args = c.args[:1] // a null element is an element
				return whole.lists([]kernel.Lists{l, {Child: value}}, func(i int, add func(k, j int)) {
					if !end {
						add(1, c.place(1, i))
					}
					from, to := l.At(i)
					for j := from; j < to; j++ {
						add(0, j)
					}
					if end {
						add(1, c.place(1, i))
					}
				})
			}), nil
		},
	}}}
}

func arrayRemoveScalar() *Scalar {
	o := withElement(func(args []arrow.DataType) arrow.DataType { return args[0] }, func(c *call, lists kernel.Lists, value arrow.Array) (arrow.Array, error) {
		own := kernel.ListsOf(c.args[0])
		return c.lists([]kernel.Lists{own}, func(i int, add func(k, j int)) {
			from, to := own.At(i)
			at, _ := lists.At(i)
			for j := from; j < to; j++ {
				k := at + j - from
				if columnar.IsNull(lists.Child, k) || kernel.CompareValues(lists.Child, k, value, c.place(1, i)) != 0 {
					add(0, j)
				}
			}
		})
	})
	return &Scalar{Name: "array_remove", Doc: "The elements of an array that differ from a value; null for a null value.", Example: "array_remove(array(1, 2, 1), 1) = [2]", Overloads: []Overload{o}}
}

func arrayRepeatScalar() *Scalar {
	result := func(args []arrow.DataType) (arrow.DataType, error) { return columnar.ListOf(args[0]), nil }
	return &Scalar{Name: "array_repeat", Aliases: []string{"repeat_value"}, Doc: "An array of a value so many times.", Example: "array_repeat('x', 2) = [\"x\",\"x\"]", Overloads: []Overload{{
		Args: []Matcher{anyType, bigint}, Result: result, NullSafe: true, Fallible: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			return onAllRows(columnar.ListOf(args[0]), func(c *call) (arrow.Array, error) {
				times := numbersOf[int64](c.args[1])
				for i := range c.rows {
					n := times.at(i)
					if n <= 0 || c.isNull(1, i) || !c.active.Get(i) {
						continue
					}
					if n > maxElements {
						return nil, errTooMany("array_repeat", n)
					}
					if err := c.room(bytesOfElement * n); err != nil {
						return nil, err
					}
				}
				whole := *c
				whole.args = c.args[1:]
				return whole.lists([]kernel.Lists{{Child: c.args[0].Array()}}, func(i int, add func(k, j int)) {
					for n := times.at(i); n > 0 && c.active.Get(i); n-- {
						add(0, c.place(0, i))
					}
				})
			}), nil
		},
	}}}
}

// maxElements bounds the array that one call makes of numbers alone.
const maxElements = 1 << 24

func errTooMany(name string, n int64) error {
	return fmt.Errorf("%s would make an array of %d elements; the limit is %d", name, n, maxElements)
}

func flattenScalar() *Scalar {
	nested := matcher{"ARRAY of ARRAY", func(a arrow.DataType) (arrow.DataType, int, bool) {
		l, ok := a.(*arrow.ListType)
		return a, 0, ok && l.Elem().ID() == arrow.LIST
	}}
	return &Scalar{Name: "flatten", Doc: "The elements of an array of arrays as one array; null if one of them is null.", Example: "flatten(array(array(1), array(2, 3))) = [1,2,3]", Overloads: []Overload{{
		Args: []Matcher{nested}, Result: func(args []arrow.DataType) (arrow.DataType, error) { return elemOf(args[0]), nil }, NullSafe: true,
		Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			return onRows(elemOf(args[0]), func(c *call) (arrow.Array, error) {
				outer := kernel.ListsOf(c.args[0])
				inner := kernel.ListsOf(columnar.ColumnDatum(outer.Child))
				var known columnar.Bitmap
				known.Reset(c.rows)
				buf, ends := kernel.Make[int32](c.env.Mem, c.rows+1)
				var refs []kernel.Ref
				ends[0] = 0
				for i := range c.rows {
					if from, to := outer.At(i); !c.isNull(0, i) && !anyNull(outer.Child, from, to) {
						known.Set(i)
						for j := from; j < to; j++ {
							first, end := inner.At(j)
							for k := first; k < end; k++ {
								refs = append(refs, kernel.MakeRef(0, k))
							}
						}
					}
					ends[i+1] = int32(len(refs))
				}
				child, err := c.gather([]arrow.Array{inner.Child}, refs)
				if err != nil {
					buf.Release()
					return nil, err
				}
				valid, nulls := validityOfBitmap(c.env.Mem, &known)
				return kernel.WrapList(c.out, c.rows, nulls, valid, buf, child), nil
			}), nil
		},
	}}}
}

func anyNull(a arrow.Array, from, to int) bool {
	for j := from; j < to; j++ {
		if columnar.IsNull(a, j) {
			return true
		}
	}
	return false
}

// sequenceScalar is the numbers between two bounds, both included, or the times.
func sequenceScalar() *Scalar {
	list, dates, times := columnar.ListOf(columnar.Int64), columnar.ListOf(columnar.Date), columnar.ListOf(columnar.Timestamp)
	s := defineFallible("sequence", "The integers from one to another, both included, as an array, with a step of 1 or -1 or the given one; or the dates or times, with an interval as the step, else a day.", "sequence(1, 5, 2) = [1,3,5]", []Matcher{bigint, bigint}, list, integerSequences).
		alsoFor([]Matcher{bigint, bigint, bigint}, list, integerSequences).
		alsoFor([]Matcher{date, date}, dates, dateSequences).
		alsoFor([]Matcher{timestamp, timestamp}, times, timeSequences)
	s.Overloads = append(s.Overloads, dateSequence())
	return s.alsoFor([]Matcher{timestamp, timestamp, interval}, times, timeSequences)
}

// seriesScalar is sequence as DuckDB has it: dates are instants.
func seriesScalar() *Scalar {
	list := columnar.ListOf(columnar.Int64)
	return defineFallible("generate_series", "Like sequence; of dates it makes times. In FROM it is a table.", "generate_series(1, 5, 2) = [1,3,5]", []Matcher{bigint, bigint}, list, integerSequences).
		alsoFor([]Matcher{bigint, bigint, bigint}, list, integerSequences).
		alsoFor([]Matcher{timestamp, timestamp, interval}, columnar.ListOf(columnar.Timestamp), timeSequences)
}

// integerSequences are the integers from one to another, by a step.
func integerSequences(c *call) (arrow.Array, error) {
	var n [3]numbers[int64]
	for k := range c.args {
		n[k] = numbersOf[int64](c.args[k])
	}
	valid, nulls := c.validity()
	var values []int64
	buf, ends := kernel.Make[int32](c.env.Mem, c.rows+1)
	fail := func(err error) (arrow.Array, error) {
		buf.Release()
		releaseBuffer(valid)
		return nil, err
	}
	ends[0] = 0
	for i := range c.rows {
		if isSet(valid, i) && c.active.Get(i) {
			from, to := n[0].at(i), n[1].at(i)
			step := int64(1)
			if from > to {
				step = -1
			}
			if len(c.args) > 2 {
				step = n[2].at(i)
			}
			if step == 0 {
				return fail(errNoStep)
			}
			if from < to && step < 0 || from > to && step > 0 {
				return fail(fmt.Errorf("sequence(%d, %d, %d) never arrives; give the step the sign of the way", from, to, step))
			}
			count := magnitude(to-from)/magnitude(step) + 1
			if count > maxElements || (to-from >= 0) != (to >= from) {
				return fail(errTooMany("sequence", int64(min(count, math.MaxInt64))))
			}
			if err := c.room(8 * int64(len(values)+int(count))); err != nil {
				return fail(err)
			}
			for v, k := from, uint64(0); k < count; k++ {
				values = append(values, v)
				v += step
			}
		}
		ends[i+1] = int32(len(values))
	}
	data, out := kernel.Make[int64](c.env.Mem, len(values))
	copy(out, values)
	return kernel.WrapList(c.out, c.rows, nulls, valid, buf, kernel.Wrap(columnar.Int64, len(values), 0, nil, data)), nil
}

// elementSet tells apart the elements of lists by value; nulls are equal.
type elementSet struct {
	child arrow.Array
	seen  map[uint64][]int
}

func hashesOf(child arrow.Array, from, to int) []uint64 {
	hashes := make([]uint64, to-from)
	part := array.NewSlice(child, int64(from), int64(to))
	defer part.Release()
	kernel.Hash(hashes, []arrow.Array{part}, 0)
	return hashes
}

func (s *elementSet) has(hash uint64, child arrow.Array, j int) bool {
	for _, e := range s.seen[hash] {
		x, y := columnar.IsNull(s.child, e), columnar.IsNull(child, j)
		if x && y || !x && !y && kernel.CompareValues(s.child, e, child, j) == 0 {
			return true
		}
	}
	return false
}

func setOf(l kernel.Lists, i int) *elementSet {
	from, to := l.At(i)
	s := &elementSet{child: l.Child, seen: map[uint64][]int{}}
	for j, h := range hashesOf(l.Child, from, to) {
		s.seen[h] = append(s.seen[h], from+j)
	}
	return s
}

// twoLists is the different elements of two arrays, of the left one first, for which
// keep is true.
func twoLists(name, doc, example string, keep func(inLeft, inRight, isLeft bool) bool, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{listType, listType}, Unify: true, Result: sameAs(0), Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			return onRows(args[0], func(c *call) (arrow.Array, error) {
				l := []kernel.Lists{kernel.ListsOf(c.args[0]), kernel.ListsOf(c.args[1])}
				return c.lists(l, func(i int, add func(k, j int)) {
					sets := []*elementSet{setOf(l[0], i), setOf(l[1], i)}
					given := []*elementSet{{child: l[0].Child, seen: map[uint64][]int{}}, {child: l[1].Child, seen: map[uint64][]int{}}}
					for k := range l {
						from, to := l[k].At(i)
						for n, h := range hashesOf(l[k].Child, from, to) {
							j := from + n
							if given[0].has(h, l[k].Child, j) || given[1].has(h, l[k].Child, j) {
								continue
							}
							if keep(sets[0].has(h, l[k].Child, j), sets[1].has(h, l[k].Child, j), k == 0) {
								given[k].seen[h] = append(given[k].seen[h], j)
								add(k, j)
							}
						}
					}
				})
			}), nil
		},
	}}}
}

func arraysOverlapScalar() *Scalar {
	return &Scalar{Name: "arrays_overlap", Aliases: []string{"list_has_any", "array_has_any"}, Doc: "Whether two arrays have an element in common that is not null; null if they have not, but both have elements and one of them a null.", Example: "arrays_overlap(array(1, 2), array(2, 3)) = true", Overloads: []Overload{{
		Args: []Matcher{listType, listType}, Unify: true, Result: always(columnar.Boolean), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Boolean, func(c *call) (arrow.Array, error) {
				a, b := kernel.ListsOf(c.args[0]), kernel.ListsOf(c.args[1])
				bld := columnar.NewBuilder(c.env.Mem, columnar.Boolean)
				defer bld.Release()
				for i := range c.rows {
					common, open := false, false
					if !c.isNull(0, i) && !c.isNull(1, i) {
						common, open = overlap(a, b, i)
					}
					if c.isNull(0, i) || c.isNull(1, i) || !common && open {
						bld.AppendNull()
					} else if err := bld.Append(common); err != nil {
						return nil, err
					}
				}
				return bld.NewArray(), nil
			}), nil
		},
	}}}
}

// overlap says whether two arrays have a value in common, and whether a null may be one.
func overlap(a, b kernel.Lists, i int) (common, open bool) {
	set := setOf(a, i)
	from, to := b.At(i)
	first, end := a.At(i)
	for n, h := range hashesOf(b.Child, from, to) {
		if j := from + n; !columnar.IsNull(b.Child, j) && set.has(h, b.Child, j) {
			return true, false
		}
	}
	return false, from < to && first < end && (anyNull(a.Child, first, end) || anyNull(b.Child, from, to))
}
