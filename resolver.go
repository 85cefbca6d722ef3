package tidemill

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// resolver opens what declarations and paths mean, for one query: pins are what its
// checkpoint keeps of each stream.
type resolver struct {
	s    *Session
	pins map[string]map[string]string // by stream name
}

var _ logical.Resolver = (*resolver)(nil)

func (s *Session) resolver(pins map[string]map[string]string) *resolver {
	return &resolver{s: s, pins: pins}
}

// env is what a connector is opened with for a declaration.
func (r *resolver) env(d *logical.SourceDecl) connector.Env {
	options := maps.Clone(d.Options)
	delete(options, "connector")
	return connector.Env{
		Name: d.Name, Options: options, Columns: declared(d), Pinned: r.pins[strings.ToLower(d.Name)],
		FS: r.s.opts.fs, Mem: r.s.mem, Location: r.s.settings.zone, Stdout: r.s.opts.Stdout, Warn: r.s.opts.Warn,
	}
}

// declared is the declared columns as a schema; nil if they are to be inferred.
func declared(d *logical.SourceDecl) *arrow.Schema {
	if d.Columns == nil {
		return nil
	}
	fields := make([]arrow.Field, len(d.Columns))
	for i, c := range d.Columns {
		fields[i] = columnar.Field(c.Name, c.Type)
	}
	return columnar.NewSchema(fields...)
}

// Stream finds the columns of a declared stream.
func (r *resolver) Stream(ctx context.Context, d *logical.SourceDecl) (*logical.Stream, error) {
	env := r.env(d)
	found, err := r.s.connectors.Discover(ctx, d.Connector(), env)
	if err != nil {
		return nil, err
	}
	return &logical.Stream{
		Name: d.Name, Decl: d, Schema: found.Schema, Pinned: found.Pinned,
		Open: func(ctx context.Context, log connector.BatchLog) (connector.Source, error) {
			opened := env
			opened.Log, opened.Pinned = log, found.Pinned
			return r.s.connectors.Source(ctx, d.Connector(), opened)
		},
		Bounded: func(ctx context.Context) (connector.Table, error) {
			bounded := env
			bounded.Pinned = found.Pinned
			t, err := r.s.connectors.Table(ctx, d.Connector(), bounded)
			var none *connector.NoFilesError
			if errors.As(err, &none) {
				// A stream's folder may be empty or absent: it counts as no rows.
				return emptyTable{found.Schema}, nil
			}
			return t, err
		},
	}, nil
}

// Table opens a declared bounded table.
func (r *resolver) Table(ctx context.Context, d *logical.SourceDecl) (connector.Table, error) {
	return r.s.connectors.Table(ctx, d.Connector(), r.env(d))
}

// Path opens a path or glob written in FROM.
func (r *resolver) Path(ctx context.Context, path, format string, options map[string]string) (connector.Table, error) {
	d := &logical.SourceDecl{Name: path, Options: map[string]string{"path": path}}
	for k, v := range options {
		d.Options[strings.ToLower(k)] = v
	}
	if format != "" {
		d.Options["format"] = format
	}
	return r.Table(ctx, d)
}

// emptyTable has no rows.
type emptyTable struct{ schema *arrow.Schema }

func (t emptyTable) Schema() *arrow.Schema { return t.schema }

func (t emptyTable) Units(context.Context, connector.ScanRequest) ([]connector.Unit, error) {
	return nil, nil
}
