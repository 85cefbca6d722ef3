package tidemill_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"go.uber.org/goleak"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/formats/json"
	"github.com/tidemill/tidemill/formats/parquet"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical"
)

// site is a session over a filesystem in memory.
type site struct {
	*tidemill.Session
	t      *testing.T
	ctx    context.Context
	fs     *vfs.Mem
	stdout strings.Builder

	mu       sync.Mutex
	warnings []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteOver(t, vfs.NewMem())
}

func newSiteOver(t *testing.T, mem *vfs.Mem) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	x := &site{t: t, ctx: ctx, fs: mem}
	x.Session = x.session(tidemill.Options{})
	return x
}

func (x *site) session(o tidemill.Options) *tidemill.Session {
	x.t.Helper()
	if o.Stdout == nil {
		o.Stdout = &x.stdout
	}
	o.Warn = func(text string) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.warnings = append(x.warnings, text)
	}
	s, err := tidemill.NewSession(o.WithFS(x.fs))
	x.ok(err)
	return s
}

func (x *site) ok(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// write puts a file, whole. Tabs are indentation.
func (x *site) write(name, text string) {
	x.t.Helper()
	x.ok(vfs.MkdirAll(x.fs, path.Dir(name)))
	x.ok(vfs.WriteAtomic(x.fs, name, []byte(strings.ReplaceAll(strings.TrimSpace(text), "\t", "")+"\n")))
}

// rows is the sorted rows of a DataFrame, one line each, values separated by blanks.
func (x *site) rows(df *logical.DataFrame) string {
	x.t.Helper()
	rows, err := x.Collect(x.ctx, df)
	x.ok(err)
	defer rows.Release()
	var lines []string
	for _, row := range rows.All() {
		var cells []string
		for _, v := range row {
			if at, ok := v.(time.Time); ok {
				v = at.Format("2006-01-02T15:04:05")
			}
			cells = append(cells, fmt.Sprint(v))
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (x *site) sql(text string) string {
	x.t.Helper()
	df, err := x.SQL(x.ctx, text)
	x.ok(err)
	return x.rows(df)
}

func (x *site) expect(what, got, want string) {
	x.t.Helper()
	if want = strings.TrimSpace(strings.ReplaceAll(want, "\t", "")); got != want {
		x.t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

// run starts a query that ends by itself and waits for it.
func (x *site) run(w *tidemill.StreamWriter) error {
	q, err := w.Trigger(tidemill.AvailableNow()).Start(x.ctx)
	if err != nil {
		return err
	}
	return q.Wait(x.ctx)
}

var bidSchema = columnar.NewSchema(
	columnar.Field("ts", columnar.Timestamp), columnar.Field("channel", columnar.String), columnar.Field("price", columnar.Int64),
)

func (x *site) bids() *logical.DataFrame {
	return x.ReadStream("in/bids", csv.Options{}, bidSchema)
}

func (x *site) landBids() {
	x.write("in/bids/1.csv", `ts,channel,price
		2024-01-01 12:00:05,web,1500
		2024-01-01 12:00:20,app,1200`)
	x.write("in/bids/2.csv", `ts,channel,price
		2024-01-01 12:01:10,app,1100
		2024-01-01 12:02:30,web,2000`)
}

func TestSeveralQueriesOfOneSession(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	col := tidemill.Col
	all, err := x.WriteStream(x.bids()).To("out/all", nil).Trigger(tidemill.AvailableNow()).Start(x.ctx)
	x.ok(err)
	totals, err := x.WriteStream(x.bids().GroupBy(col("channel")).Agg(tidemill.Sum(col("price")).As("total"))).
		To("out/totals", json.Options{}).Mode(tidemill.Complete).Name("totals").Trigger(tidemill.Once()).Start(x.ctx)
	x.ok(err)
	printed, err := x.WriteStream(x.bids().Where(col("price").Ge(tidemill.Lit(2000)))).
		ToConnector("console", map[string]string{"Format": "csv"}).Trigger(tidemill.AvailableNow()).Start(x.ctx)
	x.ok(err)
	for _, q := range []*tidemill.Query{all, totals, printed} {
		x.ok(q.Wait(x.ctx))
	}
	x.expect("all", x.rows(x.Read("out/all").Select(col("channel"), col("price"))), `app 1100
		app 1200
		web 1500
		web 2000`)
	x.expect("totals", x.rows(x.Read("out/totals")), "app 2300\nweb 3500")
	x.expect("console", strings.TrimSpace(x.stdout.String()), "ts,channel,price\n2024-01-01 12:02:30,web,2000")
	if all.ID() == totals.ID() || totals.Name() != "totals" {
		t.Errorf("identities: %s, %s, %q", all.ID(), totals.ID(), totals.Name())
	}
}

func TestProcessAllAvailableThenStop(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	q, err := x.WriteStream(x.bids()).To("out", nil).Start(x.ctx)
	x.ok(err)
	x.ok(q.ProcessAllAvailable(x.ctx))
	if n, _ := x.count("out"); n != 4 {
		t.Errorf("%d rows after the first files, want 4", n)
	}
	x.write("in/bids/3.csv", "ts,channel,price\n2024-01-01 12:03:00,web,1")
	x.ok(q.ProcessAllAvailable(x.ctx))
	if n, _ := x.count("out"); n != 5 {
		t.Errorf("%d rows after one more file, want 5", n)
	}
	x.ok(q.Stop(x.ctx))
	x.ok(q.Stop(x.ctx)) // again does nothing
	if got := q.Status(); got.Message != "Stopped" || got.IsTriggerActive {
		t.Errorf("status of a stopped query: %+v", got)
	}
	p, ok := q.LastProgress()
	if !ok || p.BatchID != 1 || p.NumInputRows != 1 || len(q.RecentProgress()) != 2 {
		t.Errorf("last progress: batch %d with %d rows, %d reports", p.BatchID, p.NumInputRows, len(q.RecentProgress()))
	}
}

func (x *site) count(dir string) (int64, error) {
	rows, err := x.Collect(x.ctx, x.Read(dir))
	if err != nil {
		return 0, err
	}
	defer rows.Release()
	return rows.NumRows(), nil
}

// TestKillAndRestart ends a query in the middle of a batch, again and again; the one
// that is left alone writes each row once.
func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	land := func(i int) {
		x.write(fmt.Sprintf("in/bids/%d.csv", i), fmt.Sprintf("ts,channel,price\n2024-01-01 12:00:%02d,web,%d", i, i))
	}
	for i := range 8 {
		land(i)
	}
	query := func() *tidemill.StreamWriter {
		s := x.session(tidemill.Options{})
		stream := s.ReadStreamFrom("filesystem", map[string]string{"path": "in/bids", "format": "csv", "max_files_per_trigger": "1"}, bidSchema)
		return s.WriteStream(stream.GroupBy(tidemill.Col("channel")).Agg(tidemill.Count().As("n"), tidemill.Sum(tidemill.Col("price")).As("total"))).
			To("out", nil).Mode(tidemill.Complete)
	}
	for kills := range 6 {
		land(8 + kills) // so that there is a batch, however far the run before got
		var once sync.Once
		reached := make(chan struct{})
		q, err := query().Listen(tidemill.Listener{Progress: func(tidemill.Progress) {
			once.Do(func() { close(reached) })
		}}).Start(x.ctx)
		x.ok(err)
		select {
		case <-reached:
		case <-q.Done():
			t.Fatal(q.Err())
		}
		q.Kill()
		if err := q.Wait(x.ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	x.ok(x.run(query()))
	x.expect("the table", x.rows(x.Read("out")), "web 14 91")
}

func TestListener(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	var told []string
	l := tidemill.Listener{
		Started:    func(id, runID, name string) { told = append(told, "started "+name) },
		Progress:   func(p tidemill.Progress) { told = append(told, fmt.Sprintf("batch %d: %d", p.BatchID, p.NumInputRows)) },
		Terminated: func(err error) { told = append(told, fmt.Sprintf("terminated %v", err)) },
	}
	x.ok(x.run(x.WriteStream(x.bids()).Name("copy").To("out", nil).Listen(l)))
	x.expect("told", strings.Join(told, "\n"), "started copy\nbatch 0: 4\nterminated <nil>")
}

func TestForeachBatchSeesAFailedBatchAgain(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	mistake := errors.New("the database is away")
	var batches []int64
	write := func(fail error) *tidemill.StreamWriter {
		return x.session(tidemill.Options{}).WriteStream(x.bids()).Checkpoint("ckpt").
			ForeachBatch(func(_ context.Context, batchID int64, _ columnar.Reader) error {
				batches = append(batches, batchID)
				return fail
			})
	}
	err := x.run(write(mistake))
	var batch *tidemill.BatchError
	if !errors.Is(err, mistake) || !errors.As(err, &batch) || batch.Batch != 0 || tidemill.KindOf(err) != tidemill.FailedError {
		t.Errorf("the error is %v", err)
	}
	x.ok(x.run(write(nil)))
	if !slices.Equal(batches, []int64{0, 0}) {
		t.Errorf("batches %v, want 0 twice", batches)
	}
}

func TestEndOfContextStopsTheQuery(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	ctx, cancel := context.WithCancel(x.ctx)
	q, err := x.WriteStream(x.bids()).To("out", nil).Start(ctx)
	x.ok(err)
	waiting, done := context.WithCancel(x.ctx)
	done()
	if err := q.Wait(waiting); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with an ended context gives %v", err)
	}
	cancel()
	<-q.Done()
	x.ok(x.run(x.WriteStream(x.bids()).To("out", nil)))
}

// TestWindowStruct: the result of a window in a DataFrame is that of SQL.
func TestWindowStruct(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	col := tidemill.Col
	df := x.Read("in/bids").GroupBy(tidemill.Window(col("ts"), time.Minute), col("channel")).Agg(tidemill.Count().As("n"))
	fromSQL, err := x.SQL(x.ctx, "SELECT window, channel, count(*) AS n FROM 'in/bids' GROUP BY window(ts, '1 minute'), channel")
	x.ok(err)
	if got, want := df.Schema().String(), fromSQL.Schema().String(); got != want {
		t.Errorf("columns %s, in SQL %s", got, want)
	}
	if got, want := x.rows(df), x.rows(fromSQL); got != want {
		t.Errorf("rows\n%s\nin SQL\n%s", got, want)
	}
	sessions := x.Read("in/bids").GroupBy(tidemill.SessionWindow(col("ts"), tidemill.Lit("2 minutes"))).Agg(tidemill.Count().As("n"))
	x.expect("sessions", x.rows(sessions.Select(col("session_window.start"), col("session_window.end"), col("n"))), "2024-01-01T12:00:05 2024-01-01T12:04:30 4")
	hours := df.GroupBy(tidemill.Window(col("window"), time.Hour)).Agg(tidemill.Sum(col("n")).As("n"))
	x.expect("windows of windows", x.rows(hours.Select(col("window.start"), col("n"))), "2024-01-01T12:00:00 4")
}

// TestChainedWindowsOnAStream: the struct of a window carries the watermark on.
func TestChainedWindowsOnAStream(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	col := tidemill.Col
	df := x.bids().WithWatermark("ts", 0).
		GroupBy(tidemill.Window(col("ts"), time.Minute), col("channel")).Agg(tidemill.Count().As("n")).
		GroupBy(col("window")).Agg(tidemill.Max(col("n")).As("most"), tidemill.Count().As("channels"))
	x.ok(x.run(x.WriteStream(df).To("out", nil)))
	x.expect("minutes", x.rows(x.Read("out").Select(col("window.start"), col("most"), col("channels"))), `2024-01-01T12:00:00 1 2
		2024-01-01T12:01:00 1 1`)
}

// TestTimeZone: SET time_zone reaches what is read after it, in a query and in a script.
func TestTimeZone(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.write("in/t.csv", "ts\n2024-01-01 12:00:00")
	x.expect("UTC", x.sql("SELECT ts FROM 'in/t.csv'"), "2024-01-01T12:00:00")
	x.expect("within a text", x.sql("SET time_zone = 'Asia/Tokyo'; SELECT ts FROM 'in/t.csv'"), "2024-01-01T03:00:00")
	x.expect("it stays", x.sql("SELECT ts FROM 'in/t.csv'"), "2024-01-01T03:00:00")
	x.expect("literals, too", x.sql("SELECT TIMESTAMP '2024-01-01 12:00:00'"), "2024-01-01T03:00:00")

	script := func(set string, o tidemill.RunOptions) string {
		x := newSiteOver(t, x.fs.Clone())
		once := tidemill.AvailableNow()
		o.Trigger = &once
		sc, err := x.OpenScript(x.ctx, "t.sql", set+`
			CREATE STREAM s (ts TIMESTAMP) WITH (path = 'in', format = 'csv');
			CREATE SINK k WITH (path = 'out', format = 'parquet');
			INSERT INTO k SELECT ts FROM s;`, o)
		x.ok(err)
		x.ok(sc.Start(x.ctx).Wait())
		return x.rows(x.Read("out"))
	}
	x.expect("script", script("SET time_zone = 'Asia/Tokyo';", tidemill.RunOptions{}), "2024-01-01T03:00:00")
	x.expect("an option wins", script("SET time_zone = 'Asia/Tokyo';", tidemill.RunOptions{Settings: map[string]string{"time_zone": "America/New_York"}}), "2024-01-01T17:00:00")
}

func TestWriterIsAValue(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	base := x.WriteStream(x.bids()).To("out/a", csv.Options{Delimiter: ";"}).PartitionBy("channel")
	other := base.To("out/b", parquet.Options{}).Option("Target_File_Size", "1 MB") // nothing of CSV is left
	x.ok(x.run(base))
	x.ok(x.run(other))
	for _, dir := range []string{"out/a/channel=web", "out/b/channel=web"} {
		if entries, err := x.fs.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v, %v", dir, entries, err)
		}
	}
}

func TestGoValues(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	rows, err := x.Collect(x.ctx, must(x.SQL(x.ctx, `SELECT DATE '2024-01-02', TIME '00:00:01', 1.50, [1, NULL], STRUCT(1 AS a), NULL, 2e0, 'x', true`)))
	x.ok(err)
	defer rows.Release()
	var got string
	for column := range 9 {
		got += fmt.Sprint(rows.Value(0, column), " ")
	}
	if want := "2024-01-02 00:00:00 +0000 UTC 1s 1.50 [1 <nil>] map[a:1] <nil> 2 x true "; got != want {
		t.Errorf("values %s\nwant   %s", got, want)
	}
	if rows.Value(1, 0) != nil || rows.Value(0, 99) != nil || rows.Value(-1, 0) != nil {
		t.Error("a value that is not there is not nil")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	start := func(w *tidemill.StreamWriter) error {
		q, err := w.Start(x.ctx)
		if err == nil {
			err = q.Stop(x.ctx)
		}
		return err
	}
	sql := func(text string) error { _, err := x.SQL(x.ctx, text); return err }
	script := func(text string) error {
		_, err := x.OpenScript(x.ctx, "f.sql", text, tidemill.RunOptions{})
		return err
	}
	const stream = "CREATE STREAM s (a BIGINT) WITH (path = 'in/bids', format = 'csv'); "
	for name, test := range map[string]struct {
		err  error
		kind tidemill.ErrorKind
		says string
	}{
		"unknown setting":      {x.Set("time_zome", "UTC"), tidemill.UsageError, "did you mean time_zone"},
		"bad zone":             {x.Set("time_zone", "Mars"), tidemill.UsageError, "Mars"},
		"bad policy":           {x.Set("watermark_policy", "mean"), tidemill.UsageError, "mean"},
		"syntax":               {sql("SELEC 1"), tidemill.UsageError, "line 1"},
		"two formats":          {collect(x, x.Read("in/bids", csv.Options{}, json.Options{})), tidemill.UsageError, "one format"},
		"not a format":         {collect(x, x.Read("in/bids", 7)), tidemill.UsageError, "csv.Options"},
		"no files":             {collect(x, x.Read("nowhere/*.csv")), tidemill.UsageError, "nowhere"},
		"unsupported type":     {start(x.WriteStream(x.ReadStream("in/bids", nil, columnar.NewSchema(columnar.Field("u", arrow.PrimitiveTypes.Uint64)))).To("out", nil)), tidemill.UsageError, "column u"},
		"nowhere to go":        {start(x.WriteStream(x.bids())), tidemill.UsageError, "destination"},
		"bounded":              {start(x.WriteStream(x.Read("in/bids")).To("out", nil)), tidemill.UsageError, "stream"},
		"complete without agg": {start(x.WriteStream(x.bids()).To("out", nil).Mode(tidemill.Complete)), tidemill.UsageError, "append"},
		"unknown option":       {start(x.WriteStream(x.bids()).To("out", nil).Option("target_filesize", "1")), tidemill.UsageError, "target_file_size"},
		"no such connector":    {start(x.WriteStream(x.bids()).ToConnector("kafka", nil)), tidemill.UsageError, "kafka"},
		"growing columns":      {start(x.WriteStream(x.ReadStreamFrom("filesystem", map[string]string{"path": "in/bids", "schema_evolution": "add"}, nil)).To("out", nil)), tidemill.UsageError, "schema_evolution"},
		"first mistake":        {start(x.WriteStream(x.bids().Where(tidemill.Col("prise").IsNull())).To("out", nil)), tidemill.UsageError, "did you mean price"},
		"nothing to run":       {script("SELECT 1;"), tidemill.UsageError, "f.sql has no INSERT"},
		"script syntax":        {script("CREATE STREAM;"), tidemill.UsageError, "f.sql"},
		"unknown sink":         {script(stream + "INSERT INTO k SELECT a FROM s;"), tidemill.UsageError, "k"},
		"insert in SQL":        {sql(stream + "CREATE SINK k WITH (path = 'o'); INSERT INTO k SELECT a FROM s"), tidemill.UsageError, "INSERT INTO"},
		"bad on_failure":       {script(stream + "CREATE SINK k WITH (path = 'o', on_failure = 'panic'); INSERT INTO k SELECT a FROM s;"), tidemill.UsageError, "on_failure"},
		"bad trigger":          {script(stream + "CREATE SINK k WITH (path = 'o', trigger = 'often'); INSERT INTO k SELECT a FROM s;"), tidemill.UsageError, "trigger"},
	} {
		if test.err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if got := tidemill.KindOf(test.err); got != test.kind {
			t.Errorf("%s: kind %d, want %d: %v", name, got, test.kind, test.err)
		}
		if !strings.Contains(test.err.Error(), test.says) {
			t.Errorf("%s: %q does not say %q", name, test.err, test.says)
		}
	}
	if _, err := tidemill.NewSession(tidemill.Options{Settings: map[string]string{"threads": "none"}}); tidemill.KindOf(err) != tidemill.UsageError {
		t.Errorf("a wrong setting gives %v", err)
	}
	for _, name := range []string{"out", "out.checkpoint", "o", "o.checkpoint"} {
		if _, err := x.fs.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was refused left %s: %v", name, err)
		}
	}
}

func collect(x *site, df *logical.DataFrame) error {
	rows, err := x.Collect(x.ctx, df)
	if err == nil {
		rows.Release()
	}
	return err
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	x.ok(x.run(x.WriteStream(x.bids()).To("out", nil).Checkpoint("ckpt")))
	err := x.run(x.WriteStream(x.bids()).To("out", nil).Checkpoint("another"))
	if tidemill.KindOf(err) != tidemill.RefusalError {
		t.Errorf("another checkpoint on the output: %v", err)
	}
	err = x.run(x.WriteStream(x.bids().GroupBy(tidemill.Col("channel")).Count()).To("out", nil).Mode(tidemill.Complete).Checkpoint("ckpt"))
	if tidemill.KindOf(err) != tidemill.RefusalError || !errors.Is(err, tidemill.ErrIncompatible) {
		t.Errorf("another query on the checkpoint: %v", err)
	}
	q, err := x.WriteStream(x.bids()).To("out", nil).Checkpoint("ckpt").Start(x.ctx)
	x.ok(err)
	_, err = x.WriteStream(x.bids()).To("out", nil).Checkpoint("ckpt").Start(x.ctx)
	if !errors.Is(err, tidemill.ErrLocked) {
		t.Errorf("a second start: %v", err)
	}
	x.ok(q.Stop(x.ctx))
}

func TestScriptReadsTheOutputOfAnEarlierInsert(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	once := tidemill.AvailableNow()
	sc, err := x.OpenScript(x.ctx, "chain.sql", `
		CREATE STREAM bids (ts TIMESTAMP, channel VARCHAR, price BIGINT) WITH (path = 'in/bids', format = 'csv');
		CREATE SINK clean WITH (path = 'out/clean');
		INSERT INTO clean SELECT * FROM bids WHERE price > 1100;
		CREATE STREAM cleaned WITH (path = 'out/clean');
		CREATE SINK totals WITH (path = 'out/totals', output_mode = 'complete');
		INSERT INTO totals SELECT channel, sum(price) AS total FROM cleaned GROUP BY channel;`, tidemill.RunOptions{Trigger: &once})
	x.ok(err)
	r := sc.Start(x.ctx)
	x.ok(r.Wait())
	x.expect("totals", x.rows(x.Read("out/totals")), "app 1200\nweb 3500")
	if len(r.Queries()) != 2 {
		t.Errorf("%d queries", len(r.Queries()))
	}
}

// TestScriptFailure: under a repeating trigger one failure stops the others after their
// batch; with on_failure = 'continue' it does not.
func TestScriptFailure(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	text := func(onFailure string) string {
		return `CREATE STREAM bids (ts TIMESTAMP, channel VARCHAR, price BIGINT) WITH (path = 'in/bids', format = 'csv');
			CREATE SINK bad WITH (path = 'out/bad` + onFailure + `', on_failure = '` + onFailure + `');
			CREATE SINK good WITH (path = 'out/good` + onFailure + `');
			INSERT INTO bad SELECT 1 // (price - price) AS x FROM bids;
			INSERT INTO good SELECT price FROM bids;`
	}
	sc, err := x.OpenScript(x.ctx, "f.sql", text("stop"), tidemill.RunOptions{})
	x.ok(err)
	if err := sc.Start(x.ctx).Wait(); tidemill.KindOf(err) != tidemill.FailedError || !strings.Contains(err.Error(), "bad") {
		t.Errorf("the error is %v", err)
	}
	sc, err = x.OpenScript(x.ctx, "f.sql", text("continue"), tidemill.RunOptions{})
	x.ok(err)
	r := sc.Start(x.ctx)
	for len(r.Queries()) < 2 {
		if x.ctx.Err() != nil {
			t.Fatal("the queries did not start")
		}
	}
	for _, q := range r.Queries() {
		if q.Name() == "good" {
			x.ok(q.ProcessAllAvailable(x.ctx))
		} else {
			<-q.Done()
		}
	}
	x.write("in/bids/9.csv", "ts,channel,price\n2024-01-01 12:09:00,web,9")
	for _, q := range r.Queries() {
		if q.Name() == "good" {
			x.ok(q.ProcessAllAvailable(x.ctx))
		}
	}
	r.RequestStop()
	if err := r.Wait(); tidemill.KindOf(err) != tidemill.FailedError {
		t.Errorf("the error is %v", err)
	}
	if n, err := x.count("out/goodcontinue"); n != 5 || err != nil {
		t.Errorf("the good query wrote %d rows (%v), want 5", n, err)
	}
}

// TestScriptWaitsForColumns: a stream with neither columns nor files.
func TestScriptWaitsForColumns(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	text := `CREATE STREAM s WITH (path = 'in/late'); CREATE SINK k WITH (path = 'out'); INSERT INTO k SELECT * FROM s;`
	once := tidemill.AvailableNow()
	sc, err := x.OpenScript(x.ctx, "s.sql", text, tidemill.RunOptions{Trigger: &once})
	x.ok(err)
	x.ok(sc.Start(x.ctx).Wait())
	if !strings.Contains(strings.Join(x.warnings, "\n"), "nothing to do") {
		t.Errorf("warnings: %q", x.warnings)
	}
	sc, err = x.OpenScript(x.ctx, "s.sql", text, tidemill.RunOptions{})
	x.ok(err)
	r := sc.Start(x.ctx)
	r.RequestStop()
	x.ok(r.Wait())
}

func TestMemoryConnector(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	x.ok(x.run(x.WriteStream(x.bids().GroupBy(tidemill.Col("channel")).Count()).
		ToConnector("memory", nil).Mode(tidemill.Complete).Name("counts")))
	defer x.Memory().Result("counts").Clear()
	x.expect("rows in memory", x.sql("CREATE TABLE counts WITH (connector = 'memory'); SELECT * FROM counts"), "app 2\nweb 2")
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	x.sql(`CREATE STREAM bids (ts TIMESTAMP, channel VARCHAR, price BIGINT) WITH (path = 'in/bids', format = 'csv');
		CREATE VIEW "we""b" AS SELECT price FROM bids WHERE channel = 'web'`)
	x.expect("a view", x.rows(x.Table(x.ctx, `we"b`)), "1500\n2000")
	x.ok(x.run(x.WriteStream(x.Stream(x.ctx, `we"b`)).To("out", nil)))
	x.expect("the view as a stream", x.rows(x.Read("out")), "1500\n2000")
	if _, err := x.Table(x.ctx, "nope").Plan(); tidemill.KindOf(err) != tidemill.UsageError {
		t.Errorf("an unknown table: %v", err)
	}
	if text := must(x.ExplainSQL(x.ctx, "", "CREATE SINK k WITH (path = 'o', output_mode = 'update'); EXPLAIN INSERT INTO k SELECT channel, count(*) AS n FROM bids GROUP BY channel", false)); !strings.Contains(text, "mode=update") {
		t.Errorf("the explained mode is not the sink's:\n%s", text)
	}
	report, err := x.Schema(x.ctx, "in/bids", "")
	x.ok(err)
	if len(report.Files) != 2 || report.Schema.NumFields() != 3 {
		t.Errorf("schema report: %+v", report)
	}
}

// TestNothingIsLeft runs queries that end in each way; no goroutine may outlive them.
// It is not parallel, so that nothing else runs meanwhile.
func TestNothingIsLeft(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	x := newSite(t)
	x.landBids()
	x.ok(x.run(x.WriteStream(x.bids()).To("drained", nil)))
	q, err := x.WriteStream(x.bids()).To("stopped", nil).Start(x.ctx)
	x.ok(err)
	x.ok(q.ProcessAllAvailable(x.ctx))
	x.ok(q.Stop(x.ctx))
	q, err = x.WriteStream(x.bids()).To("killed", nil).Start(x.ctx)
	x.ok(err)
	q.Kill()
	<-q.Done()
	if x.run(x.WriteStream(x.bids().Select(tidemill.Lit(1).IntDiv(tidemill.Col("price").Sub(tidemill.Col("price"))))).To("failed", nil)) == nil {
		t.Error("a division by zero was no error")
	}
	r, err := x.Query(x.ctx, x.Read("in/bids"))
	x.ok(err)
	x.ok(r.Close()) // before its end
	goleak.VerifyNone(t, ignore)
	if n := x.fs.OpenFiles(); n != 0 {
		t.Errorf("%d files are open", n)
	}
}
