package file

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// follow is a stream over an output, and what it read.
type follow struct {
	*stream
	read []string
}

func (w *world) follow(dir string, options ...string) *follow {
	w.t.Helper()
	return &follow{stream: w.stream(append([]string{"path", dir}, options...)...)}
}

// poll reads what is new, and returns the names of the files.
func (f *follow) poll() ([]string, error) {
	end, err := f.source.LatestOffset(f.t.Context(), f.at, connector.Limit{})
	if err != nil || end == f.at {
		return nil, err
	}
	files, err := f.source.Files(f.t.Context(), f.at, end)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, id := range files {
		names = append(names, id.Path)
	}
	f.at = end
	f.read = append(f.read, names...)
	return names, nil
}

func (f *follow) expectFiles(want ...string) {
	f.t.Helper()
	got, err := f.poll()
	if err != nil {
		f.t.Fatal(err)
	}
	equal(f.t, "files", got, want)
}

func partName(batch int) string { return fmt.Sprintf("out/part-%020d-000.csv", batch) }

// A stream over an output reads what is committed in it: not what somebody laid there, nor
// a batch that is decided and no more; in the order of the batches, across compactions of
// the manifest, and each file once, restarted or not.
func TestFollowOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeAt(1, "out/mine.csv", "v\n99\n")
	f := w.follow("out")
	f.expectFiles("out/mine.csv") // a folder like any other, until a query writes into it
	sink := w.sink(w.env("path", "out", "format", "csv"))
	sink.least = 3
	f.expectFiles()
	w.write("out/more.csv", "v\n98\n")
	w.publish(sink, w.batch(0, connector.Append, "v:bigint\n1\n", "late", "v:bigint\n7\n"))
	f.expectFiles(partName(0))
	w.publish(sink, w.batch(1, connector.Append, "v:bigint\n"))
	f.expectFiles()
	for id := 2; id < 20; id++ {
		w.publish(sink, w.batch(int64(id), connector.Append, "v:bigint\n1\n"))
		if id%7 == 0 {
			f.open()
		}
		f.expectFiles(partName(id))
	}
	for id := 20; id < 30; id++ {
		w.publish(sink, w.batch(int64(id), connector.Append, "v:bigint\n1\n"))
	}
	if got, err := f.poll(); err != nil || len(got) != 10 {
		t.Errorf("%d files of ten batches, %v", len(got), err)
	}
	sink.least = 1000
	w.publish(sink, w.batch(30, connector.Append, "v:bigint\n1\n"))
	for _, move := range [][2]string{{"manifest/30", "pending/30"}, {"pending/30", "manifest/30"}} {
		if err := w.mem.Rename("out/.tidemill/"+move[0], "out/.tidemill/"+move[1]); err != nil {
			t.Fatal(err)
		}
		if move[1] == "pending/30" {
			f.expectFiles()
			f.open()
			f.expectFiles()
		}
	}
	f.expectFiles(partName(30))
	if len(w.warnings) > 0 {
		t.Errorf("warnings: %q", w.warnings)
	}
}

// What a stream over an output finds out only while it runs, or reads with care.
func TestFollowOddOutputs(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T, mode connector.OutputMode, options ...string) (*world, *follow) {
		w := newWorld(t)
		f := w.follow("out", options...)
		f.expectFiles()
		env := w.env("path", "out", "format", "csv")
		env.Mode = mode
		sink := w.sink(env)
		w.publish(sink, w.batch(0, mode, "v:bigint\n1\n"))
		if mode == connector.Append && options == nil {
			f.expectFiles(partName(0))
			w.publish(sink, w.batch(1, mode, "v:bigint\n1\n"))
		}
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
		return w, f
	}
	t.Run("complete", func(t *testing.T) {
		t.Parallel()
		_, f := begin(t, connector.Complete)
		_, err := f.poll()
		wantError(t, err, "out", "output_mode = 'complete'", "read it as a table")
	})
	t.Run("complete without its id", func(t *testing.T) {
		t.Parallel()
		w, f := begin(t, connector.Complete)
		if err := w.mem.Remove("out/.tidemill/id"); err != nil {
			t.Fatal(err)
		}
		_, err := f.poll()
		wantError(t, err, "output_mode = 'complete'")
	})
	t.Run("cleaned", func(t *testing.T) {
		t.Parallel()
		w, f := begin(t, connector.Append, "clean_source", "delete")
		_, err := f.poll()
		wantError(t, err, "clean_source", "the output of a query")
		if !w.exists(partName(0)) {
			t.Error("the output is cleaned away")
		}
	})
	t.Run("damaged", func(t *testing.T) {
		t.Parallel()
		w, f := begin(t, connector.Append)
		w.write("out/.tidemill/manifest/1", "{}")
		_, err := f.poll()
		var refused *connector.RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("a damaged manifest gives %v", err)
		}
		wantError(t, err, "out/.tidemill/manifest/1")
	})
	t.Run("entry missing", func(t *testing.T) {
		t.Parallel()
		w, f := begin(t, connector.Append)
		f.expectFiles(partName(1))
		if err := w.mem.Rename("out/.tidemill/manifest/1", "out/.tidemill/manifest/3"); err != nil {
			t.Fatal(err)
		}
		_, err := f.poll()
		wantError(t, err, "the entry of batch 1 is missing")
	})
	t.Run("manifest gone", func(t *testing.T) {
		t.Parallel()
		w, f := begin(t, connector.Append)
		w.removeAll("out/.tidemill/manifest")
		f.expectFiles(partName(1))
		f.expectFiles()
		if len(w.warnings) != 1 || !strings.Contains(w.warnings[0], "manifest is gone") {
			t.Errorf("warnings: %q", w.warnings)
		}
	})
	t.Run("file gone", func(t *testing.T) {
		t.Parallel()
		w, f := begin(t, connector.Append)
		for id := range 2 {
			if err := w.mem.Remove(partName(id)); err != nil {
				t.Fatal(err)
			}
		}
		f.expectFiles()
		f.expectFiles()
		if len(w.warnings) != 1 || !strings.Contains(w.warnings[0], partName(1)) {
			t.Errorf("warnings: %q", w.warnings)
		}
	})
	t.Run("made anew", func(t *testing.T) {
		t.Parallel()
		w, f := begin(t, connector.Append)
		f.expectFiles(partName(1))
		w.removeAll("out")
		f.expectFiles()
		env := w.env("path", "out", "format", "csv")
		env.QueryID = "another"
		sink := w.sink(env)
		w.publish(sink, w.batch(0, connector.Append, "v:bigint\n1234\n"))
		_, err := f.poll()
		wantError(t, err, partName(0)) // it was read, and is another one now
	})
}

