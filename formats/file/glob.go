package file

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidemill/tidemill/logical/connector"
)

// A pattern is the elements of a glob below the root of a listing: * ? [a-z] [!a]
// within an element, ** for any number of folders, none too. Braces are expanded
// before.
type pattern []string

const anyDepth = "**"

// hasMeta says whether a path holds characters that mean something in a glob.
func hasMeta(p string) bool { return strings.ContainsAny(p, "*?[{") }

// parseGlob expands braces and splits off the part without patterns that all
// alternatives share: root is the directory to list, the patterns are below it.
func parseGlob(glob string) (root string, patterns []pattern, err error) {
	alternatives, err := expandBraces(glob)
	if err != nil {
		return "", nil, err
	}
	lists := make([]pattern, len(alternatives))
	for i, a := range alternatives {
		lists[i] = strings.Split(path.Clean(a), "/")
		for _, elem := range lists[i] {
			if _, err := matchElement(elem, ""); err != nil {
				return "", nil, badGlob(glob, err.Error())
			}
		}
	}
	fixed := len(lists[0]) - 1 // the last element is always matched, never part of the root
	for _, l := range lists {
		n := 0
		for n < len(l)-1 && n < fixed && !hasMeta(l[n]) && l[n] == lists[0][n] {
			n++
		}
		fixed = n
	}
	root = strings.Join(lists[0][:fixed], "/")
	switch {
	case fixed == 0:
		root = "."
	case root == "":
		root = "/"
	}
	for _, l := range lists {
		l = l[fixed:]
		if l[len(l)-1] == anyDepth {
			l = append(slices.Clone(l), "*")
		}
		patterns = append(patterns, l)
	}
	return root, patterns, nil
}

func badGlob(glob, reason string) error {
	return &connector.OptionError{Key: "path", Value: glob, HasValue: true, Reason: reason}
}

// maxAlternatives bounds what braces may expand to.
const maxAlternatives = 10000

// expandBraces lists what {a,b} stands for; braces may be nested and hold slashes.
func expandBraces(s string) ([]string, error) {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		return []string{s}, nil
	}
	depth, from := 0, open+1
	var parts []string
	for i := open; i < len(s); i++ {
		switch {
		case s[i] == '{':
			depth++
		case s[i] == ',' && depth == 1:
			parts = append(parts, s[from:i])
			from = i + 1
		case s[i] == '}':
			if depth--; depth > 0 {
				continue
			}
			return joinAlternatives(s, s[:open], append(parts, s[from:i]), s[i+1:])
		}
	}
	return nil, badGlob(s, "a brace is not closed")
}

func joinAlternatives(all, head string, parts []string, tail string) ([]string, error) {
	var out []string
	for _, p := range parts {
		rest, err := expandBraces(p + tail)
		if err != nil {
			return nil, err
		}
		if len(out)+len(rest) > maxAlternatives {
			return nil, badGlob(all, fmt.Sprintf("its braces stand for more than %d paths", maxAlternatives))
		}
		for _, r := range rest {
			out = append(out, head+r)
		}
	}
	return out, nil
}

// matchElement matches one name against one element of a pattern.
func matchElement(elem, name string) (bool, error) {
	if elem == anyDepth {
		return true, nil
	}
	if isHidden(name) && hasMeta(elem) {
		// Hidden is what begins with . or _: it is not data, unless its whole name is written.
		return false, validate(elem)
	}
	return matchText(elem, name)
}

// wantsHidden says whether a pattern seems to be meant for hidden names, which it never
// matches.
func wantsHidden(patterns []pattern) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool {
		return slices.ContainsFunc(p, func(elem string) bool { return isHidden(elem) && hasMeta(elem) })
	})
}

func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// matchText matches * ? [] against a text. A failed * is retried one character
// further on, only the last one: that is enough, and keeps the time quadratic.
func matchText(elem, name string) (bool, error) {
	p, n := 0, 0
	starP, starN := -1, 0
	for {
		if p < len(elem) && elem[p] == '*' {
			starP, starN = p+1, n
			p++
			continue
		}
		if n >= len(name) {
			break
		}
		if p < len(elem) {
			r, size := utf8.DecodeRuneInString(name[n:])
			ok, width, err := matchOne(elem[p:], r, name[n:n+size])
			if err != nil {
				return false, err
			}
			if ok {
				p, n = p+width, n+size
				continue
			}
		}
		if starP < 0 {
			return false, validate(elem)
		}
		_, size := utf8.DecodeRuneInString(name[starN:])
		starN += size
		p, n = starP, starN
	}
	return p == len(elem), validate(elem)
}

// validate finds brackets that are not closed in what was not looked at.
func validate(elem string) error {
	for p := 0; p < len(elem); {
		if elem[p] == '[' {
			_, width, err := matchOne(elem[p:], 0, "")
			if err != nil {
				return err
			}
			p += width
			continue
		}
		p++
	}
	return nil
}

// matchOne matches one character against the front of a pattern, which is not *.
// width is how much of the pattern that was.
func matchOne(elem string, r rune, text string) (ok bool, width int, err error) {
	switch elem[0] {
	case '?':
		return true, 1, nil
	case '[':
		return matchClass(elem, r)
	}
	_, size := utf8.DecodeRuneInString(elem)
	return elem[:size] == text, size, nil
}

func matchClass(elem string, r rune) (ok bool, width int, err error) {
	i := 1
	negated := i < len(elem) && (elem[i] == '!' || elem[i] == '^')
	if negated {
		i++
	}
	for first := true; ; first = false {
		if i >= len(elem) {
			return false, 0, fmt.Errorf("a bracket is not closed in %q", elem)
		}
		if elem[i] == ']' && !first {
			return ok != negated, i + 1, nil
		}
		low, size := utf8.DecodeRuneInString(elem[i:])
		i += size
		high := low
		if i+1 < len(elem) && elem[i] == '-' && elem[i+1] != ']' {
			high, size = utf8.DecodeRuneInString(elem[i+1:])
			i += 1 + size
		}
		ok = ok || low <= r && r <= high
	}
}

// globState is what is left to match of each pattern on the way down a tree. A nil
// element means that a folder was matched: everything below it counts.
type globState []pattern

// begin is the state at the root.
func begin(patterns []pattern) globState {
	if patterns == nil {
		return globState{nil}
	}
	return closure(slices.Clone(patterns))
}

// closure adds what ** stands for when it matches no folder.
func closure(s globState) globState {
	for i := 0; i < len(s); i++ {
		if len(s[i]) > 0 && s[i][0] == anyDepth {
			s = append(s, s[i][1:])
		}
	}
	return s
}

// step enters name. matched says that a pattern ends here; below is the state for
// what is in it, if it is a folder.
func (s globState) step(name string) (matched bool, below globState) {
	for _, p := range s {
		if p == nil {
			if !isHidden(name) {
				matched, below = true, append(below, nil)
			}
			continue
		}
		if ok, _ := matchElement(p[0], name); !ok || p[0] == anyDepth && isHidden(name) {
			continue
		}
		switch {
		case p[0] == anyDepth:
			below = append(below, p)
		case len(p) == 1:
			matched, below = true, append(below, nil)
		default:
			below = append(below, p[1:])
		}
	}
	if slices.ContainsFunc(below, func(p pattern) bool { return p == nil }) {
		return matched, globState{nil}
	}
	return matched, closure(below)
}
