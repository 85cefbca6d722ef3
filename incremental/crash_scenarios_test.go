package incremental_test

import (
	"maps"
	"strings"

	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/logical/connector"
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
		SQL:   timedSQL,
		Query: `SELECT window_start AS w, k, count(*) AS n FROM TUMBLE(t, ts, INTERVAL '10 seconds') GROUP BY window_start, k`,
		Steps: timedSteps,
	},
	{
		Name: "session", Mode: connector.Append, Sink: "json",
		SQL:   timedSQL,
		Query: `SELECT window_start AS w, window_end AS e, k, count(*) AS n FROM SESSION(t, ts, INTERVAL '3 seconds', k) GROUP BY window_start, window_end, k`,
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
		Name: "dedup-time", Mode: connector.Append, Sink: "json",
		SQL: timedSQL, Query: `SELECT DISTINCT ON (k, ts) k, ts FROM t`, Steps: timedSteps,
	},
	{
		Name: "dedup-within", Mode: connector.Append, Sink: "json",
		SQL: timedSQL, Query: `SELECT DISTINCT ON (k) k, ts FROM t WITHIN WATERMARK`, Steps: timedSteps,
	},
	{
		Name: "limit-complete", Mode: connector.Complete, Sink: "json",
		SQL:   `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT k, count(*) AS n FROM (SELECT k FROM t LIMIT 4) q GROUP BY k ORDER BY k LIMIT 2`,
		Steps: keyedSteps,
	},
	{
		Name: "collect", Mode: connector.Update,
		SQL:   `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT k, collect_list(n) AS l, collect_set(n) AS s, count(DISTINCT n) AS d, sum(DISTINCT n) AS ds, max_by(k, n) AS m, median(n) AS p FROM t GROUP BY k`,
		Steps: keyedSteps,
	},
	{
		Name: "collect-windowed", Mode: connector.Append, Sink: "json",
		SQL:   timedSQL,
		Query: `SELECT window.end AS e, count(DISTINCT k) AS d, collect_list(ts) AS l, first(k) AS f FROM t GROUP BY window(ts, '10 seconds', '5 seconds')`,
		Steps: timedSteps,
	},
	{
		Name: "chain", Mode: connector.Append, Sink: "json",
		SQL: timedSQL,
		Query: `SELECT window.end AS e, sum(n) AS n FROM
		          (SELECT window AS inner_window, count(*) AS n FROM (SELECT DISTINCT ON (k, ts) k, ts FROM t) q GROUP BY window(ts, '5 seconds')) p
		        GROUP BY window(inner_window, '15 seconds')`,
		Steps: timedSteps,
	},
	{
		Name: "union-static", Mode: connector.Append, Sink: "json",
		SQL: timedSQL + `CREATE TABLE names WITH (path = '/in/names', format = 'json');`,
		Query: `SELECT window_end AS e, name, count(*) AS n FROM TUMBLE((SELECT ts, k FROM t UNION ALL SELECT ts, upper(k) FROM t), ts, INTERVAL '10 seconds') x
		        JOIN names ON lower(k) = key GROUP BY window_end, name`,
		Steps: append([]streamtest.Step{{Files: map[string]string{"names/1.json": `{"key":"a","name":"A"}` + "\n" + `{"key":"c","name":"C"}` + "\n"}}}, timedSteps...),
	},
	{
		Name: "late-bad", Mode: connector.Append, Sink: "json", Keep: []string{"late", "bad"},
		SQL:   timedSQL,
		Query: `SELECT window_end AS e, k, count(*) AS n FROM TUMBLE(t, ts, INTERVAL '10 seconds') GROUP BY window_end, k`,
		Steps: sideSteps,
	},
	{
		Name: "late-chain", Mode: connector.Append, Sink: "csv", Keep: []string{"late"},
		SQL:   timedSQL,
		Query: `SELECT l.k, l.ts FROM t l JOIN (SELECT DISTINCT ON (k, ts) k, ts FROM t) r ON l.k = r.k AND l.ts = r.ts`,
		Steps: sideSteps,
	},
	{
		Name: "ahead-stateless", Mode: connector.Append, Sink: "json", Ahead: true,
		SQL:   `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json', max_files_per_trigger = 1);`,
		Query: `SELECT k, n * 2 AS twice FROM t WHERE n > 0`,
		Steps: atOnce(keyedSteps),
	},
	{
		Name: "ahead-complete", Mode: connector.Complete, Sink: "parquet", Ahead: true, Shards: 2,
		SQL:   `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json', max_files_per_trigger = 1);`,
		Query: `SELECT k, count(*) AS c, sum(n) AS s FROM t GROUP BY k`,
		Steps: atOnce(keyedSteps),
	},
	{
		Name: "ahead-windowed", Mode: connector.Append, Sink: "json", Ahead: true, Keep: []string{"late", "bad"},
		SQL:   oneByOne(timedSQL),
		Query: `SELECT window_end AS e, k, count(*) AS n FROM TUMBLE(t, ts, INTERVAL '10 seconds') GROUP BY window_end, k`,
		Steps: atOnce(sideSteps),
	},
	{
		Name: "ahead-closed", Mode: connector.Append, Sink: "json", Ahead: true, Shards: 2,
		SQL:   oneByOne(timedSQL),
		Query: `SELECT window_end AS e, k, count(*) AS n FROM TUMBLE(t, ts, INTERVAL '10 seconds') GROUP BY window_end, k`,
		Steps: atOnce(timedSteps),
	},
	{
		Name: "ahead-join", Mode: connector.Append, Sink: "json", Ahead: true, SQL: oneByOne(timedSQL),
		Query: `SELECT l.k, l.ts, r.ts AS rts FROM t l LEFT JOIN t r ON l.k = r.k AND r.ts > l.ts AND r.ts <= l.ts + INTERVAL '6 seconds'`,
		Steps: atOnce(timedSteps),
	},
	{
		Name: "hashes", Mode: connector.Append, Sink: "json", NamedInputs: 1,
		SQL:   `CREATE STREAM t (k VARCHAR, n BIGINT) WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT DISTINCT ON (k) k, n FROM t`,
		Steps: append(keyedSteps[:len(keyedSteps):len(keyedSteps)], streamtest.Step{Files: map[string]string{
			"t/7.json": `{"k":"e","n":1}` + "\n", "t/8.json": `{"k":"e","n":2}` + "\n" + `{"k":"f","n":1}` + "\n",
		}}),
	},
	joinScenario("join-inner", "JOIN"),
	joinScenario("join-left", "LEFT JOIN"),
	joinScenario("join-right", "RIGHT JOIN"),
	joinScenario("join-full", "FULL JOIN"),
	{
		Name: "join-semi", Mode: connector.Append, Sink: "json", SQL: timedSQL,
		Query: `SELECT l.k, l.ts FROM t l SEMI JOIN t r ON l.k = r.k AND r.ts > l.ts AND r.ts <= l.ts + INTERVAL '6 seconds'`,
		Steps: timedSteps,
	},
	{
		Name: "join-windows", Mode: connector.Append, Sink: "json", SQL: timedSQL,
		Query: `SELECT l.k, r.k AS rk, l.window_end AS e FROM TUMBLE(t, ts, INTERVAL '10 seconds') l
		        FULL JOIN (SELECT * FROM TUMBLE(t, ts, INTERVAL '10 seconds') z WHERE k <> 'c') r ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end`,
		Steps: timedSteps,
	},
}

