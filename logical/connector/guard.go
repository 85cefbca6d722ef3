package connector

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
)

// Guarded is c as the engine calls it if a user wrote it: a panic of whatever it makes is
// an error that names it (*columnar.PanicError), and its own errors name it, too.
func (c Connector) Guarded() Connector {
	g := c
	if c.Table != nil {
		g.Table = func(ctx context.Context, env Env) (Table, error) {
			p := part{"table", nameOr(env.Name, c.Name)}
			t, err := got(p, func() (Table, error) { return c.Table(ctx, env) })
			if err != nil {
				return nil, err
			}
			return guardTable(p, t), nil
		}
	}
	if c.Discover != nil {
		g.Discover = func(ctx context.Context, env Env) (d Discovery, err error) {
			p := part{"source", nameOr(env.Name, c.Name)}
			err = p.guard(func() (err error) {
				d, err = c.Discover(ctx, env)
				return err
			})
			if err == nil && d.Schema == nil {
				err = fmt.Errorf("%s: Discover returned neither columns nor an error", p)
			}
			return d, err
		}
	}
	if c.Source != nil {
		g.Source = func(ctx context.Context, env Env) (Source, error) {
			p := part{"source", nameOr(env.Name, c.Name)}
			s, err := got(p, func() (Source, error) { return c.Source(ctx, env) })
			if err != nil {
				return nil, err
			}
			return guardSource(p, s), nil
		}
	}
	if c.Sink != nil {
		g.Sink = func(ctx context.Context, env Env) (Sink, error) {
			return GuardSink(c.Name, func() (Sink, error) { return c.Sink(ctx, env) })
		}
	}
	if c.CheckSink != nil {
		g.CheckSink = func(env Env) error {
			return part{"sink", c.Name}.guard(func() error { return c.CheckSink(env) })
		}
	}
	return g
}

func nameOr(name, other string) string {
	if name == "" {
		return other
	}
	return name
}

// part is what a panic or an error is about: source clicks.
type part struct{ kind, name string }

func (p part) String() string { return p.kind + " " + p.name }

// guard calls f; its errors and panics name the part.
func (p part) guard(f func() error) error { return p.blame(columnar.Guard(p.String(), f)) }

// blame is err with the part before it, unless it is named, or is no failure of the part.
func (p part) blame(err error) error {
	var panicked *columnar.PanicError
	var named *partError
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.As(err, &panicked), errors.As(err, &named),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &partError{p, err}
}

// partError is an error of a part.
type partError struct {
	part part
	err  error
}

func (e *partError) Error() string { return e.part.String() + ": " + e.err.Error() }
func (e *partError) Unwrap() error { return e.err }

// got calls what makes one part of another; nil without an error is an error.
func got[T comparable](p part, f func() (T, error)) (x T, err error) {
	var none T
	err = p.guard(func() error {
		x, err = f()
		return err
	})
	switch {
	case err != nil:
		return none, err
	case x == none:
		return none, fmt.Errorf("%s: nil was returned, and no error", p)
	}
	return x, nil
}

// GuardTable is a user's Table by a name, guarded as those of a Connector are.
func GuardTable(name string, t Table) Table { return guardTable(part{"table", name}, t) }

func guardTable(p part, t Table) Table {
	g := guardedTable{p, t}
	switch files := t.(type) {
	case FileTable:
		return &guardedFileTable{guardedTable: g, guardedFiles: guardedFiles{p, files}}
	case FileSet:
		return &guardedFilesTable{guardedTable: g, guardedFiles: guardedFiles{p, files}}
	}
	return &g
}

// guardedTable is a Table with everything that is optional: where t lacks it, as if the
// table did.
type guardedTable struct {
	part part
	t    Table
}

func (g *guardedTable) Schema() *arrow.Schema {
	defer columnar.NamePanic(g.part.String())
	return g.t.Schema()
}

func (g *guardedTable) Units(ctx context.Context, req ScanRequest) ([]Unit, error) {
	return guardUnits(g.part, func() ([]Unit, error) { return g.t.Units(ctx, req) })
}

// HasMetadata implements Filed.
func (g *guardedTable) HasMetadata() bool {
	defer columnar.NamePanic(g.part.String())
	return HasMetadata(g.t)
}

// RowCount implements RowCounter.
func (g *guardedTable) RowCount() (int64, bool) {
	defer columnar.NamePanic(g.part.String())
	if c, ok := g.t.(RowCounter); ok {
		return c.RowCount()
	}
	return 0, false
}

// guardedBelow finds the guardedTable in one.
func (g *guardedTable) guardedBelow() *guardedTable { return g }

