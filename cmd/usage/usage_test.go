package usage

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

var kept []byte

func TestUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	m := Start()
	var err error
	if kept, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	u := m.Stop()
	if u.Allocs <= 0 || u.AllocBytes < 1<<20 {
		t.Errorf("allocations: %+v", u)
	}
	if runtime.GOOS == "linux" && (u.ReadBytes < 1<<20 || u.PeakBytes < 1<<20) {
		t.Errorf("read and peak: %+v", u)
	}
	if n := field(file, "x"); n != 0 {
		t.Errorf("a field that is not there: %d", n)
	}
}
