package function

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// tryAggregates are sums and means that are null where they do not fit their type, and
// sums and means of doubles under the names they have where sum is not exact.
func tryAggregates() []*Aggregate {
	return []*Aggregate{
		tryAggregate("try_sum", sumAggregate(), "Like sum, but null where that does not fit.", "SELECT try_sum(x) FROM (VALUES (9223372036854775807), (1)) AS t(x) = NULL"),
		tryAggregate("try_avg", avgAggregate(), "Like avg, but null where that does not fit.", "SELECT try_avg(x) FROM (VALUES (1), (NULL), (4)) AS t(x) = 2.5"),
		doubleAggregate("fsum", newDoubleSum(false), "The sum as a DOUBLE, rounded once; that is what sum does with doubles.", "SELECT fsum(x) FROM (VALUES (1), (NULL), (3)) AS t(x) = 4.0", "kahan_sum", "sumkahan"),
		doubleAggregate("favg", newDoubleSum(true), "The mean as a DOUBLE of the sum, rounded once; that is what avg does with doubles.", "SELECT favg(x) FROM (VALUES (1), (NULL), (4)) AS t(x) = 2.5"),
	}
}

func doubleAggregate(name string, make newAccumulator, doc, example string, aliases ...string) *Aggregate {
	return &Aggregate{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []AggregateOverload{
		{Args: []Matcher{doubleArg}, Result: resultType(columnar.Float64), New: make},
	}}
}

func tryAggregate(name string, of *Aggregate, doc, example string) *Aggregate {
	f := &Aggregate{Name: name, Doc: doc, Example: example}
	for _, o := range of.Overloads {
		open := o.New
		o.New = func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
			a, err := open(mem, args)
			if err != nil {
				return nil, err
			}
			return &trying{a, mem}, nil
		}
		f.Overloads = append(f.Overloads, o)
	}
	return f
}

// trying is an accumulator whose groups that overflow are null.
type trying struct {
	Accumulator
	mem memory.Allocator
}

func (a *trying) Result(groups []uint32) (arrow.Array, error) {
	r, err := a.Accumulator.Result(groups)
	if !overflows(err) {
		return r, err
	}
	empty, err := a.Accumulator.Result(nil)
	if err != nil {
		return nil, err
	}
	defer empty.Release()
	parts := []arrow.Array{columnar.Nulls(a.mem, empty.DataType(), 1)}
	defer func() { releaseAll(parts) }()
	refs := make([]kernel.Ref, len(groups))
	for i, g := range groups {
		one, err := a.Accumulator.Result([]uint32{g})
		switch {
		case err == nil:
			refs[i] = kernel.MakeRef(len(parts), 0)
			parts = append(parts, one)
		case !overflows(err):
			return nil, err
		}
	}
	return kernel.Gather(a.mem, parts, refs)
}

func overflows(err error) bool {
	var sum *OverflowError
	var value *kernel.ValueError
	return errors.As(err, &sum) || errors.As(err, &value) && value.Kind == kernel.ErrOverflow
}