// SameTable implements TableComparer.
func (g *guardedTable) SameTable(other Table) bool {
	defer columnar.NamePanic(g.part.String())
	o, ok := other.(interface{ guardedBelow() *guardedTable })
	if !ok {
		return false
	}
	if c, ok := g.t.(TableComparer); ok {
		return c.SameTable(o.guardedBelow().t)
	}
	return o.guardedBelow() == g
}

// Prune implements Pruner.
func (g *guardedTable) Prune(filters []expr.Expr) (pruned Table, left, total int) {
	defer columnar.NamePanic(g.part.String())
	p, ok := g.t.(Pruner)
	if !ok {
		return g, 0, 0
	}
	t, left, total := p.Prune(filters)
	return guardTable(g.part, t), left, total
}

// Description implements Describer.
func (g *guardedTable) Description() string { return describe(g.part, g.t) }

// describe is the description of a part, or what the engine would call it without one.
func describe(p part, x any) string {
	defer columnar.NamePanic(p.String())
	if d, ok := x.(Describer); ok {
		return d.Description()
	}
	return p.name
}

// guardedFiles is a FileSet.
type guardedFiles struct {
	part  part
	files FileSet
}

func (g *guardedFiles) Files(ctx context.Context, start, end Offset) (files []FileIdentity, err error) {
	err = g.part.guard(func() error {
		files, err = g.files.Files(ctx, start, end)
		return err
	})
	return files, err
}

func (g *guardedFiles) Changed(ctx context.Context, logged []FileIdentity) (changed []FileIdentity, err error) {
	err = g.part.guard(func() error {
		changed, err = g.files.Changed(ctx, logged)
		return err
	})
	return changed, err
}

// guardedFilesTable is a Table that is a FileSet, too.
type guardedFilesTable struct {
	guardedTable
	guardedFiles
}

// guardedFileTable is a FileTable.
type guardedFileTable struct {
	guardedTable
	guardedFiles
}

func (g *guardedFileTable) At(files []FileIdentity) Table {
	defer columnar.NamePanic(g.guardedTable.part.String())
	return guardTable(g.guardedTable.part, g.t.(FileTable).At(files))
}

func guardUnits(p part, list func() ([]Unit, error)) (units []Unit, err error) {
	err = p.guard(func() error {
		units, err = list()
		return err
	})
	if err != nil {
		return nil, err
	}
	guarded := make([]Unit, len(units))
	for i, u := range units {
		if u == nil {
			return nil, fmt.Errorf("%s: unit %d of %d is nil", p, i, len(units))
		}
		guarded[i] = &guardedUnit{p, u}
	}
	return guarded, nil
}

type guardedUnit struct {
	part part
	u    Unit
}

func (g *guardedUnit) Name() string {
	defer columnar.NamePanic(g.part.String())
	return g.u.Name()
}

func (g *guardedUnit) Bytes() int64 {
	defer columnar.NamePanic(g.part.String())
	return g.u.Bytes()
}

func (g *guardedUnit) Open(ctx context.Context) (columnar.Reader, error) {
	r, err := got(g.part, func() (columnar.Reader, error) { return g.u.Open(ctx) })
	if err != nil {
		return nil, err
	}
	return &guardedReader{g.part, r}, nil
}

type guardedReader struct {
	part part
	r    columnar.Reader
}

func (g *guardedReader) Schema() *arrow.Schema {
	defer columnar.NamePanic(g.part.String())
	return g.r.Schema()
}

