package csv

import (
	"bytes"
	"sync"

	"github.com/tidemill/tidemill/formats/codec"
)

// state is all that the bytes before a place say about it.
type state uint8

const (
	recordStart state = iota // a quote would open; a record begins here
	fieldStart               // behind a delimiter: a quote would open
	unquoted                 // in a field; a quote is an ordinary character
	inQuotes                 // in a quoted field
	afterQuote               // in a quoted field, behind a quote: its end, or half of a doubled one
	afterEscape              // in a quoted field, behind an escape
)

// after is the state behind a byte outside quotes.
func (d *dialect) after(c byte) state {
	switch c {
	case d.delimiter[0]:
		return fieldStart
	case '\n', '\r':
		return recordStart
	}
	return unquoted
}

// advance is the state behind p for the state before it. The delimiter is one byte.
// It must agree with the scanner on every text, well-formed or not.
func (d *dialect) advance(st state, p []byte) state {
	if len(p) == 0 {
		return st
	}
	if d.quote == 0 {
		return d.after(p[len(p)-1])
	}
	i := 0
	switch st {
	case afterQuote:
		if p[0] == d.quote {
			st = inQuotes
		} else {
			st = d.after(p[0])
		}
		i = 1
	case afterEscape:
		st, i = inQuotes, 1
	}
	for i < len(p) {
		if st == inQuotes {
			st, i = d.advanceQuoted(p, i)
			continue
		}
		j := bytes.IndexByte(p[i:], d.quote)
		if j < 0 {
			return d.after(p[len(p)-1])
		}
		j += i
		if j > i {
			st = d.after(p[j-1])
		}
		if st == recordStart || st == fieldStart {
			st = inQuotes
		} else {
			st = unquoted
		}
		i = j + 1
	}
	return st
}

// advanceQuoted goes on from i, inside quotes, to behind the closing quote or the
// end of p.
func (d *dialect) advanceQuoted(p []byte, i int) (state, int) {
	for i < len(p) {
		j := d.mark(p[i:])
		if j < 0 {
			return inQuotes, len(p)
		}
		i += j + 1
		if p[i-1] != d.quote { // an escape
			if i == len(p) {
				return afterEscape, i
			}
			i++
			continue
		}
		if i == len(p) {
			return afterQuote, i
		}
		if p[i] != d.quote {
			return unquoted, i // what p[i] makes of it is seen by looking back
		}
		i++
	}
	return inQuotes, i
}

// mark finds the first quote or escape.
func (d *dialect) mark(p []byte) int {
	i := bytes.IndexByte(p, d.quote)
	if d.escape == d.quote || d.escape == 0 {
		return i
	}
	if i >= 0 {
		p = p[:i]
	}
	if j := bytes.IndexByte(p, d.escape); j >= 0 {
		return j
	}
	return i
}

// chain knows the state at the start of each range of a file. Whoever reads a range
// tells the state at its end by passed, before parsing it; a reader that comes to its
// range before the one in front of it was read looks through the bytes between, which
// costs a tenth of parsing them. It is safe for concurrent use.
type chain struct {
	file   codec.File
	d      *dialect
	ranges []codec.Range

	mu     sync.Mutex
	states []state // at the start of the first ranges
}

func newChain(file codec.File, d *dialect, ranges []codec.Range) *chain {
	return &chain{file: file, d: d, ranges: ranges, states: []state{recordStart}}
}

// start is the state at the start of range k.
func (c *chain) start(k int) (state, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.states) <= k {
		last := len(c.states) - 1
		st, r := c.states[last], c.ranges[last]
		first := last == 0
		err := codec.ReadWindow(c.file, r.Start, r.End, func(p []byte) {
			if first {
				p = bytes.TrimPrefix(p, []byte("\xEF\xBB\xBF"))
				first = false
			}
			st = c.d.advance(st, p)
		})
		if err != nil {
			return 0, err
		}
		c.states = append(c.states, st)
	}
	return c.states[k], nil
}

// passed says that range k, which begins in state st, holds p (without the mark at
// the start of the file). It says whether it is certain that no quote stands in p.
func (c *chain) passed(k int, st state, p []byte) (noQuotes bool) {
	c.mu.Lock()
	known := len(c.states) > k+1
	c.mu.Unlock()
	if known || k+1 == len(c.ranges) {
		return false
	}
	end := st
	if noQuotes = len(p) > 0 && st <= unquoted && bytes.IndexByte(p, c.d.quote) < 0; noQuotes {
		end = c.d.after(p[len(p)-1])
	} else {
		end = c.d.advance(st, p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.states) == k+1 {
		c.states = append(c.states, end)
	}
	return noQuotes
}
