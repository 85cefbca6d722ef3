package incremental_test

import (
	"errors"
	"flag"
	"slices"
	"testing"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/incremental/streamtest"
)

var (
	crashAll  = flag.Bool("crash-all", false, "try every fault at every call, not a sample")
	crashSeed = flag.Uint64("crash-seed", 1, "which faults are drawn")
)

func TestCrashEverywhere(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			streamtest.CrashEverywhere(t, s, streamtest.Faults{All: *crashAll, Every: 150, Seed: *crashSeed})
		})
	}
}

func TestFlippedBytes(t *testing.T) {
	for _, s := range scenarios {
		if s.Sink == "" || s.Sink == "noop" {
			continue // what these were given is gone with the process
		}
		if !*crashAll && !slices.Contains([]string{"stateless", "complete", "windowed"}, s.Name) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			perFile := 4
			if *crashAll {
				perFile = 0
			}
			streamtest.FlipEverywhere(t, s, perFile, *crashSeed)
		})
	}
}

func TestLocked(t *testing.T) {
	t.Parallel()
	first, second := streamtest.Twins(t)
	if err := first.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Open(t.Context()); !errors.Is(err, checkpoint.ErrLocked) {
		t.Errorf("the second process got %v, want ErrLocked", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.Open(t.Context()); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}
