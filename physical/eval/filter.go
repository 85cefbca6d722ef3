package eval

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
)

// Filter is a compiled condition. It is immutable.
type Filter struct {
	p *Program // one output a conjunct
}

// CompileFilter binds conditions over the columns of in, all of which must hold. A
// later one is not evaluated for rows that an earlier one rules out, if it may fail.
func CompileFilter(in *arrow.Schema, conds ...expr.Expr) (*Filter, error) {
	p, err := Compile(in, expr.Conjuncts(expr.All(conds))...)
	if err != nil {
		return nil, err
	}
	return &Filter{p: p}, nil
}

// IsVolatile says whether a condition is: see Program.IsVolatile.
func (f *Filter) IsVolatile() bool { return f.p.IsVolatile() }

// Select appends the numbers of the rows of b for which the condition is true to
// rows, ascending. all is true if that is every row; rows is then left as it was.
func (f *Filter) Select(env *Env, b arrow.RecordBatch, rows []int32) (selected []int32, all bool, err error) {
	fr := f.p.frames.get(env, b)
	defer f.p.frames.put(fr)
	outputs := f.p.outputs
	if len(outputs) == 0 {
		return rows, true, nil
	}
	if len(outputs) == 1 {
		return fr.selectOne(outputs[0], rows)
	}
	keep, isTrue := columnar.NewBitmap(fr.rows), columnar.NewBitmap(fr.rows)
	keep.SetAll()
	var set *rowSet
	for k, i := range outputs {
		if k > 0 && f.p.nodes[i].fallible {
			set = set.subset(keep.Clone())
		}
		d, err := fr.eval(i, set)
		if err != nil {
			return nil, false, err
		}
		kernel.MarkTrue(isTrue, d, fr.rows)
		keep.And(isTrue)
		fr.done(i)
		if keep.Count() == 0 {
			return rows, false, nil
		}
	}
	if keep.Count() == fr.rows {
		return rows, true, nil
	}
	return keep.Indices(rows), false, nil
}

// selectOne selects by a single condition.
func (f *frame) selectOne(i int, rows []int32) ([]int32, bool, error) {
	d, err := f.eval(i, nil)
	if err != nil {
		return nil, false, err
	}
	if d.IsConstant() {
		isTrue := columnar.NewBitmap(1)
		kernel.MarkTrue(isTrue, d, 1)
		return rows, isTrue.Get(0), nil
	}
	n := len(rows)
	rows = kernel.SelectTrue(rows, d.Array())
	if len(rows)-n == f.rows {
		return rows[:n], true, nil
	}
	return rows, false, nil
}
