package function

import (
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// usualTime is the pattern that from_unixtime has unless one is given.
const usualTime = "yyyy-MM-dd HH:mm:ss"

// fromUnixtimeScalar is from_unixtime(seconds [, pattern]), a text as in Spark.
func fromUnixtimeScalar() *Scalar {
	bind := func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		usual, err := compileTime(usualTime, "")
		if err != nil {
			return nil, err
		}
		source, err := patternOf(constants, 1, compileTime)
		if err != nil {
			return nil, err
		}
		return onRows(columnar.String, func(c *call) (arrow.Array, error) {
			seconds := numbersOf[int64](c.args[0])
			of := func(int) (*timePattern, error) { return usual, nil }
			if len(c.args) > 1 {
				of = source(c)
			}
			var run formatRun
			return c.text(c.rows*20, func(dst []byte, i int) ([]byte, error) {
				p, err := of(i)
				if err != nil {
					return dst, err
				}
				v := seconds.at(i)
				if v > math.MaxInt64/columnar.MicrosPerSecond || v < math.MinInt64/columnar.MicrosPerSecond {
					return dst, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("from_unixtime(%d) overflows TIMESTAMP", v)}
				}
				return run.append(dst, p, v*columnar.MicrosPerSecond, c.env.Location), nil
			})
		}), nil
	}
	return &Scalar{Name: "from_unixtime", Doc: "Seconds since 1970 as the text of that time in the session time zone, in the form yyyy-MM-dd HH:mm:ss or that of a pattern (see strftime). to_timestamp makes a TIMESTAMP.", Example: "from_unixtime(90, 'HH:mm:ss') = 00:01:30", Overloads: []Overload{
		{Args: []Matcher{bigint}, Result: always(columnar.String), Fallible: true, Bind: bind},
		{Args: []Matcher{bigint, varchar}, Result: always(columnar.String), Fallible: true, Bind: bind},
	}}
}

// unixTimeByPattern are the forms of unix_timestamp with a pattern, which a time or date
// has no need of.
func unixTimeByPattern() []Overload {
	return []Overload{
		{Args: []Matcher{timestamp, varchar}, Result: always(columnar.Int64), Fallible: true, Bind: castTo(columnar.Int64)},
		{Args: []Matcher{varchar, varchar}, Result: always(columnar.Int64), Fallible: true, Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			source, err := patternOf(constants, 1, compileParsed)
			if err != nil {
				return nil, err
			}
			return onRows(columnar.Int64, func(c *call) (arrow.Array, error) {
				return parseRows(c, source(c), parsedTime.unix, columnar.Timestamp)
			}), nil
		}},
	}
}

// dateUnits are the words that trunc takes beside a date.
var dateUnits = map[string]kernel.Part{
	"YEAR": kernel.Year, "YYYY": kernel.Year, "YY": kernel.Year, "QUARTER": kernel.Quarter,
	"MONTH": kernel.Month, "MON": kernel.Month, "MM": kernel.Month, "WEEK": kernel.Week,
}

// truncDate is trunc(date, unit), as in Spark: null for a unit that a row names and that is
// none.
func truncDate() Overload {
	return Overload{Args: []Matcher{date, varchar}, Result: always(columnar.Date), Fallible: true, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return onRows(columnar.Date, func(c *call) (arrow.Array, error) {
			in, names := numbersOf[int32](c.args[0]), kernel.TextsOf(c.args[1])
			return someRows(c, func(i int) (int32, bool, error) {
				unit := dateUnits[strings.ToUpper(string(names.At(i)))]
				if unit == 0 {
					return 0, false, nil
				}
				first, err := dateOf(kernel.TruncateDays(int64(in.at(i)), unit), "the first day of what lies around", in.at(i))
				return first, true, err
			})
		}), nil
	}}
}
