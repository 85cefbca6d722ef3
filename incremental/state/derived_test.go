package state

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/internal/vfs"
)

// TestDerived runs the same batches on a table whose window ends are derived from the
// starts and on one that keeps them: evictions by the end, restarts and the rows of the
// files must be the same. A few windows are null.
func TestDerived(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		derived := newDerivedTest(t, seed, DerivedColumn{Column: 1, From: 0, Plus: 10})
		plain := newDerivedTest(t, seed)
		for range 12 {
			got, want := derived.batch(), plain.batch()
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: the derived table has\n%s\nthe plain one\n%s", seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		derived.close()
		plain.close()
	}
}

// derivedTest keeps a table of window start, window end and user.
type derivedTest struct {
	t        *testing.T
	rnd      *rand.Rand
	spec     Spec
	dir      *checkpoint.Dir
	provider *Provider
	files    checkpoint.OperatorState
	bound    int64
}

func newDerivedTest(t *testing.T, seed uint64, derived ...DerivedColumn) *derivedTest {
	t.Helper()
	d := &derivedTest{t: t, rnd: rand.New(rand.NewPCG(seed, 1))}
	d.spec = Spec{Operator: "op", Tables: []TableSchema{{
		Name: "groups",
		Key: []arrow.Field{
			columnar.Field("start", columnar.Timestamp), columnar.Field("end", columnar.Timestamp), columnar.Field("user", columnar.Int64),
		},
		Derived:    derived,
		Aggregates: []AggregateColumn{aggregate(t, "count")},
		Order:      Order{By: ByKeyColumn, Column: 1},
	}}}
	var err error
	if d.dir, err = checkpoint.Open(vfs.NewMem(), "c", checkpoint.Options{}); err != nil {
		t.Fatal(err)
	}
	d.start()
	return d
}

func (d *derivedTest) start() {
	d.provider = NewProvider(d.dir, Options{Shards: 1 + d.rnd.IntN(3), Inline: true, Snapshots: checkpoint.SnapshotPolicy{Changes: d.rnd.IntN(2) == 0}})
}

func (d *derivedTest) close() {
	if err := errors.Join(d.provider.Close(), d.dir.Close()); err != nil {
		d.t.Error(err)
	}
}

// batch counts some windows, evicts, commits and returns the rows of the new version.
func (d *derivedTest) batch() []string {
	d.t.Helper()
	ctx := context.Background()
	store, err := d.provider.Open(ctx, d.spec, d.files)
	if err != nil {
		d.t.Fatal(err)
	}
	table := store.Table("groups")
	n := 50 + d.rnd.IntN(100)
	keys := derivedKeys(d.rnd, d.bound, n)
	defer releaseAll(keys)
	for k, part := range split(table, keys, n) {
		if err := countPart(table.Shards()[k], keys, part); err != nil {
			d.t.Fatal(err)
		}
	}
	if d.rnd.IntN(3) == 0 {
		d.bound += d.rnd.Int64N(40)
		for _, s := range table.Shards() {
			for range s.Evict(d.bound) {
				continue
			}
		}
	}
	if d.files, err = store.Commit(ctx); err != nil {
		d.t.Fatal(err)
	}
	d.provider.Committed(store.Version())
	if err := d.provider.Maintain(ctx); err != nil {
		d.t.Fatal(err)
	}
	if d.rnd.IntN(3) == 0 {
		if err := d.provider.Close(); err != nil {
			d.t.Fatal(err)
		}
		d.start()
	}
	return scanTexts(d.t, d.dir, d.files)
}

// derivedKeys are n windows of ten microseconds above bound, with users.
func derivedKeys(rnd *rand.Rand, bound int64, n int) []arrow.Array {
	var start, end, user []int64
	var valid []bool
	for range n {
		s := bound + 10*rnd.Int64N(8) + 1
		start, end, user = append(start, s), append(end, s+10), append(user, rnd.Int64N(20)-10)
		valid = append(valid, rnd.IntN(12) > 0)
	}
	return []arrow.Array{timestamps(start, valid), timestamps(end, valid), int64s(user...)}
}

func timestamps(values []int64, valid []bool) arrow.Array {
	b := array.NewTimestampBuilder(memory.DefaultAllocator, columnar.Timestamp.(*arrow.TimestampType))
	defer b.Release()
	for i, v := range values {
		if valid == nil || valid[i] {
			b.Append(arrow.Timestamp(v))
		} else {
			b.AppendNull()
		}
	}
	return b.NewArray()
}

// countPart counts some of the keys in the shard they fall to.
func countPart(s *Shard, keys []arrow.Array, part []int32) error {
	var some []arrow.Array
	defer func() { releaseAll(some) }()
	for _, k := range keys {
		some = append(some, kernel.Filter(memory.DefaultAllocator, k, part))
	}
	rows := make([]uint32, len(part))
	if _, err := s.Intern(some, rows); err != nil {
		return err
	}
	s.Touch(rows)
	return s.Accumulators()[0].Update(rows, nil)
}

func scanTexts(t *testing.T, opener FileOpener, files checkpoint.OperatorState) []string {
	t.Helper()
	r, err := Scan(context.Background(), memory.DefaultAllocator, opener, files, "groups")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []string
	for {
		b, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			out = append(out, keyText(b.Columns(), i))
		}
		b.Release()
	}
}

// TestDerivedWrong: a column that is not what it should be derived from is refused, not
// forgotten.
func TestDerivedWrong(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]arrow.Array{
		"value":       {timestamps([]int64{1, 2}, nil), timestamps([]int64{11, 13}, nil), int64s(1, 1)},
		"null":        {timestamps([]int64{1, 2}, nil), timestamps([]int64{11, 12}, []bool{true, false}), int64s(1, 1)},
		"null source": {timestamps([]int64{1, 2}, []bool{true, false}), timestamps([]int64{11, 12}, nil), int64s(1, 1)},
	} {
		d := newDerivedTest(t, 1, DerivedColumn{Column: 1, From: 0, Plus: 10})
		store, err := d.provider.Open(context.Background(), d.spec, d.files)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Table("groups").Shards()[0].Intern(keys, make([]uint32, 2)); err == nil || !strings.Contains(err.Error(), "not always 10 after") {
			t.Errorf("%s: %v", name, err)
		}
		releaseAll(keys)
		d.close()
	}
}
