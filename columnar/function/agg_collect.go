package function

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

func collectListAggregate() *Aggregate {
	one := AggregateOverload{
		Args:    []Matcher{valueArg},
		Result:  listOfFirst,
		Ordered: true,
		New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
			return newCollector(mem, args[0], asList)
		},
	}
	withNulls := one
	withNulls.Args = []Matcher{valueArg, exactArg(columnar.Boolean)}
	return &Aggregate{
		Name:      "collect_list",
		Aliases:   []string{"array_agg", "list"},
		Doc:       "The values that are not null as an array, in arrival order; an empty array if there are none. With RESPECT NULLS, or where a second argument is true, nulls are kept.",
		Example:   "SELECT collect_list(x) FROM (VALUES (2), (NULL), (1), (2)) AS t(x) = [2, 1, 2]",
		Overloads: []AggregateOverload{one, withNulls},
	}
}

func listaggAggregate() *Aggregate {
	one := AggregateOverload{
		Args:    []Matcher{exactArg(columnar.String)},
		Result:  resultType(columnar.String),
		Ordered: true,
		New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
			return newCollector(mem, columnar.String, asText)
		},
	}
	two := one
	two.Args = []Matcher{exactArg(columnar.String), exactArg(columnar.String)}
	two.Constant = &ConstantArg{"the text between must be a constant", func(arrow.Array) bool { return true }}
	return &Aggregate{
		Name:      "listagg",
		Aliases:   []string{"string_agg", "group_concat"},
		Doc:       "The texts that are not null joined in arrival order, with the second argument (a constant) between them; null if there are none.",
		Example:   "SELECT listagg(x, ', ') FROM (VALUES ('b'), (NULL), ('a')) AS t(x) = b, a",
		Overloads: []AggregateOverload{one, two},
	}
}

func listOfFirst(args []arrow.DataType) (arrow.DataType, error) { return columnar.ListOf(args[0]), nil }

// How a collector's values become its result.
type collectForm uint8

const (
	asList collectForm = iota
	asText
)

// collector keeps all values of every group, as chains of entries without pointers:
//
//	head, tail []uint32   per group: its first and last entry, noEntry if empty
//	next       []uint32   per entry: the one after it
//	ord        []int64    per entry: the ordinal of its row
//	values                per entry: the value
//
// Entries of cleared groups are used again.
type collector struct {
	mem    memory.Allocator
	form   collectForm
	fields []arrow.Field
	head   []uint32
	tail   []uint32
	count  []uint32
	next   []uint32
	ord    []int64
	values valueStore
	free   []uint32

	between []byte // delimiter of texts
	known   bool   // between was seen

	entries, rows []uint32
	order         []entryOrder
	bools         []uint8
}

type entryOrder struct {
	ord   int64
	entry uint32
}

const noEntry = ^uint32(0)

func newCollector(mem memory.Allocator, dt arrow.DataType, form collectForm) (Accumulator, error) {
	store, err := newValueStore(mem, dt)
	if err != nil {
		return nil, err
	}
	a := &collector{mem: mem, form: form, values: store}
	values := stateField("values", columnar.ListOf(dt))
	a.fields = []arrow.Field{ordinalField, values, stateField("ordinals", columnar.ListOf(columnar.Int64))}
	if form == asText {
		a.fields = append(a.fields, stateField("delimiter", columnar.String))
	}
	return a, nil
}

func (a *collector) Fields() []arrow.Field { return a.fields }

func (a *collector) Resize(groups int) {
	a.head = extend(a.head, groups, noEntry)
	a.tail = extend(a.tail, groups, noEntry)
	a.count = extend(a.count, groups, 0)
}

func (a *collector) Bytes() int64 {
	return int64(cap(a.head)+cap(a.tail)+cap(a.count)+cap(a.next)+cap(a.free))*4 + bytesOfSlice(a.ord, 8) + a.values.bytes()
}

func (a *collector) Release() {
	a.head, a.tail, a.count, a.next, a.ord, a.free = nil, nil, nil, nil, nil, nil
	a.values.release()
}

