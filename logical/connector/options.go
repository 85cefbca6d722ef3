package connector

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemill/tidemill/columnar"
)

// Key is one option: its name and where its text is decoded to. Make it with TextKey,
// FilledKey, BoolKey, IntKey, BytesKey, DurationKey, PeriodKey, EnumKey or ListKey.
type Key struct {
	Name string
	// Takes says which texts are right, as messages and documentation put it.
	Takes string
	set   func(text string) error
}

// TextKey stores the text as it is.
func TextKey(name string, p *string) Key {
	return Key{Name: name, Takes: "a text", set: func(s string) error { *p = s; return nil }}
}

// FilledKey is TextKey for what cannot be nothing.
func FilledKey(name string, p *string) Key {
	return Key{Name: name, Takes: "a text that is not empty", set: func(s string) error {
		if s == "" {
			return errValue
		}
		*p = s
		return nil
	}}
}

// BoolKey takes true or false.
func BoolKey(name string, p *bool) Key {
	return Key{Name: name, Takes: "true or false", set: func(s string) (err error) {
		*p, err = ParseBool(s)
		return err
	}}
}

// IntKey takes an integer that is at least low.
func IntKey(name string, p *int64, low int64) Key {
	return Key{Name: name, Takes: fmt.Sprintf("an integer of at least %d", low), set: func(s string) error {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		if err != nil || n < low {
			return errValue
		}
		*p = n
		return nil
	}}
}

// BytesKey takes a positive number of bytes: 1048576, '64MB', '1.5 GiB'.
func BytesKey(name string, p *int64) Key {
	return Key{Name: name, Takes: "a positive size such as '64MB'", set: func(s string) error {
		n, err := ParseBytes(s)
		if err != nil || n <= 0 {
			return errValue
		}
		*p = n
		return nil
	}}
}

// DurationKey takes a duration that is not negative: '10 seconds', '5m'.
func DurationKey(name string, p *time.Duration) Key {
	return Key{Name: name, Takes: "a duration such as '10 seconds'", set: func(s string) error {
		d, err := ParseDuration(s)
		if err != nil {
			return err
		}
		if d < 0 {
			return errValue
		}
		*p = d
		return nil
	}}
}

// PeriodKey takes a duration longer than nothing.
func PeriodKey(name string, p *time.Duration) Key {
	key := DurationKey(name, p)
	set := key.set
	key.set = func(s string) error {
		if err := set(s); err != nil {
			return err
		}
		if *p == 0 {
			return fmt.Errorf("it must be longer than nothing")
		}
		return nil
	}
	return key
}

// EnumKey takes one of words, in any case; the word's position is stored.
func EnumKey[T ~uint8](name string, p *T, words ...string) Key {
	return Key{Name: name, Takes: oneOf(words), set: func(s string) error {
		for i, w := range words {
			if strings.EqualFold(strings.TrimSpace(s), w) {
				*p = T(i)
				return nil
			}
		}
		return errValue
	}}
}

// ListKey takes names separated by commas; blanks around them are dropped.
func ListKey(name string, p *[]string) Key {
	return Key{Name: name, Takes: "names separated by commas", set: func(s string) error {
		var list []string
		for part := range strings.SplitSeq(s, ",") {
			part = strings.TrimSpace(part)
			if part == "" {
				return errValue
			}
			list = append(list, part)
		}
		*p = list
		return nil
	}}
}

// FuncKey hands the text to set; an error of set becomes the reason of an
// *OptionError.
func FuncKey(name, takes string, set func(text string) error) Key {
	return Key{Name: name, Takes: takes, set: set}
}

var errValue = fmt.Errorf("not such a value")

