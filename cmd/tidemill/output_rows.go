package main

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/physical"
)

// aheadBytes is how much of a result is there before its first row is printed, so that an
// error of a short query leaves nothing half printed.
const aheadBytes = 16 << 20

// running is a query whose rows are written as they come.
type running struct {
	ctx    context.Context
	in     columnar.Reader
	ahead  []arrow.RecordBatch
	ended  bool
	failed error // of the query, not of writing its rows
}

// rows is what was read ahead.
func (q *running) rows() *tidemill.Rows { return tidemill.NewRows(q.in.Schema(), q.ahead) }

// readAhead reads up to about most bytes.
func (q *running) readAhead(most int64) error {
	for most > 0 && !q.ended {
		b, err := q.next()
		if err != nil {
			return err
		}
		if b != nil {
			q.ahead = append(q.ahead, b)
			most -= physical.BatchBytes(b)
		}
	}
	return nil
}

// next is the next batch; nil at the end, which closes the query.
func (q *running) next() (arrow.RecordBatch, error) {
	b, err := q.in.Next(q.ctx)
	if errors.Is(err, io.EOF) {
		q.ended, err = true, q.in.Close()
	}
	q.failed = err
	return b, err
}

// rest are the batches after those read ahead.
func (q *running) rest() iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for !q.ended {
			b, err := q.next()
			if err != nil {
				yield(nil, err)
				return
			}
			if b == nil {
				return
			}
			more := yield(b, nil)
			b.Release()
			if !more {
				return
			}
		}
	}
}

// close ends a query of which no more is wanted.
func (q *running) close() error {
	for _, b := range q.ahead {
		b.Release()
	}
	if q.ended || q.failed != nil {
		return nil
	}
	return q.in.Close()
}
