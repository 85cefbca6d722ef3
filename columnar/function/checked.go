package function

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// checked makes every form of f look at its constant arguments first: what is no pattern,
// path, zone or unit is refused before there are rows.
func (f *Scalar) checked(check func(types []arrow.DataType, constants []arrow.Array) error) *Scalar {
	for i := range f.Overloads {
		bind := f.Overloads[i].Bind
		f.Overloads[i].Bind = func(types []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			if err := check(types, constants); err != nil {
				return nil, err
			}
			return bind(types, constants)
		}
	}
	return f
}

// textChecked is checked for argument k alone, where it is a text that parse reads.
func textChecked[T any](f *Scalar, k int, parse func(text string) (T, error)) *Scalar {
	return f.checked(func(_ []arrow.DataType, constants []arrow.Array) error {
		if text, ok := constantText(constants, k); ok {
			_, err := parse(text)
			return err
		}
		return nil
	})
}

// groupChecked is checked for functions of a regular expression and a group of it, the
// second and third argument.
func groupChecked(f *Scalar) *Scalar {
	return f.checked(func(_ []arrow.DataType, constants []arrow.Array) error {
		pattern, ok := constantText(constants, 1)
		if !ok {
			return nil
		}
		re, err := compileRegexp(pattern, "")
		if err != nil || len(constants) < 3 || constants[2] == nil || columnar.IsNull(constants[2], 0) {
			return err
		}
		group, _ := columnar.Value(constants[2], 0).(int64)
		return checkGroup(group, re.NumSubexp())
	})
}

func checkGroup(group int64, groups int) error {
	if group < 0 || group > int64(groups) {
		return fmt.Errorf("the regular expression has no group %d; its number of groups is %d", group, groups)
	}
	return nil
}
