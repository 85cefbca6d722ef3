package function

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// manyMay says whether steps may lead to several values.
func manyMay(steps []jsonStep) bool {
	return slices.ContainsFunc(steps, func(s jsonStep) bool { return s.all })
}

// streamed says whether steps can be followed in one pass: one value, and none that is
// counted from an end.
func streamed(steps []jsonStep) bool {
	return !slices.ContainsFunc(steps, func(s jsonStep) bool { return s.all || s.array && s.index < 0 })
}

// matchesAt are the parts of text that steps lead to, in order; none if it is no JSON.
func matchesAt(text []byte, steps []jsonStep) []jsontext.Value {
	if !jsontext.Value(text).IsValid(lenientJSON...) {
		return nil
	}
	found := []jsontext.Value{bytes.TrimSpace(text)}
	for _, s := range steps {
		var next []jsontext.Value
		for _, v := range found {
			next = append(next, s.into(v)...)
		}
		found = next
	}
	return found
}

// into are the members of v that one step leads to. Of a name that is there twice the
// last value counts.
func (s jsonStep) into(v jsontext.Value) []jsontext.Value {
	var names []string
	var members []jsontext.Value
	open := jsontext.Kind('{')
	if s.array {
		open = '['
	}
	eachJSON(v, open, func(d *jsontext.Decoder) bool {
		if !s.array {
			name, err := d.ReadToken()
			if err != nil {
				return false
			}
			names = append(names, name.String())
		}
		m, err := d.ReadValue()
		members = append(members, slices.Clone(m))
		return err != nil
	})
	switch {
	case s.all:
		return members
	case s.array && s.index < 0:
		s.index += len(members)
	case !s.array:
		s.index = -1
		for i, name := range names {
			if name == s.name {
				s.index = i
			}
		}
	}
	if s.index < 0 || s.index >= len(members) {
		return nil
	}
	return members[s.index : s.index+1]
}

// joined is what was found: an array if there may be several.
func joined(found []jsontext.Value, many bool) (jsontext.Value, bool) {
	if len(found) == 0 {
		return nil, false
	}
	if !many {
		return found[0], true
	}
	out := jsontext.Value{'['}
	for i, v := range found {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']'), true
}
