package sql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// Planner gives statements their meaning. It is not safe for concurrent use; its
// catalog grows with every CREATE.
type Planner struct {
	Catalog   *logical.Catalog
	Functions *function.Registry
	Resolver  logical.Resolver
	// Location is the session time zone, in which the text of TIMESTAMP '…' without
	// offset is read; nil is UTC. Whoever applies SET time_zone sets it, but Script
	// does so itself.
	Location *time.Location
	// Bounded reads streams as the tables they are now, for queries that end.
	Bounded bool
	// File is the name of the text, for errors; may be empty.
	File string
	// Settings gives what SHOW shows, in order; nil is none.
	Settings func() []Setting
	// Warn is told what is legal but probably not meant; nil drops it.
	Warn func(text string)
}

// Planned is the meaning of one statement. Statements that only change the catalog
// (CREATE …) have nothing but Stmt.
type Planned struct {
	Stmt ast.Statement
	// Plan is the rows of a SELECT, of the query of an INSERT or EXPLAIN, and of
	// DESCRIBE and SHOW.
	Plan logical.Node
	// Sink is where an INSERT goes, also that of EXPLAIN INSERT.
	Sink *logical.SinkDecl
	// Explain is set for EXPLAIN, Analyze with ANALYZE: the plan is to be shown
	// instead of its rows.
	Explain, Analyze bool
	// Setting is what SET asks for.
	Setting *Setting
}

// Setting is one SET: a name in lower case, and the text of its value.
type Setting struct{ Name, Value string }

// SettingError puts the place of the SET on an error of applying it: of its name, or of the
// value if the error is about that. Errors of other statements stay as they are.
func (p *Planned) SettingError(file, src string, err error) error {
	set, ok := p.Stmt.(*ast.Set)
	if !ok || err == nil {
		return err
	}
	var at ast.Node = set.Name[len(set.Name)-1]
	var o *connector.OptionError
	if errors.As(err, &o) && o.HasValue {
		at = set.Value
	}
	return withFile(At(src, at, err), file)
}

// Plan gives a statement its meaning. src is the text the statement was parsed
// from. CREATE changes the catalog. Mistakes are *Error; what is legal but not
// supported is an *Error for which errors.Is(err, logical.ErrUnsupported) holds.
func (p *Planner) Plan(ctx context.Context, src string, stmt ast.Statement) (*Planned, error) {
	b := newBinder(ctx, p, src)
	out := &Planned{Stmt: stmt}
	var err error
	switch s := stmt.(type) {
	case *ast.QueryStmt:
		out.Plan, err = b.result(s.Query)
	case *ast.Insert:
		out.Plan, out.Sink, err = b.insert(s)
	case *ast.Create:
		err = b.create(s)
	case *ast.Explain:
		inner, err := p.Plan(ctx, src, s.Stmt)
		if err != nil {
			return nil, err
		}
		inner.Stmt, inner.Explain, inner.Analyze = stmt, true, s.Analyze
		return inner, nil
	case *ast.Set:
		out.Setting, err = b.set(s)
	case *ast.Describe:
		out.Plan, err = b.describe(s)
	case *ast.Show:
		out.Plan, err = b.show(s)
	default:
		err = fmt.Errorf("bug: unknown statement %T", stmt)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Query parses and plans a text that holds one query.
func (p *Planner) Query(ctx context.Context, src string) (logical.Node, error) {
	stmts, err := Parse(src)
	if err != nil {
		return nil, withFile(err, p.File)
	}
	if len(stmts) != 1 {
		return nil, fmt.Errorf("expected one query, found %d statements", len(stmts))
	}
	if _, ok := stmts[0].(*ast.QueryStmt); !ok {
		span := ast.Span{From: stmts[0].Pos(), To: stmts[0].End()}
		return nil, withFile(newError(src, span, "expected a query, found another statement"), p.File)
	}
	planned, err := p.Plan(ctx, src, stmts[0])
	if err != nil {
		return nil, err
	}
	return planned.Plan, nil
}

// Script parses a text and plans its statements in order, each seen by do before
// the next is planned, so that SET and CREATE take effect (a time_zone that do
// accepts becomes the Location). It stops at the first error.
func (p *Planner) Script(ctx context.Context, src string, do func(*Planned) error) error {
	stmts, err := Parse(src)
	if err != nil {
		return withFile(err, p.File)
	}
	for _, s := range stmts {
		planned, err := p.Plan(ctx, src, s)
		if err != nil {
			return err
		}
		if err := do(planned); err != nil {
			return planned.SettingError(p.File, src, err)
		}
		if set := planned.Setting; set != nil && set.Name == "time_zone" {
			if zone, err := columnar.LoadZone(set.Value); err == nil {
				p.Location = zone
			}
		}
	}
	return nil
}

// withFile names the file in errors of the parser.
func withFile(err error, file string) error {
	switch e := err.(type) {
	case *Error:
		e.File = file
	case ErrorList:
		for _, one := range e {
			one.File = file
		}
	}
	return err
}

// Declaration is what the catalog keeps of CREATE STREAM, and of CREATE TABLE with
// computed columns: the declaration with its syntax, bound at each use.
type Declaration struct {
	Source *logical.SourceDecl
	// IsTable is set for CREATE TABLE.
	IsTable bool

	create *ast.Create
	text   origin
}

// View is what the catalog keeps of CREATE VIEW: syntax, bound at each use.
type View struct {
	Name string

	columns []*ast.Ident
	query   *ast.Query
	text    origin
}

// origin is the text a piece of syntax was parsed from.
type origin struct{ src, file string }
