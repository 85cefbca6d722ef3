package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	d := open(t, m, Options{Engine: "0.1.0"})
	id := d.Metadata().ID
	if len(id) != 36 || id[14] != '4' || d.Metadata().Engine != "0.1.0" {
		t.Errorf("metadata is %+v", d.Metadata())
	}
	var locked *LockedError
	_, err := Open(m, "/ckpt", Options{})
	if !errors.Is(err, ErrLocked) || !errors.Is(err, vfs.ErrLocked) || !errors.As(err, &locked) || locked.Path != "/ckpt" {
		t.Errorf("a second one: %v", err)
	}
	must(t, d.Close())

	before := tree(t, m, "/ckpt")
	write(t, m, "/ckpt/offsets/3.tmp", "stray")
	write(t, m, "/ckpt/commits/.3.tmp", "stray")
	must(t, m.MkdirAll("/ckpt/state/op"))
	write(t, m, "/ckpt/state/op/.x.parquet.tmp", "stray")
	d = open(t, m, Options{})
	defer d.Close()
	if d.Metadata().ID != id {
		t.Errorf("the id was %s and is %s", id, d.Metadata().ID)
	}
	if after := tree(t, m, "/ckpt"); !maps.Equal(before, after) {
		t.Errorf("files were %v and are %v", before, after)
	}
}

// TestOpenTouchesNothing checks that opening a whole checkpoint and recovering
// write nothing.
func TestOpenTouchesNothing(t *testing.T) {
	t.Parallel()
	m := build(t, 8, small)
	tr := vfs.NewTrace(m, "/ckpt")
	d := open(t, tr, small)
	must(t, d.CheckPlan(testPlan()))
	_, err := d.Recover(SinkState{Last: 7, Known: true})
	must(t, err)
	log, err := d.SourceLog(0, 7)
	must(t, err)
	must(t, log.Compact())
	must(t, d.Close())
	if got := tr.Take(); !slices.Equal(got, []string{"lock lock", "unlock lock"}) {
		t.Errorf("calls: %q", got)
	}
}

func TestOpenRefusesOtherDirectories(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, m.MkdirAll("/ckpt"))
	write(t, m, "/ckpt/precious.csv", "x")
	_, err := Open(m, "/ckpt", Options{})
	if !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), "precious.csv") {
		t.Errorf("error is %v", err)
	}
	must(t, m.Remove("/ckpt/precious.csv"))
	must(t, open(t, m, Options{}).Close()) // the lock is free again
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	d := open(t, m, Options{})
	must(t, d.Discard())
	if files := tree(t, m, "/"); len(files) != 0 {
		t.Errorf("a new checkpoint left %v", files)
	}
	must(t, open(t, m, Options{}).Close())
	before := tree(t, m, "/ckpt")
	must(t, open(t, m, Options{}).Discard())
	if after := tree(t, m, "/ckpt"); !maps.Equal(before, after) {
		t.Errorf("an old checkpoint became %v", after)
	}
	must(t, open(t, m, Options{}).Close()) // the lock is free again
}

func TestLostMetadata(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]func(*vfs.Mem){
		"missing": func(m *vfs.Mem) { remove(t, m, "/ckpt/metadata") },
		"cut":     func(m *vfs.Mem) { cut(t, m, "/ckpt/metadata", false) },
		"empty":   func(m *vfs.Mem) { cut(t, m, "/ckpt/metadata", true) },
		"flipped": func(m *vfs.Mem) { flip(t, m, "/ckpt/metadata") },
		"with the newest offsets": func(m *vfs.Mem) {
			flip(t, m, "/ckpt/metadata")
			flip(t, m, "/ckpt/offsets/4")
		},
	} {
		m := build(t, 5, small)
		good := read(t, m, "/ckpt/metadata")
		damage(m)
		d, err := Open(m, "/ckpt", Options{Engine: "test"})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		must(t, d.Close())
		if got := read(t, m, "/ckpt/metadata"); got != good {
			t.Errorf("%s: metadata is %q", what, got)
		}
	}
	m := vfs.NewMem()
	must(t, open(t, m, Options{}).Close())
	flip(t, m, "/ckpt/metadata")
	_, err := Open(m, "/ckpt", Options{})
	wantCorrupt(t, err, "/ckpt/metadata")
}

