package function

import (
	"bytes"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

func firstLastAggregate(name string, last bool, aliases ...string) *Aggregate {
	doc := "The value of the first row, in arrival order"
	example := "SELECT first(x) FROM (VALUES (2), (1), (3)) AS t(x) = 2"
	switch {
	case last:
		doc = "The value of the last row, in arrival order"
		example = "SELECT last(x) FROM (VALUES (2), (1), (3)) AS t(x) = 3"
	case name == "any_value":
		doc = "The value of some row (the first)"
		example = "SELECT any_value(x) FROM (VALUES (2), (2)) AS t(x) = 2"
	}
	make := func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
		return newFirstLast(mem, args[0], last)
	}
	return &Aggregate{
		Name:    name,
		Aliases: aliases,
		Doc:     doc + "; a null counts as one, unless the second argument is true.",
		Example: example,
		Overloads: []AggregateOverload{
			{Args: []Matcher{valueArg}, Result: firstArgType, Ordered: true, New: make},
			{Args: []Matcher{valueArg, exactArg(columnar.Boolean)}, Result: firstArgType, Ordered: true, New: make},
		},
	}
}

// Marks among ordinals, which are not negative. An aged ordinal is earlier than any
// of a row still to come.
const (
	agedOrdinal  = math.MinInt64 + 1
	noneForFirst = math.MaxInt64
	noneForLast  = math.MinInt64
)

// ordinalField is the first state column of every Ordered accumulator: null for an
// empty group.
var ordinalField = stateField("ordinal", columnar.Int64)

func newFirstLast(mem memory.Allocator, dt arrow.DataType, last bool) (Accumulator, error) {
	store, err := newValueStore(mem, dt)
	if err != nil {
		return nil, err
	}
	a := &firstLast{mem: mem, last: last, values: store, none: noneForFirst, fields: []arrow.Field{ordinalField, stateField("value", dt)}}
	if last {
		a.none = noneForLast
	}
	return a, nil
}

// firstLast is first, last and any_value: the value of the row with the smallest or
// largest ordinal.
type firstLast struct {
	mem    memory.Allocator
	last   bool
	none   int64 // the ordinal of an empty group: every other wins
	fields []arrow.Field
	ord    []int64
	values valueStore

	winners, rows []uint32
	bools         []uint8
}

func (a *firstLast) Fields() []arrow.Field { return a.fields }

func (a *firstLast) Resize(groups int) {
	a.ord = extend(a.ord, groups, a.none)
	a.values.resize(groups)
}

func (a *firstLast) Bytes() int64 { return bytesOfSlice(a.ord, 8) + a.values.bytes() }

func (a *firstLast) Release() {
	a.ord = nil
	a.values.release()
}

func (a *firstLast) Update(groups []uint32, args []columnar.Datum) error {
	x := args[0]
	ordinals := fixedOf[int64](args[len(args)-1].Array())
	var ignore []uint8
	if len(args) == 3 {
		ignore = flagsArg(args[1], len(groups), &a.bools)
	}
	a.winners, a.rows = a.winners[:0], a.rows[:0]
	for i, g := range groups {
		o := ordinals[i]
		if a.last && o <= a.ord[g] || !a.last && o >= a.ord[g] {
			continue
		}
		row := uint32(i)
		if x.IsConstant() {
			row = 0
		}
		if ignore != nil && ignore[i] != 0 && nullValue(x.Array(), int(row)) {
			continue
		}
		a.ord[g] = o
		a.winners = append(a.winners, g)
		a.rows = append(a.rows, row)
	}
	return a.values.put(a.winners, a.rows, x.Array())
}

// flagsArg is whether d is true in each of n rows; nil if it is in none.
func flagsArg(d columnar.Datum, n int, room *[]uint8) []uint8 {
	flags, valid, none := boolsArg(d, n, room)
	if none {
		return nil
	}
	for i := range flags {
		if !valid.is(i) {
			flags[i] = 0
		}
	}
	return flags
}

func nullValue(a arrow.Array, i int) bool {
	return a.IsNull(i) || a.DataType().ID() == arrow.NULL
}

func (a *firstLast) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	ordinals, valid := fixedOf[int64](state[0]), validityOf(state[0])
	a.winners, a.rows = a.winners[:0], a.rows[:0]
	for i, g := range groups {
		// Of two aged states the one merged later is the later one.
		if !valid.is(i) || a.last && ordinals[i] < a.ord[g] || !a.last && ordinals[i] >= a.ord[g] {
			continue
		}
		a.ord[g] = ordinals[i]
		a.winners = append(a.winners, g)
		a.rows = append(a.rows, uint32(i))
	}
	return a.values.put(a.winners, a.rows, state[1])
}

func (a *firstLast) Load(groups []uint32, state []arrow.Array) error {
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *firstLast) Clear(groups []uint32) {
	for _, g := range groups {
		a.ord[g] = a.none
	}
	a.values.clear(groups)
}

// Age makes what groups hold earlier than every row to come.
func (a *firstLast) Age(groups []uint32) {
	for _, g := range groups {
		if a.ord[g] != a.none {
			a.ord[g] = agedOrdinal
		}
	}
}

func (a *firstLast) State(groups []uint32) ([]arrow.Array, error) {
	values, err := a.values.column(groups)
	if err != nil {
		return nil, err
	}
	return []arrow.Array{ordinalColumn(a.mem, a.ord, a.none, groups), values}, nil
}