// timedSQL is the stream of most scenarios with event time.
const timedSQL = `CREATE STREAM t (ts TIMESTAMP, k VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') WITH (path = '/in/t', format = 'json');`

// joinScenario joins a stream with itself: with the six seconds before a row.
func joinScenario(name, kind string) streamtest.Scenario {
	return streamtest.Scenario{
		Name: name, Mode: connector.Append, Sink: "json", SQL: timedSQL,
		Query: `SELECT l.k, l.ts, r.ts AS rts FROM t l ` + kind + ` t r ON l.k = r.k AND r.ts > l.ts AND r.ts <= l.ts + INTERVAL '6 seconds'`,
		Steps: timedSteps,
	}
}

// oneByOne limits the batches of a stream to a file each.
func oneByOne(sql string) string {
	return strings.Replace(sql, "format = 'json'", "format = 'json', max_files_per_trigger = 1", 1)
}

// atOnce drops the files of steps together, up to each restart.
func atOnce(steps []streamtest.Step) []streamtest.Step {
	var out []streamtest.Step
	for _, s := range steps {
		if len(out) == 0 || s.Restart {
			out = append(out, streamtest.Step{Restart: s.Restart, Files: map[string]string{}})
		}
		maps.Copy(out[len(out)-1].Files, s.Files)
	}
	return out
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

// sideSteps have late rows in several batches, and records that are none.
var sideSteps = []streamtest.Step{
	{Files: map[string]string{"t/1.json": `{"ts":"2024-01-01T00:00:11Z","k":"a"}` + "\n" + `{"ts":1.5,"k":"bad"}` + "\n"}},
	{Files: map[string]string{"t/2.json": `{"ts":"2024-01-01T00:00:27Z","k":"b"}` + "\n" + `{"ts":"2024-01-01T00:00:03Z","k":"in time"}` + "\n"}},
	{Files: map[string]string{"t/3.json": `{"ts":"2024-01-01T00:00:02Z","k":"late"}` + "\n" + `{"ts":"2024-01-01T00:00:22Z","k":"b"}` + "\n" + `no record` + "\n"}, Restart: true},
	{Files: map[string]string{"t/4.json": `{"ts":"2024-01-01T00:00:40Z","k":"c"}` + "\n"}},
	{Files: map[string]string{"t/5.json": `{"ts":"2024-01-01T00:00:05Z","k":"late"}` + "\n" + `{"ts":"2024-01-01T00:00:41Z","k":"c"}` + "\n" + `{"ts":` + "\n"}},
}
