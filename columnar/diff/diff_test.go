package diff_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/diff"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	next := math.Nextafter(0.3, 1)
	tests := []struct {
		name      string
		want, got string
		o         diff.Options
		report    string
	}{
		{"the order does not count", "1  a\n2  b", "2  b\n1  a", diff.Options{}, ""},
		{"rows may repeat", "1  a\n1  a\n2  b", "1  a\n2  b\n2  b", diff.Options{}, "-1  a +2  b "},
		{"null is not the empty text", `1  NULL`, `1  ""`, diff.Options{}, `+1  "" -1  NULL `},
		{"in order", "1  a\n2  b", "2  b\n1  a", diff.Options{Ordered: true}, "-1  a +2  b -2  b +1  a "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := report(t, "n:BIGINT  s:VARCHAR", tt.want, tt.got, tt.o); got != tt.report {
				t.Errorf("got %q, want %q", got, tt.report)
			}
		})
	}
	t.Run("floats may be near", func(t *testing.T) {
		t.Parallel()
		if d := near(t, 0.3, next, 2); d != 0 {
			t.Errorf("%d rows differ", d)
		}
		if d := near(t, 0.3, next, 0); d != 2 {
			t.Errorf("%d rows differ where floats must be equal", d)
		}
		if d := near(t, 0.3, 0.30000000000001, 2); d != 2 {
			t.Errorf("%d rows differ where floats are far apart", d)
		}
	})
}

// near counts the rows that differ where one double stands against another.
func near(t *testing.T, a, b float64, ulp int) (n int) {
	t.Helper()
	row := func(v float64) []diff.Row {
		batch := columnartest.Batch(t, memory.DefaultAllocator, "x:DOUBLE\n"+strconv.FormatFloat(v, 'g', -1, 64))
		return diff.Rows([]arrow.RecordBatch{batch}, "")
	}
	diff.Compare(row(a), row(b), diff.Options{ULP: ulp}, func(diff.Row, bool) bool { n++; return true })
	return n
}

func report(t *testing.T, columns, want, got string, o diff.Options) (out string) {
	t.Helper()
	rows := func(text string) []diff.Row {
		b := columnartest.Batch(t, memory.DefaultAllocator, columns+"\n"+text)
		return diff.Rows([]arrow.RecordBatch{b}, "")
	}
	diff.Compare(rows(want), rows(got), o, func(r diff.Row, extra bool) bool {
		sign := "-"
		if extra {
			sign = "+"
		}
		out += sign + r.Text + " "
		return true
	})
	return out
}
