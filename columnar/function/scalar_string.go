package function

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// maxText bounds what one call may make of one row: repeat and pad with huge counts
// are mistakes, not wishes.
const maxText = 256 << 20

func errTooLong(name string, n int64) error {
	return fmt.Errorf("%s would make a text of %d bytes; the limit is %d", name, n, maxText)
}

// textFunction is a function from texts and integers to a text. f appends the value
// of row i.
type textFunction struct {
	name, doc, example string
	aliases            []string
	args               []Matcher
	optional           int // how many arguments at the end may be left out
	fallible           bool
	f                  func(c *call, t []kernel.Texts, n []numbers[int64]) func(dst []byte, i int) ([]byte, error)
}

func (t textFunction) scalar() *Scalar {
	s := &Scalar{Name: t.name, Aliases: t.aliases, Doc: t.doc, Example: t.example}
	for k := range t.optional + 1 {
		s.Overloads = append(s.Overloads, Overload{
			Args: t.args[:len(t.args)-k], Result: always(columnar.String), Fallible: t.fallible,
			Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return onRows(columnar.String, func(c *call) (arrow.Array, error) {
					texts, ints := c.textsAndInts()
					size := 0
					if len(texts) > 0 {
						size = texts[0].Size(c.rows)
					}
					return c.text(size, t.f(c, texts, ints))
				}), nil
			},
		})
	}
	return s
}

// textsAndInts views the arguments by type, each in order.
func (c *call) textsAndInts() (texts []kernel.Texts, ints []numbers[int64]) {
	for _, a := range c.args {
		switch a.Type().ID() {
		case arrow.STRING, arrow.BINARY:
			texts = append(texts, kernel.TextsOf(a))
		case arrow.INT64:
			ints = append(ints, numbersOf[int64](a))
		}
	}
	return texts, ints
}

// textToBigint and textToBool are functions of texts alone.
func textTo[T any](name, doc, example string, args int, out arrow.DataType, f func(t []kernel.Texts, i int) T, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Args: slices.Repeat([]Matcher{varchar}, args), Result: always(out),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(out, func(c *call) (arrow.Array, error) {
				texts, _ := c.textsAndInts()
				return fixedRows(c, func(i int) T { return f(texts, i) })
			}), nil
		},
	}}}
}

// textScalars are the functions on VARCHAR.
func textScalars() []*Scalar {
	list := []*Scalar{
		caseScalar("lower", "The text in lower case.", "lower('TiDe') = tide", kernel.Lower, "lcase"),
		caseScalar("upper", "The text in upper case.", "upper('TiDe') = TIDE", kernel.Upper, "ucase"),
		lengthOfAnyScalar(),
		lengthScalar("char_length", "Number of characters (Unicode code points) of a text, of bytes of a BINARY.", "char_length('日本') = 2", true, "character_length"),
		lengthScalar("octet_length", "Number of bytes of a text or BINARY.", "octet_length('日本') = 6", false, "strlen"),
		testScalar("starts_with", "Whether a text begins with another.", "starts_with('tidemill', 'tide') = true", kernel.HasPrefix, "startswith", "prefix"),
		testScalar("ends_with", "Whether a text ends with another.", "ends_with('tidemill', 'mill') = true", kernel.HasSuffix, "endswith", "suffix"),
		testScalar("contains", "Whether a text contains another, or an array an element: then null if it does not, but has a null (see array_contains).", "contains('tidemill', 'dem') = true", kernel.Contains),
		textTo("instr", "Place of the first occurrence of the second text in the first, counted in characters from 1; 0 if there is none.", "instr('tidemill', 'mill') = 5", 2, columnar.Int32,
			func(t []kernel.Texts, i int) int32 { return position(t[0].At(i), t[1].At(i)) }, "strpos"),
		textTo("position", "Place of the first text in the second, counted in characters from 1; 0 if there is none.", "position('mill', 'tidemill') = 5", 2, columnar.Int32,
			func(t []kernel.Texts, i int) int32 { return position(t[1].At(i), t[0].At(i)) }, "locate"),
		textTo("ascii", "Code point of the first character; 0 of the empty text.", "ascii('A') = 65", 1, columnar.Int32, func(t []kernel.Texts, i int) int32 {
			r, size := utf8.DecodeRune(t[0].At(i))
			if size == 0 {
				return 0
			}
			return r
		}, "unicode", "ord"),
		concatScalar("||", "The texts one after another; null if any is null. Arrays, too, can be put together."),
		concatScalar("concat", "The values as text, one after another; null if any is null."),
		concatWSScalar(),
	}
	for _, t := range textFunctions {
		list = append(list, t.scalar())
	}
	return list
}

