package logical

import (
	"fmt"

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
	return check(n, mode, false)
}

// check visits n; above says whether a streaming aggregate stands above it.
func check(n Node, mode connector.OutputMode, above bool) error {
	if !IsStreaming(n) {
		return nil
	}
	var err error
	switch x := n.(type) {
	case *Aggregate:
		err = checkAggregate(x, mode)
		above = true
	case *Distinct:
		err = checkDistinct(x, mode)
	case *Sort:
		if mode != connector.Complete || !hasStreamingAggregate(x.Input) {
			err = &UnsupportedError{What: "ORDER BY on a stream", Reason: "a stream has no end after which it could be sorted",
				Remedy: "sort what reads the output, or aggregate and use output_mode = 'complete'"}
		}
	case *Limit:
		err = checkLimit(x, mode)
	case *Join:
		err = checkJoin(x, mode)
	case *Union:
		for _, in := range x.Inputs {
			if !IsStreaming(in) {
				err = &UnsupportedError{What: "UNION of a stream and a bounded table", Reason: "the table's rows belong to no batch",
					Remedy: "declare the table as a stream, too"}
			}
		}
	case *SetOp:
		err = &UnsupportedError{What: x.Kind.String() + " on a stream", Reason: "which rows remain is known only at the end",
			Remedy: "use a semi or anti join against a bounded table"}
	case *Window:
		if x.IsSession() && !above {
			err = &UnsupportedError{What: "SESSION without grouping by its window on a stream", Reason: "a session's bounds are known only once its rows are grouped",
				Remedy: "GROUP BY window_start, window_end"}
		}
	}
	if err != nil {
		return err
	}
	for _, c := range n.Children() {
		if err := check(c, mode, above); err != nil {
			return err
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

// ClosingKey is the grouping key whose groups a watermark finishes; ok is false if
// there is none.
func ClosingKey(a *Aggregate) (key expr.Named, mark EventTime, ok bool) {
	below := EventTimes(a.Input)
	for _, k := range a.Keys {
		if m, found := markOf(k.Expr, below); found {
			if !ok || m.Offset == 0 && mark.Offset != 0 {
				key, mark, ok = k, m, true
			}
		}
	}
	return key, mark, ok
}

func checkAggregate(a *Aggregate, mode connector.OutputMode) error {
	_, mark, closes := ClosingKey(a)
	if mode == connector.Append && !closes {
		return &UnsupportedError{What: "an aggregate in output mode append", Reason: "without a watermark on a grouping key no group is ever finished",
			Remedy: "group by a window of a column with a WATERMARK, or use output_mode = 'update' or 'complete'"}
	}
	if mode == connector.Update && closes && mark.Kind == SessionTime {
		return &UnsupportedError{What: "a session window in output mode update", Reason: "sessions already sent may merge later",
			Remedy: "use output_mode = 'append' or 'complete'"}
	}
	return nil
}

func checkDistinct(d *Distinct, mode connector.OutputMode) error {
	if d.WithinWatermark && len(EventTimes(d.Input)) == 0 {
		return &UnsupportedError{What: "DISTINCT ON … WITHIN WATERMARK", Reason: "the stream has no watermark",
			Remedy: "add WATERMARK FOR column AS column - INTERVAL '…' to CREATE STREAM"}
	}
	if d.On == nil && !d.WithinWatermark {
		return checkAggregate(NewAggregate(d.Input, passAll(d.Input.Schema()), nil), mode)
	}
	return nil
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
		return &UnsupportedError{What: fmt.Sprintf("a %s join of %s with %s", j.Kind, side(left), side(right)), Reason: reason, Remedy: remedy}
	}
	switch {
	case left && right:
		if mode != connector.Append {
			return refuse("its result cannot be revised", "use output_mode = 'append'")
		}
		if j.Kind == AntiJoin || j.Kind == CrossJoin {
			return refuse("every later row could change the result", "use an inner, left, right, full or semi join with an equality")
		}
	case left && (j.Kind == RightJoin || j.Kind == FullJoin):
		return refuse("the table's unmatched rows are never final", "use a left or inner join")
	case right && j.Kind != RightJoin && j.Kind != InnerJoin && j.Kind != CrossJoin:
		return refuse("the table's unmatched rows are never final", "put the stream on the left, or use a right or inner join")
	}
	return nil
}

func side(streaming bool) string {
	if streaming {
		return "a stream"
	}
	return "a bounded table"
}
