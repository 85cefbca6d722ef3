package function

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

func modeAggregate() *Aggregate {
	return countsAggregate("mode", "The most frequent value, nulls aside; of several the smallest.", "SELECT mode(x) FROM (VALUES (1), (NULL), (3), (3)) AS t(x) = 3", firstArgType, (*counts).modes)
}

func histogramAggregate() *Aggregate {
	return countsAggregate("histogram", "A map from each different value, in order, to how often it is there, nulls aside; null for no value.", "SELECT histogram(x) FROM (VALUES ('a'), (NULL), ('b'), ('a')) AS t(x) = {a=2, b=1}",
		func(args []arrow.DataType) (arrow.DataType, error) { return arrow.MapOf(args[0], columnar.Int64), nil }, (*counts).histograms)
}

func entropyAggregate() *Aggregate {
	return countsAggregate("entropy", "How many bits tell the values apart on average (the binary logarithm of their entropy), nulls aside; 0 for no value.", "SELECT entropy(x) FROM (VALUES (1), (2)) AS t(x) = 1.0",
		resultType(columnar.Float64), (*counts).entropies)
}

func countsAggregate(name, doc, example string, result func([]arrow.DataType) (arrow.DataType, error), of func(*counts, []uint32) (arrow.Array, error)) *Aggregate {
	return &Aggregate{Name: name, Doc: doc, Example: example, Overloads: []AggregateOverload{{
		Args: []Matcher{valueArg}, Result: result,
		New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
			codec, err := keyenc.New([]arrow.DataType{args[0]}, []keyenc.Order{{}})
			if err != nil {
				return nil, err
			}
			forms := codec
			if columnar.HasEqualForms(args[0]) {
				if forms, err = keyenc.New([]arrow.DataType{args[0]}, []keyenc.Order{{Exact: true}}); err != nil {
					return nil, err
				}
			}
			return &counts{mem: mem, codec: codec, forms: forms, dt: args[0], result: of, fields: []arrow.Field{
				stateField("values", columnar.ListOf(args[0])), stateField("counts", columnar.ListOf(columnar.Int64)),
			}}, nil
		},
	}}}
}

// counts holds how often each value is there, by its key encoding, whose order is that
// of the values and which is the same for equal ones.
type counts struct {
	mem    memory.Allocator
	codec  *keyenc.Codec
	dt     arrow.DataType
	fields []arrow.Field
	result func(*counts, []uint32) (arrow.Array, error)
	groups []map[string]counted
	held   int64
	keys   keyenc.Keys
	// forms is another codec where equal values have several forms: 24 hours and 1 day.
	forms *keyenc.Codec
	exact keyenc.Keys
}

// counted is how often a value is there, and in which form, the least of those seen, if
// it has several.
type counted struct {
	n    int64
	form string
}

func (a *counts) Fields() []arrow.Field { return a.fields }
func (a *counts) Resize(groups int)     { a.groups = extend(a.groups, groups, nil) }
func (a *counts) Bytes() int64          { return int64(cap(a.groups))*8 + a.held }
func (a *counts) Release()              { a.groups = nil }

// add counts n more of the value in a row of what was encoded.
func (a *counts) add(g uint32, row int, n int64) {
	m := a.groups[g]
	if m == nil {
		m = map[string]counted{}
		a.groups[g] = m
		a.held += 48
	}
	key := a.keys.Key(row)
	c, known := m[string(key)]
	if !known {
		a.held += int64(len(key)) + 56
	}
	c.n += n
	if a.forms != a.codec {
		if form := a.exact.Key(row); !known || string(form) < c.form {
			a.held += int64(len(form) - len(c.form))
			c.form = string(form)
		}
	}
	m[string(key)] = c
}

func (a *counts) encode(values arrow.Array) error {
	if a.forms != a.codec {
		a.exact.Reset()
		if err := a.forms.Encode([]arrow.Array{values}, &a.exact); err != nil {
			return err
		}
	}
	a.keys.Reset()
	return a.codec.Encode([]arrow.Array{values}, &a.keys)
}

// decode turns values, as formOf gives them, back into a column.
func (a *counts) decode(keys *keyenc.Keys) (arrow.Array, error) {
	columns, err := a.forms.Decode(a.mem, keys)
	if err != nil {
		return nil, fmt.Errorf("bug: stored value: %w", err)
	}
	return columns[0], nil
}

func (a *counts) formOf(key string, c counted) string {
	if a.forms != a.codec {
		return c.form
	}
	return key
}

