package function

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// listMoreScalars are functions on ARRAY that DuckDB has.
func listMoreScalars() []*Scalar {
	one := []Matcher{listType}
	booleans := class("ARRAY of BOOLEAN", columnar.ListOf(columnar.Boolean), func(a arrow.DataType) bool {
		return a.ID() == arrow.LIST && elemOf(a).ID() == arrow.BOOL
	})
	return []*Scalar{
		prependScalar(),
		ofList("list_reverse_sort", "The elements of an array in descending order, nulls last.", "list_reverse_sort(array(3, NULL, 4)) = [4,3,null]", one, func(c *call, l kernel.Lists) func(int, func(k, j int)) {
			return func(i int, add func(k, j int)) {
				from, to := l.At(i)
				refs := make([]kernel.Ref, 0, to-from)
				for j := from; j < to; j++ {
					refs = append(refs, kernel.MakeRef(0, j))
				}
				kernel.SortRefs([]kernel.SortKey{{Columns: []arrow.Array{l.Child}, Descending: true, NullsLast: true}}, refs)
				for _, r := range refs {
					add(0, r.Row())
				}
			}
		}, "array_reverse_sort"),
		ofList("array_pop_back", "The elements of an array without the last.", "array_pop_back(array(1, 2)) = [1]", one, func(_ *call, l kernel.Lists) func(int, func(k, j int)) {
			return func(i int, add func(k, j int)) {
				from, to := l.At(i)
				for j := from; j < to-1; j++ {
					add(0, j)
				}
			}
		}),
		ofList("array_pop_front", "The elements of an array without the first.", "array_pop_front(array(1, 2)) = [2]", one, func(_ *call, l kernel.Lists) func(int, func(k, j int)) {
			return func(i int, add func(k, j int)) {
				from, to := l.At(i)
				for j := from + 1; j < to; j++ {
					add(0, j)
				}
			}
		}),
		ofList("list_where", "The elements of an array at the places where another, of BOOLEAN, is true.", "list_where(array(1, 2, 3), array(true, false, true)) = [1,3]", []Matcher{listType, booleans}, func(c *call, l kernel.Lists) func(int, func(k, j int)) {
			marks := kernel.ListsOf(c.args[1])
			return func(i int, add func(k, j int)) {
				from, to := l.At(i)
				at, end := marks.At(i)
				for j := from; j < min(to, from+end-at); j++ {
					if v, ok := columnar.Value(marks.Child, at+j-from).(bool); ok && v {
						add(0, j)
					}
				}
			}
		}, "array_where"),
		listSelectScalar(), listResizeScalar(),
		ofPlace("list_first", "The first element of an array; null if it is empty.", "list_first(array(1, 2)) = 1", func(l kernel.Lists, from, to int) int { return from }),
		ofPlace("list_last", "The last element of an array; null if it is empty.", "list_last(array(1, 2)) = 2", func(l kernel.Lists, from, to int) int { return to - 1 }),
		ofPlace("list_any_value", "The first element of an array that is not null; null if there is none.", "list_any_value(array(NULL, 2)) = 2", func(l kernel.Lists, from, to int) int {
			for from < to && columnar.IsNull(l.Child, from) {
				from++
			}
			return from
		}),
	}
}

// prependScalar is array_prepend with its arguments the other way round.
func prependScalar() *Scalar {
	o := withValue("", "", "", false).Overloads[0]
	swapped := o
	swapped.Args = []Matcher{o.Args[1], o.Args[0]}
	swapped.Result = func(args []arrow.DataType) (arrow.DataType, error) {
		return o.Result([]arrow.DataType{args[1], args[0]})
	}
	swapped.Bind = func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
		prepend, err := o.Bind([]arrow.DataType{args[1], args[0]}, []arrow.Array{nil, nil})
		if err != nil {
			return nil, err
		}
		return func(env *Env, args []columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
			return prepend(env, []columnar.Datum{args[1], args[0]}, rows, active)
		}, nil
	}
	return &Scalar{Name: "list_prepend", Doc: "A value, and the elements of an array behind it.", Example: "list_prepend(1, array(2, 3)) = [1,2,3]", Overloads: []Overload{swapped}}
}