var textFunctions = []textFunction{
	{
		name: "substring", aliases: []string{"substr", "mid"}, args: []Matcher{varchar, bigint, bigint}, optional: 1,
		doc: "Part of a text from a character on (1 is the first, negative counts from the end), at most so many characters long.", example: "substring('tidemill', 5, 2) = mi",
		f: func(_ *call, t []kernel.Texts, n []numbers[int64]) func([]byte, int) ([]byte, error) {
			if len(n) == 1 {
				return func(dst []byte, i int) ([]byte, error) {
					return append(dst, kernel.Substring(t[0].At(i), n[0].at(i), math.MaxInt64)...), nil
				}
			}
			return func(dst []byte, i int) ([]byte, error) {
				return append(dst, kernel.Substring(t[0].At(i), n[0].at(i), n[1].at(i))...), nil
			}
		},
	},
	{
		name: "left", args: []Matcher{varchar, bigint}, doc: "The first characters of a text; with a negative number, all but so many at the end.", example: "left('tidemill', 4) = tide",
		f: func(_ *call, t []kernel.Texts, n []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				k := n[0].at(i)
				if k < 0 {
					k = max(int64(utf8.RuneCount(t[0].At(i)))+max(k, -1<<40), 0)
				}
				return append(dst, kernel.Substring(t[0].At(i), 1, k)...), nil
			}
		},
	},
	{
		name: "right", args: []Matcher{varchar, bigint}, doc: "The last characters of a text; with a negative number, all but so many at the beginning.", example: "right('tidemill', 4) = mill",
		f: func(_ *call, t []kernel.Texts, n []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				k, count := n[0].at(i), int64(utf8.RuneCount(t[0].At(i)))
				if k < 0 {
					k = max(count+max(k, -1<<40), 0)
				}
				return append(dst, kernel.Substring(t[0].At(i), max(count-k, 0)+1, math.MaxInt64)...), nil
			}
		},
	},
	trimming("trim", "The text without blanks, or the given characters, at both ends.", "trim('  a b ') = a b", true, true, "btrim"),
	trimming("ltrim", "The text without blanks, or the given characters, at the beginning.", "ltrim('xxa', 'x') = a", true, false),
	trimming("rtrim", "The text without blanks, or the given characters, at the end.", "rtrim('a  ') = a", false, true),
	padding("lpad", "The text filled up at the front to a number of characters, with blanks or the given text; longer text is cut.", "lpad('7', 3, '0') = 007", true),
	padding("rpad", "The text filled up at the end to a number of characters, with blanks or the given text; longer text is cut.", "rpad('a', 3, '.') = a..", false),
	{
		name: "replace", args: []Matcher{varchar, varchar, varchar}, optional: 1, fallible: true,
		doc: "The text with every occurrence of the second replaced by the third, or taken out.", example: "replace('a-b-c', '-', '+') = a+b+c",
		f: func(c *call, t []kernel.Texts, _ []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				var with []byte
				if len(t) > 2 {
					with = t[2].At(i)
				}
				return c.replaceAll(dst, t[0].At(i), t[1].At(i), with)
			}
		},
	},
	{
		name: "translate", args: []Matcher{varchar, varchar, varchar},
		doc: "The text with each character of the second replaced by the one at its place in the third, or taken out if there is none.", example: "translate('abc', 'ac', 'x') = xb",
		f: func(_ *call, t []kernel.Texts, _ []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				from, to := []rune(string(t[1].At(i))), []rune(string(t[2].At(i)))
				for _, r := range string(t[0].At(i)) {
					k := slices.Index(from, r)
					if k >= 0 && k >= len(to) {
						continue
					}
					if k >= 0 {
						r = to[k]
					}
					dst = utf8.AppendRune(dst, r)
				}
				return dst, nil
			}
		},
	},
	{
		name: "reverse", args: []Matcher{varchar}, doc: "The characters of a text in reverse order.", example: "reverse('abc') = cba",
		f: func(_ *call, t []kernel.Texts, _ []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				for s := t[0].At(i); len(s) > 0; {
					_, size := utf8.DecodeLastRune(s)
					dst = append(dst, s[len(s)-size:]...)
					s = s[:len(s)-size]
				}
				return dst, nil
			}
		},
	},
	{
		name: "repeat", args: []Matcher{varchar, bigint}, fallible: true, doc: "The text so many times over.", example: "repeat('ab', 3) = ababab",
		f: func(c *call, t []kernel.Texts, n []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				s, k := t[0].At(i), n[0].at(i)
				if k > 0 && len(s) > 0 && k > maxText/int64(len(s)) {
					return dst, errTooLong("repeat", int64(min(float64(len(s))*float64(k), 1e18)))
				}
				if err := c.room(int64(len(dst)) + max(k, 0)*int64(len(s))); err != nil {
					return dst, err
				}
				for ; k > 0 && len(s) > 0; k-- {
					dst = append(dst, s...)
				}
				return dst, nil
			}
		},
	},
	{
		name: "space", args: []Matcher{bigint}, fallible: true, doc: "So many blanks.", example: "length(space(3)) = 3",
		f: func(c *call, _ []kernel.Texts, n []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				k := n[0].at(i)
				if k > maxText {
					return dst, errTooLong("space", k)
				}
				if err := c.room(int64(len(dst)) + k); err != nil {
					return dst, err
				}
				return append(dst, bytes.Repeat([]byte{' '}, int(max(k, 0)))...), nil
			}
		},
	},
	{
		name: "split_part", args: []Matcher{varchar, varchar, bigint}, fallible: true, doc: "The part with the given number, from 1, between occurrences of a separator; negative counts from the end; empty if there is none. Part 0 is an error.",
		example: "split_part('a,b,c', ',', 2) = b",
		f: func(_ *call, t []kernel.Texts, n []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				return append(dst, splitPart(t[0].At(i), t[1].At(i), n[0].at(i))...), notZeroPart(n[0].at(i))
			}
		},
	},
	{
		name: "substring_index", args: []Matcher{varchar, varchar, bigint}, doc: "The text before the given occurrence of a separator; after it, counted from the end, for a negative number.",
		example: "substring_index('a.b.c', '.', 2) = a.b",
		f: func(_ *call, t []kernel.Texts, n []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				return append(dst, substringIndex(t[0].At(i), t[1].At(i), n[0].at(i))...), nil
			}
		},
	},
	{
		name: "initcap", args: []Matcher{varchar}, doc: "The first letter of each word in upper case, all others in lower case.", example: "initcap('tide mill') = Tide Mill",
		f: func(_ *call, t []kernel.Texts, _ []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				start := true
				for _, r := range string(t[0].At(i)) {
					if start {
						dst = utf8.AppendRune(dst, unicode.ToTitle(r))
					} else {
						dst = utf8.AppendRune(dst, unicode.ToLower(r))
					}
					start = !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
				}
				return dst, nil
			}
		},
	},
	{
		name: "chr", aliases: []string{"char"}, args: []Matcher{bigint}, fallible: true, doc: "The character with a code point.", example: "chr(65) = A",
		f: func(_ *call, _ []kernel.Texts, n []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				v := n[0].at(i)
				if v < 0 || v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
					return dst, fmt.Errorf("there is no such character as %d", v)
				}
				return utf8.AppendRune(dst, rune(v)), nil
			}
		},
	},
}

