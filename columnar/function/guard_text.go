package function

import (
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
)

// checkTexts refuses a column of a user's code with a text that is not UTF-8, which every
// VARCHAR is, in a row that counts. Texts in arrays, structs and maps count, too.
func checkTexts(what string, a arrow.Array, active *columnar.Bitmap) error {
	if !holdsTexts(a.DataType()) {
		return nil
	}
	for i := range a.Len() {
		if active != nil && !active.Get(i) {
			continue
		}
		if text, broken := brokenText(a, i); broken {
			return fmt.Errorf("%s returned the text %q, which is not valid UTF-8; make it valid with strings.ToValidUTF8, or return BINARY", what, text)
		}
	}
	return nil
}

func holdsTexts(dt arrow.DataType) bool {
	switch t := dt.(type) {
	case *arrow.StringType:
		return true
	case *arrow.DictionaryType:
		return holdsTexts(t.ValueType)
	case arrow.NestedType:
		for _, f := range t.Fields() {
			if holdsTexts(f.Type) {
				return true
			}
		}
	}
	return false
}

// brokenText is a text in value i of a that is not UTF-8.
func brokenText(a arrow.Array, i int) (text string, broken bool) {
	if columnar.IsNull(a, i) {
		return "", false
	}
	switch a := a.(type) {
	case *array.String:
		return a.Value(i), !utf8.ValidString(a.Value(i))
	case *array.Dictionary:
		return brokenText(a.Dictionary(), a.GetValueIndex(i))
	case *array.Struct:
		for k := range a.NumField() {
			if text, broken = brokenText(a.Field(k), i); broken {
				return text, true
			}
		}
	case array.ListLike: // a map is a list of its entries
		from, to := a.ValueOffsets(i)
		for j := from; j < to; j++ {
			if text, broken = brokenText(a.ListValues(), int(j)); broken {
				return text, true
			}
		}
	}
	return "", false
}

// rowsThatCount are the rows of d that count: of a constant its one value.
func rowsThatCount(d columnar.Datum, active *columnar.Bitmap) *columnar.Bitmap {
	if d.IsConstant() {
		return nil
	}
	return active
}
