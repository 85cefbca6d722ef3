package sql

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemill/tidemill/logical/sql/ast"
)

type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenWord             // name or keyword, not quoted
	tokenQuoted           // "name" or `name`
	tokenString           // '…'
	tokenNumber
	tokenSymbol
)

// token is one token. text is the word in upper case, the name or text without
// quotes, the number as written, or the symbol.
type token struct {
	kind tokenKind
	text string
	span ast.Span
}

// symbols are the operators and marks of more than one character, longest first.
var symbols = []string{"<=>", "->>", "//", "**", "||", "==", "<>", "!=", "<=", ">=", "::", ":=", "=>", "->", "<<", ">>"}

const singles = "+-*/%=<>()[]{},;.:&|~^!?@#$"

// lexer splits a text into tokens.
type lexer struct {
	src    string
	pos    int
	tokens []token
}

// lex gives the tokens of a text; the last one is tokenEnd.
func lex(src string) ([]token, *Error) {
	l := lexer{src: src, tokens: make([]token, 0, len(src)/4+2)}
	if strings.HasPrefix(src, "\ufeff") {
		l.pos = len("\ufeff") // a byte order mark at the head of a file
	}
	for {
		if err := l.blanks(); err != nil {
			return nil, err
		}
		if l.pos >= len(src) {
			l.emit(tokenEnd, "", l.pos)
			return l.tokens, nil
		}
		if err := l.next(); err != nil {
			return nil, err
		}
	}
}

func (l *lexer) emit(kind tokenKind, text string, from int) {
	l.tokens = append(l.tokens, token{kind, text, ast.Span{From: from, To: l.pos}})
}

func (l *lexer) fail(from, to int, message, hint string) *Error {
	e := newError(l.src, ast.Span{From: from, To: to}, message)
	e.Hint = hint
	return e
}

// blanks skips white space and comments. Block comments nest.
func (l *lexer) blanks() *Error {
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		switch {
		case strings.HasPrefix(rest, "--"):
			if i := strings.IndexByte(rest, '\n'); i >= 0 {
				l.pos += i + 1
			} else {
				l.pos = len(l.src)
			}
		case strings.HasPrefix(rest, "/*"):
			if err := l.blockComment(); err != nil {
				return err
			}
		default:
			r, n := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) && r != '\ufeff' {
				return nil
			}
			l.pos += n
		}
	}
	return nil
}

func (l *lexer) blockComment() *Error {
	from, depth := l.pos, 0
	for l.pos < len(l.src) {
		switch rest := l.src[l.pos:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			l.pos += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			l.pos += 2
			if depth == 0 {
				return nil
			}
		default:
			l.pos++
		}
	}
	return l.fail(from, from+2, "the comment that begins here does not end", "comments nest: every /* needs its own */")
}

// next reads the token at l.pos.
func (l *lexer) next() *Error {
	from := l.pos
	c := l.src[from]
	switch {
	case c == '\'':
		text, err := l.quoted('\'', "string")
		if err != nil {
			return err
		}
		l.emit(tokenString, text, from)
		return nil
	case c == '"' || c == '`':
		return l.quotedName(c)
	case isDigit(c) || c == '.' && from+1 < len(l.src) && isDigit(l.src[from+1]) && !l.afterOperand():
		return l.number()
	}
	r, n := utf8.DecodeRuneInString(l.src[from:])
	if r == utf8.RuneError && n == 1 {
		return l.fail(from, from+1, "the text is not valid UTF-8 here", "save it as UTF-8")
	}
	if isWordStart(r) {
		for l.pos < len(l.src) {
			r, n := utf8.DecodeRuneInString(l.src[l.pos:])
			if !isWordPart(r) || r == utf8.RuneError && n == 1 {
				break
			}
			l.pos += n
		}
		l.emit(tokenWord, upper(l.src[from:l.pos]), from)
		return nil
	}
	for _, s := range symbols {
		if strings.HasPrefix(l.src[from:], s) {
			l.pos += len(s)
			l.emit(tokenSymbol, s, from)
			return nil
		}
	}
	if strings.IndexByte(singles, c) >= 0 {
		l.pos++
		l.emit(tokenSymbol, l.src[from:l.pos], from)
		return nil
	}
	return l.badRune(r, n)
}

