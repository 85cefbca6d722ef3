package file

import (
	"testing"

	"github.com/tidemill/tidemill/logical/connector"
)

// TestSameTable: tables opened alike are the same, other paths, options or chosen files
// are not.
func TestSameTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("in/a.csv", "v\n1\n")
	w.write("other/a.csv", "v\n1\n")
	open := func(options ...string) *Table { return w.table(w.env(options...)) }
	in := open("path", "in")
	files, err := in.Files(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	fixed := in.At(files)
	cases := []struct {
		name string
		a, b connector.Table
		want bool
	}{
		{"itself", in, in, true},
		{"opened alike", in, open("path", "in"), true},
		{"another path", in, open("path", "other"), false},
		{"another option", in, open("path", "in", "recursive", "false"), false},
		{"chosen files", in, fixed, false},
		{"chosen files of it", fixed, in, false},
		{"chosen files twice", fixed, fixed, true},
	}
	for _, c := range cases {
		if got := c.a.(connector.TableComparer).SameTable(c.b); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if in.SameTable(newWorld(t).alike()) {
		t.Error("a table of another filesystem is the same")
	}
}

// alike is the table in of a filesystem of its own.
func (w *world) alike() *Table {
	w.write("in/a.csv", "v\n1\n")
	return w.table(w.env("path", "in"))
}
