package invariants

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Check returns nil if ok holds. Otherwise it panics if Enabled, else returns an
// error, with the message "bug: " and the formatted text either way.
func Check(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return violated(fmt.Errorf("bug: "+format, args...))
}

func violated(err error) error {
	if Enabled {
		panic(err.Error())
	}
	return err
}

// Must panics if err is not nil and Enabled; it is for checks whose error has nowhere
// to go.
func Must(err error) {
	if err != nil {
		_ = violated(err)
	}
}

// Batch checks what a Reader promises about a batch: at least one row, the columns of
// the schema in order, of its types or dictionaries of them, all as long as the
// batch, with offsets that stay inside of their buffers. It panics or returns as
// Check does.
func Batch(b arrow.RecordBatch, schema *arrow.Schema) error {
	if b.NumRows() < 1 {
		return Check(false, "a batch without rows")
	}
	if int(b.NumCols()) != schema.NumFields() {
		return Check(false, "a batch of %d columns, its schema has %d", b.NumCols(), schema.NumFields())
	}
	for i, c := range b.Columns() {
		name, want := schema.Field(i).Name, schema.Field(i).Type
		got := c.DataType()
		if d, ok := got.(*arrow.DictionaryType); ok {
			got = d.ValueType
		}
		if !arrow.TypeEqual(got, want) {
			return Check(false, "column %s is %s, its schema says %s", name, got, want)
		}
		if int64(c.Len()) != b.NumRows() {
			return Check(false, "column %s has %d rows, its batch %d", name, c.Len(), b.NumRows())
		}
		if err := Array(c); err != nil {
			return Check(false, "column %s: %v", name, err)
		}
	}
	return nil
}

// Array checks that the offsets and codes of a, and of what is nested in it, stay
// inside of what they point into. It returns an error and never panics.
func Array(a arrow.Array) error {
	switch a := a.(type) {
	case *array.String:
		return offsets(a.ValueOffsets(), len(a.ValueBytes())+int(first(a.ValueOffsets())))
	case *array.Binary:
		return offsets(a.ValueOffsets(), len(a.ValueBytes())+int(first(a.ValueOffsets())))
	case *array.Dictionary:
		for i, c := range a.Indices().(*array.Int32).Int32Values() {
			if a.IsValid(i) && (c < 0 || int(c) >= a.Dictionary().Len()) {
				return fmt.Errorf("code %d of row %d is outside of a dictionary of %d", c, i, a.Dictionary().Len())
			}
		}
		return Array(a.Dictionary())
	case *array.Map:
		return lists(a, a.ListValues(), a.ValueOffsets)
	case *array.List:
		return lists(a, a.ListValues(), a.ValueOffsets)
	case *array.Struct:
		for k := range a.NumField() {
			if a.Field(k).Len() < a.Len() {
				return fmt.Errorf("field %d has %d rows, its struct %d", k, a.Field(k).Len(), a.Len())
			}
			if err := Array(a.Field(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

func first(offsets []int32) int32 {
	if len(offsets) == 0 {
		return 0
	}
	return offsets[0]
}

func offsets(offsets []int32, size int) error {
	for i := 1; i < len(offsets); i++ {
		if offsets[i] < offsets[i-1] {
			return fmt.Errorf("the offsets of row %d go backwards", i-1)
		}
	}
	if n := len(offsets); n > 0 && (offsets[0] < 0 || int(offsets[n-1]) > size) {
		return fmt.Errorf("offset %d is outside of %d bytes", offsets[n-1], size)
	}
	return nil
}

func lists(a arrow.Array, child arrow.Array, at func(i int) (from, to int64)) error {
	for i := range a.Len() {
		if from, to := at(i); from < 0 || to < from || int(to) > child.Len() {
			return fmt.Errorf("row %d is elements %d to %d of %d", i, from, to, child.Len())
		}
	}
	return Array(child)
}