// badRune explains a character that begins no token; pasted text has a few
// that look like others.
func (l *lexer) badRune(r rune, n int) *Error {
	hint := ""
	switch r {
	case '‘', '’', '´':
		hint = "a string is written between straight quotes: 'text'"
	case '“', '”':
		hint = `a name is written between straight quotes: "name", a string between '…'`
	case '–', '—', '−':
		hint = "minus is written -"
	case '\\':
		hint = "there are no backslash escapes; a quote inside a string is doubled: 'it''s'"
	}
	return l.fail(l.pos, l.pos+n, "unexpected character "+quote(string(r)), hint)
}

// afterOperand tells whether a dot here belongs to what stands before it.
func (l *lexer) afterOperand() bool {
	if len(l.tokens) == 0 {
		return false
	}
	last := l.tokens[len(l.tokens)-1]
	if last.span.To != l.pos {
		return false
	}
	return last.kind == tokenWord || last.kind == tokenQuoted || last.text == ")" || last.text == "]"
}

// quoted reads a text between quotes, in which a doubled quote is a quote.
func (l *lexer) quoted(q byte, what string) (string, *Error) {
	from := l.pos
	l.pos++
	start := l.pos
	doubled := false
	for {
		i := strings.IndexByte(l.src[l.pos:], q)
		if i < 0 {
			l.pos = from
			return "", l.fail(from, from+1, "the "+what+" that begins here does not end", hintFor(what))
		}
		l.pos += i + 1
		if l.pos < len(l.src) && l.src[l.pos] == q {
			doubled = true
			l.pos++
			continue
		}
		text := l.src[start : l.pos-1]
		if !utf8.ValidString(text) {
			return "", l.fail(from, l.pos, "the "+what+" is not valid UTF-8", "save the text as UTF-8")
		}
		if doubled {
			pair := string([]byte{q, q})
			text = strings.ReplaceAll(text, pair, pair[:1])
		}
		return text, nil
	}
}

func hintFor(what string) string {
	if what == "string" {
		return "a quote inside a string is doubled: 'it''s'; there are no backslash escapes"
	}
	return ""
}

func (l *lexer) quotedName(q byte) *Error {
	from := l.pos
	text, err := l.quoted(q, "name")
	if err != nil {
		return err
	}
	if text == "" {
		return l.fail(from, l.pos, "a name cannot be empty", "a string is written '…'")
	}
	l.emit(tokenQuoted, text, from)
	return nil
}

// number reads digits, point, exponent and the suffix letters of Spark: L, S,
// Y, F, D, BD.
func (l *lexer) number() *Error {
	from := l.pos
	l.digits()
	if l.peek() == '.' && l.peekAt(1) != '.' {
		l.pos++
		l.digits()
	}
	if c := l.peek(); c == 'e' || c == 'E' {
		n := 1
		if s := l.peekAt(1); s == '+' || s == '-' {
			n = 2
		}
		if isDigit(l.peekAt(n)) {
			l.pos += n
			l.digits()
		}
	}
	suffix := l.pos
	for l.pos < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[l.pos:])
		if !isWordPart(r) || r == utf8.RuneError {
			break
		}
		l.pos += n
	}
	switch strings.ToUpper(l.src[suffix:l.pos]) {
	case "", "L", "S", "Y", "F", "D", "BD":
		l.emit(tokenNumber, l.src[from:l.pos], from)
		return nil
	}
	hint := `a name that begins with a digit is quoted: "1st"`
	if text := strings.ToUpper(l.src[from:l.pos]); strings.HasPrefix(text, "0X") || strings.HasPrefix(text, "0B") {
		hint = "numbers are written in decimal; X'1F' is one byte"
	}
	return l.fail(from, l.pos, quote(l.src[from:l.pos])+" is neither a number nor a name", hint)
}

// digits reads digits, with single underscores between them.
func (l *lexer) digits() {
	for isDigit(l.peek()) || l.peek() == '_' && l.pos > 0 && isDigit(l.src[l.pos-1]) && isDigit(l.peekAt(1)) {
		l.pos++
	}
}

func (l *lexer) peek() byte { return l.peekAt(0) }

func (l *lexer) peekAt(n int) byte {
	if l.pos+n < len(l.src) {
		return l.src[l.pos+n]
	}
	return 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWordStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isWordPart(r rune) bool {
	return isWordStart(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// upper is the upper case of ASCII letters only: keywords have no others, and
// other letters must not become keywords by case folding.
func upper(s string) string {
	for i := 0; i < len(s); i++ {
		if 'a' <= s[i] && s[i] <= 'z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if 'a' <= b[j] && b[j] <= 'z' {
					b[j] -= 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
