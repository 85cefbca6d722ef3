package eval

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// PartBytes is how much the results of one evaluation may be out of proportion to its input
// before it is done for fewer rows at a time, unless Env says.
const PartBytes = 16 << 20

// errWide is the end of an evaluation whose results are out of proportion to its input. It
// is done again for fewer rows, down to one, of which the budget alone decides.
var errWide = errors.New("bug: results out of proportion, and nobody evaluates fewer rows")

// part is how many rows of a batch to try at once, when rest are left.
func (e *Env) part(rest int) int {
	if e.partRows > 0 {
		return min(rest, e.partRows)
	}
	return rest
}

// tooWide makes parts smaller than n rows.
func (e *Env) tooWide(n int) { e.partRows = n / 2 }

// fitted makes parts bigger after one of n rows that stayed far below what it may take.
func (e *Env) fitted(n int, wide int64) {
	if n < e.partRows || wide > e.partBytes()/4 {
		return
	}
	if e.partRows *= 2; e.partRows > columnar.DefaultBatchRows {
		e.partRows = 0
	}
}

func (e *Env) partBytes() int64 {
	if e.PartBytes > 0 {
		return e.PartBytes
	}
	return PartBytes
}

// inParts calls f for the rows of b from row from on: for all, or where errWide says so for
// the first of them, and returns how many.
func (p *Program) inParts(env *Env, b arrow.RecordBatch, from int, f func(fr *frame) error) (int, error) {
	n := env.part(int(b.NumRows()) - from)
	for {
		fr := p.frames.get(env, b, from, n)
		err := f(fr)
		wide := fr.wide
		p.frames.put(fr)
		if err == nil && env.partRows > 0 {
			env.fitted(n, wide)
		}
		if !errors.Is(err, errWide) {
			return n, err
		}
		env.tooWide(n)
		n = env.part(n)
	}
}

// EvalPart is Eval for rows of b from row from on: as many, at least one if there are any, as
// keep the results in proportion. It returns their number.
func (p *Program) EvalPart(env *Env, b arrow.RecordBatch, from int) (out []columnar.Datum, rows int, err error) {
	rows, err = p.inParts(env, b, from, func(f *frame) (err error) {
		out, err = f.outputs()
		return err
	})
	return out, rows, err
}

// EvalColumnsPart is EvalPart with constants written out as columns.
func (p *Program) EvalColumnsPart(env *Env, b arrow.RecordBatch, from int) (out []arrow.Array, rows int, err error) {
	rows, err = p.inParts(env, b, from, func(f *frame) (err error) {
		out, err = f.outputColumns()
		return err
	})
	return out, rows, err
}

// outputs is the values of all outputs, the caller's.
func (f *frame) outputs() ([]columnar.Datum, error) {
	out := make([]columnar.Datum, 0, len(f.p.outputs))
	for _, i := range f.p.outputs {
		d, err := f.output(i)
		if err != nil {
			for _, d := range out {
				d.Release()
			}
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// outputColumns is outputs with constants written out.
func (f *frame) outputColumns() ([]arrow.Array, error) {
	data, err := f.outputs()
	if err != nil {
		return nil, err
	}
	out := make([]arrow.Array, len(data))
	for i, d := range data {
		if err == nil {
			out[i], err = f.broadcast(d)
		}
		d.Release()
	}
	if err != nil {
		releaseArrays(out)
		return nil, err
	}
	return out, nil
}

// broadcast is d as a column.
func (f *frame) broadcast(d columnar.Datum) (arrow.Array, error) {
	if err := f.reserveRepeated(d, f.rows); err != nil {
		return nil, err
	}
	return columnar.Broadcast(f.env.Mem, d, f.rows), nil
}

// rest evaluates b from row from on and puts the results behind those of the rows before,
// which it takes over.
func (p *Program) rest(env *Env, b arrow.RecordBatch, first []columnar.Datum, from int) ([]arrow.Array, error) {
	parts := make([][]arrow.Array, len(p.outputs))
	defer func() {
		for _, list := range parts {
			releaseArrays(list)
		}
	}()
	held := int64(0)
	defer func() { env.Budget.Return(held) }()
	hold := func(i int, c arrow.Array) error {
		parts[i] = append(parts[i], c)
		n := columnar.DataBytes(c.Data())
		err := env.Budget.Reserve("the value", n)
		if err == nil {
			held += n
		}
		return err
	}
	var err error
	for i, d := range first {
		if c := columnar.Broadcast(env.Mem, d, from); err == nil {
			err = hold(i, c)
		} else {
			c.Release()
		}
		d.Release()
	}
	for err == nil && from < int(b.NumRows()) {
		var columns []arrow.Array
		var n int
		if columns, n, err = p.EvalColumnsPart(env, b, from); err != nil {
			return nil, err
		}
		for i, c := range columns {
			if held := hold(i, c); err == nil {
				err = held
			}
		}
		from += n
	}
	if err != nil {
		return nil, p.refused(err)
	}
	out := make([]arrow.Array, len(parts))
	for i, list := range parts {
		var err error
		if out[i], err = kernel.Concat(env.Mem, list); err != nil {
			releaseArrays(out)
			return nil, err
		}
	}
	return out, nil
}

// refused is a refusal of memory for the results of all expressions, of which it names the
// first that is no column.
func (p *Program) refused(err error) error {
	for _, i := range p.outputs {
		if n := &p.nodes[i]; n.op != opRef {
			return Failed(n.expr, err)
		}
	}
	return err
}

func releaseArrays(list []arrow.Array) {
	for _, a := range list {
		if a != nil {
			a.Release()
		}
	}
}
