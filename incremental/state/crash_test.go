package state

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
)

// crashBatches is the length of the scenario of TestCrashEverywhere.
const crashBatches = 3

// run commits batches until an error, as the loop does: a version counts once its
// Commit has returned (the test stands for commits/N).
func (h *harness) run(batches int) error {
	ctx := context.Background()
	for range batches {
		h.updateGroups()
		h.appendRows()
		h.deleteSome()
		h.evict()
		files, err := h.store.Commit(ctx)
		if err != nil {
			return err
		}
		h.versions = append(h.versions, version{files, h.now.clone(), h.clock})
		h.provider.Committed(files.Version)
		if err := h.provider.Maintain(ctx); err != nil {
			return err
		}
		// What two versions back named may be gone.
		keep := h.provider.InUse()
		for _, v := range h.versions[max(len(h.versions)-2, 0):] {
			keep = append(keep, v.files)
		}
		if err := h.dir.CollectState(keep...); err != nil {
			return err
		}
		if h.store, err = h.provider.Open(ctx, h.spec, files); err != nil {
			return err
		}
	}
	return nil
}

func crashHarness(t *testing.T, mem vfs.FS, policy checkpoint.SnapshotPolicy) (*harness, *faultfs.FS) {
	fsys := faultfs.New(mem)
	h := newHarness(t, 3, fsys)
	_ = h.provider.Close()
	h.provider = NewProvider(h.dir, Options{Mem: h.mem, Shards: 2, Inline: true, Snapshots: policy})
	h.open(0)
	fsys.Arm()
	return h, fsys
}

// TestCrashEverywhere stops the scenario at every call that changes the disk, by an
// error, a short write and a crash, and opens the newest version from what is left.
func TestCrashEverywhere(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]checkpoint.SnapshotPolicy{"snapshots": {Always: true}, "joined changes": {Changes: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashEverywhere(t, policy)
		})
	}
}

func crashEverywhere(t *testing.T, policy checkpoint.SnapshotPolicy) {
	h, fsys := crashHarness(t, vfs.NewMem(), policy)
	if err := h.run(crashBatches); err != nil {
		t.Fatal(err)
	}
	calls, _ := fsys.Calls()
	if calls < 40 {
		t.Fatalf("only %d calls", calls)
	}
	for k := range calls {
		for _, rule := range []string{"(error EIO (nth %d mutating))", "(short (nth %d mutating))", "(crash (nth %d mutating))"} {
			if k%3 != 0 && rule[1] != 'c' {
				continue // errors leave the same files as crashes do
			}
			text := fmt.Sprintf(rule, k)
			r, err := faultfs.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(text, func(t *testing.T) { crashAt(t, policy, r, [][]float64{{0, 0.5}, {0.5, 1}, {1, 0}}[k%3]) })
		}
	}
}

func crashAt(t *testing.T, policy checkpoint.SnapshotPolicy, rule faultfs.Rule, keeps []float64) {
	mem := vfs.NewMem()
	h, fsys := crashHarness(t, mem, policy)
	fsys.Arm(rule)
	err := h.run(crashBatches)
	if fsys.Fired()[0] > 0 && err == nil && rule.Action != faultfs.Short {
		t.Fatal("the fault was swallowed")
	}
	if err != nil && !errors.Is(err, faultfs.ErrInjected) {
		t.Fatalf("error is not the injected one: %v", err)
	}
	h.close()
	for seed, keep := range keeps {
		after := mem.Crash(uint64(seed), keep)
		dir, err := checkpoint.Open(after, "ckpt", checkpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		again := &harness{t: t, rnd: rand.New(rand.NewPCG(9, 9)), mem: h.mem, fs: after, dir: dir, spec: h.spec, versions: slices.Clone(h.versions)}
		again.newProvider()
		again.open(int64(len(h.versions) - 1))
		again.checkScan(len(again.versions) - 1)
		if err := again.run(1); err != nil {
			t.Fatalf("keep %v: the batch run again: %v", keep, err)
		}
		again.check()
		again.close()
	}
}

// TestDamage: any flipped byte of a state file is found.
func TestDamage(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	h := newHarness(t, 4, mem)
	h.open(0)
	if err := h.run(2); err != nil {
		t.Fatal(err)
	}
	files := h.versions[len(h.versions)-1].files
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, f := range files.Files {
		name := path.Join(h.dir.StateDir(files.Operator), f.Name)
		data, err := vfs.ReadFile(mem, name)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			bad := slices.Clone(data)
			bad[rnd.IntN(len(bad))] ^= 1 << rnd.IntN(8)
			if err := vfs.WriteAtomic(mem, name, bad); err != nil {
				t.Fatal(err)
			}
			h.provider.Abort()
			if _, err := h.provider.Open(context.Background(), h.spec, files); !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Fatalf("%s damaged: %v", f.Name, err)
			}
		}
		if err := mem.Remove(name); err != nil {
			t.Fatal(err)
		}
		if _, err := h.provider.Open(context.Background(), h.spec, files); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Fatalf("%s removed: %v", f.Name, err)
		}
		if err := vfs.WriteAtomic(mem, name, data); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOtherSchema: a query that keeps other columns is refused.
