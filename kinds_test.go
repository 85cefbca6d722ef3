package tidemill_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/logical"
)

// TestKindsOfMistakes sorts what goes wrong: what could be known before anything ran is
// usage, said in Go or in SQL; what only the data tells is a failure.
func TestKindsOfMistakes(t *testing.T) {
	t.Parallel()
	Col, Lit, Func := tidemill.Col, tidemill.Lit, tidemill.Func
	x := newSite(t)
	x.write("in/a.csv", "ts,s,n\n2024-01-01 00:00:00,a,1\n2024-01-01 00:00:09,b,2")
	x.write("bad/a.csv", "n\n1\nx")
	schema := columnar.NewSchema(columnar.Field("ts", columnar.Timestamp), columnar.Field("s", columnar.String), columnar.Field("n", columnar.Int64))
	stream := x.ReadStream("in", csv.Options{Header: csv.HeaderYes}, schema)
	df := x.Read("in")
	run := func(d *logical.DataFrame) error {
		if d == nil {
			return nil
		}
		rows, err := x.Collect(x.ctx, d)
		if err == nil {
			rows.Release()
		}
		return err
	}
	sql := func(text string) error {
		d, err := x.SQL(x.ctx, text)
		if err == nil {
			err = run(d)
		}
		return err
	}
	start := func(w *tidemill.StreamWriter) error {
		_, err := w.Start(x.ctx)
		return err
	}
	cancelled, cancel := context.WithCancel(x.ctx)
	cancel()
	for _, c := range []struct {
		name string
		err  error
		kind tidemill.ErrorKind
	}{
		// Places.
		{"a checkpoint in the output", start(x.WriteStream(stream).To("out", nil).Checkpoint("out/ck")), 2},
		{"a checkpoint around the output", start(x.WriteStream(stream).To("ck/out", nil).Checkpoint("ck")), 2},
		{"a checkpoint in the rows kept", start(x.WriteStream(stream).To("out", nil).Option("bad_rows", "keep").Checkpoint("out.bad/ck")), 2},
		// Names.
		{"an unknown function", run(df.Select(Func("uper", Col("s")))), 2},
		{"an unknown function in SQL", sql("SELECT uper(s) FROM 'in'"), 2},
		{"an unknown aggregate", run(df.Agg(Func("summ", Col("n")))), 2},
		{"an unknown window function", run(df.Select(Func("rnk").Over(tidemill.PartitionBy()))), 2},
		{"an unknown column", run(df.Select(Col("m"))), 2},
		{"an unknown field", run(df.Select(Col("s.x"))), 2},
		{"an unknown column dropped", run(df.Drop("m")), 2},
		{"an unknown column renamed", run(df.Rename("m", "k")), 2},
		{"an unknown table", run(x.Table(x.ctx, "nothing")), 2},
		{"an unknown stream", run(x.Stream(x.ctx, "nothing")), 2},
		{"an unknown path", run(x.Read("nothing")), 2},
		{"an unknown connector", run(x.ReadStreamFrom("kafka", nil, nil)), 2},
		{"an unknown setting", x.Set("thread", "1"), 2},
		{"a name that is taken", errors.Join(x.CreateView("v", df), x.CreateView("V", df)), 2},
		{"a column joined on that is none", run(df.JoinUsing(df, logical.InnerJoin, "m")), 2},
		{"a column that is ambiguous", run(df.As("a").Join(df.As("b"), logical.InnerJoin, Col("n").Eq(Lit(1)))), 2},
		// Values.
		{"a negative limit", run(df.Limit(-1)), 2},
		{"a negative offset", run(df.Offset(-1)), 2},
		{"a probability above 1", run(df.Sample(1.5)), 2},
		{"a constant of no type", run(df.Select(Lit(make(chan int)))), 2},
		{"a negative delay", run(stream.WithWatermark("ts", -time.Second)), 2},
		{"a delay of half a microsecond", run(stream.WithWatermark("ts", 500)), 2},
		{"a watermark of a text", run(stream.WithWatermark("s", 0)), 2},
		{"a window of 0", run(df.GroupBy(tidemill.Window(Col("ts"), 0)).Count()), 2},
		{"a window of 1 ns", run(df.GroupBy(tidemill.Window(Col("ts"), 1)).Count()), 2},
		{"a window over a text", run(df.GroupBy(tidemill.Window(Col("s"), time.Second)).Count()), 2},
		{"a negative gap", run(df.GroupBy(tidemill.SessionWindow(Col("ts"), Lit(-time.Second))).Count()), 2},
		{"a setting that is no number", x.Set("threads", "many"), 2},
		{"a time zone that is none", x.Set("time_zone", "Mars"), 2},
		{"options that are none", run(x.Read("in", 7)), 2},
		{"values that cannot be cast", run(x.Values(schema, []any{"x", "a", 1})), 2},
		{"values of a wrong number", run(x.Values(schema, []any{1})), 2},
		// Types.
		{"a filter that is a number", run(df.Where(Col("n"))), 2},
		{"an argument of a wrong type", run(df.Select(Func("upper", tidemill.Func("array", Col("n"))))), 2},
		{"an aggregate in a filter", run(df.Where(tidemill.Sum(Col("n")).Gt(Lit(1)))), 2},
		{"a union of two shapes", run(df.Union(df.Select(Col("n")))), 2},
		// Constants that a function takes apart as it is planned.
		{"a unit that is none", run(df.Select(Func("date_trunc", Lit("fortnight"), Col("ts")))), 2},
		{"a unit that is none in SQL", sql("SELECT date_trunc('fortnight', ts) FROM 'in'"), 2},
		{"a part that is none", sql("SELECT date_part('dog', ts) FROM 'in'"), 2},
		{"a pattern that is none", run(df.Where(Func("regexp_like", Col("s"), Lit("(")))), 2},
		{"a pattern that is none in SQL", sql("SELECT s RLIKE '(' FROM 'in'"), 2},
		{"a replaced pattern that is none", sql("SELECT regexp_replace(s, '[', '') FROM 'in'"), 2},
		{"a JSON path that is none", sql("SELECT get_json_object(s, 'a[') FROM 'in'"), 2},
		{"a time zone that is none in SQL", sql("SELECT from_utc_timestamp(ts, 'Mars') FROM 'in'"), 2},
		{"a delay in SQL", sql("CREATE STREAM neg (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '-1 second') WITH (path = 'in')"), 2},
		{"a window of 0 in SQL", sql("SELECT window(ts, INTERVAL '0 seconds'), count(*) FROM 'in' GROUP BY 1"), 2},
		{"a cast of a constant", sql("SELECT CAST('x' AS BIGINT)"), 1},
		{"a pattern of the data", sql("SELECT s RLIKE (s || '(') FROM 'in'"), 1},
		{"a number too large", sql("SELECT n * 9223372036854775807 FROM 'in'"), 1},
		{"a division by zero", run(df.Select(Col("n").Div(Lit(0)))), 1},
		{"a record in mode fail", sql("SELECT * FROM read_csv('bad', header => true, mode => 'fail', columns => 'n BIGINT')"), 2},
		// Where it ends before its time.
		{"a cancelled context of Collect", collected(x.Collect(cancelled, df)), 1},
		{"a cancelled context of SQL", planErr(x.SQL(cancelled, "SELECT * FROM 'in'")), 1},
		{"a cancelled context of Table", run(x.Table(cancelled, "v")), 1},
		{"a deadline", fmt.Errorf("reading: %w", context.DeadlineExceeded), 1},
	} {
		if got := tidemill.KindOf(c.err); got != c.kind {
			t.Errorf("%s is of kind %d, not %d: %v", c.name, got, c.kind, c.err)
		}
		if c.err != nil && strings.Contains(c.err.Error(), "bug:") {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
}

func collected(rows *tidemill.Rows, err error) error {
	if err == nil {
		rows.Release()
	}
	return err
}

func planErr(_ *logical.DataFrame, err error) error { return err }
