package state

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

// TestProbe compares a Probe, whatever number of pairs it is asked for at a time, with
// Find; a key that is skipped finds nothing.
func TestProbe(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	column := func(values ...int64) []arrow.Array {
		b := array.NewInt64Builder(mem)
		defer b.Release()
		for _, v := range values {
			if v < 0 {
				b.AppendNull()
			} else {
				b.Append(v)
			}
		}
		return []arrow.Array{b.NewArray()}
	}
	for _, multi := range []bool{true, false} {
		schema := TableSchema{Name: "rows", Key: []arrow.Field{columnar.Field("k", columnar.Int64)}, MultiRow: multi}
		table, err := newTable(schema, Options{Mem: mem, Shards: 1}, new(account))
		if err != nil {
			t.Fatal(err)
		}
		defer table.release()
		shard := table.Shards()[0]
		keys := column(3, 1, 3, 3, -1, 2, 1, -1)
		defer releaseAll(keys)
		rows := make([]uint32, 8)
		if multi {
			err = shard.Append(keys, nil, rows)
		} else {
			_, err = shard.Intern(keys, rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		wanted := column(3, 9, -1, 1, 3, 2)
		defer releaseAll(wanted)
		from, found, err := shard.Find(wanted, 6)
		if err != nil {
			t.Fatal(err)
		}
		const skipped = 4
		var want []string
		for k := range 6 {
			for _, row := range found[from[k]:from[k+1]] {
				if k != skipped {
					want = append(want, fmt.Sprint(k, " ", row))
				}
			}
		}
		for size := range 9 {
			if size == 0 {
				continue
			}
			var p Probe
			if err := p.Start(shard, wanted, 6); err != nil {
				t.Fatal(err)
			}
			p.Skip(skipped)
			var got []string
			of, rows := make([]int32, size), make([]uint32, size)
			for n := p.Next(of, rows); n > 0; n = p.Next(of, rows) {
				for i := range n {
					got = append(got, fmt.Sprint(of[i], " ", rows[i]))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("several rows a key %v, %d at a time: %v, not %v", multi, size, got, want)
			}
		}
	}
}
