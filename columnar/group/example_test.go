package group_test

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
)

func texts(values ...string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(values, nil)
	return b.NewArray()
}

// Grouping by one text column.
func ExampleTable() {
	t, err := group.New(memory.DefaultAllocator, []arrow.DataType{columnar.String}, group.Options{})
	if err != nil {
		panic(err)
	}
	defer t.Release()
	keys := texts("web", "app", "web")
	defer keys.Release()
	ids := make([]uint32, 3)
	if err := t.Intern([]arrow.Array{keys}, ids); err != nil {
		panic(err)
	}
	fmt.Println(ids, t.Len())
	// Output: [0 1 0] 2
}

// An inner join: pairs of probe and build rows.
func ExampleRowTable() {
	t, err := group.NewRowTable(memory.DefaultAllocator, []arrow.DataType{columnar.String}, nil, group.Options{})
	if err != nil {
		panic(err)
	}
	defer t.Release()
	build, probe := texts("web", "app", "web"), texts("web", "mail")
	defer build.Release()
	defer probe.Release()
	if err := t.Add([]arrow.Array{build}, 3); err != nil {
		panic(err)
	}
	t.Build()
	var p group.Prober
	if err := p.Start(t, []arrow.Array{probe}, 2); err != nil {
		panic(err)
	}
	l, r := make([]uint32, 8), make([]uint32, 8)
	n := p.Next(l, r)
	fmt.Println(l[:n], r[:n])
	// Output: [0 0] [0 2]
}
