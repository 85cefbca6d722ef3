package function

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// nestedScalars are the functions on ARRAY, STRUCT and MAP.
func nestedScalars() []*Scalar {
	return []*Scalar{
		arrayScalar(), structScalar(), mapScalar(),
		subscriptScalar(), elementAtScalar("element_at", "Element of an array, counted from 1, or from the end if negative; value of a key of a map, null if it is not there. Out of range is an error; try_element_at gives null.", "element_at(array(10, 20), -1) = 20", false),
		elementAtScalar("try_element_at", "Like element_at, but null out of range.", "try_element_at(array(10, 20), 3) = NULL", true, "list_extract", "array_extract", "list_element"),
		sizeScalar(),
		{Name: "array_contains", Aliases: []string{"list_contains", "array_has", "list_has"}, Doc: "Whether an array contains a value; null if it does not, but has a null.", Example: "array_contains(array(1, 2), 2) = true", Overloads: []Overload{arrayContains()}},
		arrayPositionScalar(), arrayExtremeScalar("array_min", "The least element of an array; nulls are passed over.", "array_min(array(3, 1, 2)) = 1", -1, "list_min"),
		arrayExtremeScalar("array_max", "The greatest element of an array; nulls are passed over.", "array_max(array(3, 1, 2)) = 3", 1, "list_max"),
		arraySortScalar(), sortArrayScalar(), arrayDistinctScalar(), arraySliceScalar(), arrayJoinScalar(), splitScalar(),
		mapPart("map_keys", "The keys of a map as an array.", "map_keys(map('a', 1)) = [\"a\"]", 0),
		mapPart("map_values", "The values of a map as an array.", "map_values(map('a', 1)) = [1]", 1),
	}
}

func elemOf(list arrow.DataType) arrow.DataType { return list.(*arrow.ListType).Elem() }

// castArray is a as dt, which an implicit cast allows. The caller releases it.
func castArray(c *call, a arrow.Array, dt arrow.DataType) (arrow.Array, error) {
	out, err := kernel.Cast(c.env.Mem, a, dt, kernel.CastOptions{Location: c.env.Location})
	return out, advised(err, dt)
}

// advised is the error of an implicit cast to dt with what to do about it.
func advised(err error, dt arrow.DataType) error {
	if err == nil || !columnar.HasDecimal(dt) {
		return err
	}
	return fmt.Errorf("%w; %s", err, columnar.DecimalAdvice)
}

// argAs is argument k as dt, which an implicit cast allows; rows that do not count may
// fail. The caller releases it.
func (c *call) argAs(k int, dt arrow.DataType) (arrow.Array, error) {
	d, err := Cast(c.env, c.args[k], dt, false, c.rows, c.active)
	if err != nil {
		return nil, advised(err, dt)
	}
	return d.Array(), nil
}

func arrayScalar() *Scalar {
	return &Scalar{Name: "array", Aliases: []string{"list_value", "list_pack", "make_array"}, Doc: "An array of the values, which are brought to a common type.", Example: "array(1, 2, NULL) = [1,2,null]", Overloads: []Overload{
		{
			Args: []Matcher{anyType}, Variadic: true, Unify: true, NullSafe: true,
			Result: func(args []arrow.DataType) (arrow.DataType, error) { return columnar.ListOf(args[0]), nil },
			Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
				return onAllRows(columnar.ListOf(args[0]), makeLists), nil
			},
		},
		{
			Result: always(columnar.ListOf(columnar.Null)),
			Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return func(env *Env, _ []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
					return columnar.Constant(env.Mem, columnar.ListOf(columnar.Null), []any{})
				}, nil
			},
		},
	}}
}

// makeLists puts the arguments of each row into an array.
func makeLists(c *call) (arrow.Array, error) {
	sources := make([]arrow.Array, len(c.args))
	for k, a := range c.args {
		sources[k] = a.Array()
	}
	refs := make([]kernel.Ref, 0, c.rows*len(c.args))
	for i := range c.rows {
		for k := range c.args {
			refs = append(refs, kernel.MakeRef(k, c.place(k, i)))
		}
	}
	child, err := c.gather(sources, refs)
	if err != nil {
		return nil, err
	}
	return kernel.WrapList(c.out, c.rows, 0, nil, evenEnds(c.env.Mem, c.rows, len(c.args)), child), nil
}