func caseScalar(name, doc, example string, f func(memory.Allocator, arrow.Array) (arrow.Array, error), aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{varchar}, Result: always(columnar.String),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.String, func(c *call) (arrow.Array, error) { return f(c.env.Mem, c.args[0].Array()) }), nil
		},
	}}}
}

func lengthScalar(name, doc, example string, characters bool, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{textType}, Result: always(columnar.Int32),
		Bind: func(args []arrow.DataType, _ []arrow.Array) (Kernel, error) {
			characters := characters && args[0].ID() == arrow.STRING
			return onRows(columnar.Int32, func(c *call) (arrow.Array, error) {
				return kernel.Lengths(c.env.Mem, c.args[0].Array(), characters), nil
			}), nil
		},
	}}}
}

// lengthOfAnyScalar is length, of arrays and maps, too.
func lengthOfAnyScalar() *Scalar {
	f := lengthScalar("length", "Number of characters of a text, of bytes of a BINARY, of elements of an array, of entries of a map.", "length('größe') = 5", true, "len")
	f.Overloads = append(f.Overloads, sizeScalar().Overloads...)
	return f
}

func testScalar(name, doc, example string, test kernel.TextTest, aliases ...string) *Scalar {
	bind := func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return onRows(columnar.Boolean, func(c *call) (arrow.Array, error) {
			return kernel.TestText(c.env.Mem, test, c.args[0], c.args[1], c.rows), nil
		}), nil
	}
	s := &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{Args: []Matcher{varchar, varchar}, Result: always(columnar.Boolean), Bind: bind}}}
	if test == kernel.Contains { // an array contains an element, too
		s.Overloads = append(s.Overloads, arrayContains())
	}
	return s
}