func TestNewerMetadata(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, open(t, m, Options{}).Close())
	write(t, m, "/ckpt/metadata", string(encodeMetadata(Metadata{ID: testID, FormatVersion: 2})))
	if _, err := Open(m, "/ckpt", Options{}); !errors.Is(err, ErrIncompatible) {
		t.Errorf("error is %v", err)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	d := open(t, m, small)
	defer d.Close()
	log := d.Offsets()
	if id, _, err := log.Latest(); id != NoBatch || err != nil {
		t.Errorf("newest of none: %d, %v", id, err)
	}
	for batch := range int64(12) {
		must(t, log.Add(batch, offsetsOf(batch)))
	}
	if err := log.Add(11, offsetsOf(11)); !errors.Is(err, ErrExists) {
		t.Errorf("added twice: %v", err)
	}
	if err := log.Withdraw(10); err == nil {
		t.Error("an older entry can be withdrawn")
	}
	must(t, log.Withdraw(11))
	must(t, log.Withdraw(11))
	must(t, log.Add(11, offsetsOf(11)))
	write(t, m, "/ckpt/offsets/12.tmp", "stray")
	write(t, m, "/ckpt/offsets/013", "stray")
	write(t, m, "/ckpt/offsets/x", "stray")
	id, e, err := log.Latest()
	must(t, err)
	if id != 11 || !reflect.DeepEqual(e, offsetsOf(11)) {
		t.Errorf("newest is %d: %+v", id, e)
	}
	var got []int64
	for id, r := range log.Range(3, 10) {
		must(t, r.Err)
		got = append(got, id)
		if id == 7 {
			break
		}
	}
	if !slices.Equal(got, []int64{3, 4, 5, 6, 7}) {
		t.Errorf("range is %v", got)
	}
	must(t, log.Purge(9))
	ids, err := log.IDs()
	must(t, err)
	if !slices.Equal(ids, []int64{9, 10, 11}) {
		t.Errorf("left are %v", ids)
	}
	flip(t, m, "/ckpt/offsets/11")
	id, _, err = log.Latest()
	if id != 11 {
		t.Errorf("newest is %d", id)
	}
	wantCorrupt(t, err, "/ckpt/offsets/11")
	var c *CorruptError
	if errors.As(err, &c); c.Batch != 11 {
		t.Errorf("batch is %d", c.Batch)
	}
}

// crashEverywhere runs action on a copy of m with a crash at each call that may
// change the disk, and check on several results of each crash. acked is how far
// action said it came: the value it returned last through its argument.
func crashEverywhere(t *testing.T, m *vfs.Mem, action func(fsys vfs.FS, ack func(int)) error, check func(after *vfs.Mem, acked int)) {
	t.Helper()
	for k := 0; ; k++ {
		disk := m.Clone()
		ff := faultfs.New(disk, faultfs.MustParse(fmt.Sprintf("(crash (nth %d mutating))", k)))
		acked := 0
		err := action(ff, func(n int) { acked = n })
		if err != nil && !errors.Is(err, faultfs.ErrCrashed) {
			t.Fatalf("crash at call %d: %v", k, err)
		}
		for seed, keep := range []float64{0, 0.5, 0.5, 0.5, 1} {
			check(disk.Crash(uint64(seed), keep), acked)
			if t.Failed() {
				t.Fatalf("crash at call %d, seed %d, keep %g, acknowledged %d", k, seed, keep, acked)
			}
		}
		if err == nil {
			if k < 3 {
				t.Fatalf("only %d calls", k)
			}
			return
		}
	}
}

func TestCrashLog(t *testing.T) {
	t.Parallel()
	m := build(t, 3, small)
	crashEverywhere(t, m, func(fsys vfs.FS, ack func(int)) error {
		log := newDir(fsys, "/ckpt", small).offsets
		first, second := offsetsOf(3), offsetsOf(3)
		second.Seed = 77
		if err := log.Add(3, first); err != nil {
			return err
		}
		ack(1)
		if err := log.Withdraw(3); err != nil {
			return err
		}
		ack(2)
		if err := log.Add(3, second); err != nil {
			return err
		}
		ack(3)
		return log.Purge(2)
	}, func(after *vfs.Mem, acked int) {
		log := newDir(after, "/ckpt", small).offsets
		id, e, err := log.Latest()
		if err != nil {
			t.Error(err)
			return
		}
		there := id == 3
		switch {
		case acked == 0 && there && e.Seed != 1003,
			acked == 1 && there && e.Seed != 1003,
			acked == 2 && there && e.Seed != 77,
			acked == 3 && (!there || e.Seed != 77):
			t.Errorf("newest is %d: %+v", id, e)
		}
		ids, err := log.IDs()
		must(t, err)
		if got := ids[len(ids)-1] - ids[0]; got != int64(len(ids)-1) && acked == 3 && !slices.Equal(ids, []int64{1, 2, 3}) {
			// Each removal may come back on its own; what matters is that none is
			// lost that was not purged.
			if !slices.Contains(ids, 2) {
				t.Errorf("left are %v", ids)
			}
		}
	})
}

