package logical

import (
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// Check says whether a streaming plan is legal in an output mode, and if not, why and
// what would work (an *UnsupportedError).
func Check(n Node, mode connector.OutputMode) error {
	if !IsStreaming(n) {
		return &UnsupportedError{What: "a query without a stream", Reason: "it ends by itself",
			Remedy: "run it with the query command, or read a CREATE STREAM"}
	}
	if mode == connector.Complete && !hasStreamingAggregate(n) {
		return &UnsupportedError{What: "output mode complete", Reason: "nothing is aggregated, so the whole result would be every row ever read",
			Remedy: "use output_mode = 'append'"}
	}
	n, err := StreamJoins(n)
	if err != nil {
		return err
	}
	if err := checkAllGroups(n); err != nil {
		return err
	}
	return check(n, mode, above{})
}

// above is what stands above a node.
type above struct {
	aggregate bool   // a streaming aggregate
	stateful  string // the next operator that keeps state, "" if there is none
}

func (a above) under(operator string) above {
	return above{aggregate: a.aggregate || operator == aggregation, stateful: operator}
}

const aggregation = "an aggregate"

// check visits n.
func check(n Node, mode connector.OutputMode, up above) error {
	if !IsStreaming(n) {
		return nil
	}
	var err error
	below := up
	switch x := n.(type) {
	case *Aggregate:
		err = checkAggregate(x, mode, up)
		below = up.under(aggregation)
	case *Distinct:
		err = checkDistinct(x, mode, up)
		below = up.under("DISTINCT ON")
		if x.On == nil && !x.WithinWatermark {
			below = up.under(aggregation)
		}
	case *Sort:
		switch {
		case up.aggregate:
			err = orderedAggregate()
		case mode != connector.Complete || !hasStreamingAggregate(x.Input):
			err = &UnsupportedError{What: "ORDER BY on a stream", Reason: "a stream has no end after which it could be sorted",
				Remedy: "sort what reads the output, or aggregate and use output_mode = 'complete'"}
		}
	case *Limit:
		err = checkLimit(x, mode)
	case *Join:
		if joinsOrders(x) {
			break // the query has no join: what it asks for is refused below
		}
		err = checkJoin(x, mode)
		if IsStreaming(x.Left) && IsStreaming(x.Right) {
			below = up.under("a join of streams")
		}
	case *AsofJoin:
		err = checkAsofJoin(x)
	case *MapGroups:
		err = checkMapGroups(x, mode, up)
		below = up.under(x.Function.Spec().Verb)
	case *Union:
		err = checkUnion(x)
	case *SetOp:
		err = &UnsupportedError{What: strings.ToUpper(x.Kind.String()) + " on a stream", Reason: "which rows remain is known only at the end",
			Remedy: "use a semi or anti join against a bounded table"}
	case *Over:
		err = &UnsupportedError{What: "a window function (OVER) on a stream", Reason: "rows still to come would change the values of rows already sent",
			Remedy: "group by an event-time window, keep one row for each key with DISTINCT ON, or compute it in a query over the output"}
	case *Window:
		if x.IsSession() && !up.aggregate {
			err = ungroupedSession()
		}
	}
	if err != nil {
		return err
	}
	for _, c := range n.Children() {
		if err := check(c, mode, below); err != nil {
			return err
		}
	}
	return nil
}

// orderedAggregate refuses an order of the rows that an aggregate reads, which ORDER BY asks
// for, or an aggregate that is rewritten to one with it.
func orderedAggregate() error {
	return &UnsupportedError{What: "ORDER BY inside or below an aggregate, or the n largest or smallest values (max(x, n)), on a stream",
		Reason: "the rows of a group arrive over many batches, in whatever order",
		Remedy: "collect the values with what orders them, array_sort(collect_list(struct(ts, x))), or aggregate in a query over the output"}
}

// joinsOrders says whether the join is of the groups of one aggregate, which the query asks
// for in more than one order.
func joinsOrders(j *Join) bool {
	a, ok := j.Right.(*Aggregate)
	if !ok {
		return false
	}
	_, ok = a.Input.(*Sort)
	return ok
}

func checkUnion(u *Union) error {
	for _, in := range u.Inputs {
		if !IsStreaming(in) {
			return &UnsupportedError{What: "UNION of a stream and a bounded table", Reason: "the table's rows belong to no batch",
				Remedy: "declare the table as a stream, too"}
		}
	}
	return nil
}

func hasStreamingAggregate(n Node) bool {
	found := false
	Walk(n, func(x Node) bool {
		switch a := x.(type) {
		case *Aggregate:
			found = found || IsStreaming(a)
		case *Distinct:
			found = found || a.On == nil && IsStreaming(a)
		}
		return !found
	})
	return found
}

// ClosingKey is the grouping key whose groups a watermark finishes, if possible one
// that needs no offset; ok is false if there is none.
func ClosingKey(a *Aggregate) (key expr.Named, mark EventTime, ok bool) {
	below := eventTimes(a.Input)
	session := openSession(a.Input)
	closed := session != nil && !below[session.End.ID].IsOpen // its start alone means it whole
	for _, k := range a.Keys {
		if m, found := markOf(k.Expr, below); found && (closed || !m.IsOpen) {
			if !ok || m.Offset == 0 && mark.Offset != 0 || mark.IsOpen && !m.IsOpen {
				key, mark, ok = k, m, true
			}
		}
	}
	return key, mark, ok
}

func checkAggregate(a *Aggregate, mode connector.OutputMode, up above) error {
	if up.stateful != "" && mode != connector.Append {
		return &UnsupportedError{What: fmt.Sprintf("an aggregate below %s in output mode %s", up.stateful, mode),
			Reason: "a revised group could not be taken back above", Remedy: "use output_mode = 'append', or write the inner result to files and read those"}
	}
	if w := openSession(a.Input); w != nil {
		if err := checkSession(a, w); err != nil {
			return err
		}
	}
	_, _, closes := ClosingKey(a)
	if mode == connector.Append && !closes {
		remedy := "group by a window of a column with a WATERMARK"
		if !joinsStreams(a.Input) { // else no other mode works
			remedy += ", or use output_mode = 'update' or 'complete'"
		}
		return &UnsupportedError{What: "an aggregate in output mode append", Reason: "without a watermark on a grouping key no group is ever finished", Remedy: remedy}
	}
	if mode == connector.Update && openSession(a.Input) != nil {
		return &UnsupportedError{What: "a session window in output mode update", Reason: "sessions already sent may merge later",
			Remedy: "use output_mode = 'append' or 'complete'"}
	}
	return nil
}

// joinsStreams says whether two streams are joined in n or below it.
func joinsStreams(n Node) bool {
	found := false
	Walk(n, func(x Node) bool {
		j, ok := x.(*Join)
		found = found || ok && IsStreaming(j.Left) && IsStreaming(j.Right)
		return !found
	})
	return found
}

// groupsBy says whether a bound of w, handed on as it is, is a key of a.
func groupsBy(a *Aggregate, w *Window) bool {
	for _, k := range a.Keys {
		if c, ok := k.Expr.(*expr.Column); ok {
			if id := origin(a.Input, c.ID); id == w.Start.ID || id == w.End.ID {
				return true
			}
		}
	}
	return false
}

// keyedAlike says whether a groups by the window w and exactly its partition keys.
func keyedAlike(a *Aggregate, w *Window) bool {
	used := map[expr.ID]bool{}
	for _, k := range w.PartitionKeys {
		c, ok := k.(*expr.Column)
		if !ok {
			return false
		}
		used[origin(w.Input, c.ID)] = false
	}
	for _, k := range a.Keys {
		c, ok := k.Expr.(*expr.Column)
		if !ok {
			return false
		}
		id := origin(a.Input, c.ID)
		if id == w.Start.ID || id == w.End.ID {
			continue
		}
		if _, ok := used[id]; !ok {
			return false
		}
		used[id] = true
	}
	for _, ok := range used {
		if !ok {
			return false
		}
	}
	return true
}

// origin follows a column of n down to where it is made.
func origin(n Node, id expr.ID) expr.ID {
	switch x := n.(type) {
	case *Project:
		for _, c := range x.Columns {
			if c.ID != id {
				continue
			}
			if col, ok := c.Expr.(*expr.Column); ok {
				return origin(x.Input, col.ID)
			}
		}
		return id
	case *Union:
		if i := x.Output.Index(id); i >= 0 {
			return origin(x.Inputs[0], x.Inputs[0].Schema().Columns[i].ID)
		}
		return id
	}
	for _, c := range n.Children() {
		if c.Schema().Has(id) {
			return origin(c, id)
		}
	}
	return id
}

// BoundOf is the tumbling or hopping window that an expression over n is a bound of, as it
// is, and which one; nil if it is none.
func BoundOf(n Node, e expr.Expr) (w *Window, isEnd bool) {
	c, ok := e.(*expr.Column)
	if !ok {
		return nil, false
	}
	switch x := n.(type) {
	case *Project:
		for _, p := range x.Columns {
			if p.ID == c.ID {
				return BoundOf(x.Input, p.Expr)
			}
		}
	case *Filter:
		return BoundOf(x.Input, e)
	case *Alias:
		return BoundOf(x.Input, e)
	case *Window:
		switch {
		case x.Input.Schema().Has(c.ID):
			return BoundOf(x.Input, e)
		case !x.IsSession() && (c.ID == x.Start.ID || c.ID == x.End.ID):
			return x, c.ID == x.End.ID
		}
	}
	return nil, false
}

func checkDistinct(d *Distinct, mode connector.OutputMode, up above) error {
	if openSession(d.Input) != nil {
		return &UnsupportedError{What: "DISTINCT over SESSION on a stream", Reason: "a session's bounds are known only once its rows are grouped",
			Remedy: "GROUP BY window_start, window_end and the keys of SESSION"}
	}
	if d.On == nil && !d.WithinWatermark {
		if _, _, closes := ClosingKey(NewAggregate(d.Input, passAll(d.Input.Schema()), nil)); mode == connector.Append && !closes {
			return &UnsupportedError{What: "SELECT DISTINCT in output mode append", Reason: "without a watermark on one of its columns no row that was seen can ever be forgotten",
				Remedy: "SELECT DISTINCT ON (columns) … sends the first row of each key at once, and with WITHIN WATERMARK forgets it in time; or use output_mode = 'update' or 'complete'"}
		}
		return checkAggregate(NewAggregate(d.Input, passAll(d.Input.Schema()), nil), mode, up)
	}
	if mode == connector.Complete && !up.aggregate {
		return &UnsupportedError{What: "DISTINCT ON in output mode complete", Reason: "the whole result would be every row kept so far",
			Remedy: "use output_mode = 'append', or aggregate above it"}
	}
	if !d.WithinWatermark {
		return nil
	}
	labels := map[string]bool{}
	for _, m := range EventTimes(d.Input) {
		if !m.IsOpen {
			labels[m.Label] = true
		}
	}
	switch len(labels) {
	case 0:
		return &UnsupportedError{What: "DISTINCT ON … WITHIN WATERMARK", Reason: "the stream has no watermark",
			Remedy: "add WATERMARK FOR column AS column - INTERVAL '…' to CREATE STREAM"}
	case 1:
		return nil
	}
	return &UnsupportedError{What: "DISTINCT ON … WITHIN WATERMARK over two event times", Reason: "a row has no single time to expire by",
		Remedy: "keep the event time of one side only, in a subquery"}
}

func passAll(s *Schema) []expr.Named {
	out := make([]expr.Named, len(s.Columns))
	for i, c := range s.Columns {
		out[i] = expr.Pass(c)
	}
	return out
}

func checkLimit(l *Limit, mode connector.OutputMode) error {
	if l.Offset > 0 {
		return &UnsupportedError{What: "OFFSET on a stream", Reason: "which rows are skipped would depend on the batches",
			Remedy: "leave it out, or filter by a column"}
	}
	if mode == connector.Update {
		return &UnsupportedError{What: "LIMIT in output mode update", Reason: "rows sent before would have to be taken back",
			Remedy: "use output_mode = 'append' or 'complete'"}
	}
	return nil
}

func checkJoin(j *Join, mode connector.OutputMode) error {
	left, right := IsStreaming(j.Left), IsStreaming(j.Right)
	refuse := func(reason, remedy string) error {
		what := fmt.Sprintf("%s join of %s with %s", article(j.Kind), side(left), side(right))
		switch {
		case j.Subquery == "":
		case j.Kind == SemiJoin || j.Kind == AntiJoin:
			what = fmt.Sprintf("%s over a stream, which is %s,", j.Subquery, what)
		default: // a value
			return &UnsupportedError{What: j.Subquery + " over a stream", Reason: "its value changes while the stream goes on, after rows with the old one were sent",
				Remedy: "declare its input with CREATE TABLE over the files, which is read again for each batch, or compute it in a query over the output"}
		}
		return &UnsupportedError{What: what, Reason: reason, Remedy: remedy}
	}
	switch {
	case left && right:
		if mode != connector.Append {
			return refuse("its result cannot be revised", "use output_mode = 'append'")
		}
		if j.Kind == AntiJoin {
			return refuse("every later row could change the result", "use a left join with an equality and a bound in time, and keep the rows whose right side IS NULL")
		}
		if !HasEquality(j) {
			return refuse("every row would have to be compared with every other", "use an inner, left, right, full or semi join with an equality, such as l.id = r.id")
		}
		if isVolatile(j.On) {
			return refuse("its condition is another whenever it is computed", "compute the random value in a column of one side, in a subquery")
		}
		if l, r := JoinBounds(j); waitsForEver(j.Kind, l != nil, r != nil) {
			reason := "without a bound in time no row is ever known to have no match"
			if j.Kind == SemiJoin {
				reason = "without a bound in time a row must be kept for ever, in case it finds a match"
			}
			return refuse(reason, boundRemedy(j))
		}
	case left && (j.Kind == RightJoin || j.Kind == FullJoin):
		return refuse("the table's unmatched rows are never final", "use a left or inner join")
	case right && j.Kind == SemiJoin: // IN, EXISTS
		return refuse("rows of the table belong to no batch in which they could be sent", "put the stream on the left, or join them and keep one row of each: SELECT DISTINCT ON (key) …")
	case right && j.Kind == AntiJoin: // NOT IN, NOT EXISTS
		return refuse("every later row of the stream could change the result", "put the stream on the left, or compute it in a query over the output")
	case right && j.Kind != RightJoin && j.Kind != InnerJoin && j.Kind != CrossJoin:
		return refuse("the table's unmatched rows are never final", "put the stream on the left, or use a right or inner join")
	}
	return nil
}

// boundRemedy says what would bound a join of streams: first of all a watermark on the side
// by whose progress the other one's rows are known to be past.
func boundRemedy(j *Join) string {
	const bound = "join on a column with a WATERMARK, or add a range such as l.ts BETWEEN r.ts - INTERVAL '1 hour' AND r.ts"
	var bare []string
	for _, s := range []struct {
		node   Node
		needed bool
	}{{j.Left, j.Kind == RightJoin || j.Kind == FullJoin}, {j.Right, j.Kind != RightJoin}} {
		if s.needed && !hasWatermark(s.node) {
			bare = append(bare, streamsOf(s.node)...)
		}
	}
	if len(bare) == 0 {
		return bound
	}
	return "declare a WATERMARK in CREATE STREAM of " + strings.Join(bare, " and ") + ", and " + bound
}

func hasWatermark(n Node) bool {
	found := false
	Walk(n, func(x Node) bool {
		_, ok := x.(*Watermark)
		found = found || ok
		return !found
	})
	return found
}

// checkAsofJoin asks for a right side that is known whole.
func checkAsofJoin(j *AsofJoin) error {
	if !IsStreaming(j.Right) {
		return nil
	}
	remedy := "put the stream on the left, or run it with the query command, over the files there are"
	if IsStreaming(j.Left) {
		remedy = "declare the right one with CREATE TABLE over its files, which is read again for each batch, or join the streams by a range such as l.ts BETWEEN r.ts AND r.ts + INTERVAL '1 minute'"
	}
	return &UnsupportedError{What: fmt.Sprintf("an as-of join of %s with %s", side(IsStreaming(j.Left)), side(true)),
		Reason: "a row of the right side still to come may be nearer than the nearest so far", Remedy: remedy}
}

// waitsForEver says whether a join must know that a row has no match and never can;
// left and right say whether the rows of that side are bounded in time.
func waitsForEver(kind JoinKind, left, right bool) bool {
	switch kind {
	case LeftJoin, SemiJoin:
		return !left
	case RightJoin:
		return !right
	case FullJoin:
		return !left && !right
	}
	return false
}

func article(kind JoinKind) string {
	if kind == InnerJoin || kind == AntiJoin {
		return "an " + kind.String()
	}
	return "a " + kind.String()
}

func side(streaming bool) string {
	if streaming {
		return "a stream"
	}
	return "a bounded table"
}
