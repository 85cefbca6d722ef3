package function

import (
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// listZipScalars put arrays beside each other, put elements into them and reduce them to
// one value.
func listZipScalars() []*Scalar {
	list := []*Scalar{
		arraysZipScalar(), arrayInsertScalar(), strToMapScalar(), listUniqueScalar(),
		twoVectors("list_inner_product", "The sum of the products of the numbers of two arrays of the same length; null if a number is null.", "list_inner_product(array(1, 2), array(3, 4)) = 11", func(p products) float64 { return p.xy }, "list_dot_product", "array_inner_product", "array_dot_product"),
		twoVectors("list_cosine_similarity", "The cosine of the angle between two arrays of numbers of the same length; null if a number is null.", "list_cosine_similarity(array(0, 1), array(0, 2)) = 1", products.cosine, "array_cosine_similarity"),
		twoVectors("list_distance", "The distance of two points given as arrays of numbers of the same length; null if a number is null.", "list_distance(array(0, 0), array(3, 4)) = 5", func(p products) float64 { return math.Sqrt(p.apart) }, "array_distance"),
	}
	for _, of := range []struct{ name, of, doc, example string }{
		{"list_count", "count", "How many elements of an array are not null.", "list_count(array(1, NULL, 3)) = 2"},
		{"list_median", "median", "The median of the elements of an array.", "list_median(array(1, NULL, 3)) = 2"},
		{"list_mode", "mode", "The most frequent element of an array.", "list_mode(array(3, 1, 3)) = 3"},
		{"list_product", "product", "The product of the elements of an array.", "list_product(array(2, NULL, 3)) = 6"},
		{"list_stddev_samp", "stddev_samp", "The sample standard deviation of the elements of an array.", "list_stddev_samp(array(1, 1)) = 0"},
		{"list_stddev_pop", "stddev_pop", "The population standard deviation of the elements of an array.", "list_stddev_pop(array(1, 3)) = 1"},
		{"list_var_samp", "var_samp", "The sample variance of the elements of an array.", "list_var_samp(array(1, 3)) = 2"},
		{"list_var_pop", "var_pop", "The population variance of the elements of an array.", "list_var_pop(array(1, 3)) = 1"},
		{"list_bool_and", "bool_and", "Whether every element of an array of conditions is true, nulls aside.", "list_bool_and(array(true, NULL)) = true"},
		{"list_bool_or", "bool_or", "Whether some element of an array of conditions is true, nulls aside.", "list_bool_or(array(false, true)) = true"},
		{"list_bit_and", "bit_and", "The bits that every element of an array has.", "list_bit_and(array(6, 3)) = 2"},
		{"list_bit_or", "bit_or", "The bits that some element of an array has.", "list_bit_or(array(6, 3)) = 7"},
		{"list_bit_xor", "bit_xor", "The bits that an odd number of elements of an array have.", "list_bit_xor(array(6, 3)) = 5"},
		{"list_approx_count_distinct", "approx_count_distinct", "About how many different elements an array has.", "list_approx_count_distinct(array(1, 2, 1)) = 2"},
		{"list_entropy", "entropy", "The entropy of the elements of an array, in bits.", "list_entropy(array(1, 2)) = 1"},
		{"list_histogram", "histogram", "A map from each different element of an array to how often it is there.", "list_histogram(array('a', 'b', 'a')) = {\"a\":2,\"b\":1}"},
	} {
		list = append(list, listOfAggregate(of.name, of.of, of.doc, of.example))
	}
	return list
}

// listOfAggregate is an aggregate over the elements of each array, whose order does not
// matter to it. A null array has no value.
func listOfAggregate(name, of, doc, example string) *Scalar {
	resolve := func(args []arrow.DataType) (*AggregateSignature, error) {
		for _, f := range aggregates() {
			if f.Name == of {
				return f.Resolve([]arrow.DataType{elemOf(args[0])})
			}
		}
		return nil, fmt.Errorf("bug: there is no aggregate %s", of)
	}
	return &Scalar{Name: name, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{listType}, Fallible: true,
		Result: func(args []arrow.DataType) (arrow.DataType, error) {
			sig, err := resolve(args)
			if err != nil {
				return nil, fmt.Errorf("it takes no array of %s, as %s takes no %[1]s; cast the elements", columnar.TypeName(elemOf(args[0])), of)
			}
			return sig.Result, nil
		},
		Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			sig, err := resolve(args)
			if err != nil {
				return nil, err
			}
			return onRows(sig.Result, func(c *call) (arrow.Array, error) { return c.aggregated(sig) }), nil
		},
	}}}
}

