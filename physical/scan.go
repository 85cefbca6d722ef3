package physical

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// UnitSource lists the work of a scan: a table's Units, or those of an offset range of
// a stream.
type UnitSource func(ctx context.Context, req connector.ScanRequest) ([]connector.Unit, error)

// ScanSpec is what a Scan reads.
type ScanSpec struct {
	Name   string        // for EXPLAIN and errors
	Schema *arrow.Schema // all columns of the table or stream
	Units  UnitSource
	Table  connector.Table // that Units are of, where it is one; to tell scans apart
	// Columns are the positions in Schema to give, in order; nil is all.
	Columns []int
	// Filters are conditions over positions of Schema; rows for which one is not true
	// are left out. They are also advice to the source.
	Filters []expr.Expr
	Limit   int64    // advice: how many rows are wanted; 0 is all
	Hidden  []string // hidden columns to append (connector.HiddenFile)
	// Ordinal appends the hidden ordinal column.
	Ordinal bool
	// Keys leave out rows that meet nothing in a join above.
	Keys []KeyTest
	// Tap is shown every decoded batch before the filters, with Columns first. It is
	// borrowed for the call, and called by several goroutines. An error ends the scan.
	Tap func(ctx context.Context, b arrow.RecordBatch) error
	// LastTaken, if not nil, is called when the last unit has been taken from the queue: once,
	// by the goroutine that took it, or that found that there is none.
	LastTaken func()
}

// Scan reads units from one queue that all its Readers share.
type Scan struct {
	spec   ScanSpec
	schema *arrow.Schema
	read   []int // positions asked for: Columns, then what only filters need
	filter *eval.Filter
}

// NewScan describes reading a table or a part of a stream.
func NewScan(spec ScanSpec) (*Scan, error) {
	s := &Scan{spec: spec}
	columns := spec.Columns
	if columns == nil {
		columns = identity(spec.Schema.NumFields())
	}
	s.read = columns
	filters, err := s.bindFilters()
	if err != nil {
		return nil, err
	}
	readSchema := columnar.Select(spec.Schema, s.read)
	if s.filter, err = eval.CompileFilter(readSchema, filters...); err != nil {
		return nil, err
	}
	fields := columnar.Select(spec.Schema, columns).Fields()
	fields = fields[:len(fields):len(fields)]
	for _, h := range spec.Hidden {
		fields = append(fields, columnar.Field(h, columnar.String))
	}
	s.schema = arrow.NewSchema(fields, nil)
	if spec.Ordinal {
		s.schema = withOrdinal(s.schema)
	}
	return s, nil
}

func identity(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// bindFilters rewrites the filters for the columns read and has their columns read.
func (s *Scan) bindFilters() ([]expr.Expr, error) {
	out := make([]expr.Expr, len(s.spec.Filters))
	s.read = slices.Clip(s.read)
	for i, f := range s.spec.Filters {
		bound, err := expr.Transform(f, func(x expr.Expr) (expr.Expr, error) {
			r, ok := x.(*expr.Ref)
			if !ok {
				return x, nil
			}
			at := slices.Index(s.read, r.Index)
			if at < 0 {
				at = len(s.read)
				s.read = append(s.read, r.Index)
			}
			n := *r
			n.Index = at
			return &n, nil
		})
		if err != nil {
			return nil, err
		}
		out[i] = bound
	}
	return out, nil
}

// Spec is what the scan was made of. It is read only.
func (s *Scan) Spec() ScanSpec { return s.spec }

func (s *Scan) Schema() *arrow.Schema { return s.schema }

// Children is nothing.
func (s *Scan) Children() []Plan { return nil }

// WithChildren returns s.
func (s *Scan) WithChildren([]Plan) Plan { return s }

func (s *Scan) String() string {
	limit, names := "", ""
	if s.spec.Limit > 0 {
		limit = fmt.Sprint(s.spec.Limit)
	}
	for i, f := range s.schema.Fields() {
		if i > 0 {
			names += ", "
		}
		names += f.Name
	}
	return args("Scan", "table", s.spec.Name, "columns", "["+names+"]", "filters", list(s.spec.Filters), "keys", keyTests(s.spec.Keys, s.schema), "limit", limit)
}

// Open lists the units and makes at most one Reader a unit.
func (s *Scan) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	units, err := s.spec.Units(ctx, connector.ScanRequest{
		Columns: s.read, Filters: s.spec.Filters, Limit: s.spec.Limit, BatchRows: ec.batchRows(), BatchBytes: ec.PartBytes(),
		Hidden: s.spec.Hidden, Mem: ec.Mem, Stats: ec.scanStats(s),
	})
	if err != nil {
		return nil, fmt.Errorf("scan of %s: %w", s.spec.Name, err)
	}
	if s.filter.IsVolatile() {
		n = 1
	}
	shared := &scanQueue{scan: s, ec: ec, units: units, read: make([]atomic.Bool, len(units))}
	readers := make([]columnar.Reader, max(min(n, len(units)), 1))
	for i := range readers {
		readers[i] = &scanReader{queue: shared, env: ec.Env(), keys: newKeyTester(ec, s.spec.Keys)}
	}
	return readers, nil
}

