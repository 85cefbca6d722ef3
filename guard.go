package tidemill

import (
	"context"
	"io"

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

var errNoSession = logical.Usagef("the Session is nil; make one with NewSession")

// made is an error for a Session that NewSession did not make.
func (s *Session) made() error {
	if s == nil || s.catalog == nil {
		return errNoSession
	}
	return nil
}

var errNoScript = logical.Usagef("the Script is nil; OpenScript of a Session returns one")

var errStarted = logical.Usagef("the script was started before; open it again to run it again")

// made is an error for a Script that OpenScript did not make, or without a context.
func (sc *Script) made(ctx context.Context) error {
	switch {
	case sc == nil || sc.s == nil:
		return errNoScript
	case ctx == nil:
		return errNoContext
	}
	return nil
}

// acting is guarded for what needs the session.
func acting[T any](ctx context.Context, s *Session, f func() (T, error)) (x T, err error) {
	if err := s.made(); err != nil {
		return x, err
	}
	return guarded(ctx, f)
}

// guardedWriter is a writer of a user, whose panics name it.
type guardedWriter struct{ w io.Writer }

func (g guardedWriter) Write(p []byte) (n int, err error) {
	err = columnar.Guard("Options.Stdout", func() error {
		n, err = g.w.Write(p)
		return err
	})
	return n, err
}

// described is what a method that describes does: what goes wrong is kept until the
// DataFrame is used.
func described(ctx context.Context, s *Session, f func() (*logical.DataFrame, error)) *logical.DataFrame {
	df, err := acting(ctx, s, f)
	if err != nil {
		return logical.FailedDataFrame(err)
	}
	return df
}
