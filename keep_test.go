package tidemill_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/ipc"
	"github.com/tidemill/tidemill/logical/connector"
)

const keepScript = `
CREATE STREAM s (ts TIMESTAMP, n BIGINT, note VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '0 seconds')
  WITH (path = 'in', format = 'csv', header = true, max_files_per_trigger = 1);
CREATE SINK k WITH (path = 'out/k', format = 'csv', checkpoint = 'ckpt', late_rows = 'keep', bad_rows = 'keep');
INSERT INTO k SELECT window_start, sum(n) AS n FROM TUMBLE(s, ts, INTERVAL '1 minute') GROUP BY window_start, window_end;`

// What is late and what is malformed lands beside the output as Parquet, once, and a
// second run with nothing new adds nothing.
func TestKeptRows(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.write("in/1.csv", "ts,n,note\n2024-01-01 10:05:00,1,a")
	x.write("in/2.csv", "ts,n,note\n2024-01-01 10:05:30,2,b\nnonsense,4,bad")
	x.write("in/3.csv", "ts,n,note\n2024-01-01 10:01:00,3,late\n2024-01-01 10:02:00,4,late\n2024-01-01 10:07:00,x,bad")
	run := func() {
		t.Helper()
		now := tidemill.AvailableNow()
		sc, err := x.OpenScript(x.ctx, "k.sql", keepScript, tidemill.RunOptions{Trigger: &now})
		x.ok(err)
		x.ok(sc.Start(x.ctx).Wait())
	}
	for range 2 {
		run()
		x.expect("output", x.sql("SELECT * FROM 'out/k' ORDER BY 1"), "2024-01-01T10:05:00 3")
		x.expect("late", x.sql("SELECT ts, n, note, late_reason, late_operator, late_watermark, late_stream, late_file FROM 'out/k.late/*.parquet'"), `
			2024-01-01T10:01:00 3 late window_end is at or before the watermark agg(window_start, window_end) 2024-01-01T10:05:00 s in/3.csv
			2024-01-01T10:02:00 4 late window_end is at or before the watermark agg(window_start, window_end) 2024-01-01T10:05:00 s in/3.csv`)
		x.expect("bad", x.sql(`SELECT file, line, "column", reason, raw FROM 'out/k.bad/*.parquet'`), `
			in/2.csv 3 ts "nonsense" is no TIMESTAMP nonsense,4,bad
			in/3.csv 4 n "x" is no BIGINT 2024-01-01 10:07:00,x,bad`)
	}
}

func TestKeptRowsNeedAPlace(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	for _, option := range []string{"late_rows", "bad_rows"} {
		_, err := x.OpenScript(x.ctx, "k.sql", fmt.Sprintf(`
			CREATE STREAM s (a BIGINT) WITH (path = 'in/bids', format = 'csv');
			CREATE SINK k WITH (connector = 'console', %s = 'keep');
			INSERT INTO k SELECT a FROM s;`, option), tidemill.RunOptions{})
		if tidemill.KindOf(err) != tidemill.UsageError || !strings.Contains(err.Error(), option) || !strings.Contains(err.Error(), "no path") {
			t.Errorf("%s of a console sink: %v", option, err)
		}
		_, err = x.WriteStream(x.bids()).Option(option, "keep").ForeachBatch(func(context.Context, int64, columnar.Reader) error {
			return errors.New("it ran")
		}).Start(x.ctx)
		var wrong *connector.OptionError
		if !errors.As(err, &wrong) || wrong.Key != option {
			t.Errorf("%s of a function: %v", option, err)
		}
	}
}

// Arrow files are a format as the others: read by name and by function, written by a sink.
func TestArrowFiles(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	x.ok(x.run(x.WriteStream(x.bids()).To("out/a", ipc.Options{Compression: ipc.Zstd}).PartitionBy("channel")))
	want := x.sql("SELECT count(*), sum(price), count(DISTINCT channel) FROM 'in/bids'")
	for _, from := range []string{"'out/a'", "'out/a/**/*.arrow'", "read_arrow('out/a')", "read_arrow('out/a', mode => 'drop')"} {
		x.expect(from, x.sql("SELECT count(*), sum(price), count(DISTINCT channel) FROM "+from), want)
	}
	now := tidemill.AvailableNow()
	sc, err := x.OpenScript(x.ctx, "a.sql", `
		CREATE STREAM s WITH (path = 'out/a', format = 'arrow');
		CREATE SINK k WITH (path = 'out/b', format = 'arrow', compression = 'lz4');
		INSERT INTO k SELECT * FROM s;`, tidemill.RunOptions{Trigger: &now})
	x.ok(err)
	x.ok(sc.Start(x.ctx).Wait())
	x.expect("through a stream", x.sql("SELECT count(*), sum(price), count(DISTINCT channel) FROM 'out/b'"), want)
}
