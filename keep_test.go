package tidemill_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/formats/ipc"
	"github.com/tidemill/tidemill/formats/parquet"
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

// _metadata is a hidden struct of what comes from files.
func TestFileMetadata(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.write("in/day=2024-01-01/a.csv", "k,n\nx,1\ny,2\nz,3")
	x.write("in/day=2024-01-02/b.csv", "k,n\nx,4")
	x.write("one/a.json", `{"_metadata": 7}`)
	x.expect("fields", x.sql("SELECT _metadata.file_path, _metadata.file_name, _metadata.file_size, _metadata.row_number, k FROM 'in'"), `
		in/day=2024-01-01/a.csv a.csv 16 0 x
		in/day=2024-01-01/a.csv a.csv 16 1 y
		in/day=2024-01-01/a.csv a.csv 16 2 z
		in/day=2024-01-02/b.csv b.csv 8 0 x`)
	x.expect("star leaves it out", x.sql("SELECT * FROM 'in' WHERE _metadata.file_name = 'b.csv'"), "x 4 2024-01-02T00:00:00")
	x.expect("rows by number", x.sql("SELECT k FROM 'in' AS t WHERE t._metadata.row_number > 0 AND n > 2"), "z")
	x.expect("the time", x.sql("SELECT count(*) FROM 'in' WHERE _metadata.file_modification_time > TIMESTAMP '2020-01-01'"), "4")
	x.expect("grouped", x.sql("SELECT _metadata.file_name AS f, sum(n) FROM 'in' GROUP BY _metadata.file_name"), "a.csv 6\nb.csv 4")
	x.expect("the struct", x.sql("SELECT m.file_name FROM (SELECT _metadata AS m FROM 'in/day=2024-01-02')"), "b.csv")
	x.expect("joined", x.sql("SELECT a._metadata.row_number, b._metadata.file_name FROM 'in' a JOIN 'in' b USING (k) WHERE a.n = 1 AND b.n = 4"), "0 b.csv")
	x.expect("its fields", x.sql("SELECT t._metadata.* EXCEPT (file_path, file_modification_time), n FROM 'in' t WHERE day = DATE '2024-01-02'"), "b.csv 8 0 4")
	x.expect("a real column hides it", x.sql("SELECT _metadata FROM 'one'"), "7")
	for text, says := range map[string]string{
		"SELECT _metadata.nothing FROM 'in'":                              "has no field nothing",
		"SELECT _metadata.file_name FROM 'in' a, 'in' b":                  "ambiguous; it could be a._metadata or b._metadata",
		"SELECT _metadata FROM range(3)":                                  "no column _metadata",
		"SELECT _metadata FROM (SELECT * FROM 'in')":                      "no column _metadata",
		"SELECT a._metadata FROM 'in' b JOIN (SELECT 1 AS k) a USING (k)": "_metadata",
	} {
		if _, err := x.SQL(x.ctx, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The number of a row is that in its file, whatever is left out while reading it.
func TestRowNumbers(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	lines := []string{"n"}
	for i := range 1000 {
		lines = append(lines, fmt.Sprint(i))
	}
	x.write("in/a.csv", strings.Join(lines, "\n"))
	x.ok(x.run(x.WriteStream(x.ReadStream("in", csv.Options{Header: csv.HeaderYes}, nil)).To("out/p", parquet.Options{RowGroupRows: 100})))
	for _, from := range []string{"'in/a.csv'", "'out/p/*.parquet'"} {
		x.expect(from, x.sql("SELECT n, _metadata.row_number FROM "+from+" WHERE n > 950 AND n % 20 = 0"), "960 960\n980 980")
		x.expect(from+" all", x.sql("SELECT count(*), sum(_metadata.row_number) FROM "+from+" WHERE _metadata.row_number = n"), "1000 499500")
	}
}
