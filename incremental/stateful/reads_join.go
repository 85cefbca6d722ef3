package stateful

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// condition is one that rows meet: of a filter, unless an inner join takes it.
type condition struct {
	text    string
	leaves  leaves // that it reads
	equates bool
	isOr    bool
}

// among is c's text among others that AND joins.
func (c condition) among() string {
	if c.isOr {
		return "(" + c.text + ")"
	}
	return c.text
}

// leaves are labels of what columns come from.
type leaves map[string]bool

func (l leaves) meets(other leaves) bool {
	for label := range l {
		if other[label] {
			return true
		}
	}
	return false
}

// pairing is an inner join: of inner joins above each other it matters what is joined by
// which conditions, not in which steps.
type pairing struct {
	left, right leaves
	on          []string // what its ON asks of pairs
	// plain joins have nothing that could be read from a WHERE: a subquery's value, which
	// is compared there.
	plain bool
}

func (p pairing) spans(c condition) bool { return c.leaves.meets(p.left) && c.leaves.meets(p.right) }

// leavesOf are the leaves that columns come from.
func (r *reader) leavesOf(ids ...expr.ID) leaves {
	out := leaves{}
	for _, id := range ids {
		maps.Copy(out, r.leaves[id])
	}
	return out
}

func (r *reader) leavesBelow(n logical.Node) leaves {
	out := leaves{}
	for _, c := range n.Schema().Columns {
		maps.Copy(out, r.leaves[c.ID])
	}
	return out
}

// conditions are what cond, which may be nil, asks for, one by one.
func (r *reader) conditions(cond expr.Expr) []condition {
	var out []condition
	for _, written := range expr.Conjuncts(cond) {
		of := r.leavesOf(expr.Columns(written)...)
		for _, c := range expr.Conjuncts(r.canonical(written)) {
			text := c.String()
			if r.form > checkpoint.FormerReads && strings.EqualFold(text, "true") {
				continue
			}
			_, isLogic := c.(*expr.Logic)
			call, ok := c.(*expr.Call)
			out = append(out, condition{
				text: text, leaves: of, isOr: isLogic && r.form > checkpoint.FormerReads,
				equates: ok && (call.Func.Name == "=" || call.Func.Name == "is_not_distinct_from"),
			})
		}
	}
	return out
}

// join of which one side at least is bounded. What the ON of an inner join asks of one
// side, and WHERE of both, is a filter; but where ON asks nothing of pairs, as between
// commas, the equalities of WHERE are the join's, or if there are none all that WHERE asks
// of pairs.
func (r *reader) join(x *logical.Join, left, right rows) rows {
	if x.Kind != logical.InnerJoin && x.Kind != logical.CrossJoin {
		return r.outerJoin(x, left, right)
	}
	if r.form == checkpoint.FormerReads {
		return rows{
			conditions: slices.Concat(r.conditions(x.On), left.conditions, right.conditions),
			from:       append([]string{"Join inner"}, indented(rows{from: left.from}, rows{from: right.from})...),
		}
	}
	p := pairing{left: r.leavesBelow(x.Left), right: r.leavesBelow(x.Right), plain: x.Subquery != ""}
	out := rows{conditions: slices.Concat(left.conditions, right.conditions), sides: slices.Concat(left.parts(), right.parts())}
	for _, c := range r.conditions(x.On) {
		if p.spans(c) {
			p.on = append(p.on, c.among())
		} else {
			out.conditions = append(out.conditions, c)
		}
	}
	out.joins = append(slices.Concat(left.joins, right.joins), p)
	return out
}

// outerJoin is a join whose ON says which rows have a match, all of it. What is asked of
// the rows of a side that it keeps may be asked above it as well.
func (r *reader) outerJoin(x *logical.Join, left, right rows) rows {
	var on []string
	for _, c := range r.conditions(x.On) {
		on = append(on, c.among())
	}
	slices.Sort(on)
	var filters []condition
	if r.form > checkpoint.FormerReads {
		switch x.Kind {
		case logical.LeftJoin, logical.SemiJoin, logical.AntiJoin:
			filters, left = left.apart()
		case logical.RightJoin:
			filters, right = right.apart()
		}
	}
	line := short("Join "+x.Kind.String()+" on "+strings.Join(slices.Compact(on), " AND "), longestLine)
	return rows{conditions: filters, from: append([]string{line}, indented(left, right)...)}
}

// apart takes the filters from s.
func (s rows) apart() (filters []condition, rest rows) {
	filters, on := s.resolve()
	return filters, rows{from: s.joined(on)}
}

// resolve says which conditions are filters and what the inner joins are on.
func (s rows) resolve() (filters []condition, on []string) {
	taken := make([][]condition, len(s.joins))
	for _, c := range s.conditions {
		if at := s.joinOf(c); at >= 0 {
			taken[at] = append(taken[at], c)
		} else {
			filters = append(filters, c)
		}
	}
	for at, conds := range taken {
		on = append(on, s.joins[at].on...)
		equal := slices.ContainsFunc(conds, func(c condition) bool { return c.equates })
		for _, c := range conds {
			if c.equates || !equal {
				on = append(on, c.among())
			} else {
				filters = append(filters, c)
			}
		}
	}
	slices.Sort(on)
	return filters, slices.Compact(on)
}

// joinOf is the join that pairs what c compares, if its ON leaves that to WHERE; else -1.
func (s rows) joinOf(c condition) int {
	for at := len(s.joins) - 1; at >= 0; at-- { // those above others first
		if p := s.joins[at]; p.spans(c) {
			if len(p.on) > 0 || p.plain {
				return -1
			}
			return at
		}
	}
	return -1
}

// parts are what inner joins have put together, or all of s.
func (s rows) parts() [][]string {
	if len(s.joins) == 0 {
		return [][]string{s.from}
	}
	return s.sides
}

// joined are the lines of what is read: what inner joins on some conditions put together,
// in any order.
func (s rows) joined(on []string) []string {
	if len(s.joins) == 0 {
		return s.from
	}
	sides := slices.Clone(s.sides)
	slices.SortStableFunc(sides, slices.Compare)
	line := "Join inner"
	if len(on) > 0 {
		line += " on " + strings.Join(on, " AND ")
	}
	return append([]string{short(line, longestLine)}, indented(rows{from: slices.Concat(sides...)})...)
}
