package file

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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

// Many small files are looked at only when they are read; what comes of them is the same.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for i := range manyFiles + 10 {
		w.writeAt(i, fmt.Sprintf("in/k=%d/%04d.csv", i%2, i), fmt.Sprintf("v\n%d\n", i))
		want = append(want, fmt.Sprintf("%d|%d", i, i%2))
	}
	table := w.table(w.env("path", "in"))
	equal(t, "rows", w.rows(table), want)
	equal(t, "one column twice", w.rows(table, 1, 1)[:2], []string{"0|0", "1|1"})
	s := w.stream()
	if got := s.next(connector.Limit{}); len(got) != len(want) {
		t.Errorf("%d rows of a stream, want %d", len(got), len(want))
	}
	if hashes := s.source.Hashes("", s.at); len(hashes) != len(want) || len(hashes[0].Hash) != 32 {
		t.Errorf("%d hashes", len(hashes))
	}
}
