package function

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// patternScalars are LIKE and the functions of regular expressions (RE2 syntax).
func patternScalars() []*Scalar {
	return []*Scalar{
		likeScalar("like", "Whether a text matches a pattern, in which % stands for any text and _ for one character; the third argument makes the character after it stand for itself.", "'tidemill' LIKE 'tide%' = true", false),
		likeScalar("ilike", "LIKE without regard to case.", "'TideMill' ILIKE 'tide%' = true", true),
		matchScalar("regexp_matches", "Whether a regular expression matches anywhere in a text.", "regexp_matches('abc123', '[0-9]+') = true", "", "regexp_like", "rlike", "regexp"),
		matchScalar("regexp_full_match", "Whether a regular expression matches the whole text.", "regexp_full_match('123', '[0-9]+') = true", "^(?:%s)$"),
		similarScalar(),
		regexpReplaceScalar(), regexpExtractScalar(), regexpCountScalar(),
	}
}

func likeScalar(name, doc, example string, fold bool) *Scalar {
	bind := func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		compile := func(pattern, escape string) (*kernel.Pattern, error) { return compileLike(pattern, escape, fold) }
		escape, hasEscape := constantText(constants, 2)
		if pattern, ok := constantText(constants, 1); ok && (len(constants) < 3 || hasEscape) {
			p, err := compile(pattern, escape)
			if err != nil {
				return nil, err
			}
			return onRows(columnar.Boolean, func(c *call) (arrow.Array, error) {
				return kernel.Like(c.env.Mem, c.args[0], p, c.rows), nil
			}), nil
		}
		return onRows(columnar.Boolean, func(c *call) (arrow.Array, error) {
			t, _ := c.textsAndInts()
			cache := newCompiled(compile)
			var failed error
			a, _ := c.boolRows(func(i int) bool {
				escape := ""
				if len(t) > 2 {
					escape = string(t[2].At(i))
				}
				p, err := cache.get(t[1].At(i), escape)
				if err != nil {
					if failed == nil && c.active.Get(i) {
						failed = err
					}
					return false
				}
				return p.Match(t[0].At(i))
			})
			if failed != nil {
				a.Release()
				return nil, failed
			}
			return a, nil
		}), nil
	}
	return &Scalar{Name: name, Doc: doc, Example: example, Overloads: []Overload{
		{Args: []Matcher{varchar, varchar}, Result: always(columnar.Boolean), Bind: bind}, // every text is a pattern
		{Args: []Matcher{varchar, varchar, varchar}, Result: always(columnar.Boolean), Fallible: true, Bind: bind},
	}}
}

func compileLike(pattern, escape string, fold bool) (*kernel.Pattern, error) {
	r := kernel.NoEscape
	if escape != "" {
		var size int
		if r, size = utf8.DecodeRuneInString(escape); size != len(escape) {
			return nil, fmt.Errorf("ESCAPE %q: one character is wanted", escape)
		}
	}
	return kernel.CompileLike(pattern, r, fold)
}

// compiled remembers the last pattern: patterns that are not literals still rarely
// change from row to row.
type compiled[P any] struct {
	compile func(pattern, extra string) (P, error)
	pattern string
	extra   string
	last    P
	err     error
	filled  bool
}

func newCompiled[P any](compile func(pattern, extra string) (P, error)) *compiled[P] {
	return &compiled[P]{compile: compile}
}

func (m *compiled[P]) get(pattern []byte, extra string) (P, error) {
	if !m.filled || m.pattern != string(pattern) || m.extra != extra {
		m.pattern, m.extra, m.filled = string(pattern), extra, true
		m.last, m.err = m.compile(m.pattern, extra)
	}
	return m.last, m.err
}