// scanQueue is what the Readers of one Open share.
type scanQueue struct {
	scan  *Scan
	ec    *ExecContext
	units []connector.Unit
	next  atomic.Int64
	read  []atomic.Bool // units that were read to their end
}

// first is the error of the first unit, in their order, that has a bad record, given that
// unit i has: which one a query names must not depend on who was faster. Units before i
// that others are still reading are read once more for it.
func (q *scanQueue) first(ctx context.Context, i int64, err error) error {
	var bad *connector.RecordError
	if !errors.As(err, &bad) {
		return err
	}
	for before := range i {
		if q.read[before].Load() {
			continue
		}
		if earlier := drainUnit(ctx, q.units[before]); errors.As(earlier, &bad) {
			return earlier
		}
	}
	return err
}

// drainUnit reads a unit for its error alone.
func drainUnit(ctx context.Context, u connector.Unit) error {
	r, err := u.Open(ctx)
	if err != nil {
		return err
	}
	for b, readErr := range columnar.All(ctx, r) {
		if b == nil {
			err = readErr
		}
	}
	return cmp.Or(err, r.Close())
}

type scanReader struct {
	queue    *scanQueue
	env      *eval.Env
	keys     *keyTester
	unit     columnar.Reader // nil: take the next
	index    int64           // of unit
	row      int64           // next row of unit
	position int64
	rows     []int32
	done     bool
}

func (r *scanReader) Schema() *arrow.Schema { return r.queue.scan.schema }

func (r *scanReader) Position() int64 { return r.position }

func (r *scanReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.done {
			return nil, io.EOF
		}
		if r.unit == nil {
			if err := r.openNext(ctx); err != nil {
				return nil, err
			}
			continue
		}
		// What waits for a processor, such as a commit whose fsync is done, waits for a batch
		// of rows at most, not for the scheduler to preempt.
		runtime.Gosched()
		b, err := r.unit.Next(ctx)
		if isEnd(err) {
			err = r.unit.Close()
			r.unit = nil
			if err != nil {
				return nil, err
			}
			r.queue.read[r.index].Store(true)
			continue
		}
		if err != nil {
			return nil, r.queue.first(ctx, r.index, err)
		}
		out, err := r.process(ctx, b)
		b.Release()
		if out != nil || err != nil {
			return out, err
		}
	}
}

// openNext opens the next unit of the queue, or sets done.
func (r *scanReader) openNext(ctx context.Context) error {
	i := r.queue.next.Add(1) - 1
	if last := r.queue.scan.spec.LastTaken; last != nil && i == max(int64(len(r.queue.units)), 1)-1 {
		last()
	}
	if i >= int64(len(r.queue.units)) {
		r.done = true
		return nil
	}
	unit, err := r.queue.units[i].Open(ctx)
	if err != nil {
		return r.queue.first(ctx, i, err)
	}
	r.unit, r.index, r.row = unit, i, 0
	return nil
}

// process filters a decoded batch and gives it the scan's columns; nil if no row is
// left.
func (r *scanReader) process(ctx context.Context, b arrow.RecordBatch) (arrow.RecordBatch, error) {
	s := r.queue.scan
	if s.spec.Tap != nil {
		if err := s.spec.Tap(ctx, b); err != nil {
			return nil, err
		}
	}
	base := r.index<<columnar.OrdinalShift | r.row
	r.position = base
	r.row += b.NumRows()
	r.env.Begin(b)
	rows, all, err := s.filter.Select(r.env, b, r.rows[:0])
	if err != nil {
		return nil, err
	}
	if rows != nil {
		r.rows = rows
	}
	if rows, all = r.keys.keep(b, rows, all); !all && len(rows) == 0 {
		return nil, nil
	}
	n := int(b.NumRows())
	if !all {
		n = len(rows)
	}
	given := s.schema.NumFields() - len(s.spec.Hidden)
	if s.spec.Ordinal {
		given--
	}
	columns := make([]arrow.Array, 0, s.schema.NumFields())
	for i := range int(b.NumCols()) {
		if i >= given && i < len(s.read) {
			continue // only the filters wanted it
		}
		c := b.Column(i)
		if all {
			c.Retain()
		} else {
			c = kernel.Filter(r.env.Mem, c, rows)
		}
		columns = append(columns, c)
	}
	if s.spec.Ordinal {
		if all {
			rows = nil
		}
		columns = append(columns, ordinals(r.env.Mem, base, n, rows))
	}
	return takeBatch(s.schema, columns, int64(n)), nil
}

func (r *scanReader) Close() error {
	r.done = true
	if r.unit == nil {
		return nil
	}
	err := r.unit.Close()
	r.unit = nil
	return err
}
