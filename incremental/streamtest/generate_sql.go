package streamtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/logical/connector"
)

func (q *genQuery) isSession() bool { return strings.HasPrefix(q.Window, "SESSION") }

// twoStreams says whether the query reads u, too.
func (q *genQuery) twoStreams() bool { return q.Union || q.Stream != "" }

// isJoined says whether the columns of dim are there.
func (q *genQuery) isJoined() bool { return q.Join == "JOIN" || q.Join == "LEFT JOIN" }

// notLate holds for rows that are not late by their time.
const notLate = "lw IS NULL OR ts IS NULL OR ts > lw"

// rows is what the query reads. Bounded streams have a column lw, the watermark by which
// the row was judged; rows that are late by it are left out, here or above.
func (q *genQuery) rows(bounded bool) string {
	columns := genColumns
	if bounded {
		columns += ", lw"
	}
	from := "t"
	switch {
	case q.Union:
		from = fmt.Sprintf("(SELECT %s FROM t UNION ALL SELECT %s FROM u)", columns, columns)
	case q.Stream != "":
		from = q.joined(bounded)
	case bounded || q.Window != "":
		from = fmt.Sprintf("(SELECT %s FROM t)", columns)
	}
	if q.Dedup != "" {
		where := ""
		if bounded && q.Watermark != "" {
			where = " WHERE " + notLate
		}
		from = fmt.Sprintf("(SELECT DISTINCT ON (%s) %s FROM %s z%s)", q.Dedup, columns, from, where)
	}
	if q.Below > 0 {
		from = fmt.Sprintf("(SELECT %s FROM %s z LIMIT %d)", columns, from, q.Below)
	}
	return from
}

// joined is t joined with u, with the columns of t. Nothing above such a join is late.
func (q *genQuery) joined(bounded bool) string {
	columns, left, right := "l."+strings.ReplaceAll(genColumns, ", ", ", l."), "t", "u"
	if bounded {
		columns += ", CAST(NULL AS TIMESTAMP) AS lw"
		left, right = "(SELECT * FROM t WHERE "+notLate+")", "(SELECT * FROM u WHERE "+notLate+")"
	}
	return fmt.Sprintf("(SELECT %s FROM %s l %s %s r ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL '%d seconds' AND l.ts + INTERVAL '%d seconds')",
		columns, left, q.Stream, right, q.Before, q.After)
}

// from is the FROM clause. The batch takes windows but sessions from table functions always.
func (q *genQuery) from(bounded bool) string {
	from := q.rows(bounded)
	if bounded && q.isSession() && q.Mode != connector.Complete {
		_, gap, _ := strings.Cut(q.Window, " ")
		from = fmt.Sprintf("(SELECT * FROM %s z WHERE lw IS NULL OR ts + INTERVAL '%s seconds' > lw)", from, gap)
	}
	if q.Window == "" || q.asExpression(bounded) {
		if from != "t" {
			from += " t"
		}
		return from + q.join()
	}
	time := "ts"
	if q.Offset != 0 {
		time = "shifted"
		from = fmt.Sprintf("(SELECT *, ts - INTERVAL '%d seconds' AS shifted FROM %s z)", q.Offset, from)
	}
	function, sizes := q.sizes()
	if q.isSession() {
		// SESSION makes sessions of all the rows it is given, by its keys.
		from = fmt.Sprintf("(SELECT * FROM %s z%s)", from, q.where(bounded))
		sizes = append(sizes, q.Keys...)
	}
	return fmt.Sprintf("%s(%s, %s, %s) t%s", function, from, time, strings.Join(sizes, ", "), q.join())
}

// asExpression says whether the window is a grouping expression, not a table function.
func (q *genQuery) asExpression(bounded bool) bool {
	return q.Grouped && (!bounded || q.isSession())
}

// sizes are the function of a window and its intervals.
func (q *genQuery) sizes() (function string, sizes []string) {
	words := strings.Fields(q.Window)
	for _, n := range words[1:] {
		sizes = append(sizes, fmt.Sprintf("INTERVAL '%s seconds'", n))
	}
	return words[0], sizes
}

// window is the window as a grouping expression.
func (q *genQuery) window() (name, call string) {
	function, sizes := q.sizes()
	switch {
	case function == "SESSION":
		return "session_window", fmt.Sprintf("session_window(ts, %s)", sizes[0])
	case function == "HOP":
		slices.Reverse(sizes)
	case q.Offset != 0:
		sizes = append(sizes, sizes[0])
	}
	if q.Offset != 0 {
		sizes = append(sizes, fmt.Sprintf("INTERVAL '%d seconds'", q.Offset))
	}
	return "window", fmt.Sprintf("window(ts, %s)", strings.Join(sizes, ", "))
}

