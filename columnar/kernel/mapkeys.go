package kernel

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// CheckKeys says what keeps keys from to to from being those of one map: one is null, or
// there twice.
func CheckKeys(keys arrow.Array, from, to int) error {
	for i := from; i < to; i++ {
		if columnar.IsNull(keys, i) {
			return fmt.Errorf("a key of a map is null")
		}
	}
	if i := sameKey(keys, from, to); i >= 0 {
		return fmt.Errorf("the key %s is there twice in a map", columnar.AppendValue(nil, keys, i, nil))
	}
	return nil
}

// fewKeys is up to how many comparing each with each is faster than sorting.
const fewKeys = 16

// sameKey is one of keys from to to that another is equal to, -1 if there is none.
func sameKey(keys arrow.Array, from, to int) int {
	if to-from <= fewKeys {
		for i := from; i < to; i++ {
			for j := from; j < i; j++ {
				if CompareValues(keys, i, keys, j) == 0 {
					return i
				}
			}
		}
		return -1
	}
	order := make([]int, to-from)
	for i := range order {
		order[i] = from + i
	}
	slices.SortFunc(order, func(i, j int) int { return CompareValues(keys, i, keys, j) })
	for k := 1; k < len(order); k++ {
		if CompareValues(keys, order[k-1], keys, order[k]) == 0 {
			return order[k]
		}
	}
	return -1
}

// KeepEntries is the entries of the maps that are valid, and where each map begins and ends
// among them: Arrow allows no null key even in an entry that no map has. The caller releases
// both.
func KeepEntries(mem memory.Allocator, entries arrow.Array, ends []int32, valid func(i int) bool) (kept arrow.Array, offsets *memory.Buffer) {
	offsets, out := Make[int32](mem, len(ends))
	out[0] = 0
	var rows []int32
	for i := range len(ends) - 1 {
		for j := ends[i]; j < ends[i+1] && valid(i); j++ {
			rows = append(rows, j)
		}
		out[i+1] = int32(len(rows))
	}
	return part(mem, entries, rows), offsets
}

// castMaps makes maps of type to of those of a, whose entries were cast: a map whose keys
// are not those of a map any more is an error or, in try mode and where no row counts, null.
// It takes over entries and valid.
func castMaps(mem memory.Allocator, a arrow.Array, to *arrow.MapType, o CastOptions, entries arrow.Array, valid *memory.Buffer, nulls int) (arrow.Array, error) {
	src := offsetsOf(a)[:a.Len()+1]
	offsets, ends := Make[int32](mem, len(src))
	for i, e := range src {
		ends[i] = e - src[0]
	}
	keys := entries.(*array.Struct).Field(0)
	bad := func(i int) error {
		if err := CheckKeys(keys, int(ends[i]), int(ends[i+1])); err != nil {
			return &ValueError{ErrCast, fmt.Sprintf("cannot cast %s to %s: %v", columnar.AppendValue(nil, a, i, nil), columnar.TypeName(to), err)}
		}
		return nil
	}
	before := nulls
	valid, nulls, err := o.settle(mem, a.Len(), valid, nulls, bad)
	if err == nil && !o.Try && o.Active != nil {
		valid, nulls, err = Mode{Try: true}.settle(mem, a.Len(), valid, nulls, bad)
	}
	if err != nil {
		entries.Release()
		offsets.Release()
		return nil, err
	}
	if nulls == before && keys.NullN() == 0 {
		return WrapList(to, a.Len(), nulls, valid, offsets, entries), nil
	}
	defer entries.Release()
	defer offsets.Release()
	kept, keptEnds := KeepEntries(mem, entries, ends, func(i int) bool { return valid == nil || bitAt(valid.Bytes(), i) })
	return WrapList(to, a.Len(), nulls, valid, keptEnds, kept), nil
}
