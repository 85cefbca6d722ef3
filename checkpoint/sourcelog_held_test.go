package checkpoint

import (
	"fmt"
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
)

// Entries that are held are read like others, and are on disk once they are written.
func TestSourceLogHold(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	d := open(t, m, small)
	defer d.Close()
	log, err := d.SourceLog(0, NoBatch)
	must(t, err)
	must(t, log.Put(0, []byte("a")))
	must(t, log.Put(1, []byte("b")))
	log.SetNamed(0)

	log.Hold()
	must(t, log.Put(1, []byte("B"))) // in place of one that nothing names
	must(t, log.Put(2, []byte("c")))
	must(t, log.Put(3, []byte("d")))
	if err := log.Put(0, []byte("no")); err == nil {
		t.Error("an entry that is named was replaced")
	}
	wantEntries(t, log, "0=a 1=B 2=c 3=d")
	wantEntries(t, newSourceLog(log.fs, log.dir, 0), "0=a 1=b")

	must(t, log.Withdraw(2))
	wantEntries(t, log, "0=a 1=B 2=c")
	must(t, log.WriteHeld())
	must(t, log.Put(3, []byte("e")))
	wantEntries(t, log, "0=a 1=B 2=c 3=e")
	wantEntries(t, newSourceLog(log.fs, log.dir, 0), "0=a 1=B 2=c 3=e")

	log.Hold()
	must(t, log.Put(4, []byte("f")))
	must(t, log.Withdraw(0))
	must(t, log.WriteHeld())
	wantEntries(t, newSourceLog(log.fs, log.dir, 0), "0=a")
}

func wantEntries(t *testing.T, log *SourceLog, want string) {
	t.Helper()
	latest, err := log.Latest()
	must(t, err)
	got := ""
	for e, err := range log.Range(NoBatch, latest) {
		must(t, err)
		if got != "" {
			got += " "
		}
		got += fmt.Sprintf("%d=%s", e.ID, e.Data)
	}
	if got != want {
		t.Errorf("the log holds %q, want %q", got, want)
	}
}
