package connectortest

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/connector"
)

// SourceCase is a source under test.
type SourceCase struct {
	// Add makes more data arrive: at least one row, never one that was there before.
	Add func(t *testing.T)
	// Open opens the source, as a new process does, over the log of the query.
	Open func(t *testing.T, log connector.BatchLog) connector.Source
	// Unlimited is set for sources that pay no heed to Limit.Files.
	Unlimited bool
}

// TestSource is the conformance suite of connector.Source. make is called once a case
// and returns a source without data.
func TestSource(t *testing.T, make func(t *testing.T) SourceCase) {
	t.Run("Empty", func(t *testing.T) {
		c := make(t)
		s := c.Open(t, NewLog())
		defer s.Close()
		if end := latest(t, s, "", connector.Limit{}); end != "" {
			t.Errorf("LatestOffset of nothing is %q", end)
		}
	})
	t.Run("Replay", func(t *testing.T) { testReplay(t, make(t)) })
	t.Run("NewProcess", func(t *testing.T) { testNewProcess(t, make(t)) })
	t.Run("NothingNew", func(t *testing.T) {
		c, log := make(t), NewLog()
		c.Add(t)
		s := c.Open(t, log)
		defer s.Close()
		end := latest(t, s, "", connector.Limit{})
		if again := latest(t, s, end, connector.Limit{}); again != end {
			t.Errorf("with nothing new the offset went from %q to %q", end, again)
		}
	})
	t.Run("Limit", func(t *testing.T) { testLimit(t, make(t)) })
	t.Run("Until", func(t *testing.T) { testUntil(t, make(t)) })
	t.Run("Withdraw", func(t *testing.T) { testWithdraw(t, make(t)) })
	t.Run("Unnamed", func(t *testing.T) { testUnnamed(t, make(t)) })
	t.Run("Commit", func(t *testing.T) {
		c, log := make(t), NewLog()
		s := c.Open(t, log)
		defer s.Close()
		c.Add(t)
		first := latest(t, s, "", connector.Limit{})
		for range 2 {
			if err := s.Commit(t.Context(), first); err != nil {
				t.Fatalf("Commit: %v", err)
			}
		}
		c.Add(t)
		second := latest(t, s, first, connector.Limit{})
		if len(between(t, s, first, second)) == 0 {
			t.Error("no rows after a commit")
		}
	})
}

func latest(t *testing.T, s connector.Source, start connector.Offset, l connector.Limit) connector.Offset {
	t.Helper()
	end, err := s.LatestOffset(t.Context(), start, l)
	if err != nil {
		t.Fatalf("LatestOffset: %v", err)
	}
	return end
}

// between is the rows of (start, end].
func between(t *testing.T, s connector.Source, start, end connector.Offset) []string {
	t.Helper()
	mem := columnartest.Mem(t)
	us, err := s.Units(t.Context(), start, end, connector.ScanRequest{Mem: mem})
	if err != nil {
		t.Fatalf("Units: %v", err)
	}
	return Rows(t, mem, us)
}

