package state

import (
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
)

// Background work yields to a batch that runs, also to one that was begun before the one
// before it is committed.
func TestBackgroundYields(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 1, vfs.NewMem())
	want := func(when string, yields bool) {
		t.Helper()
		if got := h.provider.inBatch.Load(); got != yields {
			t.Errorf("%s: it yields is %v, want %v", when, got, yields)
		}
	}
	h.open(0)
	h.batch()
	want("in a batch", true)
	h.commit()
	want("between batches", false)
	h.open(1)
	h.batch()
	files, err := h.store.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.provider.Open(t.Context(), h.spec, files); err != nil {
		t.Fatal(err)
	}
	h.provider.Committed(files.Version)
	want("with the next batch begun", true)
}
