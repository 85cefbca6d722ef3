package expr

import "github.com/apache/arrow-go/v18/arrow"

// Name is a column by name, not yet looked up.
type Name struct {
	leaf
	Qualifier string
	Name      string
}

func (n *Name) Type() arrow.DataType     { panic("bug: type of unresolved column " + n.Name) }
func (n *Name) Nullable() bool           { return true }
func (n *Name) WithChildren([]Expr) Expr { return n }

// Unresolved is a call of a scalar or aggregate function, a cast or a condition,
// not yet typed. Func is the function's name in the registry.
type Unresolved struct {
	Func     string
	Args     []Expr
	Distinct bool
	Filter   Expr
	To       arrow.DataType // target of a cast
	Window   *WindowSpec    // set for window(…) and session_window(…)
	// Over makes it a window function; IgnoreNulls is of some of those.
	Over        *RowWindow
	IgnoreNulls bool
	// made tells a call by who made it: however often it is used, it is the same call, and
	// gives a row one random value.
	made *Source
}

// Type is the target of a cast; other unresolved calls have none yet.
func (u *Unresolved) Type() arrow.DataType {
	if u.To == nil {
		panic("bug: type of unresolved call of " + u.Func)
	}
	return u.To
}
func (u *Unresolved) Nullable() bool { return true }
func (u *Unresolved) Children() []Expr {
	if u.Filter != nil {
		return append(append([]Expr(nil), u.Args...), u.Filter)
	}
	return u.Args
}
func (u *Unresolved) WithChildren(children []Expr) Expr {
	n := *u
	n.Args = children[:len(u.Args):len(u.Args)]
	if u.Filter != nil {
		n.Filter = children[len(children)-1]
	}
	return &n
}

// WindowSpec is the shape of an event-time window, in microseconds.
type WindowSpec struct {
	Size, Slide, Start int64 // of tumbling and hopping windows; Slide = Size: tumbling
	Gap                Expr  // of a session window: an interval or text per row; nil otherwise
	Place              Place // where it is written
}

func (w WindowSpec) equal(o WindowSpec) bool {
	if w.Size != o.Size || w.Slide != o.Slide || w.Start != o.Start || (w.Gap == nil) != (o.Gap == nil) {
		return false
	}
	return w.Gap == nil || Equal(w.Gap, o.Gap)
}
