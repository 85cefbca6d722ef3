package state

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/internal/vfs"
)

// TestLoadNewest loads tables whose keys have one row from many change files: with rows
// that were written again, deleted, deleted and made again, and evicted by what they hold
// last, which hides what older files say of their keys.
func TestLoadNewest(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]Order{"by key": {}, "by key column": {By: ByKeyColumn}, "by value": {By: ByValueColumn}} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				l := &loadTest{t: t, rnd: rand.New(rand.NewPCG(seed, 7)), mem: vfs.NewMem(), order: order, model: map[int64]int64{}}
				l.start(1)
				for range 30 {
					l.batch()
				}
				if err := l.provider.Close(); err != nil {
					t.Fatal(err)
				}
				if err := l.dir.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

type loadTest struct {
	t        *testing.T
	rnd      *rand.Rand
	mem      vfs.FS
	order    Order
	dir      *checkpoint.Dir
	provider *Provider
	files    checkpoint.OperatorState
	model    map[int64]int64
	bound    int64
}

func (l *loadTest) start(shards int) {
	l.t.Helper()
	if l.dir == nil {
		var err error
		if l.dir, err = checkpoint.Open(l.mem, "/ckpt", checkpoint.Options{}); err != nil {
			l.t.Fatal(err)
		}
	}
	l.provider = NewProvider(l.dir, Options{Shards: shards, Snapshots: checkpoint.SnapshotPolicy{Never: true}})
}

// batch changes some rows, commits, and now and then compares what a new start loads.
func (l *loadTest) batch() {
	l.t.Helper()
	ctx := context.Background()
	spec := Spec{Operator: "op", Tables: []TableSchema{{
		Name: "t", Key: []arrow.Field{columnar.Field("id", columnar.Int64)},
		Values: []arrow.Field{columnar.Field("until", columnar.Int64)}, Order: l.order,
	}}}
	store, err := l.provider.Open(ctx, spec, l.files)
	if err != nil {
		l.t.Fatal(err)
	}
	l.check(store)
	for range 5 + l.rnd.IntN(20) {
		id, value := l.rnd.Int64N(60), l.bound+1+l.rnd.Int64N(40)
		if l.order.By == ByKeyColumn {
			id += l.bound + 1
		}
		l.change(store.tables[0], id, value)
	}
	if l.order.By != ByKey && l.rnd.IntN(3) == 0 {
		l.bound += l.rnd.Int64N(15)
		for _, s := range store.tables[0].Shards() {
			for range s.Evict(l.bound) {
				continue
			}
		}
		maps.DeleteFunc(l.model, func(id, value int64) bool {
			return l.order.By == ByKeyColumn && id <= l.bound || l.order.By == ByValueColumn && value <= l.bound
		})
	}
	if l.files, err = store.Commit(ctx); err != nil {
		l.t.Fatal(err)
	}
	if l.rnd.IntN(2) == 0 {
		if err := l.provider.Close(); err != nil {
			l.t.Fatal(err)
		}
		l.start(1 + l.rnd.IntN(3))
	}
}

// change sets the row of a key, or deletes it.
func (l *loadTest) change(table *Table, id, value int64) {
	l.t.Helper()
	key, shard := int64s(id), make([]int32, 1)
	defer key.Release()
	table.Partition([]arrow.Array{key}, shard)
	s := table.Shards()[shard[0]]
	rows := make([]uint32, 1)
	if _, err := s.Intern([]arrow.Array{key}, rows); err != nil {
		l.t.Fatal(err)
	}
	if l.rnd.IntN(4) == 0 {
		if err := s.Delete(rows); err != nil {
			l.t.Fatal(err)
		}
		delete(l.model, id)
		return
	}
	values := int64s(value)
	defer values.Release()
	if err := s.Set(rows, 1, values); err != nil {
		l.t.Fatal(err)
	}
	l.model[id] = value
}

// check compares a store with the model, and every key with what it finds.
func (l *loadTest) check(store *Store) {
	l.t.Helper()
	got := map[int64]int64{}
	for _, s := range store.tables[0].Shards() {
		for rows := range s.All() {
			columns, err := s.Get(rows)
			if err != nil {
				l.t.Fatal(err)
			}
			ids, values := columns[0].(*array.Int64), columns[1].(*array.Int64)
			for i := range rows {
				got[ids.Value(i)] = values.Value(i)
			}
			if _, found, err := s.Find(columns[:1], len(rows)); err != nil || len(found) != len(rows) {
				l.t.Fatalf("%d of %d rows are found: %v", len(found), len(rows), err)
			}
			releaseAll(columns)
		}
	}
	if !maps.Equal(got, l.model) || store.Len() != len(l.model) {
		l.t.Fatalf("version %d has %v, want %v", store.Version(), got, l.model)
	}
}

func int64s(values ...int64) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(values, nil)
	return b.NewArray()
}
