package tidemill_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/internal/vfs"
)

// peak is an allocator that knows how much was allocated at most at one time.
type peak struct {
	memory.Allocator
	now, most atomic.Int64
}

func newPeak() *peak { return &peak{Allocator: columnar.NewPool()} }

func (p *peak) add(n int) {
	now := p.now.Add(int64(n))
	for m := p.most.Load(); now > m && !p.most.CompareAndSwap(m, now); m = p.most.Load() {
	}
}

func (p *peak) Allocate(size int) []byte {
	b := p.Allocator.Allocate(size)
	p.add(len(b))
	return b
}

func (p *peak) Reallocate(size int, b []byte) []byte {
	p.add(size) // both are there while one is copied
	defer p.add(-len(b))
	return p.Allocator.Reallocate(size, b)
}

func (p *peak) Free(b []byte) {
	p.add(-len(b))
	p.Allocator.Free(b)
}

const (
	peakLimit = 10 << 20
	peakRows  = 3_000
)

// wideValues are values of about 10 kB each: of all rows, of one batch even, they are far more
// than peakLimit.
var wideValues = []string{
	"repeat('x', 10000)", "repeat('x', 10000 + n % 2)", "space(10000 + n % 2)", "lpad(CAST(n AS VARCHAR), 10000, 'z')",
	"sequence(1, 1200)", "sequence(1, 1200 + n % 2)", "sequence(1, n % 2000)", "array_repeat('value', 500 + n % 2)",
	"flatten(array_repeat(sequence(1, 10), 100 + n % 2))", "string_split(repeat('a,b', 300 + n % 2), ',')",
	"concat(repeat('x', 5000), n, repeat('y', 5000))", "repeat('x', 5000) || n || repeat('y', 5000)", "concat_ws(repeat(',', 5000), n, n, n)",
	"hex(repeat('x', 5000 + n % 2))", "replace(repeat('x', 100 + n % 2), 'x', repeat('y', 100))",
	"regexp_replace(repeat('x', 100 + n % 2), 'x', repeat('y', 100))", "translate(repeat('x', 5000 + n % 2), 'x', 'é')",
	"CAST(sequence(1, 1200 + n % 2) AS VARCHAR)", "to_json(sequence(1, 1200 + n % 2))", "format('{}{}', n, repeat('x', 10000))",
	"array(repeat('x', 10000), 'b')", "named_struct('a', repeat('x', 10000), 'n', n)", "map('a', repeat('x', 10000))",
	"CASE WHEN n % 2 = 0 THEN repeat('x', 10000) ELSE 'b' END", "coalesce(CASE WHEN n % 2 = 0 THEN 'b' END, repeat('x', 10000))",
	"json_extract('{\"a\":\"' || repeat('x', 10000 + n % 2) || '\"}', '$.a')",
	"array_to_string(sequence(1, 500 + n % 2), repeat(',', 20))",
}

// wideQueries are queries whose rows, or what they are made of, are wide.
var wideQueries = []string{
	"SELECT max(length(repeat('x', 10000 + n % 2))) FROM t",
	"SELECT n % 2, count(repeat('x', 10000 + n % 2)), max(repeat('x', 10000 + n % 2)) FROM t GROUP BY 1",
	"SELECT repeat('x', 10000 + n % 2), count(*) FROM t GROUP BY 1",
	"SELECT DISTINCT repeat('x', 10000 + n % 2) FROM t",
	"SELECT count(*) FROM t WHERE length(repeat('x', 10000 + n % 2)) > 5",
	"SELECT n, repeat('x', 10000 + n % 2) FROM t ORDER BY n DESC LIMIT 10",
	"SELECT n, repeat('x', 10000 + n % 2) FROM t WHERE n < 300 ORDER BY n DESC",
	"SELECT u FROM (SELECT sequence(1, 1000 + n % 2) AS l FROM t WHERE n < 100), UNNEST(l) AS e(u)",
	"SELECT u FROM t, UNNEST(sequence(1, 10000 + n % 2)) AS e(u) WHERE n < 200",
	"SELECT w, u FROM (SELECT repeat('x', 10000 + n % 2) AS w, sequence(1, 30) AS l FROM t WHERE n < 100), UNNEST(l) AS e(u)",
	"SELECT a.w, b.n FROM (SELECT n % 10 AS k, repeat('x', 10000 + n % 2) AS w FROM t WHERE n < 100) a JOIN t b ON a.k = b.n % 10 AND b.n < 300",
	"SELECT a.w, b.n FROM (SELECT repeat('x', 10000 + n % 2) AS w FROM t WHERE n < 10) a CROSS JOIN (SELECT n FROM t WHERE n < 300) b",
	"SELECT a.n, b.w FROM t a LEFT JOIN (SELECT n % 10 AS k, repeat('x', 10000 + n % 2) AS w FROM t WHERE n < 10) b ON a.n % 20 = b.k",
	"SELECT repeat('x', 10000) FROM t UNION ALL SELECT repeat('y', 10000 + n % 2) FROM t",
}

