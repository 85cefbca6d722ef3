package file

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

var (
	benchFiles = flag.Int("files", 20_000, "how many files BenchmarkManyFiles makes")
	benchTree  = flag.String("tree", "", "a directory of files for BenchmarkManyFiles, instead of making some")
)

// BenchmarkManyFiles lists a tree of files in 100 folders, takes batches of 10,000 from it,
// lists it again with 1000 new ones in one folder, and opens the source anew. With -files
// 1000000 (the process peaks at about 300 MB):
//
//	go test ./formats/file -run '^$' -bench ManyFiles -benchtime 1x -files 1000000
func BenchmarkManyFiles(b *testing.B) {
	dir := *benchTree
	if dir == "" {
		dir = b.TempDir()
		makeFiles(b, dir, 0, *benchFiles)
	}
	fsys := vfs.OS()
	for b.Loop() {
		w := newWorld(b)
		env := w.env("path", dir, "format", "csv")
		env.FS, env.Now = fsys, time.Now
		env.Columns, env.Log = schemaOf("a:bigint"), connectortest.NewLog()
		limit := connector.Limit{Files: 10_000}
		before := heapBytes()
		start := time.Now()
		s, err := OpenSource(b.Context(), testFormats, env)
		if err != nil {
			b.Fatal(err)
		}
		at, err := s.LatestOffset(b.Context(), "", limit)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/first")
		b.ReportMetric(float64(heapBytes()-before)/1e6, "MB/waiting")
		start = time.Now()
		for last := connector.Offset(""); at != last; {
			last = at
			if at, err = s.LatestOffset(b.Context(), at, limit); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/all-batches")
		b.ReportMetric(float64(heapBytes()-before)/1e6, "MB/seen")
		makeFiles(b, filepath.Join(dir, "new"), 0, 1000)
		start = time.Now()
		if at, err = s.LatestOffset(b.Context(), at, connector.Limit{}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/later")
		start = time.Now()
		if _, err = s.LatestOffset(b.Context(), at, connector.Limit{}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/nothing-new")
		start = time.Now()
		if s, err = OpenSource(b.Context(), testFormats, env); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/reopen")
		if s.seen.len() < *benchFiles {
			b.Fatalf("%d files are known", s.seen.len())
		}
		if err := os.RemoveAll(filepath.Join(dir, "new")); err != nil {
			b.Fatal(err)
		}
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func makeFiles(b *testing.B, dir string, from, n int) {
	b.Helper()
	for i := from; i < from+n; i++ {
		folder := filepath.Join(dir, fmt.Sprintf("d%03d", i%100))
		if i < from+100 {
			if err := os.MkdirAll(folder, 0o777); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("part-%09d-of-an-upload.json", i)), []byte("{\"a\":1}\n"), 0o666); err != nil {
			b.Fatal(err)
		}
	}
}

// Many small files are looked at only when they are read, in runs; what comes of them is
// the same, also where a file is larger, empty, passed over by a filter, or skipped.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	names := map[string]bool{}
	for i := range manyFiles + 10 {
		name, text := fmt.Sprintf("in/k=%d/%04d.csv", i%2, i), fmt.Sprintf("v\n%d\n", i)
		switch i {
		case 500:
			text = "v\n" + strings.Repeat("0", fewBytes) + "500\n"
		case 501:
			text = ""
		}
		w.writeAt(i, name, text)
		names[name] = true
		if text != "" {
			want = append(want, fmt.Sprintf("%d|%d", i, i%2))
		}
	}
	table := w.table(w.env("path", "in"))
	equal(t, "rows", w.rows(table), want)
	equal(t, "one column twice", w.rows(table, 1, 1)[:2], []string{"0|0", "1|1"})
	s := w.stream()
	for i, row := range want {
		want[i], _, _ = strings.Cut(row, "|") // the stream declares one column
	}
	equal(t, "rows of a stream", s.next(connector.Limit{}), want)
	hashes := s.hashes("")
	for _, f := range hashes {
		id := f.FileIdentity
		env := w.env()
		if sum, err := hashFile(t.Context(), &env, id); err != nil || sum != f.Hash || !names[f.Path] {
			t.Fatalf("%s: hash %q, want %q, %v", f.Path, f.Hash, sum, err)
		}
	}
	if len(hashes) != len(names) {
		t.Errorf("%d hashes of %d files", len(hashes), len(names))
	}
	units, err := s.source.Units(t.Context(), "", s.at, connector.ScanRequest{Again: true})
	if err != nil || len(units) > len(names)/runOfFiles+4 {
		t.Errorf("%d units, %v", len(units), err)
	}
}

// The units of a run are the same in a later process, which reads them from the log, and
// leave out what is skipped.
func TestManyLoggedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for i := range 2 * manyFiles {
		w.writeAt(i, fmt.Sprintf("in/%04d.csv", i), fmt.Sprintf("v\n%d\n", i/2)) // each content twice
		if i%2 == 0 {
			want = append(want, fmt.Sprint(i/2))
		}
	}
	s := w.stream("same_content", "skip")
	equal(t, "rows", s.next(connector.Limit{}), want)
	s.source.planned.Data = nil
	again, err := s.between("", s.at)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "rows of the logged entry", again, want)
}
