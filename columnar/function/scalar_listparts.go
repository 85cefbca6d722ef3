package function

import (
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// listPartScalars take arrays apart, put them together and ask what is in them.
func listPartScalars() []*Scalar {
	return []*Scalar{
		sliceScalar(),
		concatListsScalar(), hasAllScalar(), mapFromEntriesScalar(),
		{Name: "get", Doc: "Element of an array, counted from 0; null out of range.", Example: "get(array(10, 20), 1) = 20", Overloads: []Overload{elementOverload(0, true)}},
	}
}

// sliceScalar is what a[i:j] calls, of arrays and of texts.
func sliceScalar() *Scalar {
	s := ofList("array_slice", "The elements of an array, or the characters of a text, from one place to another, both included, counted from 1, or from the end if negative; places outside are cut off. a[i:j] is the same, without i from the first, without j to the last.", "array_slice(array(1, 2, 3, 4), 2, 3) = [2,3]", []Matcher{listType, bigint, bigint}, func(c *call, l kernel.Lists) func(int, func(k, j int)) {
		first, last := numbersOf[int64](c.args[1]), numbersOf[int64](c.args[2])
		return func(i int, add func(k, j int)) {
			from, to := l.At(i)
			low, high := slicePlaces(first.at(i), last.at(i), int64(to-from))
			for k := low; k <= high; k++ {
				add(0, from+int(k)-1)
			}
		}
	}, "list_slice")
	ofText := textFunction{args: []Matcher{varchar, bigint, bigint}, f: func(_ *call, t []kernel.Texts, n []numbers[int64]) func([]byte, int) ([]byte, error) {
		return func(dst []byte, i int) ([]byte, error) {
			text := t[0].At(i)
			low, high := slicePlaces(n[0].at(i), n[1].at(i), int64(utf8.RuneCount(text)))
			return append(dst, kernel.Substring(text, low, max(high-low+1, 0))...), nil
		}
	}}
	s.Overloads = append(s.Overloads, ofText.scalar().Overloads...)
	return s
}

// slicePlaces are the places of n that a slice from first to last takes.
func slicePlaces(first, last, n int64) (low, high int64) {
	return max(fromEnd(first, n), 1), min(fromEnd(last, n), n)
}

// fromEnd is a place from 1, given one that counts from the end of n if negative.
func fromEnd(at, n int64) int64 {
	if at < 0 {
		return n + 1 + at
	}
	return at
}

func concatListsScalar() *Scalar {
	return &Scalar{Name: "array_concat", Aliases: []string{"array_cat", "list_concat", "list_cat"}, Doc: "The elements of arrays, one array after another; null if any is null.", Example: "array_concat(array(1), array(2, NULL)) = [1,2,null]", Overloads: []Overload{{
		Args: []Matcher{listType}, Variadic: true, Unify: true, Result: sameAs(0), Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			return onRows(args[0], func(c *call) (arrow.Array, error) {
				l := make([]kernel.Lists, len(c.args))
				for k := range l {
					l[k] = kernel.ListsOf(c.args[k])
				}
				return c.lists(l, func(i int, add func(k, j int)) {
					for k := range l {
						from, to := l[k].At(i)
						for j := from; j < to; j++ {
							add(k, j)
						}
					}
				})
			}), nil
		},
	}}}
}

func hasAllScalar() *Scalar {
	return &Scalar{Name: "array_has_all", Aliases: []string{"list_has_all"}, Doc: "Whether an array has every element of another that is not null.", Example: "array_has_all(array(1, 2, 3), array(3, 1)) = true", Overloads: []Overload{{
		Args: []Matcher{listType, listType}, Unify: true, Result: always(columnar.Boolean), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Boolean, func(c *call) (arrow.Array, error) {
				a, b := kernel.ListsOf(c.args[0]), kernel.ListsOf(c.args[1])
				return c.boolRows(func(i int) bool {
					set := setOf(a, i)
					from, to := b.At(i)
					for n, h := range hashesOf(b.Child, from, to) {
						if j := from + n; !columnar.IsNull(b.Child, j) && !set.has(h, b.Child, j) {
							return false
						}
					}
					return true
				})
			}), nil
		},
	}}}
}

func mapFromEntriesScalar() *Scalar {
	entries := matcher{"ARRAY of STRUCT", func(a arrow.DataType) (arrow.DataType, int, bool) {
		l, ok := a.(*arrow.ListType)
		if !ok {
			return nil, 0, false
		}
		s, ok := l.Elem().(*arrow.StructType)
		return a, 0, ok && s.NumFields() == 2
	}}
	result := func(args []arrow.DataType) (arrow.DataType, error) {
		s := elemOf(args[0]).(*arrow.StructType)
		return arrow.MapOf(s.Field(0).Type, s.Field(1).Type), nil
	}
	return &Scalar{Name: "map_from_entries", Doc: "A map of an array of structs, each a key and a value. A null entry or key, or a key that is there twice, is an error.", Example: "map_from_entries(array(struct('a', 1), struct('b', 2))) = {\"a\":1,\"b\":2}", Overloads: []Overload{{
		Args: []Matcher{entries}, Result: result, Fallible: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			out, err := result(args)
			if err != nil {
				return nil, err
			}
			return onRows(out, func(c *call) (arrow.Array, error) {
				l := kernel.ListsOf(c.args[0])
				s := l.Child.(*array.Struct)
				return c.mapRows([]arrow.Array{s.Field(0)}, []arrow.Array{s.Field(1)}, func(i int, add func(k, key, item int)) error {
					from, to := l.At(i)
					for j := from; j < to; j++ {
						if columnar.IsNull(s, j) {
							return fmt.Errorf("an entry of map_from_entries is null")
						}
						add(0, j, j)
					}
					return nil
				})
			}), nil
		},
	}}}
}
