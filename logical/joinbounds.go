package logical

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
)

// JoinBound says when a row of one side of a join of two streams can match nothing
// that is still to come: once the value of Time, plus Offset microseconds, is passed
// by the watermark.
type JoinBound struct {
	Time   expr.Expr // over the columns of the row's side, TIMESTAMP
	Offset int64
	Mark   EventTime // of the watermark that passes it
}

// JoinBounds finds how long the rows of each side of a join must be kept; nil: for
// ever. Either a key of the equalities carries a watermark, of either side; or the
// condition bounds the other side's event time by the row's, as in
// r.ts <= l.ts + INTERVAL '1 hour'.
func JoinBounds(j *Join) (left, right *JoinBound) {
	l, r := EventTimes(j.Left), EventTimes(j.Right)
	for _, c := range expr.Conjuncts(j.On) {
		op, a, b, ok := acrossSides(c, j.Left.Schema(), j.Right.Schema())
		if !ok {
			continue
		}
		switch op {
		case "=":
			mark, marked := markOf(a, l)
			if !marked {
				mark, marked = markOf(b, r)
			}
			if marked && mark.Kind != SessionTime {
				left, right = &JoinBound{a, mark.Offset, mark}, &JoinBound{b, mark.Offset, mark}
				return left, right
			}
		case ">", ">=": // left >= right: bounds the right side's time for a left row
			left = rangeBound(left, a, b, r, op == ">")
		case "<", "<=":
			right = rangeBound(right, b, a, l, op == "<")
		}
	}
	return left, right
}

// HasEquality says whether the condition of a join equates something of both sides.
func HasEquality(j *Join) bool {
	for _, c := range expr.Conjuncts(j.On) {
		if op, _, _, ok := acrossSides(c, j.Left.Schema(), j.Right.Schema()); ok && op == "=" {
			return true
		}
	}
	return false
}

// acrossSides takes a comparison apart that has one side of the join on each side,
// turned so that left's comes first.
func acrossSides(e expr.Expr, left, right *Schema) (op string, l, r expr.Expr, ok bool) {
	c, isCall := e.(*expr.Call)
	if !isCall || len(c.Args) != 2 {
		return "", nil, nil, false
	}
	turned, isComparison := turnedAround[c.Func.Name]
	if !isComparison {
		return "", nil, nil, false
	}
	of := func(e expr.Expr, s *Schema) bool {
		ids := expr.Columns(e)
		return len(ids) > 0 && s.Has(ids...)
	}
	switch a, b := c.Args[0], c.Args[1]; {
	case of(a, left) && of(b, right):
		return c.Func.Name, a, b, true
	case of(a, right) && of(b, left):
		return turned, b, a, true
	}
	return "", nil, nil, false
}

var turnedAround = map[string]string{"=": "=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

// rangeBound reads own >= other, the other side's event time being marked in marks. Of
// several conditions the first counts.
func rangeBound(known *JoinBound, own, other expr.Expr, marks map[expr.ID]EventTime, strict bool) *JoinBound {
	if known != nil || own.Type().ID() != arrow.TIMESTAMP {
		return known
	}
	time, plus, ok := shifted(own)
	if !ok {
		return nil
	}
	event, minus, ok := shifted(other)
	if !ok {
		return nil
	}
	mark, ok := markOf(event, marks)
	if !ok || mark.Kind != RawTime {
		return nil
	}
	// event <= time + plus - minus: no later row has an event at or before the watermark.
	offset := plus - minus
	if strict {
		offset--
	}
	return &JoinBound{time, offset, mark}
}

// shifted reads time, time + INTERVAL and time - INTERVAL, of fixed length.
func shifted(e expr.Expr) (time expr.Expr, us int64, ok bool) {
	c, isCall := e.(*expr.Call)
	if !isCall || len(c.Args) != 2 || c.Func.Name != "+" && c.Func.Name != "-" {
		return e, 0, true
	}
	base, interval := c.Args[0], c.Args[1]
	if c.Func.Name == "+" && base.Type().ID() != arrow.TIMESTAMP {
		base, interval = interval, base
	}
	l, isLiteral := interval.(*expr.Literal)
	if !isLiteral || base.Type().ID() != arrow.TIMESTAMP {
		return nil, 0, false
	}
	v, isInterval := l.Value.(*array.MonthDayNanoInterval)
	if !isInterval || l.IsNull() || v.Value(0).Months != 0 {
		return nil, 0, false
	}
	length := int64(v.Value(0).Days)*columnar.MicrosPerDay + v.Value(0).Nanoseconds/1000
	if c.Func.Name == "-" {
		length = -length
	}
	time, us, ok = shifted(base)
	return time, us + length, ok
}
