package gotype

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
)

// pointer is a value that may be NULL: nil.
type pointer struct {
	to codec
	t  reflect.Type // of what it points to
}

func (m mapper) pointer(t reflect.Type) (codec, error) {
	switch t.Elem().Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return nil, fmt.Errorf("%s has two ways to be NULL; leave a pointer out", t)
	}
	to, err := m.codec(t.Elem())
	return pointer{to, t.Elem()}, err
}

func (c pointer) dataType() arrow.DataType { return c.to.dataType() }

func (c pointer) append(b array.Builder, v strided) error {
	for i := range v.n {
		p := *(*unsafe.Pointer)(v.value(i))
		if p == nil {
			b.AppendNull()
			continue
		}
		if err := c.to.append(b, strided{p, c.t.Size(), 1}); err != nil {
			return err
		}
	}
	return nil
}

func (c pointer) decode(a arrow.Array, from int, to strided) error {
	valid := 0
	for i := range to.n {
		if a.IsValid(from + i) {
			valid++
		}
	}
	// One allocation for all: values of a column mostly go together.
	mem := newValues(c.t, valid)
	next := 0
	for i := 0; i < to.n; {
		if a.IsNull(from + i) {
			*(*unsafe.Pointer)(to.value(i)) = nil
			i++
			continue
		}
		run := 1
		for i+run < to.n && a.IsValid(from+i+run) {
			run++
		}
		part := strided{mem.value(next), mem.stride, run}
		if err := c.to.decode(a, from+i, part); err != nil {
			return err
		}
		for k := range run {
			*(*unsafe.Pointer)(to.value(i + k)) = part.value(k)
		}
		next += run
		i += run
	}
	return nil
}

// newValues is memory for n values of a type.
func newValues(t reflect.Type, n int) strided {
	return strided{reflect.MakeSlice(reflect.SliceOf(t), n, n).UnsafePointer(), t.Size(), n}
}

// sliceHeader is a slice as it lies in memory.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// slice is an ARRAY; nil is NULL.
type slice struct {
	elem codec
	t    reflect.Type // of elements
}

func (m mapper) slice(t reflect.Type) (codec, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		return bytes{}, nil
	}
	elem, err := m.codec(t.Elem())
	return slice{elem, t.Elem()}, err
}

func (c slice) dataType() arrow.DataType { return columnar.ListOf(c.elem.dataType()) }

func (c slice) append(b array.Builder, v strided) error {
	list := b.(*array.ListBuilder)
	for i := range v.n {
		h := (*sliceHeader)(v.value(i))
		if h.data == nil {
			list.AppendNull()
			continue
		}
		list.Append(true)
		if h.len == 0 {
			continue
		}
		if err := c.elem.append(list.ValueBuilder(), strided{h.data, c.t.Size(), h.len}); err != nil {
			return err
		}
	}
	return nil
}

func (c slice) decode(a arrow.Array, from int, to strided) error {
	list := a.(*array.List)
	total := 0
	for i := range to.n {
		if list.IsValid(from + i) {
			start, end := list.ValueOffsets(from + i)
			total += int(end - start)
		}
	}
	mem := newValues(c.t, max(total, 1)) // an empty slice must not be nil
	next := 0
	for i := range to.n {
		h := (*sliceHeader)(to.value(i))
		if list.IsNull(from + i) {
			*h = sliceHeader{}
			continue
		}
		start, end := list.ValueOffsets(from + i)
		n := int(end - start)
		if n == 0 {
			*h = sliceHeader{data: mem.p}
			continue
		}
		part := strided{mem.value(next), mem.stride, n}
		if err := c.elem.decode(list.ListValues(), int(start), part); err != nil {
			return err
		}
		*h = sliceHeader{part.p, n, n}
		next += n
	}
	return nil
}

// structure is a STRUCT.
type structure struct {
	columns []column
	dt      arrow.DataType
}

func (m mapper) structure(t reflect.Type) (codec, error) {
	columns, err := m.record(t)
	if err != nil {
		return nil, err
	}
	if len(columns) == 0 {
		return nil, fmt.Errorf("%s has no exported fields", t)
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = c.field
	}
	return structure{columns, arrow.StructOf(fields...)}, nil
}

func (c structure) dataType() arrow.DataType { return c.dt }

