package function

import (
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// arithmetic is an operator on two numbers, and its try_ form.
type arithmetic struct {
	name, try string
	aliases   []string
	doc       string
	example   string
	op        kernel.ArithOp
	decimal   func(a, b *arrow.Decimal128Type) arrow.DataType
}

var arithmetics = []arithmetic{
	{"+", "try_add", []string{"add"}, "Sum of two numbers; a time moved by an interval; a date moved by days.", "1 + 2 = 3", kernel.Add, addType},
	{"-", "try_subtract", []string{"subtract"}, "Difference of two numbers; a time moved back by an interval; the interval between two times; of one number, its negative.", "5 - 7 = -2", kernel.Subtract, addType},
	{"*", "try_multiply", []string{"multiply"}, "Product of two numbers, or of an interval and a number.", "6 * 7 = 42", kernel.Multiply, multiplyType},
	{"/", "try_divide", nil, "Quotient of two numbers; of integers it is a DOUBLE. Division by zero is an error; try_divide gives null.", "7 / 2 = 3.5", kernel.Divide, divideType},
	{"//", "try_div", []string{"div"}, "Quotient without its fraction, truncated towards zero.", "-7 // 2 = -3", kernel.DivideInt, nil},
	{"%", "try_mod", []string{"mod", "fmod"}, "Remainder of a division, with the sign of the dividend.", "-7 % 3 = -1", kernel.Modulo, moduloType},
}

// arithmeticScalars are the operators on numbers, times and intervals.
func arithmeticScalars() []*Scalar {
	var list []*Scalar
	for _, a := range arithmetics {
		f := &Scalar{Name: a.name, Aliases: a.aliases, Doc: a.doc, Example: a.example, Overloads: a.overloads(false)}
		switch a.name {
		case "+":
			f.Overloads = append(f.Overloads, timeAdditions(false)...)
		case "-":
			f.Overloads = append(f.Overloads, timeSubtractions(false)...)
			f.Overloads = append(f.Overloads, negations()...)
		case "*":
			f.Overloads = append(f.Overloads, intervalProducts()...)
		case "/":
			f.Overloads = append(f.Overloads, intervalQuotient())
		}
		try := &Scalar{
			Name: a.try, Doc: "Like " + a.name + ", but null where that is an error.",
			Example: a.try + map[bool]string{true: "(1, 0) = NULL", false: "(7, 2) = 9"}[a.op >= kernel.Divide], Overloads: a.overloads(true),
		}
		switch a.name {
		case "+":
			try.Overloads = append(try.Overloads, timeAdditions(true)...)
		case "-":
			try.Overloads = append(try.Overloads, timeSubtractions(true)...)
		}
		list = append(list, f, try)
	}
	list[3].Example = "try_subtract(7, 2) = 5"
	list[5].Example = "try_multiply(9223372036854775807, 2) = NULL"
	return list
}

func (a arithmetic) overloads(try bool) []Overload {
	bind := func(result func([]arrow.DataType) (arrow.DataType, error)) func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			out, err := result(args)
			if err != nil {
				return nil, err
			}
			return a.kernel(out, try), nil
		}
	}
	form := func(m Matcher, unify bool, result func([]arrow.DataType) (arrow.DataType, error)) Overload {
		return Overload{Args: []Matcher{m, m}, Unify: unify, Result: result, NullSafe: try, Fallible: !try, Bind: bind(result)}
	}
	integers, floats, decimals := sameAs(0), sameAs(0), func(args []arrow.DataType) (arrow.DataType, error) {
		return a.decimal(args[0].(*arrow.Decimal128Type), args[1].(*arrow.Decimal128Type)), nil
	}
	switch a.op {
	case kernel.Divide:
		integers, floats = always(columnar.Float64), always(columnar.Float64)
	case kernel.DivideInt:
		floats, decimals = always(columnar.Int64), always(columnar.Int64)
	}
	list := []Overload{form(integerType, true, integers), form(decimalType, false, decimals), form(floatType, true, floats)}
	if a.op < kernel.Divide {
		list[2].Fallible = false // sums and products of floats become infinite instead
	}
	return list
}

