package tidemill_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// builtIn is the directory of the command line built for the tests; "" until one asks.
var builtIn string

// binary builds the command line once for all tests of documentation and examples.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tidemill-bin-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	bin := filepath.Join(dir, "tidemill")
	if out, err := exec.Command("go", "build", "-o", bin, "./cmd/tidemill").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

// TestMain also looks for goroutines that the tests left behind.
func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
