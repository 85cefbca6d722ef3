package function

import (
	"cmp"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

func collectListAggregate() *Aggregate {
	return &Aggregate{
		Name:    "collect_list",
		Aliases: []string{"array_agg"},
		Doc:     "The values that are not null as an array, in arrival order; an empty array if there are none.",
		Example: "SELECT collect_list(x) FROM (VALUES (2), (NULL), (1), (2)) AS t(x) = [2, 1, 2]",
		Overloads: []AggregateOverload{{
			Args:    []Matcher{valueArg},
			Result:  listOfFirst,
			Ordered: true,
			New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
				return newCollector(mem, args[0], asList)
			},
		}},
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
	return &Aggregate{
		Name:      "listagg",
		Aliases:   []string{"string_agg", "group_concat"},
		Doc:       "The texts that are not null joined in arrival order, with the second argument (a constant) between them; null if there are none.",
		Example:   "SELECT listagg(x, ', ') FROM (VALUES ('b'), (NULL), ('a')) AS t(x) = b, a",
		Overloads: []AggregateOverload{one, two},
	}
}

func medianAggregate() *Aggregate {
	return &Aggregate{
		Name:    "median",
		Doc:     "The middle value, or the mean of the two in the middle; nulls aside.",
		Example: "SELECT median(x) FROM (VALUES (1), (NULL), (10), (3)) AS t(x) = 3.0",
		Overloads: []AggregateOverload{{
			Args:   []Matcher{doubleArg},
			Result: resultType(columnar.Float64),
			New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
				return newCollector(mem, columnar.Float64, asPercentile)
			},
		}},
	}
}

func percentileAggregate() *Aggregate {
	return &Aggregate{
		Name:    "percentile",
		Aliases: []string{"percentile_cont", "quantile_cont"},
		Doc:     "The exact percentile of the values, the second argument (a constant from 0 to 1), with linear interpolation; nulls aside.",
		Example: "SELECT percentile(x, 0.25) FROM (VALUES (0), (10)) AS t(x) = 2.5",
		Overloads: []AggregateOverload{{
			Args:   []Matcher{doubleArg, doubleArg},
			Result: resultType(columnar.Float64),
			New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
				return newCollector(mem, columnar.Float64, asPercentile)
			},
		}},
	}
}

// discretePercentileAggregate gives a value that is there.
func discretePercentileAggregate() *Aggregate {
	return pickedAggregate("percentile_disc", "The least value that a share of the values, the second argument (a constant from 0 to 1), does not exceed; nulls aside.",
		"SELECT percentile_disc(x, 0.5) FROM (VALUES (1), (NULL), (10), (3), (4)) AS t(x) = 3.0", []Matcher{doubleArg, doubleArg}, func(v []float64, p float64) float64 {
			return v[max(0, int(math.Ceil(p*float64(len(v))))-1)]
		}, "quantile_disc")
}

func medianDeviationAggregate() *Aggregate {
	return pickedAggregate("mad", "The median of the distances of the values from their median; nulls aside.",
		"SELECT mad(x) FROM (VALUES (1), (NULL), (10), (3)) AS t(x) = 2.0", []Matcher{doubleArg}, func(v []float64, _ float64) float64 {
			middle := interpolated(v, 0.5)
			distances := make([]int64, len(v))
			for i, x := range v {
				distances[i] = floatWord(math.Abs(x - middle))
			}
			return quantileOf(distances, 0.5)
		})
}

func pickedAggregate(name, doc, example string, args []Matcher, pick func([]float64, float64) float64, aliases ...string) *Aggregate {
	return &Aggregate{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []AggregateOverload{{
		Args: args, Result: resultType(columnar.Float64),
		New: func(mem memory.Allocator, _ []arrow.DataType) (Accumulator, error) {
			a, err := newCollector(mem, columnar.Float64, asPercentile)
			if err == nil {
				a.(*collector).pick = pick
			}
			return a, err
		},
	}}}
}

func listOfFirst(args []arrow.DataType) (arrow.DataType, error) { return columnar.ListOf(args[0]), nil }

// How a collector's values become its result.
type collectForm uint8

const (
	asList collectForm = iota
	asText
	asPercentile
)

// collector keeps all values of every group, as chains of entries without pointers:
//
//	head, tail []uint32   per group: its first and last entry, noEntry if empty
//	next       []uint32   per entry: the one after it
//	ord        []int64    per entry: the ordinal of its row (not for percentiles)
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
	param  float64 // of percentiles
	// pick is the value of a group whose values are in ascending order; nil is linear
	// interpolation at param.
	pick    func(sorted []float64, param float64) float64
	between []byte // delimiter of texts
	known   bool   // param or between was seen

	entries, rows []uint32
	order         []entryOrder
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
	a := &collector{mem: mem, form: form, values: store, param: 0.5}
	values := stateField("values", columnar.ListOf(dt))
	switch form {
	case asPercentile:
		a.fields = []arrow.Field{values, stateField("percentile", columnar.Float64)}
	case asText:
		a.fields = []arrow.Field{ordinalField, values, stateField("ordinals", columnar.ListOf(columnar.Int64)), stateField("delimiter", columnar.String)}
	default:
		a.fields = []arrow.Field{ordinalField, values, stateField("ordinals", columnar.ListOf(columnar.Int64))}
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
	a.takeParameter(args)
	x := args[0]
	var ordinals []int64
	if a.form != asPercentile {
		ordinals = fixedOf[int64](args[len(args)-1].Array())
	}
	a.entries, a.rows = a.entries[:0], a.rows[:0]
	for i, g := range groups {
		row := i
		if x.IsConstant() {
			row = 0
		}
		if nullValue(x.Array(), row) {
			continue
		}
		o := int64(0)
		if ordinals != nil {
			o = ordinals[i]
		}
		a.entries = append(a.entries, a.link(g, o))
		a.rows = append(a.rows, uint32(row))
	}
	return a.store(x.Array())
}

