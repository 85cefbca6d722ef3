package formats

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// Resolver opens what declarations and paths mean, through a registry of connectors. It
// is read only once made.
type Resolver struct {
	Connectors *connector.Registry
	FS         vfs.FS
	Mem        memory.Allocator
	Location   *time.Location // session time zone; nil is UTC
	Stdout     io.Writer      // of the console sink
	Warn       func(text string)
	// Pins are what the checkpoint of the query at hand keeps of each stream, by its
	// name in lower case.
	Pins map[string]map[string]string
}

var _ logical.Resolver = (*Resolver)(nil)

// Env is what a connector is opened with for a declaration.
func (r *Resolver) Env(d *logical.SourceDecl) connector.Env {
	options := maps.Clone(d.Options)
	delete(options, "connector")
	return connector.Env{
		Name: d.Name, Options: options, Columns: declared(d), Pinned: r.Pins[strings.ToLower(d.Name)],
		FS: r.FS, Mem: r.Mem, Location: r.Location, Stdout: r.Stdout, Warn: r.Warn,
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
func (r *Resolver) Stream(ctx context.Context, d *logical.SourceDecl) (*logical.Stream, error) {
	env := r.Env(d)
	found, err := r.Connectors.Discover(ctx, d.Connector(), env)
	if err != nil {
		var none *connector.NoFilesError
		if errors.As(err, &none) {
			none.Stream = d.Name
		}
		return nil, err
	}
	return &logical.Stream{
		Name: d.Name, Decl: d, Schema: found.Schema, Pinned: found.Pinned, HasMetadata: found.HasMetadata,
		Open: func(ctx context.Context, log connector.BatchLog) (connector.Source, error) {
			opened := env
			opened.Log, opened.Pinned, opened.Listed = log, found.Pinned, found.Listed
			return r.Connectors.Source(ctx, d.Connector(), opened)
		},
		Bounded: func(ctx context.Context) (connector.Table, error) {
			bounded := env
			bounded.Pinned = found.Pinned
			t, err := r.Connectors.Table(ctx, d.Connector(), bounded)
			var none *connector.NoFilesError
			if errors.As(err, &none) {
				// A stream's folder may be empty or absent: it counts as no rows.
				return emptyTable{found.Schema, found.HasMetadata}, nil
			}
			return t, err
		},
	}, nil
}

// Table opens a declared bounded table.
func (r *Resolver) Table(ctx context.Context, d *logical.SourceDecl) (connector.Table, error) {
	return r.Connectors.Table(ctx, d.Connector(), r.Env(d))
}

// Path opens a path or glob written in FROM.
func (r *Resolver) Path(ctx context.Context, path, format string, options map[string]string) (connector.Table, error) {
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
type emptyTable struct {
	schema *arrow.Schema
	filed  bool
}

func (t emptyTable) Schema() *arrow.Schema { return t.schema }

// HasMetadata implements connector.Filed.
func (t emptyTable) HasMetadata() bool { return t.filed }

func (t emptyTable) Units(context.Context, connector.ScanRequest) ([]connector.Unit, error) {
	return nil, nil
}
