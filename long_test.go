package tidemill_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// long are statements that programs write. What costs the square of n anywhere between
// the text and the rows takes minutes for one of them; the limit is far from what they take.
var long = map[string]struct {
	n    int
	text func(n int) string
	want string // the first row
}{
	"in integers": {100_000, func(n int) string {
		return "SELECT count(*) FROM range(1000) t(x) WHERE x IN (" + series(n, ", ", "%d") + ")"
	}, "1000"},
	"not in texts": {100_000, func(n int) string {
		return "SELECT count(*) FROM range(1000) t(x) WHERE CAST(x AS VARCHAR) NOT IN (" + series(n, ", ", "'%d'") + ")"
	}, "0"},
	"in doubles": {100_000, func(n int) string {
		return "SELECT count(*) FROM range(1000) t(x) WHERE CAST(x AS DOUBLE) IN (" + series(n, ", ", "%de0") + ")"
	}, "1000"},
	"in decimals": {100_000, func(n int) string {
		return "SELECT count(*) FROM range(1000) t(x) WHERE CAST(x AS DECIMAL(12,2)) IN (" + series(n, ", ", "%d.00") + ")"
	}, "1000"},
	"and": {24_000, func(n int) string {
		return "SELECT count(*) FROM range(10) t(x) WHERE " + series(n, " AND ", "x <> %d")
	}, "0"},
	"or": {24_000, func(n int) string {
		return "SELECT count(*) FROM range(10) t(x) WHERE " + series(n, " OR ", "x = %d")
	}, "10"},
	"sum of terms": {40_000, func(n int) string { return "SELECT max(" + series(n, " + ", "x") + ") FROM range(3) t(x)" }, "80000"},
	"case": {20_000, func(n int) string {
		return "SELECT sum(CASE " + series(n, " ", "WHEN x = %[1]d THEN %[1]d") + " ELSE 0 END) FROM range(10) t(x)"
	}, "45"},
	"values": {100_000, func(n int) string {
		return "SELECT count(*) FROM (VALUES " + series(n, ", ", "(%[1]d, 'x%[1]d')") + ") v(a, b)"
	}, "100000"},
	"join with values": {50_000, func(n int) string {
		return "SELECT count(*) FROM range(1000) t(x) JOIN (VALUES " + series(n, ", ", "(%d)") + ") v(a) ON a = x"
	}, "1000"},
	"columns": {20_000, func(n int) string { return "SELECT " + series(n, ", ", "x + %[1]d AS c%[1]d") + " FROM range(1) t(x)" }, "0"},
	"aggregates": {20_000, func(n int) string {
		return "SELECT " + series(n, ", ", "sum(x + %[1]d) AS c%[1]d") + " FROM range(1) t(x)"
	}, "0"},
	"groups": {20_000, func(n int) string {
		return "SELECT " + series(n, ", ", "c%d") + " FROM (SELECT " + series(n, ", ", "x + %[1]d AS c%[1]d") + " FROM range(1) t(x)) GROUP BY ALL"
	}, "0"},
	"order": {20_000, func(n int) string { return "SELECT x FROM range(1) t(x) ORDER BY " + series(n, ", ", "x + %d") }, "0"},
	"union all": {1_000, func(n int) string {
		return "SELECT count(*) FROM (" + series(n, " UNION ALL ", "SELECT %d AS a") + ")"
	}, "1000"},
	"common table expressions": {2_000, func(n int) string {
		return "WITH c AS (SELECT 0 AS a), " + series(n, ", ", "c%d AS (SELECT a + 1 AS a FROM c)") + fmt.Sprintf(" SELECT a FROM c%d", n-1)
	}, "1"},
	"joins": {250, func(n int) string {
		return "SELECT count(*) FROM range(3) t(x)" + series(n, " ", " JOIN range(3) t%[1]d(x%[1]d) ON x = x%[1]d")
	}, "3"},
	"nested": {240, func(n int) string {
		return "SELECT " + strings.Repeat("abs(", n) + "-x" + strings.Repeat(")", n) + " FROM range(1) t(x)"
	}, "0"},
}

// series is n texts, format with the numbers from 0.
func series(n int, between, format string) string {
	var sb strings.Builder
	for i := range n {
		if i > 0 {
			sb.WriteString(between)
		}
		if strings.Contains(format, "%") {
			fmt.Fprintf(&sb, format, i)
		} else {
			sb.WriteString(format)
		}
	}
	return sb.String()
}

func TestLongStatements(t *testing.T) {
	x := newSite(t)
	for name, c := range long {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			start := time.Now()
			df, err := x.SQL(ctx, c.text(c.n))
			if err != nil {
				t.Fatalf("%.2000s", err)
			}
			rows, err := x.Collect(ctx, df)
			if err != nil {
				t.Fatalf("%.2000s", err)
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
			defer rows.Release()
			for _, row := range rows.All() {
				if got := fmt.Sprint(row[0]); got != c.want {
					t.Errorf("the first value is %s, not %s", got, c.want)
				}
				return
			}
			t.Error("no rows")
		})
	}
}
