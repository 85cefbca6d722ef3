package csv

import (
	"bytes"
	"math"
	"math/bits"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
)

const (
	// maxChunk is how many records are cut before their columns are filled: few
	// enough that text and cells are still in cache.
	maxChunk = 1024
	// lookAhead is how far quotes and carriage returns are looked for at a time.
	lookAhead = 32 << 10
)

// A fault is what is wrong with the form of a record.
type fault uint8

const (
	noFault fault = iota
	tooFew
	tooMany
	textAfterQuote
	quoteNotClosed
	notValue // found when columns were filled
)

var faults = [...]string{
	tooFew:         "the record has too few fields",
	tooMany:        "the record has too many fields",
	textAfterQuote: "text follows the closing quote",
	quoteNotClosed: "the quote is not closed before the file ends",
}

// problem is one fault of one record of the chunk.
type problem struct {
	row, field int32 // field is a position in the file
	what       fault
}

// scanner cuts the text of an Input into records and fields.
type scanner struct {
	d         *dialect
	in        *codec.Input
	delimiter pattern // the first byte of the delimiter

	// fields is the number of fields a record should have; 0 takes any number.
	fields int
	// slots[f] is where the cells of field f go: cells[slots[f]+row]; -1 drops them.
	slots []int32
	cells []cells.Cell

	// The records of the chunk, of which there are at most chunk.
	chunk      int
	rows       int
	start, end []int // spans, without the line end
	problems   []problem

	pos  int  // the next byte
	done bool // no record of the unit is left

	// No line feed stands in [pos, lf). No quote stands in [pos, noQuote); if
	// quoteFound, one stands at noQuote. The same for carriage returns.
	lf, noQuote, noCR   int
	quoteFound, crFound bool

	field int // of the record that careful is cutting
}

func newScanner(d *dialect, in *codec.Input) *scanner {
	chunk := min(maxChunk, in.Hi()-in.Lo()+1) // a small file has few records
	s := &scanner{d: d, in: in, pos: in.Lo(), chunk: chunk, start: make([]int, chunk), end: make([]int, chunk)}
	s.delimiter = patternOf(d.delimiter[0])
	s.moved()
	return s
}

// expect makes the scanner hand out fields: field f goes to slot slots[f], counted
// from 0, none if negative.
func (s *scanner) expect(slots []int, count int) {
	s.fields = len(slots)
	s.slots = make([]int32, len(slots))
	for f, slot := range slots {
		s.slots[f] = -1
		if slot >= 0 {
			s.slots[f] = int32(slot * s.chunk)
		}
	}
	s.cells = make([]cells.Cell, count*s.chunk)
	for i := range s.cells {
		s.cells[i] = cells.Absent
	}
}

// slot is the cells of slot i for the records of the chunk.
func (s *scanner) slot(i int) []cells.Cell { return s.cells[i*s.chunk:][:s.rows] }

// moved forgets what was known about the window.
func (s *scanner) moved() {
	s.lf, s.noQuote, s.noCR, s.quoteFound, s.crFound = 0, s.pos, s.pos, false, false
	if s.d.quote == 0 {
		s.noQuote = math.MaxInt
	}
}

// noQuotesTo says that no quote stands before buffer index i.
func (s *scanner) noQuotesTo(i int) {
	if i > s.noQuote {
		s.noQuote, s.quoteFound = i, false
	}
}

// more reads on; the bytes from pos stay.
func (s *scanner) more() error {
	err := s.in.More(s.pos)
	s.pos = s.in.Lo()
	s.moved()
	return err
}

// next cuts up to most records. There are none at the end of the unit. What an
// earlier call cut is gone.
func (s *scanner) next(most int) error {
	s.rows = 0
	s.problems = s.problems[:0]
	most = min(most, s.chunk)
	for !s.done && s.rows < most {
		if !s.cut(most) {
			continue
		}
		// The record at pos is not all here. The window cannot move under the cells
		// of those before it.
		if s.rows > 0 {
			return nil
		}
		if err := s.more(); err != nil {
			return err
		}
	}
	return nil
}

