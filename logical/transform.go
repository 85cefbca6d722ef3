package logical

import "github.com/tidemill/tidemill/logical/expr"

// Walk visits n and everything below, parents first; visit returns whether to go on
// below the node.
func Walk(n Node, visit func(Node) bool) {
	if !visit(n) {
		return
	}
	for _, c := range n.Children() {
		Walk(c, visit)
	}
}

// Transform rebuilds a plan from the leaves up: f is given each node with its
// children already transformed. Where nothing changes the same pointer comes back.
func Transform(n Node, f func(Node) (Node, error)) (Node, error) {
	m, err := transformChildren(n, func(c Node) (Node, error) { return Transform(c, f) })
	if err != nil {
		return nil, err
	}
	return f(m)
}

// TransformDown rebuilds a plan from the root down: f is given each node before its
// children, and then the children of what it returned.
func TransformDown(n Node, f func(Node) (Node, error)) (Node, error) {
	m, err := f(n)
	if err != nil {
		return nil, err
	}
	return transformChildren(m, func(c Node) (Node, error) { return TransformDown(c, f) })
}

func transformChildren(n Node, f func(Node) (Node, error)) (Node, error) {
	children := n.Children()
	var changed []Node
	for i, c := range children {
		m, err := f(c)
		if err != nil {
			return nil, err
		}
		if m != c {
			if changed == nil {
				changed = append([]Node(nil), children...)
			}
			changed[i] = m
		}
	}
	if changed == nil {
		return n, nil
	}
	return n.WithChildren(changed), nil
}

// TransformExprs rewrites the expressions of n alone, each from its leaves up.
func TransformExprs(n Node, f func(expr.Expr) (expr.Expr, error)) (Node, error) {
	exprs := n.Exprs()
	var changed []expr.Expr
	for i, e := range exprs {
		m, err := expr.Transform(e, f)
		if err != nil {
			return nil, err
		}
		if m != e {
			if changed == nil {
				changed = append([]expr.Expr(nil), exprs...)
			}
			changed[i] = m
		}
	}
	if changed == nil {
		return n, nil
	}
	return n.WithExprs(changed), nil
}

// IsStreaming says whether a plan reads a stream.
func IsStreaming(n Node) bool { return reads(n, func(Node) bool { return false }) }

// ReadsStream is IsStreaming that holds for what a bounded query reads of a stream, too.
func ReadsStream(n Node) bool {
	return reads(n, func(x Node) bool {
		s, ok := x.(*Scan)
		return ok && s.OfStream
	})
}

// reads says whether a stream is read at or below n, or what also holds for.
func reads(n Node, also func(Node) bool) bool {
	found := false
	Walk(n, func(x Node) bool {
		_, ok := x.(*StreamScan)
		found = found || ok || also(x)
		return !found
	})
	return found
}
