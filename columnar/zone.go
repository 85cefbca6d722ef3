package columnar

import (
	"fmt"
	"strings"
	"time"
)

// shortZones are the three letters that name one zone to most, as Spark reads them. EST, MST
// and HST stand in the time zone database, without summer time.
var shortZones = map[string]string{"PST": "America/Los_Angeles", "JST": "Asia/Tokyo"}

// ambiguousZones are the three letters that Spark reads as one zone and others as another.
var ambiguousZones = map[string]string{
	"ACT": "Australia/Darwin, America/Rio_Branco or Asia/Singapore", "AET": "Australia/Sydney or Australia/Brisbane",
	"AST": "America/Halifax, America/Anchorage or Asia/Riyadh", "BST": "Europe/London, Asia/Dhaka or Pacific/Bougainville",
	"CST": "America/Chicago, Asia/Shanghai or America/Havana", "ECT": "Europe/Paris or America/Guayaquil",
	"IST": "Asia/Kolkata, Europe/Dublin or Asia/Jerusalem", "SST": "Pacific/Guadalcanal, Pacific/Pago_Pago or Asia/Singapore",
}

// LoadZone is the time zone of a name: one of the time zone database, an offset such as +01:00, +1
// or +0130, alone or behind UTC, UT or GMT, or one of a few short names. An offset is named
// +01:00 whatever it was written as, which LoadZone reads again.
func LoadZone(name string) (*time.Location, error) {
	offset := name
	for _, prefix := range []string{"UTC", "GMT", "UT"} {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			offset = name[len(prefix):]
			break
		}
	}
	if offset != "" && (offset[0] == '+' || offset[0] == '-') {
		p := scanner[string]{s: offset, i: 1}
		if us, ok := p.zoneOffset(); ok && p.i == len(offset) {
			return fixedZone(us, offset[0] == '-'), nil
		}
	}
	if zones := ambiguousZones[name]; zones != "" {
		return nil, fmt.Errorf("time zone %q means several; name %s", name, zones)
	}
	if long := shortZones[name]; long != "" {
		name = long
	}
	if loc, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
		return loc, nil
	}
	switch strings.ToUpper(name) {
	case "Z", "UTC", "UT", "GMT":
		return time.UTC, nil
	}
	return nil, fmt.Errorf("time zone %q is unknown; name one like Europe/Berlin, UTC or +02:00", name)
}

// fixedZone is the zone of an offset, to the west of UTC or to the east.
func fixedZone(us int64, west bool) *time.Location {
	seconds := int(us / MicrosPerSecond)
	switch {
	case seconds == 0:
		return time.UTC
	case west:
		seconds = -seconds
	}
	layout := "-07:00"
	if seconds%60 != 0 {
		layout = "-07:00:00"
	}
	zone := time.FixedZone("", seconds)
	return time.FixedZone(time.Time{}.In(zone).Format(layout), seconds)
}
