package faultfs

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting of a rule, so that no text exhausts the stack.
const maxDepth = 100

// Parse reads a rule from its text form.
func Parse(text string) (Rule, error) {
	p := parser{rest: text}
	r, err := p.rule()
	if err != nil {
		return Rule{}, fmt.Errorf("fault rule %q: %w", text, err)
	}
	return r, nil
}

// MustParse is Parse for texts in tests; it panics on an error.
func MustParse(text string) Rule {
	r, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return r
}

// parser reads tokens off the front of rest.
type parser struct {
	rest  string
	depth int
}

// next returns the next token: "(", ")", a quoted text with its quotes, or a
// word; "" at the end.
func (p *parser) next() (string, error) {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	n := 0
	switch {
	case p.rest == "":
		return "", nil
	case p.rest[0] == '(' || p.rest[0] == ')':
		n = 1
	case p.rest[0] == '"':
		quoted, err := strconv.QuotedPrefix(p.rest)
		if err != nil {
			return "", fmt.Errorf("text without end at %q", p.rest)
		}
		n = len(quoted)
	default:
		n = strings.IndexAny(p.rest, " \t\r\n()\"")
		if n < 0 {
			n = len(p.rest)
		}
	}
	token := p.rest[:n]
	p.rest = p.rest[n:]
	return token, nil
}

// expect reads one given token.
func (p *parser) expect(want string) error {
	got, err := p.next()
	if err == nil && got != want {
		err = fmt.Errorf("%q where %q should be", got, want)
	}
	return err
}

func (p *parser) rule() (Rule, error) {
	var r Rule
	if err := p.expect("("); err != nil {
		return r, err
	}
	word, err := p.next()
	if err != nil {
		return r, err
	}
	switch r.Action = Action(word); r.Action {
	case Crash, Short:
	case Error:
		if r.Err, err = p.next(); err != nil {
			return r, err
		}
		if Errors[r.Err] == nil {
			return r, fmt.Errorf("unknown error %q, known are %s", r.Err, slices.Sorted(maps.Keys(Errors)))
		}
	default:
		return r, fmt.Errorf("unknown action %q, known are crash, error, short", word)
	}
	if r.When, err = p.pred(); err != nil {
		return r, err
	}
	if err := p.expect(")"); err != nil {
		return r, err
	}
	return r, p.expect("")
}

func (p *parser) pred() (Pred, error) {
	if p.depth++; p.depth > maxDepth {
		return Pred{}, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	word, err := p.next()
	if err != nil {
		return Pred{}, err
	}
	if word != "(" {
		if !slices.Contains(words, word) {
			return Pred{}, fmt.Errorf("unknown condition %q", word)
		}
		return Pred{word: word}, nil
	}
	if word, err = p.next(); err != nil {
		return Pred{}, err
	}
	switch word {
	case "path":
		return p.pathPred()
	case "nth", "from":
		return p.countPred(word)
	case "and", "or":
		return p.listPred(word)
	case "not":
		arg, err := p.pred()
		if err != nil {
			return Pred{}, err
		}
		return Not(arg), p.expect(")")
	}
	return Pred{}, fmt.Errorf("unknown condition (%s …)", word)
}

func (p *parser) pathPred() (Pred, error) {
	token, err := p.next()
	if err != nil {
		return Pred{}, err
	}
	pattern, err := strconv.Unquote(token)
	if err != nil || !strings.HasPrefix(token, `"`) {
		return Pred{}, fmt.Errorf("path %s: want a text in double quotes", token)
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return Pred{}, fmt.Errorf("path %q: %w", pattern, err)
	}
	return Path(pattern), p.expect(")")
}

func (p *parser) countPred(word string) (Pred, error) {
	token, err := p.next()
	if err != nil {
		return Pred{}, err
	}
	n, err := strconv.Atoi(token)
	if err != nil || n < 0 {
		return Pred{}, fmt.Errorf("%s %q: want a count from 0", word, token)
	}
	arg, err := p.pred()
	if err != nil {
		return Pred{}, err
	}
	return Pred{word: word, n: n, args: []Pred{arg}}, p.expect(")")
}

// listPred reads one condition or more up to the closing parenthesis.
func (p *parser) listPred(word string) (Pred, error) {
	list := Pred{word: word}
	for {
		arg, err := p.pred()
		if err != nil {
			return Pred{}, err
		}
		list.args = append(list.args, arg)
		if rest := strings.TrimLeft(p.rest, " \t\r\n"); strings.HasPrefix(rest, ")") {
			return list, p.expect(")")
		}
	}
}
