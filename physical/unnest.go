package physical

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// Unnest repeats each row for the elements of lists, arrays or maps: the columns of it that
// are kept, then the elements (of maps keys and values), then their place if Place is set.
type Unnest struct {
	unaryPlan
	Lists   []expr.Expr
	Kept    []int
	Outer   bool // rows without elements are kept
	Place   bool
	First   int64 // the place of the first element
	schema  *arrow.Schema
	program *eval.Program
}

// NewUnnest unnests lists, over positions of input's columns, of which kept are repeated;
// schema is the output without the hidden ordinal. The last column is the place, counted
// from first, if place says so.
func NewUnnest(input Plan, lists []expr.Expr, kept []int, outer, place bool, first int64, schema *arrow.Schema) (*Unnest, error) {
	program, err := eval.Compile(input.Schema(), lists...)
	if err != nil {
		return nil, err
	}
	if HasOrdinal(input.Schema()) {
		schema = withOrdinal(schema)
		kept = append(slices.Clone(kept), input.Schema().NumFields()-1)
	}
	return &Unnest{unaryPlan{input}, lists, kept, outer, place, first, schema, program}, nil
}

func (p *Unnest) Schema() *arrow.Schema { return p.schema }

// WithChildren unnests columns of another input.
func (p *Unnest) WithChildren(c []Plan) Plan {
	n := *p
	n.Input = c[0]
	return &n
}

func (p *Unnest) String() string {
	outer := ""
	if p.Outer {
		outer = "true"
	}
	return args("Unnest", "lists", list(p.Lists), "outer", outer)
}

// Open unnests for each Reader of the input.
func (p *Unnest) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	inputs, err := openAs(ctx, ec, p.Input, n, p.program.IsVolatile())
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		inputs[i] = &unnestReader{operator: operator{schema: p.schema, input: in}, plan: p, env: ec.Env(), limit: ec.batchRows(), partBytes: ec.PartBytes()}
	}
	return inputs, nil
}

// unnestReader holds a batch and the next element of it to give.
type unnestReader struct {
	operator
	plan  *Unnest
	env   *eval.Env
	limit int

	partBytes int64
	width     RowWidths   // of the batch
	inner     []RowWidths // of the elements of each list
	most      int         // rows to make at a time

	whole arrow.RecordBatch // of the input, while some of it is still to be taken
	from  int
	batch arrow.RecordBatch // what of it is being unnested
	kept  []arrow.Array     // its columns that are repeated
	lists []arrow.Array
	row   int // the next row, of which
	at    int // elements are given
	// of the batch being made: where rows and elements come from, -1 for null
	rows     []int32
	elements [][]int32
	places   []int64
}

func (r *unnestReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.batch == nil {
			if err := r.nextInput(ctx); err != nil {
				return nil, err
			}
		}
		r.fill()
		r.cut()
		if len(r.rows) > 0 {
			return r.give()
		}
		r.drop()
	}
}

// nextInput takes the next rows of the input: as many as their lists are computed for at a
// time.
func (r *unnestReader) nextInput(ctx context.Context) error {
	if r.whole == nil {
		b, err := r.input.Next(ctx)
		if err != nil {
			return err
		}
		r.env.Begin(b)
		r.whole, r.from = b, 0
	}
	lists, n, err := r.plan.program.EvalColumnsPart(r.env, r.whole, r.from)
	if err != nil {
		return err
	}
	r.lists, r.batch = lists, r.whole.NewSlice(int64(r.from), int64(r.from+n))
	if r.from += n; r.from == int(r.whole.NumRows()) {
		r.whole.Release()
		r.whole = nil
	}
	r.row, r.at = 0, 0
	r.most = r.limit
	r.kept = r.kept[:0]
	for _, i := range r.plan.Kept {
		r.kept = append(r.kept, r.batch.Column(i))
	}
	r.width, r.inner = WidthsOf(r.kept), r.inner[:0]
	for _, l := range r.lists {
		r.inner = append(r.inner, WidthsOf(elementsOf(l)))
	}
	return nil
}

