package cells

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// Kind is what a text can be read as when columns are inferred.
type Kind uint8

const (
	Text      Kind = iota
	Integer        // 64 bits, no leading zero
	Number         // a floating point number
	Special        // NaN, Infinity: a number among numbers
	Boolean        // true, false
	Date           // YYYY-MM-DD
	Timestamp      // ISO 8601
)

// Classify says what text is. Digits with a leading zero and integers beyond 64 bits
// are text: as numbers they would not come back as they were.
func (r *Rules) Classify(text []byte) Kind {
	t := columnar.TrimBlanks(text)
	if len(t) == 0 {
		return Text
	}
	switch c := t[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
		if k := classifyNumber(r.ungrouped(t)); k != Text {
			return k
		}
	}
	if k := r.classifyTime(t); k != Text {
		return k
	}
	if equalFold(t, "true") || equalFold(t, "false") {
		return Boolean
	}
	if _, ok := special(t); ok {
		return Special
	}
	return Text
}

func classifyNumber(t []byte) Kind {
	if hasLeadingZero(t, 0, len(t)) {
		return Text
	}
	digits := t
	if t[0] == '-' || t[0] == '+' {
		digits = t[1:]
	}
	whole := len(digits) > 0
	for _, c := range digits {
		whole = whole && c-'0' <= 9
	}
	if whole {
		if _, ok := columnar.ParseInt(t); ok {
			return Integer
		}
		return Text
	}
	if _, ok := float(t, 0, len(t)); ok {
		return Number
	}
	return Text
}

// hasLeadingZero says whether the number buf[s:e] begins with a zero that another digit
// follows.
func hasLeadingZero(buf []byte, s, e int) bool {
	if s < e && (buf[s] == '-' || buf[s] == '+') {
		s++
	}
	return e-s > 1 && buf[s] == '0' && buf[s+1]-'0' <= 9
}

// isTextAsNumber says whether the number buf[s:e] is Text to classifyNumber.
func isTextAsNumber(buf []byte, s, e int) bool {
	return hasLeadingZero(buf, s, e) || e-s > 18 && classifyNumber(buf[s:e]) == Text // shorter ones have 64 bits
}

// hasISODate says whether t may begin with YYYY-MM-DD.
func hasISODate(t []byte) bool { return len(t) >= 10 && t[4] == '-' && t[7] == '-' }

// classifyTime recognises a date and a timestamp: by the formats the user set, else
// ISO 8601 with a date of ten characters.
func (r *Rules) classifyTime(t []byte) Kind {
	if r.Date != nil {
		if _, ok := r.Date.ParseDay(t); ok {
			return Date
		}
	}
	if r.Timestamp != nil {
		if _, ok := r.Timestamp.Parse(t, r.Location); ok {
			return Timestamp
		}
	}
	if !hasISODate(t) {
		return Text
	}
	if len(t) == 10 {
		if _, ok := columnar.ParseDate(t); ok && r.Date == nil {
			return Date
		}
		return Text
	}
	if _, ok := columnar.ParseTimestamp(t, r.Location); ok && r.Timestamp == nil {
		return Timestamp
	}
	return Text
}

// Kinds is the set of kinds seen in a column.
type Kinds uint8

// Add puts k into the set.
func (s *Kinds) Add(k Kind) { *s |= 1 << k }

// Empty says whether nothing was seen: only nulls.
func (s Kinds) Empty() bool { return s == 0 }

// IsText says whether a text was seen that is nothing else, so that the rest does not
// matter.
func (s Kinds) IsText() bool { return s&(1<<Text) != 0 }

// Type is the first of BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP that holds all
// values seen, else VARCHAR.
func (s Kinds) Type() arrow.DataType {
	const (
		integer = Kinds(1) << Integer
		number  = Kinds(1) << Number
		special = Kinds(1) << Special
		date    = Kinds(1) << Date
		instant = Kinds(1) << Timestamp
	)
	switch {
	case s == integer:
		return columnar.Int64
	case s&(integer|number) != 0 && s&^(integer|number|special) == 0:
		return columnar.Float64
	case s == 1<<Boolean:
		return columnar.Boolean
	case s == date:
		return columnar.Date
	case s&instant != 0 && s&^(date|instant) == 0:
		return columnar.Timestamp
	}
	return columnar.String
}
