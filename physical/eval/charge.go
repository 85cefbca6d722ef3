package eval

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
)

// reserve takes bytes from the budget until the evaluation is done with. Of several rows it
// takes no more than a part may have, and nothing that the budget refuses: errWide.
func (f *frame) reserve(bytes int64) error {
	fewer := f.rows > 1 && !f.once // rows would need less
	if fewer {
		if f.wide += bytes; f.wide > f.env.partBytes() {
			return errWide
		}
	}
	if err := f.env.Budget.Reserve("the value", bytes); err != nil {
		if fewer {
			return errWide
		}
		return err
	}
	f.held += bytes
	return nil
}

// isFixed says whether values of dt are in proportion to the rows.
func isFixed(dt arrow.DataType) bool {
	_, dictionary := dt.(*arrow.DictionaryType)
	_, fixed := dt.(arrow.FixedWidthDataType)
	return fixed && !dictionary
}

// reserveResult reserves what a result is out of proportion to its arguments (twice their
// bytes and function.InProportion), as far as the kernel has not, and releases it if that is
// refused. What has a fixed width is in proportion.
func (f *frame) reserveResult(d columnar.Datum, args []columnar.Datum, reserved int64) error {
	if isFixed(d.Type()) {
		return nil
	}
	more := columnar.DataBytes(d.Array().Data()) - function.InProportion - reserved
	if more <= 0 {
		return nil
	}
	own := int64(0)
	for _, a := range args {
		own += 2 * columnar.DataBytes(a.Array().Data())
	}
	// Nested calls that double their arguments are no way around it.
	if more -= min(own, 4*f.inputBytes()); more <= 0 {
		return nil
	}
	err := f.reserve(more)
	if err != nil {
		d.Release()
	}
	return err
}

// reserveRepeated reserves what d takes as a column of rows values, if it is a constant.
func (f *frame) reserveRepeated(d columnar.Datum, rows int) error {
	if !d.IsConstant() || isFixed(d.Type()) {
		return nil
	}
	if more := columnar.DataBytes(d.Array().Data())*int64(rows) - function.InProportion; more > 0 {
		return f.reserve(more)
	}
	return nil
}

// reserveTaken reserves what a take of rows from values makes, as far as it is more than the
// values are.
func (f *frame) reserveTaken(values arrow.Array, rows []int32) error {
	if isFixed(values.DataType()) {
		return nil
	}
	own := columnar.DataBytes(values.Data())
	if own*int64(len(rows)) <= function.InProportion {
		return nil
	}
	if more := columnar.TakenBytes(values, rows) - own - function.InProportion; more > 0 {
		return f.reserve(more)
	}
	return nil
}

// decoded is column a without its dictionary.
func (f *frame) decoded(a arrow.Array) (arrow.Array, error) {
	if d, ok := a.(*array.Dictionary); ok {
		own := columnar.DataBytes(d.Dictionary().Data())
		if own*int64(d.Len()) > function.InProportion {
			if more := columnar.PlainBytes(d, d.Len()) - own - function.InProportion; more > 0 {
				if err := f.reserve(more); err != nil {
					return nil, err
				}
			}
		}
	}
	return columnar.PlainColumn(f.env.Mem, a), nil
}

// inputBytes is about how much the rows evaluated take.
func (f *frame) inputBytes() int64 {
	if f.input == 0 {
		for _, c := range f.columns {
			f.input += columnar.DataBytes(c.Data())
		}
	}
	return f.input
}

// isTooWide says whether err asks for an evaluation of fewer rows.
func isTooWide(err error) bool { return errors.Is(err, errWide) }
