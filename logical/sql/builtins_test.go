package sql

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tidemill/tidemill/columnar/function"
)

// builtinsPlanner plans with the engine's own functions.
func builtinsPlanner(t *testing.T) *Planner {
	t.Helper()
	p := testPlanner(t)
	p.Functions = function.Builtins()
	return p
}

// TestSyntaxHasItsFunctions checks that the functions which syntax stands for exist
// under the names that the binder calls.
func TestSyntaxHasItsFunctions(t *testing.T) {
	t.Parallel()
	p := builtinsPlanner(t)
	for _, src := range []string{
		"SELECT a + b, a - b, a * b, a / b, a // b, a % b, -a, ~a, a & b, a | b, a << 1, a >> 1, c || c FROM t",
		"SELECT a = b, a <> b, a < b, a <= b, a > b, a >= b, a <=> b, a IS DISTINCT FROM b, NOT ok FROM t",
		"SELECT a IS NULL, a IS NOT NULL, ok IS TRUE, ok IS NOT FALSE, ok IS UNKNOWN, a BETWEEN 1 AND 2, a IN (1, 2), a NOT IN (b, 1.5) FROM t",
		"SELECT c LIKE 'a' ESCAPE '!', c ILIKE 'a', c RLIKE 'a', c SIMILAR TO 'a' FROM t",
		"SELECT extract(year FROM ts), date_trunc('day', ts), timestampdiff(DAY, ts, ts), position('a' IN c), substring(c FROM 2 FOR 3), substring(c FOR 2), trim(BOTH 'x' FROM c), trim(LEADING FROM c), overlay(c PLACING 'x' FROM 2) FROM t",
		"SELECT ts - INTERVAL '1 day', ts + '1 hour', ts - ts, INTERVAL '1 day' * 2, year('2024-01-01'), ts::DATE + INTERVAL 1 DAY FROM t",
		"SELECT l[0], m['k'], [1, 2.5], ARRAY[], MAP {'a': 1}, MAP {}, struct(l, 1 AS x).x, s.g.h, {'a': {'b': 1}}.a.b FROM nested",
		"SELECT a ** 2, c[1:2], [a][1:], ARRAY(FROM range(3)) FROM t", "SELECT array_agg(a) RESPECT NULLS, max(a, 2), max_by(a, b, 2), approx_top_k(c) FROM t", "SELECT to_number(c, '999'), list_aggregate([a], 'sum'), string(a) FROM t",
		"SELECT coalesce(a, b, 0), if(ok, 1, 2.5), nullif(a, 1), CASE a WHEN 1 THEN 'x' END, current_timestamp, current_date, now(), random() FROM t",
		"SELECT ts AT TIME ZONE 'Europe/Berlin' FROM t",
		"SELECT count(*), count(a), count(DISTINCT c), sum(a), sum(d), avg(a), min(c), max(ts), first(a), last(a IGNORE NULLS), any_value(a) FROM t",
		"SELECT window_time(window), window.start, count(*) FROM t GROUP BY window(ts, '1 minute')",
		"SELECT * FROM t FULL JOIN u USING (a)",
	} {
		if _, err := p.Query(t.Context(), src); err != nil {
			t.Errorf("%v", err)
		}
	}
}

// TestExamplesPlan plans the example of every built-in scalar function.
func TestExamplesPlan(t *testing.T) {
	t.Parallel()
	p := builtinsPlanner(t)
	for _, name := range p.Functions.Names() {
		f, ok := p.Functions.Scalar(name)
		if !ok || f.Example == "" {
			continue
		}
		left := f.Example[:strings.LastIndex(f.Example, " = ")]
		if _, err := p.Query(t.Context(), "SELECT "+left); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBuiltinErrors runs the golden files of testdata/builtins: mistakes in calls of the
// engine's own functions; with the directive warn what is legal and probably not meant, and with
// fine what looks like a mistake and is none.
func TestBuiltinErrors(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/builtins", func(t *testing.T, path string) {
		p := builtinsPlanner(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var warnings strings.Builder
			p.Warn = func(text string) { warnings.WriteString(text + "\n") }
			_, err := p.Query(t.Context(), d.Input)
			switch {
			case d.Cmd == "warn" && err == nil && warnings.Len() > 0:
				return warnings.String()
			case d.Cmd == "fine" && err == nil && warnings.Len() == 0:
				return ""
			case d.Cmd == "error" && err != nil:
				return err.Error() + "\n"
			}
			d.Fatalf(t, "%s: no %s: %v", d.Pos, d.Cmd, err)
			return ""
		})
	})
}
