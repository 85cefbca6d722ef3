package tidemill

import (
	"fmt"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar/gotype"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical"
)

// loadRows is how many stored rows of lists and maps are decoded at a time.
const loadRows = 16384

// stored is what the keys of a chunk have in a table. It is looked up once a chunk, when
// a variable is first used.
type stored struct {
	run   *groupCore
	name  string
	store logical.GroupStore
	from  []uint32 // nil: not looked up
	rows  []logical.GroupRow
}

func (s *stored) begin() { s.from, s.rows = nil, nil }

// current is the slot of the key the function is called for; ok is false, and the query
// will fail, outside of a call.
func (s *stored) current() (slot int, ok bool) {
	if s.run == nil || s.run.slot == noKey {
		if s.run != nil {
			_ = s.run.fail(fmt.Errorf("state variable %s was used outside of a call", s.name))
		}
		return 0, false
	}
	return s.run.slot, s.run.err == nil
}

// find looks the keys of the chunk up.
func (s *stored) find() bool {
	if s.from != nil {
		return true
	}
	var err error
	if s.from, s.rows, err = s.store.Find(s.run.keys, s.run.n); err != nil {
		_ = s.run.fail(err)
		return false
	}
	return true
}

// of is the stored rows of a slot.
func (s *stored) of(slot int) []logical.GroupRow { return s.rows[s.from[slot]:s.from[slot+1]] }

// upTo is the slot after slot up to which rows are decoded together.
func (s *stored) upTo(slot int) int {
	end := slot + 1
	for end < s.run.n && s.from[end+1]-s.from[slot] <= loadRows {
		end++
	}
	return end
}

