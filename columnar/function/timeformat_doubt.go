package function

import (
	"fmt"
	"strings"
)

// DoubtfulPattern says what is probably not meant in a pattern of a time that is legal: the
// minute right behind a year, or the month right behind an hour. It is empty if nothing is.
func DoubtfulPattern(source string) string {
	p, err := compileTime(source, "")
	if err != nil {
		return ""
	}
	minute, month := "mm", "MM"
	if strings.Contains(source, "%") {
		minute, month = "%M", "%m"
	}
	before := byte(0)
	for _, it := range p.items {
		switch {
		case it.kind == 0 || it.kind == '[':
			continue
		case it.kind == 'M' && (before == 'Y' || before == 'y'):
			return fmt.Sprintf("%s is the minute in the time format %q; %s is the month", minute, source, month)
		case it.kind == 'm' && strings.IndexByte("HIkK", before) >= 0:
			return fmt.Sprintf("%s is the month in the time format %q; %s is the minute", month, source, minute)
		}
		before = it.kind
	}
	return ""
}