func (a arithmetic) kernel(out arrow.DataType, try bool) Kernel {
	return func(env *Env, args []columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
		d, err := kernel.Arith(env.Mem, a.op, args[0], args[1], rows, kernel.Mode{Active: active, Try: try}, out)
		return d, explainIn(out, env, err, a.try)
	}
}

// explain adds the expression and the remedy to an error of arithmetic of integers.
func explain(env *Env, err error, try string) error {
	return explainIn(columnar.Int64, env, err, try)
}

// explainIn is explain for arithmetic whose result is an out.
func explainIn(out arrow.DataType, env *Env, err error, try string) error {
	e, ok := err.(*kernel.ValueError)
	if !ok {
		return err
	}
	text := e.Text
	if env.Expr != nil {
		if of := env.Expr.String(); !strings.HasSuffix(text, ": "+of) {
			text = of + ": " + text
		}
	}
	switch e.Kind {
	case kernel.ErrDivideByZero:
		text += "; use "
		if try != "nullif" {
			text += try + " to get null instead, or "
		}
		text += "nullif for the divisor"
	case kernel.ErrOverflow:
		text += "; cast an operand to " + wider(out)
		if try != "" {
			text += ", or use " + try + " to get null instead"
		}
	}
	return &kernel.ValueError{Kind: e.Kind, Text: text}
}

// wider is a type to compute in where dt is too narrow.
func wider(dt arrow.DataType) string {
	if columnar.IsDecimal(dt) {
		return "DOUBLE"
	}
	return "a wider type, such as DECIMAL(38,0)"
}

// The types of decimal results are Spark's: exact where 38 digits suffice; otherwise
// the digits before the point are kept, and of those after it at least six.

// bounded is DECIMAL(precision, scale), or the nearest with 38 digits.
func bounded(precision, scale int32) arrow.DataType {
	if precision <= columnar.MaxPrecision {
		return columnar.Decimal(precision, scale)
	}
	whole := precision - scale
	return columnar.Decimal(columnar.MaxPrecision, max(columnar.MaxPrecision-whole, min(scale, 6)))
}

func addType(a, b *arrow.Decimal128Type) arrow.DataType {
	scale := max(a.Scale, b.Scale)
	return bounded(max(a.Precision-a.Scale, b.Precision-b.Scale)+scale+1, scale)
}

func multiplyType(a, b *arrow.Decimal128Type) arrow.DataType {
	return bounded(a.Precision+b.Precision+1, a.Scale+b.Scale)
}

func divideType(a, b *arrow.Decimal128Type) arrow.DataType {
	scale := max(6, a.Scale+b.Precision+1)
	return bounded(a.Precision-a.Scale+b.Scale+scale, scale)
}

func moduloType(a, b *arrow.Decimal128Type) arrow.DataType {
	scale := max(a.Scale, b.Scale)
	return bounded(max(min(a.Precision-a.Scale, b.Precision-b.Scale)+scale, 1), scale)
}

// negations are the unary minus.
func negations() []Overload {
	return append(onNumber(kernel.Negate), Overload{
		Args: []Matcher{interval}, Result: always(columnar.Interval), Fallible: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Interval, func(c *call) (arrow.Array, error) {
				in := numbersOf[arrow.MonthDayNanoInterval](c.args[0])
				return fallibleRows(c, func(i int) (arrow.MonthDayNanoInterval, error) { return scaleInterval(in.at(i), -1) })
			}), nil
		},
	})
}

func onNumber(f func(mem memory.Allocator, a columnar.Datum, rows int, m kernel.Mode) (columnar.Datum, error)) []Overload {
	return []Overload{{
		Args: []Matcher{class("number", columnar.Int32, columnar.IsNumeric)}, Result: sameAs(0), Fallible: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return func(env *Env, args []columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
				d, err := f(env.Mem, args[0], rows, kernel.Mode{Active: active})
				return d, explainIn(args[0].Type(), env, err, "")
			}, nil
		},
	}}
}

// onDoubles is a function of one DOUBLE.
func onDoubles(name, doc, example string, f func(float64) float64, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{double}, Result: always(columnar.Float64),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Float64, func(c *call) (arrow.Array, error) {
				in := numbersOf[float64](c.args[0])
				return fixedRows(c, func(i int) float64 { return f(in.at(i)) })
			}), nil
		},
	}}}
}

