package tidemill

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/formats"
	"github.com/tidemill/tidemill/formats/memory"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql"
	"github.com/tidemill/tidemill/optimizer"
	"github.com/tidemill/tidemill/physical"
)

// Session holds what queries share: settings, the catalog of tables, streams, views
// and sinks, functions and connectors. Its methods must not be called at the same time
// by several goroutines, except those of the queries it started.
type Session struct {
	opts       Options
	settings   settings
	catalog    *logical.Catalog
	functions  *function.Registry
	connectors *connector.Registry
	mem        arrowmemory.Allocator
	streams    int // streams made by ReadStream, for their names
}

// NewSession starts a session.
func NewSession(o Options) (*Session, error) {
	s := &Session{
		opts: o.withDefaults(), settings: defaultSettings(),
		catalog: logical.NewCatalog(), functions: function.Builtins(),
		connectors: formats.NewRegistry(memory.NewStore()), mem: columnar.NewPool(),
	}
	for name, value := range o.Settings {
		if err := s.Set(name, value); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Set is SET name = value.
func (s *Session) Set(name, value string) error { return s.settings.set(name, value) }

// RegisterFunction adds a scalar function; SQL and DataFrames find it by name.
func (s *Session) RegisterFunction(f *function.Scalar) error { return s.functions.AddScalar(f) }

// RegisterAggregate adds an aggregate function.
func (s *Session) RegisterAggregate(f *function.Aggregate) error { return s.functions.AddAggregate(f) }

// RegisterConnector adds a connector; CREATE … WITH (connector = '…') finds it.
func (s *Session) RegisterConnector(c connector.Connector) error { return s.connectors.Add(c) }

// RegisterTable makes a table of the caller's known by name.
func (s *Session) RegisterTable(name string, t connector.Table) error {
	return s.catalog.Add(name, logical.Entry{Opened: t})
}

// planner binds SQL over the session's catalog. bounded reads streams as the tables
// they are now.
func (s *Session) planner(catalog *logical.Catalog, r *formats.Resolver, file string, bounded bool) *sql.Planner {
	return &sql.Planner{
		Catalog: catalog, Functions: s.functions, Resolver: r,
		Location: s.settings.zone, Bounded: bounded, File: file, Warn: s.opts.Warn,
	}
}

// resolver opens what the session's statements name. pins are what the checkpoint of
// the query at hand keeps of each stream.
func (s *Session) resolver(pins map[string]map[string]string) *formats.Resolver {
	return &formats.Resolver{
		Connectors: s.connectors, FS: s.opts.fs, Mem: s.mem, Location: s.settings.zone,
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
	var last *logical.DataFrame
	err := s.planner(s.catalog, s.resolver(nil), file, true).Script(ctx, text, func(p *sql.Planned) error {
		switch {
		case p.Setting != nil:
			return s.Set(p.Setting.Name, p.Setting.Value)
		case p.Explain:
			plan, err := s.Explain(ctx, logical.NewDataFrame(p.Plan, s.functions), p.Analyze)
			if err != nil {
				return err
			}
			last = s.lines("plan", plan)
		case p.Sink != nil:
			return &usageError{"INSERT INTO is run by tidemill run, or in Go by OpenScript or WriteStream"}
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

// Table is a DataFrame over a table, stream or view of the catalog.
func (s *Session) Table(ctx context.Context, name string) *logical.DataFrame {
	df, err := s.SQL(ctx, `SELECT * FROM "`+name+`"`)
	if err != nil {
		return logical.FailedDataFrame(err)
	}
	return df
}

// Read is a DataFrame over the files at a path, directory or glob, as they are when it
// is collected. options is the Options of one of formats/csv, json, parquet or text, or
// nothing: then the names of the files say the format.
func (s *Session) Read(path string, options ...any) *logical.DataFrame {
	var given any
	if len(options) > 0 {
		given = options[0]
	}
	format, m, err := formats.OptionsOf(given)
	if err != nil {
		return logical.FailedDataFrame(err)
	}
	t, err := s.resolver(nil).Path(context.Background(), path, format, m)
	if err != nil {
		return logical.FailedDataFrame(err)
	}
	return logical.ReadTable(path, t, s.functions)
}

// ReadStream is a DataFrame over everything that ever lands at a path. schema declares
// the columns; nil infers them from the files that are there. Like Read it takes the
// Options of a format; nil takes what the names of the files say.
func (s *Session) ReadStream(path string, options any, schema *arrow.Schema) *logical.DataFrame {
	format, m, err := formats.OptionsOf(options)
	if err != nil {
		return logical.FailedDataFrame(err)
	}
	if format != "" {
		m["format"] = format
	}
	m["path"] = path
	return s.ReadStreamFrom("filesystem", m, schema)
}

// ReadStreamFrom is a DataFrame over a stream of any connector, with its options as
// in WITH (…).
func (s *Session) ReadStreamFrom(connectorName string, options map[string]string, schema *arrow.Schema) *logical.DataFrame {
	s.streams++
	d := &logical.SourceDecl{Name: fmt.Sprintf("stream%d", s.streams), Options: map[string]string{"connector": connectorName}}
	for k, v := range options {
		d.Options[k] = v
	}
	if schema != nil {
		for _, f := range schema.Fields() {
			d.Columns = append(d.Columns, logical.ColumnDecl{Name: f.Name, Type: f.Type})
		}
	}
	stream, err := s.resolver(nil).Stream(context.Background(), d)
	if err != nil {
		return logical.FailedDataFrame(err)
	}
	return logical.NewDataFrame(logical.NewStreamScan("", stream), s.functions)
}

// Collect runs a DataFrame over what is there now and returns all rows. Streams are
// read as the tables they are at this moment.
func (s *Session) Collect(ctx context.Context, df *logical.DataFrame) (*Rows, error) {
	r, err := s.Query(ctx, df)
	if err != nil {
		return nil, err
	}
	batches, err := columnar.Drain(ctx, r)
	if err = errors.Join(err, r.Close()); err != nil {
		for _, b := range batches {
			b.Release()
		}
		return nil, err
	}
	return &Rows{schema: r.Schema(), batches: batches}, nil
}

// Query runs a DataFrame over what is there now and returns its rows as they come. The
// caller closes the Reader.
func (s *Session) Query(ctx context.Context, df *logical.DataFrame) (columnar.Reader, error) {
	p, _, err := s.physicalPlan(ctx, df)
	if err != nil {
		return nil, err
	}
	return physical.Run(ctx, p, s.execContext())
}

func (s *Session) execContext() *physical.ExecContext {
	ec := &physical.ExecContext{
		Mem: s.mem, BatchRows: int(s.settings.batchRows), Parallel: int(s.settings.threads),
		Location: s.settings.zone, Now: s.now().UnixMicro(), Seed: randomSeed(),
	}
	if s.settings.memoryLimit > 0 {
		ec.Budget = columnar.NewBudget(s.settings.memoryLimit)
	}
	return ec
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
	if node, err = boundedPlan(ctx, node); err != nil {
		return nil, nil, err
	}
	o, err := optimizer.New(&function.Env{Mem: s.mem, Location: s.settings.zone}, s.settings.disabled...)
	if err != nil {
		return nil, nil, err
	}
	out := &plans{logical: node}
	if out.optimized, out.trace, err = o.Optimize(node); err != nil {
		return nil, nil, err
	}
	if out.physical, err = physical.NewPlanner().Plan(out.optimized); err != nil {
		return nil, nil, err
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
			Name: scan.Stream.Name, Table: t, Positions: scan.Positions, Output: scan.Output, Filters: scan.Filters, Full: scan.Full,
		}, nil
	})
}

// Terms for DataFrames; see package expr for their methods.

// Col is a column, by name or as table.name.
func Col(name string) expr.Term { return expr.Col(name) }

// Lit is a constant.
func Lit(v any) expr.Term { return expr.Lit(v) }

// Func calls any function of the registry by name.
func Func(name string, args ...expr.Term) expr.Term { return expr.Func(name, args...) }

// When begins CASE WHEN cond THEN value; go on with When and Otherwise.
func When(cond, value expr.Term) expr.Term { return expr.When(cond, value) }

// Count counts rows, or with a term the rows in which it is not null.
func Count(t ...expr.Term) expr.Term { return expr.Func("count", t...) }

// Sum, Min, Max, Avg, First and Last aggregate a term.
func Sum(t expr.Term) expr.Term   { return expr.Func("sum", t) }
func Min(t expr.Term) expr.Term   { return expr.Func("min", t) }
func Max(t expr.Term) expr.Term   { return expr.Func("max", t) }
func Avg(t expr.Term) expr.Term   { return expr.Func("avg", t) }
func First(t expr.Term) expr.Term { return expr.Func("first", t) }
func Last(t expr.Term) expr.Term  { return expr.Func("last", t) }
