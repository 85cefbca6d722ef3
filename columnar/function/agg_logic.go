package function

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

func logicAggregate(name string, all bool, aliases ...string) *Aggregate {
	doc, example := "True if some value is true", "SELECT bool_or(x) FROM (VALUES (true), (NULL), (false)) AS t(x) = true"
	if all {
		doc, example = "True if every value is true", "SELECT bool_and(x) FROM (VALUES (true), (NULL), (false)) AS t(x) = false"
	}
	return &Aggregate{
		Name:    name,
		Aliases: aliases,
		Doc:     doc + ", nulls aside; null if there is none.",
		Example: example,
		Overloads: []AggregateOverload{{
			Args:            []Matcher{exactArg(columnar.Boolean)},
			Result:          resultType(columnar.Boolean),
			IgnoresDistinct: true,
			New: func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error) {
				// Of booleans, every is the smallest and some is the largest.
				return newExtreme(mem, name, columnar.Boolean, !all)
			},
		}},
	}
}