// onTwoDoubles is a function of two DOUBLEs.
func onTwoDoubles(name, doc, example string, f func(a, b float64) float64, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{double, double}, Result: always(columnar.Float64),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Float64, func(c *call) (arrow.Array, error) {
				a, b := numbersOf[float64](c.args[0]), numbersOf[float64](c.args[1])
				return fixedRows(c, func(i int) float64 { return f(a.at(i), b.at(i)) })
			}), nil
		},
	}}}
}

// logarithm is null for numbers that have none.
func logarithm(name, doc, example string, f func(float64) float64, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc + " Null for numbers that are not positive.", Example: example, Overloads: []Overload{{
		Args: []Matcher{double}, Result: always(columnar.Float64), NullSafe: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Float64, func(c *call) (arrow.Array, error) {
				in := numbersOf[float64](c.args[0])
				return nullableRows(c, func(i int) (float64, bool) { v := in.at(i); return f(v), !(v <= 0) })
			}), nil
		},
	}}}
}

func mathScalars() []*Scalar {
	list := []*Scalar{
		{Name: "negative", Doc: "A number or an interval with the other sign.", Example: "negative(3) = -3", Overloads: negations()},
		{Name: "abs", Doc: "Absolute value.", Example: "abs(-3) = 3", Overloads: onNumber(kernel.Abs)},
		onDoubles("sqrt", "Square root; NaN for negative numbers.", "sqrt(9) = 3", math.Sqrt),
		onDoubles("cbrt", "Cube root.", "cbrt(27) = 3", math.Cbrt),
		onDoubles("exp", "e to the power of a number.", "exp(0) = 1", math.Exp),
		logarithm("ln", "Natural logarithm.", "ln(1) = 0", math.Log),
		logarithm("log10", "Logarithm to base 10.", "log10(1000) = 3", math.Log10),
		logarithm("log2", "Logarithm to base 2.", "log2(8) = 3", math.Log2),
		onTwoDoubles("power", "A number to the power of another.", "power(2, 10) = 1024", math.Pow, "pow", "**"),
		onTwoDoubles("atan2", "Angle of the point (x, y), given y and x.", "atan2(0, 1) = 0", math.Atan2),
		onTwoDoubles("hypot", "Length of the hypotenuse.", "hypot(3, 4) = 5", math.Hypot),
		onDoubles("sin", "Sine.", "sin(0) = 0", math.Sin),
		onDoubles("cos", "Cosine.", "cos(0) = 1", math.Cos),
		onDoubles("tan", "Tangent.", "tan(0) = 0", math.Tan),
		onDoubles("cot", "Cotangent.", "round(cot(1), 3) = 0.642", func(v float64) float64 { return 1 / math.Tan(v) }),
		onDoubles("asin", "Arc sine; NaN outside of -1 to 1.", "asin(0) = 0", math.Asin),
		onDoubles("acos", "Arc cosine; NaN outside of -1 to 1.", "acos(1) = 0", math.Acos),
		onDoubles("atan", "Arc tangent.", "atan(0) = 0", math.Atan),
		onDoubles("sinh", "Hyperbolic sine.", "sinh(0) = 0", math.Sinh),
		onDoubles("cosh", "Hyperbolic cosine.", "cosh(0) = 1", math.Cosh),
		onDoubles("tanh", "Hyperbolic tangent.", "tanh(0) = 0", math.Tanh),
		onDoubles("degrees", "Radians as degrees.", "degrees(0) = 0", func(v float64) float64 { return v / math.Pi * 180 }),
		onDoubles("radians", "Degrees as radians.", "radians(0) = 0", func(v float64) float64 { return v / 180 * math.Pi }),
		{Name: "pi", Doc: "The number pi.", Example: "round(pi(), 5) = 3.14159", Overloads: []Overload{constantDouble(math.Pi)}},
		{Name: "e", Doc: "The number e.", Example: "round(e(), 5) = 2.71828", Overloads: []Overload{constantDouble(math.E)}},
		signScalar(), logScalar(), randomScalar(), isNaNScalar(),
	}
	return append(list, roundingScalars()...)
}

func constantDouble(v float64) Overload {
	return Overload{Result: always(columnar.Float64), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return func(env *Env, _ []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
			return columnar.Constant(env.Mem, columnar.Float64, v)
		}, nil
	}}
}