func (q *genQuery) join() string {
	if q.Join == "" {
		return ""
	}
	return fmt.Sprintf(" %s (SELECT k AS dk, name, w FROM dim) x ON k = x.dk", q.Join)
}

// windowColumns are the select items and grouping expressions of the window. time is
// what its rows are windowed by again.
func (q *genQuery) windowColumns(bounded bool) (items, groups []string, time string) {
	switch {
	case q.Window == "":
		return nil, nil, ""
	case q.asExpression(bounded):
		name, call := q.window()
		return []string{name + ".start", name + ".end"}, []string{call}, "window_time(" + name + ")"
	}
	items, groups, time = []string{"window_start", "window_end"}, []string{"window_start", "window_end"}, "window_end"
	if q.Offset != 0 {
		shift := fmt.Sprintf(" + INTERVAL '%d seconds'", q.Offset)
		items, time = []string{"window_start" + shift, "window_end" + shift}, "window_end"+shift
	}
	if q.Grouped {
		time += " - INTERVAL '1 microsecond'"
	}
	return items, groups, time
}

// where are the conditions on rows: those of the query, and of the batch that they were
// not late and are closed in the end.
func (q *genQuery) where(bounded bool) string {
	where := slices.Clone(q.Where)
	if bounded && q.Watermark != "" && q.Mode != connector.Complete {
		switch {
		case q.Window == "":
			where = append(where, notLate)
		case !q.isSession():
			where = append(where, fmt.Sprintf("lw IS NULL OR window_end + INTERVAL '%d seconds' > lw", q.Offset))
		}
		if q.Mode == connector.Append {
			where = append(where, q.closed())
		}
	}
	if len(where) == 0 {
		return ""
	}
	return " WHERE (" + strings.Join(where, ") AND (") + ")"
}

// sql is the query, for the stream or for the batch.
func (q *genQuery) sql(bounded bool) string {
	items, groups, time := q.windowColumns(bounded)
	if q.Rollup {
		groups = append(groups, "ROLLUP ("+strings.Join(q.Keys, ", ")+")")
	} else {
		groups = append(groups, q.Keys...)
	}
	if q.Kind != distinctOn {
		items = append(items, q.Keys...)
	}
	items = append(append(items, q.Items...), q.Aggs...)
	for i := range items {
		items[i] += fmt.Sprintf(" AS c%d", i)
	}
	if q.Outer > 0 {
		items = append(items, time+" AS wt")
	}
	head := "SELECT "
	switch q.Kind {
	case distinct:
		head += "DISTINCT "
	case distinctOn:
		head += fmt.Sprintf("DISTINCT ON (%s) ", strings.Join(q.Keys, ", "))
	}
	text := head + strings.Join(items, ", ") + " FROM " + q.from(bounded)
	if !q.isSession() || q.Grouped {
		text += q.where(bounded)
	}
	if q.Kind == aggregated && len(groups) > 0 {
		text += " GROUP BY " + strings.Join(groups, ", ")
	}
	if q.Having != "" {
		text += " HAVING " + q.Having
	}
	return q.above(text, len(items))
}

// above is what stands above the select list of n items.
func (q *genQuery) above(text string, n int) string {
	if q.Top > 0 {
		order := make([]string, n)
		for i := range order {
			order[i] = fmt.Sprintf("c%d", i)
		}
		text += fmt.Sprintf(" ORDER BY %s LIMIT %d", strings.Join(order, ", "), q.Top)
	}
	switch {
	case q.Chain && q.Outer > 0:
		text = fmt.Sprintf("SELECT window_start AS c0, window_end AS c1, count(*) AS n, min(c2) AS least, max(c2) AS most FROM TUMBLE((%s), wt, INTERVAL '%d seconds') q GROUP BY window_start, window_end",
			text, q.Outer)
	case q.Chain:
		text = "SELECT c0, c1, count(*) AS n, min(c2) AS least, max(c2) AS most FROM (" + text + ") q GROUP BY c0, c1"
	}
	if q.Count > 0 {
		text += fmt.Sprintf(" LIMIT %d", q.Count)
	}
	return text
}

// closed is the condition for the rows that a stream has given in the end: all but those
// of the sentinel, and of aggregates those without a time. What removes duplicates gives a
// row at first sight.
func (q *genQuery) closed() string {
	switch {
	case q.Kind == distinctOn || q.Kind == distinct && q.Stream == "":
		return "true"
	case q.Stream == "" && q.Window == "" && q.Watermark == "0 seconds":
		return "ts IS NOT NULL" // the sentinel's own group is closed by it
	}
	return "ts < TIMESTAMP '2099-01-01T00:00:00Z'"
}

// keyColumns is how many output columns identify a row in update mode.
func (q *genQuery) keyColumns() int {
	n := len(q.Keys)
	if q.Window != "" {
		n += 2
	}
	if q.Kind == distinct {
		n = len(q.Items)
	}
	return n
}