// compileRegexp compiles a pattern with flags: i (case does not count), m (^ and $ at
// lines), s (. matches line ends), g and c (accepted, and nothing to this function).
func compileRegexp(pattern, flags string) (*regexp.Regexp, error) {
	on := ""
	for _, f := range flags {
		switch f {
		case 'i', 'm', 's':
			on += string(f)
		case 'g', 'c':
		default:
			return nil, fmt.Errorf("regular expression flag %q is unknown; known are i, m, s, g", f)
		}
	}
	if on != "" {
		pattern = "(?" + on + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %s", pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re, nil
}

// regexpSource gives the expression of each row: the literal one, compiled once, or
// that of a column.
func regexpSource(constants []arrow.Array, pattern, flags int, wrap func(string) string) (func(c *call) func(i int) (*searcher, error), error) {
	compile := func(p, f string) (*searcher, error) {
		re, err := compileRegexp(wrap(p), f)
		if err != nil {
			return nil, err
		}
		return newSearch(re).searcher(), nil
	}
	flagText, hasFlags := constantText(constants, flags)
	if p, ok := constantText(constants, pattern); ok && (flags >= len(constants) || hasFlags) {
		re, err := compile(p, flagText)
		if err != nil {
			return nil, err
		}
		return func(*call) func(int) (*searcher, error) {
			own := re.searcher() // calls may be at the same time
			return func(int) (*searcher, error) { return own, nil }
		}, nil
	}
	return func(c *call) func(int) (*searcher, error) {
		cache := newCompiled(compile)
		patterns := kernel.TextsOf(c.args[pattern])
		return func(i int) (*searcher, error) {
			f := ""
			if flags < len(c.args) {
				f = string(kernel.TextsOf(c.args[flags]).At(i))
			}
			return cache.get(patterns.At(i), f)
		}
	}, nil
}

func plainPattern(p string) string { return p }

func matchScalar(name, doc, example, around string, aliases ...string) *Scalar {
	wrap := plainPattern
	if around != "" {
		wrap = func(p string) string { return fmt.Sprintf(around, p) }
	}
	bind := func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		source, err := regexpSource(constants, 1, 2, wrap)
		if err != nil {
			return nil, err
		}
		return onRows(columnar.Boolean, func(c *call) (arrow.Array, error) { return c.match(source(c)) }), nil
	}
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{
		{Args: []Matcher{varchar, varchar}, Result: always(columnar.Boolean), Fallible: true, Bind: bind},
		{Args: []Matcher{varchar, varchar, varchar}, Result: always(columnar.Boolean), Fallible: true, Bind: bind},
	}}
}

func (c *call) match(source func(i int) (*searcher, error)) (arrow.Array, error) {
	in := kernel.TextsOf(c.args[0])
	var failed error
	a, _ := c.boolRows(func(i int) bool {
		re, err := source(i)
		if err != nil {
			if failed == nil && c.active.Get(i) {
				failed = err
			}
			return false
		}
		return re.find(in.At(i)) != nil
	})
	if failed != nil {
		a.Release()
		return nil, failed
	}
	return a, nil
}

// similarScalar is SIMILAR TO: a regular expression with % and _ for any text and one
// character, over the whole text.
func similarScalar() *Scalar {
	wrap := func(p string) string {
		var b strings.Builder
		b.WriteString("(?s)^(?:")
		for _, r := range p {
			switch r {
			case '%':
				b.WriteString(".*")
			case '_':
				b.WriteString(".")
			case '.', '^', '$', '\\':
				b.WriteString(regexp.QuoteMeta(string(r)))
			default:
				b.WriteRune(r)
			}
		}
		b.WriteString(")$")
		return b.String()
	}
	return &Scalar{Name: "similar to", Aliases: []string{"similar_to"}, Doc: "Whether the whole text matches a pattern of |, *, +, ?, (…), […], with % for any text and _ for one character.", Example: "'abc' SIMILAR TO '(a|b)%' = true", Overloads: []Overload{{
		Args: []Matcher{varchar, varchar}, Result: always(columnar.Boolean), Fallible: true,
		Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			source, err := regexpSource(constants, 1, 2, wrap)
			if err != nil {
				return nil, err
			}
			return onRows(columnar.Boolean, func(c *call) (arrow.Array, error) { return c.match(source(c)) }), nil
		},
	}}}
}

// regexpReplaceScalar replaces every match, as Spark does.
func regexpReplaceScalar() *Scalar {
	bind := func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		source, err := regexpSource(constants, 1, 3, plainPattern)
		if err != nil {
			return nil, err
		}
		return onRows(columnar.String, func(c *call) (arrow.Array, error) {
			in, with, of := kernel.TextsOf(c.args[0]), kernel.TextsOf(c.args[2]), source(c)
			return c.text(in.Size(c.rows), func(dst []byte, i int) ([]byte, error) {
				re, err := of(i)
				if err != nil {
					return dst, err
				}
				s, template := in.At(i), goTemplate(with.At(i))
				matches, err := c.matches(re.std, s)
				if err != nil {
					return dst, err
				}
				from := 0
				var piece []byte
				for _, m := range matches {
					piece = re.std.Expand(append(piece[:0], s[from:m[0]]...), template, s, m)
					if dst, err = c.add(dst, piece); err != nil {
						return dst, err
					}
					from = m[1]
				}
				return append(dst, s[from:]...), nil
			})
		}), nil
	}
	return &Scalar{Name: "regexp_replace", Doc: "The text with every match of a regular expression replaced; $1 or \\1 in the replacement stands for what the first group matched.", Example: "regexp_replace('a1b22', '[0-9]+', '#') = a#b#", Overloads: []Overload{
		{Args: []Matcher{varchar, varchar, varchar}, Result: always(columnar.String), Fallible: true, Bind: bind},
		{Args: []Matcher{varchar, varchar, varchar, varchar}, Result: always(columnar.String), Fallible: true, Bind: bind},
	}}
}

