package expr_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
)

// TestMovedDateText: checkpoints know a DATE moved by days by the text it had when it was a
// TIMESTAMP on the way.
func TestMovedDateText(t *testing.T) {
	t.Parallel()
	d := &expr.Column{ID: expr.NewID(), Name: "d", DataType: columnar.Date}
	day := lit(arrow.MonthDayNanoInterval{Days: 1})
	for _, c := range []struct {
		name string
		args []expr.Expr
		want string
	}{
		{"+", []expr.Expr{d, day}, "CAST(CAST(d AS TIMESTAMP) + INTERVAL '1 day' AS DATE)"},
		{"+", []expr.Expr{day, d}, "CAST(INTERVAL '1 day' + CAST(d AS TIMESTAMP) AS DATE)"},
		{"-", []expr.Expr{d, day}, "CAST(CAST(d AS TIMESTAMP) - INTERVAL '1 day' AS DATE)"},
		{"try_add", []expr.Expr{d, day}, "CAST(try_add(CAST(d AS TIMESTAMP), INTERVAL '1 day') AS DATE)"},
		{"-", []expr.Expr{d, d}, "d - d"},
	} {
		e, err := expr.NewCall(registry, c.name, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		if e.String() != c.want {
			t.Errorf("%s, want %s", e, c.want)
		}
	}
}
