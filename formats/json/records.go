package json

import (
	"bytes"
	"strings"

	"github.com/tidemill/tidemill/formats/codec"
)

// records finds the records in the text of an Input, one after another. A use:
//
//	p, isBad, err := r.next(…)   the first byte of a record, -1 at the end
//	end, ok := r.object(…, p)    whatever is wanted of it
//	r.took(end)                  or, if that failed, r.broken(p)
type records struct {
	scanner
	in *codec.Input
	// inArray: records are the elements of arrays, of which one is open or not;
	// expect says what may come next in it.
	inArray, open bool
	expect        expectation
	// lineStart: nothing of the line at pos was read.
	lineStart bool
	// stop is the end of the last whole line, up to which records can be scanned
	// without asking for more; with multiline, the end of what is here.
	stop int
	pos  int
	done bool
	// fault is what is wrong where next found something else than a record.
	fault string
}

const (
	notClosed  = "the array is not closed before the file ends"
	behindEnd  = "something follows the end of the array"
	notDivided = "there is no comma between two elements of the array"
)

type expectation uint8

const (
	elementOrEnd   expectation = iota // behind [
	separatorOrEnd                    // behind an element
	element                           // behind a comma
)

// maxBroken bounds the text kept of a record that only the end of the file ends.
const maxBroken = 1 << 20

// newRecords begins to read a unit.
func newRecords(in *codec.Input, multiline bool, r codec.Range) (*records, error) {
	rec := &records{in: in, lineStart: true}
	rec.scanner.multiline = multiline
	rec.moved(in.Lo())
	if r.Divided && r.Start > 0 {
		return rec, rec.skipLine()
	}
	for isBlank(rec.buf[rec.pos:in.Hi()]) && !in.Final() {
		if err := rec.more(in.Hi()); err != nil {
			return nil, err
		}
	}
	if isArray(rec.buf[rec.pos:in.Hi()]) {
		rec.inArray = true
		rec.scanner.multiline = true
		rec.moved(rec.pos)
	}
	return rec, nil
}

func isBlank(p []byte) bool { return len(bytes.TrimLeft(p, " \t\r\n")) == 0 }

// moved takes in a new window, in which reading goes on at pos.
func (r *records) moved(pos int) {
	r.buf, r.pos = r.in.Buf(), pos
	hi := r.in.Hi()
	r.stop = hi
	if !r.multiline && !r.in.Final() {
		r.stop = pos
		if i := bytes.LastIndexByte(r.buf[pos:hi], '\n'); i >= 0 {
			r.stop = pos + i + 1
		}
	}
	r.hi = r.stop
	if r.stop < hi {
		r.hi = r.stop - 1 // that line feed is the one no scan goes beyond
	}
}

// more reads on from index keep.
func (r *records) more(keep int) error {
	err := r.in.More(keep)
	r.moved(r.in.Lo())
	return err
}

// skipLine goes behind the line that a range begins in.
func (r *records) skipLine() error {
	for {
		if i := bytes.IndexByte(r.buf[r.pos:r.in.Hi()], '\n'); i >= 0 {
			r.moved(r.pos + i + 1)
			return nil
		}
		if r.in.Final() || r.in.Hi() >= r.in.Limit() {
			r.done = true // no line begins in the range
			return nil
		}
		if err := r.more(r.in.Hi()); err != nil {
			return err
		}
	}
}

// next is the index of the first byte of the next record; isBad is set where
// something else stands. It is -1 at the end of the unit (done is set then), and where
// the window ends and held is true: the caller still needs what it holds.
func (r *records) next(held bool) (p int, isBad bool, err error) {
	for !r.done {
		p = r.skipBlanks()
		switch {
		case p == r.stop && !r.in.Final():
			if held {
				return -1, false, nil
			}
			if err := r.more(p); err != nil {
				return -1, false, err
			}
		case p == r.stop:
			r.done = true
			if r.open {
				r.fault = notClosed
				return p, true, nil
			}
		case r.lineStart && r.lineOf(p) > r.in.Limit():
			// A line belongs to the range it begins in, or right behind.
			r.done = true
		case r.inArray && !r.punctuation(p):
			r.depth = 0
			r.fault = ""
			switch {
			case !r.open:
				r.fault = behindEnd
			case r.expect == separatorOrEnd:
				r.fault = notDivided
			}
			return p, r.fault != "", nil
		case !r.inArray:
			r.depth = 0
			return p, false, nil
		}
	}
	return -1, false, nil
}

// skipBlanks goes to the next byte that is none.
func (r *records) skipBlanks() int {
	p := r.pos
	for p < r.stop && r.buf[p] <= ' ' {
		c := r.buf[p]
		if c == '\n' {
			r.lineStart = true
		} else if c != ' ' && c != '\t' && c != '\r' {
			break
		}
		p++
	}
	r.pos = p
	return p
}

// punctuation takes a bracket or comma of the array, if it may stand at p.
func (r *records) punctuation(p int) bool {
	switch c := r.buf[p]; {
	case c == '[' && !r.open:
		r.open, r.expect = true, elementOrEnd
	case c == ']' && r.open && r.expect != element:
		r.open = false
	case c == ',' && r.open && r.expect == separatorOrEnd:
		r.expect = element
	default:
		return false
	}
	r.pos++
	return true
}

// mayFollow says whether a record that is no object can end at end: behind it stands
// nothing, or the beginning of another one. Else it is part of a broken one, such as an
// object that lost its bracket.
func (r *records) mayFollow(end int) bool {
	if r.inArray {
		return true
	}
	for end < r.stop && (r.buf[end] == ' ' || r.buf[end] == '\t' || r.buf[end] == '\r') {
		end++
	}
	return end >= r.stop || r.buf[end] == '\n' || strings.IndexByte("{[\"-0123456789tfn", r.buf[end]) >= 0
}

// lineOf is where the line begins whose first byte other than blanks is at p.
func (r *records) lineOf(p int) int {
	for p > r.in.Lo() && r.buf[p-1] != '\n' {
		p--
	}
	return p
}

// took says that a record ended at end.
func (r *records) took(end int) { r.pos, r.lineStart, r.expect = end, false, separatorOrEnd }

// unfinished says whether the scan of a record that failed at end may only have come
// to the end of the window.
func (r *records) unfinished(end int) bool { return r.multiline && end >= r.hi && !r.in.Final() }

// broken goes behind the record at p that is no JSON: behind its line, or, where lines
// mean nothing, behind all that is left, for nothing shows where the next one begins.
// It is the span of what is given up, as far as it is kept.
func (r *records) broken(p int) (end int) {
	if r.multiline {
		r.done, r.open = true, false
		return min(r.hi, p+maxBroken)
	}
	end = r.stop
	if i := bytes.IndexByte(r.buf[p:r.stop], '\n'); i >= 0 {
		end = p + i
	}
	r.pos = end
	for end > p && r.buf[end-1] == '\r' {
		end--
	}
	return end
}