// Files that were joined into others are read in one form or the other, never in both.
func TestFollowReplacedFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		readFirst int // batches that are read before the join
		want      string
	}{
		"none read": {0, "out/joined.csv out/part-00000000000000000004-000.csv"},
		"all read":  {3, "out/part-00000000000000000004-000.csv"},
		"one read":  {1, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := w.follow("out")
			sink := w.sink(w.env("path", "out", "format", "csv"))
			var removed []string
			for id := range 3 {
				w.publish(sink, w.batch(int64(id), connector.Append, "v:bigint\n1\n"))
				if id < c.readFirst {
					f.expectFiles(partName(id))
				}
				removed = append(removed, strings.TrimPrefix(partName(id), "out/"))
			}
			w.write("out/joined.csv", "v\n1\n1\n1\n")
			data, err := encodeEntry(manifestEntry{Kind: kindReplace, Batch: 3, Removed: removed, Files: []outFile{{Path: "joined.csv", Size: 8, Rows: 3, Hash: "h"}}})
			if err != nil {
				t.Fatal(err)
			}
			w.write("out/.tidemill/manifest/3", string(data))
			w.publish(w.sinkAgain(sink), w.batch(4, connector.Append, "v:bigint\n1\n"))
			for range 2 {
				got, err := f.poll()
				if err != nil {
					got = []string{"error"}
					wantError(t, err, "batch 3", "joined.csv")
				}
				if strings.Join(got, " ") != c.want && (len(got) > 0 || c.want == "error") {
					t.Errorf("files: %q, want %s", got, c.want)
				}
				f.open()
			}
		})
	}
}

// sinkAgain closes a sink and opens it as the next process does.
func (w *world) sinkAgain(s *Sink) *Sink {
	w.t.Helper()
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
	return w.sink(w.env("path", "out", "format", "csv"))
}

// The writer is killed at every call while a stream reads its output, and runs again: the
// stream reads only what was committed at that moment, and in the end each file once.
func TestFollowCrashedWriter(t *testing.T) {
	t.Parallel()
	for name, c := range crashScenarios {
		if c.mode != connector.Append {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			final, _ := c.allowed(t)
			var want []string
			for f := range final {
				if strings.HasPrefix(f, "out/x/") {
					want = append(want, f)
				}
			}
			slices.Sort(want)
			counting := faultfs.New(vfs.NewMem())
			w := newWorld(t)
			w.mem, w.fs = vfs.NewMem(), counting
			committed := int64(0)
			if err := c.run(t, w, &committed); err != nil {
				t.Fatal(err)
			}
			calls, _ := counting.Calls()
			for k := range calls {
				c.followCrash(t, k, want)
			}
		})
	}
}

func (c *crashScenario) followCrash(t *testing.T, k int, want []string) {
	t.Helper()
	w := newWorld(t)
	reader := *w
	f := reader.follow("out/x", "rescan_every", "1 day")
	look := func() {
		names, err := f.poll()
		if err != nil {
			t.Fatalf("crash at %d: the reader: %v", k, err)
		}
		list, _, err := Published(w.mem, "out/x")
		if len(names) > 0 && err != nil {
			t.Fatalf("crash at %d: %v", k, err)
		}
		for _, name := range names {
			if !slices.ContainsFunc(list, func(p Publication) bool {
				return slices.ContainsFunc(p.Files, func(f PublishedFile) bool { return f.Path == name })
			}) {
				t.Fatalf("crash at %d: %s was read and is not committed", k, name)
			}
		}
	}
	w.fs = watchFS{faultfs.New(w.mem, faultfs.Rule{Action: faultfs.Crash, When: faultfs.Nth(k, faultfs.Mutating())}), look}
	committed := int64(0)
	if err := c.run(t, w, &committed); err != nil && !errors.Is(err, faultfs.ErrCrashed) {
		t.Fatalf("crash at %d: %v", k, err)
	}
	look()
	w.mem = w.mem.Crash(uint64(k), 1) // the process is gone, and its locks with it
	reader.mem, reader.fs = w.mem, w.mem
	f.open()
	look()
	w.fs = watchFS{w.mem, look}
	if err := c.run(t, w, &committed); err != nil {
		t.Fatalf("crash at %d: recovery: %v", k, err)
	}
	look()
	slices.Sort(f.read)
	equal(t, fmt.Sprintf("files read after a crash at %d", k), f.read, want)
}