// ordinalColumn is the ordinals of groups, null where they are none.
func ordinalColumn(mem memory.Allocator, ord []int64, none int64, groups []uint32) arrow.Array {
	o := newOut[int64](mem, columnar.Int64, len(groups))
	for i, g := range groups {
		if ord[g] == none {
			o.null(i)
		} else {
			o.values[i] = ord[g]
		}
	}
	return o.array()
}

func (a *firstLast) Result(groups []uint32) (arrow.Array, error) { return a.values.column(groups) }

func extremeByAggregate(name string, largest bool, aliases ...string) *Aggregate {
	doc, example := "smallest", "SELECT min_by(x, y) FROM (VALUES ('a', 2), ('b', 1)) AS t(x, y) = b"
	if largest {
		doc, example = "largest", "SELECT max_by(x, y) FROM (VALUES ('a', 2), ('b', 1)) AS t(x, y) = a"
	}
	return &Aggregate{
		Name:    name,
		Aliases: aliases,
		Doc:     "The value of x in the row with the " + doc + " y, nulls in y aside; of several such rows the first to arrive. With a number n as a third argument, an array of the x of the n such rows, the best first.",
		Example: example,
		Overloads: []AggregateOverload{{
			Args:    []Matcher{valueArg, orderedArg},
			Result:  firstArgType,
			Ordered: true,
			New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
				return newExtremeBy(mem, args, largest)
			},
		}},
	}
}

func newExtremeBy(mem memory.Allocator, args []arrow.DataType, largest bool) (Accumulator, error) {
	values, err := newValueStore(mem, args[0])
	if err != nil {
		return nil, err
	}
	codec, err := keyenc.New([]arrow.DataType{args[1]}, []keyenc.Order{{Desc: largest}})
	if err != nil {
		return nil, err
	}
	return &extremeBy{
		mem: mem, values: values, codec: codec,
		by:     textStore{mem: mem, dt: columnar.Binary},
		fields: []arrow.Field{ordinalField, stateField("value", args[0]), stateField("by", args[1])},
	}, nil
}

// extremeBy is min_by and max_by. The values of y are kept as keyenc bytes, descending
// for max_by: the smallest bytes win, then the smallest ordinal.
type extremeBy struct {
	mem    memory.Allocator
	fields []arrow.Field
	ord    []int64 // noneForFirst: empty
	values valueStore
	by     textStore
	codec  *keyenc.Codec

	keys          keyenc.Keys
	winners, rows []uint32
}

func (a *extremeBy) Fields() []arrow.Field { return a.fields }

func (a *extremeBy) Resize(groups int) {
	a.ord = extend(a.ord, groups, noneForFirst)
	a.values.resize(groups)
	a.by.resize(groups)
}

func (a *extremeBy) Bytes() int64 { return bytesOfSlice(a.ord, 8) + a.values.bytes() + a.by.bytes() }

func (a *extremeBy) Release() {
	a.ord = nil
	a.values.release()
	a.by.release()
}

func (a *extremeBy) Update(groups []uint32, args []columnar.Datum) error {
	ordinals := fixedOf[int64](args[2].Array())
	return a.compete(groups, args[0], args[1], ordinals)
}

func (a *extremeBy) compete(groups []uint32, x, y columnar.Datum, ordinals []int64) error {
	by := y.Array()
	if by.DataType().ID() == arrow.NULL {
		return nil
	}
	a.keys.Reset()
	if err := a.codec.Encode([]arrow.Array{by}, &a.keys); err != nil {
		return err
	}
	a.winners, a.rows = a.winners[:0], a.rows[:0]
	for i, g := range groups {
		row := i
		if y.IsConstant() {
			row = 0
		}
		if by.IsNull(row) {
			continue
		}
		k := a.keys.Key(row)
		if a.ord[g] != noneForFirst {
			c := bytes.Compare(k, a.by.get(g))
			if c > 0 || c == 0 && ordinals[i] >= a.ord[g] {
				continue
			}
		}
		a.ord[g] = ordinals[i]
		a.by.setText(g, k)
		from := uint32(i)
		if x.IsConstant() {
			from = 0
		}
		a.winners = append(a.winners, g)
		a.rows = append(a.rows, from)
	}
	return a.values.put(a.winners, a.rows, x.Array())
}

func (a *extremeBy) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	for _, s := range state[1:3] {
		s.Retain()
	}
	x, y := columnar.ColumnDatum(state[1]), columnar.ColumnDatum(state[2])
	defer x.Release()
	defer y.Release()
	return a.compete(groups, x, y, fixedOf[int64](state[0])) // y is null where the state is empty
}

func (a *extremeBy) Load(groups []uint32, state []arrow.Array) error {
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *extremeBy) Clear(groups []uint32) {
	for _, g := range groups {
		a.ord[g] = noneForFirst
	}
	a.values.clear(groups)
	a.by.clear(groups)
}

// Age makes what groups hold earlier than every row to come.
func (a *extremeBy) Age(groups []uint32) {
	for _, g := range groups {
		if a.ord[g] != noneForFirst {
			a.ord[g] = agedOrdinal
		}
	}
}

func (a *extremeBy) State(groups []uint32) ([]arrow.Array, error) {
	values, err := a.values.column(groups)
	if err != nil {
		return nil, err
	}
	by, err := decodeKeys(a.mem, a.codec, &a.by, groups)
	if err != nil {
		values.Release()
		return nil, err
	}
	return []arrow.Array{ordinalColumn(a.mem, a.ord, noneForFirst, groups), values, by}, nil
}

func (a *extremeBy) Result(groups []uint32) (arrow.Array, error) { return a.values.column(groups) }

var (
	_ Ager = (*firstLast)(nil)
	_ Ager = (*extremeBy)(nil)
)
