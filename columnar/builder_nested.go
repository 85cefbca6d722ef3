package columnar

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// appendNested appends an ARRAY, a STRUCT or a MAP.
func appendNested(b array.Builder, dt arrow.DataType, v any) error {
	switch b := b.(type) {
	case *array.ListBuilder:
		list, ok := goList(v)
		if !ok {
			return misfit(dt, v)
		}
		b.Append(true)
		for _, e := range list {
			if err := appendAny(b.ValueBuilder(), dt.(*arrow.ListType).Elem(), e); err != nil {
				return err
			}
		}
	case *array.StructBuilder:
		list, err := goFields(dt.(*arrow.StructType), v)
		if err != nil {
			return err
		}
		b.Append(true)
		for i, e := range list {
			if err := appendAny(b.FieldBuilder(i), dt.(*arrow.StructType).Field(i).Type, e); err != nil {
				return err
			}
		}
	case *array.MapBuilder:
		entries, ok := goEntries(v)
		if !ok {
			return misfit(dt, v)
		}
		t := dt.(*arrow.MapType)
		b.Append(true)
		for _, e := range entries {
			if e[0] == nil {
				return fmt.Errorf("a key of a %s is null", TypeName(dt))
			}
			if err := appendAny(b.KeyBuilder(), t.KeyType(), e[0]); err != nil {
				return err
			}
			if err := appendAny(b.ItemBuilder(), t.ItemType(), e[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// goList is the elements of a slice; bytes are none.
func goList(v any) ([]any, bool) {
	switch x := v.(type) {
	case []any:
		return x, true
	case []byte:
		return nil, false
	}
	s := reflect.ValueOf(v)
	if s.Kind() != reflect.Slice {
		return nil, false
	}
	list := make([]any, s.Len())
	for i := range list {
		list[i] = s.Index(i).Interface()
	}
	return list, true
}

// goFields is the fields of a struct in order.
func goFields(t *arrow.StructType, v any) ([]any, error) {
	switch x := v.(type) {
	case []any:
		if len(x) == t.NumFields() {
			return x, nil
		}
	case map[string]any:
		list, found := make([]any, t.NumFields()), 0
		for i, f := range t.Fields() {
			value, ok := x[f.Name]
			if list[i] = value; ok {
				found++
			}
		}
		if found < len(x) {
			return nil, unknownField(t, x)
		}
		return list, nil
	}
	return nil, misfit(t, v)
}

// unknownField names the first key of v, by the alphabet, that is no field.
func unknownField(t *arrow.StructType, v map[string]any) error {
	names := make([]string, t.NumFields())
	for i, f := range t.Fields() {
		names[i] = f.Name
	}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if !slices.Contains(names, key) {
			return fmt.Errorf("%s has no field %s; its fields are %s", TypeName(t), key, strings.Join(names, ", "))
		}
	}
	return fmt.Errorf("bug: %v has only fields of %s", v, TypeName(t))
}

// goEntries is the entries of a map, in the order of its keys.
func goEntries(v any) ([][2]any, bool) {
	if x, ok := v.([][2]any); ok {
		return x, true
	}
	m := reflect.ValueOf(v)
	if m.Kind() != reflect.Map {
		return nil, false
	}
	keys := m.MapKeys()
	slices.SortFunc(keys, compareKeys)
	entries := make([][2]any, len(keys))
	for i, k := range keys {
		entries[i] = [2]any{k.Interface(), m.MapIndex(k).Interface()}
	}
	return entries, true
}

// compareKeys orders keys of one map: numbers and texts by value, others as they are
// printed.
func compareKeys(a, b reflect.Value) int {
	switch {
	case a.CanInt():
		return cmp.Compare(a.Int(), b.Int())
	case a.CanUint():
		return cmp.Compare(a.Uint(), b.Uint())
	case a.CanFloat():
		return cmp.Compare(a.Float(), b.Float())
	case a.Kind() == reflect.String:
		return strings.Compare(a.String(), b.String())
	}
	return strings.Compare(fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface()))
}
