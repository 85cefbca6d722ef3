package function

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// comparisonScalars are the comparison operators, tests for null, and NOT.
func comparisonScalars() []*Scalar {
	compare := func(op kernel.CompareOp, nullSafe bool, name, doc, example string, aliases ...string) *Scalar {
		return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
			Args: []Matcher{anyType, anyType}, Unify: true, Result: always(columnar.Boolean), NullSafe: nullSafe,
			Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return func(env *Env, args []columnar.Datum, rows int, _ *columnar.Bitmap) (columnar.Datum, error) {
					return kernel.Compare(env.Mem, op, args[0], args[1], rows), nil
				}, nil
			},
		}}}
	}
	return []*Scalar{
		compare(kernel.Equal, false, "=", "Whether two values are equal; NaN equals NaN.", "1 = 1.0 = true", "=="),
		compare(kernel.NotEqual, false, "<>", "Whether two values differ.", "1 <> 2 = true", "!="),
		compare(kernel.Less, false, "<", "Whether a value is less than another; text is compared by bytes, NaN is above all numbers.", "'a' < 'b' = true"),
		compare(kernel.LessEqual, false, "<=", "Whether a value is less than another or equal to it.", "2 <= 2 = true"),
		compare(kernel.Greater, false, ">", "Whether a value is greater than another.", "2 > 1 = true"),
		compare(kernel.GreaterEqual, false, ">=", "Whether a value is greater than another or equal to it.", "1 >= 2 = false"),
		compare(kernel.DistinctFrom, true, "is_distinct_from", "Whether two values differ, null being a value equal to itself.", "is_distinct_from(NULL, 1) = true"),
		compare(kernel.NotDistinctFrom, true, "is_not_distinct_from", "Whether two values are equal, null being a value equal to itself.", "is_not_distinct_from(NULL, NULL) = true", "<=>", "equal_null"),
		nullTest("is_null", false, "Whether a value is null.", "is_null(1) = false", "isnull"),
		nullTest("is_not_null", true, "Whether a value is not null.", "is_not_null(1) = true", "isnotnull"),
		{Name: "not", Aliases: []string{"!"}, Doc: "The opposite of a condition; null of null.", Example: "not(false) = true", Overloads: []Overload{{
			Args: []Matcher{boolean}, Result: always(columnar.Boolean),
			Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return func(env *Env, args []columnar.Datum, rows int, _ *columnar.Bitmap) (columnar.Datum, error) {
					return kernel.Not(env.Mem, args[0], rows), nil
				}, nil
			},
		}}},
	}
}

func nullTest(name string, not bool, doc, example string, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{anyType}, Result: always(columnar.Boolean), NullSafe: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return func(env *Env, args []columnar.Datum, rows int, _ *columnar.Bitmap) (columnar.Datum, error) {
				return kernel.IsNull(env.Mem, args[0], rows, not), nil
			}, nil
		},
	}}}
}

// conditionalScalars choose among their arguments.
func conditionalScalars() []*Scalar {
	choose := func(name, doc, example string, args []Matcher, variadic bool, pick func(c *call, i int) int, aliases ...string) *Scalar {
		return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
			Args: args, Variadic: variadic, Unify: true, Result: sameAs(0), NullSafe: true,
			Bind: func(types []arrow.DataType, _ []arrow.Array) (Kernel, error) {
				return onAllRows(types[0], func(c *call) (arrow.Array, error) {
					return c.choose(c.args, func(i int) int { return pick(c, i) })
				}), nil
			},
		}}}
	}
	two := []Matcher{anyType, anyType}
	list := []*Scalar{
		choose("coalesce", "The first of the values that is not null.", "coalesce(NULL, 2, 3) = 2", []Matcher{anyType}, true, firstValue),
		choose("ifnull", "A value, or if it is null another.", "ifnull(NULL, 5) = 5", two, false, firstValue, "nvl"),
		choose("nullif", "A value, or null if it equals another.", "nullif(1, 1) = NULL", two, false, func(c *call, i int) int {
			if !c.isNull(0, i) && !c.isNull(1, i) && c.compare(0, 1, i) == 0 {
				return -1
			}
			return 0
		}),
		choose("greatest", "The greatest of the values; nulls are passed over.", "greatest(1, 3, 2) = 3", two, true, func(c *call, i int) int { return c.extreme(i, 1) }),
		choose("least", "The least of the values; nulls are passed over.", "least(3, 1, 2) = 1", two, true, func(c *call, i int) int { return c.extreme(i, -1) }),
	}
	return append(list, ifScalar(), nvl2Scalar(), typeofScalar())
}

