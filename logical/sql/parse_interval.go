package sql

import (
	"strings"

	"github.com/tidemill/tidemill/logical/sql/ast"
)

// intervalUnits are the words for units, and the one word each has in the tree.
var intervalUnits = map[string]string{
	"MICROSECOND": "MICROSECOND", "MICROSECONDS": "MICROSECOND", "US": "MICROSECOND",
	"MILLISECOND": "MILLISECOND", "MILLISECONDS": "MILLISECOND", "MS": "MILLISECOND",
	"SECOND": "SECOND", "SECONDS": "SECOND", "SEC": "SECOND", "SECS": "SECOND", "S": "SECOND",
	"MINUTE": "MINUTE", "MINUTES": "MINUTE", "MIN": "MINUTE", "MINS": "MINUTE",
	"HOUR": "HOUR", "HOURS": "HOUR", "H": "HOUR",
	"DAY": "DAY", "DAYS": "DAY", "D": "DAY",
	"WEEK": "WEEK", "WEEKS": "WEEK", "W": "WEEK",
	"MONTH": "MONTH", "MONTHS": "MONTH", "MON": "MONTH", "MONS": "MONTH",
	"QUARTER": "QUARTER", "QUARTERS": "QUARTER",
	"YEAR": "YEAR", "YEARS": "YEAR", "Y": "YEAR",
}

// unitAt gives the unit that the token stands for, "" if none.
func unitAt(t token) string {
	if t.kind != tokenWord {
		return ""
	}
	return intervalUnits[t.text]
}

// needsUnit tells whether the text of an interval has no units of its own:
// '10', '1:30', but not '10 seconds'.
func needsUnit(text string) bool {
	return strings.Trim(text, "0123456789.:-+ _") == ""
}

// interval reads INTERVAL '10 seconds', '10' SECOND, 10 SECONDS, 1 DAY 2 HOURS,
// '1:30' MINUTE TO SECOND; nil if INTERVAL is a name here.
func (p *parser) interval() ast.Expr {
	from, at := p.from(), 1
	sign := p.ahead(1)
	if sign.isSymbol("-") || sign.isSymbol("+") {
		at = 2
	}
	amount := p.ahead(at)
	if amount.kind != tokenString && amount.kind != tokenNumber {
		return nil
	}
	// interval - 1 is a subtraction, interval - 1 hour is not.
	if at == 2 && unitAt(p.ahead(3)) == "" {
		return nil
	}
	p.skip(at)
	x := &ast.Interval{}
	for p.err == nil {
		amount := p.advance()
		part := ast.IntervalPart{Text: amount.text, Quoted: amount.kind == tokenString}
		part.Negative = sign.isSymbol("-") && len(x.Parts) == 0
		if unit := unitAt(p.tok()); unit != "" && (!part.Quoted || needsUnit(amount.text)) {
			p.advance()
			part.Unit = unit
		} else if !part.Quoted {
			p.fail("a unit like SECONDS, MINUTES or DAYS")
		}
		x.Parts = append(x.Parts, part)
		if !p.anotherPart(part) {
			break
		}
	}
	if last := x.Parts[len(x.Parts)-1]; last.Unit != "" && p.isWord("TO") && unitAt(p.ahead(1)) != "" {
		p.advance()
		x.To = unitAt(p.advance())
		if len(x.Parts) > 1 || !last.Quoted {
			p.failAt(p.span(from), "an interval with TO has one amount in quotes", "INTERVAL '1:30' MINUTE TO SECOND")
		}
	}
	x.Span = p.span(from)
	return x
}

// anotherPart tells whether the interval goes on: 1 DAY 2 HOURS.
func (p *parser) anotherPart(last ast.IntervalPart) bool {
	t := p.tok()
	if last.Unit == "" || unitAt(p.ahead(1)) == "" {
		return false
	}
	return t.kind == tokenNumber || t.kind == tokenString && needsUnit(t.text)
}
