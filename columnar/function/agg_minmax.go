package function

import (
	"cmp"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

func extremeAggregate(name string, largest bool) *Aggregate {
	doc, example := "The smallest value", "SELECT min(x) FROM (VALUES (2), (NULL), (1)) AS t(x) = 1"
	if largest {
		doc, example = "The largest value", "SELECT max(x) FROM (VALUES (2), (NULL), (1)) AS t(x) = 2"
	}
	return &Aggregate{
		Name:    name,
		Doc:     doc + " that is not null, in the order of ORDER BY (NaN is the largest number); null if there is none.",
		Example: example,
		Overloads: []AggregateOverload{{
			Args:            []Matcher{orderedArg},
			Result:          firstArgType,
			IgnoresDistinct: true,
			New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
				return newExtreme(mem, name, args[0], largest)
			},
		}},
	}
}

func newExtreme(mem memory.Allocator, name string, dt arrow.DataType, largest bool) (Accumulator, error) {
	fields := []arrow.Field{stateField(name, dt)}
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY:
		return &textExtreme{fields: fields, largest: largest, text: textStore{mem: mem, dt: dt}}, nil
	case arrow.DECIMAL128:
		return &wideExtreme[decimal128.Num]{mem: mem, fields: fields, largest: largest, less: decimal128.Num.Less}, nil
	case arrow.INTERVAL_MONTH_DAY_NANO:
		return &wideExtreme[arrow.MonthDayNanoInterval]{mem: mem, fields: fields, largest: largest, less: lessInterval}, nil
	case arrow.LIST, arrow.STRUCT:
		return newNestedExtreme(mem, fields, largest)
	}
	x := &wordExtreme{mem: mem, fields: fields, words: orderWords{dt: dt}}
	if !largest {
		x.flip = -1
	}
	return x, nil
}

// newNestedExtreme compares values by their keys. Where equal ones have several forms, these
// follow: which of them an extreme is does not depend on the order of rows.
func newNestedExtreme(mem memory.Allocator, fields []arrow.Field, largest bool) (Accumulator, error) {
	dt := fields[0].Type
	types, orders := []arrow.DataType{dt}, []keyenc.Order{{}}
	if columnar.HasEqualForms(dt) {
		types, orders = append(types, dt), append(orders, keyenc.Order{Exact: true})
	}
	codec, err := keyenc.New(types, orders)
	if err != nil {
		return nil, err
	}
	return &textExtreme{fields: fields, largest: largest, text: textStore{mem: mem, dt: dt}, codec: codec}, nil
}

// orderWords turns values of fixed-width types into int64 of the same order and back:
// one loop serves integers, booleans, dates, timestamps and floats.
type orderWords struct {
	dt      arrow.DataType
	scratch []int64
	bools   []uint8
}

// load is the values of d as words, borrowed until the next call.
func (w *orderWords) load(d columnar.Datum, n int) (words []int64, valid validity, none bool) {
	switch w.dt.ID() {
	case arrow.INT64, arrow.TIMESTAMP, arrow.TIME64:
		return fixedArg(d, n, &w.scratch)
	case arrow.BOOL:
		values, valid, none := boolsArg(d, n, &w.bools)
		if none {
			return nil, valid, none
		}
		w.scratch = widen(w.scratch, values)
		return w.scratch, valid, false
	}
	a := d.Array()
	if a.DataType().ID() == arrow.NULL || a.NullN() == a.Len() {
		return nil, validity{}, true
	}
	switch w.dt.ID() {
	case arrow.INT8:
		w.scratch = widen(w.scratch, fixedOf[int8](a))
	case arrow.INT16:
		w.scratch = widen(w.scratch, fixedOf[int16](a))
	case arrow.INT32, arrow.DATE32:
		w.scratch = widen(w.scratch, fixedOf[int32](a))
	case arrow.FLOAT32:
		src := fixedOf[float32](a)
		w.scratch = sized(w.scratch, len(src))
		for i, v := range src {
			w.scratch[i] = floatWord(float64(v))
		}
	case arrow.FLOAT64:
		src := fixedOf[float64](a)
		w.scratch = sized(w.scratch, len(src))
		for i, v := range src {
			w.scratch[i] = floatWord(v)
		}
	default:
		panic("bug: no order words for " + w.dt.String())
	}
	if !d.IsConstant() {
		return w.scratch, validityOf(a), false
	}
	v := w.scratch[0]
	w.scratch = sized(w.scratch, n)
	for i := range w.scratch {
		w.scratch[i] = v
	}
	return w.scratch, validity{}, false
}