// aggregated makes each array a group of its own. Rows that do not count have no elements.
func (c *call) aggregated(sig *AggregateSignature) (arrow.Array, error) {
	l := kernel.ListsOf(c.args[0])
	var rows []int32
	var groups []uint32
	ids := make([]uint32, c.rows)
	for i := range c.rows {
		ids[i] = uint32(i)
		if from, to := l.At(i); !c.isNull(0, i) && c.active.Get(i) {
			for j := from; j < to; j++ {
				rows, groups = append(rows, int32(j)), append(groups, uint32(i))
			}
		}
	}
	taken, err := c.take(l.Child, rows)
	if err != nil {
		return nil, err
	}
	defer taken.Release()
	elements, err := castArray(c, taken, sig.Args[0])
	if err != nil {
		return nil, err
	}
	defer elements.Release()
	a, err := sig.Overload.New(c.env.Mem, sig.Args)
	if err != nil {
		return nil, err
	}
	defer a.Release()
	a.Resize(c.rows)
	if err := a.Update(groups, []columnar.Datum{columnar.ColumnDatum(elements)}); err != nil {
		return nil, err
	}
	return a.Result(ids)
}

// arraysZipScalar makes structs of the elements at one place of several arrays.
func arraysZipScalar() *Scalar {
	result := func(args []arrow.DataType) (arrow.DataType, error) {
		fields := make([]arrow.Field, len(args))
		for k, a := range args {
			fields[k] = columnar.Field(strconv.Itoa(k), elemOf(a))
		}
		return columnar.ListOf(arrow.StructOf(fields...)), nil
	}
	return &Scalar{Name: "arrays_zip", Aliases: []string{"array_zip", "list_zip"}, Doc: "An array of structs of the elements of several arrays at each place, with fields 0, 1 and so on; nulls where an array is shorter.", Example: `arrays_zip(array(1, 2), array('a')) = [{"0":1,"1":"a"},{"0":2,"1":null}]`, Overloads: []Overload{{
		Args: []Matcher{listType}, Variadic: true, Result: result, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			out, err := result(args)
			if err != nil {
				return nil, err
			}
			return onRows(out, zipLists), nil
		},
	}}}
}

func zipLists(c *call) (arrow.Array, error) {
	valid, nulls := c.validity()
	buf, ends := kernel.Make[int32](c.env.Mem, c.rows+1)
	lists := make([]kernel.Lists, len(c.args))
	places := make([][]int32, len(c.args))
	for k := range lists {
		lists[k] = kernel.ListsOf(c.args[k])
	}
	ends[0] = 0
	for i := range c.rows {
		longest := 0
		for _, l := range lists {
			from, to := l.At(i)
			longest = max(longest, to-from)
		}
		if !isSet(valid, i) {
			longest = 0
		}
		for k, l := range lists {
			from, to := l.At(i)
			for n := range longest {
				at := int32(from + n)
				if from+n >= to {
					at = -1
				}
				places[k] = append(places[k], at)
			}
		}
		ends[i+1] = ends[i] + int32(longest)
	}
	var made columnar.Releases
	made.Add(buf)
	defer made.Release()
	fields := make([]arrow.Array, len(lists))
	for k, l := range lists {
		var err error
		if fields[k], err = c.take(l.Child, places[k]); err != nil {
			releaseBuffer(valid)
			return nil, err
		}
		made.Add(fields[k])
	}
	made.Keep()
	child := kernel.WrapStruct(elemOf(c.out), int(ends[c.rows]), 0, nil, fields)
	return kernel.WrapList(c.out, c.rows, nulls, valid, buf, child), nil
}