func TestCrashOpen(t *testing.T) {
	t.Parallel()
	crashEverywhere(t, vfs.NewMem(), func(fsys vfs.FS, ack func(int)) error {
		d, err := Open(fsys, "/ckpt", small)
		if err != nil {
			return err
		}
		if err := d.CheckPlan(testPlan()); err != nil {
			return err
		}
		ack(1)
		return d.Close()
	}, func(after *vfs.Mem, acked int) {
		d, err := Open(after, "/ckpt", Options{})
		if err != nil {
			t.Error(err)
			return
		}
		defer d.Close()
		if acked == 1 && d.Metadata().ID != testID {
			t.Error("the query id is lost")
		}
		must(t, d.CheckPlan(testPlan()))
		if r, err := d.Recover(SinkState{Last: NoBatch, Known: true}); err != nil || r.Action != PlanBatch || r.Batch != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestCrashFold checks that no crash while folding loses a batch.
func TestCrashFold(t *testing.T) {
	t.Parallel()
	m := build(t, 9, Options{Retain: 100, ID: testID, Engine: "test"})
	crashEverywhere(t, m, func(fsys vfs.FS, ack func(int)) error {
		d, err := Open(fsys, "/ckpt", small)
		if err != nil {
			return err
		}
		if err := d.Maintain(); err != nil {
			return err
		}
		ack(1)
		return d.Close()
	}, func(after *vfs.Mem, acked int) {
		check := func() {
			must(t, Inspect(after, "/ckpt", func(v *View) error {
				for batch := range int64(9) {
					c, err := v.Commit(batch)
					if err != nil {
						return err
					}
					if c.Batch != batch || c.Offsets.Time != offsetsOf(batch).Time || c.Inputs[0].Hash == "" {
						t.Errorf("batch %d is %+v", batch, c)
					}
				}
				return nil
			}))
			report, err := Verify(after, "/ckpt")
			must(t, err)
			if !report.Whole() || report.LastGood != 8 {
				t.Errorf("%+v", report)
			}
		}
		check()
		d, err := Open(after, "/ckpt", small)
		must(t, err)
		defer d.Close()
		r, err := d.Recover(SinkState{Last: 8, Known: true})
		if err != nil || r.Action != PlanBatch || r.Batch != 9 {
			t.Errorf("%+v, %v", r, err)
		}
		must(t, d.Maintain())
		check()
		ids, err := d.Commits().IDs()
		must(t, err)
		if !slices.Equal(ids, []int64{6, 7, 8}) {
			t.Errorf("left are %v", ids)
		}
		if ids, err := d.Offsets().IDs(); err != nil || !slices.Equal(ids, []int64{6, 7, 8}) {
			t.Errorf("left are %v, %v", ids, err)
		}
	})
}

func TestHistory(t *testing.T) {
	t.Parallel()
	const n = 700
	m := vfs.NewMem()
	d := open(t, m, small)
	defer d.Close()
	for batch := int64(0); batch < n; batch += 5 {
		var commits []CommitEntry
		for id := batch; id < batch+5; id++ {
			commits = append(commits, commitOf(offsetsOf(id)))
		}
		must(t, d.history.add(commits))
		must(t, d.history.segs.merge())
	}
	last, err := d.History().Last()
	must(t, err)
	if last != n-1 {
		t.Errorf("newest is %d", last)
	}
	next := int64(0)
	for c, err := range d.History().Range(0, everything) {
		must(t, err)
		if want := commitOf(offsetsOf(next)); !reflect.DeepEqual(c, want) {
			t.Fatalf("got %+v, want %+v", c, want)
		}
		next++
	}
	if next != n {
		t.Errorf("%d batches", next)
	}
	got := []int64{}
	for c, err := range d.History().Range(498, 503) {
		must(t, err)
		got = append(got, c.Batch)
	}
	if !slices.Equal(got, []int64{498, 499, 500, 501, 502, 503}) {
		t.Errorf("range is %v", got)
	}
	if _, err := d.History().Get(n); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	live, stale, err := d.history.segs.list()
	must(t, err)
	if len(live) > 24 || len(stale) != 0 {
		t.Errorf("%d segments, %d left over", len(live), len(stale))
	}
	var size int64
	for _, s := range live {
		size += s.size
	}
	if perBatch := size / n; perBatch > 180 {
		t.Errorf("%d bytes a batch", perBatch)
	}
}

// What is folded is the same whether the commits are remembered or read.
func TestFoldRemembered(t *testing.T) {
	t.Parallel()
	contents := func(m *vfs.Mem) map[string]string {
		files := map[string]string{}
		must(t, vfs.Walk(m, "/ckpt", func(name string, e fs.DirEntry) error {
			if e.IsDir() {
				return nil
			}
			data, err := vfs.ReadFile(m, name)
			files[name] = string(data)
			return err
		}))
		return files
	}
	opts := small
	opts.ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
	remembered := contents(build(t, 40, opts))
	read := contents(buildBy(t, 40, opts, func(d *Dir, c *CommitEntry) error { return d.Prepared().Put(c.Batch, *c) }))
	if !reflect.DeepEqual(remembered, read) {
		t.Errorf("the files are %v, and %v", slices.Sorted(maps.Keys(remembered)), slices.Sorted(maps.Keys(read)))
	}
}

func TestSourceLog(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	d := open(t, m, small)
	defer d.Close()
	log, err := d.SourceLog(2, NoBatch)
	must(t, err)
	if id, err := log.Latest(); id != -1 || err != nil {
		t.Errorf("newest of none: %d, %v", id, err)
	}
	entry := func(id int64) string { return fmt.Sprintf("file %d\n\x00@1 2\n", id) }
	const n = 500
	for i := range int64(n) {
		id := 3 * i
		must(t, log.Put(id, []byte("first try")))
		must(t, log.Put(id, []byte(entry(id))))
		log.SetNamed(id)
		if err := log.Put(id, []byte("again")); !errors.Is(err, ErrExists) {
			t.Fatalf("a named entry is replaced: %v", err)
		}
		must(t, log.Compact())
	}
	check := func(log *SourceLog, after, upto int64) {
		t.Helper()
		want := max(0, (after+3)/3*3)
		for e, err := range log.Range(after, upto) {
			must(t, err)
			if e.ID != want || string(e.Data) != entry(want) {
				t.Fatalf("got %d %q, want %d", e.ID, e.Data, want)
			}
			want += 3
		}
		if end := max(min(upto/3*3, 3*n-3)+3, (after+3)/3*3); want != end {
			t.Errorf("(%d, %d] ends at %d, want %d", after, upto, want, end)
		}
	}
	check(log, -1, everything)
	check(log, 100, 200)
	check(log, 3*n-10, everything)
	check(log, 3*n, everything)
	again, err := d.SourceLog(2, 3*n-3)
	must(t, err)
	check(again, -1, everything)
	entries, err := m.ReadDir("/ckpt/sources/2")
	must(t, err)
	if len(entries) > keepSingle+foldSingle+3*mergeCount {
		t.Errorf("%d files", len(entries))
	}

	if err := log.Withdraw(3); err == nil {
		t.Error("joined entries can be withdrawn")
	}
	must(t, log.Put(3*n, []byte("x")))
	must(t, log.Withdraw(3*n-6))
	if id, err := log.Latest(); id != 3*n-6 || err != nil {
		t.Errorf("newest is %d, %v", id, err)
	}
	must(t, log.Put(3*n-3, []byte(entry(3*n-3))))
	check(log, -1, everything)
}

func TestSourceLogDamage(t *testing.T) {
	t.Parallel()
	m := build(t, 5, small)
	d := open(t, m, small)
	defer d.Close()
	log, err := d.SourceLog(0, 4)
	must(t, err)
	must(t, log.Put(5, []byte("not named")))
	must(t, log.Put(6, []byte("nor is this")))
	flip(t, m, "/ckpt/sources/0/5")
	log, err = d.SourceLog(0, 4)
	must(t, err)
	if id, err := log.Latest(); id != 4 || err != nil {
		t.Errorf("newest is %d, %v", id, err)
	}
	flip(t, m, "/ckpt/sources/0/3")
	log, err = d.SourceLog(0, 4)
	must(t, err)
	for _, err = range log.Range(-1, 4) {
		if err != nil {
			break
		}
	}
	wantCorrupt(t, err, "/ckpt/sources/0/3")
}

func TestCrashSourceLog(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	d := open(t, m, small)
	log, err := d.SourceLog(0, NoBatch)
	must(t, err)
	const n = keepSingle + foldSingle
	for id := range int64(n) {
		must(t, log.Put(id, []byte(num(id))))
	}
	must(t, d.Close())
	crashEverywhere(t, m, func(fsys vfs.FS, ack func(int)) error {
		log, err := openSourceLog(fsys, "/ckpt/sources/0", n-1)
		if err != nil {
			return err
		}
		if err := log.Compact(); err != nil {
			return err
		}
		if err := log.Put(n, []byte(num(n))); err != nil {
			return err
		}
		ack(1)
		if err := log.Withdraw(n - 2); err != nil {
			return err
		}
		ack(2)
		return nil
	}, func(after *vfs.Mem, acked int) {
		log, err := openSourceLog(after, "/ckpt/sources/0", n-2)
		must(t, err)
		next := int64(0)
		for e, err := range log.Range(-1, everything) {
			if err != nil || e.ID != next || string(e.Data) != num(next) {
				t.Errorf("entry %d: %+v, %v", next, e, err)
				return
			}
			next++
		}
		if next < n-1 || acked == 0 && next < n || acked == 2 && next != n-1 {
			t.Errorf("%d entries", next)
		}
		must(t, log.Compact())
		got := 0
		for _, err := range log.Range(-1, everything) {
			must(t, err)
			got++
		}
		if got != int(next) {
			t.Errorf("%d entries before joining, %d after", next, got)
		}
	})
}

func TestStateNames(t *testing.T) {
	t.Parallel()
	d := newDir(vfs.NewMem(), "c", small)
	seen := map[string]string{}
	for _, op := range []string{
		"agg(window_start)", "agg(Window_start)", "agg(a/b)", "agg(a%2Fb)", ".", "..", "", "a b", "a\x00b", "é", "x.tmp",
		strings.Repeat("k", 300), strings.Repeat("k", 301), strings.Repeat("k", 120),
	} {
		dir := d.StateDir(op)
		base, ok := strings.CutPrefix(dir, "c/state/")
		if !ok || base == "" || strings.Contains(base, "/") || len(base) > 200 || strings.HasPrefix(base, ".") || isTemp(base) {
			t.Errorf("%q has directory %q", op, dir)
		}
		key := strings.ToLower(base)
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q share %q", op, other, base)
		}
		seen[key] = op
	}
	if got := StateFileName("groups", Change, 12, 13); got != "groups.000000000013.change.parquet" {
		t.Error(got)
	}
	if got := StateFileName("groups", Change, 8, 13); got != "groups.000000000008-000000000013.change.parquet" {
		t.Error(got)
	}
	if got := StateFileName("groups", Snapshot, 0, 13); got != "groups.000000000013.snapshot.parquet" {
		t.Error(got)
	}
}

func TestSnapshotPolicy(t *testing.T) {
	t.Parallel()
	// A row takes 16 bytes.
	files := func(sizes ...int64) (list []StateFile) {
		for _, s := range sizes {
			list = append(list, StateFile{Size: s, Rows: s / 16})
		}
		return list
	}
	times := func(n int, size int64) (list []StateFile) {
		for range n {
			list = append(list, files(size)...)
		}
		return list
	}
	const all, never = 0, -1
	for _, tt := range []struct {
		name   string
		policy SnapshotPolicy
		files  []StateFile
		live   int64
		want   int // the first file, or never
	}{
		{"nothing", SnapshotPolicy{}, nil, 0, never},
		{"one file", SnapshotPolicy{}, files(16 << 20), 1 << 20, never},
		{"half of the rows were replaced", SnapshotPolicy{}, files(16<<20, 16<<20), 1 << 20, never},
		{"one more", SnapshotPolicy{}, files(16<<20, 16<<20, 16), 1 << 20, all},
		{"none was", SnapshotPolicy{}, files(16<<20, 16<<20, 16), 2<<20 + 1, never},
		{"all were, but they are few", SnapshotPolicy{}, files(1<<20, 4<<20), 1, never},
		{"all were", SnapshotPolicy{}, files(1<<20, 4<<20, 16), 1, all},
		{"two small", SnapshotPolicy{}, files(16, 16), 2, never},
		{"16 small", SnapshotPolicy{}, times(16, 16), 16, never},
		{"17 small", SnapshotPolicy{}, times(17, 16), 17, all},
		{"64 changes", SnapshotPolicy{}, append(files(1<<20), times(63, 1<<14)...), 1 << 20, never},
		{"65, as large as the base", SnapshotPolicy{}, times(65, 1<<20), 65 << 16, all},
		{"65, smaller than the base", SnapshotPolicy{}, append(files(1<<20), times(64, 1<<13)...), 1 << 20, 1},
		{"after joined changes", SnapshotPolicy{}, append(files(1<<20, 1<<19), times(63, 1<<12)...), 1 << 20, 2},
		{"as large as joined changes", SnapshotPolicy{}, append(files(1<<20, 1<<18), times(63, 1<<13)...), 1 << 20, 1},
		{"always", SnapshotPolicy{Always: true}, files(16, 1), 1, all},
		{"always one file", SnapshotPolicy{Always: true}, files(16), 1, never},
		{"any two changes", SnapshotPolicy{Changes: true}, files(16, 16, 16), 3, 1},
		{"one change", SnapshotPolicy{Changes: true}, files(16, 16), 2, never},
		{"never", SnapshotPolicy{Never: true}, times(65, 1<<20), 1, never},
	} {
		got, due := tt.policy.Due(tt.files, tt.live)
		if !due {
			got = never
		}
		if got != tt.want {
			t.Errorf("%s: from file %d on, want %d", tt.name, got, tt.want)
		}
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	d := open(t, m, small)
	defer d.Close()
	f, err := d.WriteState("op", StateFile{Table: "t", Kind: Snapshot, To: 1}, func(w io.Writer) error {
		for range 100_000 {
			if _, err := io.WriteString(w, "row\n"); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, err)
	if f.Size != 400_000 || f.Hash != HashBytes([]byte(read(t, m, d.StatePath("op", f)))) {
		t.Errorf("%+v", f)
	}
	r, err := d.OpenState("op", f)
	must(t, err)
	must(t, r.Close())
	_, err = d.WriteState("op", StateFile{Table: "u", Kind: Change, To: 1}, func(io.Writer) error { return io.ErrUnexpectedEOF })
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error is %v", err)
	}
	commit := commitOf(offsetsOf(0), OperatorState{Operator: "op", Version: 1, Files: []StateFile{f}})
	must(t, d.VerifyState(&commit))
	if commit.State[0].Bytes() != 400_000 || len(commit.State[0].TableFiles("t")) != 1 || commit.State[0].TableFiles("u") != nil {
		t.Errorf("%+v", commit.State[0])
	}
	must(t, d.Prepared().Put(0, commit))

	write(t, m, "/ckpt/state/op/old.parquet", "x")
	write(t, m, "/ckpt/state/op/notes.txt", "x")
	write(t, m, "/ckpt/state/op/u.000000000009.snapshot.parquet", "x")
	must(t, d.CollectState(OperatorState{Operator: "op", Files: []StateFile{{Name: "u.000000000009.snapshot.parquet"}}}))
	var names []string
	entries, err := m.ReadDir("/ckpt/state/op")
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"notes.txt", f.Name, "u.000000000009.snapshot.parquet"}; !slices.Equal(names, want) {
		t.Errorf("left are %v", names)
	}

	name := d.StatePath("op", f)
	flip(t, m, name)
	wantCorrupt(t, d.VerifyState(&commit), name)
	cut(t, m, name, false)
	wantCorrupt(t, d.VerifyState(&commit), name)
	remove(t, m, name)
	wantCorrupt(t, d.VerifyState(&commit), name)
	_, err = d.OpenState("op", f)
	wantCorrupt(t, err, name)
}

func TestPlan(t *testing.T) {
	t.Parallel()
	change := func(edit func(*Plan)) Plan {
		p := testPlan()
		edit(&p)
		return p
	}
	op := func(edit func(*Operator)) Plan { return change(func(p *Plan) { edit(&p.Operators[0]) }) }
	reads := func(edit func(*Reads)) Plan {
		return op(func(o *Operator) {
			o.Reads = testReads()
			edit(o.Reads)
		})
	}
	tests := []struct {
		name string
		now  Plan
		want string // part of the refusal; "" is accepted
	}{
		{"unchanged", testPlan(), ""},
		{"column renamed", op(func(o *Operator) { o.Tables[0].Value[0].Name = "n" }), ""},
		{"column may be null", op(func(o *Operator) { o.Tables[0].Value[0].Nullable = true }), ""},
		{"pinned columns widened", change(func(p *Plan) {
			p.Sources[0].Schemas = append(p.Sources[0].Schemas, SourceSchema{Version: 2})
		}), ""},
		{"operator gone", change(func(p *Plan) { p.Operators = nil }), "operator agg(window_start): it is gone"},
		{"operator new", change(func(p *Plan) {
			p.Operators = append(p.Operators, Operator{Name: "dedup(id)"})
		}), "operator dedup(id): it is new"},
		{"kind", op(func(o *Operator) { o.Kind = "dedupe" }), "it was stateStoreSave and is now dedupe"},
		{"aggregate", op(func(o *Operator) { o.Fingerprint = "f2"; o.Text = "sum(price)" }),
			"it was count(*), max(price) by window_start, channel and is now sum(price)"},
		{"kept less", op(func(o *Operator) {
			o.Former, o.Fingerprint, o.Text = o.Text, "f2", "count(*), max(price), first(channel)"
		}),
			"operator agg(window_start): an earlier engine made its state, which does not hold how"},
		{"meaning", op(func(o *Operator) { o.Fingerprint = "f2" }), "its meaning changed"},
		{"key type", op(func(o *Operator) { o.Tables[0].Key[1].Type = "BIGINT" }),
			"operator agg(window_start): key column channel was VARCHAR and is now BIGINT"},
		{"key gone", op(func(o *Operator) { o.Tables[0].Key = o.Tables[0].Key[:1] }),
			"its key columns were (window_start TIMESTAMP, channel VARCHAR) and are now (window_start TIMESTAMP)"},
		{"state type", op(func(o *Operator) { o.Tables[0].Value[1].Type = "DOUBLE" }), "state column max was BIGINT and is now DOUBLE"},
		{"not null", op(func(o *Operator) { o.Tables[0].Value[1].Nullable = false }), "state column max could be null"},
		{"table gone", op(func(o *Operator) { o.Tables[0].Name = "other" }), "its state table groups is gone"},
		{"table new", op(func(o *Operator) { o.Tables = append(o.Tables, StateTable{Name: "x"}) }), "its state has a new table"},
		{"reads of another form", reads(func(r *Reads) { r.Form, r.Rows = ReadsForm+1, nil }), ""},
		{"reads not told", op(func(o *Operator) { o.Reads = nil }), ""},
		{"reads a column more", reads(func(r *Reads) { r.Columns = append(r.Columns, ReadColumn{"x", "y"}) }), ""},
		{"column", reads(func(r *Reads) { r.Columns[0].Text = "upper(bids.channel)" }),
			"operator agg(window_start): channel was read as bids.channel and is now read as upper(bids.channel)"},
		{"filter", reads(func(r *Reads) { r.Rows[0] = "Filter bids.price > 1" }), ""},
		{"filter gone", reads(func(r *Reads) { r.Rows = r.Rows[1:] }), ""},
		{"limit below", reads(func(r *Reads) { r.Rows = append(r.Rows, "  Limit 3") }),
			"its rows were read without [Limit 3] and are now read with it"},
		{"limit and filter below", reads(func(r *Reads) { r.Rows = []string{"Limit 3", "  StreamScan bids"} }),
			"its rows were read with [Filter bids.price > 0] and are now read with [Limit 3]"},
		{"source path", change(func(p *Plan) { p.Sources[0].Identity = "elsewhere" }),
			`source bids: it was "landing/bids" and is now "elsewhere"`},
		{"source kind", change(func(p *Plan) { p.Sources[0].Kind = "rate" }), "it was filesystem and is now rate"},
		{"source gone", change(func(p *Plan) { p.Sources = nil }), "source bids: it is gone"},
		{"source new", change(func(p *Plan) { p.Sources = append(p.Sources, Source{Name: "clicks"}) }), "source clicks: it is new"},
		{"setting", change(func(p *Plan) { p.Settings["watermark_policy"] = "max" }),
			`setting watermark_policy: it was "min" and is now "max"`},
	}
	base := build(t, 2, small)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := base.Clone()
			before := tree(t, m, "/ckpt")
			d := open(t, m, small)
			defer d.Close()
			err := d.CheckPlan(tt.now)
			if tt.want == "" {
				must(t, err)
				got, err := d.Plan()
				must(t, err)
				if !samePlan(got, tt.now) {
					t.Errorf("plan.json has %+v", got)
				}
				return
			}
			if !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "/ckpt") {
				t.Errorf("error is %v, want %s", err, tt.want)
			}
			if after := tree(t, m, "/ckpt"); !maps.Equal(before, after) {
				t.Error("a refused query changed the checkpoint")
			}
		})
	}
}

