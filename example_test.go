package tidemill_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/formats/parquet"
	"github.com/tidemill/tidemill/logical"
)

// landing makes a directory with a few files of bids in it.
func landing() (dir string, cleanup func()) {
	dir, err := os.MkdirTemp("", "tidemill-example-")
	if err != nil {
		log.Fatal(err)
	}
	land(dir, "landing/bids/1.csv", `
		ts,channel,price
		2024-01-01 12:00:05,web,1500
		2024-01-01 12:00:20,app,1200
		2024-01-01 12:00:40,web,900`)
	land(dir, "landing/bids/2.csv", `
		ts,channel,price
		2024-01-01 12:00:50,web,3000
		2024-01-01 12:01:10,app,1100
		2024-01-01 12:02:30,web,2000`)
	return dir, func() { _ = os.RemoveAll(dir) }
}

// land puts a file into a directory, whole.
func land(dir, name, text string) {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		log.Fatal(err)
	}
	text = strings.ReplaceAll(strings.TrimSpace(text), "\t", "") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}
}

// A bounded query over files, in SQL.
func ExampleSession_SQL() {
	dir, cleanup := landing()
	defer cleanup()
	ctx := context.Background()

	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	df, err := s.SQL(ctx, fmt.Sprintf(`
		SELECT channel, count(*) AS bids, max(price) AS top
		FROM '%s/landing/bids/*.csv'
		GROUP BY channel ORDER BY channel`, dir))
	if err != nil {
		log.Fatal(err)
	}
	rows, err := s.Collect(ctx, df)
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Release()
	fmt.Print(rows)
	// Output:
	// channel:varchar  bids:bigint  top:bigint
	// app              2            1200
	// web              4            3000
}

// The same as a DataFrame, read value by value.
func ExampleSession_Collect() {
	dir, cleanup := landing()
	defer cleanup()
	ctx := context.Background()

	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	df := s.Read(filepath.Join(dir, "landing/bids"), csv.Options{Header: csv.HeaderYes}).
		Where(tidemill.Col("price").Gt(tidemill.Lit(1000))).
		OrderBy(tidemill.Col("price").Desc()).
		Select(tidemill.Col("ts"), tidemill.Col("price")).
		Limit(2)
	rows, err := s.Collect(ctx, df)
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Release()
	for _, row := range rows.All() {
		fmt.Println(row[0].(time.Time).Format(time.TimeOnly), row[1].(int64))
	}
	// Output:
	// 12:00:50 3000
	// 12:02:30 2000
}

// The dearest bid of each channel: QUALIFY rank() OVER (…) = 1 in SQL.
func ExamplePartitionBy() {
	dir, cleanup := landing()
	defer cleanup()
	ctx := context.Background()

	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	best := tidemill.Func("rank").Over(tidemill.PartitionBy(tidemill.Col("channel")).OrderBy(tidemill.Col("price").Desc()))
	df := s.Read(filepath.Join(dir, "landing/bids"), csv.Options{Header: csv.HeaderYes}).
		WithColumn("place", best).
		Where(tidemill.Col("place").Eq(tidemill.Lit(1))).
		Select(tidemill.Col("channel"), tidemill.Col("price")).
		OrderBy(tidemill.Col("channel"))
	rows, err := s.Collect(ctx, df)
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Release()
	fmt.Print(rows)
	// Output:
	// channel:varchar  price:bigint
	// app              1200
	// web              3000
}

