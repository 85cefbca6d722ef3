package function

import (
	"cmp"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// mapScalars are further functions on MAP.
func mapScalars() []*Scalar {
	return []*Scalar{
		mapFromArraysScalar(), mapEntriesScalar(), mapContainsScalar(), mapConcatScalar(),
	}
}

// mapRows makes a MAP column: fill calls add for each entry of row i, whose key and value
// are at places of the sources of keys and of items.
func (c *call) mapRows(keys, items []arrow.Array, fill func(i int, add func(k, key, item int)) error) (arrow.Array, error) {
	valid, nulls := c.validity()
	buf, ends := kernel.Make[int32](c.env.Mem, c.rows+1)
	var keyRefs, itemRefs []kernel.Ref
	add := func(k, key, item int) {
		keyRefs, itemRefs = append(keyRefs, kernel.MakeRef(k, key)), append(itemRefs, kernel.MakeRef(k, item))
	}
	fail := func(err error) (arrow.Array, error) {
		buf.Release()
		releaseBuffer(valid)
		return nil, err
	}
	ends[0] = 0
	good := c.rows // the rows before the first that fails to be filled
	var failed error
	for i := 0; i < good; i++ {
		if isSet(valid, i) && c.active.Get(i) {
			if failed = fill(i, add); failed != nil {
				good = i
			}
		}
		ends[i+1] = int32(len(keyRefs))
	}
	k, err := c.gather(keys, keyRefs)
	if err != nil {
		return fail(err)
	}
	for i := 0; i < good && err == nil; i++ {
		err = kernel.CheckKeys(k, int(ends[i]), int(ends[i+1]))
	}
	if err = cmp.Or(err, failed); err != nil {
		k.Release()
		return fail(err)
	}
	v, err := c.gather(items, itemRefs)
	if err != nil {
		k.Release()
		return fail(err)
	}
	entries := kernel.WrapStruct(c.out.(*arrow.MapType).Elem(), len(keyRefs), 0, nil, []arrow.Array{k, v})
	return kernel.WrapList(c.out, c.rows, nulls, valid, buf, entries), nil
}

func mapFromArraysScalar() *Scalar {
	result := func(args []arrow.DataType) (arrow.DataType, error) {
		return arrow.MapOf(elemOf(args[0]), elemOf(args[1])), nil
	}
	return &Scalar{Name: "map_from_arrays", Doc: "A map of an array of keys and one of values, of the same length. A null key, or one that is there twice, is an error.", Example: "map_from_arrays(array('a', 'b'), array(1, 2)) = {\"a\":1,\"b\":2}", Overloads: []Overload{{
		Args: []Matcher{listType, listType}, Result: result, Fallible: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			out, err := result(args)
			if err != nil {
				return nil, err
			}
			return onRows(out, func(c *call) (arrow.Array, error) {
				keys, items := kernel.ListsOf(c.args[0]), kernel.ListsOf(c.args[1])
				return c.mapRows([]arrow.Array{keys.Child}, []arrow.Array{items.Child}, func(i int, add func(k, key, item int)) error {
					from, to := keys.At(i)
					at, end := items.At(i)
					if to-from != end-at {
						return fmt.Errorf("map_from_arrays has %d keys and %d values", to-from, end-at)
					}
					for j := from; j < to; j++ {
						add(0, j, at+j-from)
					}
					return nil
				})
			}), nil
		},
	}}}
}

