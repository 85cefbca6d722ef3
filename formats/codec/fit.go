package codec

import (
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// CanFit says why values of type have cannot be given as type want, which must hold them
// all. Fields of structs are found by name; one that is absent is null.
func CanFit(have, want arrow.DataType) error {
	switch h := have.(type) {
	case *arrow.StructType:
		if w, ok := want.(*arrow.StructType); ok {
			for _, f := range w.Fields() {
				if i := fieldNamed(h, f.Name); i >= 0 {
					if err := CanFit(h.Field(i).Type, f.Type); err != nil {
						return fmt.Errorf("%s: %w", f.Name, err)
					}
				}
			}
			return nil
		}
	case *arrow.ListType:
		if w, ok := want.(*arrow.ListType); ok {
			return CanFit(h.Elem(), w.Elem())
		}
	case *arrow.MapType:
		if w, ok := want.(*arrow.MapType); ok {
			if err := CanFit(h.KeyType(), w.KeyType()); err != nil {
				return err
			}
			return CanFit(h.ItemType(), w.ItemType())
		}
	default:
		if arrow.TypeEqual(have, want) || have.ID() == arrow.NULL || isBytes(have) && isBytes(want) {
			return nil
		}
		if common, ok := columnar.Common(have, want); ok && arrow.TypeEqual(common, want) && kernel.CanCast(have, want, kernel.CastOptions{}) {
			return nil
		}
	}
	return fmt.Errorf("it is %s in the file, which does not fit %s", columnar.TypeName(have), columnar.TypeName(want))
}

// mayBeNoText says whether values of type have are given as type want only where they are
// texts.
func mayBeNoText(have, want arrow.DataType) bool {
	return have.ID() == arrow.BINARY && want.ID() == arrow.STRING
}

// canFitKeys says whether every key of a MAP has a place in another, which it must.
func canFitKeys(have, want *arrow.MapType) bool {
	return CanFit(have.KeyType(), want.KeyType()) == nil && !mayBeNoText(have.KeyType(), want.KeyType())
}

func isBytes(dt arrow.DataType) bool { return dt.ID() == arrow.STRING || dt.ID() == arrow.BINARY }

func fieldNamed(s *arrow.StructType, name string) int {
	i, _ := columnar.Lookup(arrow.NewSchema(s.Fields(), nil), name)
	return i
}

// Fit gives a, which begins at the first row of its buffers, as type want, where CanFit
// allows it. The caller releases both.
func Fit(mem memory.Allocator, a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	return fitter{mem: mem}.fit(a, want)
}

// FitParts is Fit where CanFit does not allow it: what does not fit is null.
func FitParts(mem memory.Allocator, a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	return fitter{mem, true}.fit(a, want)
}

type fitter struct {
	mem   memory.Allocator
	parts bool // what does not fit is null
}

func (t fitter) fit(a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	have := a.DataType()
	switch {
	case arrow.TypeEqual(have, want):
		a.Retain()
		return a, nil
	case have.ID() == arrow.NULL:
		return columnar.Nulls(t.mem, want, a.Len()), nil
	case isBytes(have) && isBytes(want):
		return t.fitBytes(a, want)
	case t.parts && (have.ID() != want.ID() || !columnar.IsNested(have)) && CanFit(have, want) != nil:
		return columnar.Nulls(t.mem, want, a.Len()), nil
	}
	switch w := want.(type) {
	case *arrow.StructType:
		return t.fitStruct(a.(*array.Struct), w)
	case *arrow.ListType:
		return t.fitElements(a, a.(*array.List).ListValues(), w, w.Elem())
	case *arrow.MapType:
		if t.parts && !canFitKeys(have.(*arrow.MapType), w) {
			return columnar.Nulls(t.mem, want, a.Len()), nil // a key is never null
		}
		return t.fitElements(a, a.(*array.Map).ListValues(), w, w.Elem())
	}
	return kernel.Cast(t.mem, a, want, kernel.CastOptions{})
}

func (t fitter) fitBytes(a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	if b, ok := a.(*array.Binary); ok {
		if t.parts {
			return t.fitTexts(b), nil
		}
		for i := range b.Len() {
			if b.IsValid(i) && !utf8.Valid(b.Value(i)) {
				return nil, fmt.Errorf("the text of row %d of a batch is not UTF-8", i+1)
			}
		}
	}
	d := a.Data()
	data := array.NewData(want, d.Len(), d.Buffers(), nil, a.NullN(), d.Offset())
	defer data.Release()
	return array.MakeFromData(data), nil
}

// fitTexts makes texts of bytes; what is none is null.
func (t fitter) fitTexts(b *array.Binary) arrow.Array {
	texts := array.NewStringBuilder(t.mem)
	defer texts.Release()
	texts.Reserve(b.Len())
	for i := range b.Len() {
		if b.IsValid(i) && utf8.Valid(b.Value(i)) {
			texts.Append(string(b.Value(i)))
		} else {
			texts.AppendNull()
		}
	}
	return texts.NewArray()
}

// fitStruct finds the fields of want by their names.
func (t fitter) fitStruct(s *array.Struct, want *arrow.StructType) (arrow.Array, error) {
	fields := make([]arrow.Array, 0, want.NumFields())
	have := s.DataType().(*arrow.StructType)
	for _, f := range want.Fields() {
		i := fieldNamed(have, f.Name)
		if i < 0 {
			fields = append(fields, columnar.Nulls(t.mem, f.Type, s.Len()))
			continue
		}
		c, err := t.fit(s.Field(i), f.Type)
		if err != nil {
			for _, done := range fields {
				done.Release()
			}
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
func (t fitter) fitElements(a, elements arrow.Array, want arrow.DataType, elem arrow.DataType) (arrow.Array, error) {
	child, err := t.fit(elements, elem)
	if err != nil {
		return nil, err
	}
	offsets := a.Data().Buffers()[1]
	offsets.Retain()
	return kernel.WrapList(want, a.Len(), a.NullN(), validityOf(a), offsets, child), nil
}
