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
	if len(f.p.outputs) == 0 {
		return rows, true, nil
	}
	n, err := f.p.inParts(env, b, 0, func(fr *frame) (err error) {
		selected, all, err = fr.selectAll(rows)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	if n < int(b.NumRows()) {
		return f.selectRest(env, b, rows, selected, all, n)
	}
	return selected, all, nil
}

// selectRest goes on with row from, after those of which selected or all were kept.
func (f *Filter) selectRest(env *Env, b arrow.RecordBatch, rows, selected []int32, all bool, from int) ([]int32, bool, error) {
	had, total := len(rows), int(b.NumRows())
	if all {
		selected = appendRows(selected, 0, from)
	}
	for from < total {
		kept := len(selected)
		n, err := f.p.inParts(env, b, from, func(fr *frame) (err error) {
			var part []int32
			if part, all, err = fr.selectAll(selected); err == nil {
				selected = part
			}
			return err
		})
		if err != nil {
			return nil, false, err
		}
		if all {
			selected = appendRows(selected, from, from+n)
		} else {
			for i := kept; i < len(selected); i++ {
				selected[i] += int32(from)
			}
		}
		from += n
	}
	if len(selected)-had == total {
		return selected[:had], true, nil
	}
	return selected, false, nil
}

// appendRows appends the numbers of the rows from one to another.
func appendRows(rows []int32, from, to int) []int32 {
	for i := from; i < to; i++ {
		rows = append(rows, int32(i))
	}
	return rows
}

// selectAll selects by all conditions.
func (f *frame) selectAll(rows []int32) (selected []int32, all bool, err error) {
	outputs := f.p.outputs
	if len(outputs) == 1 {
		return f.selectOne(outputs[0], rows)
	}
	keep, isTrue := columnar.NewBitmap(f.rows), columnar.NewBitmap(f.rows)
	keep.SetAll()
	var set *rowSet
	for k, i := range outputs {
		if k > 0 && f.p.nodes[i].fallible {
			set = set.subset(keep.Clone())
		}
		d, err := f.eval(i, set)
		if err != nil {
			return nil, false, err
		}
		kernel.MarkTrue(isTrue, d, f.rows)
		keep.And(isTrue)
		f.done(i)
		if keep.Count() == 0 {
			return rows, false, nil
		}
	}
	if keep.Count() == f.rows {
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