// ofPlace is an element of an array: place finds it between two others, the last not part of
// it, or gives one that is not there.
func ofPlace(name, doc, example string, place func(l kernel.Lists, from, to int) int) *Scalar {
	result := func(args []arrow.DataType) (arrow.DataType, error) { return elemOf(args[0]), nil }
	return &Scalar{Name: name, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{listType}, Result: result, NullSafe: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			return onAllRows(elemOf(args[0]), func(c *call) (arrow.Array, error) {
				l := kernel.ListsOf(c.args[0])
				rows := make([]int32, c.rows)
				for i := range rows {
					rows[i] = -1
					if c.isNull(0, i) {
						continue
					}
					from, to := l.At(i)
					if at := place(l, from, to); at >= from && at < to {
						rows[i] = int32(at)
					}
				}
				return c.take(l.Child, rows)
			}), nil
		},
	}}}
}

// listSelectScalar takes elements by their places.
func listSelectScalar() *Scalar {
	places := class("ARRAY of BIGINT", columnar.ListOf(columnar.Int64), func(a arrow.DataType) bool {
		return a.ID() == arrow.LIST && (columnar.IsInteger(elemOf(a)) || elemOf(a).ID() == arrow.NULL)
	})
	return &Scalar{Name: "list_select", Aliases: []string{"array_select"}, Doc: "The elements of an array at the places that another holds, counted from 1; null at a place where there is none.", Example: "list_select(array('a', 'b', 'c'), array(3, 1)) = [\"c\",\"a\"]", Overloads: []Overload{{
		Args: []Matcher{listType, places}, Result: sameAs(0), Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			return onRows(args[0], func(c *call) (arrow.Array, error) {
				l := kernel.ListsOf(c.args[0])
				at, release, err := c.listsOf(1, columnar.Int64)
				if err != nil {
					return nil, err
				}
				defer release()
				none := columnar.Nulls(c.env.Mem, elemOf(args[0]), 1)
				defer none.Release()
				return c.lists([]kernel.Lists{l, {Child: none}}, func(i int, add func(k, j int)) {
					from, to := l.At(i)
					first, end := at.At(i)
					for j := first; j < end; j++ {
						place, ok := columnar.Value(at.Child, j).(int64)
						if !ok || place < 1 || place > int64(to-from) {
							add(1, 0)
							continue
						}
						add(0, from+int(place)-1)
					}
				})
			}), nil
		},
	}}}
}

// listResizeScalar cuts an array off or fills it up.
func listResizeScalar() *Scalar {
	bind := func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
		return onAllRows(args[0], func(c *call) (arrow.Array, error) {
			l, size := kernel.ListsOf(c.args[0]), numbersOf[int64](c.args[1])
			fill := columnar.Nulls(c.env.Mem, elemOf(args[0]), 1)
			if len(args) > 2 {
				fill.Release()
				var err error
				if fill, err = c.argAs(2, elemOf(args[0])); err != nil {
					return nil, err
				}
			}
			defer fill.Release()
			for i := range c.rows {
				switch n := size.at(i); {
				case c.isNull(0, i) || c.isNull(1, i) || !c.active.Get(i):
				case n < 0:
					return nil, isLength(n)
				case n > maxElements:
					return nil, errTooMany("list_resize", n)
				}
			}
			whole := *c
			whole.args = c.args[:2] // a null that fills up is an element
			return whole.lists([]kernel.Lists{l, {Child: fill}}, func(i int, add func(k, j int)) {
				if !c.active.Get(i) {
					return
				}
				from, to := l.At(i)
				for n := range int(min(max(size.at(i), 0), maxElements)) {
					switch {
					case n < to-from:
						add(0, from+n)
					case len(args) > 2:
						add(1, c.place(2, i))
					default:
						add(1, 0)
					}
				}
			})
		}), nil
	}
	form := func(args ...Matcher) Overload {
		result := func(types []arrow.DataType) (arrow.DataType, error) {
			if len(types) > 2 {
				if t, ok := columnar.Common(elemOf(types[0]), types[2]); !ok || !arrow.TypeEqual(t, elemOf(types[0])) {
					return nil, fmt.Errorf("an array of %s is not filled up with %s; cast one of them", columnar.TypeName(elemOf(types[0])), columnar.TypeName(types[2]))
				}
			}
			return types[0], nil
		}
		return Overload{Args: args, Result: result, NullSafe: true, Fallible: true, Bind: bind}
	}
	return &Scalar{Name: "list_resize", Aliases: []string{"array_resize"}, Doc: "An array of so many elements: cut off, or filled up with nulls or the third argument.", Example: "list_resize(array(1, 2), 3, 0) = [1,2,0]", Overloads: []Overload{
		form(listType, bigint), form(listType, bigint, anyType),
	}}
}