// evenEnds is where lists of one length begin and end.
func evenEnds(mem memory.Allocator, rows, length int) *memory.Buffer {
	buf, ends := kernel.Make[int32](mem, rows+1)
	for i := range ends {
		ends[i] = int32(i * length)
	}
	return buf
}

func structScalar() *Scalar {
	result := func(args []arrow.DataType) (arrow.DataType, error) {
		fields := make([]arrow.Field, len(args))
		for i, a := range args {
			fields[i] = columnar.Field("col"+strconv.Itoa(i+1), a)
		}
		return arrow.StructOf(fields...), nil
	}
	return &Scalar{Name: "struct", Doc: "A struct of the values, with fields col1, col2 and so on, or named as in SQL.", Example: "struct(1, 'a') = {\"col1\":1,\"col2\":\"a\"}", Overloads: []Overload{{
		Args: []Matcher{anyType}, Variadic: true, Result: result, NullSafe: true,
		Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			out, err := result(args)
			if err != nil {
				return nil, err
			}
			return onAllRows(out, func(c *call) (arrow.Array, error) {
				fields := make([]arrow.Array, len(c.args))
				for k, a := range c.args {
					var err error
					if fields[k], err = c.env.Broadcast(a, c.rows); err != nil {
						releaseAll(fields[:k])
						return nil, err
					}
				}
				return kernel.WrapStruct(out, c.rows, 0, nil, fields), nil
			}), nil
		},
	}}}
}

// mapTypes is the common type of the arguments at even places and at odd ones.
func mapTypes(args []arrow.DataType) (arrow.DataType, error) {
	if len(args)%2 != 0 {
		return nil, fmt.Errorf("keys and values come in turn, so their number is even, not %d", len(args))
	}
	common := [2]arrow.DataType{columnar.Null, columnar.Null}
	for i, a := range args {
		t, ok := columnar.Common(common[i%2], a)
		if !ok {
			return nil, fmt.Errorf("%s and %s have no common type", columnar.TypeName(common[i%2]), columnar.TypeName(a))
		}
		common[i%2] = t
	}
	if common[0].ID() == arrow.NULL {
		common[0] = columnar.String
	}
	return arrow.MapOf(common[0], common[1]), nil
}

func mapScalar() *Scalar {
	return &Scalar{Name: "map", Doc: "A map of keys and values, given in turn. A null key, or one that is there twice, is an error.", Example: "map('a', 1, 'b', 2) = {\"a\":1,\"b\":2}", Overloads: []Overload{
		{
			Args: []Matcher{anyType, anyType}, Variadic: true, Result: mapTypes, NullSafe: true, Fallible: true,
			Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
				out, err := mapTypes(args)
				if err != nil {
					return nil, err
				}
				return onAllRows(out, makeMaps), nil
			},
		},
		{
			Result: always(arrow.MapOf(columnar.String, columnar.Null)),
			Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return func(env *Env, _ []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
					return columnar.Constant(env.Mem, arrow.MapOf(columnar.String, columnar.Null), [][2]any{})
				}, nil
			},
		},
	}}
}

func makeMaps(c *call) (arrow.Array, error) {
	t := c.out.(*arrow.MapType)
	n := len(c.args) / 2
	var built columnar.Releases
	defer built.Release()
	var parts [2]arrow.Array
	for side, dt := range [2]arrow.DataType{t.KeyType(), t.ItemType()} {
		sources := make([]arrow.Array, n)
		for k := range n {
			a, err := c.argAs(2*k+side, dt)
			if err != nil {
				return nil, err
			}
			built.Add(a)
			sources[k] = a
		}
		refs := make([]kernel.Ref, 0, c.rows*n)
		for i := range c.rows {
			for k := range n {
				refs = append(refs, kernel.MakeRef(k, c.place(2*k+side, i)))
			}
		}
		var err error
		if parts[side], err = c.gather(sources, refs); err != nil {
			return nil, err
		}
		built.Add(parts[side])
	}
	return c.maps(t, parts, n)
}

