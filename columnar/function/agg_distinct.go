package function

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
)

func collectSetAggregate() *Aggregate {
	return &Aggregate{
		Name:    "collect_set",
		Doc:     "The different values that are not null as an array, in order of first arrival; an empty array if there are none.",
		Example: "SELECT collect_set(x) FROM (VALUES (2), (NULL), (1), (2)) AS t(x) = [2, 1]",
		Overloads: []AggregateOverload{{
			Args:            []Matcher{valueArg},
			Result:          listOfFirst,
			Ordered:         true,
			IgnoresDistinct: true,
			New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
				return NewDistinct(mem, nil, &collectListAggregate().Overloads[0], args)
			},
		}},
	}
}

// Distinct is an aggregate over the different values of each group: what DISTINCT in
// a call means. It keeps the set of (group, arguments) and feeds an accumulator of
// the aggregate when asked for the Result; of equal rows the one with the smallest
// ordinal counts, and its values are kept where the key of the set forgets how they were
// written.
//
// As an Accumulator its State is one list of values a group. A streaming operator
// keeps the set as a table of its own instead, so that a batch writes only new
// pairs: Pairs hands out what is in the set, AddPairs puts it back.
type Distinct struct {
	mem      memory.Allocator
	budget   *columnar.Budget
	overload *AggregateOverload
	args     []arrow.DataType
	fields   []arrow.Field
	ordered  bool // rows come with ordinals
	count    bool // count needs no inner accumulator

	set   group.Table // (turn, arguments…) → pair
	turn  []uint32    // per group: the number its pairs carry; renewed by Clear
	turns uint32
	head  []uint32 // per group: its first pair, noEntry if none
	tail  []uint32
	n     []int64      // per group: pairs without nulls
	owner []uint32     // per pair: its group when it was added
	next  []uint32     // per pair: the next of its group
	ord   []int64      // per pair: its smallest ordinal, if ordered
	forms []valueStore // per argument: its value by pair, nil if the key has it
	dead  int          // pairs of cleared groups

	ids, pairs, rows []uint32
}

// OverSet is overload with a Distinct as its accumulator.
func OverSet(overload *AggregateOverload, args []arrow.DataType) *AggregateOverload {
	o := *overload
	o.Ordered = overload.Ordered || ChoosesForm(overload, args)
	o.New = func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
		return newDistinct(mem, nil, overload, args, o.Ordered)
	}
	return &o
}

// ChoosesForm says whether the result over different values has one of the forms of those
// that are equal: then it is the one that came first.
func ChoosesForm(overload *AggregateOverload, args []arrow.DataType) bool {
	if !slices.ContainsFunc(args, columnar.LosesForm) {
		return false
	}
	result, err := overload.Result(args)
	return err == nil && columnar.LosesForm(result)
}

// NewDistinct makes a Distinct for calls of overload with arguments of the given
// types. The set is reserved from budget, which may be nil.
func NewDistinct(mem memory.Allocator, budget *columnar.Budget, overload *AggregateOverload, args []arrow.DataType) (*Distinct, error) {
	return newDistinct(mem, budget, overload, args, overload.Ordered)
}

// newDistinct is NewDistinct whose rows come with ordinals, if ordered, though the aggregate
// may not look at them.
func newDistinct(mem memory.Allocator, budget *columnar.Budget, overload *AggregateOverload, args []arrow.DataType, ordered bool) (*Distinct, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("DISTINCT needs an argument: count(DISTINCT x)")
	}
	inner, err := overload.New(mem, args)
	if err != nil {
		return nil, err
	}
	counter, isCount := inner.(*countAccumulator)
	inner.Release()
	d := &Distinct{mem: mem, budget: budget, overload: overload, args: args, ordered: ordered, count: isCount && !counter.condition}
	value := args[0]
	if len(args) > 1 {
		fields := make([]arrow.Field, len(args))
		for i, dt := range args {
			fields[i] = columnar.Field(fmt.Sprintf("arg%d", i+1), dt)
		}
		value = arrow.StructOf(fields...)
	}
	d.fields = []arrow.Field{stateField("values", columnar.ListOf(value))}
	if d.ordered {
		d.fields = []arrow.Field{ordinalField, d.fields[0], stateField("ordinals", columnar.ListOf(columnar.Int64))}
	}
	return d, d.newSet()
}

