package columnar_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
)

func TestFitsPrecision(t *testing.T) {
	t.Parallel()
	nines := decimal128.GetScaleMultiplier(38).Sub(decimal128.FromI64(1))
	for _, c := range []struct {
		v         decimal128.Num
		precision int32
		want      bool
	}{
		{decimal128.New(-1<<63, 0), 38, false},
		{decimal128.New(-1<<63, 1), 38, false},
		{decimal128.New(1<<63-1, 1<<64-1), 38, false},
		{nines, 38, true}, {nines.Negate(), 38, true},
		{nines, 37, false},
		{decimal128.FromI64(99), 2, true}, {decimal128.FromI64(-100), 2, false},
	} {
		if got := columnar.FitsPrecision(c.v, c.precision); got != c.want {
			t.Errorf("%s has at most %d digits: %v, want %v", c.v.ToString(0), c.precision, got, c.want)
		}
	}
}
