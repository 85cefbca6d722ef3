package kernel

import (
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
)

// TestPrecisionLimit: what holds has no more digits, at the ends of every precision; and
// all but those ends hold.
func TestPrecisionLimit(t *testing.T) {
	t.Parallel()
	for p := int32(1); p <= columnar.MaxPrecision; p++ {
		limit, end := newPrecisionLimit(p), decimal128.GetScaleMultiplier(int(p))
		held := 0
		for _, v := range []decimal128.Num{
			{}, decimal128.FromI64(1), decimal128.FromI64(math.MaxInt64), decimal128.FromI64(math.MinInt64), decimal128.FromU64(math.MaxUint64),
			end, end.Sub(decimal128.FromI64(1)), decimal128.GetScaleMultiplier(int(p - 1)), decimal128.MaxDecimal128,
		} {
			for _, v := range []decimal128.Num{v, v.Negate()} {
				holds := limit.holds(v.HighBits(), v.LowBits())
				if holds && !columnar.FitsPrecision(v, p) {
					t.Errorf("%s holds for %d digits", v.ToString(0), p)
				}
				if holds {
					held++
				}
			}
		}
		if held < 4 {
			t.Errorf("precision %d: %d values hold", p, held)
		}
	}
}
