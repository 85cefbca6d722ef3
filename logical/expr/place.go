package expr

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Source is a text in which expressions are written. That of a call which a program makes,
// as a Term, is empty: it tells the call from others.
type Source struct {
	File string // may be empty
	Text string
	// Number tells the sources of one plan apart, see logical.NumberSources.
	Number uint64
}

// Place is where an expression is written, for errors of its evaluation: two nodes that
// differ in it only are equal. The zero Place is nowhere.
type Place struct {
	Source *Source
	Offset int // in bytes
}

// String is a place as errors begin with it: file: line 2, column 8. It is empty for the
// zero Place, and for a call of a program.
func (p Place) String() string {
	if p.Source == nil || p.Source.Text == "" {
		return ""
	}
	before := p.Source.Text[:min(p.Offset, len(p.Source.Text))]
	line := strings.LastIndexByte(before, '\n') + 1
	text := fmt.Sprintf("line %d, column %d", strings.Count(before, "\n")+1, utf8.RuneCountInString(before[line:])+1)
	if p.Source.File != "" {
		text = p.Source.File + ": " + text
	}
	return text
}

// Site is a number that tells two calls of one plan apart, which in one text each have a
// parenthesis: what random functions of a query draw from beside each other. Blank space
// and comments before the call change nothing.
func (p Place) Site() uint64 {
	if p.Source == nil {
		return 0
	}
	return p.Source.Number<<32 + uint64(strings.Count(p.Source.Text[:min(p.Offset, len(p.Source.Text))], "("))
}

// Written is the text of e for a message, which calls a function by the alias that e has at its
// place.
func Written(e Expr) string {
	s := e.String()
	c, ok := e.(*Call)
	if ok && c.isMovedDate() {
		s = text(c.writeCall)
	}
	if !ok || c.Place.Source == nil || c.Place.Offset > len(c.Place.Source.Text) {
		return s
	}
	written, _, isCall := strings.Cut(c.Place.Source.Text[c.Place.Offset:], "(")
	rest, named := strings.CutPrefix(s, c.Func.Name+"(")
	written = strings.ToLower(strings.TrimSpace(written))
	if !isCall || !named || !slices.Contains(c.Func.Aliases, written) {
		return s
	}
	return written + "(" + rest
}

// SetPlace gives e, and what was made with it, the place p; what has one keeps it. It is
// for whoever has just made e.
func SetPlace(e Expr, p Place) {
	switch x := e.(type) {
	case *Call:
		if x.Place.Source == nil {
			x.Place = p
			setPlaces(x.Args, p)
		}
	case *Cast:
		if x.Place.Source == nil {
			x.Place = p
			SetPlace(x.Input, p)
		}
	case *Agg:
		if x.Place.Source == nil {
			x.Place = p
			setPlaces(x.Args, p)
		}
	case *Over:
		if x.Place.Source == nil {
			x.Place = p
			setPlaces(x.Children(), p)
		}
	case *Logic, *Case, *In:
		setPlaces(e.Children(), p) // what a binder made: they cannot fail themselves
	}
}

func setPlaces(list []Expr, p Place) {
	for _, e := range list {
		SetPlace(e, p)
	}
}

// PlaceOf is where e is written, as far as it is known.
func PlaceOf(e Expr) Place {
	switch x := e.(type) {
	case *Call:
		return x.Place
	case *Cast:
		return x.Place
	case *Agg:
		return x.Place
	case *Over:
		return x.Place
	}
	return Place{}
}
