// Package callback is a sink that hands each micro-batch to a function, free to do
// anything with it. The function sees a batch again if the process ends before the
// batch is committed: at least once, and exactly once if it remembers batch ids.
package callback

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// Func is given the rows of a micro-batch. rows is its own until it returns; it need
// not read all of them, nor close it.
type Func func(ctx context.Context, batchID int64, rows columnar.Reader) error

// Sink calls a Func for each batch.
type Sink struct{ f Func }

var _ connector.Sink = (*Sink)(nil)

// New makes a sink of f.
func New(f Func) *Sink { return &Sink{f} }

// LastBatch implements connector.Sink: what a function has done, it alone knows.
func (s *Sink) LastBatch(context.Context) (int64, bool, error) { return -1, false, nil }

// Stage implements connector.Sink: it calls the function, before the state of the
// query is saved.
func (s *Sink) Stage(ctx context.Context, b connector.SinkBatch) (connector.Staged, error) {
	rows := &counter{Reader: b.Data}
	if err := s.f(ctx, b.ID, rows); err != nil {
		return nil, err
	}
	// What the function left is read, so that the query sees all its rows.
	for _, err := range columnar.All(ctx, rows) {
		if err != nil {
			return nil, err
		}
	}
	return staged(rows.rows), nil
}

// Recover implements connector.Sink.
func (s *Sink) Recover(context.Context) (connector.Staged, error) { return nil, nil }

// Close implements connector.Sink.
func (s *Sink) Close() error { return nil }

// counter counts rows, and keeps the function from closing the query's reader.
type counter struct {
	columnar.Reader
	rows int64
	err  error
}

func (c *counter) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if c.err != nil {
		return nil, c.err
	}
	b, err := c.Reader.Next(ctx)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		c.err = err // a function that swallows it cannot make the batch good
		return nil, err
	}
	c.rows += b.NumRows()
	return b, nil
}

func (c *counter) Close() error { return nil }

type staged int64

func (staged) Publish(context.Context) error { return nil }
func (staged) Discard() error                { return nil }
func (s staged) Rows() int64                 { return int64(s) }
