package state

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/internal/vfs"
)

// BenchmarkJoin makes one file of 64 changes of 16,000 groups each, few of which are in
// another: what a stream without a watermark does in the background.
func BenchmarkJoin(b *testing.B) {
	const batches, keys = 64, 26_000
	mem := columnar.NewPool()
	rnd := rand.New(rand.NewPCG(3, 4))
	_, p, _ := openBench(b, vfs.OS(), b.TempDir(), Options{Mem: mem, Snapshots: checkpoint.SnapshotPolicy{Never: true}})
	p.Abort()
	store, err := p.Open(context.Background(), growSpec(b), checkpoint.OperatorState{})
	if err != nil {
		b.Fatal(err)
	}
	var files checkpoint.OperatorState
	rows := make([]uint32, keys)
	for n := range batches {
		k := growKeys(mem, rnd, n, keys)
		touch(b, store.Table("groups").Shards()[0], k, rows)
		releaseAll(k)
		if files, err = store.Commit(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	list := files.TableFiles("groups")
	p.inBatch.Store(false) // so that it does not rest
	for b.Loop() {
		if _, err := p.writeJoined(context.Background(), joined{operator: files.Operator, table: "groups", from: list, file: joinedFile(list, 0)}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(files.Rows), "ns/row")
}

// TestJoinLong joins changes with long stretches of rows that no other change has, and short
// ones that two have: the rows of one file are those of all, and of the memory.
func TestJoinLong(t *testing.T) {
	t.Parallel()
	mem := columnar.NewPool()
	rnd := rand.New(rand.NewPCG(5, 6))
	dir, p, _ := openBench(t, vfs.NewMem(), "c", Options{Mem: mem, Snapshots: checkpoint.SnapshotPolicy{Never: true}})
	p.Abort()
	store, err := p.Open(t.Context(), growSpec(t), checkpoint.OperatorState{})
	if err != nil {
		t.Fatal(err)
	}
	var files checkpoint.OperatorState
	for _, n := range []int{2, 0, 1, 4} { // the oldest file is not the first by key
		k := growKeys(mem, rnd, n, 26_000)
		touch(t, store.Table("groups").Shards()[0], k, make([]uint32, 26_000))
		releaseAll(k)
		if files, err = store.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list := files.TableFiles("groups")
	file, err := p.writeJoined(t.Context(), joined{operator: files.Operator, table: "groups", from: list, file: joinedFile(list, 0)})
	if err != nil {
		t.Fatal(err)
	}
	many, one := scanTexts(t, dir, files), scanTexts(t, dir, checkpoint.OperatorState{Operator: files.Operator, Files: []checkpoint.StateFile{file}})
	if len(one) != store.Len() || int64(len(one)) != file.Rows {
		t.Errorf("%d rows of %d, the file says %d", len(one), store.Len(), file.Rows)
	}
	if !slices.Equal(one, many) {
		t.Error("the joined file has other rows")
	}
	slices.Sort(one)
	if !slices.Equal(one, groupTexts(t, store.Table("groups").Shards()[0])) {
		t.Error("the joined file has other rows than the memory")
	}
}