func TestPlanLost(t *testing.T) {
	t.Parallel()
	other := testPlan()
	other.Settings["x"] = "y"
	for what, damage := range map[string]func(*vfs.Mem){
		"missing": func(m *vfs.Mem) { remove(t, m, "/ckpt/plan.json") },
		"flipped": func(m *vfs.Mem) { flip(t, m, "/ckpt/plan.json") },
		"empty":   func(m *vfs.Mem) { cut(t, m, "/ckpt/plan.json", true) },
	} {
		m := build(t, 2, small)
		good := read(t, m, "/ckpt/plan.json")
		damage(m)
		d := open(t, m, small)
		err := d.CheckPlan(other)
		wantCorrupt(t, err, "/ckpt/plan.json")
		flip(t, m, "/ckpt/offsets/1")
		must(t, d.CheckPlan(testPlan()))
		if got := read(t, m, "/ckpt/plan.json"); got != good {
			t.Errorf("%s: plan.json is %s", what, got)
		}
		must(t, d.Close())
	}
	// Without batches a plan is free to change.
	m := vfs.NewMem()
	d := open(t, m, small)
	defer d.Close()
	must(t, d.CheckPlan(testPlan()))
	must(t, d.CheckPlan(other))
	got, err := d.Plan()
	must(t, err)
	if !samePlan(got, other) {
		t.Errorf("plan.json has %+v", got)
	}
}

