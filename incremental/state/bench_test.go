package state

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/internal/vfs"
)

// windowSpec is count and max by (window end, user): the commonest state.
func windowSpec(t testing.TB) Spec {
	return Spec{Operator: "agg(window_end, user)", Tables: []TableSchema{{
		Name:       "groups",
		Key:        []arrow.Field{columnar.Field("window_end", columnar.Timestamp), columnar.Field("user", columnar.Int64)},
		Aggregates: []AggregateColumn{aggregate(t, "count"), aggregate(t, "max", columnar.Int64)},
		Order:      Order{By: ByKeyColumn},
	}}}
}

// windowKeys makes n keys of the given windows; user is drawn below users.
func windowKeys(mem memory.Allocator, rnd *rand.Rand, n, windows int, users int64) []arrow.Array {
	ends := array.NewTimestampBuilder(mem, columnar.Timestamp.(*arrow.TimestampType))
	ids := array.NewInt64Builder(mem)
	defer ends.Release()
	defer ids.Release()
	for range n {
		ends.Append(arrow.Timestamp(1+rnd.IntN(windows)) * 10e6)
		ids.Append(rnd.Int64N(users))
	}
	return []arrow.Array{ends.NewArray(), ids.NewArray()}
}

// fill makes a store of about n groups over windows.
func fill(t testing.TB, store *Store, mem memory.Allocator, n, windows int) {
	rnd := rand.New(rand.NewPCG(1, 2))
	s := store.Table("groups").Shards()[0]
	rows := make([]uint32, 1<<15)
	for s.Len() < n {
		keys := windowKeys(mem, rnd, len(rows), windows, int64(2*n/windows))
		touch(t, s, keys, rows)
		releaseAll(keys)
	}
}

// touch is what an aggregate does with the keys of a batch.
func touch(t testing.TB, s *Shard, keys []arrow.Array, rows []uint32) {
	if _, err := s.Intern(keys, rows); err != nil {
		t.Fatal(err)
	}
	args := [][]columnar.Datum{nil, {columnar.ColumnDatum(keys[1])}}
	for i, a := range s.Accumulators() {
		if err := a.Update(rows, args[i]); err != nil {
			t.Fatal(err)
		}
	}
	s.Touch(rows)
}

