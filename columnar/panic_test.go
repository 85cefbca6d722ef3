package columnar_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar"
)

// noMap is what a caller forgot to make.
var noMap map[int]int

func TestGuard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, what string
		f          func() error
		want       string
	}{
		{"nothing", "function f", func() error { return nil }, "<nil>"},
		{"an error", "function f", func() error { return io.EOF }, "EOF"},
		{"a text", "function f", func() error { panic("boom") }, "function f panicked: boom"},
		{"no name", "", func() error { panic("boom") }, "bug: panic: boom"},
		{"an error panics", "sink s", func() error { panic(io.ErrUnexpectedEOF) }, "sink s panicked: unexpected EOF"},
		{"nil", "function f", func() error { panic(nil) }, "function f panicked: panic called with nil argument"},
		{"many lines", "function f", func() error { panic("one\n\n\ttwo\r\nthree ") }, "function f panicked: one two three"},
		{"no text", "function f", func() error { panic("a\xffb") }, "function f panicked: a\uFFFDb"},
		{"a long one", "function f", func() error { panic(strings.Repeat("é", 501)) }, "function f panicked: " + strings.Repeat("é", 499) + "…"},
		{"of the runtime", "function f", func() error { noMap[0] = 1; return nil }, "function f panicked: assignment to entry in nil map"},
		{"the innermost names it", "the query", func() error {
			return columnar.Guard("function f", func() error { panic("boom") })
		}, "function f panicked: boom"},
		{"through what returns no error", "the query", func() error {
			func() {
				defer columnar.NamePanic("source s")
				panic("boom")
			}()
			return nil
		}, "source s panicked: boom"},
	} {
		err := columnar.Guard(c.what, c.f)
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		var p *columnar.PanicError
		if errors.As(err, &p) && (!bytes.Contains(p.Stack, []byte("TestGuard")) || strings.Contains(err.Error(), "goroutine")) {
			t.Errorf("%s: the stack is not where it belongs: %s", c.name, err)
		}
	}
	if err := columnar.Guard("f", func() error { panic(io.EOF) }); !errors.Is(err, io.EOF) {
		t.Errorf("%v is not the error it panicked with", err)
	}
}
