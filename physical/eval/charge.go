package eval

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
)

// reserve takes bytes from the budget until the batch is done with.
func (f *frame) reserve(bytes int64) error {
	if err := f.env.Budget.Reserve("the value", bytes); err != nil {
		return err
	}
	f.held += bytes
	return nil
}

// reserveResult takes what a result is out of proportion to its arguments (twice their bytes
// and function.InProportion) from the budget, as far as the kernel has not, and releases it if that is refused. What has a fixed width is
// in proportion to the rows.
func (f *frame) reserveResult(d columnar.Datum, args []columnar.Datum, reserved int64) error {
	if _, fixed := d.Type().(arrow.FixedWidthDataType); fixed {
		return nil
	}
	more := columnar.DataBytes(d.Array().Data()) - function.InProportion - reserved
	if more <= 0 {
		return nil
	}
	for _, a := range args {
		more -= 2 * columnar.DataBytes(a.Array().Data())
	}
	if more <= 0 {
		return nil
	}
	err := f.reserve(more)
	if err != nil {
		d.Release()
	}
	return err
}