func widen[T int8 | int16 | int32 | uint8](dst []int64, src []T) []int64 {
	dst = sized(dst, len(src))
	for i, v := range src {
		dst[i] = int64(v)
	}
	return dst
}

// floatWord orders NaN after everything; every NaN is the same one, and never
// MinInt64.
func floatWord(v float64) int64 {
	if v != v {
		v = math.NaN()
	}
	b := int64(math.Float64bits(v))
	return b ^ int64(uint64(b>>63)>>1)
}

func wordFloat(w int64) float64 {
	return math.Float64frombits(uint64(w ^ int64(uint64(w>>63)>>1)))
}

// column makes the column of words where isSet, null elsewhere.
func (w *orderWords) column(mem memory.Allocator, n int, at func(i int) (word int64, ok bool)) arrow.Array {
	switch w.dt.ID() {
	case arrow.BOOL:
		o := newOutBits(mem, n)
		for i := range n {
			v, ok := at(i)
			if !ok {
				o.null(i)
			} else if v != 0 {
				o.set(i)
			}
		}
		return o.array()
	case arrow.INT8:
		return narrow(newOut[int8](mem, w.dt, n), at)
	case arrow.INT16:
		return narrow(newOut[int16](mem, w.dt, n), at)
	case arrow.INT32, arrow.DATE32:
		return narrow(newOut[int32](mem, w.dt, n), at)
	case arrow.FLOAT32:
		return floats(newOut[float32](mem, w.dt, n), at)
	case arrow.FLOAT64:
		return floats(newOut[float64](mem, w.dt, n), at)
	}
	return narrow(newOut[int64](mem, w.dt, n), at)
}

func narrow[T int8 | int16 | int32 | int64](o *out[T], at func(i int) (int64, bool)) arrow.Array {
	for i := range o.values {
		v, ok := at(i)
		o.values[i] = T(v)
		if !ok {
			o.null(i)
		}
	}
	return o.array()
}

func floats[T float32 | float64](o *out[T], at func(i int) (int64, bool)) arrow.Array {
	for i := range o.values {
		v, ok := at(i)
		o.values[i] = T(wordFloat(v))
		if !ok {
			o.null(i)
		}
	}
	return o.array()
}

// wordExtreme is min and max of fixed-width values. It keeps the largest word; for
// min, words are inverted, which reverses their order. The smallest word doubles as
// the mark of an empty group: the few groups that really hold it are noted in rare.
type wordExtreme struct {
	mem    memory.Allocator
	fields []arrow.Field
	words  orderWords
	flip   int64 // 0 for max, -1 for min
	best   []int64
	rare   map[uint32]struct{}
}

const noWord = math.MinInt64

func (a *wordExtreme) Fields() []arrow.Field { return a.fields }
func (a *wordExtreme) Resize(groups int)     { a.best = extend(a.best, groups, noWord) }
func (a *wordExtreme) Bytes() int64 {
	return bytesOfSlice(a.best, 8) + bytesOfSlice(a.words.scratch, 8) + int64(len(a.rare))*16
}
func (a *wordExtreme) Release() { a.best, a.rare, a.words.scratch = nil, nil, nil }

func (a *wordExtreme) Update(groups []uint32, args []columnar.Datum) error {
	words, valid, none := a.words.load(args[0], len(groups))
	if none {
		return nil
	}
	best, flip := a.best, a.flip
	words = words[:len(groups)]
	if valid.bits != nil {
		for i, g := range groups {
			if valid.is(i) {
				a.raise(g, words[i]^flip)
			}
		}
		return nil
	}
	if len(best) >= manyGroups {
		a.raiseAll(groups, words)
		return nil
	}
	for i, g := range groups {
		w := words[i] ^ flip
		if w > best[g] {
			best[g] = w
		} else if w == noWord {
			a.note(g)
		}
	}
	return nil
}