func (d *Distinct) newSet() (err error) {
	types := append([]arrow.DataType{columnar.Int32}, d.args...)
	d.forms = make([]valueStore, len(d.args))
	for k, dt := range d.args {
		if d.ordered && columnar.LosesForm(dt) {
			if d.forms[k], err = newValueStore(d.mem, dt); err != nil {
				return err
			}
		}
	}
	d.set, err = group.New(d.mem, types, group.Options{Budget: d.budget, Who: "DISTINCT"})
	return err
}

// Fields are the list of values, after the ordinal for Ordered aggregates.
func (d *Distinct) Fields() []arrow.Field { return d.fields }

// Resize makes room for ids below groups.
func (d *Distinct) Resize(groups int) {
	d.head = extend(d.head, groups, noEntry)
	d.tail = extend(d.tail, groups, noEntry)
	d.n = extend(d.n, groups, 0)
	for old := len(d.turn); old < groups; old = len(d.turn) {
		d.turn = append(d.turn, d.turns)
		d.turns++
	}
}

// Bytes is the memory held.
func (d *Distinct) Bytes() int64 {
	n := d.set.Bytes() + bytesOfSlice(d.n, 8) + bytesOfSlice(d.ord, 8) +
		int64(cap(d.turn)+cap(d.head)+cap(d.tail)+cap(d.owner)+cap(d.next)+cap(d.ids)+cap(d.pairs)+cap(d.rows))*4
	for _, s := range d.forms {
		if s != nil {
			n += s.bytes()
		}
	}
	return n
}

// Release gives the memory and its reservation back.
func (d *Distinct) Release() {
	d.set.Release()
	for _, s := range d.forms {
		if s != nil {
			s.release()
		}
	}
}

// Update adds the arguments of rows to the sets of their groups.
func (d *Distinct) Update(groups []uint32, args []columnar.Datum) error {
	columns := make([]arrow.Array, len(d.args))
	var held columnar.Releases
	defer held.Release()
	for i, dt := range d.args {
		a, err := fullColumn(d.mem, args[i], dt, len(groups))
		if err != nil {
			return err
		}
		held.Add(a)
		columns[i] = a
	}
	var ordinals []int64
	if d.ordered {
		ordinals = fixedOf[int64](args[len(args)-1].Array())
	}
	return d.AddPairs(groups, columns, ordinals)
}

// fullColumn is d as a column of n rows of type dt; the caller releases it.
func fullColumn(mem memory.Allocator, d columnar.Datum, dt arrow.DataType, n int) (arrow.Array, error) {
	a := d.Array()
	if a.DataType().ID() == arrow.NULL {
		return columnar.Nulls(mem, dt, n), nil
	}
	if !d.IsConstant() {
		a.Retain()
		return a, nil
	}
	store, err := newValueStore(mem, dt)
	if err != nil {
		return nil, err
	}
	store.resize(1)
	if err := store.put([]uint32{0}, []uint32{0}, a); err != nil {
		return nil, err
	}
	return store.column(make([]uint32, n))
}

// AddPairs adds row i of values, the argument columns, to the set of groups[i].
// ordinals, one a row, are needed by Ordered aggregates only.
func (d *Distinct) AddPairs(groups []uint32, values []arrow.Array, ordinals []int64) error {
	turns := newOut[int32](d.mem, columnar.Int32, len(groups))
	for i, g := range groups {
		turns.values[i] = int32(d.turn[g])
	}
	key := turns.array()
	defer key.Release()
	d.ids = sized(d.ids, len(groups))
	if err := d.set.Intern(append([]arrow.Array{key}, values...), d.ids); err != nil {
		return err
	}
	d.pairs, d.rows = d.pairs[:0], d.rows[:0]
	for i, id := range d.ids {
		switch {
		case int(id) == len(d.owner):
			d.link(groups[i], id, values, i)
			if d.ordered {
				d.ord = append(d.ord, ordinals[i])
			}
		case d.ordered && ordinals[i] < d.ord[id]:
			d.ord[id] = ordinals[i]
		default:
			continue
		}
		d.pairs, d.rows = append(d.pairs, id), append(d.rows, uint32(i))
	}
	return d.putForms(values)
}