// firstValue is the first argument that is not null in row i, -1 if there is none.
func firstValue(c *call, i int) int {
	for k := range c.args {
		if !c.isNull(k, i) {
			return k
		}
	}
	return -1
}

// place is where row i of argument k is.
func (c *call) place(k, i int) int { return i & kernel.RowMask(c.args[k]) }

func (c *call) isNull(k, i int) bool { return columnar.IsNull(c.args[k].Array(), c.place(k, i)) }

func (c *call) compare(k, l, i int) int {
	return kernel.CompareValues(c.args[k].Array(), c.place(k, i), c.args[l].Array(), c.place(l, i))
}

// extreme is the argument with the greatest value in row i (sign 1) or the least
// (-1), the first of equals.
func (c *call) extreme(i, sign int) int {
	best := -1
	for k := range c.args {
		if !c.isNull(k, i) && (best < 0 || c.compare(k, best, i)*sign > 0) {
			best = k
		}
	}
	return best
}

// choose makes a column that takes its value of row i from the value pick says, or
// null for -1.
func (c *call) choose(values []columnar.Datum, pick func(i int) int) (arrow.Array, error) {
	sources := make([]arrow.Array, len(values))
	for k, v := range values {
		sources[k] = v.Array()
	}
	refs := make([]kernel.Ref, c.rows)
	for i := range refs {
		refs[i] = kernel.NoRow
		if k := pick(i); k >= 0 {
			refs[i] = kernel.MakeRef(k, i&kernel.RowMask(values[k]))
		}
	}
	return c.gather(sources, refs)
}

// branches is the result function of functions whose arguments from the given one on
// are alternatives.
func branches(from int) func([]arrow.DataType) (arrow.DataType, error) {
	return func(args []arrow.DataType) (arrow.DataType, error) {
		for _, a := range args[from+1:] {
			if !arrow.TypeEqual(a, args[from]) {
				return nil, fmt.Errorf("the alternatives are of types %s and %s; cast one to the other", columnar.TypeName(args[from]), columnar.TypeName(a))
			}
		}
		return args[from], nil
	}
}

func ifScalar() *Scalar {
	return &Scalar{Name: "if", Aliases: []string{"iff"}, Doc: "The second argument where the condition is true, else the third; what is not needed is not computed, as in CASE.", Example: "if(1 < 2, 'yes', 'no') = yes",
		Overloads: []Overload{{
			Args: []Matcher{boolean, anyType, anyType}, Result: branches(1), NullSafe: true,
			Bind: func(types []arrow.DataType, _ []arrow.Array) (Kernel, error) {
				return onAllRows(types[1], func(c *call) (arrow.Array, error) {
					var yes columnar.Bitmap
					kernel.MarkTrue(&yes, c.args[0], c.rows)
					return c.choose(c.args[1:], func(i int) int {
						if yes.Get(i) {
							return 0
						}
						return 1
					})
				}), nil
			},
		}}}
}

func nvl2Scalar() *Scalar {
	return &Scalar{Name: "nvl2", Doc: "The second argument where the first is not null, else the third.", Example: "nvl2(NULL, 1, 2) = 2",
		Overloads: []Overload{{
			Args: []Matcher{anyType, anyType, anyType}, Result: branches(1), NullSafe: true,
			Bind: func(types []arrow.DataType, _ []arrow.Array) (Kernel, error) {
				return onAllRows(types[1], func(c *call) (arrow.Array, error) {
					return c.choose(c.args[1:], func(i int) int {
						if c.isNull(0, i) {
							return 1
						}
						return 0
					})
				}), nil
			},
		}}}
}

func typeofScalar() *Scalar {
	return &Scalar{Name: "typeof", Doc: "The name of the type of a value.", Example: "typeof(1.5) = DECIMAL(2,1)", Overloads: []Overload{{
		Args: []Matcher{anyType}, Result: always(columnar.String), NullSafe: true,
		Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			name := columnar.TypeName(args[0])
			return func(env *Env, _ []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
				return columnar.Constant(env.Mem, columnar.String, name)
			}, nil
		},
	}}}
}