func (g *guardedReader) Next(ctx context.Context) (b arrow.RecordBatch, err error) {
	err = g.part.guard(func() error {
		b, err = g.r.Next(ctx)
		return err
	})
	if err == nil && b == nil {
		err = fmt.Errorf("%s: Next returned neither a batch nor an error", g.part)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (g *guardedReader) Close() error { return g.part.guard(g.r.Close) }

func guardSource(p part, s Source) Source {
	g := guardedSource{p, s}
	switch files := s.(type) {
	case interface {
		FileSet
		Hasher
	}:
		return &guardedHasher{guardedFileSource{g, guardedFiles{p, files}}}
	case FileSet:
		return &guardedFileSource{g, guardedFiles{p, files}}
	}
	return &g
}

// guardedSource is a Source with everything that is optional: where s lacks it, as if the
// source did.
type guardedSource struct {
	part part
	s    Source
}

func (g *guardedSource) Schema() *arrow.Schema {
	defer columnar.NamePanic(g.part.String())
	return g.s.Schema()
}

func (g *guardedSource) Target(ctx context.Context) (o Offset, err error) {
	err = g.part.guard(func() error {
		o, err = g.s.Target(ctx)
		return err
	})
	return o, err
}

func (g *guardedSource) LatestOffset(ctx context.Context, start Offset, limit Limit) (o Offset, err error) {
	err = g.part.guard(func() error {
		o, err = g.s.LatestOffset(ctx, start, limit)
		return err
	})
	return o, err
}

func (g *guardedSource) Units(ctx context.Context, start, end Offset, req ScanRequest) ([]Unit, error) {
	return guardUnits(g.part, func() ([]Unit, error) { return g.s.Units(ctx, start, end, req) })
}

func (g *guardedSource) Withdraw(ctx context.Context, start, end Offset) error {
	return g.part.guard(func() error { return g.s.Withdraw(ctx, start, end) })
}

func (g *guardedSource) Commit(ctx context.Context, end Offset) error {
	return g.part.guard(func() error { return g.s.Commit(ctx, end) })
}

func (g *guardedSource) Close() error { return g.part.guard(g.s.Close) }

// Notify implements Notifier.
func (g *guardedSource) Notify(wake func()) {
	defer columnar.NamePanic(g.part.String())
	if n, ok := g.s.(Notifier); ok {
		n.Notify(wake)
	}
}

// Limit implements Limiter.
func (g *guardedSource) Limit() Limit {
	defer columnar.NamePanic(g.part.String())
	if l, ok := g.s.(Limiter); ok {
		return l.Limit()
	}
	return Limit{}
}

// Metrics implements Measured.
func (g *guardedSource) Metrics() map[string]string {
	defer columnar.NamePanic(g.part.String())
	if m, ok := g.s.(Measured); ok {
		return m.Metrics()
	}
	return nil
}

// Waiting implements Waiter.
func (g *guardedSource) Waiting() bool {
	defer columnar.NamePanic(g.part.String())
	w, ok := g.s.(Waiter)
	return ok && w.Waiting()
}

// Description implements Describer.
func (g *guardedSource) Description() string { return describe(g.part, g.s) }

// guardedFileSource is a Source that is a FileSet, too.
type guardedFileSource struct {
	guardedSource
	guardedFiles
}

// guardedHasher is a Source that is a FileSet and a Hasher.
type guardedHasher struct{ guardedFileSource }

func (g *guardedHasher) EachHashed(ctx context.Context, start, end Offset, visit func(f FileHash) error) error {
	return g.guardedSource.part.guard(func() error { return g.s.(Hasher).EachHashed(ctx, start, end, visit) })
}

// GuardSink opens a user's Sink by a name, guarded as those of a Connector are.
func GuardSink(name string, open func() (Sink, error)) (Sink, error) {
	p := part{"sink", name}
	s, err := got(p, open)
	if err != nil {
		return nil, err
	}
	return &guardedSink{p, s}, nil
}

// guardedSink is a Sink with everything that is optional: where s lacks it, as if the sink
// did.
type guardedSink struct {
	part part
	s    Sink
}

func (g *guardedSink) LastBatch(ctx context.Context) (id int64, ok bool, err error) {
	err = g.part.guard(func() error {
		id, ok, err = g.s.LastBatch(ctx)
		return err
	})
	return id, ok, err
}

func (g *guardedSink) Stage(ctx context.Context, b SinkBatch) (Staged, error) {
	st, err := got(g.part, func() (Staged, error) { return g.s.Stage(ctx, b) })
	if err != nil {
		return nil, err
	}
	return &guardedStaged{g.part, st}, nil
}

func (g *guardedSink) Recover(ctx context.Context) (st Staged, err error) {
	err = g.part.guard(func() error {
		st, err = g.s.Recover(ctx)
		return err
	})
	if err != nil || st == nil {
		return nil, err
	}
	return &guardedStaged{g.part, st}, nil
}

func (g *guardedSink) Close() error { return g.part.guard(g.s.Close) }

// KeepsSides implements SideKeeper.
func (g *guardedSink) KeepsSides() bool {
	defer columnar.NamePanic(g.part.String())
	k, ok := g.s.(SideKeeper)
	return ok && k.KeepsSides()
}

// NeedsRewrite implements Rewriter.
func (g *guardedSink) NeedsRewrite() bool {
	defer columnar.NamePanic(g.part.String())
	w, ok := g.s.(Rewriter)
	return ok && w.NeedsRewrite()
}

// Description implements Describer.
func (g *guardedSink) Description() string { return describe(g.part, g.s) }

type guardedStaged struct {
	part part
	st   Staged
}

func (g *guardedStaged) Publish(ctx context.Context) error {
	return g.part.guard(func() error { return g.st.Publish(ctx) })
}

func (g *guardedStaged) Discard() error { return g.part.guard(g.st.Discard) }

func (g *guardedStaged) Rows() int64 {
	defer columnar.NamePanic(g.part.String())
	return g.st.Rows()
}