// keysAt are the keys of slots, which may repeat.
func (s *stored) keysAt(slots []int32) ([]arrow.Array, error) {
	out := make([]arrow.Array, 0, len(s.run.keys))
	for _, k := range s.run.keys {
		a, err := kernel.Take(s.run.env.Mem, k, slots)
		if err != nil {
			releaseArrays(out)
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// write sets and appends encoded rows and deletes others.
func (s *stored) write(set []logical.GroupRow, setValues []arrow.Array, added []int32, addedValues []arrow.Array, gone []logical.GroupRow) error {
	defer releaseArrays(setValues)
	defer releaseArrays(addedValues)
	if err := s.store.Delete(gone); err != nil {
		return err
	}
	if err := s.store.Set(set, setValues); err != nil {
		return err
	}
	keys, err := s.keysAt(added)
	if err != nil {
		return err
	}
	defer releaseArrays(keys)
	return s.store.Append(keys, addedValues, len(added))
}

func releaseArrays(list []arrow.Array) {
	for _, a := range list {
		a.Release()
	}
}

// ValueState is a state variable with at most one value a key. NewValueState makes it;
// its methods are for the key that is being called.
type ValueState[T any] struct {
	stored
	codec *gotype.Rows[T]
	cells []valueCell[T] // by slot; nil: not loaded
	dirty []int          // slots with changes
}

type valueCell[T any] struct {
	value           T
	exists, changed bool
}

func (v *ValueState[T]) begin() {
	v.stored.begin()
	v.cells, v.dirty = nil, v.dirty[:0]
}

// cell is that of the current key, nil after a mistake.
func (v *ValueState[T]) cell() *valueCell[T] {
	slot, ok := v.current()
	if !ok || v.cells == nil && !v.load() {
		return nil
	}
	return &v.cells[slot]
}

// load reads the values of the whole chunk.
func (v *ValueState[T]) load() bool {
	if !v.find() {
		return false
	}
	columns, err := v.store.Get(v.rows)
	if err != nil {
		_ = v.run.fail(err)
		return false
	}
	defer releaseArrays(columns)
	values := make([]T, len(v.rows))
	if err := v.codec.Decode(columns, 0, values); err != nil {
		_ = v.run.fail(fmt.Errorf("state variable %s: %w", v.name, err))
		return false
	}
	v.cells = make([]valueCell[T], v.run.n)
	for slot := range v.cells {
		if from := v.from[slot]; from < v.from[slot+1] {
			v.cells[slot] = valueCell[T]{value: values[from], exists: true}
		}
	}
	return true
}

// Get is the value; ok is false if there is none. To change it, Set it.
func (v *ValueState[T]) Get() (value T, ok bool) {
	if c := v.cell(); c != nil {
		return c.value, c.exists
	}
	return value, false
}

// Exists says whether there is a value.
func (v *ValueState[T]) Exists() bool {
	c := v.cell()
	return c != nil && c.exists
}

// Set replaces the value.
func (v *ValueState[T]) Set(value T) { v.change(value, true) }

// Clear removes the value.
func (v *ValueState[T]) Clear() {
	var zero T
	v.change(zero, false)
}

func (v *ValueState[T]) change(value T, exists bool) {
	c := v.cell()
	if c == nil {
		return
	}
	if !c.changed {
		v.dirty = append(v.dirty, v.run.slot)
	}
	*c = valueCell[T]{value, exists, true}
}

func (v *ValueState[T]) flush() error {
	var set, gone []logical.GroupRow
	var added []int32
	var setValues, addedValues []T
	slices.Sort(v.dirty)
	for _, slot := range v.dirty {
		c := &v.cells[slot]
		rows := v.of(slot)
		switch {
		case c.exists && len(rows) > 0:
			set, setValues = append(set, rows[0]), append(setValues, c.value)
		case c.exists:
			added, addedValues = append(added, int32(slot)), append(addedValues, c.value)
		case len(rows) > 0:
			gone = append(gone, rows[0])
		}
	}
	if len(v.dirty) == 0 {
		return nil
	}
	return flushRows(&v.stored, v.codec, set, setValues, added, addedValues, gone)
}

// flushRows encodes and writes rows.
func flushRows[T any](s *stored, codec *gotype.Rows[T], set []logical.GroupRow, setValues []T, added []int32, addedValues []T, gone []logical.GroupRow) error {
	changed, err := codec.Encode(s.run.env.Mem, setValues)
	if err != nil {
		return fmt.Errorf("state variable %s: %w", s.name, err)
	}
	fresh, err := codec.Encode(s.run.env.Mem, addedValues)
	if err != nil {
		releaseArrays(changed)
		return fmt.Errorf("state variable %s: %w", s.name, err)
	}
	return s.write(set, changed, added, fresh, gone)
}

// ListState is a state variable with a list of values a key. NewListState makes it; its
// methods are for the key that is being called. A batch writes only what it adds.
type ListState[T any] struct {
	stored
	codec *gotype.Rows[T]
	cells []listCell[T]
	dirty []int
}

type listCell[T any] struct {
	items    []T // of the table, if loaded
	added    []T
	loaded   bool
	replaced bool // what the table has is gone
	changed  bool
}

func (l *ListState[T]) begin() {
	l.stored.begin()
	l.cells, l.dirty = nil, l.dirty[:0]
}

func (l *ListState[T]) cell() *listCell[T] {
	slot, ok := l.current()
	if !ok {
		return nil
	}
	if l.cells == nil {
		l.cells = make([]listCell[T], l.run.n)
	}
	return &l.cells[slot]
}

// load reads the items of a slot and of some after it.
func (l *ListState[T]) load(slot int) bool {
	if l.cells[slot].loaded {
		return true
	}
	if !l.find() {
		return false
	}
	end := l.upTo(slot)
	rows := l.rows[l.from[slot]:l.from[end]]
	columns, err := l.store.Get(rows)
	if err != nil {
		_ = l.run.fail(err)
		return false
	}
	defer releaseArrays(columns)
	items := make([]T, len(rows))
	if err := l.codec.Decode(columns, 0, items); err != nil {
		_ = l.run.fail(fmt.Errorf("state variable %s: %w", l.name, err))
		return false
	}
	for i := slot; i < end; i++ {
		from, to := l.from[i]-l.from[slot], l.from[i+1]-l.from[slot]
		l.cells[i].items, l.cells[i].loaded = items[from:to:to], true
	}
	return true
}

// Get is the list, in the order in which values were added; nil if it is empty. To
// change it, Set or Append.
func (l *ListState[T]) Get() []T {
	c := l.cell()
	if c == nil {
		return nil
	}
	if c.replaced {
		return slices.Clone(c.added)
	}
	if !l.load(l.run.slot) {
		return nil
	}
	return append(slices.Clone(c.items), c.added...)
}

// Len is the number of values; it does not read them.
func (l *ListState[T]) Len() int {
	c := l.cell()
	switch {
	case c == nil:
		return 0
	case c.replaced:
		return len(c.added)
	case !l.find():
		return 0
	}
	return len(l.of(l.run.slot)) + len(c.added)
}

// Exists says whether the list has values.
func (l *ListState[T]) Exists() bool { return l.Len() > 0 }

// Append adds values; it does not read the list.
func (l *ListState[T]) Append(values ...T) {
	if c := l.change(); c != nil {
		c.added = append(c.added, values...)
	}
}

// Set replaces the list.
func (l *ListState[T]) Set(values []T) {
	if c := l.change(); c != nil {
		c.added, c.replaced = slices.Clone(values), true
	}
}

// Clear empties the list.
func (l *ListState[T]) Clear() { l.Set(nil) }

func (l *ListState[T]) change() *listCell[T] {
	c := l.cell()
	if c != nil && !c.changed {
		c.changed = true
		l.dirty = append(l.dirty, l.run.slot)
	}
	return c
}

func (l *ListState[T]) flush() error {
	if len(l.dirty) == 0 {
		return nil
	}
	var gone []logical.GroupRow
	var added []int32
	var values []T
	slices.Sort(l.dirty)
	for _, slot := range l.dirty {
		c := &l.cells[slot]
		if c.replaced {
			if !l.find() {
				return l.run.err
			}
			gone = append(gone, l.of(slot)...)
		}
		for range c.added {
			added = append(added, int32(slot))
		}
		values = append(values, c.added...)
	}
	return flushRows(&l.stored, l.codec, nil, nil, added, values, gone)
}

// MapState is a state variable with a map a key. NewMapState makes it; its methods are
// for the key that is being called. A batch writes only the entries it changes.
type MapState[K comparable, V any] struct {
	stored
	keyCodec *gotype.Rows[K]
	codec    *gotype.Rows[V]
	cells    []mapCell[K, V]
	dirty    []int
}

type mapCell[K comparable, V any] struct {
	entries []mapEntry[K, V] // in the order in which they were put
	at      map[K]int        // those that live
	gone    []logical.GroupRow
	loaded  bool
	changed bool
}

type mapEntry[K comparable, V any] struct {
	key           K
	value         V
	row           logical.GroupRow
	stored        bool
	changed, dead bool
}

func (m *MapState[K, V]) begin() {
	m.stored.begin()
	m.cells, m.dirty = nil, m.dirty[:0]
}

// cell is that of the current key, loaded.
func (m *MapState[K, V]) cell() *mapCell[K, V] {
	slot, ok := m.current()
	if !ok {
		return nil
	}
	if m.cells == nil {
		m.cells = make([]mapCell[K, V], m.run.n)
	}
	if c := &m.cells[slot]; c.loaded || m.load(slot) {
		return c
	}
	return nil
}

// load reads the entries of a slot and of some after it.
func (m *MapState[K, V]) load(slot int) bool {
	if !m.find() {
		return false
	}
	end := m.upTo(slot)
	rows := m.rows[m.from[slot]:m.from[end]]
	columns, err := m.store.Get(rows)
	if err != nil {
		_ = m.run.fail(err)
		return false
	}
	defer releaseArrays(columns)
	keys, values := make([]K, len(rows)), make([]V, len(rows))
	split := len(m.keyCodec.Fields())
	if err = m.keyCodec.Decode(columns[:split], 0, keys); err == nil {
		err = m.codec.Decode(columns[split:], 0, values)
	}
	if err != nil {
		_ = m.run.fail(fmt.Errorf("state variable %s: %w", m.name, err))
		return false
	}
	for i := slot; i < end; i++ {
		if m.cells[i].loaded {
			continue
		}
		c := mapCell[K, V]{loaded: true}
		for k := m.from[i] - m.from[slot]; k < m.from[i+1]-m.from[slot]; k++ {
			c.add(mapEntry[K, V]{key: keys[k], value: values[k], row: rows[k], stored: true})
		}
		m.cells[i] = c
	}
	return true
}

func (c *mapCell[K, V]) add(e mapEntry[K, V]) {
	if c.at == nil {
		c.at = map[K]int{}
	}
	c.at[e.key] = len(c.entries)
	c.entries = append(c.entries, e)
}

// Get is the value of an entry; ok is false if there is none.
func (m *MapState[K, V]) Get(key K) (value V, ok bool) {
	c := m.cell()
	if c == nil {
		return value, false
	}
	i, ok := c.at[key]
	if !ok {
		return value, false
	}
	return c.entries[i].value, true
}

// Len is the number of entries.
func (m *MapState[K, V]) Len() int {
	if c := m.cell(); c != nil {
		return len(c.at)
	}
	return 0
}

// Exists says whether there are entries.
func (m *MapState[K, V]) Exists() bool { return m.Len() > 0 }

// All ranges over the entries, in the order in which they were put first. Entries may be
// put and removed meanwhile; those put are not seen.
func (m *MapState[K, V]) All() func(yield func(K, V) bool) {
	return func(yield func(K, V) bool) {
		c := m.cell()
		if c == nil {
			return
		}
		for i, n := 0, len(c.entries); i < n; i++ {
			e := c.entries[i]
			if !e.dead && !yield(e.key, e.value) {
				return
			}
		}
	}
}

// Put makes or replaces an entry.
func (m *MapState[K, V]) Put(key K, value V) {
	c := m.change()
	if c == nil {
		return
	}
	if i, ok := c.at[key]; ok {
		c.entries[i].value, c.entries[i].changed = value, true
		return
	}
	c.add(mapEntry[K, V]{key: key, value: value, changed: true})
}

// Remove removes an entry, if it is there.
func (m *MapState[K, V]) Remove(key K) {
	c := m.change()
	if c == nil {
		return
	}
	if i, ok := c.at[key]; ok {
		c.kill(i)
	}
}

// Clear removes all entries.
func (m *MapState[K, V]) Clear() {
	c := m.cell()
	if c == nil || len(c.at) == 0 {
		return
	}
	c = m.change()
	for i := range c.entries {
		if !c.entries[i].dead {
			c.kill(i)
		}
	}
}

// kill takes entry i out; its place stays, so that ranges over entries go on.
func (c *mapCell[K, V]) kill(i int) {
	e := &c.entries[i]
	if e.stored {
		c.gone = append(c.gone, e.row)
	}
	delete(c.at, e.key)
	e.dead = true
}

func (m *MapState[K, V]) change() *mapCell[K, V] {
	c := m.cell()
	if c != nil && !c.changed {
		c.changed = true
		m.dirty = append(m.dirty, m.run.slot)
	}
	return c
}

func (m *MapState[K, V]) flush() error {
	if len(m.dirty) == 0 {
		return nil
	}
	var set, gone []logical.GroupRow
	var added []int32
	var setKeys, addedKeys []K
	var setValues, addedValues []V
	slices.Sort(m.dirty)
	for _, slot := range m.dirty {
		c := &m.cells[slot]
		gone = append(gone, c.gone...)
		for _, e := range c.entries {
			switch {
			case e.dead || !e.changed:
			case e.stored:
				set, setKeys, setValues = append(set, e.row), append(setKeys, e.key), append(setValues, e.value)
			default:
				added, addedKeys, addedValues = append(added, int32(slot)), append(addedKeys, e.key), append(addedValues, e.value)
			}
		}
	}
	changed, err := m.encode(setKeys, setValues)
	if err != nil {
		return err
	}
	fresh, err := m.encode(addedKeys, addedValues)
	if err != nil {
		releaseArrays(changed)
		return err
	}
	return m.write(set, changed, added, fresh, gone)
}

func (m *MapState[K, V]) encode(keys []K, values []V) ([]arrow.Array, error) {
	out, err := m.keyCodec.Encode(m.run.env.Mem, keys)
	if err == nil {
		var more []arrow.Array
		if more, err = m.codec.Encode(m.run.env.Mem, values); err == nil {
			return append(out, more...), nil
		}
		releaseArrays(out)
	}
	return nil, fmt.Errorf("state variable %s: %w", m.name, err)
}

// newTimers is the set of a key's timers.
func newTimers(run *groupCore) *MapState[time.Time, struct{}] {
	keys, err := gotype.For[time.Time]()
	if err != nil {
		panic("bug: " + err.Error())
	}
	none, err := gotype.For[struct{}]()
	if err != nil {
		panic("bug: " + err.Error())
	}
	m := &MapState[time.Time, struct{}]{keyCodec: keys, codec: none}
	m.stored = stored{run: run, name: "timers", store: run.env.Timers}
	run.variables = append(run.variables, m)
	return m
}

// microsecond is t as it is stored.
func microsecond(t time.Time) time.Time { return time.UnixMicro(t.UnixMicro()).UTC() }
