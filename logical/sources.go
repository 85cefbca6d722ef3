package logical

import "github.com/tidemill/tidemill/logical/expr"

// NumberSources numbers the texts and calls of programs that random functions of a plan
// stand in, in the order in which the plan has them: so that no two draw alike, and each
// draws the same in every run of the same program. It is for a whole plan, before it is
// optimized.
func NumberSources(n Node) (Node, error) {
	sources := map[*expr.Source]*expr.Source{}
	number := func(x expr.Expr) (expr.Expr, error) {
		c, ok := x.(*expr.Call)
		if !ok || !c.IsVolatile() || c.Place.Source == nil {
			return x, nil
		}
		numbered := sources[c.Place.Source]
		if numbered == nil {
			s := *c.Place.Source
			s.Number = uint64(len(sources))
			numbered = &s
			sources[c.Place.Source] = numbered
		}
		if numbered.Number == c.Place.Source.Number {
			return x, nil
		}
		m := *c
		m.Place.Source = numbered
		return &m, nil
	}
	return Transform(n, func(x Node) (Node, error) { return TransformExprs(x, number) })
}
