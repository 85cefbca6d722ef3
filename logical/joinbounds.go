package logical

import (
	"slices"

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
	// Range is set if a range of times bounds the row, not an equality: rows up to
	// Offset behind the watermark may still come out of the join.
	Range bool
	// Days is set if Offset counts days, which are not all of one length in a time zone
	// with summer time.
	Days bool
}

// zoneSlack is the most by which days of a time zone add up to another length than in
// UTC.
const zoneSlack = columnar.MicrosPerDay

// OffsetIn is Offset, longer where days count and the session's time zone is not UTC.
func (b *JoinBound) OffsetIn(utc bool) int64 {
	if b.Days && !utc {
		return b.Offset + zoneSlack
	}
	return b.Offset
}

// JoinBounds finds how long the rows of each side of a join must be kept; nil: for
// ever. Either a key of the equalities carries a watermark, of either side; or the
// condition bounds the other side's event time by the row's, as in
// r.ts <= l.ts + INTERVAL '1 hour'.
func JoinBounds(j *Join) (left, right *JoinBound) {
	l, r := eventTimes(j.Left), eventTimes(j.Right)
	for _, k := range withWindowEnds(PartsOf(j).Keys, l, r) {
		if left = keyBound(left, k.Left, k.Right, l, r); left != nil {
			right = keyBound(right, k.Right, k.Left, r, l)
			break
		}
		if right = keyBound(right, k.Right, k.Left, r, l); right != nil {
			break
		}
	}
	leftRange, rightRange := rangeBounds(j, l, r)
	if left == nil {
		left = leftRange
	}
	if right == nil {
		right = rightRange
	}
	return left, right
}

// withWindowEnds adds the equality of the ends to that of two structs, one of which is a
// window.
func withWindowEnds(keys []JoinKey, l, r map[expr.ID]EventTime) []JoinKey {
	all := slices.Clone(keys)
	for _, k := range keys {
		left, ok1 := anyMark(k.Left, l)
		right, ok2 := anyMark(k.Right, r)
		if !(ok1 && left.pair) && !(ok2 && right.pair) {
			continue
		}
		for i, f := range k.Left.Type().(*arrow.StructType).Fields() {
			if f.Name == "end" {
				all = append(all, JoinKey{Left: expr.NewField(k.Left, i), Right: expr.NewField(k.Right, i), NullSafe: k.NullSafe})
			}
		}
	}
	return all
}

// keyBound is the bound of rows of the side of own by an equality: no key to come from
// the other side is at or before the watermark, which the other key carries itself; or
// own carries it, and the other side has no event time at all.
func keyBound(known *JoinBound, own, other expr.Expr, ours, theirs map[expr.ID]EventTime) *JoinBound {
	if known != nil {
		return known
	}
	mark, ok := closingMark(other, theirs)
	if !ok && !readsMarked(other, theirs) {
		mark, ok = closingMark(own, ours)
	}
	if !ok {
		return nil
	}
	return &JoinBound{Time: own, Offset: mark.Offset, Mark: mark}
}

// readsMarked says whether e is computed from a column with a watermark: it then says
// nothing about the values of e that are still to come, unless e is that column.
func readsMarked(e expr.Expr, marks map[expr.ID]EventTime) bool {
	return slices.ContainsFunc(expr.Columns(e), func(id expr.ID) bool { _, ok := marks[id]; return ok })
}

// rangeBounds are the bounds by ranges of times.
func rangeBounds(j *Join, l, r map[expr.ID]EventTime) (left, right *JoinBound) {
	for _, c := range expr.Conjuncts(j.On) {
		for _, x := range timeRanges(c, j.Left.Schema(), j.Right.Schema()) {
			if x.leftLater {
				left = x.bound(left, x.left, x.right, r)
			} else {
				right = x.bound(right, x.right, x.left, l)
			}
		}
	}
	return left, right
}

// closingMark is the mark of a key by whose value rows are finished.
func closingMark(key expr.Expr, marks map[expr.ID]EventTime) (EventTime, bool) {
	m, ok := markOf(key, marks)
	return m, ok && !m.IsOpen && key.Type().ID() == arrow.TIMESTAMP
}

// timeRange is later + plus >= earlier, or > if strict, of times of the two sides.
type timeRange struct {
	left, right expr.Expr
	leftLater   bool
	plus        int64 // microseconds
	strict      bool
	days        bool
}

// bound is the bound of rows of the side of own, given one that is known already. The
// other side's event time is at most own plus x.plus, so no row to come matches once the
// watermark is beyond that, or there if equal is no match. Of bounds by one time the
// tightest counts, else the first.
func (x timeRange) bound(known *JoinBound, own, other expr.Expr, marks map[expr.ID]EventTime) *JoinBound {
	mark, ok := markOf(other, marks)
	if !ok || mark.Kind != RawTime || mark.IsOpen {
		return known
	}
	b := &JoinBound{Time: own, Offset: x.plus + mark.Offset, Mark: mark, Range: true, Days: x.days}
	if !x.strict {
		b.Offset++
	}
	if known != nil && (known.Time.String() != own.String() || known.Offset <= b.Offset) {
		return known
	}
	return b
}

