package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ptr(v int64) *int64 { return &v }

const testID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"

// small folds early, so that tests see histories.
var small = Options{Retain: 3, FoldEvery: 2, ID: testID, Engine: "test"}

func open(t testing.TB, fsys vfs.FS, opts Options) *Dir {
	t.Helper()
	d, err := Open(fsys, "/ckpt", opts)
	must(t, err)
	return d
}

// offsetsOf is the intent of a batch that reads one file.
func offsetsOf(batch int64) OffsetEntry {
	e := OffsetEntry{
		Batch: batch, Query: testID, Time: 1_704_067_200_000_000 + batch*10_000_000, Seed: uint64(1000 + batch),
		Maxima: map[string]int64{},
		Sources: []SourceRange{{
			Name: "bids", Start: offset(batch - 1), End: offset(batch), LastEntry: batch,
		}},
		Tables:        []TableFiles{},
		SchemaVersion: 1, Plan: "plan", Settings: map[string]string{"time_zone": "UTC"},
	}
	if batch > 0 {
		e.LateWatermark = ptr(batch - 1)
		e.EvictionWatermark = ptr(batch)
		e.Maxima["watermark(ts)"] = batch
	}
	return e
}

func offset(n int64) connector.Offset {
	if n < 0 {
		return ""
	}
	return connector.Offset(fmt.Sprintf(`{"logOffset":%d}`, n))
}

// commitOf is what that batch left.
func commitOf(e OffsetEntry, state ...OperatorState) CommitEntry {
	if state == nil {
		state = []OperatorState{}
	}
	return CommitEntry{
		Batch: e.Batch, Offsets: e, State: state, NextWatermark: ptr(e.Batch + 1),
		Maxima:  map[string]int64{"watermark(ts)": e.Batch + 1},
		Sources: []SourceEnd{{Name: "bids", End: e.Sources[0].End, Rows: 10}},
		Inputs: []InputFile{{
			Source: "bids", Path: fmt.Sprintf("landing/bids/%04d.csv", e.Batch), Size: 100 + e.Batch,
			ModTime: e.Time, Hash: HashBytes([]byte{byte(e.Batch)}), Rows: 10,
		}},
		Counters: Counters{In: 10, Out: 5},
	}
}

const testOp = "agg(window_start)"

// stateAfter writes the state of the version after a batch: a change for each, and
// a snapshot at version 4.
func stateAfter(t testing.TB, d *Dir, last *CommitEntry, batch int64) OperatorState {
	t.Helper()
	s, err := writeStateAfter(d, last, batch)
	must(t, err)
	return s
}

func writeStateAfter(d *Dir, last *CommitEntry, batch int64) (OperatorState, error) {
	before, _ := last.StateOf(testOp)
	version := batch + 1
	s := OperatorState{Operator: testOp, Version: version}
	s.Files = append(s.Files, before.Files...)
	kind, from := Change, batch
	if version == 4 {
		kind, from = Snapshot, 0
		s.Files = nil
	}
	f, err := d.WriteState(testOp, StateFile{Table: "groups", Kind: kind, From: from, To: version, Rows: 3},
		func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "state of version %d", version)
			return err
		})
	s.Files = append(s.Files, f)
	return s, err
}

// build makes a checkpoint with n committed batches, in directory /ckpt of a Mem.
func build(t testing.TB, n int64, opts Options) *vfs.Mem {
	t.Helper()
	return buildBy(t, n, opts, (*Dir).Prepare)
}

