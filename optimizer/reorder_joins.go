package optimizer

import (
	"math"
	setbits "math/bits"

	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// ReorderJoins joins the inputs of inner and cross joins in the order in which the
// intermediate results are small, by the numbers of rows that tables know. The bigger
// side comes first, as it streams by while the other is kept. Where the numbers are not
// known the order stays as written, unless that asks for a cross join that another order
// does without. Streams, joins with state, and conditions that may fail or are volatile
// keep the order.
var ReorderJoins Rule = reorderJoins{}

type reorderJoins struct{}

func (reorderJoins) Name() string                               { return "reorder_joins" }
func (reorderJoins) Apply(n logical.Node) (logical.Node, error) { return n, nil }

func (reorderJoins) applyToRoot(n logical.Node) (logical.Node, int, error) {
	r := reorderer{rows: logical.NewEstimator()}
	m, err := r.node(n)
	return m, r.count, err
}

type reorderer struct {
	rows  *logical.Estimator
	count int
}

func (r *reorderer) node(n logical.Node) (logical.Node, error) {
	g := &joinGraph{}
	if isFreeJoin(n) && !logical.ReadsStream(n) && g.flatten(n) && len(g.inputs) > 2 && len(g.inputs) <= maxReordered {
		for i, in := range g.inputs {
			m, err := r.node(in)
			if err != nil {
				return nil, err
			}
			g.inputs[i] = m
		}
		return r.reorder(n, g), nil
	}
	children := n.Children()
	changed := false
	for i, c := range children {
		m, err := r.node(c)
		if err != nil {
			return nil, err
		}
		if m != c && !changed {
			children, changed = append([]logical.Node(nil), children...), true
		}
		children[i] = m
	}
	if !changed {
		return n, nil
	}
	return n.WithChildren(children), nil
}

// maxReordered bounds the search, which looks at 3^n ways to split n inputs.
const maxReordered = 11

// isFreeJoin says whether n is a join whose pairs do not depend on which side is which.
func isFreeJoin(n logical.Node) bool {
	j, ok := n.(*logical.Join)
	return ok && j.State == "" && (j.Kind == logical.InnerJoin || j.Kind == logical.CrossJoin)
}

// joinGraph is a tree of free joins: what it joins, numbered as written, by which
// conditions.
type joinGraph struct {
	inputs []logical.Node
	conds  []joinCond
}

// joinCond is a condition and the inputs it needs, as a set of bits.
type joinCond struct {
	cond  expr.Expr
	needs uint32
	// class is the number of the set of columns it makes equal, -1 if it is another
	// condition.
	class int
}

// flatten fills g and says whether the joins may be reordered.
func (g *joinGraph) flatten(n logical.Node) bool {
	if !isFreeJoin(n) {
		g.inputs = append(g.inputs, n)
		return true
	}
	j := n.(*logical.Join)
	if !g.flatten(j.Left) || !g.flatten(j.Right) {
		return false
	}
	for _, c := range expr.Conjuncts(j.On) {
		if isVolatile(c) || expr.IsFallible(c) {
			return false
		}
		g.conds = append(g.conds, joinCond{cond: c, class: -1})
	}
	return true
}

// connect finds what inputs each condition needs and which columns are equal by all of
// them; the result is the number of values of each such set.
func (g *joinGraph) connect(rows *logical.Estimator) []float64 {
	var domains []float64
	classOf := map[expr.ID]int{}
	for i := range g.conds {
		c := &g.conds[i]
		for _, id := range expr.Columns(c.cond) {
			c.needs |= 1 << g.inputOf(id)
		}
		a, b, ok := equalColumns(c.cond)
		if !ok || setbits.OnesCount32(c.needs) != 2 {
			continue
		}
		ka, seenA := classOf[a]
		kb, seenB := classOf[b]
		switch {
		case !seenA && !seenB:
			ka, domains = len(domains), append(domains, math.Inf(1))
		case !seenA:
			ka = kb
		case seenB && ka != kb: // one class from now on
			for id, k := range classOf {
				if k == kb {
					classOf[id] = ka
				}
			}
			domains[ka] = math.Min(domains[ka], domains[kb])
			for k := range g.conds[:i] {
				if g.conds[k].class == kb {
					g.conds[k].class = ka
				}
			}
		}
		c.class, classOf[a], classOf[b] = ka, ka, ka
		for _, id := range []expr.ID{a, b} {
			domains[ka] = math.Min(domains[ka], math.Max(1, rows.Domain(g.inputs[g.inputOf(id)], id)))
		}
	}
	return domains
}

func (g *joinGraph) inputOf(id expr.ID) int {
	for i, in := range g.inputs {
		if in.Schema().Index(id) >= 0 {
			return i
		}
	}
	return 31 // unreachable: a join's condition is over its inputs
}

// equalColumns takes an equality of two columns apart, whatever they are cast to.
func equalColumns(e expr.Expr) (a, b expr.ID, ok bool) {
	if !isEquality(e) {
		return 0, 0, false
	}
	ids := expr.Columns(e)
	if len(ids) != 2 {
		return 0, 0, false
	}
	for _, arg := range e.Children() {
		if len(expr.Columns(arg)) != 1 {
			return 0, 0, false
		}
	}
	return ids[0], ids[1], true
}

// joinPlan is the best way found to join a set of inputs.
type joinPlan struct {
	cost, rows  float64
	left, right uint32 // 0 for a single input
	crosses     int
}

// search finds the best plan of every set of inputs.
type search struct {
	g       *joinGraph
	domains []float64
	rows    []float64 // of each input
	best    map[uint32]joinPlan
}

func (r *reorderer) reorder(n logical.Node, g *joinGraph) logical.Node {
	s := &search{g: g, rows: make([]float64, len(g.inputs)), best: map[uint32]joinPlan{}}
	allKnown := true
	for i, in := range g.inputs {
		rows, known := r.rows.Rows(in)
		if !known {
			rows, allKnown = 10_000, false
		}
		s.rows[i] = math.Max(rows, 1)
	}
	s.domains = g.connect(r.rows)
	all := uint32(1)<<len(g.inputs) - 1
	best := s.solve(all)
	written := s.written(n, new(int))
	if !allKnown && best.crosses >= written.crosses || best.cost >= written.cost*0.999 && best.crosses >= written.crosses {
		return rejoined(n, g.inputs)
	}
	r.count++
	used := make([]bool, len(g.conds))
	return logical.NewProject(s.build(all, used), passColumns(n.Schema()))
}

// passColumns hands all columns on, in the order of s.
func passColumns(s *logical.Schema) []expr.Named {
	list := make([]expr.Named, len(s.Columns))
	for i, c := range s.Columns {
		list[i] = expr.Pass(c)
	}
	return list
}

// rejoined is the tree of joins n over inputs, as written.
func rejoined(n logical.Node, inputs []logical.Node) logical.Node {
	at := 0
	var walk func(n logical.Node) logical.Node
	walk = func(n logical.Node) logical.Node {
		if !isFreeJoin(n) {
			at++
			return inputs[at-1]
		}
		j := n.(*logical.Join)
		left := walk(j.Left)
		right := walk(j.Right)
		if left == j.Left && right == j.Right {
			return n
		}
		return n.WithChildren([]logical.Node{left, right})
	}
	return walk(n)
}

// solve finds the best plan for a set of inputs; of equal ones the first split found.
func (s *search) solve(set uint32) joinPlan {
	if p, ok := s.best[set]; ok {
		return p
	}
	if setbits.OnesCount32(set) == 1 {
		p := joinPlan{rows: s.rows[setbits.TrailingZeros32(set)]}
		s.best[set] = p
		return p
	}
	found := joinPlan{cost: math.Inf(1), crosses: math.MaxInt}
	lowest := set & -set
	for left := (set - 1) & set; left > 0; left = (left - 1) & set {
		if left&lowest == 0 { // the same split the other way round
			continue
		}
		p := s.join(left, s.solve(left), set&^left, s.solve(set&^left))
		if p.crosses < found.crosses || p.crosses == found.crosses && p.cost < found.cost {
			found = p
		}
	}
	s.best[set] = found
	return found
}

// join is the plan that joins two. Its cost is the rows it gives and twice those of the
// side that is kept.
func (s *search) join(left uint32, a joinPlan, right uint32, b joinPlan) joinPlan {
	if a.rows < b.rows {
		left, right, a, b = right, left, b, a
	}
	p := joinPlan{left: left, right: right, rows: a.rows * b.rows, crosses: a.crosses + b.crosses}
	domain, connected := 1.0, false
	seen := uint64(0)
	for _, c := range s.g.conds {
		if c.needs&left == 0 || c.needs&right == 0 || c.needs&^(left|right) != 0 {
			continue
		}
		if c.class < 0 {
			p.rows *= logical.Selectivity(c.cond)
			continue
		}
		connected = true
		if bit := uint64(1) << (c.class & 63); seen&bit == 0 {
			seen |= bit
			domain *= s.domains[c.class]
		}
	}
	if !connected {
		p.crosses++
	}
	// The columns of a key of several are not independent of each other.
	p.rows = math.Max(1, p.rows/math.Min(domain, math.Max(s.largest(left), s.largest(right))))
	p.cost = a.cost + b.cost + p.rows + 2*b.rows
	return p
}

// largest is the most rows that an input of a set has.
func (s *search) largest(set uint32) float64 {
	most := 1.0
	for ; set != 0; set &= set - 1 {
		most = math.Max(most, s.rows[setbits.TrailingZeros32(set)])
	}
	return most
}

// written is the plan as the query has it; at counts the inputs passed.
func (s *search) written(n logical.Node, at *int) joinPlan {
	p, _ := s.writtenSet(n, at)
	return p
}

func (s *search) writtenSet(n logical.Node, at *int) (joinPlan, uint32) {
	if !isFreeJoin(n) {
		*at++
		return joinPlan{rows: s.rows[*at-1]}, 1 << (*at - 1)
	}
	j := n.(*logical.Join)
	a, left := s.writtenSet(j.Left, at)
	b, right := s.writtenSet(j.Right, at)
	return s.join(left, a, right, b), left | right
}

// build makes the best plan of a set; each condition goes to the first join that has all
// it needs.
func (s *search) build(set uint32, used []bool) logical.Node {
	p := s.best[set]
	if p.left == 0 {
		return s.g.inputs[setbits.TrailingZeros32(set)]
	}
	left, right := s.build(p.left, used), s.build(p.right, used)
	var on []expr.Expr
	for i, c := range s.g.conds {
		if !used[i] && c.needs&^set == 0 {
			used[i] = true
			on = append(on, c.cond)
		}
	}
	kind := logical.InnerJoin
	if len(on) == 0 {
		kind = logical.CrossJoin
	}
	return logical.NewJoin(kind, left, right, expr.All(on))
}
