package function

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// listSumScalars are array_sum and array_avg: what sum and avg are of the elements of each
// array, exact where those are.
func listSumScalars() []*Scalar {
	return []*Scalar{
		ofElements("array_sum", "The sum of the elements of an array of numbers, of the type that sum has; nulls are passed over, null if there are none.", "array_sum(array(1, 2, 3)) = 6", sumAggregate(), "list_sum"),
		ofElements("array_avg", "The mean of the elements of an array of numbers, of the type that avg has; nulls are passed over, null if there are none.", "array_avg(array(1, 2, 6)) = 3", avgAggregate(), "list_avg"),
	}
}

// ofElements is an aggregate of the elements of an array of numbers.
func ofElements(name, doc, example string, of *Aggregate, aliases ...string) *Scalar {
	s := &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example}
	for _, o := range of.Overloads {
		if o.Args[0].String() != columnar.TypeName(columnar.Interval) {
			s.Overloads = append(s.Overloads, overElements(name, o))
		}
	}
	return s
}

func overElements(name string, o AggregateOverload) Overload {
	arg := matcher{"ARRAY of " + o.Args[0].String(), func(a arrow.DataType) (arrow.DataType, int, bool) {
		elem := columnar.Null
		if l, ok := a.(*arrow.ListType); ok {
			elem = l.Elem()
		} else if a.ID() != arrow.NULL {
			return nil, 0, false
		}
		want, cost, ok := o.Args[0].Match(elem)
		if !ok {
			return nil, 0, false
		}
		return columnar.ListOf(want), cost, true
	}}
	result := func(args []arrow.DataType) (arrow.DataType, error) {
		return o.Result([]arrow.DataType{elemOf(args[0])})
	}
	return Overload{Args: []Matcher{arg}, Result: result, Fallible: true, Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
		out, err := result(args)
		if err != nil {
			return nil, err
		}
		return onRows(out, func(c *call) (arrow.Array, error) {
			acc, err := o.New(c.env.Mem, []arrow.DataType{elemOf(args[0])})
			if err != nil {
				return nil, err
			}
			defer acc.Release()
			a, err := c.elementsInto(acc)
			if overflow := (*OverflowError)(nil); errors.As(err, &overflow) {
				err = &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("%s overflows %s; cast the elements to %s", name, columnar.TypeName(overflow.Type), wider(overflow.Type))}
			}
			return a, err
		}), nil
	}}
}

// elementsInto gives the elements of each array that counts to acc, as a group, and returns
// its results.
func (c *call) elementsInto(acc Accumulator) (arrow.Array, error) {
	l := kernel.ListsOf(c.args[0])
	valid, _ := c.validity()
	defer releaseBuffer(valid)
	first, end := 0, 0 // of the elements of these rows
	if c.rows > 0 {
		first, _ = l.At(0)
		_, end = l.At(c.rows - 1)
	}
	rows := make([]uint32, c.rows)
	groups := make([]uint32, end-first)
	for j := range groups {
		groups[j] = uint32(c.rows) // of no array that counts
	}
	for i := range rows {
		rows[i] = uint32(i)
		if !isSet(valid, i) || !c.active.Get(i) {
			continue
		}
		from, to := l.At(i)
		for j := from; j < to; j++ {
			groups[j-first] = uint32(i)
		}
	}
	acc.Resize(c.rows + 1)
	elems := array.NewSlice(l.Child, int64(first), int64(end))
	d := columnar.ColumnDatum(elems)
	defer d.Release()
	if err := acc.Update(groups, []columnar.Datum{d}); err != nil {
		return nil, err
	}
	return acc.Result(rows)
}
