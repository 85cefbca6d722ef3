package sql

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidemill/tidemill/logical/sql/ast"
)

// maxErrorText bounds the text of an error in bytes. CONTRACT 5.31 says 3,000
// characters; the rest is for what callers put in front.
const maxErrorText = 2700

// Error is what is wrong at one place of a text.
type Error struct {
	// File is the name of the text, empty if it has none.
	File string
	// Span are the offending bytes.
	Span ast.Span
	// Line and Column count from 1; columns are characters.
	Line, Column int
	// Source is the line of the text.
	Source string
	// Message is what is wrong.
	Message string
	// Expected lists what the parser would have taken instead, if known.
	Expected []string
	// Hint is what to do, empty if there is nothing to say.
	Hint string
	// Err is the kind of error, for errors.Is; nil if it is a plain mistake.
	Err error

	width int // characters to underline
}

// newError makes an Error for a stretch of src.
func newError(src string, span ast.Span, message string) *Error {
	e := &Error{Span: span, Message: message}
	e.locate(src)
	return e
}

// At places an error of another package at a node of src; one that has a place stays.
func At(src string, n ast.Node, err error) error {
	var placed *Error
	if err == nil || errors.As(err, &placed) {
		return err
	}
	e := newError(src, ast.Span{From: n.Pos(), To: n.End()}, err.Error())
	e.Err = err
	return e
}

// locate fills in the line, the column and the text of the line.
func (e *Error) locate(src string) {
	from := min(max(e.Span.From, 0), len(src))
	to := min(max(e.Span.To, from), len(src))
	start := strings.LastIndexByte(src[:from], '\n') + 1
	end := len(src)
	if i := strings.IndexByte(src[from:], '\n'); i >= 0 {
		end = from + i
	}
	e.Line = strings.Count(src[:start], "\n") + 1
	e.Column = utf8.RuneCountInString(src[start:from]) + 1
	e.Source = strings.TrimSuffix(src[start:end], "\r")
	e.width = max(1, utf8.RuneCountInString(src[from:min(to, end)]))
}

// Error is one paragraph: place, message, the line with the offending part
// underlined, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ": ")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d, column %d: ", e.Line, e.Column)
	}
	b.WriteString(clip(e.Message, 1200))
	if e.Line > 0 {
		line, caret := e.underline()
		b.WriteString("\n  " + line + "\n  " + caret)
	}
	if e.Hint != "" {
		b.WriteString("\nhint: " + clip(e.Hint, 800))
	}
	return b.String()
}

// Unwrap gives the kind of the error.
func (e *Error) Unwrap() error { return e.Err }

// underline gives the line, cut to a readable width around the place, and the
// carets below it. Blanks of all kinds become blanks, so that both align.
func (e *Error) underline() (line, caret string) {
	const before, width = 60, 110
	runes := []rune(e.Source)
	for i, r := range runes {
		if r < ' ' || r == 0x7f {
			runes[i] = ' '
		}
	}
	col := min(e.Column-1, len(runes))
	lead, tail := "", ""
	if col > before && len(runes) > width {
		cut := min(col-before, len(runes)-width)
		runes, col, lead = runes[cut:], col-cut, "…"
	}
	if len(runes) > width {
		runes, tail = runes[:width], "…"
	}
	carets := min(e.width, max(1, len(runes)-col))
	pad := strings.Repeat(" ", col+utf8.RuneCountInString(lead))
	return lead + string(runes) + tail, pad + strings.Repeat("^", carets)
}

// ErrorList is the errors of a text with several statements, in order.
type ErrorList []*Error

// Error is the errors one after another, the last of them only counted when the
// text would become too long.
func (l ErrorList) Error() string {
	var b strings.Builder
	for i, e := range l {
		text := e.Error()
		if i > 0 && b.Len()+len(text) > maxErrorText {
			fmt.Fprintf(&b, "\nand %d more", len(l)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(text)
	}
	return b.String()
}

// Unwrap gives the single errors.
func (l ErrorList) Unwrap() []error {
	errs := make([]error, len(l))
	for i, e := range l {
		errs[i] = e
	}
	return errs
}

// asError is nil for an empty list, the error itself for one, else the list.
func (l ErrorList) asError() error {
	switch len(l) {
	case 0:
		return nil
	case 1:
		return l[0]
	default:
		return l
	}
}

// clip shortens a text to at most n bytes, at a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// quote is %q of a piece of user input, shortened.
func quote(s string) string { return fmt.Sprintf("%q", clip(s, 60)) }

// orList writes "a", "a or b", "a, b or c".
func orList(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
}

// nearest gives the candidate closest to word, case aside, or "" if none is
// close enough to be a slip of the fingers.
func nearest(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, bestDist := "", min(2, (len(word)+1)/3)+1
	for _, c := range candidates {
		if d := editDistance(word, strings.ToLower(c), bestDist); d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, changes and swaps of neighbours
// between a and b, and gives limit when there are at least that many.
func editDistance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit || len(a) > 64 || len(b) > 64 {
		return limit
	}
	var rows [3][66]int
	for j := 0; j <= len(b); j++ {
		rows[0][j] = j
	}
	prev2, prev, cur := &rows[2], &rows[0], &rows[1]
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return min(prev[len(b)], limit)
}
