package columnar

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// DefaultBatchRows is the number of rows a Reader aims at: small enough that the
// columns of a batch stay in cache, large enough that per-batch costs vanish.
const DefaultBatchRows = 16384

// Reader is the one pull interface of the engine: file decoders, operators and
// the input of sinks are all Readers. A Reader is used by one goroutine.
type Reader interface {
	Schema() *arrow.Schema
	// Next returns the next batch and gives the caller one reference to it.
	// At the end it returns io.EOF, and keeps returning it. Batches have at
	// least one row. After any other error only Close may be called.
	Next(ctx context.Context) (arrow.RecordBatch, error)
	// Close releases what the Reader holds and closes its inputs. It may be
	// called at any time and more than once.
	Close() error
}

// FromBatches reads the given batches, in order. It retains them until Close;
// empty ones are passed over.
func FromBatches(schema *arrow.Schema, batches ...arrow.RecordBatch) Reader {
	r := &batchReader{schema: schema}
	for _, b := range batches {
		if b.NumRows() > 0 {
			b.Retain()
			r.batches = append(r.batches, b)
		}
	}
	return r
}

type batchReader struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
}

func (r *batchReader) Schema() *arrow.Schema { return r.schema }

func (r *batchReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(r.batches) == 0 {
		return nil, io.EOF
	}
	b := r.batches[0]
	r.batches = r.batches[1:]
	return b, nil
}

func (r *batchReader) Close() error {
	for _, b := range r.batches {
		b.Release()
	}
	r.batches = nil
	return nil
}

// Concat reads the given Readers one after another and owns them. All have schema.
func Concat(schema *arrow.Schema, readers ...Reader) Reader {
	return &concatReader{schema: schema, readers: readers}
}

type concatReader struct {
	schema  *arrow.Schema
	readers []Reader
}

func (r *concatReader) Schema() *arrow.Schema { return r.schema }

func (r *concatReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for len(r.readers) > 0 {
		b, err := r.readers[0].Next(ctx)
		if !errors.Is(err, io.EOF) {
			return b, err
		}
		err = r.readers[0].Close()
		r.readers = r.readers[1:]
		if err != nil {
			return nil, err
		}
	}
	return nil, io.EOF
}

func (r *concatReader) Close() error {
	err := CloseAll(r.readers)
	r.readers = nil
	return err
}

// CloseAll closes every Reader and joins their errors.
func CloseAll(readers []Reader) error {
	errs := make([]error, len(readers))
	for i, r := range readers {
		errs[i] = r.Close()
	}
	return JoinErrors(errs...)
}

// JoinErrors is errors.Join of those that do not say what one before them says: what
// fails, often fails again when it is closed.
func JoinErrors(errs ...error) error {
	var distinct []error
	for _, err := range errs {
		if err != nil && !slices.ContainsFunc(distinct, func(e error) bool { return e.Error() == err.Error() }) {
			distinct = append(distinct, err)
		}
	}
	return errors.Join(distinct...)
}

// Drain reads r to its end and gives the caller one reference to each batch. On
// error it returns none. It does not close r.
func Drain(ctx context.Context, r Reader) ([]arrow.RecordBatch, error) {
	var batches []arrow.RecordBatch
	for {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return batches, nil
		}
		if err != nil {
			for _, b := range batches {
				b.Release()
			}
			return nil, err
		}
		batches = append(batches, b)
	}
}

// All ranges over the batches of r. Each batch is released after the loop body;
// keep one with Retain. The loop ends after the first error. It does not close r.
func All(ctx context.Context, r Reader) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for {
			b, err := r.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
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
