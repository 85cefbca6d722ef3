package stateful

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/columnar/keyenc"
	"github.com/tidemill/tidemill/physical"
)

// Hidden columns by which joinOrder sorts.
const (
	orderPhase  = "\x00phase"
	orderNumber = "\x00number"
)

// withOrder is s with the hidden columns of an order.
func withOrder(s *arrow.Schema) *arrow.Schema {
	f := s.Fields()
	return arrow.NewSchema(append(f[:len(f):len(f)], columnar.Field(orderPhase, columnar.Int64), columnar.Field(orderNumber, columnar.Int64)), nil)
}

// joinOrder gives the rows of a join in an order that depends on neither timing nor the
// number of shards, for a parent to which order matters: by phase, then by arrival or
// by the time of eviction, then by value.
type joinOrder struct {
	input  *SymmetricHashJoin
	schema *arrow.Schema
}

func (p *joinOrder) Schema() *arrow.Schema                      { return p.schema }
func (p *joinOrder) Children() []physical.Plan                  { return []physical.Plan{p.input} }
func (p *joinOrder) WithChildren([]physical.Plan) physical.Plan { return p }
func (p *joinOrder) String() string                             { return "JoinOrder" }

// Open makes one Reader.
func (p *joinOrder) Open(ctx context.Context, ec *physical.ExecContext, _ int) ([]columnar.Reader, error) {
	in, err := physical.OpenOne(ctx, ec, p.input)
	if err != nil {
		return nil, err
	}
	return []columnar.Reader{&orderReader{input: in, schema: p.schema, ec: ec}}, nil
}

type orderReader struct {
	input   columnar.Reader
	schema  *arrow.Schema
	ec      *physical.ExecContext
	read    bool
	batches []arrow.RecordBatch
	refs    []kernel.Ref
	size    int // rows given at a time
	held    int64
}

func (r *orderReader) Schema() *arrow.Schema { return r.schema }

func (r *orderReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if !r.read {
		r.read = true
		if err := r.readAll(ctx); err != nil {
			return nil, err
		}
	}
	if len(r.refs) == 0 {
		return nil, io.EOF
	}
	n := min(r.size, len(r.refs))
	refs := r.refs[:n]
	r.refs = r.refs[n:]
	b, err := kernel.GatherBatch(r.ec.Mem, r.batches[0].Schema(), r.batches, refs)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	return array.NewRecordBatch(r.schema, b.Columns()[:r.schema.NumFields()], b.NumRows()), nil
}

func (r *orderReader) Close() error {
	for _, b := range r.batches {
		b.Release()
	}
	r.ec.Budget.Return(r.held)
	r.batches, r.refs, r.held, r.read = nil, nil, 0, true
	return r.input.Close()
}

// joined is a row of a join's result with its place.
type joined struct {
	phase, number int64
	ref           kernel.Ref
}

func (r *orderReader) readAll(ctx context.Context) error {
	var keys []keyenc.Keys
	var rows []joined
	sorting := int64(0)
	defer func() { r.ec.Budget.Return(sorting) }()
	codec, err := r.codec()
	if err != nil {
		return err
	}
	for b, err := range columnar.All(ctx, r.input) {
		if err != nil {
			return err
		}
		b.Retain()
		at := len(r.batches)
		r.batches = append(r.batches, b)
		n := physical.BatchBytes(b)
		if err := r.ec.Budget.Reserve("join", n); err != nil {
			return err
		}
		r.held += n
		var k keyenc.Keys
		if err := codec.Encode(b.Columns()[:r.schema.NumFields()], &k); err != nil {
			return err
		}
		keys = append(keys, k)
		if err := r.ec.Budget.Reserve("join", int64(cap(k.Data))); err != nil {
			return err
		}
		sorting += int64(cap(k.Data))
		phases := b.Column(r.schema.NumFields()).(*array.Int64).Int64Values()
		for i, number := range ordinalsOf(b) {
			rows = append(rows, joined{phases[i], number, kernel.MakeRef(at, i)})
		}
	}
	slices.SortFunc(rows, func(a, b joined) int {
		if c := cmp.Or(cmp.Compare(a.phase, b.phase), cmp.Compare(a.number, b.number)); c != 0 {
			return c
		}
		return bytes.Compare(keys[a.ref.Batch()].Key(a.ref.Row()), keys[b.ref.Batch()].Key(b.ref.Row()))
	})
	r.refs = make([]kernel.Ref, len(rows))
	for i, row := range rows {
		r.refs[i] = row.ref
	}
	r.size = r.ec.PartRows(r.held, len(rows))
	return nil
}

// codec encodes whole rows, so that no two that differ are equal.
func (r *orderReader) codec() (*keyenc.Codec, error) {
	types := make([]arrow.DataType, r.schema.NumFields())
	orders := make([]keyenc.Order, len(types))
	for i, f := range r.schema.Fields() {
		types[i], orders[i].Exact = f.Type, true
	}
	return keyenc.New(types, orders)
}
