package tidemill

import (
	"time"

	"github.com/tidemill/tidemill/logical/expr"
)

// Term is an expression of a DataFrame: a column, a constant, or what its methods and
// the functions of this file make of them. It is a value; what is wrong with it is
// reported by whatever uses the DataFrame.
type Term = expr.Term

// Col is a column, by name or as table.name, or a field of a struct as column.field.
func Col(name string) Term { return expr.Col(name) }

// Lit is a constant: a Go bool, integer, float, string, []byte, time.Time,
// time.Duration (an INTERVAL) or nil.
func Lit(v any) Term { return expr.Lit(v) }

// Func calls any function of the registry by name, registered ones too.
func Func(name string, args ...Term) Term { return expr.Func(name, args...) }

// When begins CASE WHEN cond THEN value; go on with When and Otherwise.
func When(cond, value Term) Term { return expr.When(cond, value) }

// Window is the window of a size, in event time, that a row falls into: a term of
// GroupBy, giving a struct of start and end named window. With one more duration, the
// slide, windows begin that often and overlap; with another, the start, they are shifted
// by it. Windows are aligned to the epoch in UTC.
func Window(at Term, size time.Duration, slideAndStart ...time.Duration) Term {
	return expr.Window(at, size, slideAndStart...)
}

// SessionWindow is the session a row belongs to: rows of one key less than gap apart.
// gap is an INTERVAL or a text such as '5 minutes', fixed (Lit) or of each row. It is a
// term of GroupBy, giving a struct of start and end named session_window.
func SessionWindow(at, gap Term) Term { return expr.SessionWindow(at, gap) }

// Count counts rows, or with a term the rows in which it is not null.
func Count(t ...Term) Term { return expr.Func("count", t...) }

// Sum is the sum of the values that are not null; of integers it is BIGINT, and more
// than that holds is an error.
func Sum(t Term) Term { return expr.Func("sum", t) }

// Min is the least value.
func Min(t Term) Term { return expr.Func("min", t) }

// Max is the greatest value.
func Max(t Term) Term { return expr.Func("max", t) }

// Avg is the mean; of integers it is DOUBLE.
func Avg(t Term) Term { return expr.Func("avg", t) }

// First is the value of the first row in arrival order.
func First(t Term) Term { return expr.Func("first", t) }

// Last is the value of the last row in arrival order.
func Last(t Term) Term { return expr.Func("last", t) }

// RowWindow is the rows that a window function sees, as Term.Over takes them.
type RowWindow = expr.RowWindow

// FrameEnd is one end of the frame of a RowWindow.
type FrameEnd = expr.FrameEnd

// PartitionBy begins the window of a window function: the rows that are equal in terms, or
// all rows. Go on with OrderBy and a frame, Rows, Range or Groups:
//
//	Func("rank").Over(PartitionBy(Col("city")).OrderBy(Col("sales").Desc()))
//	Sum(Col("sales")).Over(PartitionBy().OrderBy(Col("day")).Rows(Preceding(6), CurrentRow()))
func PartitionBy(terms ...Term) RowWindow { return expr.PartitionBy(terms...) }

// CurrentRow is the row itself; in Range and Groups with those equal to it in order.
func CurrentRow() FrameEnd { return expr.NewFrameEnd(expr.CurrentRow, Term{}) }

// Preceding is so many rows or groups before the row, or in Range a key less by a number,
// a time.Duration or another constant Term.
func Preceding(offset any) FrameEnd { return expr.NewFrameEnd(expr.Preceding, constant(offset)) }

// Following is so much after the row.
func Following(offset any) FrameEnd { return expr.NewFrameEnd(expr.Following, constant(offset)) }

// UnboundedPreceding is the first row of the partition.
func UnboundedPreceding() FrameEnd { return expr.NewFrameEnd(expr.UnboundedPreceding, Term{}) }

// UnboundedFollowing is the last row of the partition.
func UnboundedFollowing() FrameEnd { return expr.NewFrameEnd(expr.UnboundedFollowing, Term{}) }

func constant(v any) Term {
	if t, ok := v.(Term); ok {
		return t
	}
	return Lit(v)
}