func openBench(t testing.TB, fsys vfs.FS, name string, opts Options) (*checkpoint.Dir, *Provider, *Store) {
	dir, err := checkpoint.Open(fsys, name, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := NewProvider(dir, opts)
	s, err := p.Open(context.Background(), windowSpec(t), checkpoint.OperatorState{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir, p, s
}

// TestMemoryPerGroup: a group of (timestamp, bigint) with count and max takes at most
// 130 bytes, everything counted, and by what the heap says.
func TestMemoryPerGroup(t *testing.T) {
	const groups = 700_000
	pool := memory.NewGoAllocator()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, _, store := openBench(t, vfs.NewMem(), "c", Options{Mem: pool})
	fill(t, store, pool, groups, 20)
	// What a batch touched is listed until its commit.
	tab := store.Table("groups")
	if err := tab.committed(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	n := int64(store.Len())
	if per := store.Bytes() / n; per > 130 {
		t.Errorf("%d bytes a group are counted", per)
	}
	if per := int64(after.HeapAlloc-before.HeapAlloc) / n; per > 130 {
		t.Errorf("%d bytes a group are on the heap", per)
	}
	runtime.KeepAlive(store)
}

// BenchmarkBatch interns, updates and touches 46,000 distinct keys in 3 million groups.
func BenchmarkBatch(b *testing.B) {
	const groups, keys = 3_000_000, 46_000
	mem := columnar.NewPool()
	_, _, store := openBench(b, vfs.NewMem(), "c", Options{Mem: mem})
	fill(b, store, mem, groups, 300)
	s := store.Table("groups").Shards()[0]
	if err := store.Table("groups").committed(); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d groups, %d bytes each", s.Len(), s.Bytes()/int64(s.Len()))
	rnd := rand.New(rand.NewPCG(7, 7))
	var batches [][]arrow.Array
	for range 20 {
		batches = append(batches, distinctKeys(b, s, mem, rnd, keys))
	}
	rows := make([]uint32, keys)
	i := 0
	for b.Loop() {
		touch(b, s, batches[i%len(batches)], rows)
		i++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
}

// distinctKeys are keys of random rows of s.
func distinctKeys(b testing.TB, s *Shard, mem memory.Allocator, rnd *rand.Rand, n int) []arrow.Array {
	rows := make([]uint32, n)
	seen := map[uint32]bool{}
	for i := range rows {
		r := uint32(rnd.IntN(s.Len()))
		for seen[r] {
			r = uint32(rnd.IntN(s.Len()))
		}
		seen[r] = true
		rows[i] = r
	}
	keys, err := s.Get(rows)
	if err != nil {
		b.Fatal(err)
	}
	return keys
}

// BenchmarkCommit writes the change file of 46,000 touched groups of 3 million.
func BenchmarkCommit(b *testing.B) {
	const keys = 46_000
	mem := columnar.NewPool()
	_, _, store := openBench(b, vfs.OS(), b.TempDir(), Options{Mem: mem})
	fill(b, store, mem, 1_000_000, 300)
	s := store.Table("groups").Shards()[0]
	if err := store.Table("groups").committed(); err != nil {
		b.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	rows := make([]uint32, keys)
	k := distinctKeys(b, s, mem, rnd, keys)
	for b.Loop() {
		touch(b, s, k, rows)
		if _, err := store.Commit(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEvict removes 1 of 3 million groups.
func BenchmarkEvict(b *testing.B) {
	mem := columnar.NewPool()
	var total time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		_, _, store := openBench(b, vfs.NewMem(), fmt.Sprint("c", n), Options{Mem: mem})
		fill(b, store, mem, 3_000_000, 300)
		s := store.Table("groups").Shards()[0]
		if err := store.Table("groups").committed(); err != nil {
			b.Fatal(err)
		}
		n++
		b.StartTimer()
		start := time.Now()
		rows := 0
		for r := range s.Evict(100 * 10e6) {
			rows += len(r)
		}
		total += time.Since(start)
		if rows < 900_000 {
			b.Fatalf("%d rows evicted", rows)
		}
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(n), "ms/evict")
}

// BenchmarkOpen restores a million groups: from one snapshot, and with changes.
func BenchmarkOpen(b *testing.B) {
	mem := columnar.NewPool()
	_, p, store := openBench(b, vfs.OS(), b.TempDir(), Options{Mem: mem, Inline: true, Snapshots: checkpoint.SnapshotPolicy{Never: true}})
	fill(b, store, mem, 1_000_000, 300)
	files, err := store.Commit(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	s := store.Table("groups").Shards()[0]
	rnd := rand.New(rand.NewPCG(7, 7))
	changed := files
	for range 10 {
		k := distinctKeys(b, s, mem, rnd, 20_000)
		touch(b, s, k, make([]uint32, 20_000))
		releaseAll(k)
		if changed, err = store.Commit(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	for name, state := range map[string]checkpoint.OperatorState{"one file": files, "and 10 changes": changed} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.Abort()
				if _, err := p.Open(context.Background(), windowSpec(b), state); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGrow adds 100 batches of 25,000 keys, six in ten of them new, to an empty table
// of windows: what a stream without a watermark does to its state.
func BenchmarkGrow(b *testing.B) {
	const batches, keys = 100, 25_000
	mem := columnar.NewPool()
	rnd := rand.New(rand.NewPCG(3, 4))
	var list [][]arrow.Array
	for n := range batches {
		list = append(list, growKeys(mem, rnd, n, keys))
	}
	rows := make([]uint32, keys)
	_, p, _ := openBench(b, vfs.NewMem(), "c", Options{Mem: mem})
	for b.Loop() {
		p.Abort()
		store, err := p.Open(context.Background(), growSpec(b), checkpoint.OperatorState{})
		if err != nil {
			b.Fatal(err)
		}
		t := store.Table("groups")
		for _, k := range list {
			touch(b, t.Shards()[0], k, rows)
			if err := t.committed(); err != nil {
				b.Fatal(err)
			}
		}
		if n := t.Len(); n < 1_500_000 || n > 1_650_000 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batches/keys, "ns/key")
}

// growSpec is a table of windows that are never evicted.
func growSpec(t testing.TB) Spec {
	spec := windowSpec(t)
	spec.Tables[0].Key = []arrow.Field{columnar.Field("window_start", columnar.Timestamp), columnar.Field("user", columnar.Int64), columnar.Field("window_end", columnar.Timestamp)}
	spec.Tables[0].Derived = []DerivedColumn{{Column: 2, From: 0}}
	spec.Tables[0].Order = Order{}
	return spec
}

// growKeys are keys of 25 windows that only batch number n has.
func growKeys(mem memory.Allocator, rnd *rand.Rand, n, keys int) []arrow.Array {
	starts := array.NewTimestampBuilder(mem, columnar.Timestamp.(*arrow.TimestampType))
	ids := array.NewInt64Builder(mem)
	defer starts.Release()
	defer ids.Release()
	for i := range keys {
		starts.Append(arrow.Timestamp(n*25+i/1000) * 10e6)
		ids.Append(rnd.Int64N(1000))
	}
	start, id := starts.NewArray(), ids.NewArray()
	return []arrow.Array{start, id, start}
}

// BenchmarkUpdateAccumulators is the accumulators' part of BenchmarkBatch.
func BenchmarkUpdateAccumulators(b *testing.B) {
	mem := columnar.NewPool()
	acc, err := aggregate(b, "count").New(mem)
	if err != nil {
		b.Fatal(err)
	}
	acc.Resize(3_000_000)
	rnd := rand.New(rand.NewPCG(7, 7))
	rows := make([]uint32, 46_000)
	for i := range rows {
		rows[i] = uint32(rnd.IntN(3_000_000))
	}
	for b.Loop() {
		if err := acc.Update(rows, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/46_000, "ns/key")
}
