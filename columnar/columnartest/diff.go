package columnartest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// DiffOptions say what counts as different.
type DiffOptions struct {
	Ordered bool // rows are compared in order; otherwise as a multiset
	ULP     int  // doubles may differ by so many units in the last place
}

// Diff compares batches by value: column names and types (a dictionary equals its
// plain form), then rows; batch boundaries do not count. It returns "" or the
// differing rows, - for want, + for got, as canonical text.
func Diff(want, got []arrow.RecordBatch, o DiffOptions) string {
	if len(want) > 0 && len(got) > 0 {
		w, g := plainSchema(want[0].Schema()), plainSchema(got[0].Schema())
		if columnar.SchemaString(w) != columnar.SchemaString(g) {
			return fmt.Sprintf("columns differ:\n- %s\n+ %s\n", columnar.SchemaString(w), columnar.SchemaString(g))
		}
	}
	w, g := rowsOf(want), rowsOf(got)
	if !o.Ordered {
		slices.SortFunc(w, compareRows)
		slices.SortFunc(g, compareRows)
	}
	var out strings.Builder
	i, j := 0, 0
	for i < len(w) || j < len(g) {
		switch {
		case i < len(w) && j < len(g) && equalRows(w[i], g[j], o.ULP):
			i++
			j++
		case j == len(g) || i < len(w) && !o.Ordered && compareRows(w[i], g[j]) < 0:
			fmt.Fprintf(&out, "- %s\n", w[i].text)
			i++
		case i == len(w) || !o.Ordered:
			fmt.Fprintf(&out, "+ %s\n", g[j].text)
			j++
		default:
			fmt.Fprintf(&out, "- %s\n+ %s\n", w[i].text, g[j].text)
			i++
			j++
		}
		if out.Len() > 4000 {
			out.WriteString("…\n")
			break
		}
	}
	if out.Len() > 0 {
		return fmt.Sprintf("%d rows wanted, %d got\n%s", len(w), len(g), out.String())
	}
	return ""
}

// Equal fails t if Diff finds a difference.
func Equal(t testing.TB, want, got []arrow.RecordBatch, o DiffOptions) {
	t.Helper()
	if d := Diff(want, got, o); d != "" {
		t.Errorf("%s", d)
	}
}

// EqualText fails t if the canonical text of got, its rows sorted unless ordered, is
// not want; blank lines and indentation at the ends of lines do not count.
func EqualText(t testing.TB, want string, got arrow.RecordBatch, ordered bool) {
	t.Helper()
	text := columnar.Text(plainSchema(got.Schema()), []arrow.RecordBatch{got}, columnar.TextOptions{Ordered: ordered})
	if normal(want) != normal(text) {
		t.Errorf("want\n%s\ngot\n%s", normal(want), normal(text))
	}
}

func normal(s string) string {
	var lines []string
	for _, l := range strings.Split(s, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, strings.Join(splitCells(l), "  "))
		}
	}
	return strings.Join(lines, "\n")
}

// EqualArrays fails t if the values of a and b, or their types, differ; a
// dictionary equals its plain form, NaN equals NaN, -0.0 differs from 0.0.
func EqualArrays(t testing.TB, want, got arrow.Array) {
	t.Helper()
	if columnar.TypeName(want.DataType()) != columnar.TypeName(got.DataType()) {
		t.Errorf("type %s wanted, got %s", want.DataType(), got.DataType())
		return
	}
	if want.Len() != got.Len() {
		t.Errorf("%d values wanted, got %d", want.Len(), got.Len())
		return
	}
	for i := range want.Len() {
		w := string(columnar.AppendCanonical(nil, want, i, nil))
		g := string(columnar.AppendCanonical(nil, got, i, nil))
		if w != g {
			t.Errorf("value %d: %s wanted, got %s", i, w, g)
			return
		}
	}
	nulls := 0
	for i := range got.Len() {
		if got.IsNull(i) {
			nulls++
		}
	}
	if got.DataType().ID() != arrow.NULL && nulls != got.NullN() {
		t.Errorf("%d nulls, but NullN says %d", nulls, got.NullN())
	}
}

func plainSchema(s *arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, s.NumFields())
	for i, f := range s.Fields() {
		if d, ok := f.Type.(*arrow.DictionaryType); ok {
			f.Type = d.ValueType
		}
		fields[i] = f
	}
	return arrow.NewSchema(fields, nil)
}

// row is one row as text, and its doubles, which may be compared loosely.
type row struct {
	text   string
	cells  []string
	floats []float64 // of the cells that are REAL or DOUBLE; others 0
	loose  []bool
}

func rowsOf(batches []arrow.RecordBatch) []row {
	var rows []row
	for _, b := range batches {
		for i := range int(b.NumRows()) {
			var r row
			for _, c := range b.Columns() {
				r.cells = append(r.cells, string(columnar.AppendCanonical(nil, c, i, nil)))
				v, isFloat := columnar.Value(c, i).(float64)
				r.floats = append(r.floats, v)
				r.loose = append(r.loose, isFloat)
			}
			r.text = strings.Join(r.cells, "  ")
			rows = append(rows, r)
		}
	}
	return rows
}

// compareRows orders rows by their exact cells first, so that rows whose doubles
// differ a little still meet.
func compareRows(a, b row) int {
	for i := range a.cells {
		switch {
		case a.loose[i] != b.loose[i]: // one is NULL: always on the same side
			if b.loose[i] {
				return -1
			}
			return 1
		case !a.loose[i]:
			if c := strings.Compare(a.cells[i], b.cells[i]); c != 0 {
				return c
			}
		}
	}
	return slices.Compare(a.floats, b.floats)
}

func equalRows(a, b row, ulp int) bool {
	for i := range a.cells {
		if a.cells[i] == b.cells[i] {
			continue
		}
		if ulp == 0 || !a.loose[i] || !b.loose[i] || !near(a.floats[i], b.floats[i], ulp) {
			return false
		}
	}
	return true
}

// near says whether a and b are at most ulp representable doubles apart.
func near(a, b float64, ulp int) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	order := func(v float64) int64 {
		n := int64(math.Float64bits(v))
		if n < 0 {
			n = math.MinInt64 - n
		}
		return n
	}
	d := order(a) - order(b)
	return d >= int64(-ulp) && d <= int64(ulp)
}