// buildBy is build with another way to write prepared/N.
func buildBy(t testing.TB, n int64, opts Options, prepare func(*Dir, *CommitEntry) error) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	d := open(t, m, opts)
	must(t, d.CheckPlan(testPlan()))
	log, err := d.SourceLog(0, NoBatch)
	must(t, err)
	var last *CommitEntry
	for batch := range n {
		must(t, log.Put(batch, []byte(fmt.Sprintf("file %d\n", batch))))
		e := offsetsOf(batch)
		e.Plan = testPlan().Fingerprint()
		must(t, d.Offsets().Add(batch, e))
		log.SetNamed(batch)
		c := commitOf(e, stateAfter(t, d, last, batch))
		must(t, prepare(d, &c))
		must(t, d.Commit(batch))
		must(t, d.Maintain())
		must(t, log.Compact())
		last = &c
	}
	must(t, d.Close())
	return m
}

func testPlan() Plan {
	return Plan{
		Operators: []Operator{{
			Name: testOp, Kind: "stateStoreSave", Fingerprint: "f1", Text: "count(*), max(price) by window_start, channel",
			Reads: testReads(),
			Tables: []StateTable{{
				Name:  "groups",
				Key:   []Field{{Name: "window_start", Type: "TIMESTAMP"}, {Name: "channel", Type: "VARCHAR", Nullable: true}},
				Value: []Field{{Name: "count", Type: "BIGINT"}, {Name: "max", Type: "BIGINT", Nullable: true}},
			}},
		}},
		Sources: []Source{{
			Name: "bids", Kind: "filesystem", Identity: "landing/bids",
			Schemas: []SourceSchema{{
				Version: 1,
				Columns: []Field{{Name: "ts", Type: "TIMESTAMP", Nullable: true}, {Name: "price", Type: "BIGINT", Nullable: true}},
				Options: map[string]string{"header": "true"},
			}},
		}},
		Settings: map[string]string{"output_mode": "append", "time_zone": "UTC", "watermark_policy": "min"},
	}
}

func testReads() *Reads {
	return &Reads{
		Form:    ReadsForm,
		Columns: []ReadColumn{{Name: "channel", Text: "bids.channel"}, {Name: "max(price)", Text: "max(bids.price)"}},
		Rows:    []string{"Filter bids.price > 0", "StreamScan bids"},
	}
}

// tree lists all files with their content, for comparison.
func tree(t testing.TB, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, vfs.Walk(fsys, dir, func(name string, e fs.DirEntry) error {
		if e.IsDir() {
			return nil
		}
		data, err := vfs.ReadFile(fsys, name)
		files[strings.TrimPrefix(name, dir+"/")] = string(data)
		return err
	}))
	return files
}

func write(t testing.TB, fsys vfs.FS, name, data string) {
	t.Helper()
	must(t, vfs.WriteAtomic(fsys, name, []byte(data)))
}

func read(t testing.TB, fsys vfs.FS, name string) string {
	t.Helper()
	data, err := vfs.ReadFile(fsys, name)
	must(t, err)
	return string(data)
}

func remove(t testing.TB, fsys vfs.FS, name string) {
	t.Helper()
	must(t, fsys.Remove(name))
}

// cut leaves the first half of a file; to 0 bytes with zero set.
func cut(t testing.TB, fsys vfs.FS, name string, zero bool) {
	t.Helper()
	data := read(t, fsys, name)
	if zero {
		write(t, fsys, name, "")
		return
	}
	write(t, fsys, name, data[:len(data)/2])
}

// flip changes one byte in the middle of a file.
func flip(t testing.TB, fsys vfs.FS, name string) {
	t.Helper()
	data := []byte(read(t, fsys, name))
	data[len(data)/2] ^= 0x20
	write(t, fsys, name, string(data))
}

func num(n int64) string { return strconv.FormatInt(n, 10) }

// wantCorrupt checks that err is ErrCorrupt and names the file.
func wantCorrupt(t testing.TB, err error, file string) {
	t.Helper()
	var c *CorruptError
	if !errors.Is(err, ErrCorrupt) || !errors.As(err, &c) {
		t.Fatalf("error is %v, want ErrCorrupt", err)
	}
	if c.Path != file || !strings.Contains(err.Error(), file) {
		t.Fatalf("error is %v, want one about %s", err, file)
	}
}