func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	if !slices.Equal(want, got) {
		t.Errorf("%s:\n%s\n-- instead of\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// testReplay reads ranges again, apart and together.
func testReplay(t *testing.T, c SourceCase) {
	log := NewLog()
	s := c.Open(t, log)
	defer s.Close()
	var ends []connector.Offset
	var all []string
	start := connector.Offset("")
	for range 3 {
		c.Add(t)
		end := latest(t, s, start, connector.Limit{})
		if end == start {
			t.Fatal("no offset for new data")
		}
		rows := between(t, s, start, end)
		if len(rows) == 0 {
			t.Fatal("no rows for new data")
		}
		same(t, "replayed", rows, between(t, s, start, end))
		all = append(all, rows...)
		ends = append(ends, end)
		start = end
	}
	same(t, "all at once", all, between(t, s, "", ends[2]))
	if rows := between(t, s, ends[1], ends[1]); len(rows) != 0 {
		t.Errorf("an empty range has rows: %v", rows)
	}
	for i, row := range all {
		if slices.Contains(all[:i], row) {
			t.Errorf("row %q was delivered twice", row)
		}
	}
}

// testNewProcess opens the source anew between batches.
func testNewProcess(t *testing.T, c SourceCase) {
	log := NewLog()
	c.Add(t)
	s := c.Open(t, log)
	end := latest(t, s, "", connector.Limit{})
	want := between(t, s, "", end)
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	s = c.Open(t, log)
	defer s.Close()
	same(t, "replayed by a new process", want, between(t, s, "", end))
	if again := latest(t, s, end, connector.Limit{}); again != end {
		t.Errorf("a new process sees old data as new: %q after %q", again, end)
	}
	c.Add(t)
	next := latest(t, s, end, connector.Limit{})
	if next == end || len(between(t, s, end, next)) == 0 {
		t.Error("a new process does not see new data")
	}
}

// testLimit takes one file (step, …) a batch.
func testLimit(t *testing.T, c SourceCase) {
	if c.Unlimited {
		return
	}
	for range 3 {
		c.Add(t)
	}
	s := c.Open(t, NewLog())
	defer s.Close()
	start := connector.Offset("")
	batches := 0
	var all []string
	for {
		end := latest(t, s, start, connector.Limit{Files: 1})
		if end == start {
			break
		}
		batches++
		all = append(all, between(t, s, start, end)...)
		start = end
	}
	if batches != 3 {
		t.Errorf("three steps of data under a limit of one made %d batches", batches)
	}
	same(t, "under a limit", between(t, s, "", start), all)
}

// testUntil fixes an end that later data is beyond.
func testUntil(t *testing.T, c SourceCase) {
	log := NewLog()
	c.Add(t)
	s := c.Open(t, log)
	defer s.Close()
	target, err := s.Target(t.Context())
	if err != nil {
		t.Fatalf("Target: %v", err)
	}
	if target == "" {
		t.Fatal("Target sees no data")
	}
	c.Add(t)
	start := latest(t, s, "", connector.Limit{Until: target})
	if start == "" {
		t.Fatal("nothing up to the target")
	}
	if again := latest(t, s, start, connector.Limit{Until: target}); again != start {
		t.Errorf("beyond the target: %q after %q", again, start)
	}
	if end := latest(t, s, start, connector.Limit{}); end == start {
		t.Error("what came after the target was lost")
	}
}

// testWithdraw plans a batch anew.
func testWithdraw(t *testing.T, c SourceCase) {
	log := NewLog()
	c.Add(t)
	s := c.Open(t, log)
	defer s.Close()
	first := latest(t, s, "", connector.Limit{})
	c.Add(t)
	second := latest(t, s, first, connector.Limit{})
	want := between(t, s, first, second)
	if err := s.Withdraw(t.Context(), first, second); err != nil {
		t.Fatalf("Withdraw: %v", err)
	}
	again := latest(t, s, first, connector.Limit{})
	same(t, "planned anew", want, between(t, s, first, again))
	s2 := c.Open(t, log)
	defer s2.Close()
	same(t, "planned anew, in a new process", want, between(t, s2, first, again))
}

// testUnnamed ends a process between the source's log and the query's.
func testUnnamed(t *testing.T, c SourceCase) {
	log := NewLog()
	c.Add(t)
	s := c.Open(t, log)
	lost := latest(t, s, "", connector.Limit{})
	want := between(t, s, "", lost)
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	s = c.Open(t, log)
	defer s.Close()
	end := latest(t, s, "", connector.Limit{})
	same(t, "what was logged and not named", want, between(t, s, "", end))
	if again := latest(t, s, end, connector.Limit{}); again != end {
		t.Errorf("it is delivered twice: %q after %q", again, end)
	}
}