// firstMatches is how many matches are looked for before room is reserved for more.
const firstMatches = 64 << 10

// matches are all matches of re in s. Where they are very many they are looked for again and
// again, for room is reserved before it is taken.
func (c *call) matches(re *regexp.Regexp, s []byte) ([][]int, error) {
	each := 24 + 16*(re.NumSubexp()+1)
	for n := firstMatches; ; n *= 8 {
		found := re.FindAllSubmatchIndex(s, n)
		if len(found) < n {
			return found, nil
		}
		most := min(8*n, len(s)+1)
		if err := c.room(int64(most*each - c.given)); err != nil {
			return nil, err
		}
	}
}

// goTemplate writes $1 and \1 as ${1}, so that a letter behind is not taken for part
// of a name, and every other $ as $$.
func goTemplate(s []byte) []byte {
	out := make([]byte, 0, len(s)+8)
	for i := 0; i < len(s); i++ {
		digit := i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9'
		switch {
		case (s[i] == '$' || s[i] == '\\') && digit:
			out = append(out, '$', '{', s[i+1], '}')
			i++
		case s[i] == '\\' && i+1 < len(s):
			i++
			if s[i] == '$' {
				out = append(out, '$')
			}
			out = append(out, s[i])
		case s[i] == '$':
			out = append(out, '$', '$')
		default:
			out = append(out, s[i])
		}
	}
	return out
}

func regexpExtractScalar() *Scalar {
	bind := func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
		source, err := regexpSource(constants, 1, 99, plainPattern)
		if err != nil {
			return nil, err
		}
		return onRows(columnar.String, func(c *call) (arrow.Array, error) {
			in, of := kernel.TextsOf(c.args[0]), source(c)
			return c.text(in.Size(c.rows), func(dst []byte, i int) ([]byte, error) {
				re, err := of(i)
				if err != nil {
					return dst, err
				}
				group := int64(min(re.std.NumSubexp(), 1))
				if len(c.args) > 2 {
					group = numbersOf[int64](c.args[2]).at(i)
				}
				if err := checkGroup(group, re.std.NumSubexp()); err != nil {
					return dst, err
				}
				s := in.At(i)
				m := re.find(s)
				if m == nil || m[2*group] < 0 {
					return dst, nil
				}
				return append(dst, s[m[2*group]:m[2*group+1]]...), nil
			})
		}), nil
	}
	return groupChecked(&Scalar{Name: "regexp_extract", Doc: "What a group of a regular expression matched first in a text: the first group if none is named, all if there are no groups; empty if nothing matched.", Example: "regexp_extract('k=42', 'k=([0-9]+)') = 42", Overloads: []Overload{
		{Args: []Matcher{varchar, varchar}, Result: always(columnar.String), Fallible: true, Bind: bind},
		{Args: []Matcher{varchar, varchar, bigint}, Result: always(columnar.String), Fallible: true, Bind: bind},
	}})
}

func regexpCountScalar() *Scalar {
	return &Scalar{Name: "regexp_count", Doc: "How many matches of a regular expression a text has.", Example: "regexp_count('a1b22', '[0-9]') = 3", Overloads: []Overload{{
		Args: []Matcher{varchar, varchar}, Result: always(columnar.Int32), Fallible: true,
		Bind: func(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
			source, err := regexpSource(constants, 1, 99, plainPattern)
			if err != nil {
				return nil, err
			}
			return onRows(columnar.Int32, func(c *call) (arrow.Array, error) {
				in, of := kernel.TextsOf(c.args[0]), source(c)
				return fallibleRows(c, func(i int) (int32, error) {
					re, err := of(i)
					if err != nil {
						return 0, err
					}
					return int32(len(re.std.FindAllIndex(in.At(i), -1))), nil
				})
			}), nil
		},
	}}}
}