// putForms keeps the values of the rows that are the first of their pairs.
func (d *Distinct) putForms(values []arrow.Array) error {
	for k, s := range d.forms {
		if s == nil {
			continue
		}
		s.resize(len(d.owner))
		if err := s.put(d.pairs, d.rows, values[k]); err != nil {
			return err
		}
	}
	return nil
}

// link appends the new pair id to the chain of g.
func (d *Distinct) link(g, id uint32, values []arrow.Array, row int) {
	d.owner = append(d.owner, g)
	d.next = append(d.next, noEntry)
	if d.head[g] == noEntry {
		d.head[g] = id
	} else {
		d.next[d.tail[g]] = id
	}
	d.tail[g] = id
	for _, a := range values {
		if nullValue(a, row) {
			return
		}
	}
	d.n[g]++
}

// Pairs returns the sets of groups as rows: row i belongs to groups[of[i]]. The
// caller releases the columns.
func (d *Distinct) Pairs(groups []uint32) (of []uint32, values []arrow.Array, ordinals []int64, err error) {
	var ids []uint32
	for i, g := range groups {
		for p := d.head[g]; p != noEntry; p = d.next[p] {
			ids = append(ids, p)
			of = append(of, uint32(i))
			if d.ordered {
				ordinals = append(ordinals, d.ord[p])
			}
		}
	}
	values, err = d.valuesOf(ids)
	return of, values, ordinals, err
}

// valuesOf is the arguments of pairs.
func (d *Distinct) valuesOf(pairs []uint32) ([]arrow.Array, error) {
	columns, err := d.set.Keys(pairs)
	if err != nil {
		return nil, err
	}
	columns[0].Release()
	columns = columns[1:]
	for k, s := range d.forms {
		if s == nil {
			continue
		}
		column, err := s.column(pairs)
		if err != nil {
			releaseAll(columns)
			return nil, err
		}
		columns[k].Release()
		columns[k] = column
	}
	return columns, nil
}

// Merge adds sets of values.
func (d *Distinct) Merge(groups []uint32, state []arrow.Array) error {
	if err := checkState(d.fields, state, len(groups)); err != nil {
		return err
	}
	at := 0
	if d.ordered {
		at = 1
	}
	lists := state[at].(*array.List)
	var owners []uint32
	var first, last int64 = -1, 0
	for i, g := range groups {
		if lists.IsNull(i) {
			continue
		}
		from, to := lists.ValueOffsets(i)
		if first < 0 {
			first = from
		}
		last = to
		for range to - from {
			owners = append(owners, g)
		}
	}
	if len(owners) == 0 {
		return nil
	}
	values := array.NewSlice(lists.ListValues(), first, last)
	defer values.Release()
	columns := []arrow.Array{values}
	if s, ok := values.(*array.Struct); ok && len(d.args) > 1 {
		columns = columns[:0]
		for f := range s.NumField() {
			columns = append(columns, s.Field(f))
		}
	}
	var ordinals []int64
	if d.ordered {
		o := state[2].(*array.List)
		from, _ := o.ValueOffsets(0)
		ordinals = fixedOf[int64](o.ListValues())[from:]
	}
	return d.AddPairs(owners, columns, ordinals)
}

// Load overwrites the sets of groups.
func (d *Distinct) Load(groups []uint32, state []arrow.Array) error {
	d.Clear(groups)
	return d.Merge(groups, state)
}

// Clear empties the sets of groups. Their pairs stay in the table under a number that
// no group has any more, until half of them are such.
func (d *Distinct) Clear(groups []uint32) {
	for _, g := range groups {
		for p := d.head[g]; p != noEntry; p = d.next[p] {
			d.owner[p] = noEntry
			d.dead++
		}
		d.head[g], d.tail[g], d.n[g] = noEntry, noEntry, 0
		d.turn[g] = d.turns
		d.turns++
	}
	if d.dead > 1<<12 && d.dead > len(d.owner)/2 {
		d.compact()
	}
}

