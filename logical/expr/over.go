package expr

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Over is a window function: a value for each row, computed from the rows of its
// partition. It stands only in logical.Over, whose functions have the same Partition
// and Order.
type Over struct {
	// Agg is the aggregate that is computed over the frame; nil if Func says what is.
	// It is no child of its own, its arguments and filter are.
	Agg *Agg
	// Func is row_number, rank, dense_rank, percent_rank, cume_dist, ntile, lag, lead,
	// first_value, last_value or nth_value, with arguments Args.
	Func        string
	Args        []Expr
	IgnoreNulls bool
	Partition   []Expr
	Order       []Order
	Frame       Frame
	DataType    arrow.DataType
	Place       Place // where it is written
}

// Order is one ORDER BY item of a window.
type Order struct {
	Expr       Expr
	Descending bool
	NullsFirst bool
}

// FrameUnit is what the offsets of a frame count.
type FrameUnit uint8

// The units of a frame.
const (
	Rows FrameUnit = iota
	Range
	Groups
)

func (u FrameUnit) String() string { return [...]string{"ROWS", "RANGE", "GROUPS"}[u] }

// BoundKind is the kind of a frame's bound, in order from the partition's first row.
type BoundKind uint8

// The kinds of bounds.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// Bound is one end of a frame. Of Preceding and Following, Offset is the number of rows
// or groups; in RANGE frames Value is the key that bounds it, Key less or more the offset.
type Bound struct {
	Kind   BoundKind
	Offset int64
	Value  Expr
}

// Exclusion is what a frame leaves out of the rows between its bounds: the row itself, its
// peers, which are equal in order, or both.
type Exclusion uint8

// The exclusions of a frame.
const (
	ExcludeNoOthers Exclusion = iota
	ExcludeCurrentRow
	ExcludeGroup
	ExcludeTies
)

func (e Exclusion) String() string {
	return [...]string{"NO OTHERS", "CURRENT ROW", "GROUP", "TIES"}[e]
}

// Frame is the rows of the partition, in order, that a window function sees for a row.
type Frame struct {
	Unit      FrameUnit
	Low, High Bound
	Exclude   Exclusion
	// Key is the ORDER BY key, of the type of the bounds' Values; nil without those.
	Key Expr
}

// WholePartition is the frame of all rows.
var WholePartition = Frame{Unit: Rows, Low: Bound{Kind: UnboundedPreceding}, High: Bound{Kind: UnboundedFollowing}}

// Type is the type of the value.
func (o *Over) Type() arrow.DataType { return o.DataType }

// Nullable says whether the value can be null.
func (o *Over) Nullable() bool {
	if o.Agg != nil {
		return o.Agg.Nullable()
	}
	switch o.Func {
	case "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile":
		return false
	}
	return true
}

// Children are the arguments, the filter of an aggregate, the partition, the order,
// and what bounds the frame.
func (o *Over) Children() []Expr {
	var out []Expr
	if o.Agg != nil {
		out = append(out, o.Agg.Children()...)
	}
	out = append(append(out, o.Args...), o.Partition...)
	for _, k := range o.Order {
		out = append(out, k.Expr)
	}
	for _, e := range []Expr{o.Frame.Key, o.Frame.Low.Value, o.Frame.High.Value} {
		if e != nil {
			out = append(out, e)
		}
	}
	return out
}

// WithChildren replaces the children, in the order of Children.
func (o *Over) WithChildren(children []Expr) Expr {
	n := *o
	take := func(count int) []Expr {
		head := children[:count:count]
		children = children[count:]
		return head
	}
	if o.Agg != nil {
		n.Agg = o.Agg.WithChildren(take(len(o.Agg.Children()))).(*Agg)
	}
	n.Args, n.Partition = take(len(o.Args)), take(len(o.Partition))
	n.Order = append([]Order(nil), o.Order...)
	for i := range n.Order {
		n.Order[i].Expr = take(1)[0]
	}
	for _, e := range []*Expr{&n.Frame.Key, &n.Frame.Low.Value, &n.Frame.High.Value} {
		if *e != nil {
			*e = take(1)[0]
		}
	}
	return &n
}

// AggregateOrder is the order in which an aggregate takes the rows of its frame; nil if it is
// that of the window.
func (o *Over) AggregateOrder() []Order {
	if o.Agg == nil {
		return nil
	}
	return o.Agg.Order
}

