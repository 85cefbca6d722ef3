package function

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemill/tidemill/columnar"
)

// TestFormatRun compares texts that may be copied with those that are made, for neighbours
// of all distances, before 1970 and at the ends of the range.
func TestFormatRun(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	var patterns []*timePattern
	for _, source := range []string{"yyyy-MM-dd", "HH:mm", "yyyy-MM-dd HH:mm:ss", "HH:mm:ss.SSS", "%Y %j %U %G %V", "%p %A", "%I", "%H:%M %z %Z", "yy", "%d", "kk", "K:mm a", "QQQ", "MMM QQQQ", "HH[:mm]", "X xx ZZZZ O VV", "kk:mm:ss.S", "%x %-y"} {
		p, err := compileTime(source, "")
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, p)
	}
	r := rand.New(rand.NewPCG(3, 4))
	var run formatRun
	copied := 0
	for _, loc := range []*time.Location{time.UTC, berlin} {
		for _, base := range []int64{0, 1_700_000_000_000_000, -1_000_000_000_000, math.MaxInt64 - 3*columnar.MicrosPerDay, math.MinInt64 + 3*columnar.MicrosPerDay} {
			for range 3000 {
				p := patterns[r.IntN(len(patterns))]
				us := base
				for range 1 + r.IntN(6) {
					us += r.Int64N([]int64{2, columnar.MicrosPerSecond, columnar.MicrosPerHour, columnar.MicrosPerDay / 3}[r.IntN(4)])
					if p == run.pattern && run.from <= us && us < run.to {
						copied++
					}
					want := string(p.format(nil, us, loc))
					if got := string(run.append([]byte("x"), p, us, loc)); got != "x"+want {
						t.Fatalf("%s of %d in %s: %q, want %q", p.source, us, loc, got[1:], want)
					}
				}
				base += r.Int64N(1000) - 500
			}
		}
		run = formatRun{} // a run has one zone
	}
	if copied < 1000 {
		t.Errorf("only %d texts were copied", copied)
	}
}
