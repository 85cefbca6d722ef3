package file

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/connector"
)

// A column may only become what holds all that is in the files already.
func TestWider(t *testing.T) {
	t.Parallel()
	dt := func(text string) arrow.DataType {
		d, err := columnartest.Type(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	is := strings.EqualFold
	for _, c := range []struct{ was, now, want string }{
		{"bigint", "bigint", "bigint"},
		{"integer", "bigint", "bigint"},
		{"bigint", "integer", "bigint"},
		{"decimal(4,2)", "decimal(6,3)", "decimal(6,3)"},
		{"decimal(38,0)", "decimal(38,10)", ""},
		{"bigint", "varchar", ""},
		{"bigint", "double", ""},
		{"date", "timestamp", ""},
	} {
		got, ok := wider(dt(c.was), dt(c.now), is)
		if ok != (c.want != "") || ok && !arrow.TypeEqual(got, dt(c.want)) {
			t.Errorf("%s, then %s: %v, %v, not %q", c.was, c.now, got, ok, c.want)
		}
	}
	field := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	}
	a, b := field("a"), field("b")
	got, ok := wider(arrow.StructOf(a), arrow.StructOf(b), is)
	if want := arrow.StructOf(b, a); !ok || !arrow.TypeEqual(got, want) {
		t.Errorf("a STRUCT that grows: %v, %v", got, ok)
	}
}

// Files that do not name their columns have those of their batch.
func TestPlaced(t *testing.T) {
	t.Parallel()
	list := place(nil, []string{"a"}, 0, true)
	list = place(list, []string{"a"}, 3, false)
	list = place(list, []string{"b", "a"}, 3, false)
	list = place(list, []string{"c"}, 3, false) // nothing was written with those before
	for rel, want := range map[string]string{
		"part-00000000000000000002-000.csv":     "a",
		"k=1/part-00000000000000000003-001.csv": "c",
		"part-000.csv":                          "c",
	} {
		equal(t, rel, placed(list, rel), []string{want})
	}
}

// An output of a release that recorded nothing is taken as it is while its columns stay;
// one of which some batches may have had others is inferred for ever.
func TestOutputOfOlderRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		columns string
		want    string
	}{
		"the same columns": {"v:bigint", `"written":`},
		"others":           {"w:bigint", `"untold":true`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			env := w.env("path", "out", "format", "csv")
			env.Columns = schemaOf("v:bigint")
			sink := w.sink(env)
			w.publish(sink, w.batch(0, connector.Append, "v:bigint\n1\n"))
			if err := sink.Close(); err != nil {
				t.Fatal(err)
			}
			id, _, err := readIdentity(w.mem, "out")
			if err != nil {
				t.Fatal(err)
			}
			id.First, id.Written = nil, nil
			if err := sink.writeIdentity("out/.tidemill", id); err != nil {
				t.Fatal(err)
			}
			env.Columns, env.Committed = schemaOf(c.columns), 1
			for range 2 {
				if err := w.sink(env).Close(); err != nil {
					t.Fatal(err)
				}
				if got := w.read("out/.tidemill/id"); !strings.Contains(got, c.want) {
					t.Errorf("the id is %s", got)
				}
			}
			equal(t, "rows", w.rows(w.table(w.env("path", "out"))), []string{"1"})
		})
	}
}

// A table that was replaced by a batch that is decided, and not in the manifest yet, is
// nothing to warn of.
func TestDecidedTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := w.env("path", "out", "format", "csv")
	env.Mode = connector.Complete
	sink := w.sink(env)
	w.publish(sink, w.batch(0, connector.Complete, "v:bigint\n1\n"))
	w.publish(sink, w.batch(1, connector.Complete, "v:bigint\n1\n22\n"))
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.mem.Rename("out/.tidemill/manifest/1", "out/.tidemill/pending/1"); err != nil {
		t.Fatal(err)
	}
	env.Committed = 1
	if err := w.sink(env).Close(); err != nil || len(w.warnings) > 0 {
		t.Errorf("%v, warnings %q", err, w.warnings)
	}
}

// A complete-mode output that was deleted begins anew at a later batch, and its manifest
// says at which.
func TestManifestOfTableMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := w.env("path", "out", "format", "csv")
	env.Mode, env.Committed = connector.Complete, 5
	sink := w.sink(env)
	w.publish(sink, w.batch(5, connector.Complete, "v:bigint\n1\n"))
	w.publish(sink, w.batch(6, connector.Complete, "v:bigint\n2\n"))
	equal(t, "rows", w.rows(w.table(w.env("path", "out"))), []string{"2"})
	if err := w.mem.Remove("out/.tidemill/manifest/5"); err != nil {
		t.Fatal(err)
	}
	_, err := OpenTable(t.Context(), testFormats, w.env("path", "out"))
	wantError(t, err, "the entry of batch 5 is missing")
}

// A file that does not name its columns cannot be read where one of them is not known.
func TestPlacesOfUnknownColumns(t *testing.T) {
	t.Parallel()
	l := &layout{schema: schemaOf("a:bigint")}
	l.byPlace.Store(&[]placement{{0, []string{"A"}}, {1, []string{"b", "a"}}})
	f := foundFile{rel: "part-00000000000000000000-000.csv"}
	if err := l.checkPlaces(f); err != nil {
		t.Error(err)
	}
	f.rel = "part-00000000000000000001-000.csv"
	wantError(t, l.checkPlaces(f), "column b", "had no such column")
}
