package tidemill

import (
	"context"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// tellingResolver notes what a query reads the columns of which its files tell.
type tellingResolver struct {
	logical.Resolver
	job *job
}

func (r *tellingResolver) Stream(ctx context.Context, d *logical.SourceDecl) (*logical.Stream, error) {
	if d.Columns == nil {
		r.job.told = append(r.job.told, d)
	}
	return r.Resolver.Stream(ctx, d)
}

// Table is noted in any case: a table's files have to be there.
func (r *tellingResolver) Table(ctx context.Context, d *logical.SourceDecl) (connector.Table, error) {
	r.job.told = append(r.job.told, d)
	return r.Resolver.Table(ctx, d)
}

func (r *tellingResolver) Path(ctx context.Context, path, format string, options map[string]string) (connector.Table, error) {
	r.job.told = append(r.job.told, &logical.SourceDecl{Options: map[string]string{"path": path}})
	return r.Resolver.Path(ctx, path, format, options)
}