func signScalar() *Scalar {
	return &Scalar{Name: "sign", Aliases: []string{"signum"}, Doc: "-1, 0 or 1 as the number is negative, zero or positive; NaN for NaN.", Example: "sign(-2.5) = -1", Overloads: []Overload{{
		Args: []Matcher{double}, Result: always(columnar.Float64),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Float64, func(c *call) (arrow.Array, error) {
				in := numbersOf[float64](c.args[0])
				return fixedRows(c, func(i int) float64 {
					switch v := in.at(i); {
					case v > 0:
						return 1
					case v < 0:
						return -1
					default:
						return v
					}
				})
			}), nil
		},
	}}}
}

// logScalar is log(x), natural, and log(base, x).
func logScalar() *Scalar {
	f := logarithm("log", "Natural logarithm, or the logarithm of the second argument to the base of the first.", "log(2, 8) = 3", math.Log)
	f.Overloads = append(f.Overloads, Overload{
		Args: []Matcher{double, double}, Result: always(columnar.Float64), NullSafe: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Float64, func(c *call) (arrow.Array, error) {
				base, in := numbersOf[float64](c.args[0]), numbersOf[float64](c.args[1])
				return nullableRows(c, func(i int) (float64, bool) {
					b, v := base.at(i), in.at(i)
					switch b {
					case 2:
						return math.Log2(v), !(v <= 0)
					case 10:
						return math.Log10(v), !(v <= 0)
					}
					return math.Log(v) / math.Log(b), !(v <= 0 || b <= 0)
				})
			}), nil
		},
	})
	return f
}

// randomScalar gives the same numbers when a batch is run again, and with a seed also
// when a bounded query is.
func randomScalar() *Scalar {
	s := drawnScalar("random", "A random number from 0 up to, not including, 1; other for each row, the same when a batch is run again; with a seed also when a query over files is run again.", "random() < 1 = true", nil, func(d draws, _ []numbers[float64], i int) float64 { return d.float(i) })
	s.Aliases = []string{"rand"}
	return s
}

func isNaNScalar() *Scalar {
	return &Scalar{Name: "isnan", Doc: "Whether a number is NaN.", Example: "isnan(1.5) = false", Overloads: []Overload{{
		Args: []Matcher{double}, Result: always(columnar.Boolean),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Boolean, func(c *call) (arrow.Array, error) {
				return kernel.IsNaN(c.env.Mem, c.args[0].Array()), nil
			}), nil
		},
	}}}
}

// rounding is one way to drop digits of a number.
type rounding struct {
	name, doc, example string
	aliases            []string
	way                kernel.Rounding
	digits             bool // takes the number of digits as a second argument
}

// roundingScalars are ceil, floor, round and truncate.
func roundingScalars() []*Scalar {
	var list []*Scalar
	for _, r := range []rounding{
		{"ceil", "Smallest whole number that is not less; with a second argument, to so many digits after the point.", "ceil(1.2) = 2", []string{"ceiling"}, kernel.Ceil, true},
		{"floor", "Largest whole number that is not greater; with a second argument, to so many digits after the point.", "floor(-1.2) = -2", nil, kernel.Floor, true},
		{"round", "Nearest number with so many digits after the point (0 if not given, negative for tens, hundreds …); half is rounded away from zero. The type is that of the number, but that a DECIMAL has no more digits after the point than a constant asks for.", "round(2.5) = 3", nil, kernel.HalfUp, true},
		{"bround", "Nearest number with so many digits after the point (0 if not given), of the type that round has; half is rounded to the even neighbour.", "bround(2.5) = 2", []string{"round_even", "roundbankers"}, kernel.HalfEven, true},
		{"truncate", "Number cut to so many digits after the point, 0 if not given; or a date cut to the first day of its 'year', 'quarter', 'month' or 'week'.", "truncate(-1.29e0, 1) = -1.2", []string{"trunc"}, kernel.TowardZero, true},
	} {
		list = append(list, &Scalar{Name: r.name, Aliases: r.aliases, Doc: r.doc, Example: r.example, Overloads: r.overloads()})
	}
	truncate := list[len(list)-1]
	truncate.Overloads = append(truncate.Overloads, truncDate())
	return list
}