func (a *counts) Update(groups []uint32, args []columnar.Datum) error {
	values := args[0].Array()
	if err := a.encode(values); err != nil {
		return err
	}
	for i, g := range groups {
		row := i
		if args[0].IsConstant() {
			row = 0
		}
		if !columnar.IsNull(values, row) {
			a.add(g, row, 1)
		}
	}
	return nil
}

func (a *counts) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	values, counts := state[0].(*array.List), state[1].(*array.List)
	if err := a.encode(values.ListValues()); err != nil {
		return err
	}
	numbers := fixedOf[int64](counts.ListValues())
	for i, g := range groups {
		if values.IsNull(i) {
			continue
		}
		from, to := values.ValueOffsets(i)
		at, end := counts.ValueOffsets(i)
		if to-from != end-at {
			return fmt.Errorf("bug: %d stored values have %d counts", to-from, end-at)
		}
		for j := from; j < to; j++ {
			a.add(g, int(j), numbers[at+j-from])
		}
	}
	return nil
}

func (a *counts) Load(groups []uint32, state []arrow.Array) error {
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *counts) Clear(groups []uint32) {
	for _, g := range groups {
		for key, c := range a.groups[g] {
			a.held -= int64(len(key)+len(c.form)) + 56
		}
		if a.groups[g] != nil {
			a.held -= 48
		}
		a.groups[g] = nil
	}
}

// entries are the values of groups in order, with their counts, and how many of each.
func (a *counts) entries(groups []uint32) (values, numbers arrow.Array, lengths []int, err error) {
	var keys keyenc.Keys
	var n []int64
	lengths = make([]int, len(groups))
	for i, g := range groups {
		lengths[i] = len(a.groups[g])
		for _, key := range slices.Sorted(maps.Keys(a.groups[g])) {
			c := a.groups[g][key]
			keys.Append([]byte(a.formOf(key, c)))
			n = append(n, c.n)
		}
	}
	column, err := a.decode(&keys)
	if err != nil {
		return nil, nil, nil, err
	}
	o := newOut[int64](a.mem, columnar.Int64, len(n))
	copy(o.values, n)
	return column, o.array(), lengths, nil
}

func (a *counts) State(groups []uint32) ([]arrow.Array, error) {
	values, numbers, lengths, err := a.entries(groups)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	defer numbers.Release()
	return []arrow.Array{listColumn(a.mem, values, lengths), listColumn(a.mem, numbers, lengths)}, nil
}

func (a *counts) Result(groups []uint32) (arrow.Array, error) { return a.result(a, groups) }

func (a *counts) modes(groups []uint32) (arrow.Array, error) {
	var keys keyenc.Keys
	for _, g := range groups {
		best, most := string(nullKey), counted{form: string(nullKey)}
		for key, c := range a.groups[g] {
			if c.n > most.n || c.n == most.n && key < best {
				best, most = key, c
			}
		}
		keys.Append([]byte(a.formOf(best, most)))
	}
	return a.decode(&keys)
}

func (a *counts) histograms(groups []uint32) (arrow.Array, error) {
	values, numbers, lengths, err := a.entries(groups)
	if err != nil {
		return nil, err
	}
	buf, ends := kernel.Make[int32](a.mem, len(groups)+1)
	nulls := nullBits{mem: a.mem, n: len(groups)}
	ends[0] = 0
	for i, n := range lengths {
		if n == 0 {
			nulls.set(i)
		}
		ends[i+1] = ends[i] + int32(n)
	}
	out := arrow.MapOf(a.dt, columnar.Int64)
	entries := kernel.WrapStruct(out.Elem(), numbers.Len(), 0, nil, []arrow.Array{values, numbers})
	return kernel.WrapList(out, len(groups), nulls.count, nulls.valid, buf, entries), nil
}

func (a *counts) entropies(groups []uint32) (arrow.Array, error) {
	o := newOut[float64](a.mem, columnar.Float64, len(groups))
	for i, g := range groups {
		total, sum := int64(0), 0.0
		for _, key := range slices.Sorted(maps.Keys(a.groups[g])) {
			total += a.groups[g][key].n
		}
		for _, key := range slices.Sorted(maps.Keys(a.groups[g])) {
			p := float64(a.groups[g][key].n) / float64(total)
			sum -= p * math.Log2(p)
		}
		o.values[i] = sum
	}
	return o.array(), nil
}