// cut cuts records until most are there, the unit ends, or a record is not all in
// the window; then it returns true.
func (s *scanner) cut(most int) (needMore bool) {
	buf, hi, limit := s.in.Buf(), s.in.Hi(), s.in.Limit()
	simple := len(s.d.delimiter) == 1
	for s.rows < most {
		for s.pos < hi && (buf[s.pos] == '\n' || buf[s.pos] == '\r') {
			s.pos++ // a blank line, or the rest of CRLF
		}
		if s.d.comment != 0 && !s.skipNoRecords(buf, hi) {
			return true
		}
		if s.pos >= limit || s.pos >= hi && s.in.Final() {
			s.done = true
			return false
		}
		if s.pos >= hi {
			return true
		}
		if s.lf < s.pos {
			s.lf = hi
			if i := bytes.IndexByte(buf[s.pos:hi], '\n'); i >= 0 {
				s.lf = s.pos + i
			}
		}
		e := s.lf
		if simple && (e < hi || s.in.Final()) && (e <= s.noQuote || !s.quoteBefore(buf, e)) {
			end := e
			if e > s.noCR && s.crBefore(buf, e) {
				end = s.noCR
			}
			if end >= e-1 {
				s.fast(buf, end)
				s.pos = min(e+1, hi)
				continue
			}
		}
		next, ok := s.careful(buf, hi, s.pos, recordStart)
		if !ok {
			return true
		}
		s.keep(s.pos, next)
		s.pos = next
	}
	return false
}

// skipNoRecords goes on to where a record may begin: behind blank lines, the rest of a
// CRLF, and comments. It is false at a comment whose end is not in the window.
func (s *scanner) skipNoRecords(buf []byte, hi int) bool {
	for {
		for s.pos < hi && (buf[s.pos] == '\n' || buf[s.pos] == '\r') {
			s.pos++
		}
		if s.d.comment == 0 || s.pos >= hi || buf[s.pos] != s.d.comment {
			return true
		}
		end := bytes.IndexAny(buf[s.pos:hi], "\r\n")
		switch {
		case end >= 0:
			s.pos += end
		case s.in.Final():
			s.pos = hi
		default:
			return false
		}
	}
}

// quoteBefore says whether a quote stands in [pos, e).
func (s *scanner) quoteBefore(buf []byte, e int) bool {
	if s.noQuote < s.pos {
		s.noQuote, s.quoteFound = s.pos, false
	}
	for !s.quoteFound && s.noQuote < e {
		to := min(s.noQuote+lookAhead, s.in.Hi())
		if i := bytes.IndexByte(buf[s.noQuote:to], s.d.quote); i >= 0 {
			s.noQuote += i
			s.quoteFound = true
		} else {
			s.noQuote = to
		}
	}
	return s.quoteFound && s.noQuote < e
}

// crBefore says whether a carriage return stands in [pos, e); the first is at noCR.
func (s *scanner) crBefore(buf []byte, e int) bool {
	if s.noCR < s.pos {
		s.noCR, s.crFound = s.pos, false
	}
	for !s.crFound && s.noCR < e {
		to := min(s.noCR+lookAhead, s.in.Hi())
		if i := bytes.IndexByte(buf[s.noCR:to], '\r'); i >= 0 {
			s.noCR += i
			s.crFound = true
		} else {
			s.noCR = to
		}
	}
	return s.crFound && s.noCR < e
}

// fast cuts the record [pos, e), which has no quote and no line end in it. Delimiters
// are found many bytes at a time: fields are too short for a call each to pay.
func (s *scanner) fast(buf []byte, e int) {
	row := s.rows
	s.rows++
	s.start[row], s.end[row] = s.pos, e
	slots, list := s.slots, s.cells
	p, f := s.pos, 0
	for at := p; at < e; at += marksWide {
		found := s.delimiter.marks(buf, at)
		if e-at < marksWide {
			found &= 1<<(uint(e-at)<<marksStep) - 1
		}
		for ; found != 0; found &= found - 1 {
			i := at + bits.TrailingZeros64(found)>>marksStep
			if f == len(slots)-1 {
				s.problems = append(s.problems, problem{int32(row), int32(f + 1), tooMany})
				s.lastField(row, f, p, i)
				marksEnd()
				return
			}
			if slot := slots[f]; slot >= 0 {
				list[int(slot)+row] = cells.Plain(p, i)
			}
			f++
			p = i + 1
		}
	}
	marksEnd()
	s.lastField(row, f, p, e)
	if f < len(slots)-1 {
		s.short(row, f+1)
	}
}

