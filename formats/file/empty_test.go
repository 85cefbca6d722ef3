package file

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// An output without rows is a table without rows, of the columns its query writes; once it
// has rows they are read through the same table.
func TestOutputWithoutRows(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]string{
		"plain":       nil,
		"partitioned": {"partition_by", "k"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			env := w.env(append([]string{"path", "out", "format", "csv"}, options...)...)
			env.Columns = schemaOf("k:varchar", "v:bigint")
			sink := w.sink(env)
			want := "k:varchar v:bigint"
			if options != nil {
				want = "v:bigint k:varchar" // as it is where there are folders
			}
			see := func(what string, table *Table, rows ...string) {
				t.Helper()
				var columns []string
				for _, f := range table.Schema().Fields() {
					columns = append(columns, f.Name+":"+strings.ToLower(columnar.TypeName(f.Type)))
				}
				if got := strings.Join(columns, " "); got != want {
					t.Errorf("%s: columns %s, not %s", what, got, want)
				}
				equal(t, what, w.rows(table), rows)
			}
			see("no batch", w.table(w.env("path", "out")))
			w.publish(sink, w.batch(0, connector.Append, "k:varchar  v:bigint\n"))
			table := w.table(w.env("path", "out"))
			see("a batch without rows", table)
			w.publish(sink, w.batch(1, connector.Append, "k:varchar  v:bigint\nv  1\n"))
			row := "v|1"
			if options != nil {
				row = "1|v"
			}
			see("opened before", table, row)
			files, err := table.Files(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "at", w.rows(w.table(w.env("path", "out")).At(files)), []string{row})
			see("opened after", w.table(w.env("path", "out")), row)
		})
	}
}

// Where the output does not tell its columns the reader says what is wrong; a stream over
// it waits for the first rows.
func TestOutputWithoutRowsOrColumns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := w.env("path", "out", "format", "csv")
	sink := w.sink(env) // as an older release made it
	see := func(open func(env connector.Env) error) {
		t.Helper()
		err := open(w.env("path", "out"))
		var none *connector.NoFilesError
		if !errors.As(err, &none) {
			t.Errorf("error %v", err)
		}
		wantError(t, err, "out", "the output of a query that has no rows yet")
	}
	table := func(env connector.Env) error { _, err := OpenTable(t.Context(), testFormats, env); return err }
	stream := func(env connector.Env) error { _, err := Discover(t.Context(), testFormats, env); return err }
	see(table)
	see(stream)
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	env.Columns = schemaOf("v:bigint")
	w.sink(env) // it is told when the query starts again
	if err := table(w.env("path", "out")); err != nil {
		t.Error(err)
	}
	see(stream)
	if before := w.read("out/.tidemill/id"); !strings.Contains(before, `"columns":`) {
		t.Errorf("the id is %s", before)
	}
}