// maps makes a map of each n keys and values of parts. A row with bad keys is an
// error if it counts, else null.
func (c *call) maps(t *arrow.MapType, parts [2]arrow.Array, n int) (arrow.Array, error) {
	var good columnar.Bitmap
	good.Reset(c.rows)
	var rows []int32
	buf, ends := kernel.Make[int32](c.env.Mem, c.rows+1)
	ends[0] = 0
	for i := range c.rows {
		err := kernel.CheckKeys(parts[0], i*n, (i+1)*n)
		if err != nil && c.active.Get(i) {
			buf.Release()
			return nil, err
		}
		for j := i * n; j < (i+1)*n && err == nil; j++ {
			good.Set(i)
			rows = append(rows, int32(j))
		}
		ends[i+1] = int32(len(rows))
	}
	keys, err := c.take(parts[0], rows)
	if err != nil {
		buf.Release()
		return nil, err
	}
	items, err := c.take(parts[1], rows)
	if err != nil {
		keys.Release()
		buf.Release()
		return nil, err
	}
	entries := kernel.WrapStruct(t.Elem(), len(rows), 0, nil, []arrow.Array{keys, items})
	valid, nulls := validityOfBitmap(c.env.Mem, &good)
	return kernel.WrapList(c.out, c.rows, nulls, valid, buf, entries), nil
}

// subscriptScalar is a[i], from 0, and m[k].
func subscriptScalar() *Scalar {
	return &Scalar{Name: "subscript", Aliases: []string{"__index"}, Doc: "Element of an array, counted from 0, out of range an error; value of a key of a map, null if it is not there. Written a[i].", Example: "subscript(array(10, 20), 1) = 20",
		Overloads: []Overload{elementOverload(0, false), mapLookup()}}
}

func elementAtScalar(name, doc, example string, try bool, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{elementOverload(1, try), mapLookup()}}
}

// elementOverload takes an element, counted from base; with base 1, negative numbers
// count from the end.
func elementOverload(base int64, try bool) Overload {
	result := func(args []arrow.DataType) (arrow.DataType, error) { return elemOf(args[0]), nil }
	return Overload{Args: []Matcher{listType, bigint}, Result: result, NullSafe: true, Fallible: !try, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
		return onRows(elemOf(args[0]), func(c *call) (arrow.Array, error) {
			lists, index := kernel.ListsOf(c.args[0]), numbersOf[int64](c.args[1])
			rows := make([]int32, c.rows)
			for i := range rows {
				rows[i] = -1
				if c.isNull(0, i) || c.isNull(1, i) {
					continue
				}
				from, to := lists.At(i)
				n, k := int64(to-from), index.at(i)
				at := k - base
				if base == 1 && k < 0 {
					at = n + k
				}
				if at < 0 || at >= n || base == 1 && k == 0 {
					if !try && c.active.Get(i) {
						if base == 1 && k == 0 {
							return nil, notZero(k)
						}
						if base == 0 && k < 0 {
							return nil, notBeforeFirst(k)
						}
						return nil, fmt.Errorf("there is no element %d in an array of %d (counted from %d)%s", k, n, base, map[int64]string{1: "; try_element_at gives null"}[base])
					}
					continue
				}
				rows[i] = int32(from + int(at))
			}
			return c.take(lists.Child, rows)
		}), nil
	}}
}

// mapLookup takes the value of a key; the last of equal keys counts.
func mapLookup() Overload {
	result := func(args []arrow.DataType) (arrow.DataType, error) {
		m := args[0].(*arrow.MapType)
		if _, ok := columnar.Common(m.KeyType(), args[1]); !ok {
			return nil, fmt.Errorf("the keys are %s, not %s; cast the key", columnar.TypeName(m.KeyType()), columnar.TypeName(args[1]))
		}
		return m.ItemType(), nil
	}
	// NULL is left to the overload for arrays.
	mapOnly := matcher{"MAP", func(a arrow.DataType) (arrow.DataType, int, bool) { return a, 0, a.ID() == arrow.MAP }}
	return Overload{Args: []Matcher{mapOnly, anyType}, Result: result, NullSafe: true, Fallible: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
		m := args[0].(*arrow.MapType)
		return onRows(m.ItemType(), func(c *call) (arrow.Array, error) {
			maps := kernel.ListsOf(c.args[0])
			keys, key, err := c.toCompare(maps.Child.(*array.Struct).Field(0), 1)
			if err != nil {
				return nil, err
			}
			defer keys.Release()
			defer key.Release()
			rows := make([]int32, c.rows)
			for i := range rows {
				rows[i] = -1
				if c.isNull(0, i) || c.isNull(1, i) {
					continue
				}
				from, to := maps.At(i)
				for j := from; j < to; j++ {
					if kernel.CompareValues(keys, j, key, c.place(1, i)) == 0 {
						rows[i] = int32(j)
					}
				}
			}
			return c.take(maps.Child.(*array.Struct).Field(1), rows)
		}), nil
	}}
}