const (
	lows    = 0x0101010101010101
	lowBits = 0x7F7F7F7F7F7F7F7F
)

// wordMarks is a bit, the lowest, for each byte of x that is zero, exactly.
func wordMarks(x uint64) uint64 { return ^(x&lowBits + lowBits | x | lowBits) >> 7 }

func (s *scanner) lastField(row, f, p, e int) {
	if slot := s.slots[f]; slot >= 0 {
		s.cells[int(slot)+row] = cells.Plain(p, e)
	}
}

// short says that the fields of a record from f on are missing.
func (s *scanner) short(row, f int) {
	s.problems = append(s.problems, problem{int32(row), int32(f), tooFew})
	for _, slot := range s.slots[f:] {
		if slot >= 0 {
			s.cells[int(slot)+row] = cells.Absent
		}
	}
}

// keep makes the record [start, next) that careful has just cut part of the chunk.
func (s *scanner) keep(start, next int) {
	row := s.rows
	s.rows++
	s.start[row] = start
	buf := s.in.Buf()
	for next > start && (buf[next-1] == '\n' || buf[next-1] == '\r') {
		next--
	}
	s.end[row] = next
	if s.fields > 0 && s.field < s.fields {
		s.short(row, s.field)
	}
}

// careful cuts one record, or the rest of one from any state in it, with quotes and
// line ends in any place. next is behind the record and its line end. ok is false if
// it is not all in the window; nothing of it may be used then.
func (s *scanner) careful(buf []byte, hi, p int, st state) (next int, ok bool) {
	s.field = 0
	faultsBefore := len(s.problems)
	for {
		opened := p
		var cell cells.Cell
		what := noFault
		q := p
		switch {
		case st == inQuotes || st == afterEscape || st == afterQuote ||
			(st == recordStart || st == fieldStart) && s.d.quote != 0 && p < hi && buf[p] == s.d.quote:
			var complete bool
			cell, q, what, complete = s.quotedField(buf, hi, p, st)
			if !complete {
				s.problems = s.problems[:faultsBefore]
				return 0, false
			}
		}
		if cell == 0 || what == textAfterQuote {
			end := s.fieldEnd(buf, hi, q)
			if cell == 0 {
				cell = cells.Plain(opened, end)
			}
			q = end
		}
		if q == hi && !s.in.Final() {
			s.problems = s.problems[:faultsBefore]
			return 0, false
		}
		s.store(cell, what)
		if q == hi {
			return hi, true
		}
		if c := buf[q]; c == '\n' || c == '\r' {
			return q + 1, true
		}
		p = q + len(s.d.delimiter)
		st = fieldStart
	}
}

// store puts the cell of the next field of the record into its slot.
func (s *scanner) store(cell cells.Cell, what fault) {
	f := s.field
	s.field++
	if s.fields == 0 {
		s.cells = append(s.cells, cell)
		return
	}
	if what != noFault {
		s.problems = append(s.problems, problem{int32(s.rows), int32(f), what})
		cell = cells.Absent
	}
	if f < s.fields {
		if slot := s.slots[f]; slot >= 0 {
			s.cells[int(slot)+s.rows] = cell
		}
	} else if f == s.fields {
		s.problems = append(s.problems, problem{int32(s.rows), int32(f), tooMany})
	}
}