func trimming(name, doc, example string, front, back bool, aliases ...string) textFunction {
	return textFunction{name: name, aliases: aliases, doc: doc, example: example, args: []Matcher{varchar, varchar}, optional: 1,
		f: func(_ *call, t []kernel.Texts, _ []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				set := " "
				if len(t) > 1 {
					set = string(t[1].At(i))
				}
				s := t[0].At(i)
				if front {
					s = bytes.TrimLeft(s, set)
				}
				if back {
					s = bytes.TrimRight(s, set)
				}
				return append(dst, s...), nil
			}
		}}
}

func padding(name, doc, example string, front bool) textFunction {
	return textFunction{name: name, doc: doc, example: example, args: []Matcher{varchar, bigint, varchar}, optional: 1, fallible: true,
		f: func(c *call, t []kernel.Texts, n []numbers[int64]) func([]byte, int) ([]byte, error) {
			return func(dst []byte, i int) ([]byte, error) {
				s, want, fill := t[0].At(i), n[0].at(i), []rune{' '}
				if len(t) > 1 {
					fill = []rune(string(t[1].At(i)))
				}
				missing := want - int64(utf8.RuneCount(s))
				switch {
				case missing <= 0:
					return append(dst, kernel.Substring(s, 1, max(want, 0))...), nil
				case len(fill) == 0:
					return append(dst, s...), nil
				case missing > maxText/4:
					return dst, errTooLong(name, want)
				}
				if err := c.room(int64(len(dst)) + missing); err != nil {
					return dst, err
				}
				if !front {
					dst = append(dst, s...)
				}
				for k := range missing {
					dst = utf8.AppendRune(dst, fill[k%int64(len(fill))])
				}
				if front {
					dst = append(dst, s...)
				}
				return dst, nil
			}
		}}
}