func (a *collector) Update(groups []uint32, args []columnar.Datum) error {
	a.takeDelimiter(args)
	x := args[0]
	var keepNull []uint8
	if a.form == asList && len(args) > 2 {
		keepNull = flagsArg(args[1], len(groups), &a.bools)
	}
	ordinals := fixedOf[int64](args[len(args)-1].Array())
	a.entries, a.rows = a.entries[:0], a.rows[:0]
	for i, g := range groups {
		row := i
		if x.IsConstant() {
			row = 0
		}
		if nullValue(x.Array(), row) && (keepNull == nil || keepNull[i] == 0) {
			continue
		}
		a.entries = append(a.entries, a.link(g, ordinals[i]))
		a.rows = append(a.rows, uint32(row))
	}
	return a.store(x.Array())
}

// takeDelimiter reads the delimiter from its first row.
func (a *collector) takeDelimiter(args []columnar.Datum) {
	if a.known || a.form != asText || len(args) < 3 {
		return
	}
	p := args[1].Array()
	if p.Len() == 0 || nullValue(p, 0) {
		return
	}
	a.known = true
	a.between = []byte(p.(*array.String).Value(0))
}

// link appends an entry to the chain of g.
func (a *collector) link(g uint32, ordinal int64) uint32 {
	var e uint32
	if n := len(a.free); n > 0 {
		e, a.free = a.free[n-1], a.free[:n-1]
	} else {
		e = uint32(len(a.next))
		a.next = append(a.next, noEntry)
		a.ord = append(a.ord, 0)
	}
	a.next[e] = noEntry
	a.ord[e] = ordinal
	if a.head[g] == noEntry {
		a.head[g] = e
	} else {
		a.next[a.tail[g]] = e
	}
	a.tail[g] = e
	a.count[g]++
	return e
}

// store puts the values of the entries just linked.
func (a *collector) store(values arrow.Array) error {
	a.values.resize(len(a.next))
	return a.values.put(a.entries, a.rows, values)
}

func (a *collector) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(a.fields, state, len(groups)); err != nil {
		return err
	}
	values, numbers := state[1].(*array.List), state[2].(*array.List)
	ordinals := fixedOf[int64](numbers.ListValues())
	a.entries, a.rows = a.entries[:0], a.rows[:0]
	for i, g := range groups {
		if values.IsNull(i) {
			continue
		}
		from, to := values.ValueOffsets(i)
		base, _ := numbers.ValueOffsets(i)
		for j := from; j < to; j++ {
			a.entries = append(a.entries, a.link(g, ordinals[base+j-from]))
			a.rows = append(a.rows, uint32(j))
		}
	}
	if a.form == asText {
		a.mergeDelimiter(state[3])
	}
	return a.store(values.ListValues())
}

func (a *collector) mergeDelimiter(p arrow.Array) {
	for i := 0; i < p.Len() && !a.known; i++ {
		if p.IsValid(i) {
			a.known, a.between = true, []byte(p.(*array.String).Value(i))
		}
	}
}

func (a *collector) Load(groups []uint32, state []arrow.Array) error {
	a.Clear(groups)
	return a.Merge(groups, state)
}

func (a *collector) Clear(groups []uint32) {
	for _, g := range groups {
		from := len(a.free)
		for e := a.head[g]; e != noEntry; e = a.next[e] {
			a.free = append(a.free, e)
		}
		a.values.clear(a.free[from:])
		a.head[g], a.tail[g], a.count[g] = noEntry, noEntry, 0
	}
}

// Age makes what groups hold earlier than every row to come, in the order it has.
func (a *collector) Age(groups []uint32) {
	for _, g := range groups {
		a.chain(g)
		prev := noEntry
		for _, x := range a.order {
			a.ord[x.entry] = agedOrdinal
			if prev == noEntry {
				a.head[g] = x.entry
			} else {
				a.next[prev] = x.entry
			}
			prev = x.entry
		}
		if prev != noEntry {
			a.next[prev] = noEntry
			a.tail[g] = prev
		}
	}
}

