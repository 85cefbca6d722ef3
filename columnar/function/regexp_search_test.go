package function

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// searchPatterns are of every kind: anchors, classes, alternatives, lazy and empty loops.
var searchPatterns = []string{
	"", "a", "ab|a", "(a|ab)(c|bcd)", "^a", "a$", "^$", "a*", "a*?b", "a+b", "(a*)*", "(a*)+b", "(?:ab)*c", "(&|^)id=([^&]*)",
	"x.*y", "x.*?y", "(?s)x.*y", "(?i)straSSe", "(?m)^b", "\\bab\\b", "\\Bb", "[^a]b", "[äö]b?", "é+x", "(é|e)x", ".{2,3}ab", "(a)(b)?c",
	"a{2}b{1,}", "(?:a|b)*ab", "(?:a?){3}a{3}", "\\x{FFFD}b", "q=(\\d+)|id=(\\w+)", "[a-c]+[b-d]", ".ab", "..$",
}

func checkSearch(t *testing.T, pattern string, text []byte) {
	t.Helper()
	re, err := regexp.Compile(pattern)
	if err != nil {
		return
	}
	if got, want := newSearch(re).searcher().find(text), re.FindSubmatchIndex(text); !slices.Equal(got, want) {
		t.Errorf("%q in %q: %v, want %v", pattern, text, got, want)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", "a", "b", "abcd", "aab", "xaby", "xab\nyb", "p=1&id=22&id=3", "id=", "&id=x", "STRASSE straße", "ab éab", "ééx ex", "öb", "\xffb", "a\x80\x80ab", "\xe2\x82ab",
		"aaaaaaaa", strings.Repeat("a", 5000), strings.Repeat("ab", 3000), "q=12;id=ab_c",
	}
	for _, p := range searchPatterns {
		for _, text := range texts {
			checkSearch(t, p, []byte(text))
		}
	}
}

func FuzzSearch(f *testing.F) {
	for _, p := range searchPatterns {
		f.Add(p, []byte("ab&id=x\xffé"))
	}
	f.Fuzz(func(t *testing.T, pattern string, text []byte) {
		if len(pattern) < 200 && len(text) < 2000 {
			checkSearch(t, pattern, text)
		}
	})
}

// BenchmarkSearch finds a part of a URL.
func BenchmarkSearch(b *testing.B) {
	re := regexp.MustCompile("(&|^)channel_id=([^&]*)")
	text := []byte("https://www.nexmark.com/abcdefgh/ijklmnop/item.htm?query=1&channel_id=268435456")
	b.Run("search", func(b *testing.B) {
		s := newSearch(re).searcher()
		for b.Loop() {
			s.find(text)
		}
	})
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			re.FindSubmatchIndex(text)
		}
	})
}
