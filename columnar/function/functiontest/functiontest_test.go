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
	for _, name := range []string{
		"sum", "min", "max", "avg", "count", "median", "mad", "mode", "histogram", "entropy", "approx_count_distinct", "var_pop", "stddev_samp",
		"skewness", "kurtosis", "sem", "product",
	} {
		f, ok := r.Aggregate(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		t.Run(name, func(t *testing.T) {
			TestAggregate(t, f, []arrow.DataType{columnar.Float64}, [][]any{{1.5}, {nil}, {-2.5}, {8.0}, {nil}})
		})
	}
}

func TestAggregatesOfTwo(t *testing.T) {
	t.Parallel()
	r := function.Builtins()
	for _, name := range []string{"corr", "covar_pop", "covar_samp", "regr_count", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy", "regr_slope", "regr_intercept", "regr_r2"} {
		f, ok := r.Aggregate(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		t.Run(name, func(t *testing.T) {
			TestAggregate(t, f, []arrow.DataType{columnar.Float64, columnar.Float64}, [][]any{{1.5, 2.0}, {nil, 1.0}, {-2.5, 4.0}, {8.0, nil}, {4.0, 0.5}})
		})
	}
	for _, name := range []string{"approx_quantile", "percentile_disc", "percentile"} {
		f, _ := r.Aggregate(name)
		t.Run(name, func(t *testing.T) {
			TestAggregate(t, f, []arrow.DataType{columnar.Float64, columnar.Float64}, [][]any{{1.5, 0.5}, {nil, 0.5}, {-2.5, 0.5}, {8.0, 0.5}, {1e300, 0.5}})
		})
	}
	for _, name := range []string{"bit_and", "bit_or", "bit_xor"} {
		f, _ := r.Aggregate(name)
		t.Run(name, func(t *testing.T) {
			TestAggregate(t, f, []arrow.DataType{columnar.Int64}, [][]any{{6}, {nil}, {3}, {12}})
		})
	}
}
