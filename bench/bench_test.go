package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out bytes.Buffer
	for _, data := range []string{"h2o", "events", "landing"} {
		if err := run(t.Context(), []string{"gen", "-data", data, "-rows", "250", "-format", "csv,parquet", "-out", dir, "-files", "3"}, &out); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 6 {
		t.Errorf("%d names:\n%s", n, out.String())
	}
	files, err := filepath.Glob(dir + "/landing-250-csv/*.csv")
	if err != nil || len(files) != 3 {
		t.Errorf("%v, %v", files, err)
	}
	if b, err := os.ReadFile(dir + "/h2o-250.csv"); err != nil || bytes.Count(b, []byte("\n")) != 251 {
		t.Errorf("%v", err)
	}
	for _, args := range [][]string{nil, {"x"}, {"gen", "-data", "x", "-out", dir}, {"gen", "-format", "x", "-out", dir}, {"gen", "-rows", "0"}} {
		if err := run(t.Context(), args, &out); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
