package expr

import (
	"fmt"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
)

// Expr is an immutable expression node. String is SQL-like text. Type and Nullable
// may be asked of resolved expressions only (see IsResolved).
type Expr interface {
	fmt.Stringer
	Type() arrow.DataType
	// Nullable says whether the value can be null.
	Nullable() bool
	Children() []Expr
	// WithChildren returns a copy with other children, of the same number and the
	// same types.
	WithChildren(children []Expr) Expr
}

// ID identifies a column throughout one plan, whatever it is called: each scan
// instance and each computed alias has fresh ones.
type ID uint64

var lastID atomic.Uint64

// NewID returns an ID no other column of this process has. IDs are never stored.
func NewID() ID { return ID(lastID.Add(1)) }

// leaf is embedded by nodes without children.
type leaf struct{}

func (leaf) Children() []Expr { return nil }

// IsResolved says whether e holds no Name and no Unresolved node, so that Type may
// be asked.
func IsResolved(e Expr) bool {
	resolved := true
	Walk(e, func(x Expr) bool {
		switch x.(type) {
		case *Name, *Unresolved:
			resolved = false
		}
		return resolved
	})
	return resolved
}

// Walk visits e and everything below it, parents first; visit returns whether to
// go on below the node.
func Walk(e Expr, visit func(Expr) bool) {
	if !visit(e) {
		return
	}
	for _, c := range e.Children() {
		Walk(c, visit)
	}
}

// Transform rebuilds e from the leaves up: f is given each node with its children
// already transformed and returns the node to stand there. Where nothing changes
// the same pointer comes back.
func Transform(e Expr, f func(Expr) (Expr, error)) (Expr, error) {
	children := e.Children()
	var changed []Expr
	for i, c := range children {
		n, err := Transform(c, f)
		if err != nil {
			return nil, err
		}
		if n != c {
			if changed == nil {
				changed = append([]Expr(nil), children...)
			}
			changed[i] = n
		}
	}
	if changed != nil {
		e = e.WithChildren(changed)
	}
	return f(e)
}

// Columns returns the IDs of the columns e reads, each once, in order of first sight.
func Columns(e Expr) []ID {
	var ids []ID
	seen := map[ID]bool{}
	Walk(e, func(x Expr) bool {
		if c, ok := x.(*Column); ok && !seen[c.ID] {
			seen[c.ID] = true
			ids = append(ids, c.ID)
		}
		return true
	})
	return ids
}

// HasAggregate says whether e contains an Agg.
func HasAggregate(e Expr) bool {
	found := false
	Walk(e, func(x Expr) bool {
		if _, ok := x.(*Agg); ok {
			found = true
		}
		return !found
	})
	return found
}

// Equal says whether a and b are the same tree: same nodes, functions, columns (by
// ID), literals and types.
func Equal(a, b Expr) bool {
	if a == b {
		return true
	}
	return sameNode(a, b) && equalAll(a.Children(), b.Children())
}

// Same says whether a and b are Equal and always have one value: the random functions in
// them are the same calls.
func Same(a, b Expr) bool { return Equal(a, b) && sameCalls(a, b) }

// sameCalls compares the places of random functions in a and b, which are Equal.
func sameCalls(a, b Expr) bool {
	if x, ok := a.(*Call); ok && x.IsVolatile() && x.Place != b.(*Call).Place {
		return false
	}
	children := b.Children()
	for i, c := range a.Children() {
		if !sameCalls(c, children[i]) {
			return false
		}
	}
	return true
}

func equalAll(a, b []Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
