package logical

import (
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// Scan reads a bounded table.
type Scan struct {
	noExprs
	Name  string // as the query wrote it, for EXPLAIN
	Table connector.Table
	// Positions are the columns read, positions in Table.Schema; Output are the plan's
	// columns for them, one each.
	Positions []int
	Output    *Schema
	// Filters are pushed conditions over Output columns (or over columns of the table
	// that are not read any more: then over Full). They are evaluated by the scan.
	Filters []expr.Expr
	// Full is the columns of the whole table, position by position, with their IDs,
	// then the hidden columns of files, if it has them.
	Full *Schema
	// Limit is how many rows are wanted, 0: all.
	Limit int64
	// OfStream says that the table is what a stream has now: rows come in the order in
	// which they would if they were read in batches.
	OfStream bool
}

// NewScan reads all columns of a table but the hidden ones; the columns get fresh IDs
// and qualifier.
func NewScan(name, qualifier string, table connector.Table) *Scan {
	visible := freshSchema(qualifier, table.Schema())
	full := withMetadata(visible, qualifier, connector.HasMetadata(table))
	return &Scan{Name: name, Table: table, Positions: identity(len(visible.Columns)), Output: visible, Full: full}
}

// withMetadata is s and the hidden columns of files.
func withMetadata(s *Schema, qualifier string, has bool) *Schema {
	if !has {
		return s
	}
	out := &Schema{Columns: append([]*expr.Column(nil), s.Columns...)}
	for _, f := range connector.MetadataFields() {
		out.Columns = append(out.Columns, &expr.Column{
			ID: expr.NewID(), Qualifier: qualifier, Name: connector.MetadataName + "." + f.Name, DataType: f.Type, Null: true,
		})
	}
	return out
}

// Metadata are the hidden columns of the table's files; none if it has none.
func (s *Scan) Metadata() []*expr.Column { return s.Full.Columns[s.Table.Schema().NumFields():] }

func freshSchema(qualifier string, s *arrow.Schema) *Schema {
	out := &Schema{}
	for _, f := range s.Fields() {
		out.Columns = append(out.Columns, &expr.Column{ID: expr.NewID(), Qualifier: qualifier, Name: f.Name, DataType: f.Type, Null: true})
	}
	return out
}

func identity(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (s *Scan) Schema() *Schema            { return s.Output }
func (s *Scan) Children() []Node           { return nil }
func (s *Scan) WithChildren([]Node) Node   { return s }
func (s *Scan) WithExprs([]expr.Expr) Node { return s }
func (s *Scan) String() string {
	return "Scan " + s.Name + scanDetails(s.Output, s.Full, s.Filters, s.Limit)
}

// WithPositions returns s reading only the given positions of the table.
func (s *Scan) WithPositions(positions []int) *Scan {
	n := *s
	n.Positions, n.Output = positions, pick(s.Full, positions)
	return &n
}

// WithFilters returns s with other pushed filters.
func (s *Scan) WithFilters(filters []expr.Expr) *Scan {
	n := *s
	n.Filters = filters
	return &n
}

// WithLimit returns s with another row limit.
func (s *Scan) WithLimit(limit int64) *Scan {
	n := *s
	n.Limit = limit
	return &n
}

func pick(full *Schema, positions []int) *Schema {
	out := &Schema{Columns: make([]*expr.Column, len(positions))}
	for i, p := range positions {
		out.Columns[i] = full.Columns[p]
	}
	return out
}

func scanDetails(output, full *Schema, filters []expr.Expr, limit int64) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, " columns=[%s]", strings.Join(output.Names(), ", "))
	if len(filters) > 0 {
		fmt.Fprintf(&sb, " filters=[%s]", expr.List(filters))
	}
	if limit > 0 {
		fmt.Fprintf(&sb, " limit=%d", limit)
	}
	return sb.String()
}

// StreamScan reads the new data of a stream: in a micro-batch its (start, end].
type StreamScan struct {
	noExprs
	Stream    *Stream
	Positions []int
	Output    *Schema
	Filters   []expr.Expr
	Full      *Schema // as in Scan
}

