package parquet

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
)

// widening turns n values of one engine type into a wider one. nil: nothing to do.
type widening func(dst, src []byte, n int) error

// newWidening says how values of type from become values of type to, which must be
// able to hold them all.
func newWidening(from, to arrow.DataType) (widening, error) {
	if arrow.TypeEqual(from, to) || width(from) == 0 && width(to) == 0 {
		return nil, nil
	}
	if common, ok := columnar.Common(from, to); !ok || !arrow.TypeEqual(common, to) {
		return nil, fmt.Errorf("it is %s in the file, which does not fit %s", columnar.TypeName(from), columnar.TypeName(to))
	}
	switch from.ID() {
	case arrow.INT8:
		return widenInts(arrow.Int8Traits.CastFromBytes, to)
	case arrow.INT16:
		return widenInts(arrow.Int16Traits.CastFromBytes, to)
	case arrow.INT32:
		return widenInts(arrow.Int32Traits.CastFromBytes, to)
	case arrow.INT64:
		return widenInts(arrow.Int64Traits.CastFromBytes, to)
	case arrow.FLOAT32:
		return loop(arrow.Float32Traits.CastFromBytes, arrow.Float64Traits.CastFromBytes), nil
	case arrow.DATE32:
		return widenDate, nil
	case arrow.DECIMAL128:
		return widenDecimal(from.(*arrow.Decimal128Type), to)
	}
	return nil, fmt.Errorf("it is %s in the file, wanted is %s", columnar.TypeName(from), columnar.TypeName(to))
}

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}

// loop converts with Go's conversion, which is exact for every pair used here.
func loop[A, B number](in func([]byte) []A, out func([]byte) []B) widening {
	return func(dst, src []byte, n int) error {
		d, s := out(dst)[:n], in(src)[:n]
		for i, v := range s {
			d[i] = B(v)
		}
		return nil
	}
}

func widenInts[A ~int8 | ~int16 | ~int32 | ~int64](in func([]byte) []A, to arrow.DataType) (widening, error) {
	switch t := to.(type) {
	case *arrow.Int16Type:
		return loop(in, arrow.Int16Traits.CastFromBytes), nil
	case *arrow.Int32Type:
		return loop(in, arrow.Int32Traits.CastFromBytes), nil
	case *arrow.Int64Type:
		return loop(in, arrow.Int64Traits.CastFromBytes), nil
	case *arrow.Float64Type:
		return loop(in, arrow.Float64Traits.CastFromBytes), nil
	case *arrow.Decimal128Type:
		factor := decimal128.GetScaleMultiplier(int(t.Scale))
		return func(dst, src []byte, n int) error {
			d, s := arrow.Decimal128Traits.CastFromBytes(dst)[:n], in(src)[:n]
			for i, v := range s {
				d[i] = decimal128.FromI64(int64(v)).Mul(factor)
			}
			return nil
		}, nil
	}
	return nil, fmt.Errorf("an integer does not fit %s", columnar.TypeName(to))
}

func widenDate(dst, src []byte, n int) error {
	d, s := arrow.Int64Traits.CastFromBytes(dst)[:n], arrow.Int32Traits.CastFromBytes(src)[:n]
	for i, v := range s {
		if int64(v) > math.MaxInt64/dayMicros || int64(v) < math.MinInt64/dayMicros {
			return errRange
		}
		d[i] = int64(v) * dayMicros
	}
	return nil
}

func widenDecimal(from *arrow.Decimal128Type, to arrow.DataType) (widening, error) {
	if to.ID() == arrow.FLOAT64 {
		return func(dst, src []byte, n int) error {
			d, s := arrow.Float64Traits.CastFromBytes(dst)[:n], arrow.Decimal128Traits.CastFromBytes(src)[:n]
			for i, v := range s {
				d[i] = v.ToFloat64(from.Scale)
			}
			return nil
		}, nil
	}
	more := to.(*arrow.Decimal128Type).Scale - from.Scale
	if more < 0 {
		return nil, fmt.Errorf("it is %s in the file, which has more decimal places than %s", columnar.TypeName(from), columnar.TypeName(to))
	}
	factor := decimal128.GetScaleMultiplier(int(more))
	return func(dst, src []byte, n int) error {
		d, s := arrow.Decimal128Traits.CastFromBytes(dst)[:n], arrow.Decimal128Traits.CastFromBytes(src)[:n]
		for i, v := range s {
			d[i] = v.Mul(factor)
		}
		return nil
	}, nil
}
