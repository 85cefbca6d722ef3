package incremental_test

import (
	"fmt"
	"testing"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// A batch of more than 10,000 files has their hashes in its commit and no names; the next
// one, of few, names its files again, also after a restart.
func TestManyInputs(t *testing.T) {
	t.Parallel()
	ctx, many := t.Context(), 10_001
	w := streamtest.NewWorld(vfs.NewMem(), columnartest.Mem(t), streamtest.Variant{})
	w.Declare(`CREATE STREAM t (n BIGINT) WITH (path = '/in/t', format = 'json');`)
	if err := w.Query(`SELECT count(*) AS c, sum(n) AS s FROM t`, connector.Complete, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Open(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Release(); err != nil {
			t.Error(err)
		}
	}()
	write := func(i int) {
		t.Helper()
		if err := w.WriteInput(ctx, fmt.Sprintf("t/%05d.json", i), fmt.Appendf(nil, "{\"n\":%d}\n", i)); err != nil {
			t.Fatal(err)
		}
	}
	step := func() {
		t.Helper()
		if ran, err := w.Step(ctx); err != nil || !ran {
			t.Fatal(ran, err)
		}
	}
	for i := range many {
		write(i)
	}
	step()
	first, err := w.LastCommit()
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Inputs) != 0 || len(first.ManyInputs) != 1 || first.InputFiles() != int64(many) {
		t.Fatalf("%d files are named, hashes of %d sources, %d files", len(first.Inputs), len(first.ManyInputs), first.InputFiles())
	}
	hashes := map[string]bool{}
	for i := range first.ManyInputs[0].Files {
		hashes[first.ManyInputs[0].Hash(i)] = true
	}
	if len(hashes) != many || hashes[""] {
		t.Errorf("%d contents have %d hashes", many, len(hashes))
	}
	if err := w.Reopen(ctx); err != nil {
		t.Fatal(err)
	}
	write(many)
	step()
	second, err := w.LastCommit()
	if err != nil {
		t.Fatal(err)
	}
	if len(second.Inputs) != 1 || len(second.ManyInputs) != 0 || second.Inputs[0].Hash == "" {
		t.Errorf("named %+v, hashes of %d sources", second.Inputs, len(second.ManyInputs))
	}
	got, err := w.Output(ctx)
	if want := fmt.Sprintf("c:bigint  s:bigint\n%d     %d\n", many+1, many*(many+1)/2); err != nil || got != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
}
