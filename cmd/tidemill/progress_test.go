package main

import (
	"strings"
	"testing"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/incremental"
)

func someProgress() incremental.Progress {
	return incremental.Progress{
		Timestamp: "2024-01-01T00:10:07.5Z", BatchID: 12, NumInputRows: 20000, ProcessedRowsPerSecond: 1234567,
		DurationMs:     map[string]int64{"triggerExecution": 16},
		EventTime:      map[string]string{"watermark": "2024-01-01T00:10:00Z"},
		StateOperators: []incremental.StateOperatorProgress{{NumRowsTotal: 3400, MemoryUsedBytes: 1 << 20, NumLateRows: 2}},
		Sources:        []incremental.SourceProgress{{NumMalformedRows: 1}},
		Sink:           incremental.SinkProgress{NumOutputRows: 60},
	}
}

func TestPlainProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := &reporter{w: &out, style: "plain", queries: map[string]*tally{}}
	r.progress("q", someProgress())
	want := "q batch 12: in 20000 (1.2M rows/s) out 60, total in 20000, 16 ms, state 3400 rows 1.0 MB, " +
		"watermark 2024-01-01T00:10:00Z (7.5 s behind), late 2, malformed 1\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

// The live line is one line whatever the width, a warning stands above it once, and the
// end leaves the last picture.
func TestLiveProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	width := 200
	r := &reporter{w: &out, style: "live", width: func() int { return width }, queries: map[string]*tally{}}
	r.progress("q", someProgress())
	width = 30
	r.progress("q", someProgress())
	r.warn("careful")
	r.warn("careful")
	r.progress("other", someProgress())
	r.finish()
	const narrow = "q: batch 12, 40k rows at 1.2…"
	want := eraseLine + "q: batch 12, 20k rows at 1.2M/s, state 3400 rows 1.0 MB, watermark 2024-01-01T00:10:00Z (7.5 s behind), late 2, malformed 1" +
		eraseLine + narrow + eraseLine + "warning: careful\n" + eraseLine + narrow + eraseLine + "q: batch 12,… | other: batch…\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

func TestLag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ watermark, batch, want string }{
		{"2024-01-01T00:00:00Z", "2024-01-01T00:00:01.25Z", " (1.2 s behind)"},
		{"2024-01-01T00:00:00Z", "2024-01-01T00:10:00.4Z", " (10m0s behind)"},
		{"2024-01-01T00:00:00Z", "2024-03-01T00:00:00Z", ""}, // history
		{"2024-01-01T00:00:00Z", "2023-01-01T00:00:00Z", ""}, // the future
		{"", "2023-01-01T00:00:00Z", ""},
	} {
		if got := lag(c.watermark, c.batch); got != c.want {
			t.Errorf("lag(%q, %q) = %q, want %q", c.watermark, c.batch, got, c.want)
		}
	}
}

func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	var w warnings
	for i := range 3 * maxWarnings {
		if !w.isNew(strings.Repeat("x", i)) {
			t.Fatalf("warning %d is not new", i)
		}
	}
	if len(w.shown) > maxWarnings {
		t.Errorf("%d warnings are remembered", len(w.shown))
	}
}

// A message is one paragraph of at most 3,000 characters without a stack, unless
// asked for.
func TestMessage(t *testing.T) {
	t.Parallel()
	text := func(debug bool) string {
		return message(usagef("a\n\n  \nb%s\ngoroutine 1 [running]:\nmain.main()", strings.Repeat("ü", 5000)), debug)
	}
	if got := text(false); len([]rune(got)) != maxMessage || !strings.HasPrefix(got, "error: a\nb") || strings.Contains(got, "goroutine") {
		t.Errorf("%d characters: %.40q", len([]rune(got)), got)
	}
	if got := text(true); !strings.Contains(got, "goroutine 1") {
		t.Error("no stack with --debug")
	}
	panicked := &tidemill.PanicError{What: "function f", Value: "boom", Stack: []byte("goroutine 1 [running]:\nmain.f()")}
	if got := message(panicked, false); got != "error: function f panicked: boom (run with --debug for the stack)" {
		t.Errorf("a panic is %s", got)
	}
	if got := message(panicked, true); got != "error: function f panicked: boom\ngoroutine 1 [running]:\nmain.f()" {
		t.Errorf("a panic with its stack is %s", got)
	}
	if got := message(usagef("x\ngoroutine 1 [running]:\n"), false); got != "error: x (run with --debug for the stack)" {
		t.Errorf("%q", got)
	}
}
