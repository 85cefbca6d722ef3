package columnartest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/diff"
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
	w, g := diff.Rows(want, ""), diff.Rows(got, "")
	var out strings.Builder
	diff.Compare(w, g, diff.Options{Ordered: o.Ordered, ULP: o.ULP}, func(r diff.Row, extra bool) bool {
		sign := "-"
		if extra {
			sign = "+"
		}
		fmt.Fprintf(&out, "%s %s\n", sign, r.Text)
		if out.Len() > 4000 {
			out.WriteString("…\n")
			return false
		}
		return true
	})
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