// chain fills order with the entries of g, by ordinal; equal ones as linked.
func (a *collector) chain(g uint32) {
	a.order = a.order[:0]
	sorted := true
	for e := a.head[g]; e != noEntry; e = a.next[e] {
		o := a.ord[e]
		if n := len(a.order); n > 0 && a.order[n-1].ord > o {
			sorted = false
		}
		a.order = append(a.order, entryOrder{ord: o, entry: e})
	}
	if !sorted {
		slices.SortStableFunc(a.order, func(x, y entryOrder) int { return cmp.Compare(x.ord, y.ord) })
	}
}

// gather lists the entries of groups, each group's in order, and their number per
// group.
func (a *collector) gather(groups []uint32) (entries []uint32, lengths []int, ordinals []int64) {
	lengths = make([]int, len(groups))
	for i, g := range groups {
		a.chain(g)
		lengths[i] = len(a.order)
		for _, x := range a.order {
			entries = append(entries, x.entry)
			ordinals = append(ordinals, x.ord)
		}
	}
	return entries, lengths, ordinals
}

func (a *collector) State(groups []uint32) ([]arrow.Array, error) {
	entries, lengths, ordinals := a.gather(groups)
	values, err := a.values.column(entries)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	list := listColumn(a.mem, values, lengths)
	last := newOut[int64](a.mem, columnar.Int64, len(groups))
	at := 0
	for i, n := range lengths {
		if at += n; n == 0 {
			last.null(i)
		} else {
			last.values[i] = ordinals[at-1]
		}
	}
	o := newOut[int64](a.mem, columnar.Int64, len(ordinals))
	copy(o.values, ordinals)
	numbers := o.array()
	defer numbers.Release()
	state := []arrow.Array{last.array(), list, listColumn(a.mem, numbers, lengths)}
	if a.form == asText {
		state = append(state, a.delimiters(len(groups)))
	}
	return state, nil
}

func (a *collector) delimiters(n int) arrow.Array {
	s := textStore{mem: a.mem, dt: columnar.String}
	s.resize(1)
	if a.known {
		s.setText(0, a.between)
	}
	c, err := s.column(make([]uint32, n))
	if err != nil { // only a delimiter of gigabytes could do it
		return columnar.Nulls(a.mem, columnar.String, n)
	}
	return c
}

func (a *collector) Result(groups []uint32) (arrow.Array, error) {
	entries, lengths, _ := a.gather(groups)
	if a.form == asText {
		return a.joined(entries, lengths)
	}
	values, err := a.values.column(entries)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	return listColumn(a.mem, values, lengths), nil
}

// joined is the texts of each group with the delimiter between them.
func (a *collector) joined(entries []uint32, lengths []int) (arrow.Array, error) {
	texts := a.values.(*textStore)
	size := a.betweenBytes(lengths)
	for _, e := range entries {
		size += int64(len(texts.get(e)))
	}
	if size > math.MaxInt32 {
		return nil, fmt.Errorf("the texts of %d groups are longer than 2 GiB", len(lengths))
	}
	offsets, data := memory.NewResizableBuffer(a.mem), memory.NewResizableBuffer(a.mem)
	defer offsets.Release()
	defer data.Release()
	offsets.Resize((len(lengths) + 1) * 4)
	ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	ends[0] = 0
	data.Resize(int(size))
	row := data.Bytes()[:0]
	nulls := nullBits{mem: a.mem, n: len(lengths)}
	for i, n := range lengths {
		if n == 0 {
			nulls.set(i)
		}
		for k, e := range entries[:n] {
			if k > 0 {
				row = append(row, a.between...)
			}
			row = append(row, texts.get(e)...)
		}
		entries = entries[n:]
		ends[i+1] = int32(len(row))
	}
	return nulls.finish(columnar.String, offsets, data), nil
}

// betweenBytes is what the delimiters between so many texts take.
func (a *collector) betweenBytes(lengths []int) int64 {
	n := 0
	for _, l := range lengths {
		n += max(l-1, 0)
	}
	return int64(n) * int64(len(a.between))
}

// resultRoom implements ResultRoom: long delimiters are in no proportion to the texts.
func (a *collector) resultRoom(groups []uint32) int64 {
	if a.form != asText {
		return 0
	}
	lengths := make([]int, len(groups))
	for i, g := range groups {
		lengths[i] = int(a.count[g])
	}
	return a.betweenBytes(lengths)
}

var _ Ager = (*collector)(nil)