func sizeScalar() *Scalar {
	form := func(m Matcher) Overload {
		return Overload{Args: []Matcher{m}, Result: always(columnar.Int32), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Int32, func(c *call) (arrow.Array, error) {
				lists := kernel.ListsOf(c.args[0])
				return fixedRows(c, func(i int) int32 { from, to := lists.At(i); return int32(to - from) })
			}), nil
		}}
	}
	return &Scalar{Name: "cardinality", Aliases: []string{"size", "array_length", "array_size", "list_length"}, Doc: "Number of elements of an array, or of entries of a map.", Example: "cardinality(array(1, 2, 3)) = 3", Overloads: []Overload{form(listType), form(mapType)}}
}

// withElement binds a function of an array and a value that is compared with its
// elements: both are brought to their common type.
func withElement(out func(args []arrow.DataType) arrow.DataType, f func(c *call, lists kernel.Lists, value arrow.Array) (arrow.Array, error)) Overload {
	common := func(args []arrow.DataType) (arrow.DataType, error) {
		t, ok := columnar.Common(elemOf(args[0]), args[1])
		if !ok {
			return nil, fmt.Errorf("an array of %s is asked for a %s; cast one of them", columnar.TypeName(elemOf(args[0])), columnar.TypeName(args[1]))
		}
		return t, nil
	}
	return Overload{
		Args: []Matcher{listType, anyType}, NullSafe: true, Fallible: true,
		Result: func(args []arrow.DataType) (arrow.DataType, error) {
			if _, err := common(args); err != nil {
				return nil, err
			}
			return out(args), nil
		},
		Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			t, err := common(args)
			if err != nil {
				return nil, err
			}
			return onRows(out(args), func(c *call) (arrow.Array, error) {
				some := *c // without an element there is nothing to look for
				some.active = columnar.NewBitmap(c.rows)
				kernel.MarkValid(some.active, c.args[1], c.rows)
				if c.active != nil {
					some.active.And(c.active)
				}
				if columnar.BeyondDecimal(elemOf(args[0]), args[1]) {
					lists := kernel.ListsOf(c.args[0])
					elements, value, err := some.toCompare(lists.Child, 1)
					if err != nil {
						return nil, err
					}
					defer elements.Release()
					defer value.Release()
					lists.Child = elements
					return f(c, lists, value)
				}
				list, err := some.argAs(0, columnar.ListOf(t))
				if err != nil {
					return nil, err
				}
				defer list.Release()
				value, err := some.argAs(1, t)
				if err != nil {
					return nil, err
				}
				defer value.Release()
				d := columnar.ColumnDatum(list)
				if c.args[0].IsConstant() {
					d = columnar.ConstantDatum(list)
				}
				return f(c, kernel.ListsOf(d), value)
			}), nil
		},
	}
}

// findElement is the place of the value of row i in its array, from 0, or -1; sawNull
// says whether a null was passed.
func (c *call) findElement(lists kernel.Lists, value arrow.Array, i int) (at int, sawNull bool) {
	from, to := lists.At(i)
	for j := from; j < to; j++ {
		if columnar.IsNull(lists.Child, j) {
			sawNull = true
			continue
		}
		if kernel.CompareValues(lists.Child, j, value, c.place(1, i)) == 0 {
			return j - from, sawNull
		}
	}
	return -1, sawNull
}

func arrayContains() Overload {
	return withElement(func([]arrow.DataType) arrow.DataType { return columnar.Boolean }, func(c *call, lists kernel.Lists, value arrow.Array) (arrow.Array, error) {
		var found, known columnar.Bitmap
		found.Reset(c.rows)
		known.Reset(c.rows)
		for i := range c.rows {
			if c.isNull(0, i) || c.isNull(1, i) {
				continue
			}
			at, sawNull := c.findElement(lists, value, i)
			if at >= 0 {
				found.Set(i)
			}
			if at >= 0 || !sawNull {
				known.Set(i)
			}
		}
		marks := kernel.Booleans(c.env.Mem, &found, c.rows)
		defer marks.Release()
		bits := marks.Data().Buffers()[1]
		bits.Retain()
		valid, nulls := validityOfBitmap(c.env.Mem, &known)
		return kernel.Wrap(columnar.Boolean, c.rows, nulls, valid, bits), nil
	})
}

