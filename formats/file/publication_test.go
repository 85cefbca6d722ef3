package file

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tidemill/tidemill/logical/connector"
)

// told is what an output says of itself: its batches with their files, and those that are
// decided.
func (w *world) told() (text string) {
	w.t.Helper()
	list, query, err := Published(w.mem, "out")
	if err != nil {
		w.t.Fatal(err)
	}
	decided, err := Decided(w.mem, "out")
	if err != nil {
		w.t.Fatal(err)
	}
	for i, p := range append(list, decided...) {
		text += fmt.Sprint(p.Batch)
		if i >= len(list) {
			text += " decided"
		}
		for _, f := range p.Files {
			hash, err := ContentHash(w.t.Context(), w.mem, f.Path)
			text += fmt.Sprintf(" %s%s rows=%d same=%t", f.Side, f.Path, f.Rows, err == nil && hash == f.Hash)
		}
		text += "\n"
	}
	return query + "\n" + text
}

// TestPublished looks at an output, also while its second table is decided and not yet
// committed.
func TestPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := w.env("path", "out", "format", "csv")
	env.Mode, env.QueryID = connector.Complete, "q"
	s := w.sink(env)
	expect := func(what, want string) {
		t.Helper()
		if got := w.told(); got != want {
			t.Errorf("%s: the output tells\n%swant\n%s", what, got, want)
		}
	}
	expect("new", "q\n")
	w.publish(s, w.batch(0, connector.Complete, "v:bigint\n1\n2\n", "late", "v:bigint\n7\n"))
	expect("one table", "q\n0 out/part-000.csv rows=2 same=true lateout.late/part-00000000000000000000-000.csv rows=1 same=true\n")
	w.publish(s, w.batch(1, connector.Complete, "v:bigint\n3\n"))
	if err := w.mem.Rename("out/.tidemill/manifest/1", "out/.tidemill/pending/1"); err != nil {
		t.Fatal(err)
	}
	const late = " lateout.late/part-00000000000000000000-000.csv rows=1 same=true\n"
	expect("decided", "q\n0 out/part-000.csv rows=2 same=false"+late+"1 decided out/part-000.csv rows=1 same=true\n")
	if err := w.mem.Rename("out/.tidemill/pending/1", "out/.tidemill/manifest/1"); err != nil {
		t.Fatal(err)
	}
	expect("two tables", "q\n0"+late+"1 out/part-000.csv rows=1 same=true\n")
	p, err := PublishedBy(w.mem, "out", 1)
	if err != nil || !p.Replaces || len(p.Files) != 1 || p.Files[0].Rows != 1 {
		t.Errorf("batch 1 is %v, %v", p, err)
	}
	var refused *connector.RefusedError
	for _, dir := range []string{"out", "elsewhere"} {
		if _, err := PublishedBy(w.mem, dir, 2); !errors.As(err, &refused) {
			t.Errorf("a batch that %s does not have gives %v", dir, err)
		}
	}
	if _, _, err := Published(w.mem, "elsewhere"); !errors.As(err, &refused) {
		t.Errorf("a directory that is no output gives %v", err)
	}
}