// replaceAll appends s with each what replaced. Where that makes it much longer, there must
// be room for all of it first.
func (c *call) replaceAll(dst, s, what, with []byte) ([]byte, error) {
	if len(what) == 0 {
		return append(dst, s...), nil
	}
	if longer := len(with) - len(what); longer > 64 {
		if err := c.room(int64(len(dst) + len(s) + bytes.Count(s, what)*longer)); err != nil {
			return dst, err
		}
	}
	start := len(dst)
	for {
		at := bytes.Index(s, what)
		if at < 0 {
			return append(dst, s...), nil
		}
		dst = append(dst, s[:at]...)
		dst = append(dst, with...)
		s = s[at+len(what):]
		if len(dst)-start > maxText {
			return dst, errTooLong("replace", int64(len(dst)-start))
		}
	}
}

func splitPart(s, separator []byte, n int64) []byte {
	if len(separator) == 0 {
		if n == 1 || n == -1 {
			return s
		}
		return nil
	}
	if n < 0 {
		n = int64(bytes.Count(s, separator)) + 2 + max(n, -1<<40)
	}
	if n <= 0 {
		return nil
	}
	for ; n > 1; n-- {
		at := bytes.Index(s, separator)
		if at < 0 {
			return nil
		}
		s = s[at+len(separator):]
	}
	if at := bytes.Index(s, separator); at >= 0 {
		s = s[:at]
	}
	return s
}

func substringIndex(s, separator []byte, n int64) []byte {
	if n == 0 || len(separator) == 0 {
		return nil
	}
	rest, at := s, 0
	if n > 0 {
		for ; n > 0; n-- {
			k := bytes.Index(rest, separator)
			if k < 0 {
				return s
			}
			at += k + len(separator)
			rest = s[at:]
		}
		return s[:at-len(separator)]
	}
	for ; n < 0; n++ {
		k := bytes.LastIndex(rest, separator)
		if k < 0 {
			return s
		}
		rest, at = rest[:k], k+len(separator)
	}
	return s[at:]
}

// position counts the characters before what in s, from 1; 0 if it is not there.
func position(s, what []byte) int32 {
	at := bytes.Index(s, what)
	if at < 0 {
		return 0
	}
	return int32(utf8.RuneCount(s[:at])) + 1
}

// concatScalar puts values together as text, two BINARY as BINARY, arrays as an array.
func concatScalar(name, doc string) *Scalar {
	texts := matcher{"any", func(a arrow.DataType) (arrow.DataType, int, bool) {
		if a.ID() == arrow.STRING {
			return a, 0, true
		}
		// As everywhere in SQL, || makes text of what is no text.
		return columnar.String, 6, a.ID() != arrow.LIST && a.ID() != arrow.STRUCT && a.ID() != arrow.MAP && a.ID() != arrow.BINARY
	}}
	join := func(out arrow.DataType) Kernel {
		return onRows(out, func(c *call) (arrow.Array, error) {
			parts, _ := c.textsAndInts()
			size := 0
			for _, p := range parts {
				size += p.Size(c.rows)
			}
			return c.text(size, func(dst []byte, i int) ([]byte, error) {
				for _, p := range parts {
					dst = append(dst, p.At(i)...)
				}
				return dst, nil
			})
		})
	}
	binary := class("BINARY", columnar.Binary, func(a arrow.DataType) bool { return a.ID() == arrow.BINARY })
	s := &Scalar{Name: name, Doc: doc, Example: map[string]string{"||": "'tide' || 'mill' = tidemill", "concat": "concat('a', 1, 'b') = a1b"}[name], Overloads: []Overload{
		{Args: []Matcher{texts}, Variadic: true, Result: always(columnar.String), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) { return join(columnar.String), nil }},
		{Args: []Matcher{binary}, Variadic: true, Result: always(columnar.Binary), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) { return join(columnar.Binary), nil }},
		arrayConcat(),
	}}
	if name == "concat" {
		s.alsoFor(nil, columnar.String, func(c *call) (arrow.Array, error) {
			return c.text(0, func(dst []byte, _ int) ([]byte, error) { return dst, nil })
		})
	}
	return s
}
