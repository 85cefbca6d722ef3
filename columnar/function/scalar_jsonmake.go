package function

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// jsonMakeScalars put JSON texts together.
func jsonMakeScalars() []*Scalar {
	object := func(args []arrow.DataType) (arrow.DataType, error) {
		if len(args)%2 != 0 {
			return nil, fmt.Errorf("names and values come in turn, so their number is even, not %d", len(args))
		}
		for k := 0; k < len(args); k += 2 {
			if args[k].ID() != arrow.STRING {
				return nil, fmt.Errorf("a name of a JSON object is VARCHAR, not %s", columnar.TypeName(args[k]))
			}
		}
		return columnar.String, nil
	}
	return []*Scalar{
		{Name: "json_object", Doc: "A JSON object of names and values, given in turn. A text becomes a JSON string; arrays, structs and maps nest.", Example: "json_object('a', 1, 'b', array(2)) = {\"a\":1,\"b\":[2]}", Overloads: []Overload{
			jsonMaker(object, true, appendJSONObject), emptyJSON("{}"),
		}},
		{Name: "json_array", Doc: "A JSON array of the values. A text becomes a JSON string; arrays, structs and maps nest.", Example: "json_array(1, 'a', NULL) = [1,\"a\",null]", Overloads: []Overload{
			jsonMaker(always(columnar.String), false, appendJSONArray), emptyJSON("[]"),
		}},
	}
}

func jsonMaker(result func([]arrow.DataType) (arrow.DataType, error), fallible bool, f func(c *call, dst []byte, i int) ([]byte, error)) Overload {
	return Overload{Args: []Matcher{anyType}, Variadic: true, Result: result, NullSafe: true, Fallible: fallible, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return onAllRows(columnar.String, func(c *call) (arrow.Array, error) {
			w := kernel.NewTextWriter(c.env.Mem, c.rows, c.rows*32)
			for i := range c.rows {
				from := len(w.Data)
				d, err := f(c, w.Data, i)
				if err != nil && c.active.Get(i) {
					w.Release()
					return nil, err
				}
				if w.Data = d; err != nil {
					w.Data = d[:from]
				}
				w.End()
			}
			return w.Finish(columnar.String, nil, 0)
		}), nil
	}}
}

func emptyJSON(text string) Overload {
	return Overload{Result: always(columnar.String), Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
		return func(env *Env, _ []columnar.Datum, _ int, _ *columnar.Bitmap) (columnar.Datum, error) {
			return columnar.Constant(env.Mem, columnar.String, text)
		}, nil
	}}
}

func appendJSONObject(c *call, dst []byte, i int) ([]byte, error) {
	dst = append(dst, '{')
	for k := 0; k < len(c.args); k += 2 {
		if c.isNull(k, i) {
			return dst, errors.New("a name of a JSON object is null")
		}
		if k > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = jsontext.AppendQuote(dst, kernel.TextsOf(c.args[k]).At(i)); err != nil {
			return dst, err
		}
		dst = columnar.AppendTextJSON(append(dst, ':'), c.args[k+1].Array(), c.place(k+1, i))
	}
	return append(dst, '}'), nil
}

func appendJSONArray(c *call, dst []byte, i int) ([]byte, error) {
	dst = append(dst, '[')
	for k := range c.args {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = columnar.AppendTextJSON(dst, c.args[k].Array(), c.place(k, i))
	}
	return append(dst, ']'), nil
}
