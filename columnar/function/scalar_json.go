package function

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// jsonScalars make and read JSON text.
func jsonScalars() []*Scalar {
	return []*Scalar{
		{Name: "to_json", Aliases: []string{"row_to_json", "array_to_json", "json_quote"}, Doc: "A value as JSON text.", Example: "to_json(array(1, 2)) = [1,2]", Overloads: []Overload{{
			Args: []Matcher{anyType}, Result: always(columnar.String),
			Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return onRows(columnar.String, func(c *call) (arrow.Array, error) {
					a := c.args[0].Array()
					return c.text(c.rows*32, func(dst []byte, i int) ([]byte, error) { return columnar.AppendTextJSON(dst, a, i), nil })
				}), nil
			},
		}}},
		{Name: "get_json_object", Aliases: []string{"json_extract_string"}, Doc: "What a path ($.a.\"b.c\"[0]) leads to in a JSON text: a text without its quotes, anything else as JSON; null if there is nothing, or the text is no JSON. [-1] is the last of an array; [*] and .* lead to all, an array of them if they are several. Of a name that is there twice the last value counts.", Example: "get_json_object('{\"a\":[1,2]}', '$.a[1]') = 2", Overloads: []Overload{{
			Args: []Matcher{varchar, varchar}, Result: always(columnar.String), NullSafe: true, Fallible: true,
			Bind: bindJSONPath,
		}}},
		fromJSONScalar(), schemaOfJSONScalar(),
		{Name: "json_valid", Doc: "Whether a text is one JSON value; a name may be there twice.", Example: "json_valid('{\"a\":1}') = true", Overloads: []Overload{{
			Args: []Matcher{varchar}, Result: always(columnar.Boolean),
			Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return onRows(columnar.Boolean, func(c *call) (arrow.Array, error) {
					in := kernel.TextsOf(c.args[0])
					return c.boolRows(func(i int) bool { return jsontext.Value(in.At(i)).IsValid(lenientJSON...) })
				}), nil
			},
		}}},
	}
}

// jsonStep is one step of a path: a name, or a number in an array, from its end if it is
// negative; or all of them.
type jsonStep struct {
	name  string
	index int
	array bool
	all   bool
}

// compileJSONPath reads $, .name, ."name", ['name'], ["name"], [0], [-1], [#-1], .* and
// [*].
func compileJSONPath(path, _ string) ([]jsonStep, error) {
	bad := func(rest string) ([]jsonStep, error) {
		return nil, fmt.Errorf("%q is no path: %q is not understood; write it like $.a.\"b.c\"[0]", path, rest)
	}
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return bad(path)
	}
	var steps []jsonStep
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, "['") || strings.HasPrefix(rest, `["`):
			name, after, ok := strings.Cut(rest[2:], rest[1:2]+"]")
			if !ok {
				return bad(rest)
			}
			steps = append(steps, jsonStep{name: name})
			rest = after
		case rest[0] == '[':
			number, after, ok := strings.Cut(rest[1:], "]")
			n, err := strconv.Atoi(strings.Replace(number, "#-", "-", 1))
			if !ok || err != nil && number != "*" {
				return bad(rest)
			}
			steps = append(steps, jsonStep{index: n, array: true, all: number == "*"})
			rest = after
		case strings.HasPrefix(rest, `."`):
			name, after, ok := strings.Cut(rest[2:], `"`)
			if !ok {
				return bad(rest)
			}
			steps = append(steps, jsonStep{name: name})
			rest = after
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			if end == 0 {
				return bad(rest)
			}
			steps = append(steps, jsonStep{name: rest[1 : end+1], all: rest[1:end+1] == "*"})
			rest = rest[end+1:]
		default:
			return bad(rest)
		}
	}
	return steps, nil
}

func bindJSONPath(_ []arrow.DataType, constants []arrow.Array) (Kernel, error) {
	literal, isLiteral := constantText(constants, 1)
	if isLiteral {
		if _, err := compileJSONPath(literal, ""); err != nil {
			return nil, err
		}
	}
	return onRows(columnar.String, func(c *call) (arrow.Array, error) {
		in, paths := kernel.TextsOf(c.args[0]), kernel.TextsOf(c.args[1])
		cache := newCompiled(compileJSONPath)
		var failed error
		a, err := c.nullableText(in.Size(c.rows)/2, func(dst []byte, i int) ([]byte, bool) {
			steps, err := cache.get(paths.At(i), "")
			if err != nil {
				if failed == nil && c.active.Get(i) {
					failed = err
				}
				return dst, false
			}
			return appendJSONAt(dst, in.At(i), steps)
		})
		if failed != nil && err == nil {
			a.Release()
			return nil, failed
		}
		return a, err
	}), nil
}

// appendJSONAt appends what steps lead to in a JSON text.
func appendJSONAt(dst, text []byte, steps []jsonStep) ([]byte, bool) {
	if manyMay(steps) {
		// Spark: one value stands alone, as JSON; several are an array.
		list := matchesAt(text, steps)
		if len(list) == 1 {
			return appendCompact(dst, list[0])
		}
	}
	v, ok := valueAt(text, steps)
	if !ok || v.Kind() == 'n' {
		return dst, false
	}
	if v.Kind() == '"' {
		dst, err := jsontext.AppendUnquote(dst, v)
		return dst, err == nil
	}
	return appendCompact(dst, v)
}