func arrayPositionScalar() *Scalar {
	return &Scalar{Name: "array_position", Aliases: []string{"list_position", "array_indexof", "list_indexof"}, Doc: "Place of the first element that equals a value, from 1; 0 if there is none.", Example: "array_position(array('a', 'b'), 'b') = 2", Overloads: []Overload{
		withElement(func([]arrow.DataType) arrow.DataType { return columnar.Int64 }, func(c *call, lists kernel.Lists, value arrow.Array) (arrow.Array, error) {
			return nullableRows(c, func(i int) (int64, bool) {
				at, _ := c.findElement(lists, value, i)
				return int64(at) + 1, true
			})
		}),
	}}
}

// arrayConcat puts the elements of several arrays into one.
func arrayConcat() Overload {
	return Overload{Args: []Matcher{listType}, Variadic: true, Unify: true, Result: sameAs(0), Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
		return onRows(args[0], func(c *call) (arrow.Array, error) {
			lists := make([]kernel.Lists, len(c.args))
			for k, a := range c.args {
				lists[k] = kernel.ListsOf(a)
			}
			return c.lists(lists, func(i int, add func(k, j int)) {
				for k, l := range lists {
					from, to := l.At(i)
					for j := from; j < to; j++ {
						add(k, j)
					}
				}
			})
		}), nil
	}}
}

// lists makes an ARRAY column: fill calls add for each element of row i, element j of
// the child of list k.
func (c *call) lists(lists []kernel.Lists, fill func(i int, add func(k, j int))) (arrow.Array, error) {
	valid, nulls := c.validity()
	buf, ends := kernel.Make[int32](c.env.Mem, c.rows+1)
	var refs []kernel.Ref
	add := func(k, j int) { refs = append(refs, kernel.MakeRef(k, j)) }
	given := 0
	for _, l := range lists {
		given += l.Child.Len()
	}
	ends[0] = 0
	for i := range c.rows {
		if isSet(valid, i) {
			fill(i, add)
		}
		ends[i+1] = int32(len(refs))
		if err := c.room(bytesOfElement * int64(len(refs)-given)); err != nil {
			releaseBuffer(valid)
			buf.Release()
			return nil, err
		}
	}
	sources := make([]arrow.Array, len(lists))
	for k, l := range lists {
		sources[k] = l.Child
	}
	child, err := c.gather(sources, refs)
	if err == nil && len(refs) > math.MaxInt32 {
		child.Release()
		err = fmt.Errorf("%d array elements in one batch are too many; make the batches smaller with SET batch_rows", len(refs))
	}
	if err != nil {
		releaseBuffer(valid)
		buf.Release()
		return nil, err
	}
	return kernel.WrapList(c.out, c.rows, nulls, valid, buf, child), nil
}

// bytesOfElement is about what an element of a new array takes: its place, and a small value.
const bytesOfElement = 16

// ofList is a function from an array to an array of the same type.
func ofList(name, doc, example string, args []Matcher, f func(c *call, l kernel.Lists) func(i int, add func(k, j int)), aliases ...string) *Scalar {
	s := &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example}
	bind := func(types []arrow.DataType, _ []arrow.Array) (Kernel, error) {
		return onRows(types[0], func(c *call) (arrow.Array, error) {
			l := kernel.ListsOf(c.args[0])
			return c.lists([]kernel.Lists{l}, f(c, l))
		}), nil
	}
	s.Overloads = []Overload{{Args: args, Result: sameAs(0), Bind: bind}}
	return s
}

