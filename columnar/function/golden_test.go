package function_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tidemill/tidemill/columnar/columnartest"
)

// TestGolden runs testdata/<topic>: eval, with zone=NAME for another session time zone
// than UTC, computes an expression a line, as a constant and over columns.
func TestGolden(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Parallel()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			e := newEvaluator(t, columnartest.Mem(t))
			e.env.Location = time.UTC
			if d.HasArg("zone") {
				var zone string
				var err error
				d.ScanArgs(t, "zone", &zone)
				if e.env.Location, err = time.LoadLocation(zone); err != nil {
					d.Fatalf(t, "%v", err)
				}
			}
			var out strings.Builder
			for _, line := range strings.Split(d.Input, "\n") {
				fmt.Fprintf(&out, "%s  =>  %s\n", line, e.everyWay(line))
			}
			return out.String()
		})
	})
}

// everyWay is what an expression gives, as a constant and over columns.
func (e *evaluator) everyWay(text string) string {
	var first string
	for _, e.rows = range []int{0, 1, 67} {
		got := e.eval(text)
		if e.rows == 0 {
			first = got
		} else if got != first {
			return fmt.Sprintf("%s, but %s over %d rows", first, got, e.rows)
		}
	}
	return first
}
