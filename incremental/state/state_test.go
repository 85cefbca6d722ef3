package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/internal/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// aggregate is a column of an accumulator over arguments of the given types.
func aggregate(t testing.TB, name string, args ...arrow.DataType) AggregateColumn {
	t.Helper()
	f, ok := function.Builtins().Aggregate(name)
	if !ok {
		t.Fatalf("no aggregate %s", name)
	}
	sig, err := f.Resolve(args)
	if err != nil {
		t.Fatal(err)
	}
	return AggregateColumn{Name: name, New: func(mem memory.Allocator) (function.Accumulator, error) {
		return sig.Overload.New(mem, sig.Args)
	}}
}

// modelSpec has the kinds of tables there are: groups evicted by a key column, rows of
// a key evicted by a value, and keys never evicted.
func modelSpec(t testing.TB) Spec {
	return Spec{Operator: "agg(window_end)", Tables: []TableSchema{
		{
			Name:   "groups",
			Key:    []arrow.Field{columnar.Field("window_end", columnar.Timestamp), columnar.Field("channel", columnar.String)},
			Values: []arrow.Field{columnar.Field("note", columnar.String), columnar.Field("small", columnar.Int8)},
			Aggregates: []AggregateColumn{
				aggregate(t, "count"), aggregate(t, "max", columnar.Int64), aggregate(t, "first", columnar.String),
			},
			Order: Order{By: ByKeyColumn},
		},
		{
			Name:     "rows",
			Key:      []arrow.Field{columnar.Field("id", columnar.Int32)},
			Values:   []arrow.Field{columnar.Field("list", columnar.ListOf(columnar.Int64)), columnar.Field("until", columnar.Int64)},
			MultiRow: true,
			Order:    Order{By: ByValueColumn, Column: 1},
		},
		{
			Name:   "seen",
			Key:    []arrow.Field{columnar.Field("d", columnar.Float64), columnar.Field("s", columnar.Binary)},
			Values: []arrow.Field{columnar.Field("n", columnar.Decimal(20, 2))},
		},
	}}
}

// model is the same state in Go maps.
type model struct {
	groups map[string]groupModel
	rows   map[int64][]rowModel // by id; -1 is null
	seen   map[string]string    // key → decimal text, "" is null
}

type groupModel struct {
	end   int64 // neverEvicted is null
	note  string
	small string
	count int64
	max   string
	first string
}

type rowModel struct {
	list  string
	until int64 // neverEvicted is null
}

func newModel() *model {
	return &model{groups: map[string]groupModel{}, rows: map[int64][]rowModel{}, seen: map[string]string{}}
}

func (m *model) clone() *model {
	c := &model{groups: maps.Clone(m.groups), rows: map[int64][]rowModel{}, seen: maps.Clone(m.seen)}
	for k, v := range m.rows {
		c.rows[k] = slices.Clone(v)
	}
	return c
}

// text of value i, "NULL" for null.
func text(a arrow.Array, i int) string {
	return string(columnar.AppendCanonical(nil, a, i, nil))
}

func keyText(keys []arrow.Array, i int) string {
	s := ""
	for _, k := range keys {
		s += text(k, i) + "|"
	}
	return s
}

// harness runs random batches on a Provider and on a model.
type harness struct {
	t        *testing.T
	rnd      *rand.Rand
	mem      memory.Allocator
	fs       vfs.FS
	dir      *checkpoint.Dir
	spec     Spec
	provider *Provider
	store    *Store
	now      *model
	versions []version // versions[v]
	clock    int64
	ordinal  int64
}

type version struct {
	files checkpoint.OperatorState
	model *model
	clock int64
}

func newHarness(t *testing.T, seed uint64, fsys vfs.FS) *harness {
	h := &harness{t: t, rnd: rand.New(rand.NewPCG(seed, 5)), mem: columnartest.Mem(t), fs: fsys, spec: modelSpec(t)}
	var err error
	if h.dir, err = checkpoint.Open(h.fs, "ckpt", checkpoint.Options{}); err != nil {
		t.Fatal(err)
	}
	h.versions = []version{{model: newModel()}}
	h.newProvider()
	t.Cleanup(func() { h.close() })
	return h
}

