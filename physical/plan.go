package physical

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
)

// Plan is an immutable, printable description of an operator and what is below it.
// Open makes it run; a Plan may be opened many times, also at once.
type Plan interface {
	// String is one line, without children: the type's name, then key=value.
	fmt.Stringer
	// Schema is the output columns. A hidden ordinal column, if there is one, is the
	// last and is called columnar.OrdinalName.
	Schema() *arrow.Schema
	Children() []Plan
	// WithChildren returns a copy over other children of the same schemas.
	WithChildren(children []Plan) Plan
	// Open returns at least one and at most n Readers that together give the rows
	// once; each is used by one goroutine; what they share (the queue of units) is
	// made by this Open. On error nothing is left open. Operators open their children
	// with the function Open, which counts.
	Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error)
}

// Open opens p with at most n Readers and installs what ec measures. It is how plans
// are opened, never the method itself.
func Open(ctx context.Context, ec *ExecContext, p Plan, n int) ([]columnar.Reader, error) {
	readers, err := p.Open(ctx, ec, max(n, 1))
	if err != nil {
		return nil, err
	}
	return ec.observed(p, ec.Metrics.observe(p, readers)), nil
}

// OpenOne opens p with ec.Parallel Readers and gathers them into one, in the order of
// the rows' arrival.
func OpenOne(ctx context.Context, ec *ExecContext, p Plan) (columnar.Reader, error) {
	readers, err := Open(ctx, ec, p, ec.parallel())
	if err != nil {
		return nil, err
	}
	return Gather(ec, p.Schema(), readers), nil
}

// Positioned is implemented by Readers that know where in the order of arrival their
// batches belong. Among the Readers of one Open, positions rise within each, and a
// position stands for one batch of rows below, so that merging by position gives the
// order of one Reader.
type Positioned interface {
	// Position is that of the batch Next returned last: the ordinal of its first row
	// or of the row it was made from.
	Position() int64
}

// endPosition is the position of rows that come after everything that was read:
// the unmatched rows of a join's build side.
const endPosition int64 = math.MaxInt64

// PositionOf is the position of the batch r returned last; 0 where r does not know.
func PositionOf(r columnar.Reader) int64 {
	if p, ok := r.(Positioned); ok {
		return p.Position()
	}
	return 0
}

// HasOrdinal says whether the last column of s is the hidden ordinal.
func HasOrdinal(s *arrow.Schema) bool {
	n := s.NumFields()
	return n > 0 && s.Field(n-1).Name == columnar.OrdinalName
}

// withOrdinal is s with the hidden ordinal column at its end.
func withOrdinal(s *arrow.Schema) *arrow.Schema {
	fields := s.Fields()
	return arrow.NewSchema(append(fields[:len(fields):len(fields)], columnar.Field(columnar.OrdinalName, columnar.Int64)), nil)
}

// withoutOrdinal is s without its hidden ordinal column, if it has one.
func withoutOrdinal(s *arrow.Schema) *arrow.Schema {
	if !HasOrdinal(s) {
		return s
	}
	return arrow.NewSchema(s.Fields()[:s.NumFields()-1], nil)
}

// joined is the fields of a, then those of b.
func joined(a, b *arrow.Schema) *arrow.Schema {
	f := a.Fields()
	return arrow.NewSchema(append(f[:len(f):len(f)], b.Fields()...), nil)
}

// takeBatch makes a batch of columns and takes them over. A dictionary-encoded
// column of a plain field is told in the batch's own schema.
func takeBatch(schema *arrow.Schema, columns []arrow.Array, rows int64) arrow.RecordBatch {
	b := array.NewRecordBatch(schemaFor(schema, columns), columns, rows)
	for _, c := range columns {
		c.Release()
	}
	return b
}

func schemaFor(schema *arrow.Schema, columns []arrow.Array) *arrow.Schema {
	var fields []arrow.Field
	for i, c := range columns {
		if c.DataType().ID() == arrow.DICTIONARY && schema.Field(i).Type.ID() != arrow.DICTIONARY {
			if fields == nil {
				fields = append(fields, schema.Fields()...)
			}
			fields[i].Type = c.DataType()
		}
	}
	if fields == nil {
		return schema
	}
	return arrow.NewSchema(fields, nil)
}

func releaseAll(columns []arrow.Array) {
	for _, c := range columns {
		if c != nil {
			c.Release()
		}
	}
}

func releaseBatches(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// args prints operator arguments: key=value, lists in brackets, empty ones left out.
func args(kind string, pairs ...string) string {
	var sb strings.Builder
	sb.WriteString(kind)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" || pairs[i+1] == "[]" {
			continue
		}
		fmt.Fprintf(&sb, " %s=%s", pairs[i], pairs[i+1])
	}
	return sb.String()
}

func list[T fmt.Stringer](items []T) string {
	parts := make([]string, len(items))
	for i, x := range items {
		parts[i] = x.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func namedList(columns []expr.Named) string { return list(columns) }
