package physical

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// AggregateSpec is grouping keys and aggregate calls, compiled for an input. Batch and
// streaming aggregation share it. It is immutable.
type AggregateSpec struct {
	In   *arrow.Schema
	Keys []expr.Named
	Aggs []expr.Named // each an *expr.Agg
	// Ordinal is the position of the input's ordinal column, -1 if it has none.
	Ordinal int

	outputs []expr.Expr   // keys, then arguments and filters
	program *eval.Program // of outputs
	calls   []aggregateCall
	result  *arrow.Schema
	state   *arrow.Schema
}

// aggregateCall is one aggregate, its arguments positions in the program's outputs.
type aggregateCall struct {
	agg    *expr.Agg
	types  []arrow.DataType
	args   []int
	filter int // -1: none
	states int // number of state columns
}

// NewAggregateSpec compiles keys and aggs, bound to positions of in. ordinal is the
// position of a BIGINT column with the rows' order of arrival; it is needed if an
// aggregate depends on order, else -1 will do.
func NewAggregateSpec(in *arrow.Schema, keys, aggs []expr.Named, ordinal int) (*AggregateSpec, error) {
	s := &AggregateSpec{In: in, Keys: keys, Aggs: aggs, Ordinal: ordinal}
	exprs := exprsOf(keys)
	var known expr.Set
	var places []int                  // in exprs, of what is known
	output := func(e expr.Expr) int { // sum(x) and avg(x) share an output, and where rows are kept a column
		i, added := known.Add(e)
		if added {
			places = append(places, len(exprs))
		} else if !eval.IsVolatile(e) {
			return places[i]
		}
		exprs = append(exprs, e)
		return len(exprs) - 1
	}
	stateFields := append([]arrow.Field(nil), namedSchema(keys).Fields()...)
	for _, n := range aggs {
		agg, ok := n.Expr.(*expr.Agg)
		if !ok {
			return nil, fmt.Errorf("bug: %s is no aggregate", n.Expr)
		}
		c := aggregateCall{agg: agg, types: agg.Signature.Args, filter: -1}
		for _, a := range agg.Args {
			c.args = append(c.args, output(whereCounted(a, agg.Filter)))
		}
		if agg.Filter != nil {
			c.filter = output(agg.Filter)
		}
		if agg.Signature.Overload.Ordered && ordinal < 0 {
			return nil, fmt.Errorf("bug: %s needs the order of rows", agg)
		}
		fields, err := stateFieldsOf(agg)
		if err != nil {
			return nil, err
		}
		c.states = len(fields)
		for _, f := range fields {
			f.Name = n.Name + "." + f.Name
			stateFields = append(stateFields, f)
		}
		s.calls = append(s.calls, c)
	}
	s.outputs = exprs
	var err error
	if s.program, err = eval.Compile(in, exprs...); err != nil {
		return nil, err
	}
	s.state = arrow.NewSchema(stateFields, nil)
	s.result = namedSchema(append(append([]expr.Named(nil), keys...), aggs...))
	return s, nil
}

// whereCounted is arg, an argument of an aggregate, computed for the rows alone that its
// filter lets count, if it may fail for others.
func whereCounted(arg, filter expr.Expr) expr.Expr {
	if filter == nil || !expr.IsFallible(arg) || eval.IsVolatile(filter) || !hasRef(arg) {
		return arg
	}
	return &expr.Case{Whens: []expr.Expr{filter}, Thens: []expr.Expr{arg}}
}

// hasRef says whether e depends on the row: an argument that does not must stay a constant.
func hasRef(e expr.Expr) bool {
	found := false
	expr.Walk(e, func(x expr.Expr) bool {
		_, ref := x.(*expr.Ref)
		found = found || ref
		return !found
	})
	return found
}

func stateFieldsOf(agg *expr.Agg) ([]arrow.Field, error) {
	acc, err := agg.Signature.Overload.New(memory.DefaultAllocator, agg.Signature.Args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", agg, err)
	}
	defer acc.Release()
	return acc.Fields(), nil
}

// ResultSchema is the keys, then the value of each aggregate.
func (s *AggregateSpec) ResultSchema() *arrow.Schema { return s.result }

// StateSchema is the keys, then the state columns of each aggregate, called
// name.field: what PartialAggregate gives.
func (s *AggregateSpec) StateSchema() *arrow.Schema { return s.state }

// KeyTypes are the types of the keys.
func (s *AggregateSpec) KeyTypes() []arrow.DataType { return expr.Types(exprsOf(s.Keys)) }

