package physical_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical"
	"github.com/tidemill/tidemill/physical/physicaltest"
)

// A partial aggregation that goes on with the tables of the runs before gives what one with
// new tables gives, whichever keys come again.
func TestPartialsOfManyRuns(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"k:bigint", "k:varchar"} {
		kept := &physical.Partials{}
		ec := &physical.ExecContext{Mem: columnar.NewPool(), Parallel: 2, BatchRows: 16, Budget: columnar.NewBudget(0)}
		rnd := rand.New(rand.NewPCG(7, 7))
		for run, keys := range [][2]int{{0, 60}, {0, 60}, {10, 60}, {0, 70}, {40, 60}, {200, 300}, {200, 300}, {0, 3}, {0, 60}} {
			in := physicaltest.Scan(t, keyedRows(t, rnd, key, keys[0], keys[1]))
			s := in.Schema()
			spec, err := physical.NewAggregateSpec(s, named(t, s, col("k")), named(t, s,
				fn("count").As("n"), fn("sum", col("v")).As("s"), fn("min", col("v")).As("least"), fn("max", col("v")).As("most"), fn("max", col("t")).As("t")), -1)
			if err != nil {
				t.Fatal(err)
			}
			fresh := physical.NewPartialAggregate(in, spec)
			again := physical.NewPartialAggregate(in, spec)
			again.Kept = kept
			var results [2][]arrow.RecordBatch
			for i, p := range []physical.Plan{fresh, again} {
				x, err := physical.NewExchange(p, &expr.Ref{Name: "k", DataType: s.Field(0).Type, Null: true})
				if err != nil {
					t.Fatal(err)
				}
				if results[i], err = physical.Collect(context.Background(), physical.NewHashAggregate(x, spec, false), ec); err != nil {
					t.Fatal(err)
				}
			}
			t.Run(fmt.Sprint(key, " run ", run), func(t *testing.T) {
				columnartest.Equal(t, results[0], results[1], columnartest.DiffOptions{})
			})
			for _, b := range append(results[0], results[1]...) {
				b.Release()
			}
		}
		kept.Release()
		if used := ec.Budget.Used(); used != 0 {
			t.Errorf("%s: %d bytes are not given back", key, used)
		}
	}
}

// keyedRows is a table whose keys are numbers from from to to, some of them null.
func keyedRows(t *testing.T, rnd *rand.Rand, key string, from, to int) *physicaltest.Table {
	var units [][]arrow.RecordBatch
	for range 2 {
		var text strings.Builder
		fmt.Fprintf(&text, "%s  v:bigint  t:varchar\n", key)
		for range 400 {
			k := fmt.Sprint(from + rnd.IntN(to-from))
			if rnd.IntN(50) == 0 {
				k = "NULL"
			}
			fmt.Fprintf(&text, "%s  %d  %d\n", k, rnd.IntN(1000)-500, rnd.IntN(50))
		}
		b := columnartest.Batch(t, columnar.NewPool(), text.String())
		t.Cleanup(b.Release)
		units = append(units, []arrow.RecordBatch{b})
	}
	return physicaltest.NewTable(units[0][0].Schema(), units...)
}
