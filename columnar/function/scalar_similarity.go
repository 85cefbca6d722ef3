package function

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/text/unicode/norm"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// similarityScalars compare texts and bring them into a common form.
func similarityScalars() []*Scalar {
	two := []Matcher{varchar, varchar}
	return []*Scalar{
		defineFallible("hamming", "In how many places two texts of the same length differ.", "hamming('karolin', 'kathrin') = 3", two, columnar.Int64, func(c *call) (arrow.Array, error) {
			a, b := kernel.TextsOf(c.args[0]), kernel.TextsOf(c.args[1])
			return fallibleRows(c, func(i int) (int64, error) { return hamming([]rune(string(a.At(i))), []rune(string(b.At(i)))) })
		}, "mismatches"),
		define("damerau_levenshtein", "How many characters must be inserted, deleted, replaced or exchanged with their neighbour to turn one text into the other.", "damerau_levenshtein('abcd', 'bacd') = 1", two, columnar.Int64, func(c *call) (arrow.Array, error) {
			return distances[int64](c, damerauLevenshtein)
		}),
		define("levenshtein", "How many characters must be inserted, deleted or replaced to turn one text into the other.", "levenshtein('kitten', 'sitting') = 3", two, columnar.Int32, func(c *call) (arrow.Array, error) {
			return distances[int32](c, levenshtein)
		}, "editdist3"),
		onTexts("jaro_similarity", "How alike two texts are by Jaro's measure, from 0 to 1.", "round(jaro_similarity('martha', 'marhta'), 3) = 0.944", jaro),
		onTexts("jaro_winkler_similarity", "How alike two texts are by Jaro's measure, from 0 to 1, with weight on a common beginning.", "round(jaro_winkler_similarity('martha', 'marhta'), 3) = 0.961", func(a, b []rune) float64 {
			s := jaro(a, b)
			n := 0
			for n < min(4, len(a), len(b)) && a[n] == b[n] {
				n++
			}
			if s <= 0.7 {
				return s
			}
			return s + float64(n)*0.1*(1-s)
		}),
		onTexts("jaccard", "The share of the characters of two texts that are in both.", "jaccard('abc', 'abd') = 0.5", func(a, b []rune) float64 {
			in := map[rune]int{}
			for _, r := range a {
				in[r] |= 1
			}
			for _, r := range b {
				in[r] |= 2
			}
			both := 0
			for _, k := range in {
				if k == 3 {
					both++
				}
			}
			return float64(both) / float64(len(in))
		}),
		define("soundex", "A letter and three digits for how an English word sounds.", "soundex('Robert') = R163", []Matcher{varchar}, columnar.String, func(c *call) (arrow.Array, error) {
			in := kernel.TextsOf(c.args[0])
			return c.text(c.rows*4, func(dst []byte, i int) ([]byte, error) { return appendSoundex(dst, in.At(i)), nil })
		}),
		bytesOfText("strip_accents", "The text with letters instead of letters with marks.", "strip_accents('mühle') = muhle", func(dst, s []byte) []byte {
			for _, r := range string(norm.NFD.Bytes(s)) {
				if !unicode.Is(unicode.Mn, r) {
					dst = utf8.AppendRune(dst, r)
				}
			}
			return dst
		}),
		bytesOfText("nfc_normalize", "The text in Unicode's composed normal form.", "length(nfc_normalize('é')) = 1", func(dst, s []byte) []byte { return norm.NFC.Append(dst, s...) }),
		define("luhn_check", "Whether the last digit of a number, given as text, is its check digit by Luhn's rule.", "luhn_check('79927398713') = true", []Matcher{varchar}, columnar.Boolean, func(c *call) (arrow.Array, error) {
			in := kernel.TextsOf(c.args[0])
			return c.boolRows(func(i int) bool { return luhn(in.At(i)) })
		}),
		define("mask", "The text with X for upper case letters, x for lower case ones and n for digits.", "mask('AbCD123-@$#') = XxXXnnn-@$#", []Matcher{varchar}, columnar.String, func(c *call) (arrow.Array, error) {
			in := kernel.TextsOf(c.args[0])
			return c.text(in.Size(c.rows), func(dst []byte, i int) ([]byte, error) {
				return append(dst, strings.Map(masked, string(in.At(i)))...), nil
			})
		}),
	}
}

func masked(r rune) rune {
	switch {
	case unicode.IsUpper(r):
		return 'X'
	case unicode.IsLower(r):
		return 'x'
	case unicode.IsDigit(r):
		return 'n'
	}
	return r
}

// onTexts is a measure of two texts.
func onTexts(name, doc, example string, f func(a, b []rune) float64) *Scalar {
	return define(name, doc, example, []Matcher{varchar, varchar}, columnar.Float64, func(c *call) (arrow.Array, error) {
		a, b := kernel.TextsOf(c.args[0]), kernel.TextsOf(c.args[1])
		return fixedRows(c, func(i int) float64 {
			x, y := []rune(string(a.At(i))), []rune(string(b.At(i)))
			if len(x) == 0 || len(y) == 0 {
				return map[bool]float64{true: 1, false: 0}[len(x) == len(y)]
			}
			return f(x, y)
		})
	})
}

// bytesOfText is a function from a text to a text. f appends the result.
func bytesOfText(name, doc, example string, f func(dst, s []byte) []byte, aliases ...string) *Scalar {
	return define(name, doc, example, []Matcher{varchar}, columnar.String, func(c *call) (arrow.Array, error) {
		in := kernel.TextsOf(c.args[0])
		return c.text(in.Size(c.rows), func(dst []byte, i int) ([]byte, error) { return f(dst, in.At(i)), nil })
	}, aliases...)
}

func hamming(a, b []rune) (int64, error) {
	if len(a) != len(b) {
		return 0, fmt.Errorf("the texts must have the same length, not %d and %d characters", len(a), len(b))
	}
	n := int64(0)
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n, nil
}

// soundCodes are the digits of the letters from A; 0 stands for vowels, 7 for H and W,
// which do not part equal digits.
const soundCodes = "01230127022455012623017202"

func appendSoundex(dst, s []byte) []byte {
	word := strings.ToUpper(string(s))
	if word == "" || word[0] < 'A' || word[0] > 'Z' {
		return append(dst, s...)
	}
	code := [4]byte{word[0], '0', '0', '0'}
	n, last := 1, soundCodes[word[0]-'A']
	for i := 1; i < len(word) && n < 4; i++ {
		if word[i] < 'A' || word[i] > 'Z' {
			last = '0'
			continue
		}
		d := soundCodes[word[i]-'A']
		if d == '7' {
			continue
		}
		if d != '0' && d != last {
			code[n] = d
			n++
		}
		last = d
	}
	return append(dst, code[:]...)
}

func luhn(digits []byte) bool {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i]) - '0'
		if d < 0 || d > 9 {
			return false
		}
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return len(digits) > 0 && sum%10 == 0
}
