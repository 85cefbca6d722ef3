package group

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// RowTable gives each key the rows that have it: the build side of a hash join. Rows
// are numbered from 0 in the order they are added. A key with a null matches nothing,
// unless its column was declared null-safe. Add everything, Build once, then probe
// (from one goroutine at a time; Probers share nothing but the table).
type RowTable struct {
	table    Table
	nullSafe []bool
	res      reservation
	ids      []uint32 // of each row; NotFound for rows that match nothing
	from     []uint32 // per id and one more: where its rows begin
	rows     []uint32 // all rows by id, ascending within an id
	unique   bool     // every key has one row
}

// NewRowTable makes a RowTable for keys of the given types. nullSafe marks the columns
// in which null matches null (IS NOT DISTINCT FROM); nil marks none.
func NewRowTable(mem memory.Allocator, types []arrow.DataType, nullSafe []bool, opts Options) (*RowTable, error) {
	if opts.Who == "" {
		opts.Who = "join"
	}
	t, err := New(mem, types, opts)
	if err != nil {
		return nil, err
	}
	if nullSafe == nil {
		nullSafe = make([]bool, len(types))
	}
	return &RowTable{table: t, nullSafe: nullSafe, res: reservation{budget: opts.Budget, who: opts.Who}}, nil
}

// Add appends n rows with the given keys.
func (t *RowTable) Add(keys []arrow.Array, n int) error {
	base := len(t.ids)
	if err := t.res.set(int64(base+n) * 12); err != nil { // ids, from (at most) and rows
		return err
	}
	t.ids = growTo(t.ids, base+n)[:base+n]
	ids := t.ids[base:]
	if err := t.table.Intern(keys, ids); err != nil {
		t.ids = t.ids[:base]
		return err
	}
	t.dropNulls(keys, ids)
	return nil
}

// dropNulls makes the ids of rows that cannot match NotFound.
func (t *RowTable) dropNulls(keys []arrow.Array, ids []uint32) {
	for c, a := range keys {
		d := dictionaryOf(a)
		none := a.NullN() == 0 && a.DataType().ID() != arrow.NULL && (d == nil || d.Dictionary().NullN() == 0)
		if t.nullSafe[c] || none {
			continue
		}
		for i := range ids {
			if nullAt(a, d, i) {
				ids[i] = NotFound
			}
		}
	}
}

func nullAt(a arrow.Array, d *array.Dictionary, i int) bool {
	return a.IsNull(i) || a.DataType().ID() == arrow.NULL || d != nil && d.Dictionary().IsNull(d.GetValueIndex(i))
}

// Exclude lets a row that was added match nothing. It is called before Build.
func (t *RowTable) Exclude(row int) { t.ids[row] = NotFound }

// Build groups the rows by key. Nothing may be added afterwards.
func (t *RowTable) Build() {
	if p, ok := t.table.(*packedKey); ok {
		p.settle()
	}
	n := t.table.Len()
	t.from = make([]uint32, n+1)
	for _, id := range t.ids {
		if id != NotFound {
			t.from[id+1]++
		}
	}
	t.unique = true
	for i := range n {
		t.unique = t.unique && t.from[i+1] <= 1
		t.from[i+1] += t.from[i]
	}
	t.rows = make([]uint32, t.from[n])
	next := append([]uint32(nil), t.from[:n]...)
	for row, id := range t.ids {
		if id != NotFound {
			t.rows[next[id]] = uint32(row)
			next[id]++
		}
	}
}

// SortRows orders the rows of each key by cmp, for which no two are equal; without it they
// ascend. It is called after Build.
func (t *RowTable) SortRows(cmp func(a, b uint32) int) {
	for id := range t.table.Len() {
		if rows := t.rows[t.from[id]:t.from[id+1]]; !slices.IsSortedFunc(rows, cmp) {
			slices.SortFunc(rows, cmp)
		}
	}
}

// Rows are the numbers of all rows that can match, those of one key together, in the
// order of SortRows. They are borrowed.
func (t *RowTable) Rows() []uint32 { return t.rows }

