package function

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// fromJSONScalar reads JSON text as the type of its second argument, a null of that type:
// what a binder makes of a schema written as text.
func fromJSONScalar() *Scalar {
	nested := class("schema", columnar.ListOf(columnar.Null), columnar.IsNested)
	form := func(args ...Matcher) Overload {
		return Overload{Args: args, Result: jsonSchemaType, NullSafe: true, Fallible: len(args) > 2,
			Bind: func(types []arrow.DataType, _ []arrow.Array) (Kernel, error) {
				return onAllRows(types[1], fromJSON), nil
			},
		}
	}
	return &Scalar{
		Name:    "from_json",
		Doc:     "A JSON text as the STRUCT, ARRAY or MAP that a schema written as text describes: fields by their exact names; what is not there and what does not fit is null. A text that is no such JSON gives a STRUCT of nulls, or null for an ARRAY or MAP; with 'failfast' as a third argument it is an error.",
		Example: `from_json('{"a":1,"b":"x"}', 'a INT, b VARCHAR') = {"a":1,"b":"x"}`, Overloads: []Overload{form(varchar, nested), form(varchar, nested, varchar)},
	}
}

// jsonSchemaType is the type of the second argument, if JSON can hold it.
func jsonSchemaType(args []arrow.DataType) (arrow.DataType, error) {
	if hasOtherKeys(args[1]) {
		return nil, errors.New("the keys of a MAP in JSON are texts: MAP<VARCHAR, …>")
	}
	return args[1], nil
}

// hasOtherKeys says whether a map within dt has keys that are not texts.
func hasOtherKeys(dt arrow.DataType) bool {
	switch t := dt.(type) {
	case *arrow.MapType:
		return t.KeyType().ID() != arrow.STRING || hasOtherKeys(t.ItemType())
	case *arrow.ListType:
		return hasOtherKeys(t.Elem())
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if hasOtherKeys(f.Type) {
				return true
			}
		}
	}
	return false
}

func fromJSON(c *call) (arrow.Array, error) {
	b := array.NewBuilder(c.env.Mem, c.out)
	defer b.Release()
	b.Reserve(c.rows)
	misfit := false
	root := newJSONReader(c.out, b, c.env.Location, &misfit)
	in := kernel.TextsOf(c.args[0])
	for i := range c.rows {
		var text []byte
		if !c.isNull(0, i) {
			text = bytes.TrimSpace(in.At(i))
		}
		misfit = false
		switch {
		case len(text) == 0:
			b.AppendNull()
		case !root.document(text):
			misfit = true
			root.malformed()
		}
		failFast, err := c.failsFast(i)
		if err != nil && c.active.Get(i) {
			return nil, err
		}
		if failFast && misfit && c.active.Get(i) {
			return nil, fmt.Errorf("%q does not read as %s", text[:min(len(text), 100)], columnar.TypeName(c.out))
		}
	}
	return b.NewArray(), nil
}

// failsFast reads the mode of row i, the third argument of from_json.
func (c *call) failsFast(i int) (bool, error) {
	if len(c.args) < 3 || c.isNull(2, i) {
		return false, nil
	}
	switch mode := kernel.TextsOf(c.args[2]).At(i); {
	case bytes.EqualFold(mode, []byte("permissive")):
		return false, nil
	case bytes.EqualFold(mode, []byte("failfast")), bytes.EqualFold(mode, []byte("fail")):
		return true, nil
	default:
		return false, fmt.Errorf("%q is no mode; there are 'permissive' and 'failfast'", mode)
	}
}
