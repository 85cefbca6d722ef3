package physical

import (
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
	kept.give(small, 100)
	kept.give(table(1000, 100), 10)
	kept.give(table(keptGroups+1, 100), keptGroups)
	kept.give(table(1000, keptBytes+1), 1000)
	if used := ec.Budget.Used(); used != 100 {
		t.Errorf("%d bytes are reserved, want those of the table that is kept", used)
	}
	if g := kept.take(ec, plan); g != small || g.groups() != 0 {
		t.Errorf("took %v, want the small table", g)
	}
	if kept.take(ec, plan) != nil || (*Partials)(nil).take(ec, plan) != nil {
		t.Error("took a table where there is none")
	}
	kept.give(small, 100)
	kept.Release()
	if used := ec.Budget.Used(); used != 0 {
		t.Errorf("%d bytes are not given back", used)
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