// TestMemoryPeak checks that a query over wide values runs in memory near its limit, however
// many rows there are, and that all come out.
func TestMemoryPeak(t *testing.T) {
	t.Parallel()
	queries := wideQueries
	for _, v := range wideValues {
		queries = append(queries, "SELECT "+v+" AS v FROM t")
	}
	for _, q := range queries {
		mem := newPeak()
		s := peakSession(t, vfs.NewMem(), mem)
		with := fmt.Sprintf("WITH t AS (SELECT id AS n FROM range(%d)) ", peakRows)
		df, err := s.SQL(context.Background(), with+q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		r, err := s.Query(context.Background(), df)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		rows := int64(0)
		for b, err := range columnar.All(context.Background(), r) {
			if err != nil {
				t.Fatalf("%s: %v", q, err)
			}
			rows += b.NumRows()
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		checkPeak(t, q, mem)
		if strings.HasSuffix(q, " AS v FROM t") && rows != peakRows {
			t.Errorf("%s: %d rows", q, rows)
		}
	}
}

// checkPeak checks that no more was allocated than the limit, and that all was given back.
func checkPeak(t *testing.T, q string, mem *peak) {
	t.Helper()
	if most := mem.most.Load(); most > peakLimit {
		t.Errorf("%s: %d MB at a time, with a limit of %d", q, most>>20, peakLimit>>20)
	}
	if now := mem.now.Load(); now != 0 {
		t.Errorf("%s: %d bytes are still allocated", q, now)
	}
}

func peakSession(t *testing.T, disk vfs.FS, mem *peak) *tidemill.Session {
	t.Helper()
	o := tidemill.Options{Settings: map[string]string{"memory_limit": fmt.Sprint(peakLimit), "threads": "2"}}
	s, err := tidemill.NewSession(o.WithFS(disk))
	if err != nil {
		t.Fatal(err)
	}
	tidemill.SetMemory(s, mem)
	return s
}

// TestMemoryPeakOfStream checks the same of a stream into files.
func TestMemoryPeakOfStream(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	var in strings.Builder
	in.WriteString("n\n")
	for n := range peakRows {
		fmt.Fprintln(&in, n)
	}
	put(t, disk, "/in/a.csv", in.String())
	now := tidemill.AvailableNow()
	queries := []string{
		"SELECT length(repeat('x', 10000 + n % 2)) AS v FROM s",
		"SELECT w, u FROM (SELECT repeat('x', 10000 + n % 2) AS w, sequence(1, 20) AS l FROM s WHERE n < 400), UNNEST(l) AS e(u)",
	}
	for _, v := range wideValues {
		queries = append(queries, "SELECT "+v+" AS v FROM s")
	}
	for i, q := range queries {
		mem := newPeak()
		script, err := peakSession(t, disk, mem).OpenScript(context.Background(), "peak.sql", fmt.Sprintf(`
			CREATE STREAM s (n BIGINT) WITH (path = '/in', format = 'csv');
			CREATE SINK out WITH (path = '/out%d', format = 'parquet');
			INSERT INTO out %s`, i, q), tidemill.RunOptions{Trigger: &now})
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if err := script.Start(context.Background()).Wait(); err != nil {
			t.Errorf("%s: %v", q, err)
		}
		checkPeak(t, q, mem)
	}
}
