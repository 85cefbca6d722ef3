package incremental_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/logical/connector"
)

// A new file ends the pause of a query that waits for data, however long that is.
func TestNewFileWakes(t *testing.T) {
	t.Parallel()
	r := newRunning(t, plainStream, `SELECT k, n FROM t`, connector.Append, incremental.Trigger{})
	r.cfg.Poll = 24 * time.Hour
	batches := make(chan int64, 10)
	r.cfg.Listener = incremental.Listener{Progress: func(p incremental.Progress) { batches <- p.NumInputRows }}
	r.write(t, ".first", 0, 0) // so that there is a directory to watch
	q := r.start(t)
	for i := range 6 {
		r.write(t, fmt.Sprint(".", i), 1, i) // hidden, so that it comes whole
		if err := r.w.FS.Rename(fmt.Sprintf("/in/t/.%d.json", i), fmt.Sprintf("/in/t/%d.json", i)); err != nil {
			t.Fatal(err)
		}
		if n := <-batches; n != 1 {
			t.Errorf("a batch of %d rows", n)
		}
	}
	if err := q.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}
