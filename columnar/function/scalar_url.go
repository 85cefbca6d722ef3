package function

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// urlScalars take URLs apart.
func urlScalars() []*Scalar {
	decode := func(c *call) (arrow.Array, error) {
		in := kernel.TextsOf(c.args[0])
		return c.text(in.Size(c.rows), func(dst []byte, i int) ([]byte, error) {
			s, err := url.QueryUnescape(string(in.At(i)))
			return append(dst, s...), err
		})
	}
	parse := func(c *call) (arrow.Array, error) {
		t, _ := c.textsAndInts()
		return c.nullableText(t[0].Size(c.rows), func(dst []byte, i int) ([]byte, bool) {
			key := ""
			if len(t) > 2 {
				key = string(t[2].At(i))
			}
			part, ok := urlPart(string(t[0].At(i)), strings.ToUpper(string(t[1].At(i))), key, len(t) > 2)
			return append(dst, part...), ok
		})
	}
	two := []Matcher{varchar, varchar}
	return []*Scalar{
		defineFallible("url_decode", "The text that stands encoded in the query of a URL.", "url_decode('a+b%26c') = a b&c", []Matcher{varchar}, columnar.String, decode),
		define("try_url_decode", "Like url_decode, but null where that is an error.", "try_url_decode('%zz') = NULL", []Matcher{varchar}, columnar.String, func(c *call) (arrow.Array, error) {
			in := kernel.TextsOf(c.args[0])
			return c.nullableText(in.Size(c.rows), func(dst []byte, i int) ([]byte, bool) {
				s, err := url.QueryUnescape(string(in.At(i)))
				return append(dst, s...), err == nil && utf8.ValidString(s)
			})
		}),
		define("parse_url", "A part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY or USERINFO; of QUERY with a third argument the value of that key. Null if it is not there.", "parse_url('http://a.org/p?k=1', 'QUERY', 'k') = 1", two, columnar.String, parse).
			alsoFor([]Matcher{varchar, varchar, varchar}, columnar.String, parse),
		define("is_valid_utf8", "Whether the bytes of a text or BINARY are UTF-8.", "is_valid_utf8('é') = true", []Matcher{textType}, columnar.Boolean, func(c *call) (arrow.Array, error) {
			in := kernel.TextsOf(c.args[0])
			return c.boolRows(func(i int) bool { return utf8.Valid(in.At(i)) })
		}),
	}
}

// urlPart is a part of a URL as it is written there.
func urlPart(text, part, key string, hasKey bool) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || hasKey && part != "QUERY" {
		return "", false
	}
	there := func(s string) (string, bool) { return s, s != "" }
	switch part {
	case "HOST":
		return there(u.Hostname())
	case "PATH":
		return u.EscapedPath(), true
	case "REF":
		return there(u.EscapedFragment())
	case "PROTOCOL":
		return there(u.Scheme)
	case "AUTHORITY":
		if u.User != nil {
			return u.User.String() + "@" + u.Host, true
		}
		return there(u.Host)
	case "USERINFO":
		if u.User == nil {
			return "", false
		}
		return u.User.String(), true
	case "FILE":
		if u.RawQuery != "" {
			return u.EscapedPath() + "?" + u.RawQuery, true
		}
		return u.EscapedPath(), true
	case "QUERY":
		if !hasKey {
			return there(u.RawQuery)
		}
		for pair := range strings.SplitSeq(u.RawQuery, "&") {
			if k, v, ok := strings.Cut(pair, "="); ok && k == key {
				return v, true
			}
		}
	}
	return "", false
}