// sortLists sorts the elements of arrays: ascending with nulls first or last, or, where
// the second argument is false, descending with nulls last.
func sortLists(nullsLast bool) func(c *call, l kernel.Lists) func(int, func(k, j int)) {
	return func(c *call, l kernel.Lists) func(int, func(k, j int)) {
		return func(i int, add func(k, j int)) {
			from, to := l.At(i)
			descending := false
			if len(c.args) > 1 {
				descending = !columnar.Value(c.args[1].Array(), c.place(1, i)).(bool)
			}
			refs := make([]kernel.Ref, 0, to-from)
			for j := from; j < to; j++ {
				refs = append(refs, kernel.MakeRef(0, j))
			}
			kernel.SortRefs([]kernel.SortKey{{Columns: []arrow.Array{l.Child}, Descending: descending, NullsLast: descending || nullsLast}}, refs)
			for _, r := range refs {
				add(0, r.Row())
			}
		}
	}
}

func arraySortScalar() *Scalar {
	return ofList("array_sort", "The elements of an array in ascending order, nulls last.", "array_sort(array(3, NULL, 1)) = [1,3,null]", []Matcher{listType}, sortLists(true))
}

func sortArrayScalar() *Scalar {
	s := ofList("sort_array", "The elements of an array in ascending order, nulls first; in descending order, nulls last, if the second argument is false.", "sort_array(array(3, 1, 2)) = [1,2,3]", []Matcher{listType}, sortLists(false), "list_sort")
	more := s.Overloads[0]
	more.Args = []Matcher{listType, boolean}
	s.Overloads = append(s.Overloads, more)
	return s
}

func arrayDistinctScalar() *Scalar {
	return ofList("array_distinct", "The elements of an array without those that were there before.", "array_distinct(array(1, 2, 1)) = [1,2]", []Matcher{listType}, func(_ *call, l kernel.Lists) func(int, func(k, j int)) {
		return func(i int, add func(k, j int)) {
			from, to := l.At(i)
			hashes := make([]uint64, to-from)
			part := array.NewSlice(l.Child, int64(from), int64(to))
			defer part.Release()
			kernel.Hash(hashes, []arrow.Array{part}, 0)
			seen := map[uint64][]int{}
			for j := from; j < to; j++ {
				h := hashes[j-from]
				known := false
				for _, e := range seen[h] {
					x, y := columnar.IsNull(l.Child, e), columnar.IsNull(l.Child, j)
					known = known || x && y || !x && !y && kernel.CompareValues(l.Child, e, l.Child, j) == 0
				}
				if !known {
					seen[h] = append(seen[h], j)
					add(0, j)
				}
			}
		}
	}, "list_distinct")
}

func arraySliceScalar() *Scalar {
	return &Scalar{Name: "slice", Doc: "Part of an array from an element on (1 is the first, negative counts from the end), at most so many elements. Element 0 and a negative number of elements are errors.", Example: "slice(array(1, 2, 3, 4), 2, 2) = [2,3]", Overloads: []Overload{{
		Args: []Matcher{listType, bigint, bigint}, Result: sameAs(0), Fallible: true,
		Bind: func(types []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			return onRows(types[0], arraySlices), nil
		},
	}}}
}

func arraySlices(c *call) (arrow.Array, error) {
	l, start, length := kernel.ListsOf(c.args[0]), numbersOf[int64](c.args[1]), numbersOf[int64](c.args[2])
	for i := range c.rows {
		if c.isNull(0, i) || c.isNull(1, i) || c.isNull(2, i) || !c.active.Get(i) {
			continue
		}
		if err := cmp.Or(notZero(start.at(i)), isLength(length.at(i))); err != nil {
			return nil, err
		}
	}
	return c.lists([]kernel.Lists{l}, func(i int, add func(k, j int)) {
		from, to := l.At(i)
		n := int64(to - from)
		at := start.at(i) - 1
		if start.at(i) < 0 {
			at = n + start.at(i)
		}
		for k := int64(0); at >= 0 && at+k < n && k < length.at(i); k++ {
			add(0, from+int(at+k))
		}
	})
}

func arrayExtremeScalar(name, doc, example string, sign int, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{listType}, NullSafe: true, Result: func(args []arrow.DataType) (arrow.DataType, error) { return elemOf(args[0]), nil },
		Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			return onRows(elemOf(args[0]), func(c *call) (arrow.Array, error) {
				l := kernel.ListsOf(c.args[0])
				rows := make([]int32, c.rows)
				for i := range rows {
					best := -1
					from, to := l.At(i)
					for j := from; j < to && !c.isNull(0, i); j++ {
						if !columnar.IsNull(l.Child, j) && (best < 0 || kernel.CompareValues(l.Child, j, l.Child, best)*sign > 0) {
							best = j
						}
					}
					rows[i] = int32(best)
				}
				return c.take(l.Child, rows)
			}), nil
		},
	}}}
}

