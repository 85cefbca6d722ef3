package sql

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tidemill/tidemill/logical/sql/ast"
)

// TestParse runs the golden files of testdata/parse: "parse" prints what was
// understood, one statement a line, and "error" what is wrong. Every statement
// that parses must survive printing and parsing again.
func TestParse(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/parse", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			stmts, err := Parse(d.Input)
			switch {
			case d.Cmd == "error" && err == nil:
				d.Fatalf(t, "%s: no error", d.Pos)
			case d.Cmd == "parse" && err != nil:
				d.Fatalf(t, "%s: %v", d.Pos, err)
			}
			if err != nil {
				return err.Error() + "\n"
			}
			var b strings.Builder
			for _, s := range stmts {
				roundTrip(t, s)
				fmt.Fprintf(&b, "%s;\n", ast.Print(s))
			}
			return b.String()
		})
	})
}

// roundTrip fails unless printing and parsing gives the same tree again.
func roundTrip(t *testing.T, s ast.Statement) {
	t.Helper()
	text := ast.Print(s)
	again, err := Parse(text)
	if err != nil {
		t.Fatalf("printed statement does not parse: %v\n%s", err, text)
	}
	if len(again) != 1 {
		t.Fatalf("printed statement became %d statements: %s", len(again), text)
	}
	clearSpans(reflect.ValueOf(s))
	clearSpans(reflect.ValueOf(again[0]))
	if !reflect.DeepEqual(s, again[0]) {
		t.Fatalf("the tree changed:\n%s\n%s", text, ast.Print(again[0]))
	}
}

// clearSpans zeroes every position in a tree.
func clearSpans(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			clearSpans(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			clearSpans(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if name := v.Type().Field(i).Name; name == "Span" || name == "OpPos" {
				f.SetZero()
				continue
			}
			clearSpans(f)
		}
	}
}

func TestSpansLieInside(t *testing.T) {
	t.Parallel()
	for _, src := range corpus {
		stmts, err := Parse(src)
		if err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
		for _, s := range stmts {
			checkSpans(t, src, s)
		}
	}
}

func checkSpans(t *testing.T, src string, root ast.Node) {
	t.Helper()
	ast.Walk(root, func(n ast.Node) bool {
		if n.Pos() < 0 || n.End() < n.Pos() || n.End() > len(src) {
			t.Errorf("%T has the span %d..%d in a text of %d bytes: %s", n, n.Pos(), n.End(), len(src), src)
		}
		return true
	})
}

func TestDeepNestingIsAnError(t *testing.T) {
	t.Parallel()
	const n = 60_000
	for name, src := range map[string]string{
		"parens":    "SELECT " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n),
		"minus":     "SELECT " + strings.Repeat("- ", n) + "1",
		"not":       "SELECT " + strings.Repeat("NOT ", n) + "a",
		"arrays":    "SELECT " + strings.Repeat("[", n),
		"case":      "SELECT " + strings.Repeat("CASE WHEN ", n),
		"calls":     "SELECT " + strings.Repeat("f(", n),
		"position":  "SELECT " + strings.Repeat("position(case when a in (1) then ", n),
		"trim":      "SELECT " + strings.Repeat("trim(", n),
		"from":      "SELECT * FROM " + strings.Repeat("(", n),
		"queries":   "SELECT * FROM " + strings.Repeat("(SELECT * FROM ", n),
		"types":     "SELECT a::" + strings.Repeat("ARRAY<", n),
		"rollup":    "SELECT 1 GROUP BY " + strings.Repeat("ROLLUP(", n),
		"sum":       "SELECT 1" + strings.Repeat("+1", n),
		"index":     "SELECT a" + strings.Repeat("[0]", n),
		"fields":    "SELECT f(x)" + strings.Repeat(".a", n),
		"joins":     "SELECT 1 FROM a" + strings.Repeat(" CROSS JOIN a", n),
		"unions":    "SELECT 1" + strings.Repeat(" UNION SELECT 1", n),
		"arraytype": "SELECT a::INT" + strings.Repeat("[]", n),
		"comments":  strings.Repeat("/*", n),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(src)
			if err == nil {
				t.Fatal("no error")
			}
			if len(err.Error()) > 3000 {
				t.Fatalf("error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for _, src := range []string{
		"SELECT '" + long, "SELECT a " + long + " b", "SELECT a b '" + long + "'", "SELECT 1" + long,
		strings.Repeat("SELEC 1;\n", 5000), "SELECT " + long + " " + strings.Repeat("é", 5000) + " ???",
	} {
		_, err := Parse(src)
		if err == nil {
			t.Fatalf("no error for %.40s", src)
		}
		if n := len(err.Error()); n > 3000 {
			t.Errorf("error of %d bytes for %.40s", n, src)
		}
	}
}

// FuzzParse checks that no text makes the parser panic, and that what it
// understands survives printing.
func FuzzParse(f *testing.F) {
	for _, s := range corpus {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		stmts, err := Parse(src)
		if err != nil {
			if n := len(err.Error()); n > 3000 {
				t.Fatalf("error of %d bytes", n)
			}
			return
		}
		for _, s := range stmts {
			checkSpans(t, src, s)
			roundTrip(t, s)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	b.SetBytes(int64(len(benchQuery)))
	for b.Loop() {
		if _, err := Parse(benchQuery); err != nil {
			b.Fatal(err)
		}
	}
}

const benchQuery = `WITH recent AS (SELECT user_id, amount, ts FROM orders WHERE ts > TIMESTAMP '2024-01-01 00:00:00'),
totals AS (SELECT user_id, sum(amount) AS total, count(*) AS n FROM recent GROUP BY user_id HAVING sum(amount) > 100)
SELECT u.name, t.total, CASE WHEN t.total > 1000 THEN 'gold' WHEN t.total > 500 THEN 'silver' ELSE 'bronze' END AS tier
FROM totals t JOIN users u ON u.id = t.user_id LEFT JOIN (SELECT user_id, max(ts) AS last FROM recent GROUP BY user_id) l
ON l.user_id = t.user_id WHERE u.country IN ('DE', 'FR', 'US') AND t.n >= 3 ORDER BY t.total DESC NULLS LAST LIMIT 100`
