package columnar_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemill/tidemill/columnar"
)

// TestStoredTimestamp: what is written on the clock of a zone reads back as the same
// instant, on both sides of the hour that the clock shows twice too.
func TestStoredTimestamp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, instant, want string }{
		{"Europe/Berlin", "2024-10-27T00:30:00Z", "2024-10-27 02:30:00"},
		{"Europe/Berlin", "2024-10-27T01:30:00.5Z", "2024-10-27 02:30:00.500000+01:00"},
		{"Europe/Berlin", "2024-10-27T02:00:00Z", "2024-10-27 03:00:00"},
		{"America/New_York", "2024-11-03T06:59:59Z", "2024-11-03 01:59:59-05:00"},
		{"Australia/Lord_Howe", "2024-04-06T15:10:00Z", "2024-04-07 01:40:00+10:30"},
		{"UTC", "2024-10-27T01:30:00Z", "2024-10-27 01:30:00"},
	} {
		us, ok := columnar.ParseTimestamp(c.instant, nil)
		if got := string(columnar.AppendStoredTimestamp(nil, us, location(t, c.zone))); !ok || got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.instant, c.zone, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Monrovia", "Asia/Kathmandu"} {
		loc := location(t, zone)
		for range 2000 {
			us := r.Int64N(200*366*columnar.MicrosPerDay) - 130*366*columnar.MicrosPerDay
			if _, end := time.UnixMicro(us).In(loc).ZoneBounds(); !end.IsZero() {
				us = end.UnixMicro() + r.Int64N(4*columnar.MicrosPerHour) - 2*columnar.MicrosPerHour
			}
			text := columnar.AppendStoredTimestamp(nil, us, loc)
			if back, ok := columnar.ParseTimestamp(text, loc); !ok || back != us {
				t.Fatalf("%d in %s is %s, which is %d, %v", us, zone, text, back, ok)
			}
		}
	}
}

func location(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}