// arrayInsertScalar is array_insert(array, place, value).
func arrayInsertScalar() *Scalar {
	result := func(args []arrow.DataType) (arrow.DataType, error) {
		t, ok := columnar.Common(elemOf(args[0]), args[2])
		if !ok {
			return nil, fmt.Errorf("an array of %s takes no %s; cast one of them", columnar.TypeName(elemOf(args[0])), columnar.TypeName(args[2]))
		}
		return columnar.ListOf(t), nil
	}
	return &Scalar{Name: "array_insert", Doc: "An array with a value put in at a place counted from 1, or from the end if negative; places between its end and that one become null. Place 0 is an error.", Example: "array_insert(array(1, 3), 2, 2) = [1,2,3]", Overloads: []Overload{{
		Args: []Matcher{listType, bigint, anyType}, Result: result, NullSafe: true, Fallible: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			out, err := result(args)
			if err != nil {
				return nil, err
			}
			return onAllRows(out, insertElements), nil
		},
	}}}
}

func insertElements(c *call) (arrow.Array, error) {
	elem := elemOf(c.out)
	l, release, err := c.listsOf(0, elem)
	if err != nil {
		return nil, err
	}
	defer release()
	value, err := c.argAs(2, elem)
	if err != nil {
		return nil, err
	}
	defer value.Release()
	null := columnar.Nulls(c.env.Mem, elem, 1)
	defer null.Release()
	places := numbersOf[int64](c.args[1])
	for i := range c.rows {
		if err := c.placeFits(places.at(i), l, i); err != nil {
			return nil, err
		}
	}
	whole := *c
	whole.args = c.args[:2] // a null element is an element
	return whole.lists([]kernel.Lists{l, {Child: value}, {Child: null}}, func(i int, add func(k, j int)) {
		if !c.active.Get(i) {
			return
		}
		from, to := l.At(i)
		n, at := to-from, int(places.at(i))-1
		lead := 0 // nulls before the elements
		if at < 0 {
			if at += n + 2; at < 0 { // the place is counted in the array that results
				lead, at = -at, 0
			}
		}
		if lead > 0 {
			add(1, c.place(2, i))
			for range lead {
				add(2, 0)
			}
		}
		for j := range max(n, at) {
			if j == at && lead == 0 {
				add(1, c.place(2, i))
			}
			if j < n {
				add(0, from+j)
			} else {
				add(2, 0)
			}
		}
		if at >= n && lead == 0 {
			add(1, c.place(2, i))
		}
	})
}

// placeFits refuses place 0, and places that would make an array too large.
func (c *call) placeFits(place int64, l kernel.Lists, i int) error {
	switch {
	case c.isNull(0, i) || c.isNull(1, i) || !c.active.Get(i):
		return nil
	case place == 0:
		return notZero(place)
	case magnitude(place) > maxElements:
		return errTooMany("array_insert", int64(min(magnitude(place), math.MaxInt64)))
	}
	return nil
}

func listUniqueScalar() *Scalar {
	return define("list_unique", "How many different elements that are not null an array has.", "list_unique(array(1, 2, 1, NULL)) = 2", []Matcher{listType}, columnar.Int64, func(c *call) (arrow.Array, error) {
		l := kernel.ListsOf(c.args[0])
		return fixedRows(c, func(i int) int64 {
			seen := &elementSet{child: l.Child, seen: map[uint64][]int{}}
			from, to := l.At(i)
			n := int64(0)
			for k, h := range hashesOf(l.Child, from, to) {
				if j := from + k; !columnar.IsNull(l.Child, j) && !seen.has(h, l.Child, j) {
					seen.seen[h] = append(seen.seen[h], j)
					n++
				}
			}
			return n
		})
	}, "array_unique")
}

// products are sums over the elements of two arrays.
type products struct{ xx, yy, xy, apart float64 }

func (p products) cosine() float64 {
	return min(max(p.xy/(math.Sqrt(p.xx)*math.Sqrt(p.yy)), -1), 1)
}