func arrayJoinScalar() *Scalar {
	return &Scalar{Name: "array_join", Aliases: []string{"array_to_string"}, Doc: "The elements of an array as text with a separator between them; nulls are passed over.", Example: "array_join(array('a', 'b'), '-') = a-b", Overloads: []Overload{{
		Args: []Matcher{listType, varchar}, Result: always(columnar.String),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.String, func(c *call) (arrow.Array, error) {
				l, separator := kernel.ListsOf(c.args[0]), kernel.TextsOf(c.args[1])
				return c.text(c.rows*16, func(dst []byte, i int) ([]byte, error) {
					from, to := l.At(i)
					first := true
					for j := from; j < to; j++ {
						if columnar.IsNull(l.Child, j) {
							continue
						}
						if !first {
							var err error
							if dst, err = c.add(dst, separator.At(i)); err != nil {
								return dst, err
							}
						}
						first = false
						dst = columnar.AppendText(dst, l.Child, j, c.env.Location)
					}
					return dst, nil
				})
			}), nil
		},
	}}}
}

// splitScalar is split(text, regular expression [, most parts]), as in Spark.
func splitScalar() *Scalar {
	out := columnar.ListOf(columnar.String)
	bind := func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		source, err := regexpSource(constants, 1, 99, plainPattern)
		if err != nil {
			return nil, err
		}
		return onRows(out, func(c *call) (arrow.Array, error) { return c.splitTexts(source(c)) }), nil
	}
	return &Scalar{Name: "split", Aliases: []string{"regexp_split_to_array", "string_split_regex", "str_split_regex"}, Doc: "The parts of a text between the matches of a regular expression, as an array; with a third argument above 0 at most so many, of which the last has all that is left.", Example: "split('a,b', ',') = [\"a\",\"b\"]", Overloads: []Overload{
		{Args: []Matcher{varchar, varchar}, Result: always(out), Fallible: true, Bind: bind},
		{Args: []Matcher{varchar, varchar, bigint}, Result: always(out), Fallible: true, Bind: bind},
	}}
}

func (c *call) splitTexts(of func(i int) (*searcher, error)) (arrow.Array, error) {
	out := columnar.ListOf(columnar.String)
	in := kernel.TextsOf(c.args[0])
	most := func(int) int { return -1 }
	if len(c.args) > 2 {
		limits := numbersOf[int64](c.args[2])
		most = func(i int) int {
			if n := limits.at(i); n > 0 {
				return int(min(n, math.MaxInt32))
			}
			return -1
		}
	}
	b := columnar.NewBuilder(c.env.Mem, out)
	defer b.Release()
	valid, _ := c.validity()
	defer releaseBuffer(valid)
	for i := range c.rows {
		re, err := of(i)
		switch {
		case !isSet(valid, i) || err != nil && !c.active.Get(i):
			b.AppendNull()
			continue
		case err != nil:
			return nil, err
		}
		parts := []any{}
		for _, s := range re.std.Split(string(in.At(i)), most(i)) {
			parts = append(parts, s)
		}
		if err := b.Append(parts); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

// mapPart is one side of the entries of a map, under the same offsets.
func mapPart(name, doc, example string, side int) *Scalar {
	result := func(args []arrow.DataType) (arrow.DataType, error) {
		m := args[0].(*arrow.MapType)
		return columnar.ListOf([2]arrow.DataType{m.KeyType(), m.ItemType()}[side]), nil
	}
	return &Scalar{Name: name, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{mapType}, Result: result,
		Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			out, err := result(args)
			if err != nil {
				return nil, err
			}
			return onRows(out, func(c *call) (arrow.Array, error) {
				m := c.args[0].Array().(*array.Map)
				entries := m.ListValues().(*array.Struct)
				d := m.Data()
				data := array.NewData(out, d.Len(), d.Buffers(), []arrow.ArrayData{entries.Field(side).Data()}, m.NullN(), d.Offset())
				defer data.Release()
				return array.MakeFromData(data), nil
			}), nil
		},
	}}}
}
