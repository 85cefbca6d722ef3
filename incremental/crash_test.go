package incremental_test

import (
	"errors"
	"flag"
	"slices"
	"testing"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/logical/connector"
)

var (
	crashAll  = flag.Bool("crash-all", false, "try every fault at every call, not a sample")
	crashSeed = flag.Uint64("crash-seed", 1, "which faults are drawn")
)

// The scenarios: each restarts in the middle, takes snapshots, folds old batches into
// history and purges, since every scenario keeps two batches only.
var scenarios = []streamtest.Scenario{
	{
		Name: "stateless", Mode: connector.Append, Sink: "json",
		SQL:   `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT k, n * 2 AS twice FROM t WHERE n > 0`,
		Steps: keyedSteps,
	},
	{
		Name: "partitioned", Mode: connector.Append, Sink: "csv",
		SinkOptions: map[string]string{"partition_by": "k"},
		SQL:         `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json', max_files_per_trigger = 1);`,
		Query:       `SELECT k, n FROM t`,
		Steps:       keyedSteps,
	},
	{
		Name: "complete", Mode: connector.Complete, Sink: "parquet",
		SQL:   `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT k, count(*) AS c, sum(n) AS s, count(DISTINCT n) AS d FROM t GROUP BY k`,
		Steps: keyedSteps,
	},
	{
		Name: "update", Mode: connector.Update, Shards: 2,
		SQL:   `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT k, count(*) AS c, sum(n) AS s, last(n) AS l FROM t GROUP BY k`,
		Steps: keyedSteps,
	},
	{
		Name: "noop", Mode: connector.Update, Sink: "noop",
		SQL:   `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json', max_files_per_trigger = 1);`,
		Query: `SELECT k, sum(n) AS s FROM t GROUP BY k`,
		Steps: keyedSteps,
	},
	{
		Name: "windowed", Mode: connector.Append, Sink: "json",
		SQL: `CREATE STREAM t (ts TIMESTAMP, k VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '5 seconds')
		      WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT window_start AS w, k, count(*) AS n FROM TUMBLE(t, ts, INTERVAL '10 seconds') GROUP BY window_start, k`,
		Steps: timedSteps,
	},
	{
		Name: "session", Mode: connector.Append, Sink: "json",
		SQL: `CREATE STREAM t (ts TIMESTAMP, k VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '5 seconds')
		      WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT window_start AS w, window_end AS e, k, count(*) AS n FROM SESSION(t, ts, INTERVAL '3 seconds') GROUP BY window_start, window_end, k`,
		Steps: timedSteps,
	},
	{
		Name: "dedup", Mode: connector.Append, Sink: "json",
		SQL:   `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT DISTINCT ON (k) k, n FROM t`,
		Steps: keyedSteps,
	},
	{
		Name: "limit", Mode: connector.Append, Sink: "json",
		SQL:   `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT k, n FROM t LIMIT 5`,
		Steps: keyedSteps,
	},
	{
		Name: "join", Mode: connector.Append, Sink: "json",
		SQL: `CREATE STREAM t (ts TIMESTAMP, k VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '5 seconds')
		      WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT l.k, l.ts, r.ts AS rts FROM t l LEFT JOIN t r ON l.k = r.k AND r.ts > l.ts AND r.ts <= l.ts + INTERVAL '6 seconds'`,
		Steps: timedSteps,
	},
}

var keyedSteps = []streamtest.Step{
	{Files: map[string]string{"t/1.json": `{"k":"a","n":1}` + "\n" + `{"k":"b","n":2}` + "\n"}},
	{Files: map[string]string{"t/2.json": `{"k":"a","n":3}` + "\n", "t/3.json": `{"k":"c","n":-1}` + "\n"}},
	{Files: map[string]string{"t/4.json": `{"k":"b","n":0}` + "\n"}, Restart: true},
	{Files: map[string]string{"t/5.json": `{"k":"a","n":1}` + "\n" + `{"k":"d","n":9}` + "\n"}},
	{},
	{Files: map[string]string{"t/6.json": `{"k":"d","n":9}` + "\n"}},
}

var timedSteps = []streamtest.Step{
	{Files: map[string]string{"t/1.json": `{"ts":"2024-01-01T00:00:01Z","k":"a"}` + "\n" + `{"ts":"2024-01-01T00:00:11Z","k":"a"}` + "\n"}},
	{Files: map[string]string{"t/2.json": `{"ts":"2024-01-01T00:00:16Z","k":"b"}` + "\n"}},
	{Files: map[string]string{"t/3.json": `{"ts":"2024-01-01T00:00:02Z","k":"late"}` + "\n" + `{"ts":"2024-01-01T00:00:12Z","k":"a"}` + "\n"}, Restart: true},
	{Files: map[string]string{"t/4.json": `{"ts":"2024-01-01T00:00:40Z","k":"c"}` + "\n"}},
	{Files: map[string]string{"t/5.json": `{"ts":"2024-01-01T00:00:41Z","k":"c"}` + "\n"}},
}

func TestCrashEverywhere(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			streamtest.CrashEverywhere(t, s, streamtest.Faults{All: *crashAll, Every: 80, Seed: *crashSeed})
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