// NewStreamScan reads all columns of a stream but the hidden ones; the columns get fresh
// IDs.
func NewStreamScan(qualifier string, stream *Stream) *StreamScan {
	visible := freshSchema(qualifier, stream.Schema)
	full := withMetadata(visible, qualifier, stream.HasMetadata)
	return &StreamScan{Stream: stream, Positions: identity(len(visible.Columns)), Output: visible, Full: full}
}

// Metadata are the hidden columns of the stream's files; none if it has none.
func (s *StreamScan) Metadata() []*expr.Column {
	return s.Full.Columns[s.Stream.Schema.NumFields():]
}

func (s *StreamScan) Schema() *Schema            { return s.Output }
func (s *StreamScan) Children() []Node           { return nil }
func (s *StreamScan) WithChildren([]Node) Node   { return s }
func (s *StreamScan) WithExprs([]expr.Expr) Node { return s }
func (s *StreamScan) String() string {
	return "StreamScan " + s.Stream.Name + scanDetails(s.Output, s.Full, s.Filters, 0)
}

// WithPositions returns s reading only the given positions of the stream.
func (s *StreamScan) WithPositions(positions []int) *StreamScan {
	n := *s
	n.Positions, n.Output = positions, pick(s.Full, positions)
	return &n
}

// WithFilters returns s with other pushed filters.
func (s *StreamScan) WithFilters(filters []expr.Expr) *StreamScan {
	n := *s
	n.Filters = filters
	return &n
}

// Values is rows written in the query. Rows hold expressions without columns; all
// rows have the types of Output. No row and no column are both allowed: VALUES of
// one empty row is the input of SELECT without FROM.
type Values struct {
	Rows   [][]expr.Expr
	Output *Schema
	// Given says that a program handed the rows over: they are data, as a table's are, and
	// not part of the query.
	Given bool
}

// NewValues makes rows of Go values, or of expr.Terms without columns, in the columns of a
// schema.
func NewValues(reg *function.Registry, schema *arrow.Schema, rows [][]any) (*Values, error) {
	out := &Schema{}
	for _, f := range schema.Fields() {
		if !columnar.Supported(f.Type) {
			return nil, fmt.Errorf("column %s: the engine does not compute with %s; use a type of package columnar", f.Name, f.Type)
		}
		out.Columns = append(out.Columns, &expr.Column{ID: expr.NewID(), Name: f.Name, DataType: f.Type, Null: true})
	}
	constants := &DataFrame{node: &Values{Output: &Schema{}}, reg: reg}
	v := &Values{Output: out, Given: true}
	for i, row := range rows {
		if len(row) != len(out.Columns) {
			return nil, fmt.Errorf("row %d has %d values, the schema %d columns", i, len(row), len(out.Columns))
		}
		made := make([]expr.Expr, len(row))
		for k, value := range row {
			var err error
			if made[k], err = constants.valueOf(value, out.Columns[k].DataType); err != nil {
				return nil, fmt.Errorf("row %d, column %s: %w", i, out.Columns[k].Name, err)
			}
		}
		v.Rows = append(v.Rows, made)
	}
	return v, nil
}

// valueOf is a Go value, or a Term, as a constant of a type.
func (d *DataFrame) valueOf(value any, dt arrow.DataType) (expr.Expr, error) {
	t, isTerm := value.(expr.Term)
	if !isTerm {
		t = expr.Lit(value)
	}
	x, err := d.resolve(t, false)
	if err != nil {
		return nil, err
	}
	if x, err = expr.NewCast(x, dt, false); err == nil && !isTerm {
		err = expr.FoldError(&function.Env{Mem: memory.DefaultAllocator, Location: time.UTC}, x)
	}
	return x, err
}

func (v *Values) Schema() *Schema          { return v.Output }
func (v *Values) Children() []Node         { return nil }
func (v *Values) WithChildren([]Node) Node { return v }
func (v *Values) Exprs() []expr.Expr {
	var out []expr.Expr
	for _, r := range v.Rows {
		out = append(out, r...)
	}
	return out
}
func (v *Values) WithExprs(exprs []expr.Expr) Node {
	n := &Values{Output: v.Output, Given: v.Given, Rows: make([][]expr.Expr, len(v.Rows))}
	for i, r := range v.Rows {
		n.Rows[i], exprs = exprs[:len(r):len(r)], exprs[len(r):]
	}
	return n
}
func (v *Values) String() string { return fmt.Sprintf("Values rows=%d", len(v.Rows)) }
