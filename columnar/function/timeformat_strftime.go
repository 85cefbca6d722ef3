package function

import (
	"fmt"
	"strings"
)

// compileStrftime reads a pattern of DuckDB's strftime.
func compileStrftime(source string) (*timePattern, error) {
	p := &timePattern{source: source}
	return p, p.directives(source)
}

// directiveForms are the directives that stand for others.
var directiveForms = map[byte]string{
	'c': "%Y-%m-%d %H:%M:%S",
	'F': "%Y-%m-%d",
	'x': "%Y-%m-%d",
	'T': "%H:%M:%S",
	'X': "%H:%M:%S",
}

// directives adds what text says.
func (p *timePattern) directives(text string) error {
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			p.literal(text[i : i+1])
			continue
		}
		i++
		short := i < len(text) && text[i] == '-'
		if short {
			i++
		}
		if i == len(text) {
			return fmt.Errorf("time format %q ends with %s; write %%%% for the character", p.source, text[strings.LastIndexByte(text, '%'):])
		}
		if err := p.directive(text[i], short); err != nil {
			return err
		}
	}
	return nil
}

// directive adds the field of %c, of no more digits than it needs if it is short.
func (p *timePattern) directive(c byte, short bool) error {
	width := 2
	if short {
		width = 1
		if strings.IndexByte("ymdHIMSjUWV", c) < 0 {
			return fmt.Errorf("time format %q: %%-%c is unknown; - leaves the zeros out of %%-y %%-m %%-d %%-j %%-H %%-I %%-M %%-S %%-U %%-W %%-V", p.source, c)
		}
	}
	if long := directiveForms[c]; long != "" {
		return p.directives(long)
	}
	switch c {
	case 'Y', 'G':
		p.field(c, 4)
	case 'y':
		p.items = append(p.items, patternItem{kind: 'y', width: width, text: cYear})
	case 'm', 'd', 'H', 'I', 'M', 'S', 'U', 'W', 'V':
		p.field(c, width)
	case 'j':
		p.field('j', 2*width-1)
	case 'g':
		p.field('f', 3)
	case 'f':
		p.field('f', 6)
	case 'n':
		p.field('f', 9)
	case 'h':
		p.field('b', 1)
	case 'b', 'B', 'a', 'A', 'p', 'Z', 'u', 'w':
		p.field(c, 1)
	case 'z':
		p.items = append(p.items, patternItem{kind: 'z', text: "xxx"})
	case '%':
		p.literal("%")
	default:
		return fmt.Errorf("time format %q: %%%c is unknown; known are %%Y %%m %%d %%H %%M %%S %%f %%y %%b %%B %%a %%A %%j %%I %%p %%z %%Z %%u %%w %%U %%W %%V %%G %%g %%n %%h %%c %%x %%X %%F %%T", p.source, c)
	}
	return nil
}
