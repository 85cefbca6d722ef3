package main

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	driver "github.com/duckdb/duckdb-go/v2"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
)

// engines are both engines over the same tables.
type engines struct {
	duck    *sql.DB
	session *tidemill.Session
}

func newEngines(t testing.TB) *engines {
	t.Helper()
	paths := writeTables(t, filepath.ToSlash(t.TempDir()))
	var ours, theirs strings.Builder
	for _, name := range []string{"t", "u", "n", "e"} {
		path := paths[name]
		header := ""
		if strings.HasSuffix(path, ".csv") {
			header = ", header = true"
			fmt.Fprintf(&theirs, "CREATE VIEW %s AS SELECT * FROM read_csv('%s', header = true);\n", name, path)
		} else {
			fmt.Fprintf(&theirs, "CREATE VIEW %s AS SELECT * FROM '%s';\n", name, path)
		}
		fmt.Fprintf(&ours, "CREATE TABLE %s WITH (path = '%s'%s);\n", name, path, header)
	}
	return newEnginesOver(t, ours.String(), theirs.String())
}

// newEnginesOver declares tables in both engines.
func newEnginesOver(t testing.TB, ours, theirs string) *engines {
	t.Helper()
	db, err := openDuckDB(context.Background(), "", "2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	setup := "SET default_null_order = 'nulls_first_on_asc_last_on_desc';\n" + theirs
	if _, err := db.Exec(setup); err != nil {
		t.Fatalf("%s: %v", setup, err)
	}
	session, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.SQL(context.Background(), ours+"SELECT 1"); err != nil {
		t.Fatalf("%s: %v", ours, err)
	}
	return &engines{duck: db, session: session}
}

// tidemill runs a statement on Tidemill.
func (e *engines) tidemill(query string) ([][]value, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	df, err := e.session.SQL(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := e.session.Collect(ctx, df)
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	var out [][]value
	for _, b := range rows.Batches() {
		for i := range int(b.NumRows()) {
			row := make([]value, b.NumCols())
			for c, a := range b.Columns() {
				row[c] = ofArrow(a, i)
			}
			out = append(out, row)
		}
	}
	return out, nil
}

// duckdb runs a statement on DuckDB.
func (e *engines) duckdb(query string) ([][]value, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rows, err := e.duck.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out [][]value
	for rows.Next() {
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		if err := rows.Scan(cells...); err != nil {
			return nil, err
		}
		row := make([]value, len(columns))
		for i, c := range cells {
			row[i] = ofDuckDB(*c.(*any))
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// value is a value of either engine: an exact number, a double, or text with the kind
// of value it stands for.
type value struct {
	kind  string // null, number, double, text, bool, time, list, struct, …
	exact *big.Rat
	float float64
	text  string
	parts []value
}

func (v value) String() string {
	switch v.kind {
	case "number":
		return v.exact.RatString()
	case "double":
		return strconv.FormatFloat(v.float, 'g', -1, 64)
	case "list", "struct":
		return fmt.Sprint(v.parts)
	}
	return v.kind + ":" + v.text
}

func number(r *big.Rat) value    { return value{kind: "number", exact: r} }
func double(f float64) value     { return value{kind: "double", float: f} }
func named(kind, t string) value { return value{kind: kind, text: t} }

func instant(t time.Time) value { return named("time", t.UTC().Format("2006-01-02T15:04:05.000000")) }

func ofArrow(a arrow.Array, i int) value {
	if columnar.IsNull(a, i) {
		return value{kind: "null"}
	}
	switch a := a.(type) {
	case *array.Boolean:
		return named("bool", strconv.FormatBool(a.Value(i)))
	case *array.Float32:
		return double(float64(a.Value(i)))
	case *array.Float64:
		return double(a.Value(i))
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64, *array.Decimal128:
		r, ok := new(big.Rat).SetString(string(columnar.AppendValue(nil, a, i, nil)))
		if !ok {
			panic("bug: number " + a.ValueStr(i))
		}
		return number(r)
	case *array.String:
		return named("text", strings.Clone(a.Value(i)))
	case *array.Date32:
		return instant(a.Value(i).ToTime())
	case *array.Timestamp:
		return instant(time.UnixMicro(int64(a.Value(i))))
	case *array.Time64: // as DuckDB's driver gives it
		return instant(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(a.Value(i)) * time.Microsecond))
	case *array.Map:
		v := value{kind: "list"}
		from, to := a.ValueOffsets(i)
		for j := from; j < to; j++ {
			v.parts = append(v.parts, ofArrow(a.Keys(), int(j)), ofArrow(a.Items(), int(j)))
		}
		return v
	case *array.List:
		v := value{kind: "list"}
		from, to := a.ValueOffsets(i)
		for j := from; j < to; j++ {
			v.parts = append(v.parts, ofArrow(a.ListValues(), int(j)))
		}
		return v
	case *array.Struct:
		v := value{kind: "struct"}
		for f := range a.NumField() {
			v.parts = append(v.parts, ofArrow(a.Field(f), i))
		}
		sortParts(v.parts)
		return v
	case *array.MonthDayNanoInterval:
		x := a.Value(i)
		return named("interval", fmt.Sprint(x.Months, x.Days, x.Nanoseconds/1000))
	}
	return named("other", string(columnar.AppendValue(nil, a, i, nil)))
}

// sortParts orders the fields of a struct, which DuckDB's driver gives as a map.
func sortParts(parts []value) {
	slices.SortFunc(parts, func(a, b value) int { return strings.Compare(a.String(), b.String()) })
}

func ofDuckDB(x any) value {
	switch x := x.(type) {
	case nil:
		return value{kind: "null"}
	case bool:
		return named("bool", strconv.FormatBool(x))
	case float32:
		return double(float64(x))
	case float64:
		return double(x)
	case string:
		return named("text", x)
	case []byte:
		return named("other", fmt.Sprintf("%x", x))
	case time.Time:
		return instant(x)
	case *big.Int:
		return number(new(big.Rat).SetInt(x))
	case driver.Decimal:
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(x.Scale)), nil)
		return number(new(big.Rat).SetFrac(x.Value, scale))
	case driver.Interval:
		return named("interval", fmt.Sprint(x.Months, x.Days, x.Micros))
	case driver.OrderedMap:
		v := value{kind: "list"}
		for i, k := range x.Keys() {
			v.parts = append(v.parts, ofDuckDB(k), ofDuckDB(x.Values()[i]))
		}
		return v
	case []any:
		v := value{kind: "list"}
		for _, p := range x {
			v.parts = append(v.parts, ofDuckDB(p))
		}
		return v
	case map[string]any:
		v := value{kind: "struct"}
		for _, p := range x {
			v.parts = append(v.parts, ofDuckDB(p))
		}
		sortParts(v.parts)
		return v
	}
	if r, ok := new(big.Rat).SetString(fmt.Sprint(x)); ok {
		return number(r) // every width of integer
	}
	return named("other", fmt.Sprint(x))
}

// same compares two values. An exact number and a double are the same if the double
// is as near as doubles are.
func same(a, b value) bool { return near(1e-9)(a, b) }

// near is same with doubles compared to a relative tolerance.
func near(tolerance float64) func(a, b value) bool {
	return func(a, b value) bool { return nearBy(a, b, tolerance) }
}

func nearBy(a, b value, tolerance float64) bool {
	if a.kind == "number" && b.kind == "number" {
		return a.exact.Cmp(b.exact) == 0
	}
	if f, ok := a.asFloat(); ok {
		g, ok := b.asFloat()
		return ok && (f == g || math.IsNaN(f) && math.IsNaN(g) || math.Abs(f-g) <= tolerance*math.Max(math.Abs(f), math.Abs(g)))
	}
	if len(a.parts) > 0 || len(b.parts) > 0 {
		return a.kind == b.kind && slices.EqualFunc(a.parts, b.parts, near(tolerance))
	}
	return a.kind == b.kind && a.text == b.text
}

func (v value) asFloat() (float64, bool) {
	switch v.kind {
	case "double":
		return v.float, true
	case "number":
		f, _ := v.exact.Float64()
		return f, true
	}
	return 0, false
}

// difference says how the results of the engines differ, "" if they do not.
func (e *engines) difference(s statement) string {
	got, err := e.tidemill(s.sql)
	want, derr := e.duckdb(s.duckdb)
	switch {
	case err != nil && derr != nil && s.fails:
		return ""
	case err != nil && derr != nil:
		return fmt.Sprintf("both refuse it: %v; DuckDB: %v", err, derr)
	case s.fails:
		return "it fails on both engines no more"
	case err != nil:
		return fmt.Sprintf("tidemill: %v", err)
	case derr != nil:
		return fmt.Sprintf("tidemill gives %d rows; DuckDB: %v", len(got), derr)
	case len(got) != len(want):
		return fmt.Sprintf("%d rows, DuckDB has %d", len(got), len(want))
	}
	if !s.ordered() {
		sortRows(got)
		sortRows(want)
	}
	equal := same
	if s.tolerance > 0 {
		equal = near(s.tolerance)
	}
	for i := range got {
		if !slices.EqualFunc(got[i], want[i], equal) {
			return fmt.Sprintf("row %d: %v, DuckDB has %v", i, got[i], want[i])
		}
	}
	return ""
}

func sortRows(rows [][]value) {
	key := func(row []value) string {
		var b strings.Builder
		for _, v := range row {
			if f, ok := v.asFloat(); ok {
				fmt.Fprintf(&b, "%.6g|", f+0) // doubles may differ in the last digits; -0 sorts as 0
			} else {
				b.WriteString(v.String() + "|")
			}
		}
		return b.String()
	}
	slices.SortFunc(rows, func(a, b []value) int { return strings.Compare(key(a), key(b)) })
}

// intended are the names of the differences that are documented.
func intended(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/sql/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		names[m[1]] = true
	}
	return names
}

// check says what is wrong with a statement of the corpus.
func (e *engines) check(s statement, names map[string]bool) string {
	for _, name := range []string{s.differs, s.missing} {
		if name != "" && !names[name] {
			return fmt.Sprintf("%q is not in docs/sql/differences.md", name)
		}
	}
	if s.missing != "" {
		_, err := e.tidemill(s.sql)
		if err == nil {
			return "Tidemill can do this now; take the line `missing: " + s.missing + "` away"
		}
		if !strings.Contains(err.Error(), "not supported") && !strings.Contains(err.Error(), "there is no function") {
			return err.Error()
		}
		return ""
	}
	d := e.difference(s)
	if s.differs != "" && d == "" {
		return "the engines agree, but differs: " + s.differs
	}
	if s.differs != "" {
		return ""
	}
	return d
}

// TestCorpus runs every statement of testdata/corpus on both engines.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/corpus/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	names, unused := intended(t), intended(t)
	e := newEngines(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		statements, err := parseCorpus(filepath.Base(file), string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range statements {
			delete(unused, s.differs)
			delete(unused, s.missing)
			if problem := e.check(s, names); problem != "" {
				t.Errorf("%s: %s\n%s", s, problem, s.sql)
			}
		}
	}
	for name := range unused {
		t.Errorf("difference %q is documented, but no statement shows it", name)
	}
}

func TestParseCorpus(t *testing.T) {
	t.Parallel()
	got, err := parseCorpus("f", "-- comment\nSELECT 1;\n\n-- duckdb: SELECT 2;\n-- differs: x\nSELECT\n 3\nORDER BY 1;\n")
	if err != nil || len(got) != 2 || got[0].sql != "SELECT 1" || got[1].duckdb != "SELECT 2" || got[1].differs != "x" || got[1].line != 6 || !got[1].ordered() || got[0].ordered() {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseCorpus("f", "SELECT 1"); err == nil {
		t.Error("a statement without an end was taken")
	}
}
