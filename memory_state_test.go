package tidemill_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/internal/vfs"
)

// limitedSession is a session whose queries may hold limit bytes; "" is any number.
func limitedSession(t *testing.T, disk vfs.FS, mem *peak, limit string) *tidemill.Session {
	t.Helper()
	o := tidemill.Options{Settings: map[string]string{"threads": "2"}}
	if limit != "" {
		o.Settings["memory_limit"] = limit
	}
	s, err := tidemill.NewSession(o.WithFS(disk))
	if err != nil {
		t.Fatal(err)
	}
	tidemill.SetMemory(s, mem)
	return s
}

// keyedRows is a CSV file of n rows, each with keys of its own.
func keyedRows(n int) string {
	var in strings.Builder
	in.WriteString("k,u,ts\n")
	for i := range n {
		fmt.Fprintf(&in, "%d,user-%d-of-some-length,2024-01-01T00:%02d:%02d.%03dZ\n", i, i, i/60_000, i/1000%60, i%1000)
	}
	return in.String()
}

// TestMemoryOfState checks that what a batch makes beside the state is a fraction of it: rows
// are handed on, merged and saved some at a time, with few rows a shard as with many.
func TestMemoryOfState(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	put(t, disk, "/in/a.csv", keyedRows(300_000))
	for _, c := range []struct {
		mode, query string
		most        int64
	}{
		{"complete", "SELECT k, count(*) AS n, sum(k) AS s FROM s GROUP BY k", 20 << 20},
		{"complete", "SELECT k, count(*) AS n FROM s GROUP BY session_window(ts, '5 minutes'), k", 20 << 20},
		{"append", "SELECT DISTINCT ON (u) u, k, ts FROM s", 20 << 20},
	} {
		for _, limit := range []string{"", "100MB"} {
			mem := newPeak()
			now := tidemill.AvailableNow()
			script, err := limitedSession(t, disk, mem, limit).OpenScript(context.Background(), "state.sql", fmt.Sprintf(`
				CREATE STREAM s (k BIGINT, u VARCHAR, ts TIMESTAMP) WITH (path = '/in', format = 'csv');
				CREATE SINK out WITH (connector = 'noop', output_mode = '%s');
				INSERT INTO out %s`, c.mode, c.query), tidemill.RunOptions{Trigger: &now})
			if err != nil {
				t.Fatal(err)
			}
			if err := script.Start(context.Background()).Wait(); err != nil {
				t.Errorf("%s: %v", c.query, err)
			}
			if most := mem.most.Load(); most > c.most {
				t.Errorf("%s with a limit of %q: %d MB at a time beside the state", c.query, limit, most>>20)
			}
		}
	}
}

// TestMemoryOfHugeValues checks that a value that does not fit is refused before its memory is
// taken, in Arrow or else: it is not parallel, for it counts what the process allocates.
func TestMemoryOfHugeValues(t *testing.T) {
	for _, v := range []string{
		"regexp_replace(repeat('x', 10000 + n), 'x', repeat('y', 10000))",
		"regexp_replace(repeat('x', 10000 + n), '(x)', '$1' || repeat('y', 10000))",
		"array_join(sequence(1, 10000 + n), repeat('y', 10000))",
		"replace(repeat('x', 10000 + n), 'x', repeat('y', 10000))",
		"string_agg('x', repeat('y', 100000))",
		"array_agg(repeat('x', 10000 + n))",
		"collect_set(repeat('x', 10000) || n)",
		"max_by(repeat('x', 10000), n, 3000)",
		"count(DISTINCT repeat('x', 10000) || n)",
		"string_agg(repeat('x', 10000), ',')",
	} {
		mem := newPeak()
		s := peakSession(t, vfs.NewMem(), mem)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := errorOf(s, "SELECT "+v+" AS v FROM (SELECT id AS n FROM range(3000)) AS t")
		runtime.ReadMemStats(&after)
		if !errors.Is(err, columnar.ErrMemory) {
			t.Errorf("%s: %v", v, err)
		}
		// What grows is allocated anew several times, and thrown away.
		if took := int64(after.TotalAlloc - before.TotalAlloc); took > 25*peakLimit {
			t.Errorf("%s: %d MB were allocated, with a limit of %d", v, took>>20, peakLimit>>20)
		}
		checkPeak(t, v, mem)
	}
}

// errorOf is the error of a query.
func errorOf(s *tidemill.Session, query string) error {
	df, err := s.SQL(context.Background(), query)
	if err != nil {
		return err
	}
	rows, err := s.Collect(context.Background(), df)
	if err == nil {
		rows.Release()
	}
	return err
}
