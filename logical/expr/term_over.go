package expr

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// RowWindow is the rows that a window function sees for each row, as its method Over takes
// them: those of the same partition, in an order, within a frame.
type RowWindow struct {
	partition, order []Term
	framed           bool
	unit             FrameUnit
	low, high        FrameEnd
	exclude          Exclusion
}

// PartitionBy is the window of the rows that are equal in terms; of all rows if there are
// none.
func PartitionBy(terms ...Term) RowWindow { return RowWindow{partition: slices.Clone(terms)} }

// OrderBy orders the rows of each partition.
func (w RowWindow) OrderBy(terms ...Term) RowWindow { w.order = slices.Clone(terms); return w }

// Rows, Range and Groups set the frame: offsets count rows, are added to the one key of
// the order, or count groups of rows that are equal in order.
func (w RowWindow) Rows(low, high FrameEnd) RowWindow   { return w.frame(Rows, low, high) }
func (w RowWindow) Range(low, high FrameEnd) RowWindow  { return w.frame(Range, low, high) }
func (w RowWindow) Groups(low, high FrameEnd) RowWindow { return w.frame(Groups, low, high) }

func (w RowWindow) frame(unit FrameUnit, low, high FrameEnd) RowWindow {
	w.framed, w.unit, w.low, w.high = true, unit, low, high
	return w
}

// ExcludeCurrentRow, ExcludeGroup and ExcludeTies leave out of the frame the row itself, the row
// with its peers, which are equal in order, or its peers alone.
func (w RowWindow) ExcludeCurrentRow() RowWindow { w.exclude = ExcludeCurrentRow; return w }
func (w RowWindow) ExcludeGroup() RowWindow      { w.exclude = ExcludeGroup; return w }
func (w RowWindow) ExcludeTies() RowWindow       { w.exclude = ExcludeTies; return w }

// FrameEnd is one end of a frame.
type FrameEnd struct {
	kind   BoundKind
	offset Term
}

// NewFrameEnd is an end of a frame; offset is of Preceding and Following alone.
func NewFrameEnd(kind BoundKind, offset Term) FrameEnd { return FrameEnd{kind, offset} }

// Over makes a window function of a call: of row_number, rank, lag and their kin, or of
// an aggregate.
func (t Term) Over(w RowWindow) Term {
	t.err = firstError(append(append([]Term{t}, w.partition...), w.order...))
	return t.changed("Over applies to a call of a function", func(u *Unresolved) { u.Over = &w })
}

// IgnoreNulls makes lag, lead, first_value, last_value and nth_value see only rows in
// which their value is not null.
func (t Term) IgnoreNulls() Term {
	return t.changed("IgnoreNulls applies to a call of a function", func(u *Unresolved) { u.IgnoreNulls = true })
}

// resolveOver types a window function.
func (r *Resolver) resolveOver(u *Unresolved, args []Expr) (Expr, error) {
	if !r.Windows {
		return nil, fmt.Errorf("the window function %s cannot stand here; compute it as a column with Select or WithColumn first", u.Func)
	}
	in := *r
	in.Windows, in.Aggregates = false, false
	o := &Over{}
	if err := in.window(o, u.Over); err != nil {
		return nil, err
	}
	if IsRowFunction(u.Func) {
		if u.Distinct || u.Filter != nil {
			return nil, fmt.Errorf("Distinct and Filter apply to an aggregate, not to %s", u.Func)
		}
		if err := o.Check(u.Func, len(args), u.IgnoreNulls); err != nil {
			return nil, err
		}
		return o, o.SetFunction(u.Func, args, u.IgnoreNulls)
	}
	if _, ok := r.Registry.Aggregate(u.Func); !ok {
		if _, scalar := r.Registry.Scalar(u.Func); scalar {
			return nil, fmt.Errorf("%s is no window function and no aggregate: it takes no Over", u.Func)
		}
		return nil, UnknownOver(r.Registry, u.Func)
	}
	if u.IgnoreNulls {
		return nil, fmt.Errorf("%s takes no IgnoreNulls", u.Func)
	}
	in.Aggregates = true
	agg, err := in.resolveAggregate(u, args)
	if err != nil {
		return nil, err
	}
	o.SetAggregate(agg.(*Agg))
	return o, nil
}

// window types partition, order and frame.
func (r *Resolver) window(o *Over, w *RowWindow) error {
	for _, t := range w.partition {
		x, err := r.Resolve(t.Expr)
		if err != nil {
			return err
		}
		o.Partition = append(o.Partition, x)
	}
	for _, t := range w.order {
		x, err := r.Resolve(t.Expr)
		if err != nil {
			return err
		}
		o.Order = append(o.Order, Order{Expr: x, Descending: t.Descending, NullsFirst: t.SortsNullsFirst()})
	}
	if !w.framed {
		o.Frame = o.UsualFrame()
		o.Frame.Exclude = w.exclude
		return nil
	}
	if err := o.SetFrame(Frame{Unit: w.unit, Low: Bound{Kind: w.low.kind}, High: Bound{Kind: w.high.kind}, Exclude: w.exclude}); err != nil {
		return err
	}
	return r.frameOffsets(o, w)
}

// frameOffsets types what a frame's ends are away from the row.
func (r *Resolver) frameOffsets(o *Over, w *RowWindow) error {
	var offsets [2]Expr
	for i, end := range []FrameEnd{w.low, w.high} {
		if end.kind != Preceding && end.kind != Following {
			continue
		}
		if err := end.offset.Err(); err != nil {
			return err
		}
		l, ok := end.offset.Expr.(*Literal)
		if !ok {
			return fmt.Errorf("the offset of a frame is a constant, not %s", end.offset.Expr)
		}
		offsets[i] = l
		if w.unit == Range {
			continue
		}
		n, ok := count(l)
		if !ok {
			return fmt.Errorf("%s takes a whole number that is not negative, not %s", w.unit, l)
		}
		[]*Bound{&o.Frame.Low, &o.Frame.High}[i].Offset = n
	}
	if w.unit != Range {
		return nil
	}
	return o.SetRange(r.Registry, offsets[0], offsets[1])
}

// count is the value of a literal that is a whole number and not negative.
func count(l *Literal) (int64, bool) {
	if l.IsNull() {
		return 0, false
	}
	n := int64(math.MinInt64)
	switch v := l.Value.(type) {
	case *array.Int64:
		n = v.Value(0)
	case *array.Int32:
		n = int64(v.Value(0))
	case *array.Int16:
		n = int64(v.Value(0))
	case *array.Int8:
		n = int64(v.Value(0))
	}
	return n, n >= 0
}