// TestPlanWithoutReads opens the checkpoint of an engine that did not write what operators
// read: it is accepted and gets it, also if plan.json is lost.
func TestPlanWithoutReads(t *testing.T) {
	t.Parallel()
	old := testPlan().withoutReads()
	m := vfs.NewMem()
	d := open(t, m, small)
	defer d.Close()
	must(t, d.CheckPlan(old))
	e := offsetsOf(0)
	e.Plan = old.Fingerprint()
	must(t, d.Offsets().Add(0, e))
	for _, damage := range []func(){func() {}, func() { remove(t, m, "/ckpt/plan.json") }} {
		damage()
		must(t, d.CheckPlan(testPlan()))
		got, err := d.Plan()
		must(t, err)
		if !samePlan(got, testPlan()) {
			t.Errorf("plan.json has %+v", got)
		}
	}
	edited := testPlan()
	edited.Operators[0].Reads.Rows = nil
	if err := d.CheckPlan(edited); !errors.Is(err, ErrIncompatible) {
		t.Errorf("error is %v", err)
	}
}

// TestPlanNotes tells other filters, which are allowed, and nothing else.
func TestPlanNotes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ rows, want string }{
		{"Filter bids.price > 0\nStreamScan bids", ""},
		{"StreamScan bids", "[Filter bids.price > 0] and are now read without it"},
		{"Filter bids.price > 0\nFilter bids.price < 9\nStreamScan bids", "without [Filter bids.price < 9] and are now read with it"},
		{"Filter bids.price > 1\nStreamScan bids", "with [Filter bids.price > 0] and are now read with [Filter bids.price > 1]"},
		{"Limit 3", ""}, // refused
	} {
		now := testPlan()
		now.Operators[0].Reads.Rows = strings.Split(tt.rows, "\n")
		notes := strings.Join(testPlan().Notes(now), "\n")
		if !strings.Contains(notes, tt.want) || (tt.want == "") != (notes == "") {
			t.Errorf("%q: %q, want %q", tt.rows, notes, tt.want)
		}
		if old := testPlan().withoutReads(); len(old.Notes(now)) > 0 {
			t.Errorf("of an old checkpoint %q is told", old.Notes(now))
		}
	}
}

func TestErrorIsBounded(t *testing.T) {
	t.Parallel()
	err := incompatible("ckpt", slices.Repeat([]string{"reason"}, 500)...)
	if len(err.Error()) > 300 || !strings.Contains(err.Error(), "492 more") {
		t.Errorf("error is %s", err)
	}
}
