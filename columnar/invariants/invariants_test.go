package invariants_test

import (
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/invariants"
)

// outcome is the message of f, panicked or returned.
func outcome(f func() error) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = r.(string)
		}
	}()
	if err := f(); err != nil {
		return err.Error()
	}
	return ""
}

func TestBatch(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	schema := columnartest.Schema(t, "a:bigint  s:varchar  l:array<varchar>  m:map<varchar, bigint>  r:struct<x varchar>")
	for _, dictionary := range []bool{false, true} {
		b := columnartest.Random(t, mem, schema, 1, columnartest.RandomOptions{Rows: 100, Dictionary: dictionary})
		if got := outcome(func() error { return invariants.Batch(b, schema) }); got != "" {
			t.Error(got)
		}
	}
	empty := columnartest.Random(t, mem, schema, 1, columnartest.RandomOptions{})
	other := columnartest.Random(t, mem, columnartest.Schema(t, "a:integer"), 1, columnartest.RandomOptions{Rows: 1})
	for want, f := range map[string]func() error{
		"without rows": func() error { return invariants.Batch(empty, schema) },
		"1 columns":    func() error { return invariants.Batch(other, schema) },
		"column a is":  func() error { return invariants.Batch(other, columnartest.Schema(t, "a:bigint")) },
		"bug: 1 + 1":   func() error { return invariants.Check(1+1 == 3, "1 + 1 is %d", 2) },
	} {
		if got := outcome(f); !strings.Contains(got, want) || !strings.HasPrefix(got, "bug: ") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if invariants.Check(true, "") != nil {
		t.Error("what holds is reported")
	}
	invariants.Must(nil)
}