// close ends everything; errors are those of an injected fault, or tested elsewhere.
func (h *harness) close() {
	_ = h.provider.Close()
	_ = h.dir.Close()
}

var policies = []checkpoint.SnapshotPolicy{{}, {Always: true}, {Changes: true}}

func (h *harness) newProvider() {
	if h.provider != nil {
		if err := h.provider.Close(); err != nil {
			h.t.Fatal(err)
		}
	}
	budget := columnar.NewBudget(0)
	h.provider = NewProvider(h.dir, Options{
		Mem: h.mem, Shards: []int{1, 2, 3, 4}[h.rnd.IntN(4)], Budget: budget, Inline: h.rnd.IntN(2) == 0,
		Snapshots: policies[h.rnd.IntN(len(policies))],
	})
}

func (h *harness) open(v int64) {
	h.t.Helper()
	var err error
	if h.store, err = h.provider.Open(context.Background(), h.spec, h.versions[v].files); err != nil {
		h.t.Fatal(err)
	}
	h.now, h.clock = h.versions[v].model.clone(), h.versions[v].clock
	h.versions = h.versions[:v+1]
	h.check()
}

func (h *harness) commit() {
	h.t.Helper()
	files, err := h.store.Commit(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	h.versions = append(h.versions, version{files, h.now.clone(), h.clock})
	if files.Version != int64(len(h.versions)-1) {
		h.t.Fatalf("version %d, not %d", files.Version, len(h.versions)-1)
	}
	h.provider.Committed(files.Version)
	if err := h.provider.Maintain(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	h.check()
}

// split gives each shard of a table its positions of keys.
func split(t *Table, keys []arrow.Array, n int) [][]int32 {
	of := make([]int32, n)
	t.Partition(keys, of)
	out := make([][]int32, len(t.Shards()))
	for i, s := range of {
		out[s] = append(out[s], int32(i))
	}
	return out
}

// column makes a column from texts: "NULL" is null.
func (h *harness) column(typ string, values []string) arrow.Array {
	return columnartest.Column(h.t, h.mem, typ, values...)
}

func (h *harness) take(a arrow.Array, at []int32) arrow.Array {
	dt := a.DataType()
	if d, ok := dt.(*arrow.DictionaryType); ok {
		dt = d.ValueType
	}
	b := columnar.NewBuilder(h.mem, dt)
	defer b.Release()
	for _, i := range at {
		if err := b.AppendFrom(a, int(i)); err != nil {
			h.t.Fatal(err)
		}
	}
	out := b.NewArray()
	h.t.Cleanup(out.Release)
	return out
}

var channels = []string{"NULL", `""`, "web", "application", "a channel of more than twelve bytes", "another long one, for the arena"}

// updateGroups is a batch of the aggregate.
func (h *harness) updateGroups() {
	n := 1 + h.rnd.IntN(60)
	ends, names, notes, values := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i := range n {
		ends[i] = stamp(h.clock + int64(h.rnd.IntN(8)))
		if h.rnd.IntN(20) == 0 {
			ends[i] = "NULL"
		}
		names[i] = channels[h.rnd.IntN(len(channels))]
		notes[i] = names[h.rnd.IntN(i+1)]
		values[i] = fmt.Sprint(h.rnd.IntN(1000) - 500)
	}
	keys := []arrow.Array{h.column("timestamp", ends), h.column("varchar", names)}
	note, value := h.column("varchar", notes), h.column("bigint", values)
	tab := h.store.Table("groups")
	for s, at := range split(tab, keys, n) {
		if len(at) > 0 {
			h.updateGroupShard(tab.Shards()[s], []arrow.Array{h.take(keys[0], at), h.take(keys[1], at)}, h.take(note, at), h.take(value, at))
		}
	}
}

func stamp(minutes int64) string {
	return string(columnar.AppendTimestamp(nil, minutes*60e6, nil))
}

func (h *harness) updateGroupShard(s *Shard, keys []arrow.Array, note, value arrow.Array) {
	n := note.Len()
	rows := make([]uint32, n)
	created, err := s.Intern(keys, rows)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, i := range created {
		k := keyText(keys, int(i))
		if _, ok := h.now.groups[k]; ok {
			h.t.Fatalf("%s was created, and is there", k)
		}
		end := int64(neverEvicted)
		if keys[0].IsValid(int(i)) {
			end = int64(keys[0].(*array.Timestamp).Value(int(i)))
		}
		h.now.groups[k] = groupModel{end: end, note: "NULL", small: "NULL", max: "NULL", first: "NULL"}
	}
	ordinals := make([]string, n)
	for i := range ordinals {
		ordinals[i] = fmt.Sprint(h.ordinal)
		h.ordinal++
	}
	args := [][]columnar.Datum{nil, {columnar.ColumnDatum(value)}, {columnar.ColumnDatum(note), columnar.ColumnDatum(h.column("bigint", ordinals))}}
	for i, a := range s.Accumulators() {
		if err := a.Update(rows, args[i]); err != nil {
			h.t.Fatal(err)
		}
	}
	s.Touch(rows)
	seen := map[string]bool{}
	var setRows []uint32
	var setAt []int32
	for i := range n {
		k := keyText(keys, i)
		g := h.now.groups[k]
		if g.count == 0 {
			g.first = text(note, i)
		}
		g.count++
		v := value.(*array.Int64).Value(i)
		if g.max == "NULL" || cmp.Compare(v, parseInt(g.max)) > 0 {
			g.max = fmt.Sprint(v)
		}
		if !seen[k] && h.rnd.IntN(3) == 0 {
			setRows, setAt = append(setRows, rows[i]), append(setAt, int32(i))
			g.note, g.small = text(note, i), fmt.Sprint(int8(v))
		}
		seen[k] = true
		h.now.groups[k] = g
	}
	if len(setRows) > 0 {
		if err := s.Set(setRows, 2, h.take(note, setAt)); err != nil {
			h.t.Fatal(err)
		}
		small := make([]string, len(setAt))
		for i, at := range setAt {
			small[i] = fmt.Sprint(int8(value.(*array.Int64).Value(int(at))))
		}
		if err := s.Set(setRows, 3, h.column("tinyint", small)); err != nil {
			h.t.Fatal(err)
		}
	}
}

func parseInt(s string) (v int64) { fmt.Sscan(s, &v); return v }

// deleteSome removes random groups and rows.
func (h *harness) deleteSome() {
	for _, name := range []string{"groups", "rows"} {
		for _, s := range h.store.Table(name).Shards() {
			var rows []uint32
			for all := range s.All() {
				for _, r := range all {
					if h.rnd.IntN(6) == 0 {
						rows = append(rows, r)
					}
				}
			}
			if len(rows) == 0 {
				continue
			}
			got := h.get(s, rows)
			for i := range rows {
				if name == "groups" {
					delete(h.now.groups, keyText(got[:2], i))
				} else {
					h.dropRow(got, i)
				}
			}
			if err := s.Delete(rows); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

func (h *harness) get(s *Shard, rows []uint32, columns ...int) []arrow.Array {
	h.t.Helper()
	out, err := s.Get(rows, columns...)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, a := range out {
		h.t.Cleanup(a.Release)
	}
	return out
}

func rowOf(got []arrow.Array, i int) (int64, rowModel) {
	id, until := int64(-1), int64(neverEvicted)
	if got[0].IsValid(i) {
		id = int64(got[0].(*array.Int32).Value(i))
	}
	if got[2].IsValid(i) {
		until = got[2].(*array.Int64).Value(i)
	}
	return id, rowModel{list: text(got[1], i), until: until}
}

// dropRow takes the first equal row out of the model.
func (h *harness) dropRow(got []arrow.Array, i int) {
	h.t.Helper()
	id, r := rowOf(got, i)
	at := slices.Index(h.now.rows[id], r)
	if at < 0 {
		h.t.Fatalf("row %v of %d is not in the model", r, id)
	}
	h.now.rows[id] = slices.Delete(slices.Clone(h.now.rows[id]), at, at+1)
	if len(h.now.rows[id]) == 0 {
		delete(h.now.rows, id)
	}
}

// appendRows is a batch of the multi-row table; some rows are moved afterwards.
func (h *harness) appendRows() {
	n := 1 + h.rnd.IntN(40)
	ids, lists, until := make([]string, n), make([]string, n), make([]string, n)
	for i := range n {
		ids[i] = fmt.Sprint(h.rnd.IntN(9))
		if h.rnd.IntN(9) == 0 {
			ids[i] = "NULL"
		}
		h.ordinal++
		lists[i] = fmt.Sprintf("[%d,null]", h.ordinal)
		until[i] = fmt.Sprint(h.clock + int64(h.rnd.IntN(10)))
		if h.rnd.IntN(15) == 0 {
			until[i] = "NULL"
		}
	}
	id, list, end := h.column("integer", ids), h.column("array<bigint>", lists), h.column("bigint", until)
	tab := h.store.Table("rows")
	for k, at := range split(tab, []arrow.Array{id}, n) {
		if len(at) == 0 {
			continue
		}
		s := tab.Shards()[k]
		rows := make([]uint32, len(at))
		part := []arrow.Array{h.take(id, at), h.take(list, at), h.take(end, at)}
		if err := s.Append(part[:1], part[1:], rows); err != nil {
			h.t.Fatal(err)
		}
		for i := range rows {
			id, r := rowOf(part, i)
			h.now.rows[id] = append(slices.Clone(h.now.rows[id]), r)
		}
		h.moveSome(s)
	}
}

// moveSome gives some rows another place in the order.
func (h *harness) moveSome(s *Shard) {
	var rows []uint32
	var prefixes []int64
	for all := range s.All() {
		for _, r := range all {
			if h.rnd.IntN(10) == 0 {
				rows, prefixes = append(rows, r), append(prefixes, h.clock+int64(h.rnd.IntN(12)))
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	before := h.get(s, rows)
	if err := s.Reorder(rows, prefixes); err != nil {
		h.t.Fatal(err)
	}
	for i := range rows {
		id, r := rowOf(before, i)
		list := slices.Clone(h.now.rows[id])
		list[slices.Index(list, r)].until = prefixes[i]
		h.now.rows[id] = list
	}
}

// see is a batch of the de-duplication.
func (h *harness) see() {
	n := 1 + h.rnd.IntN(30)
	d := columnartest.RandomColumn(h.t, h.mem, columnar.Float64, h.rnd.Uint64(), columnartest.RandomOptions{Rows: n, Distinct: 5})
	b := columnartest.RandomColumn(h.t, h.mem, columnar.Binary, h.rnd.Uint64(), columnartest.RandomOptions{Rows: n, Dictionary: true})
	v := columnartest.RandomColumn(h.t, h.mem, columnar.Decimal(20, 2), h.rnd.Uint64(), columnartest.RandomOptions{Rows: n})
	tab := h.store.Table("seen")
	for k, at := range split(tab, []arrow.Array{d, b}, n) {
		if len(at) == 0 {
			continue
		}
		rows := make([]uint32, len(at))
		keys := []arrow.Array{h.take(d, at), h.take(b, at)}
		created, err := tab.Shards()[k].Intern(keys, rows)
		if err != nil {
			h.t.Fatal(err)
		}
		var fresh []uint32
		var from []int32
		for _, i := range created {
			fresh, from = append(fresh, rows[i]), append(from, at[i])
			key := seenKey(keys, int(i))
			if _, ok := h.now.seen[key]; ok {
				h.t.Fatalf("%s was created, and is there", key)
			}
			h.now.seen[key] = text(v, int(at[i]))
		}
		if len(fresh) > 0 {
			if err := tab.Shards()[k].Set(fresh, 2, h.take(v, from)); err != nil {
				h.t.Fatal(err)
			}
		}
		for i := range at {
			if _, ok := h.now.seen[seenKey(keys, i)]; !ok {
				h.t.Fatal("a key was not created")
			}
		}
	}
}

// seenKey writes -0.0 as 0.0 and every NaN alike.
func seenKey(keys []arrow.Array, i int) string {
	if keys[0].IsNull(i) {
		return "NULL|" + text(keys[1], i)
	}
	return fmt.Sprint(keys[0].(*array.Float64).Value(i)+0) + "|" + text(keys[1], i)
}

// evict moves the clock on and compares what falls.
func (h *harness) evict() {
	h.clock += int64(h.rnd.IntN(6))
	bounds := map[string]int64{"groups": (h.clock - 1) * 60e6, "rows": h.clock - 1}
	for name, bound := range bounds {
		for _, s := range h.store.Table(name).Shards() {
			last := int64(math.MinInt64)
			for rows := range s.Evict(bound) {
				got := h.get(s, rows)
				for i := range rows {
					var prefix int64
					if name == "groups" {
						k := keyText(got[:2], i)
						prefix = h.now.groups[k].end
						delete(h.now.groups, k)
					} else {
						_, r := rowOf(got, i)
						prefix = r.until
						h.dropRow(got, i)
					}
					if prefix > bound || prefix < last {
						h.t.Fatalf("%s: evicted %d after %d, the bound is %d", name, prefix, last, bound)
					}
					last = prefix
				}
			}
		}
	}
	for k, g := range h.now.groups {
		if g.end <= bounds["groups"] {
			h.t.Fatalf("%s was not evicted", k)
		}
	}
	for id, rows := range h.now.rows {
		for _, r := range rows {
			if r.until <= bounds["rows"] {
				h.t.Fatalf("row %v of %d was not evicted", r, id)
			}
		}
	}
}

// check compares the store, and its files, with the model.
func (h *harness) check() {
	h.t.Helper()
	got := newModel()
	for _, s := range h.store.Table("groups").Shards() {
		for rows := range s.All() {
			h.readGroups(s, rows, got)
		}
	}
	for _, s := range h.store.Table("rows").Shards() {
		for rows := range s.All() {
			h.readRows(s, rows, got)
		}
	}
	n := 0
	for _, s := range h.store.Table("seen").Shards() {
		for rows := range s.All() {
			n += len(rows)
			a := h.get(s, rows)
			for i := range rows {
				got.seen[seenKey(a[:2], i)] = text(a[2], i)
			}
		}
	}
	if n != len(h.now.seen) || h.store.Table("seen").Len() != n {
		h.t.Fatalf("%d rows of %d keys seen", n, len(h.now.seen))
	}
	compareModels(h.t, got, h.now)
	h.checkFind()
}

func compareModels(t *testing.T, got, want *model) {
	t.Helper()
	if !maps.Equal(got.groups, want.groups) {
		t.Fatalf("groups\n%v\nnot\n%v", got.groups, want.groups)
	}
	if !maps.Equal(got.seen, want.seen) {
		t.Fatalf("seen\n%v\nnot\n%v", got.seen, want.seen)
	}
	for id, rows := range want.rows {
		if !slices.Equal(got.rows[id], rows) {
			t.Fatalf("rows of %d\n%v\nnot\n%v", id, got.rows[id], rows)
		}
	}
	if len(got.rows) != len(want.rows) {
		t.Fatalf("%d ids, not %d", len(got.rows), len(want.rows))
	}
}

func (h *harness) readGroups(s *Shard, rows []uint32, into *model) {
	a := h.get(s, rows)
	var results []arrow.Array
	for _, acc := range s.Accumulators() {
		r, err := acc.Result(rows)
		if err != nil {
			h.t.Fatal(err)
		}
		defer r.Release()
		results = append(results, r)
	}
	for i := range rows {
		end := int64(neverEvicted)
		if a[0].IsValid(i) {
			end = int64(a[0].(*array.Timestamp).Value(i))
		}
		k := keyText(a[:2], i)
		if _, ok := into.groups[k]; ok {
			h.t.Fatalf("%s is there twice", k)
		}
		into.groups[k] = groupModel{
			end: end, note: text(a[2], i), small: text(a[3], i),
			count: results[0].(*array.Int64).Value(i), max: text(results[1], i), first: text(results[2], i),
		}
	}
}

// readRows reads rows by key, in the order Find gives.
func (h *harness) readRows(s *Shard, rows []uint32, into *model) {
	a := h.get(s, rows)
	for i := range rows {
		id, _ := rowOf(a, i)
		if into.rows[id] != nil {
			continue
		}
		from, found, err := s.Find([]arrow.Array{h.take(a[0], []int32{int32(i)})}, 1)
		if err != nil {
			h.t.Fatal(err)
		}
		b := h.get(s, found[from[0]:from[1]])
		for j := range found {
			_, r := rowOf(b, j)
			into.rows[id] = append(into.rows[id], r)
		}
	}
}

// checkFind looks for keys that are there and one that is not.
func (h *harness) checkFind() {
	tab := h.store.Table("groups")
	for _, s := range tab.Shards() {
		for rows := range s.All() {
			keys := h.get(s, rows, 0, 1)
			from, found, err := s.Find(keys, len(rows))
			if err != nil {
				h.t.Fatal(err)
			}
			if !slices.Equal(found, rows) || from[len(rows)] != uint32(len(rows)) {
				h.t.Fatalf("rows %v are found as %v", rows, found)
			}
		}
		from, found, err := s.Find([]arrow.Array{h.column("timestamp", []string{stamp(-5)}), h.column("varchar", []string{"nobody"})}, 1)
		if err != nil || len(found) != 0 || from[1] != 0 {
			h.t.Fatalf("a key that is not there has rows %v, %v", found, err)
		}
	}
}

// checkScan reads version v from its files alone.
func (h *harness) checkScan(v int) {
	h.t.Helper()
	for _, table := range []string{"groups", "seen", "rows"} {
		files := h.versions[v].files
		if len(files.TableFiles(table)) == 0 {
			continue
		}
		r, err := Scan(context.Background(), h.mem, h.dir, files, table)
		if err != nil {
			h.t.Fatal(err)
		}
		n := 0
		for {
			b, err := r.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				h.t.Fatal(err)
			}
			n += int(b.NumRows())
			if table == "groups" {
				names := strings.Split(columnar.SchemaString(b.Schema()), ", ")
				want := "window_end TIMESTAMP;channel VARCHAR;note VARCHAR;small TINYINT;count BIGINT;max BIGINT;first_ordinal BIGINT;first_value VARCHAR"
				if strings.Join(names, ";") != want {
					h.t.Fatalf("columns %v", names)
				}
				for i := range int(b.NumRows()) {
					g, ok := h.versions[v].model.groups[keyText(b.Columns()[:2], i)]
					if !ok || fmt.Sprint(g.count) != text(b.Column(4), i) || g.max != text(b.Column(5), i) {
						h.t.Fatalf("row %d of the scan is not in the model", i)
					}
				}
			}
			b.Release()
		}
		if err := r.Close(); err != nil {
			h.t.Fatal(err)
		}
		m := h.versions[v].model
		want := map[string]int{"groups": len(m.groups), "seen": len(m.seen)}[table]
		for _, rows := range m.rows {
			if table == "rows" {
				want += len(rows)
			}
		}
		if n != want {
			h.t.Fatalf("table %s has %d rows in files, %d in the model", table, n, want)
		}
	}
}

func (h *harness) batch() {
	for range 1 + h.rnd.IntN(3) {
		switch h.rnd.IntN(7) {
		case 0, 1:
			h.updateGroups()
		case 2, 3:
			h.appendRows()
		case 4:
			h.see()
		case 5:
			h.deleteSome()
		case 6:
			h.evict()
		}
	}
}

// TestModel runs random batches, aborts, reopens at this or an older version with
// another number of shards, and snapshots; the store equals the model all along.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, seed, vfs.NewMem())
			h.open(0)
			for range 40 {
				h.batch()
				switch h.rnd.IntN(12) {
				case 0: // the batch fails
					h.provider.Abort()
					if _, err := h.store.Commit(context.Background()); !errors.Is(err, ErrPoisoned) {
						t.Fatalf("commit after abort: %v", err)
					}
					h.open(int64(len(h.versions) - 1))
					continue
				case 1: // the process is started anew
					h.newProvider()
					h.open(int64(len(h.versions) - 1))
					continue
				case 2: // batches are run again from an older version
					h.commit()
					h.provider.Wait()
					h.open(max(int64(len(h.versions)-1-h.rnd.IntN(3)), 0))
					continue
				}
				h.commit()
				h.checkScan(len(h.versions) - 1)
				h.open(int64(len(h.versions) - 1))
			}
		})
	}
}