// StateColumns is the number of state columns of aggregate i.
func (s *AggregateSpec) StateColumns(i int) int { return s.calls[i].states }

// HasDistinct says whether an aggregate is over distinct values only; its state cannot
// be merged then.
func (s *AggregateSpec) HasDistinct() bool {
	for _, c := range s.calls {
		if c.agg.Distinct {
			return true
		}
	}
	return false
}

// twoLevels takes aggregates apart that are all over distinct values of the same
// arguments: inner is the keys and those arguments, outer the aggregates over the
// columns of inner, DISTINCT no more. ok is false if they are anything else, or want values
// as they were written, which keys forget.
func (s *AggregateSpec) twoLevels() (inner, outer []expr.Named, ok bool) {
	inner = append([]expr.Named(nil), s.Keys...)
	first := s.calls[0].agg
	for i, a := range first.Args {
		inner = append(inner, expr.Named{Expr: a, Name: fmt.Sprint("argument", i)})
	}
	for i, c := range s.calls {
		a := c.agg
		if a.Filter != nil || a.Signature.Overload.Ordered || function.ChoosesForm(a.Signature.Overload, a.Signature.Args) || !a.Distinct && !a.Signature.Overload.IgnoresDistinct || len(a.Args) != len(first.Args) {
			return nil, nil, false
		}
		n := *a
		n.Distinct, n.Args = false, nil
		for k, arg := range a.Args {
			if !expr.Equal(arg, first.Args[k]) {
				return nil, nil, false
			}
			n.Args = append(n.Args, &expr.Ref{Index: len(s.Keys) + k, Name: arg.String(), DataType: arg.Type(), Null: true})
		}
		outer = append(outer, expr.Named{Expr: &n, Name: s.Aggs[i].Name})
	}
	return inner, outer, len(first.Args) > 0
}

// HasOrdered says whether an aggregate depends on the order of rows.
func (s *AggregateSpec) HasOrdered() bool {
	for _, c := range s.calls {
		if c.agg.Signature.Overload.Ordered {
			return true
		}
	}
	return false
}

// NewAccumulators makes the accumulator of each aggregate, without groups, to be
// released.
func (s *AggregateSpec) NewAccumulators(mem memory.Allocator) ([]function.Accumulator, error) {
	var accs []function.Accumulator
	for _, c := range s.calls {
		acc, err := c.agg.Signature.Overload.New(mem, c.types)
		if err != nil {
			for _, a := range accs {
				a.Release()
			}
			return nil, fmt.Errorf("%s: %w", c.agg, err)
		}
		accs = append(accs, acc)
	}
	return accs, nil
}

// AggregateInput is the keys and arguments of one batch, to be released.
type AggregateInput struct {
	Rows int
	// Keys are columns; text may be dictionary-encoded.
	Keys    []arrow.Array
	data    []columnar.Datum // the program's outputs
	ordinal arrow.Array      // borrowed from the batch
	batch   arrow.RecordBatch
}

// Release gives the columns back.
func (in *AggregateInput) Release() {
	releaseAll(in.Keys)
	for _, d := range in.data {
		d.Release()
	}
	in.batch.Release()
}

// kept are the columns that inputOf makes the input of again, whatever of its rows and in
// whatever order: keys, then what is no literal of the arguments and filters, then the
// ordinal if there is one. They are to be released.
func (s *AggregateSpec) kept(mem memory.Allocator, in *AggregateInput) []arrow.Array {
	out := retained(in.Keys)
	for i, d := range in.data {
		if i < len(s.Keys) {
			continue
		}
		if _, ok := s.outputs[i].(*expr.Literal); !ok {
			out = append(out, columnar.Broadcast(mem, d, in.Rows))
		}
	}
	if in.ordinal != nil {
		in.ordinal.Retain()
		out = append(out, in.ordinal)
	}
	return out
}

// inputOf is the input whose columns were kept. It borrows them: it is not to be released.
func (s *AggregateSpec) inputOf(columns []arrow.Array, rows int) *AggregateInput {
	in := &AggregateInput{Rows: rows, Keys: columns[:len(s.Keys)], data: make([]columnar.Datum, len(s.outputs))}
	columns = columns[len(s.Keys):]
	for i := len(s.Keys); i < len(s.outputs); i++ {
		if l, ok := s.outputs[i].(*expr.Literal); ok {
			in.data[i] = columnar.ConstantDatum(l.Value)
			continue
		}
		in.data[i], columns = columnar.ColumnDatum(columns[0]), columns[1:]
	}
	if len(columns) > 0 {
		in.ordinal = columns[0]
	}
	return in
}

