package tidemill

import (
	"context"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
)

var errNoContext = logical.Usagef("the context is nil; use context.Background()")

// guarded is what a method that acts does: without a context it is refused, and a panic
// is an error. What a user handed over names its own panics; others are bugs of ours.
func guarded[T any](ctx context.Context, f func() (T, error)) (x T, err error) {
	if ctx == nil {
		return x, errNoContext
	}
	err = columnar.Guard("", func() error {
		x, err = f()
		return err
	})
	return x, err
}

// described is what a method that describes does: what goes wrong is kept until the
// DataFrame is used.
func described(ctx context.Context, f func() (*logical.DataFrame, error)) *logical.DataFrame {
	df, err := guarded(ctx, f)
	if err != nil {
		return logical.FailedDataFrame(err)
	}
	return df
}