func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Names are the names of keys.
func Names(keys []Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// Decode stores every option by its key. Names match without regard to case. An
// unknown name, or a text its key does not take, is an *OptionError.
func Decode(options map[string]string, keys ...Key) error {
	for _, name := range slices.Sorted(maps.Keys(options)) {
		i := slices.IndexFunc(keys, func(k Key) bool { return strings.EqualFold(k.Name, name) })
		if i < 0 {
			return &OptionError{Key: name, Reason: "there is no such option" + columnar.DidYouMean(name, Names(keys))}
		}
		if err := keys[i].set(options[name]); err != nil {
			reason := "it takes " + keys[i].Takes
			if err != errValue {
				reason = err.Error()
			}
			return &OptionError{Key: keys[i].Name, Value: options[name], HasValue: true, Reason: reason}
		}
	}
	return nil
}

// ParseBool reads the text of a boolean option: true, false, and the words people
// write for them.
func ParseBool(s string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, errValue
}

// byteUnits are powers of 1024, as Spark reads them.
var byteUnits = map[string]float64{
	"": 1, "b": 1, "byte": 1, "bytes": 1,
	"k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10,
	"m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20,
	"g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30,
	"t": 1 << 40, "tb": 1 << 40, "tib": 1 << 40,
}

// ParseBytes reads a size: a number and, after optional blanks, a unit (B, KB, MB,
// GB, TB or their first letter or KiB and kin), all powers of 1024.
func ParseBytes(s string) (int64, error) {
	s = strings.TrimSpace(s)
	at := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if at < 0 {
		at = len(s)
	}
	unit, ok := byteUnits[strings.ToLower(strings.TrimSpace(s[at:]))]
	if !ok {
		return 0, fmt.Errorf("%q is not a size; write it as '64MB'", s)
	}
	if n, err := strconv.ParseInt(s[:at], 10, 64); err == nil && unit == 1 {
		return n, nil
	}
	n, err := strconv.ParseFloat(s[:at], 64)
	if err != nil || n*unit >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size; write it as '64MB'", s)
	}
	return int64(n * unit), nil
}

// ParseDuration reads a duration as SQL writes intervals ('10 seconds', '1 day 2
// hours', '5m'); a month counts 31 days.
func ParseDuration(s string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil && strings.Trim(s, " 0") != "" {
		return 0, fmt.Errorf("%q has no unit; write it as '%s seconds'", s, strings.TrimSpace(s))
	}
	if strings.Trim(s, " 0") == "" && strings.Contains(s, "0") {
		return 0, nil
	}
	v, err := columnar.ParseInterval(s)
	if err != nil {
		return 0, err
	}
	const day = 24 * time.Hour
	days := int64(v.Months)*31 + int64(v.Days)
	if days > math.MaxInt64/int64(day)/2 || days < math.MinInt64/int64(day)/2 {
		return 0, fmt.Errorf("%q is too long", s)
	}
	return time.Duration(days)*day + time.Duration(v.Nanoseconds), nil
}

// CheckLocal refuses a path of an option that is an address of another kind of storage:
// taken for a path it would be a folder of that name here.
func CheckLocal(key, p string) error {
	scheme, _, ok := strings.Cut(p, "://")
	isLetter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
	if !ok || scheme == "" || !isLetter(scheme[0]) || strings.EqualFold(scheme, "file") {
		return nil
	}
	for _, c := range []byte(scheme) {
		if !isLetter(c) && (c < '0' || c > '9') && !strings.ContainsRune("+-.", rune(c)) {
			return nil
		}
	}
	return &OptionError{Key: key, Value: p, HasValue: true, Reason: scheme + ":// is not on this machine, and only files are read and written; copy or mount it, and name the folder"}
}

// CleanPath tidies a path without changing what a pattern in it means: a scheme file://
// goes, and so do ./ and doubled and final slashes. No path stays none.
func CleanPath(p string) string {
	if p == "" {
		return ""
	}
	const scheme = "file://"
	if len(p) >= len(scheme) && strings.EqualFold(p[:len(scheme)], scheme) {
		p = p[len(scheme):]
	}
	return path.Clean(p)
}