func (r rounding) overloads() []Overload {
	whole := class("number", columnar.Float64, columnar.IsNumeric)
	return []Overload{
		{
			Args: []Matcher{whole}, Result: r.result, Fallible: true,
			Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) { return r.kernel(args, 0) },
		},
		{
			Args: []Matcher{whole, bigint}, Result: r.resultDigits, Fallible: true,
			Bind: func(args []arrow.DataType, constants []arrow.Array) (Kernel, error) {
				if len(constants) > 1 && constants[1] != nil && !columnar.IsNull(constants[1], 0) {
					return r.kernel(args, kernel.Values[int64](constants[1])[0])
				}
				return r.kernelAnyDigits(args)
			},
		},
	}
}

// result is the type of a whole number: of a decimal without its digits after the
// point, and one more before it.
func (r rounding) result(args []arrow.DataType) (arrow.DataType, error) {
	d, ok := args[0].(*arrow.Decimal128Type)
	if !ok {
		return args[0], nil
	}
	return columnar.Decimal(min(max(d.Precision-d.Scale+1, 1), columnar.MaxPrecision), 0), nil
}

// resultDigits keeps the type, as the number of digits may differ from row to row; a
// decimal gets one more digit before the point.
func (r rounding) resultDigits(args []arrow.DataType) (arrow.DataType, error) {
	d, ok := args[0].(*arrow.Decimal128Type)
	if !ok {
		return args[0], nil
	}
	return columnar.Decimal(min(d.Precision+1, columnar.MaxPrecision), d.Scale), nil
}

func (r rounding) kernel(args []arrow.DataType, digits int64) (Kernel, error) {
	out, err := r.result(args)
	if len(args) > 1 {
		out, err = r.resultDigits(args)
	}
	if err != nil {
		return nil, err
	}
	return onRows(out, func(c *call) (arrow.Array, error) {
		a, err := kernel.Round(c.env.Mem, c.args[0].Array(), r.way, digits, out, c.mode(false))
		return a, explainIn(out, c.env, err, "")
	}), nil
}

// kernelAnyDigits rounds each row to its own number of digits.
func (r rounding) kernelAnyDigits(args []arrow.DataType) (Kernel, error) {
	out, err := r.resultDigits(args)
	if err != nil {
		return nil, err
	}
	return onRows(out, func(c *call) (arrow.Array, error) {
		digits := numbersOf[int64](c.args[1])
		b := columnar.NewBuilder(c.env.Mem, out)
		defer b.Release()
		whole := columnar.Broadcast(c.env.Mem, c.args[0], c.rows)
		defer whole.Release()
		valid, _ := c.validity()
		defer releaseBuffer(valid)
		for i := range c.rows {
			if !isSet(valid, i) || !c.active.Get(i) {
				b.AppendNull()
				continue
			}
			if err := r.one(c, b, whole, i, digits.at(i), out); err != nil {
				return nil, err
			}
		}
		return b.NewArray(), nil
	}), nil
}

func (r rounding) one(c *call, b *columnar.Builder, a arrow.Array, i int, digits int64, out arrow.DataType) error {
	one := array.NewSlice(a, int64(i), int64(i+1))
	defer one.Release()
	v, err := kernel.Round(c.env.Mem, one, r.way, digits, out, kernel.Mode{})
	if err != nil {
		return explainIn(out, c.env, err, "")
	}
	defer v.Release()
	return b.AppendFrom(v, 0)
}

// scaleInterval is v times n.
func scaleInterval(v arrow.MonthDayNanoInterval, n int64) (arrow.MonthDayNanoInterval, error) {
	months, days := int64(v.Months)*n, int64(v.Days)*n
	nanos := v.Nanoseconds * n
	out := arrow.MonthDayNanoInterval{Months: int32(months), Days: int32(days), Nanoseconds: nanos}
	fits := func(a int64, b int64, product int64) bool {
		return a == 0 || product/a == b && !(a == -1 && b == math.MinInt64)
	}
	if int64(out.Months) != months || int64(out.Days) != days || !fits(n, v.Nanoseconds, nanos) || !fits(n, int64(v.Months), months) || !fits(n, int64(v.Days), days) {
		return out, &kernel.ValueError{Kind: kernel.ErrOverflow, Text: fmt.Sprintf("(%s) * %d overflows INTERVAL", columnar.AppendInterval(nil, v), n)}
	}
	return out, nil
}