// Len is the number of rows added.
func (t *RowTable) Len() int { return len(t.ids) }

// Unique says whether no two rows have the same key.
func (t *RowTable) Unique() bool { return t.unique }

// Bytes is the memory held.
func (t *RowTable) Bytes() int64 {
	return t.table.Bytes() + int64(cap(t.ids)+cap(t.from)+cap(t.rows))*4
}

// Release gives everything back; it may be called twice.
func (t *RowTable) Release() {
	t.table.Release()
	t.ids, t.from, t.rows = nil, nil, nil
	t.res.release()
}

// Match looks the keys up: counts[i] is the number of rows that row i matches. It is
// what semi and anti joins need.
func (t *RowTable) Match(keys []arrow.Array, counts []uint32) error {
	if err := t.table.Find(keys, counts); err != nil {
		return err
	}
	t.dropNulls(keys, counts)
	for i, id := range counts {
		if id == NotFound {
			counts[i] = 0
		} else {
			counts[i] = t.from[id+1] - t.from[id]
		}
	}
	return nil
}

// Prober enumerates the pairs of one batch of probe keys, some at a time. Its zero
// value is ready; it is used again for every batch.
type Prober struct {
	t    *RowTable
	ids  []uint32
	row  int    // probe row to go on with
	done uint32 // pairs of it already given
}

// Start looks up a batch of n probe rows.
func (p *Prober) Start(t *RowTable, keys []arrow.Array, n int) error {
	p.t, p.row, p.done = t, 0, 0
	p.ids = resized(p.ids, n)
	if err := t.table.Find(keys, p.ids); err != nil {
		return err
	}
	t.dropNulls(keys, p.ids)
	return nil
}

// Matched says whether probe row i has any pair.
func (p *Prober) Matched(i int) bool {
	id := p.ids[i]
	return id != NotFound && p.t.from[id+1] > p.t.from[id]
}

// Range is where in Rows the rows are that probe row i matches.
func (p *Prober) Range(i int) (from, to int) {
	id := p.ids[i]
	if id == NotFound {
		return 0, 0
	}
	return int(p.t.from[id]), int(p.t.from[id+1])
}

// Next fills probe and build, of equal length, with pairs of row numbers and returns
// how many there are: probe rows ascend, and so do the build rows of each. 0 means
// the batch is done.
func (p *Prober) Next(probe, build []uint32) int {
	if p.t.unique && p.done == 0 {
		return p.nextUnique(probe, build)
	}
	return p.next(probe, build, false)
}

// NextOuter is Next that gives a probe row without a pair, too, in its place: with
// NotFound for the build row.
func (p *Prober) NextOuter(probe, build []uint32) int { return p.next(probe, build, true) }

func (p *Prober) next(probe, build []uint32, outer bool) int {
	n := 0
	from, rows := p.t.from, p.t.rows
	for ; p.row < len(p.ids) && n < len(probe); p.row++ {
		id := p.ids[p.row]
		if id == NotFound || from[id] == from[id+1] {
			if outer {
				probe[n], build[n] = uint32(p.row), NotFound
				n++
			}
			continue
		}
		of := rows[from[id]+p.done : from[id+1]]
		k := min(len(of), len(probe)-n)
		for i, r := range of[:k] {
			probe[n+i], build[n+i] = uint32(p.row), r
		}
		n += k
		if k < len(of) {
			p.done += uint32(k)
			break
		}
		p.done = 0
	}
	return n
}

// nextUnique writes every row and moves on only where it matched.
func (p *Prober) nextUnique(probe, build []uint32) int {
	n := 0
	from, rows := p.t.from, p.t.rows
	for ; p.row < len(p.ids) && n < len(probe); p.row++ {
		id := p.ids[p.row]
		if id == NotFound || from[id] == from[id+1] {
			continue
		}
		probe[n], build[n] = uint32(p.row), rows[from[id]]
		n++
	}
	return n
}