// twoVectors is a DOUBLE of two arrays of numbers.
func twoVectors(name, doc, example string, f func(products) float64, aliases ...string) *Scalar {
	vector := matcher{"ARRAY of DOUBLE", func(a arrow.DataType) (arrow.DataType, int, bool) {
		l, ok := a.(*arrow.ListType)
		return columnar.ListOf(columnar.Float64), 0, ok && (columnar.IsNumeric(l.Elem()) || l.Elem().ID() == arrow.NULL)
	}}
	return defineFallible(name, doc, example, []Matcher{vector, vector}, columnar.Float64, func(c *call) (arrow.Array, error) {
		x, y := kernel.ListsOf(c.args[0]), kernel.ListsOf(c.args[1])
		xs, ys := kernel.Values[float64](x.Child), kernel.Values[float64](y.Child)
		var failed error
		a, _ := nullableRows(c, func(i int) (float64, bool) {
			from, to := x.At(i)
			at, end := y.At(i)
			if to-from != end-at {
				if failed == nil && c.active.Get(i) {
					failed = fmt.Errorf("%s of arrays of %d and %d numbers; they must have the same length", name, to-from, end-at)
				}
				return 0, false
			}
			var p products
			for n := range to - from {
				if x.Child.IsNull(from+n) || y.Child.IsNull(at+n) {
					return 0, false
				}
				v, w := xs[from+n], ys[at+n]
				p.xx, p.yy, p.xy, p.apart = p.xx+v*v, p.yy+w*w, p.xy+v*w, p.apart+(v-w)*(v-w)
			}
			return f(p), true
		})
		if failed != nil {
			a.Release()
			return nil, failed
		}
		return a, nil
	}, aliases...)
}

// strToMapScalar is str_to_map(text [, between pairs [, between key and value]]).
func strToMapScalar() *Scalar {
	out := arrow.MapOf(columnar.String, columnar.String)
	run := func(c *call) (arrow.Array, error) {
		in := kernel.TextsOf(c.args[0])
		cache := [2]*compiled[*regexp.Regexp]{newCompiled(compileRegexp), newCompiled(compileRegexp)}
		between := func(k, i int) (*regexp.Regexp, error) {
			p := []byte([]string{",", ":"}[k])
			if len(c.args) > k+1 {
				p = kernel.TextsOf(c.args[k+1]).At(i)
			}
			return cache[k].get(p, "")
		}
		b := columnar.NewBuilder(c.env.Mem, out)
		defer b.Release()
		valid, _ := c.validity()
		defer releaseBuffer(valid)
		for i := range c.rows {
			if !isSet(valid, i) || !c.active.Get(i) {
				b.AppendNull()
				continue
			}
			pairs, err := between(0, i)
			if err != nil {
				return nil, err
			}
			parts, err := between(1, i)
			if err != nil {
				return nil, err
			}
			entries, err := readPairs(string(in.At(i)), pairs, parts)
			if err != nil {
				return nil, err
			}
			if err := b.Append(entries); err != nil {
				return nil, err
			}
		}
		return b.NewArray(), nil
	}
	return defineFallible("str_to_map", "A map of the pairs of a text: between pairs stands a match of the second argument, a comma if there is none, between key and value one of the third, a colon; a key without a value has null. A key that is there twice is an error.", `str_to_map('a:1,b:2') = {"a":"1","b":"2"}`, []Matcher{varchar}, out, run).
		alsoFor([]Matcher{varchar, varchar}, out, run).alsoFor([]Matcher{varchar, varchar, varchar}, out, run)
}

func readPairs(text string, pairs, parts *regexp.Regexp) ([][2]any, error) {
	entries := [][2]any{}
	known := map[string]bool{}
	for _, pair := range pairs.Split(text, -1) {
		kv := parts.Split(pair, 2)
		if known[kv[0]] {
			return nil, fmt.Errorf("key %q is there twice in %q", kv[0], text)
		}
		known[kv[0]] = true
		entry := [2]any{kv[0], nil}
		if len(kv) > 1 {
			entry[1] = kv[1]
		}
		entries = append(entries, entry)
	}
	return entries, nil
}
