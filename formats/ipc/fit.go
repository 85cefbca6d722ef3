package ipc

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// canFit says why values of type have cannot be given as type want, which must hold them
// all. Fields of structs are found by name; one that is absent is null.
func canFit(have, want arrow.DataType) error {
	switch h := have.(type) {
	case *arrow.StructType:
		if w, ok := want.(*arrow.StructType); ok {
			for _, f := range w.Fields() {
				if i := fieldNamed(h, f.Name); i >= 0 {
					if err := canFit(h.Field(i).Type, f.Type); err != nil {
						return fmt.Errorf("%s: %w", f.Name, err)
					}
				}
			}
			return nil
		}
	case *arrow.ListType:
		if w, ok := want.(*arrow.ListType); ok {
			return canFit(h.Elem(), w.Elem())
		}
	case *arrow.MapType:
		if w, ok := want.(*arrow.MapType); ok {
			if err := canFit(h.KeyType(), w.KeyType()); err != nil {
				return err
			}
			return canFit(h.ItemType(), w.ItemType())
		}
	default:
		if arrow.TypeEqual(have, want) || have.ID() == arrow.NULL || isBytes(have) && isBytes(want) {
			return nil
		}
		if common, ok := columnar.Common(have, want); ok && arrow.TypeEqual(common, want) && kernel.CanCast(have, want) {
			return nil
		}
	}
	return fmt.Errorf("it is %s in the file, which does not fit %s", columnar.TypeName(have), columnar.TypeName(want))
}

func isBytes(dt arrow.DataType) bool { return dt.ID() == arrow.STRING || dt.ID() == arrow.BINARY }

func fieldNamed(s *arrow.StructType, name string) int {
	i, _ := columnar.Lookup(arrow.NewSchema(s.Fields(), nil), name)
	return i
}

// fit gives a as type want, where canFit allows it. The caller releases both.
func fit(mem memory.Allocator, a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	have := a.DataType()
	switch {
	case arrow.TypeEqual(have, want):
		a.Retain()
		return a, nil
	case have.ID() == arrow.NULL:
		return columnar.Nulls(mem, want, a.Len()), nil
	case isBytes(have) && isBytes(want):
		return fitBytes(a, want)
	}
	switch w := want.(type) {
	case *arrow.StructType:
		return fitStruct(mem, a.(*array.Struct), w)
	case *arrow.ListType:
		l := a.(*array.List)
		return fitElements(mem, a, l.ListValues(), w, w.Elem())
	case *arrow.MapType:
		m := a.(*array.Map)
		return fitElements(mem, a, m.ListValues(), w, w.Elem())
	}
	return kernel.Cast(mem, a, want, kernel.CastOptions{})
}

func fitBytes(a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	d := a.Data()
	data := array.NewData(want, d.Len(), d.Buffers(), nil, a.NullN(), d.Offset())
	defer data.Release()
	if s, ok := a.(*array.Binary); ok && a.Len() > 0 {
		offsets := s.ValueOffsets()
		var err error
		if a.NullN() == 0 {
			err = checkText(offsets, d.Buffers()[2].Bytes(), nil)
		} else {
			err = checkText(offsets, d.Buffers()[2].Bytes(), d.Buffers()[0])
		}
		if err != nil {
			return nil, err
		}
	}
	return array.MakeFromData(data), nil
}

// fitStruct finds the fields of want by their names.
func fitStruct(mem memory.Allocator, s *array.Struct, want *arrow.StructType) (arrow.Array, error) {
	fields := make([]arrow.Array, 0, want.NumFields())
	have := s.DataType().(*arrow.StructType)
	for _, f := range want.Fields() {
		i := fieldNamed(have, f.Name)
		if i < 0 {
			fields = append(fields, columnar.Nulls(mem, f.Type, s.Len()))
			continue
		}
		c, err := fit(mem, s.Field(i), f.Type)
		if err != nil {
			releaseArrays(fields)
			return nil, err
		}
		fields = append(fields, c)
	}
	return kernel.WrapStruct(want, s.Len(), s.NullN(), validityOf(s), fields), nil
}

// validityOf is one more reference to the validity of a column without offset; nil if
// nothing is null.
func validityOf(a arrow.Array) *memory.Buffer {
	b := a.Data().Buffers()[0]
	if a.NullN() == 0 || b == nil {
		return nil
	}
	b.Retain()
	return b
}

// fitElements gives the elements of an ARRAY or the entries of a MAP another type.
func fitElements(mem memory.Allocator, a, elements arrow.Array, want arrow.DataType, elem arrow.DataType) (arrow.Array, error) {
	child, err := fit(mem, elements, elem)
	if err != nil {
		return nil, err
	}
	offsets := a.Data().Buffers()[1]
	offsets.Retain()
	return kernel.WrapList(want, a.Len(), a.NullN(), validityOf(a), offsets, child), nil
}