func TestOtherSchema(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 5, vfs.NewMem())
	h.open(0)
	if err := h.run(1); err != nil {
		t.Fatal(err)
	}
	files := h.versions[1].files
	for what, change := range map[string]func(*Spec){
		"another type": func(s *Spec) {
			s.Tables[0].Values = []arrow.Field{columnar.Field("note", columnar.String), s.Tables[0].Values[0]}
		},
		"no aggregate": func(s *Spec) { s.Tables[0].Aggregates = s.Tables[0].Aggregates[:1] },
		"no table":     func(s *Spec) { s.Tables = s.Tables[1:] },
		"one row a key": func(s *Spec) {
			s.Tables[1].MultiRow = false
		},
	} {
		spec := modelSpec(t)
		change(&spec)
		if _, err := h.provider.Open(context.Background(), spec, files); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}

// TestNoKey is the state of a global aggregate: one row.
func TestNoKey(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	dir, err := checkpoint.Open(vfs.NewMem(), "c", checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	spec := Spec{Operator: "agg()", Tables: []TableSchema{{Name: "groups", Aggregates: []AggregateColumn{aggregate(t, "count")}}}}
	p := NewProvider(dir, Options{Mem: mem, Shards: 3})
	defer p.Close()
	var files checkpoint.OperatorState
	for batch := range int64(3) {
		p.Abort()
		s, err := p.Open(context.Background(), spec, files)
		if err != nil {
			t.Fatal(err)
		}
		shard := s.Table("groups").Shards()[0]
		rows := make([]uint32, 5)
		if _, err := shard.Intern(nil, rows); err != nil {
			t.Fatal(err)
		}
		if err := shard.Accumulators()[0].Update(rows, nil); err != nil {
			t.Fatal(err)
		}
		shard.Touch(rows)
		r, err := shard.Accumulators()[0].Result(rows[:1])
		if err != nil {
			t.Fatal(err)
		}
		if n := r.(*array.Int64).Value(0); n != 5*(batch+1) || s.Len() != 1 {
			t.Fatalf("count is %d in %d rows after batch %d", n, s.Len(), batch)
		}
		r.Release()
		if files, err = s.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNothingChanged: a batch without changes writes no file and makes a version.
func TestNothingChanged(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 6, vfs.NewMem())
	h.open(0)
	if err := h.run(1); err != nil {
		t.Fatal(err)
	}
	before := h.versions[1].files
	after, err := h.store.Commit(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if after.Version != 2 || !sameState(before, h.provider.adopt(before)) && len(after.Files) == 0 {
		t.Fatalf("version %d, files %v", after.Version, after.Files)
	}
	for _, f := range after.Files {
		if f.To == 2 && f.Kind == checkpoint.Change {
			t.Errorf("%s was written", f.Name)
		}
	}
}

// TestUnfinishedEviction: leaving an eviction early is an error of Commit, not of a
// later restart.
func TestUnfinishedEviction(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 7, vfs.NewMem())
	h.open(0)
	h.updateGroups()
	for range h.store.Table("groups").Shards()[0].Evict(1 << 60) {
		break
	}
	if _, err := h.store.Commit(context.Background()); err == nil {
		t.Fatal("the commit went well")
	}
	if _, err := h.store.Commit(context.Background()); !errors.Is(err, ErrPoisoned) {
		t.Fatalf("a second commit: %v", err)
	}
}

// TestBudget: a table that may not grow says so.
func TestBudget(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	budget := columnar.NewBudget(1 << 20)
	_, p, store := openBench(t, vfs.NewMem(), "c", Options{Mem: mem, Budget: budget})
	rnd := rand.New(rand.NewPCG(1, 1))
	s := store.Table("groups").Shards()[0]
	var refused error
	for i := 0; refused == nil && i < 100; i++ {
		keys := windowKeys(mem, rnd, 4096, 10, 1<<40)
		_, refused = s.Intern(keys, make([]uint32, 4096))
		releaseAll(keys)
	}
	if !errors.Is(refused, columnar.ErrMemory) {
		t.Fatalf("refused with %v", refused)
	}
	p.Abort()
	if budget.Used() != 0 {
		t.Fatalf("%d bytes stay reserved", budget.Used())
	}
}

// TestCompact deletes most of a large table: segments are let go over some commits, and
// what is left is found, in memory and after a restart.
func TestCompact(t *testing.T) {
	t.Parallel()
	mem := columnar.NewPool()
	_, p, store := openBench(t, vfs.NewMem(), "c", Options{Mem: mem, Snapshots: checkpoint.SnapshotPolicy{Never: true}})
	fill(t, store, mem, 300_000, 10)
	s := store.Table("groups").Shards()[0]
	if _, err := store.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	full := s.Bytes()
	rnd := rand.New(rand.NewPCG(2, 2))
	for rows := range s.All() {
		if err := s.Delete(slices.DeleteFunc(slices.Clone(rows), func(uint32) bool { return rnd.IntN(10) == 0 })); err != nil {
			t.Fatal(err)
		}
	}
	want := groupTexts(t, s)
	var files checkpoint.OperatorState
	for range 4 {
		var err error
		if files, err = store.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if s.top > 2*segmentRows {
		t.Errorf("%d slots for %d rows", s.top, s.n)
	}
	if s.Bytes() > full/2 {
		t.Errorf("%d bytes of %d are held", s.Bytes(), full)
	}
	if got := groupTexts(t, s); !slices.Equal(got, want) {
		t.Fatal("rows differ after compaction")
	}
	checkOrdered(t, s)
	p.Abort()
	again, err := p.Open(context.Background(), windowSpec(t), files)
	if err != nil {
		t.Fatal(err)
	}
	if got := groupTexts(t, again.Table("groups").Shards()[0]); !slices.Equal(got, want) {
		t.Fatal("rows differ after a restart")
	}
}

// groupTexts is every group as text, sorted.
func groupTexts(t *testing.T, s *Shard) []string {
	t.Helper()
	var out []string
	for rows := range s.All() {
		keys, err := s.Get(rows)
		if err != nil {
			t.Fatal(err)
		}
		from, found, err := s.Find(keys, len(rows))
		if err != nil || !slices.Equal(found, rows) || int(from[len(rows)]) != len(rows) {
			t.Fatalf("rows are not found: %v", err)
		}
		for _, a := range s.Accumulators() {
			r, err := a.Result(rows)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, r)
		}
		for i := range rows {
			out = append(out, keyText(keys, i))
		}
		releaseAll(keys)
	}
	slices.Sort(out)
	return out
}

// checkOrdered makes sure that the order holds every row once.
func checkOrdered(t *testing.T, s *Shard) {
	t.Helper()
	rows, err := s.Range(math.MinInt64, neverEvicted)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != s.n {
		t.Fatalf("%d rows are ordered, %d there", len(rows), s.n)
	}
	slices.Sort(rows)
	if len(slices.Compact(rows)) != s.n {
		t.Fatal("a row is ordered twice")
	}
}

// The order of a table that evicts nothing is made when it is asked for, of the rows that
// are there then, and kept from there on.
func TestOrderOnRequest(t *testing.T) {
	t.Parallel()
	mem := columnar.NewPool()
	schema := TableSchema{Name: "groups", Key: []arrow.Field{columnar.Field("k", columnar.Int64)}}
	tab, err := newTable(schema, Options{Mem: mem, Shards: 1}, new(account))
	if err != nil {
		t.Fatal(err)
	}
	defer tab.release()
	s := tab.Shards()[0]
	intern := func(from, upto int64) []uint32 {
		b := array.NewInt64Builder(mem)
		for k := from; k < upto; k++ {
			b.Append(k * 7919 % 10007)
		}
		keys := b.NewArray()
		defer keys.Release()
		rows := make([]uint32, upto-from)
		if _, err := s.Intern([]arrow.Array{keys}, rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	rows := intern(0, 5000)
	if err := s.Delete(rows[100:200]); err != nil {
		t.Fatal(err)
	}
	if n := s.order.tree.Len(); n != 0 {
		t.Fatalf("%d prefixes are in an order nobody asked for", n)
	}
	checkOrdered(t, s)
	intern(5000, 6000)
	checkOrdered(t, s)
	if err := s.Delete(rows[200:300]); err != nil {
		t.Fatal(err)
	}
	checkOrdered(t, s)
}

// TestCompactMultiRow is the same for rows that share keys, with long texts.
func TestCompactMultiRow(t *testing.T) {
	t.Parallel()
	mem := columnar.NewPool()
	schema := TableSchema{
		Name: "rows", MultiRow: true, Order: Order{ByValueColumn, 0},
		Key:    []arrow.Field{columnar.Field("k", columnar.Int64)},
		Values: []arrow.Field{columnar.Field("t", columnar.Timestamp), columnar.Field("text", columnar.String)},
	}
	tab, err := newTable(schema, Options{Mem: mem, Shards: 1}, new(account))
	if err != nil {
		t.Fatal(err)
	}
	defer tab.release()
	s := tab.Shards()[0]
	rnd := rand.New(rand.NewPCG(3, 3))
	const n = 1 << 14
	for range 12 {
		keys := windowKeys(mem, rnd, n, 100, 3000)
		b := array.NewStringBuilder(mem)
		for i := range n {
			b.Append(fmt.Sprintf("the text of row %d, longer than twelve bytes", i))
		}
		text := b.NewArray()
		if err := s.Append(keys[1:], []arrow.Array{keys[0], text}, make([]uint32, n)); err != nil {
			t.Fatal(err)
		}
		releaseAll(keys)
		text.Release()
	}
	before := map[int64]int{}
	for range s.Evict(90 * 10e6) {
	}
	for rows := range s.All() {
		a, err := s.Get(rows, 0, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			before[a[0].(*array.Int64).Value(i)]++
			if text := a[1].(*array.String).Value(i); len(text) < 40 {
				t.Fatalf("text %q", text)
			}
		}
		releaseAll(a)
	}
	arena := s.values.arena.Room()
	for range 3 {
		if err := tab.committed(); err != nil {
			t.Fatal(err)
		}
	}
	if s.values.arena.Room() > 4*s.n*50 {
		t.Errorf("an arena of %d bytes for %d rows (%d before)", s.values.arena.Room(), s.n, arena)
	}
	if s.top > 2*segmentRows {
		t.Errorf("%d slots for %d rows", s.top, s.n)
	}
	checkOrdered(t, s)
	for k, want := range before {
		b := array.NewInt64Builder(mem)
		b.Append(k)
		key := b.NewArray()
		from, rows, err := s.Find([]arrow.Array{key}, 1)
		if err != nil || int(from[1]) != want || len(rows) != want {
			t.Fatalf("key %d has %d rows, not %d: %v", k, len(rows), want, err)
		}
		key.Release()
	}
}