// manyGroups is from how many groups on a row hardly ever follows one of its group, so that
// storing what is there already costs less than to guess whether the word is larger.
const manyGroups = 1024

// raiseAll is raise of every row, without a branch that cannot be foreseen.
func (a *wordExtreme) raiseAll(groups []uint32, words []int64) {
	best, flip := a.best, a.flip
	for i, g := range groups {
		w := words[i] ^ flip
		best[g] = max(best[g], w)
		if w == noWord {
			a.note(g)
		}
	}
}

func (a *wordExtreme) raise(g uint32, w int64) {
	if w > a.best[g] {
		a.best[g] = w
	} else if w == noWord {
		a.note(g)
	}
}

// note remembers that g holds the word that means nothing elsewhere.
func (a *wordExtreme) note(g uint32) {
	if a.rare == nil {
		a.rare = map[uint32]struct{}{}
	}
	a.rare[g] = struct{}{}
}

func (a *wordExtreme) isSet(g uint32) bool {
	if a.best[g] != noWord {
		return true
	}
	_, ok := a.rare[g]
	return ok
}

func (a *wordExtreme) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	state[0].Retain()
	d := columnar.ColumnDatum(state[0])
	defer d.Release()
	return a.Update(groups, []columnar.Datum{d})
}

func (a *wordExtreme) Load(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *wordExtreme) Clear(groups []uint32) {
	for _, g := range groups {
		a.best[g] = noWord
	}
	if len(a.rare) > 0 {
		for _, g := range groups {
			delete(a.rare, g)
		}
	}
}

func (a *wordExtreme) State(groups []uint32) ([]arrow.Array, error) {
	r, err := a.Result(groups)
	return []arrow.Array{r}, err
}

func (a *wordExtreme) Result(groups []uint32) (arrow.Array, error) {
	switch a.words.dt.ID() {
	case arrow.INT64, arrow.TIMESTAMP, arrow.TIME64:
		o := newOut[int64](a.mem, a.words.dt, len(groups))
		for i, g := range groups {
			w := a.best[g]
			o.values[i] = w ^ a.flip
			if w == noWord && !a.isSet(g) {
				o.null(i)
			}
		}
		return o.array(), nil
	case arrow.FLOAT64:
		o := newOut[float64](a.mem, a.words.dt, len(groups))
		for i, g := range groups {
			w := a.best[g]
			o.values[i] = wordFloat(w ^ a.flip)
			if w == noWord && !a.isSet(g) {
				o.null(i)
			}
		}
		return o.array(), nil
	}
	return a.words.column(a.mem, len(groups), func(i int) (int64, bool) {
		g := groups[i]
		return a.best[g] ^ a.flip, a.isSet(g)
	}), nil
}

// wideExtreme is min and max of decimals and intervals, in the order of less.
type wideExtreme[T any] struct {
	mem     memory.Allocator
	fields  []arrow.Field
	largest bool
	less    func(a, b T) bool
	best    []T
	set     []bool
	scratch []T
}

func (a *wideExtreme[T]) Fields() []arrow.Field { return a.fields }

func (a *wideExtreme[T]) Resize(groups int) {
	var zero T
	a.best = extend(a.best, groups, zero)
	a.set = extend(a.set, groups, false)
}

func (a *wideExtreme[T]) Bytes() int64 {
	return bytesOfSlice(a.best, 16) + bytesOfSlice(a.set, 1) + bytesOfSlice(a.scratch, 16)
}

func (a *wideExtreme[T]) Release() { a.best, a.set, a.scratch = nil, nil, nil }

