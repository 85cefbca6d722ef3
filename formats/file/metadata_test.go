package file

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// The hidden columns of files stand behind the others; conditions over them leave out
// files, but not where rows are counted.
func TestMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("in/k=1/a.csv", "v\nx\ny\n")
	w.write("in/k=2/b.csv", "v\nz\n")
	table := w.table(w.env("path", "in"))
	if !connector.HasMetadata(table) {
		t.Fatal("a table of files has no metadata")
	}
	mem := columnartest.Mem(t)
	n := table.Schema().NumFields()
	equals := func(field int, v any) expr.Expr {
		f := connector.MetadataFields()[field]
		d, err := columnar.Constant(heap, f.Type, v)
		if err != nil {
			t.Fatal(err)
		}
		return &expr.In{Value: &expr.Ref{Index: n + field, Name: f.Name, DataType: f.Type, Null: true}, List: []expr.Expr{&expr.Literal{Value: d.Array()}}}
	}
	for _, c := range []struct {
		columns []int
		filters []expr.Expr
		want    string
	}{
		{[]int{0, n + connector.MetadataFile}, nil, "x a.csv|y a.csv|z b.csv"},
		{[]int{n + connector.MetadataRow, 1, 0}, nil, "0 1 x|1 1 y|0 2 z"},
		{[]int{n + connector.MetadataSize}, []expr.Expr{equals(connector.MetadataPath, "in/k=2/b.csv")}, "4"},
		{[]int{0}, []expr.Expr{equals(connector.MetadataFile, "a.csv"), equals(connector.MetadataSize, int64(6))}, "x|y"},
		{[]int{0}, []expr.Expr{equals(connector.MetadataFile, "c.csv")}, ""},
		{[]int{0}, []expr.Expr{equals(connector.MetadataRow, int64(1))}, "x|y|z"},
		{[]int{n + connector.MetadataModified, n + connector.MetadataModified}, []expr.Expr{equals(connector.MetadataFile, "b.csv")}, "time time"},
	} {
		us, err := table.Units(t.Context(), connector.ScanRequest{Mem: mem, Columns: c.columns, Filters: c.filters})
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, u := range us {
			r, err := u.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for b, err := range columnar.All(t.Context(), r) {
				if err != nil {
					t.Fatal(err)
				}
				rows = append(rows, showRows(b)...)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if got := strings.Join(rows, "|"); got != c.want {
			t.Errorf("columns %v, filters %v: %q, want %q", c.columns, c.filters, got, c.want)
		}
	}
}

func showRows(b arrow.RecordBatch) []string {
	var rows []string
	for i := range int(b.NumRows()) {
		var cells []string
		for _, c := range b.Columns() {
			if c.DataType().ID() == arrow.TIMESTAMP {
				cells = append(cells, "time")
				continue
			}
			cells = append(cells, fmt.Sprint(columnar.Value(c, i)))
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	return rows
}
