package physical

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// A table that is kept is empty, still reserved, and given back in the end; one that was
// made for many more groups than its run had is not kept.
func TestPartialsKeepSmallTables(t *testing.T) {
	t.Parallel()
	ec := &ExecContext{Mem: memory.NewGoAllocator(), Budget: columnar.NewBudget(1 << 30)}
	spec := &AggregateSpec{}
	plan := &PartialAggregate{Spec: spec}
	kept := &Partials{}
	table := func(room, held int) *grouping {
		g := &grouping{spec: spec, table: &emptyTable{}, room: room, account: ec.account(plan, "aggregation")}
		if err := g.account.set(int64(held)); err != nil {
			t.Fatal(err)
		}
		return g
	}
	small := table(1000, 100)
	kept.give(small, 100, false)
	kept.give(table(1000, 100), 10, true)
	kept.give(table(keptGroups+1, 100), keptGroups, true)
	kept.give(table(1000, keptBytes+1), 1000, true)
	if used := ec.Budget.Used(); used != 100 {
		t.Errorf("%d bytes are reserved, want those of the table that is kept", used)
	}
	if g := kept.take(ec, plan); g != small || g.groups() != 0 {
		t.Errorf("took %v, want the small table", g)
	}
	if kept.take(ec, plan) != nil || (*Partials)(nil).take(ec, plan) != nil {
		t.Error("took a table where there is none")
	}
	kept.give(small, 100, false)
	kept.Release()
	if used := ec.Budget.Used(); used != 0 {
		t.Errorf("%d bytes are not given back", used)
	}
}

// The keys stay in a table of a run that came to its end and met most of them; groups that
// the next run has not met are none of its.
func TestPartialsKeepKeys(t *testing.T) {
	t.Parallel()
	ec := &ExecContext{Mem: memory.NewGoAllocator()}
	plan := &PartialAggregate{Spec: &AggregateSpec{}}
	for _, c := range []struct {
		idle  int
		ended bool
		want  int // keys that stay
	}{{0, true, 8}, {2, true, 8}, {3, true, 0}, {0, false, 0}} {
		kept := &Partials{}
		first := []int64{0, 1, 2, 3, 4, 5, 6, 7}
		for i := range c.idle {
			first[i] = unmet
		}
		kept.give(&grouping{table: &emptyTable{}, first: first, idle: c.idle, room: 8, account: ec.account(plan, "aggregation")}, 8, c.ended)
		g := kept.take(ec, plan)
		if g.groups() != c.want || g.idle != c.want || len(g.met()) != 0 {
			t.Errorf("%+v: %d keys, %d of them idle, %v met", c, g.groups(), g.idle, g.met())
		}
		if c.want == 0 {
			continue
		}
		g.ids = []uint32{5, 2, 5}
		g.meet(10)
		if got := g.met(); !slices.Equal(got, []uint32{2, 5}) || g.first[5] != 10 || g.first[2] != 11 || g.idle != c.want-2 {
			t.Errorf("%+v: met %v, first %v, idle %d", c, got, g.first, g.idle)
		}
	}
}

type emptyTable struct{}

func (*emptyTable) Intern([]arrow.Array, []uint32) error { return nil }
func (*emptyTable) Find([]arrow.Array, []uint32) error   { return nil }
func (*emptyTable) Len() int                             { return 0 }
func (*emptyTable) Keys([]uint32) ([]arrow.Array, error) { return nil, nil }
func (*emptyTable) Bytes() int64                         { return 0 }
func (*emptyTable) Reset()                               {}
func (*emptyTable) Release()                             {}