// compact makes the table anew from the living pairs. If that fails (memory), the old
// one goes on.
func (d *Distinct) compact() {
	var ids, owners []uint32
	var ordinals []int64
	for g := range d.head {
		for p := d.head[g]; p != noEntry; p = d.next[p] {
			ids = append(ids, p)
			owners = append(owners, uint32(g))
			if d.ordered {
				ordinals = append(ordinals, d.ord[p])
			}
		}
	}
	columns, err := d.valuesOf(ids)
	if err != nil {
		return
	}
	defer releaseAll(columns)
	fresh := *d
	if err := fresh.newSet(); err != nil {
		return
	}
	fresh.owner, fresh.next, fresh.ord, fresh.dead = nil, nil, nil, 0
	fresh.ids, fresh.pairs, fresh.rows = nil, nil, nil
	fresh.head, fresh.tail, fresh.n, fresh.turn, fresh.turns = nil, nil, nil, nil, 0
	fresh.Resize(len(d.head))
	if err := fresh.AddPairs(owners, columns, ordinals); err != nil {
		fresh.Release()
		return
	}
	d.Release()
	*d = fresh
}

// Age makes what groups hold earlier than every row to come, for Ordered aggregates.
func (d *Distinct) Age(groups []uint32) {
	if !d.ordered {
		return
	}
	for _, g := range groups {
		var chain []uint32
		for p := d.head[g]; p != noEntry; p = d.next[p] {
			chain = append(chain, p)
		}
		slices.SortStableFunc(chain, func(x, y uint32) int { return cmp.Compare(d.ord[x], d.ord[y]) })
		for i, p := range chain {
			d.ord[p] = agedOrdinal
			d.tail[g], d.next[p] = p, noEntry
			if i == 0 {
				d.head[g] = p
			} else {
				d.next[chain[i-1]] = p
			}
		}
	}
}

// State is the sets of groups, one list a group.
func (d *Distinct) State(groups []uint32) ([]arrow.Array, error) {
	of, columns, ordinals, err := d.Pairs(groups)
	if err != nil {
		return nil, err
	}
	defer releaseAll(columns)
	lengths := make([]int, len(groups))
	for _, i := range of {
		lengths[i]++
	}
	values := columns[0]
	if len(columns) > 1 {
		fields := d.fields[len(d.fields)-1].Type
		if d.ordered {
			fields = d.fields[1].Type
		}
		children := make([]arrow.ArrayData, len(columns))
		for i, c := range columns {
			children[i] = c.Data()
		}
		data := array.NewData(fields.(*arrow.ListType).Elem(), len(of), []*memory.Buffer{nil}, children, 0, 0)
		defer data.Release()
		s := array.NewStructData(data)
		defer s.Release()
		values = s
	}
	list := listColumn(d.mem, values, lengths)
	if !d.ordered {
		return []arrow.Array{list}, nil
	}
	last := newOut[int64](d.mem, columnar.Int64, len(groups))
	for i := range groups {
		last.null(i) // each pair has its own
	}
	o := newOut[int64](d.mem, columnar.Int64, len(ordinals))
	copy(o.values, ordinals)
	numbers := o.array()
	defer numbers.Release()
	return []arrow.Array{last.array(), list, listColumn(d.mem, numbers, lengths)}, nil
}

// Result is the aggregate over the set of each group.
func (d *Distinct) Result(groups []uint32) (arrow.Array, error) {
	if d.count {
		o := newOut[int64](d.mem, columnar.Int64, len(groups))
		for i, g := range groups {
			o.values[i] = d.n[g]
		}
		return o.array(), nil
	}
	inner, err := d.overload.New(d.mem, d.args)
	if err != nil {
		return nil, err
	}
	defer inner.Release()
	inner.Resize(len(groups))
	of, columns, ordinals, err := d.Pairs(groups)
	if err != nil {
		return nil, err
	}
	defer releaseAll(columns)
	args := make([]columnar.Datum, 0, len(columns)+1)
	for _, c := range columns {
		args = append(args, columnar.ColumnDatum(c))
	}
	if d.overload.Ordered {
		o := newOut[int64](d.mem, columnar.Int64, len(ordinals))
		copy(o.values, ordinals)
		numbers := o.array()
		defer numbers.Release()
		args = append(args, columnar.ColumnDatum(numbers))
	}
	if err := inner.Update(of, args); err != nil {
		return nil, err
	}
	all := make([]uint32, len(groups))
	for i := range all {
		all[i] = uint32(i)
	}
	return inner.Result(all)
}

var (
	_ Accumulator = (*Distinct)(nil)
	_ Ager        = (*Distinct)(nil)
)
