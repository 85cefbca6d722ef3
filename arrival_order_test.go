package tidemill_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill"
)

// TestArrivalOrder: what depends on the order of rows is a function of the input alone. The
// files are large enough for threads to race for them, and for groups to be merged in parts.
func TestArrivalOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(7, 7))
	for f := range 3 {
		var sb strings.Builder
		sb.WriteString("id,k,v,many\n")
		for i := range 60_000 {
			fmt.Fprintf(&sb, "%d,%c,%d,%d\n", f*60_000+i, 'a'+rnd.IntN(8), rnd.IntN(51), rnd.IntN(1<<30))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.csv", f)), []byte(sb.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const few = "(SELECT id AS n, id % 7 AS m FROM range(40)) d"
	for _, query := range []string{
		"SELECT k, collect_list(DISTINCT v), listagg(DISTINCT CAST(v AS VARCHAR), ','), last(DISTINCT v) FROM t GROUP BY k ORDER BY k",
		"SELECT k, first(m), last(m), collect_list(m)[5] FROM t LEFT JOIN " + few + " ON v = n GROUP BY k ORDER BY k",
		"SELECT DISTINCT v, m FROM t LEFT JOIN " + few + " ON v % 7 = m LIMIT 20",
		"SELECT id, m FROM t LEFT JOIN " + few + " ON v = n ORDER BY m DESC LIMIT 20",
		"SELECT many, count(*) AS c FROM t GROUP BY many ORDER BY c LIMIT 20",
		"SELECT id, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM t ORDER BY r LIMIT 20",
		"SELECT first(id), last(id) FROM (SELECT id FROM t WHERE v = 1 UNION ALL SELECT -id FROM (SELECT id FROM t WHERE v = 2 UNION ALL SELECT id FROM t WHERE v = 3) x) y",
	} {
		query = strings.ReplaceAll(query, "FROM t ", "FROM '"+dir+"/*.csv' ")
		want := ""
		for i, settings := range []map[string]string{{"threads": "1"}, {"threads": "2"}, {"threads": "2"}, {"threads": "3", "batch_rows": "700"}} {
			got := rowsOf(t, settings, query)
			if i == 0 {
				want = got
			} else if got != want {
				t.Errorf("%s with %v:\n%s\nnot\n%s", query, settings, got, want)
			}
		}
	}
}

// rowsOf is the rows of a query in their order.
func rowsOf(t *testing.T, settings map[string]string, query string) string {
	t.Helper()
	s, err := tidemill.NewSession(tidemill.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	df, err := s.SQL(ctx, query)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Collect(ctx, df)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	return strings.Join(textsOf(rows, s.Location(), true), "\n")
}
