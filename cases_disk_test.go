package tidemill_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
)

// A disk that is full from some write on ends a query with 1, or 3 where it is found on
// start, and names the file and the system's reason; once there is room again the rest
// follows, nothing twice.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	const job = `CREATE STREAM t (id BIGINT, v BIGINT) WITH (path = '/in', format = 'csv', header = true, max_files_per_trigger = 1);
CREATE SINK o WITH (path = '/out', format = 'csv');
INSERT INTO o SELECT DISTINCT ON (id) id, v FROM t;
`
	const most = 200
	for n := 1; n <= most; n++ {
		disk := vfs.NewMem()
		for i := range 3 {
			put(t, disk, fmt.Sprintf("/in/%d.csv", i), fmt.Sprintf("id,v\n%d,1\n%d,2\n", i, i+10))
		}
		full := faultfs.New(disk, faultfs.MustParse(fmt.Sprintf("(error ENOSPC (from %d write))", n)))
		err := runScript(t, full, job)
		if err == nil {
			if n < 10 {
				t.Fatalf("only %d writes", n)
			}
			return
		}
		if kind := tidemill.KindOf(err); kind != tidemill.FailedError && kind != tidemill.RefusalError {
			t.Errorf("write %d: exit code %d: %v", n, kind, err)
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), "/out") {
			t.Errorf("write %d: %v", n, err)
		}
		if err := runScript(t, disk, job); err != nil {
			t.Errorf("write %d: with room again: %v", n, err)
			continue
		}
		if got, want := outputLines(t, disk, "/out"), "0,1 1,1 10,2 11,2 12,2 2,1"; got != want {
			t.Errorf("write %d: got %s, want %s", n, got, want)
		}
	}
	t.Errorf("more than %d writes", most)
}

// runScript runs a file of SQL over a filesystem until it has drained.
func runScript(t *testing.T, disk vfs.FS, text string) error {
	t.Helper()
	s, err := tidemill.NewSession(tidemill.Options{}.WithFS(disk))
	if err != nil {
		t.Fatal(err)
	}
	trigger := tidemill.AvailableNow()
	script, err := s.OpenScript(context.Background(), "job.sql", text, tidemill.RunOptions{Trigger: &trigger})
	if err != nil {
		return err
	}
	return script.Start(context.Background()).Wait()
}

func put(t *testing.T, disk vfs.FS, name, data string) {
	t.Helper()
	if err := vfs.MkdirAll(disk, path.Dir(name)); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteAtomic(disk, name, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

// outputLines are the records of the published CSV files, sorted.
func outputLines(t *testing.T, disk vfs.FS, dir string) string {
	t.Helper()
	var lines []string
	err := vfs.Walk(disk, dir, func(name string, e fs.DirEntry) error {
		if e.IsDir() || !strings.HasPrefix(path.Base(name), "part-") {
			return nil
		}
		data, err := vfs.ReadFile(disk, name)
		records := strings.Split(strings.TrimSpace(string(data)), "\n")
		lines = append(lines, records[1:]...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(slices.Sorted(slices.Values(lines)), " ")
}
