package memory_test

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
)

// one is a Reader of one batch.
type one struct {
	b    arrow.RecordBatch
	done bool
}

func (o *one) Schema() *arrow.Schema { return o.b.Schema() }
func (o *one) Close() error          { return nil }

func (o *one) Next(context.Context) (arrow.RecordBatch, error) {
	if o.done {
		return nil, io.EOF
	}
	o.done = true
	o.b.Retain()
	return o.b, nil
}