// mapEntriesScalar is the entries of a map as structs.
func mapEntriesScalar() *Scalar {
	result := func(args []arrow.DataType) (arrow.DataType, error) {
		m := args[0].(*arrow.MapType)
		return columnar.ListOf(arrow.StructOf(columnar.Field("key", m.KeyType()), columnar.Field("value", m.ItemType()))), nil
	}
	return &Scalar{Name: "map_entries", Doc: "The entries of a map as an array of structs with key and value.", Example: "map_entries(map('a', 1)) = [{\"key\":\"a\",\"value\":1}]", Overloads: []Overload{{
		Args: []Matcher{mapType}, Result: result, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			out, err := result(args)
			if err != nil {
				return nil, err
			}
			return onRows(out, func(c *call) (arrow.Array, error) {
				m := kernel.ListsOf(c.args[0])
				entries := m.Child.(*array.Struct)
				fields := []arrow.Array{entries.Field(0), entries.Field(1)}
				for _, f := range fields {
					f.Retain()
				}
				structs := kernel.WrapStruct(elemOf(out), entries.Len(), 0, nil, fields)
				defer structs.Release()
				l := m
				l.Child = structs
				return c.lists([]kernel.Lists{l}, func(i int, add func(k, j int)) {
					from, to := m.At(i)
					for j := from; j < to; j++ {
						add(0, j)
					}
				})
			}), nil
		},
	}}}
}

func mapContainsScalar() *Scalar {
	mapOnly := matcher{"MAP", func(a arrow.DataType) (arrow.DataType, int, bool) { return a, 0, a.ID() == arrow.MAP }}
	result := func(args []arrow.DataType) (arrow.DataType, error) {
		m := args[0].(*arrow.MapType)
		if _, ok := columnar.Common(m.KeyType(), args[1]); !ok {
			return nil, fmt.Errorf("the keys are %s, not %s; cast the key", columnar.TypeName(m.KeyType()), columnar.TypeName(args[1]))
		}
		return columnar.Boolean, nil
	}
	return &Scalar{Name: "map_contains_key", Aliases: []string{"map_contains"}, Doc: "Whether a map has a key.", Example: "map_contains_key(map('a', 1), 'a') = true", Overloads: []Overload{{
		Args: []Matcher{mapOnly, anyType}, Result: result, Fallible: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			return onRows(columnar.Boolean, func(c *call) (arrow.Array, error) {
				m := kernel.ListsOf(c.args[0])
				keys, key, err := c.toCompare(m.Child.(*array.Struct).Field(0), 1)
				if err != nil {
					return nil, err
				}
				defer keys.Release()
				defer key.Release()
				return c.boolRows(func(i int) bool {
					from, to := m.At(i)
					for j := from; j < to; j++ {
						if kernel.CompareValues(keys, j, key, c.place(1, i)) == 0 {
							return true
						}
					}
					return false
				})
			}), nil
		},
	}}}
}

// mapConcatScalar puts maps together; of equal keys the last counts.
func mapConcatScalar() *Scalar {
	return &Scalar{Name: "map_concat", Doc: "The entries of all maps as one; of a key that is there twice the last value counts.", Example: "map_concat(map('a', 1), map('b', 2)) = {\"a\":1,\"b\":2}", Overloads: []Overload{{
		Args: []Matcher{mapType}, Variadic: true, Unify: true, Result: sameAs(0), Fallible: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			return onRows(args[0], func(c *call) (arrow.Array, error) {
				maps := make([]kernel.Lists, len(c.args))
				keys, items := make([]arrow.Array, len(c.args)), make([]arrow.Array, len(c.args))
				for k, a := range c.args {
					maps[k] = kernel.ListsOf(a)
					entries := maps[k].Child.(*array.Struct)
					keys[k], items[k] = entries.Field(0), entries.Field(1)
				}
				return c.mapRows(keys, items, func(i int, add func(k, key, item int)) error {
					type place struct{ k, key, item int }
					var list []place
					for k := range maps {
						from, to := maps[k].At(i)
						for j := from; j < to; j++ {
							p := place{k, j, j}
							known := false
							for n, q := range list {
								if kernel.CompareValues(keys[q.k], q.key, keys[k], j) == 0 {
									list[n], known = p, true
								}
							}
							if !known {
								list = append(list, p)
							}
						}
					}
					for _, p := range list {
						add(p.k, p.key, p.item)
					}
					return nil
				})
			}), nil
		},
	}}}
}