// cut leaves the last of the rows found for the next time, where they would take too much
// together.
func (r *unnestReader) cut() {
	widest := r.width.most
	for _, w := range r.inner {
		widest += w.most
	}
	if widest*int64(len(r.rows)) <= r.partBytes {
		return
	}
	n := RowsWithin(len(r.rows), r.partBytes, func(i int) int64 {
		all := r.width.At(r.rows[i])
		for k := range r.inner {
			all += r.inner[k].At(r.elements[k][i])
		}
		return all
	})
	r.most = min(r.limit, 2*n)
	if n == len(r.rows) {
		return
	}
	r.row, r.at = int(r.rows[n]), int(max(r.places[n], 0))
	r.rows, r.places = r.rows[:n], r.places[:n]
	for k := range r.elements {
		r.elements[k] = r.elements[k][:n]
	}
}

// fill finds the next rows and elements, at most so many.
func (r *unnestReader) fill() {
	r.rows, r.places = r.rows[:0], r.places[:0]
	r.elements = resize(r.elements, len(r.lists))
	for k := range r.elements {
		r.elements[k] = r.elements[k][:0]
	}
	views := make([]kernel.Lists, len(r.lists))
	for k, l := range r.lists {
		views[k] = kernel.ListsOf(columnar.ColumnDatum(l))
	}
	for rows := int(r.batch.NumRows()); r.row < rows && len(r.rows) < r.most; {
		longest := 0
		for k, v := range views {
			if !r.lists[k].IsNull(r.row) {
				from, to := v.At(r.row)
				longest = max(longest, to-from)
			}
		}
		if longest == 0 && r.plan.Outer {
			r.rows, r.places = append(r.rows, int32(r.row)), append(r.places, -1)
			for k := range views {
				r.elements[k] = append(r.elements[k], -1)
			}
		}
		end := min(longest, r.at+r.most-len(r.rows))
		for i := r.at; i < end; i++ {
			r.rows, r.places = append(r.rows, int32(r.row)), append(r.places, int64(i))
		}
		for k, v := range views {
			r.element(k, v, end)
		}
		r.at = end
		if r.at >= longest {
			r.row, r.at = r.row+1, 0
		}
	}
}

// element adds where the elements up to end of list k of the row are.
func (r *unnestReader) element(k int, v kernel.Lists, end int) {
	from, to := 0, 0
	if !r.lists[k].IsNull(r.row) {
		from, to = v.At(r.row)
	}
	for i := r.at; i < end; i++ {
		if from+i < to {
			r.elements[k] = append(r.elements[k], int32(from+i))
		} else {
			r.elements[k] = append(r.elements[k], -1)
		}
	}
}

// give makes a batch of what fill has found.
func (r *unnestReader) give() (arrow.RecordBatch, error) {
	columns, err := takeArrays(r.env.Mem, r.kept, r.batch.NumRows(), r.rows)
	if err != nil {
		return nil, err
	}
	end := len(columns)
	if HasOrdinal(r.schema) {
		end--
	}
	out, tail := columns[:end:end], columns[end:]
	for k, l := range r.lists {
		for _, child := range elementsOf(l) {
			c, err := kernel.Take(r.env.Mem, child, r.elements[k])
			if err != nil {
				releaseAll(append(out, tail...))
				return nil, err
			}
			out = append(out, c)
		}
	}
	if r.plan.Place {
		out = append(out, r.placeColumn())
	}
	return takeBatch(r.schema, append(out, tail...), int64(len(r.rows))), nil
}

// elementsOf is the elements of all rows of a list column, of a map the keys and the
// values.
func elementsOf(l arrow.Array) []arrow.Array {
	switch l := l.(type) {
	case *array.Map:
		return []arrow.Array{l.Keys(), l.Items()}
	case *array.List:
		return []arrow.Array{l.ListValues()}
	}
	panic("bug: unnest of " + l.DataType().String())
}

// placeColumn is the number of each element; null where a row has none.
func (r *unnestReader) placeColumn() arrow.Array {
	b := array.NewInt64Builder(r.env.Mem)
	defer b.Release()
	valid := make([]bool, len(r.places))
	for i, p := range r.places {
		valid[i] = p >= 0
		r.places[i] = p + r.plan.First
	}
	b.AppendValues(r.places, valid)
	return b.NewArray()
}

func (r *unnestReader) drop() {
	if r.batch != nil {
		r.batch.Release()
		releaseAll(r.lists)
		r.batch, r.lists = nil, nil
	}
}

func (r *unnestReader) Close() error {
	r.drop()
	if r.whole != nil {
		r.whole.Release()
		r.whole = nil
	}
	return r.input.Close()
}