// Evaluate computes keys and arguments of b.
func (s *AggregateSpec) Evaluate(env *eval.Env, b arrow.RecordBatch) (*AggregateInput, error) {
	data, err := s.program.Eval(env, b)
	if err != nil {
		return nil, err
	}
	b.Retain()
	return s.inputOfData(env, b, data), nil
}

// evaluatePart is Evaluate for rows of b from row from on, as many as stay in proportion.
func (s *AggregateSpec) evaluatePart(env *eval.Env, b arrow.RecordBatch, from int) (*AggregateInput, error) {
	data, n, err := s.program.EvalPart(env, b, from)
	if err != nil {
		return nil, err
	}
	return s.inputOfData(env, b.NewSlice(int64(from), int64(from+n)), data), nil
}

// inputOfData is the input of b, which it takes over, with the program's outputs.
func (s *AggregateSpec) inputOfData(env *eval.Env, b arrow.RecordBatch, data []columnar.Datum) *AggregateInput {
	in := &AggregateInput{Rows: int(b.NumRows()), data: data, batch: b}
	for i := range s.Keys {
		in.Keys = append(in.Keys, columnar.Broadcast(env.Mem, data[i], in.Rows))
	}
	for i, d := range data[len(s.Keys):] { // accumulators take plain columns
		if d.Type().ID() == arrow.DICTIONARY {
			plain := columnar.ColumnDatum(columnar.PlainColumn(env.Mem, d.Array()))
			d.Release()
			data[len(s.Keys)+i] = plain
		}
	}
	if s.Ordinal >= 0 {
		in.ordinal = b.Column(s.Ordinal)
	}
	return in
}

// Update adds the rows of in to the groups of accs, made by NewAccumulators; groups
// has one a row. Aggregates over distinct values are left out: see Distincts.
func (s *AggregateSpec) Update(mem memory.Allocator, accs []function.Accumulator, groups []uint32, in *AggregateInput) error {
	for i := range s.calls {
		if s.calls[i].agg.Distinct {
			continue
		}
		if err := s.updateOne(mem, i, accs[i], groups, in); err != nil {
			return err
		}
	}
	return nil
}

func (s *AggregateSpec) updateOne(mem memory.Allocator, i int, acc function.Accumulator, groups []uint32, in *AggregateInput) error {
	c := &s.calls[i]
	rows, all := s.filtered(c, in)
	if !all && len(rows) == 0 {
		return nil
	}
	args, release, err := s.arguments(mem, c, in, rows, all)
	if err != nil {
		return err
	}
	defer release()
	if !all {
		groups = pick(groups, rows)
	}
	if err := acc.Update(groups, args); err != nil {
		return fmt.Errorf("%s: %w", c.agg, err)
	}
	return nil
}

func pick(groups []uint32, rows []int32) []uint32 {
	out := make([]uint32, len(rows))
	for i, r := range rows {
		out[i] = groups[r]
	}
	return out
}

// filtered is the rows that the call's FILTER keeps.
func (s *AggregateSpec) filtered(c *aggregateCall, in *AggregateInput) (rows []int32, all bool) {
	if c.filter < 0 {
		return nil, true
	}
	d := in.data[c.filter]
	if d.IsConstant() {
		isTrue := columnar.NewBitmap(1)
		kernel.MarkTrue(isTrue, d, 1)
		return nil, isTrue.Get(0)
	}
	rows = kernel.SelectTrue(nil, d.Array())
	return rows, len(rows) == in.Rows
}

// arguments are the call's arguments for rows (with all: every row), the ordinals last
// where they are wanted.
func (s *AggregateSpec) arguments(mem memory.Allocator, c *aggregateCall, in *AggregateInput, rows []int32, all bool) ([]columnar.Datum, func(), error) {
	var out []columnar.Datum
	release := func() {
		for _, d := range out {
			d.Release()
		}
	}
	add := func(d columnar.Datum) {
		if all || d.IsConstant() {
			out = append(out, d.Retain())
			return
		}
		out = append(out, columnar.ColumnDatum(kernel.Filter(mem, d.Array(), rows)))
	}
	for _, a := range c.args {
		add(in.data[a])
	}
	if c.agg.Signature.Overload.Ordered {
		if in.ordinal == nil {
			release()
			return nil, nil, fmt.Errorf("bug: %s needs the order of rows", c.agg)
		}
		add(columnar.ColumnDatum(in.ordinal))
	}
	return out, release, nil
}

func (s *AggregateSpec) describe() (keys, aggs string) {
	return namedList(s.Keys), namedList(s.Aggs)
}