func (a *wideExtreme[T]) Update(groups []uint32, args []columnar.Datum) error {
	values, valid, none := fixedArg(args[0], len(groups), &a.scratch)
	if none {
		return nil
	}
	for i, g := range groups {
		if !valid.is(i) {
			continue
		}
		v := values[i]
		if !a.set[g] || (a.largest && a.less(a.best[g], v)) || (!a.largest && a.less(v, a.best[g])) {
			a.best[g], a.set[g] = v, true
		}
	}
	return nil
}

func (a *wideExtreme[T]) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	state[0].Retain()
	d := columnar.ColumnDatum(state[0])
	defer d.Release()
	return a.Update(groups, []columnar.Datum{d})
}

func (a *wideExtreme[T]) Load(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *wideExtreme[T]) Clear(groups []uint32) {
	for _, g := range groups {
		a.set[g] = false
	}
}

func (a *wideExtreme[T]) State(groups []uint32) ([]arrow.Array, error) {
	r, err := a.Result(groups)
	return []arrow.Array{r}, err
}

func (a *wideExtreme[T]) Result(groups []uint32) (arrow.Array, error) {
	o := newOut[T](a.mem, a.fields[0].Type, len(groups))
	for i, g := range groups {
		if a.set[g] {
			o.values[i] = a.best[g]
		} else {
			o.null(i)
		}
	}
	return o.array(), nil
}

// lessInterval orders intervals by their lengths, and equal ones by their months and
// days, so that which of them an extreme is does not depend on the order of rows.
func lessInterval(a, b arrow.MonthDayNanoInterval) bool {
	ad, an := columnar.IntervalLength(a)
	bd, bn := columnar.IntervalLength(b)
	return cmp.Or(cmp.Compare(ad, bd), cmp.Compare(an, bn), cmp.Compare(a.Months, b.Months), cmp.Compare(a.Days, b.Days)) < 0
}

// textExtreme is min and max of texts, and of nested values by their keyenc bytes.
type textExtreme struct {
	fields  []arrow.Field
	largest bool
	text    textStore
	codec   *keyenc.Codec
	keys    keyenc.Keys
}

func (a *textExtreme) Fields() []arrow.Field { return a.fields }
func (a *textExtreme) Resize(groups int)     { a.text.resize(groups) }
func (a *textExtreme) Bytes() int64          { return a.text.bytes() + int64(cap(a.keys.Data)) }
func (a *textExtreme) Release()              { a.text.release() }
func (a *textExtreme) Clear(groups []uint32) { a.text.clear(groups) }

func (a *textExtreme) Update(groups []uint32, args []columnar.Datum) error {
	if a.codec != nil {
		return a.updateNested(groups, args[0])
	}
	t, none := newTextsArg(args[0])
	if none {
		return nil
	}
	for i, g := range groups {
		if !t.valid.is(i) {
			continue
		}
		if v := t.at(i); a.text.beaten(g, v, a.largest) {
			a.text.setText(g, v)
		}
	}
	return nil
}

func (a *textExtreme) updateNested(groups []uint32, d columnar.Datum) error {
	values := d.Array()
	a.keys.Reset()
	columns := []arrow.Array{values, values}[:len(a.codec.Types())]
	if err := a.codec.Encode(columns, &a.keys); err != nil {
		return err
	}
	for i, g := range groups {
		r := i
		if d.IsConstant() {
			r = 0
		}
		if values.IsNull(r) {
			continue
		}
		if v := a.keys.Key(r); a.text.beaten(g, v, a.largest) {
			a.text.setText(g, v)
		}
	}
	return nil
}

func (a *textExtreme) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	state[0].Retain()
	d := columnar.ColumnDatum(state[0])
	defer d.Release()
	return a.Update(groups, []columnar.Datum{d})
}

func (a *textExtreme) Load(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *textExtreme) State(groups []uint32) ([]arrow.Array, error) {
	r, err := a.Result(groups)
	return []arrow.Array{r}, err
}

func (a *textExtreme) Result(groups []uint32) (arrow.Array, error) {
	if a.codec != nil {
		return decodeKeys(a.text.mem, a.codec, &a.text, groups)
	}
	return a.text.column(groups)
}