func (c structure) append(b array.Builder, v strided) error {
	s := b.(*array.StructBuilder)
	valid := make([]bool, v.n)
	for i := range valid {
		valid[i] = true
	}
	s.AppendValues(valid)
	for k, f := range c.columns {
		if err := f.codec.append(s.FieldBuilder(k), v.at(f.offset)); err != nil {
			return fmt.Errorf("field %s: %w", f.field.Name, err)
		}
	}
	return nil
}

func (c structure) decode(a arrow.Array, from int, to strided) error {
	if err := noNulls(a, from, to.n); err != nil {
		return err
	}
	s := a.(*array.Struct)
	for k, f := range c.columns {
		if err := f.codec.decode(s.Field(k), from, to.at(f.offset)); err != nil {
			return fmt.Errorf("field %s: %w", f.field.Name, err)
		}
	}
	return nil
}

// dictionary is a MAP; nil is NULL. Go's maps are walked by reflection.
type dictionary struct {
	t           reflect.Type
	keys, items codec
	less        func(a, b reflect.Value) int
}

func (m mapper) dictionary(t reflect.Type) (codec, error) {
	less := compareOf(t.Key())
	if less == nil {
		return nil, fmt.Errorf("the key of %s is neither a number nor text", t)
	}
	keys, err := m.codec(t.Key())
	if err != nil {
		return nil, err
	}
	items, err := m.codec(t.Elem())
	return dictionary{t, keys, items, less}, err
}

// compareOf orders values of a type, nil if it does not know how.
func compareOf(t reflect.Type) func(a, b reflect.Value) int {
	switch {
	case t.Kind() == reflect.String:
		return func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) }
	case reflect.Zero(t).CanInt():
		return func(a, b reflect.Value) int { return cmp.Compare(a.Int(), b.Int()) }
	case reflect.Zero(t).CanUint() && t.Kind() != reflect.Uintptr:
		return func(a, b reflect.Value) int { return cmp.Compare(a.Uint(), b.Uint()) }
	case reflect.Zero(t).CanFloat():
		return func(a, b reflect.Value) int { return cmp.Compare(a.Float(), b.Float()) }
	}
	return nil
}

func (c dictionary) dataType() arrow.DataType {
	return arrow.MapOf(c.keys.dataType(), c.items.dataType())
}

func (c dictionary) append(b array.Builder, v strided) error {
	w := b.(*array.MapBuilder)
	for i := range v.n {
		m := reflect.NewAt(c.t, v.value(i)).Elem()
		if m.IsNil() {
			w.AppendNull()
			continue
		}
		w.Append(true)
		if m.Len() == 0 {
			continue
		}
		// In the order of keys: Go's own is another each time.
		sorted := m.MapKeys()
		sort.Slice(sorted, func(i, j int) bool { return c.less(sorted[i], sorted[j]) < 0 })
		keys := reflect.MakeSlice(reflect.SliceOf(c.t.Key()), len(sorted), len(sorted))
		items := reflect.MakeSlice(reflect.SliceOf(c.t.Elem()), len(sorted), len(sorted))
		for k, key := range sorted {
			keys.Index(k).Set(key)
			items.Index(k).Set(m.MapIndex(key))
		}
		err := errors.Join(
			c.keys.append(w.KeyBuilder(), strided{keys.UnsafePointer(), c.t.Key().Size(), len(sorted)}),
			c.items.append(w.ItemBuilder(), strided{items.UnsafePointer(), c.t.Elem().Size(), len(sorted)}))
		if err != nil {
			return err
		}
	}
	return nil
}

func (c dictionary) decode(a arrow.Array, from int, to strided) error {
	d := a.(*array.Map)
	for i := range to.n {
		m := reflect.NewAt(c.t, to.value(i)).Elem()
		if d.IsNull(from + i) {
			m.SetZero()
			continue
		}
		start, end := d.ValueOffsets(from + i)
		n := int(end - start)
		m.Set(reflect.MakeMapWithSize(c.t, n))
		keys := reflect.MakeSlice(reflect.SliceOf(c.t.Key()), n, n)
		items := reflect.MakeSlice(reflect.SliceOf(c.t.Elem()), n, n)
		if n == 0 {
			continue
		}
		err := errors.Join(
			c.keys.decode(d.Keys(), int(start), strided{keys.UnsafePointer(), c.t.Key().Size(), n}),
			c.items.decode(d.Items(), int(start), strided{items.UnsafePointer(), c.t.Elem().Size(), n}))
		if err != nil {
			return err
		}
		for k := range n {
			m.SetMapIndex(keys.Index(k), items.Index(k))
		}
	}
	return nil
}
