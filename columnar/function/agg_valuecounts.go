package function

import (
	"cmp"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/columnar/keyenc"
)

func topValuesAggregate() *Aggregate {
	a := countsAggregate("value_counts", "The different values, nulls aside, and how often each is there, as an array of structs with item and count, the most frequent first, of equally frequent ones the smallest. approx_top_k(x) is the first 5 of them, approx_top_k(x, n) the first n; the counts are exact.", "SELECT value_counts(x) FROM (VALUES (1), (NULL), (3), (3)) AS t(x) = [{3 2} {1 1}]",
		func(args []arrow.DataType) (arrow.DataType, error) {
			return columnar.ListOf(topValueType(args[0])), nil
		}, (*counts).byFrequency)
	a.Aliases = []string{"approx_top_k"}
	return a
}

func topValueType(dt arrow.DataType) arrow.DataType {
	return arrow.StructOf(columnar.Field("item", dt), columnar.Field("count", columnar.Int64))
}

// byFrequency is all values of each group, the most frequent first.
func (a *counts) byFrequency(groups []uint32) (arrow.Array, error) {
	var keys keyenc.Keys
	var n []int64
	lengths := make([]int, len(groups))
	for i, g := range groups {
		lengths[i] = len(a.groups[g])
		type entry struct {
			key string
			counted
		}
		var entries []entry
		for key, c := range a.groups[g] {
			entries = append(entries, entry{key, c})
		}
		slices.SortFunc(entries, func(x, y entry) int { return cmp.Or(cmp.Compare(y.n, x.n), cmp.Compare(x.key, y.key)) })
		for _, e := range entries {
			keys.Append([]byte(a.formOf(e.key, e.counted)))
			n = append(n, e.n)
		}
	}
	values, err := a.decode(&keys)
	if err != nil {
		return nil, err
	}
	o := newOut[int64](a.mem, columnar.Int64, len(n))
	copy(o.values, n)
	structs := kernel.WrapStruct(topValueType(a.dt), len(n), 0, nil, []arrow.Array{values, o.array()})
	defer structs.Release()
	return listColumn(a.mem, structs, lengths), nil
}
