package rate

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func TestSource(t *testing.T) {
	t.Parallel()
	for _, options := range []map[string]string{
		{"rows_per_second": "3", "num_partitions": "2"},
		{"rows_per_second": "3", "ramp_up_time": "4 seconds"},
	} {
		t.Run(fmt.Sprint(options), func(t *testing.T) {
			connectortest.TestSource(t, func(t *testing.T) connectortest.SourceCase {
				now := epoch
				return connectortest.SourceCase{
					Unlimited: true,
					Add:       func(*testing.T) { now = now.Add(2 * time.Second) },
					Open: func(t *testing.T, log connector.BatchLog) connector.Source {
						env := connector.Env{Options: options, Log: log, Now: func() time.Time {
							if now.Equal(epoch) {
								return epoch
							}
							return now
						}}
						if id, _ := log.Latest(); id < 0 {
							// It begins at the epoch, whenever it is opened first.
							later := now
							now = epoch
							defer func() { now = later }()
						}
						s, err := Connector().Source(t.Context(), env)
						if err != nil {
							t.Fatal(err)
						}
						return s
					},
				}
			})
		})
	}
}

func TestRampUp(t *testing.T) {
	t.Parallel()
	s := &Source{o: Options{RowsPerSecond: 10, RampUp: 4 * time.Second}}
	for second, want := range []int64{0, 2, 6, 12, 20, 30, 40} {
		if got, err := s.valueAt(int64(second)); err != nil || got != want {
			t.Errorf("after %d seconds: %d, %v, not %d", second, got, err, want)
		}
	}
	s = &Source{o: Options{RowsPerSecond: 1 << 62}}
	if _, err := s.valueAt(4); err == nil {
		t.Error("values beyond 64 bits")
	}
}

func TestRowsPerBatch(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	env := connector.Env{Options: map[string]string{
		"rows_per_batch": "2", "start_timestamp": "2024-01-01 00:00:00", "advance_per_batch": "10 seconds",
	}}
	s, err := Connector().Source(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	until, err := s.Target(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one, err := s.LatestOffset(t.Context(), "", connector.Limit{Until: until})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.LatestOffset(t.Context(), one, connector.Limit{Until: until}); err != nil || again != one {
		t.Errorf("beyond the target: %q, %v", again, err)
	}
	two, err := s.LatestOffset(t.Context(), one, connector.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	us, err := s.Units(t.Context(), "", two, connector.ScanRequest{Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	got := connectortest.Rows(t, mem, us)
	want := []string{"2024-01-01T00:00:00Z|0", "2024-01-01T00:00:00Z|1", "2024-01-01T00:00:10Z|2", "2024-01-01T00:00:10Z|3"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rows %q", got)
	}
}

func TestTimesAreSpread(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	now := epoch
	env := connector.Env{Options: map[string]string{"rows_per_second": "4"}, Now: func() time.Time { return now }}
	s, err := Connector().Source(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(1500 * time.Millisecond)
	end, err := s.LatestOffset(t.Context(), "", connector.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	us, err := s.Units(t.Context(), "", end, connector.ScanRequest{Mem: mem, BatchRows: 3, Columns: []int{1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	got := connectortest.Rows(t, mem, us)
	want := []string{"0|2024-01-01T00:00:00Z", "1|2024-01-01T00:00:00.250000Z", "2|2024-01-01T00:00:00.500000Z", "3|2024-01-01T00:00:00.750000Z"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rows %q", got)
	}
}
