package function

import (
	"bytes"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// jsonPathScalars look into JSON text.
func jsonPathScalars() []*Scalar {
	return []*Scalar{
		atJSON("json_extract", "What a path ($.a.b[0]) leads to in a JSON text, as JSON; null if there is nothing, or the text is no JSON. [-1] is the last of an array; [*] and .* lead to an array of all. Of a name that is there twice the last value counts.", "json_extract('{\"a\":{\"b\":\"x\"}}', '$.a') = {\"b\":\"x\"}", columnar.String, false, appendCompact),
		atJSON("json_type", "The kind of JSON value of a text: OBJECT, ARRAY, VARCHAR, UBIGINT, BIGINT (if negative), DOUBLE, BOOLEAN or NULL; null if the text is no JSON.", "json_type('[1]') = ARRAY", columnar.String, true, func(dst []byte, v jsontext.Value) ([]byte, bool) {
			return append(dst, jsonKind(v)...), true
		}),
		define("json_array_length", "Number of elements of a JSON array; null of anything else.", "json_array_length('[1,2]') = 2", []Matcher{varchar}, columnar.Int64, func(c *call) (arrow.Array, error) {
			in := kernel.TextsOf(c.args[0])
			return nullableRows(c, func(i int) (int64, bool) {
				n := int64(0)
				ok := eachJSON(in.At(i), '[', func(*jsontext.Decoder) bool { n++; return true })
				return n, ok
			})
		}),
		define("json_object_keys", "The keys of a JSON object as an array, each once; null of anything else.", "json_object_keys('{\"a\":1,\"b\":2}') = [\"a\",\"b\"]", []Matcher{varchar}, columnar.ListOf(columnar.String), jsonKeys, "json_keys"),
		textChecked(defineFallible("json_exists", "Whether a path ($.a.b[0]) leads to something in a JSON text, be it null.", "json_exists('{\"a\":null}', '$.a') = true", []Matcher{varchar, varchar}, columnar.Boolean, pathsLead), 1, parseJSONPath),
	}
}

func pathsLead(c *call) (arrow.Array, error) {
	in, paths := kernel.TextsOf(c.args[0]), kernel.TextsOf(c.args[1])
	cache := newCompiled(compileJSONPath)
	var failed error
	a, err := c.boolRows(func(i int) bool {
		steps, err := cache.get(paths.At(i), "")
		if err != nil {
			if failed == nil && c.active.Get(i) {
				failed = err
			}
			return false
		}
		v, ok := valueAt(in.At(i), steps)
		return ok && len(v) > 0
	})
	if failed != nil && err == nil {
		a.Release()
		return nil, failed
	}
	return a, err
}

// atJSON is a text made of the value a path leads to; without a path, of the whole, if
// that is allowed.
func atJSON(name, doc, example string, out arrow.DataType, whole bool, f func(dst []byte, v jsontext.Value) ([]byte, bool)) *Scalar {
	run := func(c *call) (arrow.Array, error) {
		t, _ := c.textsAndInts()
		cache := newCompiled(compileJSONPath)
		var failed error
		a, err := c.nullableText(t[0].Size(c.rows)/2, func(dst []byte, i int) ([]byte, bool) {
			var steps []jsonStep
			if len(t) > 1 {
				var err error
				if steps, err = cache.get(t[1].At(i), ""); err != nil {
					if failed == nil && c.active.Get(i) {
						failed = err
					}
					return dst, false
				}
			}
			v, ok := valueAt(t[0].At(i), steps)
			if !ok {
				return dst, false
			}
			return f(dst, v)
		})
		if failed != nil && err == nil {
			a.Release()
			return nil, failed
		}
		return a, err
	}
	two := defineFallible(name, doc, example, []Matcher{varchar, varchar}, out, run)
	if whole {
		two.Overloads = append([]Overload{overload([]Matcher{varchar}, out, run)}, two.Overloads...)
	}
	return textChecked(two, 1, parseJSONPath)
}

func parseJSONPath(path string) ([]jsonStep, error) { return compileJSONPath(path, "") }

// valueAt is the part of text that steps lead to, as it is written, if text is JSON as a
// whole.
func valueAt(text []byte, steps []jsonStep) (jsontext.Value, bool) {
	if !streamed(steps) {
		return joined(matchesAt(text, steps), manyMay(steps))
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(text), lenientJSON...)
	v, err := stepInto(d, text, steps)
	if err != nil || v == nil {
		return nil, false
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, false
	}
	return v, true
}

// stepInto reads the next value of d, over text, and gives the part of it that steps lead
// to, nil if there is none. Of a name that is there twice the last value counts.
func stepInto(d *jsontext.Decoder, text []byte, steps []jsonStep) (jsontext.Value, error) {
	if len(steps) == 0 {
		v, err := d.ReadValue()
		end := d.InputOffset()
		return text[end-int64(len(v)) : end], err
	}
	kind, s := d.PeekKind(), steps[0]
	if s.array && kind != '[' || !s.array && kind != '{' {
		return nil, d.SkipValue()
	}
	_, _ = d.ReadToken() // what PeekKind has seen
	var found jsontext.Value
	for n := 0; d.PeekKind() != ']' && d.PeekKind() != '}'; n++ {
		here := s.array && n == s.index
		if !s.array {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			here = name.String() == s.name
		}
		if !here {
			if err := d.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		var err error
		if found, err = stepInto(d, text, steps[1:]); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return found, err
}

// appendCompact appends a value without the blanks between its parts.
func appendCompact(dst []byte, v jsontext.Value) ([]byte, bool) {
	n := len(dst)
	dst = append(dst, v...)
	tail := jsontext.Value(dst[n:])
	if tail.Compact(lenientJSON...) != nil {
		return dst[:n], false
	}
	return append(dst[:n], tail...), true
}

func jsonKind(v jsontext.Value) string {
	switch v.Kind() {
	case '{':
		return "OBJECT"
	case '[':
		return "ARRAY"
	case '"':
		return "VARCHAR"
	case 't', 'f':
		return "BOOLEAN"
	case 'n':
		return "NULL"
	}
	if bytes.ContainsAny(v, ".eE") {
		return "DOUBLE"
	}
	if v[0] != '-' {
		return "UBIGINT"
	}
	return "BIGINT"
}

// eachJSON calls f at each member of an array or object, which f reads past if it does
// not return true; false if text is anything else.
func eachJSON(text []byte, open jsontext.Kind, f func(d *jsontext.Decoder) bool) bool {
	if !jsontext.Value(text).IsValid(lenientJSON...) {
		return false
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(text), lenientJSON...)
	if t, err := d.ReadToken(); err != nil || t.Kind() != open {
		return false
	}
	for k := d.PeekKind(); k != ']' && k != '}'; k = d.PeekKind() {
		if f(d) && d.SkipValue() != nil {
			return false
		}
	}
	return true
}

func jsonKeys(c *call) (arrow.Array, error) {
	in := kernel.TextsOf(c.args[0])
	b := columnar.NewBuilder(c.env.Mem, columnar.ListOf(columnar.String))
	defer b.Release()
	for i := range c.rows {
		keys := []any{}
		isObject := !c.isNull(0, i) && eachJSON(in.At(i), '{', func(d *jsontext.Decoder) bool {
			name, err := d.ReadToken()
			if err == nil && !slices.Contains(keys, any(name.String())) {
				keys = append(keys, name.String())
			}
			return err == nil
		})
		if !isObject {
			b.AppendNull()
			continue
		}
		if err := b.Append(keys); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}