// Each bid with the price limit that held at its time: the nearest earlier row of a table
// in which each version carries the time from which it holds.
func Example_asofJoin() {
	dir, cleanup := landing()
	defer cleanup()
	land(dir, "limits.csv", `
		channel,valid_from,most
		web,2024-01-01 00:00:00,1000
		web,2024-01-01 12:00:45,5000`)
	ctx := context.Background()

	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	bids := s.Read(filepath.Join(dir, "landing/bids"), csv.Options{Header: csv.HeaderYes}).As("b")
	limits := s.Read(filepath.Join(dir, "limits.csv"), csv.Options{Header: csv.HeaderYes}).As("l")
	on := tidemill.Col("b.channel").Eq(tidemill.Col("l.channel")).
		And(tidemill.Col("b.ts").Ge(tidemill.Col("l.valid_from")))
	df := bids.AsofJoin(limits, logical.LeftJoin, on).
		Where(tidemill.Col("price").Gt(tidemill.Col("most"))).
		Select(tidemill.Col("ts"), tidemill.Col("price"), tidemill.Col("most"))
	rows, err := s.Collect(ctx, df)
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Release()
	for _, row := range rows.All() {
		fmt.Println(row[0].(time.Time).Format(time.TimeOnly), row[1], row[2])
	}
	// Output:
	// 12:00:05 1500 1000
}

// Windows over a stream: a result is written once, when the watermark has passed its
// window's end.
func ExampleSession_WriteStream() {
	dir, cleanup := landing()
	defer cleanup()
	ctx := context.Background()

	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	schema := columnar.NewSchema(
		columnar.Field("ts", columnar.Timestamp),
		columnar.Field("channel", columnar.String),
		columnar.Field("price", columnar.Int64),
	)
	bids := s.ReadStream(filepath.Join(dir, "landing/bids"), csv.Options{Header: csv.HeaderYes}, schema)
	perMinute := bids.
		WithWatermark("ts", 10*time.Second).
		Where(tidemill.Col("price").Gt(tidemill.Lit(1000))).
		GroupBy(tidemill.Window(tidemill.Col("ts"), time.Minute), tidemill.Col("channel")).
		Agg(tidemill.Count().As("bids"), tidemill.Max(tidemill.Col("price")).As("top"))

	out := filepath.Join(dir, "out/per_minute")
	q, err := s.WriteStream(perMinute).To(out, parquet.Options{}).
		Mode(tidemill.Append).Checkpoint(filepath.Join(dir, "ckpt/per_minute")).
		Trigger(tidemill.AvailableNow()).Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Wait(ctx); err != nil {
		log.Fatal(err)
	}

	rows, err := s.Collect(ctx, s.Read(out+"/*.parquet").
		Select(tidemill.Col("window.start"), tidemill.Col("channel"), tidemill.Col("bids"), tidemill.Col("top")).
		OrderBy(tidemill.Col("start"), tidemill.Col("channel")))
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Release()
	fmt.Print(rows)
	// Output:
	// start:timestamp       channel:varchar  bids:bigint  top:bigint
	// 2024-01-01T12:00:00Z  app              1            1200
	// 2024-01-01T12:00:00Z  web              2            3000
	// 2024-01-01T12:01:00Z  app              1            1100
}

// A file of SQL whose INSERTs run side by side, as the run command does.
func ExampleSession_OpenScript() {
	dir, cleanup := landing()
	defer cleanup()
	ctx := context.Background()

	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	once := tidemill.AvailableNow()
	script, err := s.OpenScript(ctx, "bids.sql", strings.ReplaceAll(`
		CREATE STREAM bids (ts TIMESTAMP, channel VARCHAR, price BIGINT) WITH (path = '$DIR/landing/bids', format = 'csv');
		CREATE SINK by_channel WITH (path = '$DIR/out/by_channel', format = 'csv', output_mode = 'complete');
		CREATE SINK dear WITH (path = '$DIR/out/dear', format = 'json');
		INSERT INTO by_channel SELECT channel, sum(price) AS total FROM bids GROUP BY channel;
		INSERT INTO dear SELECT * FROM bids WHERE price >= 2000;
	`, "$DIR", dir), tidemill.RunOptions{Trigger: &once})
	if err != nil {
		log.Fatal(err)
	}
	if err := script.Start(ctx).Wait(); err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"by_channel", "dear"} {
		rows, err := s.Collect(ctx, s.Read(filepath.Join(dir, "out", name)))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %d rows\n", name, rows.NumRows())
		rows.Release()
	}
	// Output:
	// by_channel: 2 rows
	// dear: 2 rows
}