// takeParameter reads the delimiter or the percentile from its first row.
func (a *collector) takeParameter(args []columnar.Datum) {
	at := 1
	if a.known || a.form == asText && len(args) < 3 || a.form == asPercentile && len(args) < 2 || a.form == asList {
		return
	}
	p := args[at].Array()
	if p.Len() == 0 || nullValue(p, 0) {
		return
	}
	a.known = true
	if a.form == asPercentile {
		a.param = p.(*array.Float64).Value(0)
		return
	}
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
		if a.form != asPercentile {
			a.ord = append(a.ord, 0)
		}
	}
	a.next[e] = noEntry
	if a.form != asPercentile {
		a.ord[e] = ordinal
	}
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
	lists, ordinals := 1, []int64(nil)
	if a.form == asPercentile {
		lists = 0
	} else {
		ordinals = fixedOf[int64](state[2].(*array.List).ListValues())
	}
	values := state[lists].(*array.List)
	a.entries, a.rows = a.entries[:0], a.rows[:0]
	for i, g := range groups {
		if values.IsNull(i) {
			continue
		}
		from, to := values.ValueOffsets(i)
		base := from
		if ordinals != nil {
			base, _ = state[2].(*array.List).ValueOffsets(i)
		}
		for j := from; j < to; j++ {
			o := int64(0)
			if ordinals != nil {
				o = ordinals[base+j-from]
			}
			a.entries = append(a.entries, a.link(g, o))
			a.rows = append(a.rows, uint32(j))
		}
	}
	a.mergeParameter(state[len(a.fields)-1])
	return a.store(values.ListValues())
}

func (a *collector) mergeParameter(p arrow.Array) {
	if a.known || a.form == asList {
		return
	}
	for i := range p.Len() {
		if p.IsNull(i) {
			continue
		}
		a.known = true
		if a.form == asPercentile {
			a.param = p.(*array.Float64).Value(i)
		} else {
			a.between = []byte(p.(*array.String).Value(i))
		}
		return
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
	if a.form == asPercentile {
		return
	}
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
		o := int64(0)
		if a.form != asPercentile {
			o = a.ord[e]
		}
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
	if a.form == asPercentile {
		p := newOut[float64](a.mem, columnar.Float64, len(groups))
		for i := range groups {
			if p.values[i] = a.param; !a.known {
				p.null(i)
			}
		}
		return []arrow.Array{list, p.array()}, nil
	}
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
	if a.form == asPercentile {
		return a.percentiles(groups), nil
	}
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
	s := textStore{mem: a.mem, dt: columnar.String}
	s.resize(len(lengths))
	groups := make([]uint32, len(lengths))
	var row []byte
	at := 0
	for i, n := range lengths {
		groups[i] = uint32(i)
		if n == 0 {
			continue
		}
		row = row[:0]
		for k, e := range entries[at : at+n] {
			if k > 0 {
				row = append(row, a.between...)
			}
			row = append(row, texts.get(e)...)
		}
		s.setText(uint32(i), row)
		at += n
	}
	return s.column(groups)
}

func (a *collector) percentiles(groups []uint32) arrow.Array {
	o := newOut[float64](a.mem, columnar.Float64, len(groups))
	stored := a.values.(*fixedStore[uint64]).values
	var w []int64 // in the order of the values; NaN is the greatest
	var v []float64
	for i, g := range groups {
		w = w[:0]
		for e := a.head[g]; e != noEntry; e = a.next[e] {
			w = append(w, floatWord(math.Float64frombits(stored[e])))
		}
		switch {
		case len(w) == 0 || a.param < 0 || a.param > 1 || a.param != a.param:
			o.null(i)
		case a.pick == nil:
			o.values[i] = quantileOf(w, a.param)
		default:
			slices.Sort(w)
			v = v[:0]
			for _, word := range w {
				v = append(v, wordFloat(word))
			}
			o.values[i] = a.pick(v, a.param)
		}
	}
	return o.array()
}

// interpolated is the value at a share p of the way through sorted values.
func interpolated(v []float64, p float64) float64 {
	at := p * float64(len(v)-1)
	low := int(at)
	if part := at - float64(low); part > 0 {
		return v[low] + (v[low+1]-v[low])*part
	}
	return v[low]
}

// quantileOf is interpolated of values that are not sorted, as order words. It moves
// them about.
func quantileOf(w []int64, p float64) float64 {
	at := p * float64(len(w)-1)
	low := int(at)
	least := wordFloat(nth(w, low))
	if part := at - float64(low); part > 0 {
		return least + (wordFloat(slices.Min(w[low+1:]))-least)*part
	}
	return least
}

// nth is the value that stands at place n in ascending order; then it does, and none
// behind it is smaller (Hoare's selection: no more is sorted than must be).
func nth(w []int64, n int) int64 {
	lo, hi := 0, len(w)-1
	for tries := 0; hi-lo > 32; tries++ {
		if tries == 64 {
			break // bad luck with the pivots
		}
		pivot := middleOf(w[lo], w[lo+(hi-lo)/2], w[hi])
		i, j := lo, hi
		for i <= j {
			for w[i] < pivot {
				i++
			}
			for w[j] > pivot {
				j--
			}
			if i <= j {
				w[i], w[j] = w[j], w[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return w[n]
		}
	}
	slices.Sort(w[lo : hi+1])
	return w[n]
}

func middleOf(a, b, c int64) int64 { return max(min(a, b), min(max(a, b), c)) }

var _ Ager = (*collector)(nil)
