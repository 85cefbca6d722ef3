package columnar

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// FieldOrder is where the struct from has each field of to, by the names, without regard
// to case where none is the same to the letter. ok is false unless each field of one is a
// field of the other.
func FieldOrder(from, to *arrow.StructType) (order []int, ok bool) {
	n := to.NumFields()
	if from.NumFields() != n {
		return nil, false
	}
	order = make([]int, n)
	taken := make([]bool, n)
	find := func(i int, same func(a, b string) bool) bool {
		for d := range n { // its own place first
			if k := (i + d) % n; !taken[k] && same(from.Field(k).Name, to.Field(i).Name) {
				order[i], taken[k] = k, true
				return true
			}
		}
		return false
	}
	var others []int
	for i := range n {
		if !find(i, func(a, b string) bool { return a == b }) {
			others = append(others, i)
		}
	}
	for _, i := range others {
		if !find(i, strings.EqualFold) {
			return nil, false
		}
	}
	return order, true
}

// inPlace says whether an order of fields moves none.
func inPlace(order []int) bool {
	for i, k := range order {
		if i != k {
			return false
		}
	}
	return true
}

// MovesFields says whether a struct within to has the fields of the one in its place in
// from in another order.
func MovesFields(from, to arrow.DataType) bool {
	switch f := from.(type) {
	case *arrow.StructType:
		t, ok := to.(*arrow.StructType)
		if !ok {
			return false
		}
		if order, ok := FieldOrder(f, t); ok && !inPlace(order) {
			return true
		}
		for i := range min(f.NumFields(), t.NumFields()) {
			if MovesFields(f.Field(i).Type, t.Field(i).Type) {
				return true
			}
		}
	case *arrow.ListType:
		t, ok := to.(*arrow.ListType)
		return ok && MovesFields(f.Elem(), t.Elem())
	case *arrow.MapType:
		t, ok := to.(*arrow.MapType)
		return ok && (MovesFields(f.KeyType(), t.KeyType()) || MovesFields(f.ItemType(), t.ItemType()))
	}
	return false
}

// DecimalAdvice is what to do about a value that does not fit the DECIMAL it is implicitly
// cast to, see Common.
const DecimalAdvice = "it is the type in which the values here meet: cast one side to the DECIMAL(p,s) that is wanted, or to DOUBLE"

// CastAdvice is what to do about values of types a and b that should meet and do not.
func CastAdvice(a, b arrow.DataType) string {
	x, y := otherFields(a, b)
	switch {
	case x == nil:
		return "cast one of them"
	case x.NumFields() != y.NumFields():
		return "structs meet by the names of their fields, which must be the same"
	}
	return "structs meet by the names of their fields; a CAST renames them in order: CAST(… AS " + TypeName(a) + ")"
}

// HaveOtherFields says whether structs in the same place of a and b have different fields.
func HaveOtherFields(a, b arrow.DataType) bool {
	x, _ := otherFields(a, b)
	return x != nil
}

// otherFields are structs in the same place of a and b that have different fields.
func otherFields(a, b arrow.DataType) (x, y *arrow.StructType) {
	switch a := a.(type) {
	case *arrow.StructType:
		b, ok := b.(*arrow.StructType)
		if !ok {
			return nil, nil
		}
		order, ok := FieldOrder(b, a)
		if !ok {
			return a, b
		}
		for i, k := range order {
			if x, y := otherFields(a.Field(i).Type, b.Field(k).Type); x != nil {
				return x, y
			}
		}
	case *arrow.ListType:
		if b, ok := b.(*arrow.ListType); ok {
			return otherFields(a.Elem(), b.Elem())
		}
	case *arrow.MapType:
		if b, ok := b.(*arrow.MapType); ok {
			if x, y := otherFields(a.KeyType(), b.KeyType()); x != nil {
				return x, y
			}
			return otherFields(a.ItemType(), b.ItemType())
		}
	}
	return nil, nil
}