// timeRanges reads a comparison of times of both sides, linear in them: l.ts >= r.ts -
// INTERVAL '1 hour' or l.ts - r.ts < INTERVAL '5 minutes', written in any arrangement. An
// equality is two ranges.
func timeRanges(e expr.Expr, left, right *Schema) []timeRange {
	op, a, b, ok := comparison(e)
	if !ok {
		return nil
	}
	var f linear
	if !f.add(a, 1) || !f.add(b, -1) || len(f.terms) != 2 {
		return nil
	}
	l, r := f.terms[0], f.terms[1]
	if isOver(r.time, left) {
		l, r = r, l
	}
	if !isOver(l.time, left) || !isOver(r.time, right) || l.sign+r.sign != 0 || l.sign != 1 && l.sign != -1 {
		return nil
	}
	if l.sign < 0 {
		op, f.plus, f.months = turnedAround[op], -f.plus, -f.months
	}
	// left - right + plus, compared with zero.
	x := timeRange{left: l.time, right: r.time, strict: (op == "<" || op == ">") && f.months == 0, days: f.days}
	leftLater, rightLater := x, x
	leftLater.leftLater, leftLater.plus = true, f.longest()
	f.plus, f.months = -f.plus, -f.months
	rightLater.plus = f.longest()
	switch op {
	case ">", ">=":
		return []timeRange{leftLater}
	case "<", "<=":
		return []timeRange{rightLater}
	}
	return []timeRange{leftLater, rightLater}
}

// comparison reads a comparison, or the negation of one.
func comparison(e expr.Expr) (op string, a, b expr.Expr, ok bool) {
	c, isCall := e.(*expr.Call)
	if !isCall {
		return "", nil, nil, false
	}
	if c.Func.Name == "not" && len(c.Args) == 1 {
		op, a, b, ok = comparison(c.Args[0])
		op, known := negated[op]
		return op, a, b, ok && known
	}
	if _, ok = turnedAround[c.Func.Name]; !ok || len(c.Args) != 2 {
		return "", nil, nil, false
	}
	return c.Func.Name, c.Args[0], c.Args[1], true
}

var (
	turnedAround = map[string]string{"=": "=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
	negated      = map[string]string{"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
)

// linear is a sum of times, each with a factor, and a constant length.
type linear struct {
	terms  []timeTerm
	plus   int64 // microseconds
	months int64
	days   bool // plus counts days
}

// longest is the greatest length that plus and the months can have, in microseconds: a
// month added has 31 days at most, one taken away 28 at least.
func (f *linear) longest() int64 {
	days := int64(31)
	if f.months < 0 {
		days = 28
	}
	return f.plus + f.months*days*columnar.MicrosPerDay
}

type timeTerm struct {
	time expr.Expr // TIMESTAMP, not a sum itself
	sign int64
}

// add adds e, a TIMESTAMP or an INTERVAL, times sign. It is false where e is not
// linear.
func (f *linear) add(e expr.Expr, sign int64) bool {
	if l, ok := e.(*expr.Literal); ok {
		return f.addLength(l, sign)
	}
	if c, ok := e.(*expr.Call); ok {
		switch name := c.Func.Name; {
		case name == "+" && len(c.Args) == 2:
			return f.add(c.Args[0], sign) && f.add(c.Args[1], sign)
		case name == "-" && len(c.Args) == 2:
			return f.add(c.Args[0], sign) && f.add(c.Args[1], -sign)
		case name == "-" && len(c.Args) == 1:
			return f.add(c.Args[0], -sign)
		case name == "*" && len(c.Args) == 2:
			if n, ok := wholeNumber(c.Args[1]); ok {
				return f.add(c.Args[0], sign*n)
			}
			n, ok := wholeNumber(c.Args[0])
			return ok && f.add(c.Args[1], sign*n)
		}
	}
	if e.Type().ID() != arrow.TIMESTAMP {
		return false
	}
	for i, t := range f.terms {
		if t.time.String() == e.String() {
			if f.terms[i].sign += sign; f.terms[i].sign == 0 {
				f.terms = append(f.terms[:i], f.terms[i+1:]...)
			}
			return true
		}
	}
	f.terms = append(f.terms, timeTerm{e, sign})
	return true
}

// maxMonths keeps the length of an interval within what a TIMESTAMP can hold.
const maxMonths = 12 * 100_000

// addLength adds an INTERVAL.
func (f *linear) addLength(l *expr.Literal, times int64) bool {
	v, ok := l.Value.(*array.MonthDayNanoInterval)
	if !ok || l.IsNull() {
		return false
	}
	f.months += times * int64(v.Value(0).Months)
	if f.months < -maxMonths || f.months > maxMonths {
		return false
	}
	f.plus += times * (int64(v.Value(0).Days)*columnar.MicrosPerDay + v.Value(0).Nanoseconds/1000)
	f.days = f.days || v.Value(0).Days != 0 || v.Value(0).Months != 0
	return true
}

// wholeNumber reads a literal, perhaps cast, of a small whole number.
func wholeNumber(e expr.Expr) (int64, bool) {
	if c, ok := e.(*expr.Cast); ok && columnar.IsInteger(c.To) {
		e = c.Input
	}
	l, ok := e.(*expr.Literal)
	if !ok || l.IsNull() {
		return 0, false
	}
	var n int64
	switch v := l.Value.(type) {
	case *array.Int8:
		n = int64(v.Value(0))
	case *array.Int16:
		n = int64(v.Value(0))
	case *array.Int32:
		n = int64(v.Value(0))
	case *array.Int64:
		n = v.Value(0)
	default:
		return 0, false
	}
	return n, -1<<20 < n && n < 1<<20
}