// SameWindow says whether o and p have the same partition and order.
func (o *Over) SameWindow(p *Over) bool {
	if !equalAll(o.Partition, p.Partition) || len(o.Order) != len(p.Order) {
		return false
	}
	for i, k := range o.Order {
		if k.Descending != p.Order[i].Descending || k.NullsFirst != p.Order[i].NullsFirst || !Equal(k.Expr, p.Order[i].Expr) {
			return false
		}
	}
	return true
}

// same compares all but the children.
func (o *Over) same(p *Over) bool {
	if o.Func != p.Func || o.IgnoreNulls != p.IgnoreNulls || (o.Agg == nil) != (p.Agg == nil) || o.Agg != nil && !sameNode(o.Agg, p.Agg) {
		return false
	}
	if len(o.Args) != len(p.Args) || len(o.Partition) != len(p.Partition) || len(o.Order) != len(p.Order) {
		return false
	}
	for i, k := range o.Order {
		if k.Descending != p.Order[i].Descending || k.NullsFirst != p.Order[i].NullsFirst {
			return false
		}
	}
	return o.Frame.Unit == p.Frame.Unit && o.Frame.Exclude == p.Frame.Exclude && o.Frame.Low.same(p.Frame.Low) && o.Frame.High.same(p.Frame.High)
}

func (b Bound) same(c Bound) bool { return b.Kind == c.Kind && b.Offset == c.Offset }

// HasOver says whether e contains a window function.
func HasOver(e Expr) bool {
	found := false
	Walk(e, func(x Expr) bool {
		if _, ok := x.(*Over); ok {
			found = true
		}
		return !found
	})
	return found
}

func (o *Over) String() string {
	var text string
	if o.Agg != nil {
		text = aggString(o.Agg.Func.Name, o.Agg.Args, o.Agg.Distinct, o.Agg.Order, o.Agg.Filter)
	} else {
		text = o.Func + "(" + List(o.Args) + ")"
	}
	if o.IgnoreNulls {
		text += " IGNORE NULLS"
	}
	var parts []string
	if len(o.Partition) > 0 {
		parts = append(parts, "PARTITION BY "+List(o.Partition))
	}
	if len(o.Order) > 0 {
		parts = append(parts, "ORDER BY "+orderText(o.Order))
	}
	if f := o.Frame.text(len(o.Order) > 0); f != "" && o.usesFrame() {
		parts = append(parts, f)
	}
	return text + " OVER (" + strings.Join(parts, " ") + ")"
}

// usesFrame says whether the frame decides anything.
func (o *Over) usesFrame() bool {
	switch o.Func {
	case "", "first_value", "last_value", "nth_value":
		return true
	}
	return false
}

func orderText(order []Order) string {
	keys := make([]string, len(order))
	for i, k := range order {
		keys[i] = k.String()
	}
	return strings.Join(keys, ", ")
}

func (k Order) String() string {
	s := k.Expr.String()
	if k.Descending {
		s += " DESC"
	}
	if k.NullsFirst == k.Descending { // not the default: first ascending, last descending
		s += map[bool]string{true: " NULLS FIRST", false: " NULLS LAST"}[k.NullsFirst]
	}
	return s
}

// text is the frame as SQL, "" for the usual one of a window with or without order.
func (f Frame) text(ordered bool) string {
	usual := f.Unit == Range && f.Low.Kind == UnboundedPreceding && f.High.Kind == CurrentRow
	if f.Exclude == ExcludeNoOthers && (ordered && usual || !ordered && f.IsWhole()) {
		return ""
	}
	text := fmt.Sprintf("%s BETWEEN %s AND %s", f.Unit, f.Low.text(), f.High.text())
	if f.Exclude != ExcludeNoOthers {
		text += " EXCLUDE " + f.Exclude.String()
	}
	return text
}

// IsWhole says whether the frame of every row is its partition.
func (f Frame) IsWhole() bool {
	return f.Low.Kind == UnboundedPreceding && f.High.Kind == UnboundedFollowing && f.Exclude == ExcludeNoOthers
}

func (b Bound) text() string {
	what := fmt.Sprint(b.Offset)
	if b.Value != nil {
		what = "(" + b.Value.String() + ")"
	}
	switch b.Kind {
	case UnboundedPreceding:
		return "UNBOUNDED PRECEDING"
	case Preceding:
		return what + " PRECEDING"
	case CurrentRow:
		return "CURRENT ROW"
	case Following:
		return what + " FOLLOWING"
	}
	return "UNBOUNDED FOLLOWING"
}
