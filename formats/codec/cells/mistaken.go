package cells

import "fmt"

// mistaken says which letters of a format mean another part of a time than their place in
// it tells, so that every text would be read, and read wrongly: a minute among year and
// day, a month among hour and second, the day of the year behind the month.
func mistaken(items []item, letters func(k itemKind) string) error {
	parts := partsOf(nil, items)
	swapped := func(is, meant itemKind) error {
		return fmt.Errorf("%s is the %s, which does not belong there; %s is the %s", letters(is), partNames[is], letters(meant), partNames[meant])
	}
	has := map[itemKind]bool{}
	for i, k := range parts {
		has[k] = true
		var before, behind itemKind // literal: none
		if i > 0 {
			before = parts[i-1]
		}
		if i+1 < len(parts) {
			behind = parts[i+1]
		}
		switch {
		case k == minute && !isHour(before) && behind != second && (isDate(before) || isDate(behind)):
			return swapped(minute, month)
		case k == month && isHour(before) && (behind == literal || isClock(behind)):
			return swapped(month, minute)
		}
	}
	if has[dayOfYear] && has[month] && !has[day] {
		return swapped(dayOfYear, day)
	}
	return nil
}

// partsOf are the kinds of the items that stand for numbers of a date or a time.
func partsOf(parts []itemKind, items []item) []itemKind {
	for _, it := range items {
		switch {
		case it.kind == optional:
			parts = partsOf(parts, it.inner)
		case isDate(it.kind) || isClock(it.kind) || it.kind == month || it.kind == dayOfYear:
			parts = append(parts, it.kind)
		}
	}
	return parts
}

func isHour(k itemKind) bool { return k == hour24 || k == hour12 }

func isClock(k itemKind) bool { return isHour(k) || k == minute || k == second || k == fraction }

// isDate is about the parts that are not mistaken for one of the clock.
func isDate(k itemKind) bool {
	return k == year || k == year2 || k == yearPosix || k == day || k == monthName
}

var partNames = map[itemKind]string{minute: "minute", month: "month", day: "day of the month", dayOfYear: "day of the year"}

// javaLetters and strftimeLetters spell a part.
func javaLetters(k itemKind) string {
	return map[itemKind]string{minute: "mm", month: "MM", day: "dd", dayOfYear: "DD"}[k]
}

func strftimeLetters(k itemKind) string {
	return map[itemKind]string{minute: "%M", month: "%m", day: "%d", dayOfYear: "%j"}[k]
}
