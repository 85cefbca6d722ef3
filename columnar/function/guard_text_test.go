package function

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

// TestBrokenTextIsRefused: a text of a user's function that is not UTF-8 is an error that
// names the function, alone and in nested values, but not in a row that does not count.
func TestBrokenTextIsRefused(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	texts := func(values ...string) arrow.Array {
		b := array.NewStringBuilder(mem)
		defer b.Release()
		b.AppendValues(values, nil)
		return b.NewArray()
	}
	broken := texts("é", "a\xff")
	list := listColumn(mem, broken, []int{0, 2})
	for _, c := range []struct {
		name   string
		column arrow.Array
		active []int // rows that count
		bad    bool
	}{
		{"broken", broken, []int{0, 1}, true},
		{"not counted", broken, []int{0}, false},
		{"halves of a character", texts("\xc3", "\xa9"), []int{0, 1}, true},
		{"whole", texts("é", "日本"), []int{0, 1}, false},
		{"in an array", list, []int{0, 1}, true},
		{"in an empty array", list, []int{0}, false},
	} {
		f, err := (&Scalar{Name: "own", Overloads: []Overload{{
			Result: always(c.column.DataType()), Fallible: true,
			Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return func(*Env, []columnar.Datum, int, *columnar.Bitmap) (columnar.Datum, error) {
					c.column.Retain()
					return columnar.ColumnDatum(c.column), nil
				}, nil
			},
		}}}).Guarded()
		if err != nil {
			t.Fatal(err)
		}
		kernel, err := f.Overloads[0].Bind(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		active := columnar.NewBitmap(2)
		for _, i := range c.active {
			active.Set(i)
		}
		d, err := kernel(&Env{Mem: mem}, nil, 2, active)
		if err == nil {
			d.Release()
		}
		if c.bad != (err != nil) || err != nil && !strings.HasPrefix(err.Error(), `function own returned the text "`) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.column != broken && c.column != list {
			c.column.Release()
		}
	}
	list.Release()
	broken.Release()
}