// Each micro-batch given to a function, free to do anything with its rows.
func ExampleStreamWriter_ForeachBatch() {
	dir, cleanup := landing()
	defer cleanup()
	ctx := context.Background()

	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	bids := s.ReadStreamFrom("filesystem", map[string]string{
		"path": filepath.Join(dir, "landing/bids"), "max_files_per_trigger": "1",
	}, nil)
	q, err := s.WriteStream(bids).Trigger(tidemill.AvailableNow()).
		ForeachBatch(func(ctx context.Context, batchID int64, rows columnar.Reader) error {
			n := int64(0)
			for b, err := range columnar.All(ctx, rows) {
				if err != nil {
					return err
				}
				n += b.NumRows()
			}
			fmt.Printf("batch %d: %d rows\n", batchID, n)
			return nil
		}).Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// batch 0: 3 rows
	// batch 1: 3 rows
}

// A function of one's own, in SQL and in DataFrames.
func ExampleScalarFunc() {
	ctx := context.Background()
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	initials := tidemill.ScalarFunc("initials", []arrow.DataType{columnar.String}, columnar.String, func(args []any) (any, error) {
		out := ""
		for _, word := range strings.Fields(args[0].(string)) {
			out += word[:1]
		}
		return out, nil
	})
	if err := s.RegisterFunction(initials); err != nil {
		log.Fatal(err)
	}
	df, err := s.SQL(ctx, "SELECT initials('Ada Lovelace') AS who")
	if err != nil {
		log.Fatal(err)
	}
	rows, err := s.Collect(ctx, df)
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Release()
	fmt.Println(rows.Value(0, 0))
	// Output: AL
}

// What a mistake looks like, and how a program tells kinds of errors apart.
func ExampleKindOf() {
	ctx := context.Background()
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = s.SQL(ctx, "SELECT lenght('tide')")
	var mistake *tidemill.SQLError
	fmt.Println(errors.As(err, &mistake), tidemill.KindOf(err) == tidemill.UsageError)
	fmt.Println(err)
	// Output:
	// true true
	// line 1, column 8: there is no function lenght; did you mean length?
	//   SELECT lenght('tide')
	//          ^^^^^^
}

// The plan of a query.
func ExampleSession_Explain() {
	ctx := context.Background()
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	df, err := s.SQL(ctx, "SELECT n + 1 AS m FROM range(10) AS r(n) WHERE n > 7 AND true")
	if err != nil {
		log.Fatal(err)
	}
	text, err := s.Explain(ctx, df, false)
	if err != nil {
		log.Fatal(err)
	}
	_, optimized, _ := strings.Cut(text, "== optimized ==\n")
	optimized, _, _ = strings.Cut(optimized, "==")
	fmt.Print(optimized)
	// Output:
	// Project r.id + 1 AS m
	//   Scan range(10) columns=[id] filters=[r.id > 7]
}

// A panic of a function of one's own is an error of the query.
func ExamplePanicError() {
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	surname := tidemill.ScalarFunc("surname", []arrow.DataType{columnar.String}, columnar.String, func(args []any) (any, error) {
		return strings.Fields(args[0].(string))[1], nil
	})
	if err := s.RegisterFunction(surname); err != nil {
		log.Fatal(err)
	}
	schema := columnar.NewSchema(columnar.Field("name", columnar.String))
	_, err = s.Collect(context.Background(), s.Values(schema, []any{"Ada Lovelace"}, []any{"Plato"}).Select(tidemill.Func("surname", tidemill.Col("name"))))
	fmt.Println(err)
	var p *tidemill.PanicError
	if errors.As(err, &p) {
		fmt.Println(p.What, "panicked:", p.Value)
		_ = p.Stack // for the log
	}
	// Output:
	// surname(name): function surname panicked: runtime error: index out of range [1] with length 1
	// function surname panicked: runtime error: index out of range [1] with length 1
}
