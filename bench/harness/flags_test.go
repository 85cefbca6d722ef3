package harness

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code int
		says string
	}{
		{nil, 0, ""},
		{flag.ErrHelp, 0, ""},
		{errors.New("it broke"), 1, "x: it broke\n"},
		{Misused("-n must be %d", 1), 2, "x: -n must be 1\n"},
		{fmt.Errorf("run: %w", Misused("no")), 2, "x: run: no\n"},
	} {
		var errs bytes.Buffer
		if code := ExitCode(&errs, "x", c.err); code != c.code || errs.String() != c.says {
			t.Errorf("%v: exit status %d, %q", c.err, code, errs.String())
		}
	}
}

// Files that can be written are left as they are until there is something to write.
func TestCheckWritable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there, missing := filepath.Join(dir, "there"), filepath.Join(dir, "missing")
	if err := os.WriteFile(there, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"", there, missing} {
		if err := CheckWritable("json", file); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was left: %v", err)
	}
	if err := CheckWritable("json", dir); err == nil || !strings.HasPrefix(err.Error(), "-json: open ") {
		t.Errorf("a directory: %v", err)
	}
}

func TestNothingMatches(t *testing.T) {
	t.Parallel()
	if err := NothingMatches("only", "x", []string{"a", "b"}); err.Error() != `-only: no name contains "x"; the names are: a; b` {
		t.Error(err)
	}
	if err := NothingMatches("only", "x", make([]string, 84)); !strings.HasSuffix(err.Error(), "; … (84 in all)") {
		t.Error(err)
	}
}
