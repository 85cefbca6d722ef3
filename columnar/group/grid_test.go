package group

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

// gridBatches are batches of two key columns: values that stay close together, then move
// out of range below and above, nulls, and values far apart.
func gridBatches(t *testing.T, dt arrow.DataType) [][]arrow.Array {
	r := rand.New(rand.NewPCG(1, 2))
	var out [][]arrow.Array
	for _, c := range []struct {
		base, spread int
		nulls        bool
	}{{40, 9, false}, {40, 9, false}, {35, 60, false}, {-20, 100, true}, {-20, 100, false}, {100, 20, false}, {-120, 240, false}, {-120, 240, true}} {
		var a, b []any
		for range 3000 {
			v, w := any(int64(c.base+r.IntN(c.spread))), any(fmt.Sprint("text ", r.IntN(30)))
			if c.nulls && r.IntN(10) == 0 {
				v = nil
			}
			if c.nulls && r.IntN(10) == 0 {
				w = nil
			}
			a, b = append(a, v), append(b, w)
		}
		ints, err := columnar.Column(columnar.NewPool(), dt, a...)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := columnar.Column(columnar.NewPool(), columnar.String, b...)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, []arrow.Array{ints, texts})
	}
	return out
}

// TestGrid compares a table that uses a grid with a map, with and without text beside the
// numbers, adding and only finding, with one cell of a hash for all keys and with many.
func TestGrid(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bigint", "integer", "smallint", "tinyint"} {
		dt, _ := columnartest.Type(name)
		for columns := 1; columns <= 2; columns++ {
			for _, mask := range []uint32{0, 1} {
				t.Run(fmt.Sprint(name, columns, mask), func(t *testing.T) {
					t.Parallel()
					checkGrid(t, gridBatches(t, dt), columns, mask)
				})
			}
		}
	}
}

func checkGrid(t *testing.T, batches [][]arrow.Array, columns int, mask uint32) {
	types := []arrow.DataType{batches[0][0].DataType(), columnar.String}[:columns]
	table, err := New(columnar.NewPool(), types, Options{tagMask: mask})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	ids := make([]uint32, 3000)
	for range 2 { // the second time after Reset
		want, used := map[string]uint32{}, false
		for b, keys := range batches {
			keys = keys[:columns]
			if err := table.Find(keys, ids); err != nil {
				t.Fatal(err)
			}
			for i, id := range ids {
				if w, ok := want[canonicalRow(keys, i)]; ok && id != w || !ok && id != NotFound {
					t.Fatalf("batch %d: key %s is found as %d, want %d (%v)", b, canonicalRow(keys, i), id, w, ok)
				}
			}
			if err := table.Intern(keys, ids); err != nil {
				t.Fatal(err)
			}
			for i, id := range ids {
				row := canonicalRow(keys, i)
				if _, ok := want[row]; !ok {
					want[row] = uint32(len(want))
				}
				if id != want[row] {
					t.Fatalf("batch %d: key %s has id %d, want %d", b, row, id, want[row])
				}
			}
			used = used || table.(*packedKey).grid.ids != nil
		}
		if !used {
			t.Error("there never was a grid")
		}
		table.Reset()
	}
}

// TestGridIsGivenUp has keys for which a grid is too large, and keys that never come again.
func TestGridIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]func(i int) int64{
		"far apart": func(i int) int64 { return int64(i) << 40 },
		"ever new":  func(i int) int64 { return int64(i) },
	} {
		table, err := New(columnar.NewPool(), []arrow.DataType{columnar.Int64}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		const rows = 4096
		ids := make([]uint32, rows)
		for at := 0; at < 100*rows; at += rows {
			values := make([]any, rows)
			for i := range values {
				values[i] = value(at + i)
			}
			a, err := columnar.Column(columnar.NewPool(), columnar.Int64, values...)
			if err != nil {
				t.Fatal(err)
			}
			if err := table.Intern([]arrow.Array{a}, ids); err != nil {
				t.Fatal(err)
			}
		}
		if table.(*packedKey).grid.ids != nil {
			t.Errorf("%s: there still is a grid", name)
		}
		table.Release()
	}
}
