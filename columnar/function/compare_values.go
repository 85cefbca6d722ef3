package function

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// toCompare is the elements of arrays, or the keys or values of maps, and argument k, whose
// types meet, in a form in which they compare by value: in their common type, or, where
// decimals have none that holds all their digits, taken apart. The caller releases both.
func (c *call) toCompare(elements arrow.Array, k int) (parts, value arrow.Array, err error) {
	of, with := elements.DataType(), c.args[k].Type()
	common, _ := columnar.Common(of, with)
	beyond := columnar.BeyondDecimal(of, with)
	own := func(dt arrow.DataType) arrow.DataType {
		if beyond {
			return columnar.WithOwnDecimals(common, dt)
		}
		return common
	}
	if parts, err = castArray(c, elements, own(of)); err != nil {
		return nil, nil, err
	}
	if value, err = c.argAs(k, own(with)); err != nil {
		parts.Release()
		return nil, nil, err
	}
	if beyond {
		parts, value = c.split(parts), c.split(value)
	}
	return parts, value, nil
}

// split takes the decimals of a apart, and a over.
func (c *call) split(a arrow.Array) arrow.Array {
	defer a.Release()
	return kernel.SplitDecimals(c.env.Mem, a)
}
