package function

import (
	"time"

	"github.com/tidemill/tidemill/columnar"
)

// formatRun formats one time after another. Times that come together often have the same
// text, where the pattern has a day or a minute as its finest part: then it is copied.
type formatRun struct {
	pattern  *timePattern
	from, to int64  // the text is that of these instants
	text     []byte // kept from row to row
}

// append appends what pattern.format does.
func (r *formatRun) append(dst []byte, p *timePattern, us int64, loc *time.Location) []byte {
	if p == r.pattern && r.from <= us && us < r.to {
		return append(dst, r.text...)
	}
	at := len(dst)
	dst = p.format(dst, us, loc)
	r.pattern = nil
	if step := p.finest(); step > 0 && columnar.IsUTC(loc) { // of UTC: others shift their clocks
		r.pattern, r.text = p, append(r.text[:0], dst[at:]...)
		r.from = us - columnar.FloorMod(us, step)
		r.to = r.from + step
	}
	return dst
}

// finest is how many microseconds have the same text, at least: the finest part of the
// pattern; 0 if no two have.
func (p *timePattern) finest() int64 {
	step := int64(columnar.MicrosPerDay)
	for _, it := range p.items {
		switch it.kind {
		case 'f':
			return 0
		case 'S':
			step = min(step, columnar.MicrosPerSecond)
		case 'M':
			step = min(step, columnar.MicrosPerMinute)
		case 'H', 'I', 'k', 'K', 'p':
			step = min(step, columnar.MicrosPerHour)
		}
	}
	return step
}
