package functiontest

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
)

// The suites are tried on functions of the engine.

func TestScalars(t *testing.T) {
	t.Parallel()
	r := function.Builtins()
	for name, c := range map[string]struct {
		args []arrow.DataType
		rows [][]any
	}{
		"//":          {[]arrow.DataType{columnar.Int64, columnar.Int64}, [][]any{{7, 2}, {nil, 1}, {-7, 2}}},
		"starts_with": {[]arrow.DataType{columnar.String, columnar.String}, [][]any{{"tide", "t"}, {"", nil}, {"mill", "i"}}},
		"coalesce":    {[]arrow.DataType{columnar.Int64}, [][]any{{1}, {nil}}},
	} {
		f, ok := r.Scalar(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		t.Run(name, func(t *testing.T) { TestScalar(t, f, c.args, c.rows) })
	}
}

func TestAggregates(t *testing.T) {
	t.Parallel()
	r := function.Builtins()
	for _, name := range []string{"sum", "min", "max", "avg", "count"} {
		f, ok := r.Aggregate(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		t.Run(name, func(t *testing.T) {
			TestAggregate(t, f, []arrow.DataType{columnar.Float64}, [][]any{{1.5}, {nil}, {-2.5}, {8.0}, {nil}})
		})
	}
}