// quotedField reads a field in quotes from its opening quote at p, or from inside it
// in the other states. q is behind the closing quote.
func (s *scanner) quotedField(buf []byte, hi, p int, st state) (cell cells.Cell, q int, what fault, complete bool) {
	switch st {
	case recordStart, fieldStart, afterEscape:
		p++
	case afterQuote:
		if p < hi && buf[p] != s.d.quote {
			return s.closed(buf, hi, cells.Quoted(p, p), p)
		}
		p++
	}
	from := p
	hasEscape := false
	for {
		i := -1
		if p < hi {
			i = s.d.mark(buf[p:hi])
		}
		if i < 0 {
			return cells.Quoted(from, hi), hi, quoteNotClosed, s.in.Final()
		}
		p += i + 1
		if p == hi && !s.in.Final() {
			return 0, 0, 0, false
		}
		if buf[p-1] == s.d.quote && (p == hi || buf[p] != s.d.quote) {
			cell = cells.Quoted(from, p-1)
			if hasEscape {
				cell = cells.Escaped(from, p-1)
			}
			return s.closed(buf, hi, cell, p)
		}
		hasEscape = true
		p = min(p+1, hi)
	}
}

// closed looks at what follows a closing quote: the end of the field, or text that
// should not be there.
func (s *scanner) closed(buf []byte, hi int, cell cells.Cell, q int) (cells.Cell, int, fault, bool) {
	if q == hi || buf[q] == '\n' || buf[q] == '\r' {
		return cell, q, noFault, true
	}
	if rest := buf[q:hi]; !bytes.HasPrefix(rest, s.d.delimiter) {
		// Half a delimiter at the end of the window is not known for text yet.
		if !s.in.Final() && len(rest) < len(s.d.delimiter) {
			return cell, hi, noFault, false
		}
		return cell, q, textAfterQuote, true
	}
	return cell, q, noFault, true
}

// fieldEnd finds the delimiter or line end that ends an unquoted field.
func (s *scanner) fieldEnd(buf []byte, hi, p int) int {
	first := s.d.delimiter[0]
	rest := s.d.delimiter[1:]
	for ; p < hi; p++ {
		c := buf[p]
		if c == '\n' || c == '\r' || c == first && (len(rest) == 0 || bytes.HasPrefix(buf[p+1:hi], rest)) {
			return p
		}
	}
	return hi
}

// skipRecord goes behind the record that the state at the start of the range is in
// the middle of.
func (s *scanner) skipRecord(st state) error {
	for st != recordStart {
		fields, slots := s.fields, s.slots
		s.fields, s.slots = 1, []int32{-1}
		next, ok := s.careful(s.in.Buf(), s.in.Hi(), s.pos, st)
		s.fields, s.slots = fields, slots
		s.problems = s.problems[:0]
		if ok {
			s.pos = next
			break
		}
		if s.in.Hi() >= s.in.Limit() {
			s.done = true // it ends behind the range, in which no record begins then
			break
		}
		if err := s.more(); err != nil {
			return err
		}
	}
	s.moved()
	return nil
}

// skipTo goes to offset off of the text, if it is not there yet.
func (s *scanner) skipTo(off int64) error {
	for s.in.Offset(s.pos) < off && !s.in.Final() && s.in.Offset(s.in.Hi()) < off {
		s.pos = s.in.Hi()
		if err := s.more(); err != nil {
			return err
		}
	}
	if i := s.in.Offset(s.pos); i < off {
		s.pos = min(s.pos+int(off-i), s.in.Hi())
		s.moved()
	}
	return nil
}

// record cuts one record of any number of fields. It is nil at the end. Its cells are
// valid until the next call of any method.
func (s *scanner) record() ([]cells.Cell, error) {
	s.fields = 0
	for {
		s.cells = s.cells[:0]
		s.rows = 0
		buf, hi := s.in.Buf(), s.in.Hi()
		whole := s.skipNoRecords(buf, hi)
		if s.pos >= hi && s.in.Final() {
			return nil, nil
		}
		if whole && s.pos < hi {
			start := s.pos
			if next, ok := s.careful(buf, hi, s.pos, recordStart); ok {
				s.start[0], s.pos = start, next
				return s.cells, nil
			}
		}
		if err := s.more(); err != nil {
			return nil, err
		}
	}
}
