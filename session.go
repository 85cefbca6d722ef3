package tidemill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/formats"
	"github.com/tidemill/tidemill/formats/memory"
	"github.com/tidemill/tidemill/incremental/stateful"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql"
	"github.com/tidemill/tidemill/optimizer"
	"github.com/tidemill/tidemill/physical"
)

// Session holds what queries share: settings, the catalog of tables, streams, views
// and sinks, functions and connectors. It needs no closing: the queries it started and
// the Rows and Readers it returned are ended and released by those who have them. Its
// methods may be called by several goroutines at the same time, those of the queries it
// started, too; Rows and Readers belong to one.
type Session struct {
	opts       Options
	settings   *sharedSettings
	catalog    *logical.Catalog
	functions  *function.Registry
	connectors *connector.Registry
	store      *memory.Store
	mem        arrowmemory.Allocator
	streams    *streams
	queries    *queries
}

// NewSession starts a session. A wrong setting is an *OptionError.
func NewSession(o Options) (*Session, error) {
	store := memory.NewStore()
	s := &Session{
		opts: o.withDefaults(), settings: &sharedSettings{now: defaultSettings()},
		catalog: logical.NewCatalog(), functions: function.Builtins(),
		connectors: formats.NewRegistry(store), store: store,
		mem: columnar.NewPool(), streams: newStreams(), queries: newQueries(),
	}
	for name, value := range o.Settings {
		if err := s.Set(name, value); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Set is SET name = value: it holds for what is described or started from then on.
func (s *Session) Set(name, value string) error {
	if err := s.made(); err != nil {
		return err
	}
	return s.settings.set(name, value)
}

// Location is the time zone SET time_zone chose, UTC at first: in it timestamps without an
// offset are read, and printed.
func (s *Session) Location() *time.Location {
	if s.made() != nil {
		return time.UTC
	}
	return s.settings.get().zone
}

// Values is a DataFrame of rows written out, VALUES in SQL: Go values as Lit takes them, or
// Terms without columns, cast to the types of schema.
func (s *Session) Values(schema *arrow.Schema, rows ...[]any) *logical.DataFrame {
	return described(context.Background(), s, func() (*logical.DataFrame, error) {
		if schema == nil {
			return nil, logical.Usagef("values: the schema is nil; make one with columnar.NewSchema")
		}
		node, err := logical.NewValues(s.functions, schema, rows)
		if err != nil {
			return nil, logical.Usagef("values: %w", err)
		}
		return logical.NewDataFrame(node, s.functions), nil
	})
}

// Range is a DataFrame of the whole numbers from start to before end, by step, in a column
// id.
func (s *Session) Range(start, end, step int64) *logical.DataFrame {
	if step == 0 {
		return logical.FailedDataFrame(logical.Usagef("range: the step is 0"))
	}
	df, err := s.SQL(context.Background(), fmt.Sprintf("SELECT * FROM range(%d, %d, %d)", start, end, step))
	if err != nil {
		return logical.FailedDataFrame(err)
	}
	return df
}

// Memory is where the connector memory keeps its streams, and the rows of its sinks by
// the names of their queries. It is empty at the start and goes with the session.
func (s *Session) Memory() *memory.Store {
	if s.made() != nil {
		return nil
	}
	return s.store
}

// planner binds SQL over the session's catalog. bounded reads streams as the tables
// they are now.
func (s *Session) planner(catalog *logical.Catalog, r *formats.Resolver, file string, bounded bool) *sql.Planner {
	set := s.settings.get()
	return &sql.Planner{
		Catalog: catalog, Functions: s.functions, Resolver: r,
		Location: set.zone, Bounded: bounded, File: file, Warn: s.opts.Warn,
		Settings: s.settings.list,
	}
}

// script plans the statements of a text one after the other; a SET holds for those
// after it. do is given what else they mean.
func (s *Session) script(ctx context.Context, file, text string, bounded bool, do func(*sql.Planned) error) error {
	r := s.resolver(nil)
	return s.planner(s.catalog, r, file, bounded).Script(ctx, text, func(p *sql.Planned) error {
		if p.Setting == nil {
			return do(p)
		}
		err := s.Set(p.Setting.Name, p.Setting.Value)
		r.Location = s.Location()
		return err
	})
}

// resolver opens what the session's statements name. pins are what the checkpoint of
// the query at hand keeps of each stream.
func (s *Session) resolver(pins map[string]map[string]string) *formats.Resolver {
	return &formats.Resolver{
		Connectors: s.connectors, FS: s.opts.fs, Mem: s.mem, Location: s.Location(),
		Stdout: s.opts.Stdout, Warn: s.opts.Warn, Pins: pins,
	}
}

// SQL runs the statements of text in order, CREATE and SET at once, and returns the
// DataFrame of the last query (EXPLAIN is one, of lines of text). A text without a query
// gives a DataFrame without columns. INSERT is not run here: see OpenScript.
func (s *Session) SQL(ctx context.Context, text string) (*logical.DataFrame, error) {
	df, err := s.SQLFile(ctx, "", text)
	if err == nil && df == nil {
		df = logical.NewDataFrame(&logical.Values{Output: logical.NewSchema()}, s.functions)
	}
	return df, err
}

// SQLFile is SQL for the text of a file, which errors name. It returns nil if the text
// has no query.
func (s *Session) SQLFile(ctx context.Context, file, text string) (*logical.DataFrame, error) {
	return acting(ctx, s, func() (*logical.DataFrame, error) { return s.sqlFile(ctx, file, text) })
}

func (s *Session) sqlFile(ctx context.Context, file, text string) (*logical.DataFrame, error) {
	var last *logical.DataFrame
	err := s.script(ctx, file, text, true, func(p *sql.Planned) error {
		switch {
		case p.Explain:
			plan, err := s.explain(ctx, p, p.Analyze)
			if err != nil {
				return err
			}
			last = s.lines("plan", plan)
		case p.Sink != nil:
			return logical.Usagef("INSERT INTO is run by tidemill run, or in Go by OpenScript or WriteStream")
		case p.Plan != nil:
			last = logical.NewDataFrame(p.Plan, s.functions)
		}
		return nil
	})
	return last, err
}

// lines is a DataFrame of the lines of a text.
func (s *Session) lines(name, text string) *logical.DataFrame {
	column := &expr.Column{ID: expr.NewID(), Name: name, DataType: columnar.String}
	v := &logical.Values{Output: logical.NewSchema(column)}
	for line := range strings.Lines(text) {
		v.Rows = append(v.Rows, []expr.Expr{expr.Lit(strings.TrimRight(line, "\n")).Expr})
	}
	return logical.NewDataFrame(v, s.functions)
}

// Table is a DataFrame over a table or view of the catalog, or over a stream as the
// table that it is now.
func (s *Session) Table(ctx context.Context, name string) *logical.DataFrame {
	df, err := s.SQL(ctx, `SELECT * FROM "`+strings.ReplaceAll(name, `"`, `""`)+`"`)
	if err != nil {
		return logical.FailedDataFrame(err)
	}
	return df
}

// Stream is a DataFrame over a stream of the catalog, or over a view of one, to be
// written by WriteStream.
func (s *Session) Stream(ctx context.Context, name string) *logical.DataFrame {
	text := `SELECT * FROM "` + strings.ReplaceAll(name, `"`, `""`) + `"`
	return described(ctx, s, func() (*logical.DataFrame, error) {
		node, err := s.planner(s.catalog, s.resolver(nil), "", false).Query(ctx, text)
		if err != nil {
			return nil, err
		}
		return logical.NewDataFrame(node, s.functions), nil
	})
}

// Read is a DataFrame over the files at a path, directory or glob, as they are when it
// is collected; their columns are looked for now. options is the Options of one of
// formats/csv, json, parquet, ipc, avro or text, or nothing: then the names of the files say the
// format.
func (s *Session) Read(path string, options ...any) *logical.DataFrame {
	return described(context.Background(), s, func() (*logical.DataFrame, error) {
		var given any
		switch len(options) {
		case 0:
		case 1:
			given = options[0]
		default:
			return nil, logical.Usagef("Read takes the Options of one format")
		}
		format, m, err := formats.OptionsOf(given)
		if err != nil {
			return nil, logical.Usagef("read: %w", err)
		}
		t, err := s.resolver(nil).Path(context.Background(), path, format, m)
		if err != nil {
			return nil, err
		}
		return logical.ReadTable(path, t, s.functions), nil
	})
}

// ReadStream is a DataFrame over everything that ever lands at a path. schema declares
// the columns; nil infers them from the files that are there. Like Read it takes the
// Options of a format; nil takes what the names of the files say. ReadStreamFrom takes
// every other option of a stream.
func (s *Session) ReadStream(path string, options any, schema *arrow.Schema) *logical.DataFrame {
	format, m, err := formats.OptionsOf(options)
	if err != nil {
		return logical.FailedDataFrame(logical.Usagef("readStream: %w", err))
	}
	if format != "" {
		m["format"] = format
	}
	m["path"] = path
	return s.ReadStreamFrom("filesystem", m, schema)
}

// ReadStreamFrom is a DataFrame over a stream of any connector, with its options as
// in WITH (…). In progress and in the checkpoint the stream is called by the last
// element of its path, or by its connector. What is described in the same words twice is
// one stream; another one of the same name gets a number, so that a program that restarts
// should describe its streams in the same order.
func (s *Session) ReadStreamFrom(connectorName string, options map[string]string, schema *arrow.Schema) *logical.DataFrame {
	d := &logical.SourceDecl{Options: map[string]string{}}
	for k, v := range options {
		d.Options[strings.ToLower(k)] = v
	}
	d.Options["connector"] = connectorName
	if schema != nil {
		for _, f := range schema.Fields() {
			if !columnar.Supported(f.Type) {
				return logical.FailedDataFrame(logical.Usagef("column %s: the engine does not compute with %s; use a type of package columnar, such as columnar.Timestamp", f.Name, f.Type))
			}
			d.Columns = append(d.Columns, logical.ColumnDecl{Name: f.Name, Type: f.Type})
		}
	}
	return described(context.Background(), s, func() (*logical.DataFrame, error) {
		stream, err := s.streams.find(context.Background(), s, d)
		if err != nil {
			return nil, err
		}
		return logical.NewDataFrame(logical.NewStreamScan("", stream), s.functions), nil
	})
}

// Collect runs a DataFrame over what is there now and returns all rows. Streams are
// read as the tables they are at this moment.
func (s *Session) Collect(ctx context.Context, df *logical.DataFrame) (*Rows, error) {
	r, err := s.query(ctx, df)
	if err != nil {
		return nil, err
	}
	rows := &Rows{schema: r.Schema()}
	if err = columnar.JoinErrors(rows.collect(ctx, r, r.budget), r.Close()); err != nil {
		rows.Release()
		return nil, err
	}
	return rows, nil
}

// Query runs a DataFrame over what is there now and returns its rows as they come. The
// caller closes the Reader.
func (s *Session) Query(ctx context.Context, df *logical.DataFrame) (columnar.Reader, error) {
	r, err := s.query(ctx, df)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (s *Session) query(ctx context.Context, df *logical.DataFrame) (*resultReader, error) {
	return acting(ctx, s, func() (*resultReader, error) {
		p, _, err := s.physicalPlan(ctx, df)
		if err != nil {
			return nil, err
		}
		ec, m := s.execContext(), &malformed{}
		ec.ScanStats = m.of
		r, err := physical.Run(ctx, p, ec)
		if err != nil {
			return nil, err
		}
		return &resultReader{r: r, budget: ec.Budget, malformed: m, warn: s.opts.Warn}, nil
	})
}

func (s *Session) execContext() *physical.ExecContext {
	set := s.settings.get()
	return &physical.ExecContext{
		Mem: s.mem, BatchRows: int(set.batchRows), Parallel: int(set.threads),
		Location: set.zone, Now: s.now().UnixMicro(), Salt: randomSalt(), Budget: set.budget(),
	}
}

// plans are the stages a query went through, for Explain.
type plans struct {
	logical, optimized logical.Node
	trace              *optimizer.Trace
	physical           physical.Plan
}

// physicalPlan plans a DataFrame as a bounded query.
func (s *Session) physicalPlan(ctx context.Context, df *logical.DataFrame) (physical.Plan, *plans, error) {
	node, err := df.Plan()
	if err != nil {
		return nil, nil, err
	}
	if node, err = boundedPlan(ctx, logical.TypedNulls(node)); err != nil {
		return nil, nil, err
	}
	if node, err = logical.NumberSources(node); err != nil {
		return nil, nil, err
	}
	set := s.settings.get()
	o, err := optimizer.New(&function.Env{Mem: s.mem, Location: set.zone}, set.disabled...)
	if err != nil {
		return nil, nil, err
	}
	out := &plans{logical: node}
	if out.optimized, out.trace, err = o.Optimize(node); err != nil {
		return nil, nil, err
	}
	if out.physical, err = physical.NewPlanner(stateful.PlanBoundedGroups).Plan(out.optimized); err != nil {
		return nil, nil, err
	}
	if !slices.Contains(set.disabled, optimizer.ShareAggregations) {
		out.physical = physical.Share(out.physical)
	}
	return out.physical, out, nil
}

// boundedPlan reads the streams of a plan as the tables they are now.
func boundedPlan(ctx context.Context, n logical.Node) (logical.Node, error) {
	return logical.Transform(n, func(x logical.Node) (logical.Node, error) {
		scan, ok := x.(*logical.StreamScan)
		if !ok {
			return x, nil
		}
		t, err := scan.Stream.Bounded(ctx)
		if err != nil {
			return nil, err
		}
		return &logical.Scan{
			Name: scan.Stream.Name, Table: t, Positions: scan.Positions, Output: scan.Output, Filters: scan.Filters, Full: scan.Full, OfStream: true,
		}, nil
	})
}
