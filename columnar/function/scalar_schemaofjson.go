package function

import (
	"bytes"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

func schemaOfJSONScalar() *Scalar {
	return defineFallible("schema_of_json", "The type of a JSON text, as from_json takes it.", `schema_of_json('{"a":1}') = STRUCT<a BIGINT>`, []Matcher{varchar}, columnar.String, func(c *call) (arrow.Array, error) {
		in := kernel.TextsOf(c.args[0])
		return c.text(c.rows*32, func(dst []byte, i int) ([]byte, error) {
			dt, err := SchemaOfJSON(in.At(i))
			if err != nil {
				return nil, err
			}
			return append(dst, columnar.TypeName(dt)...), nil
		})
	})
}

// SchemaOfJSON is the type that the value of a JSON text has: BIGINT, DOUBLE, BOOLEAN,
// VARCHAR, ARRAY or STRUCT; VARCHAR where it is null, and where the elements of an array
// have no common type.
func SchemaOfJSON(text []byte) (arrow.DataType, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text), lenientJSON...)
	dt, err := jsonType(d)
	if err == nil {
		if _, err = d.ReadToken(); err == io.EOF {
			return settled(dt), nil
		}
	}
	return nil, fmt.Errorf("%q is not a JSON value", text[:min(len(text), 100)])
}

// jsonType reads one value; of a null the type is NULL.
func jsonType(d *jsontext.Decoder) (arrow.DataType, error) {
	switch d.PeekKind() {
	case '{':
		return jsonStruct(d)
	case '[':
		return jsonArray(d)
	}
	v, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	switch v.Kind() {
	case 'n':
		return columnar.Null, nil
	case 't', 'f':
		return columnar.Boolean, nil
	case '0':
		if _, ok := columnar.ParseInt([]byte(v)); ok {
			return columnar.Int64, nil
		}
		return columnar.Float64, nil
	}
	return columnar.String, nil
}

func jsonArray(d *jsontext.Decoder) (arrow.DataType, error) {
	_, _ = d.ReadToken() // what PeekKind has seen
	elem := arrow.DataType(columnar.Null)
	for d.PeekKind() != ']' {
		dt, err := jsonType(d)
		if err != nil {
			return nil, err
		}
		elem = meet(elem, dt)
	}
	_, err := d.ReadToken()
	return columnar.ListOf(elem), err
}

func jsonStruct(d *jsontext.Decoder) (arrow.DataType, error) {
	_, _ = d.ReadToken() // what PeekKind has seen
	var fields []arrow.Field
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		text := name.String()
		dt, err := jsonType(d)
		if err != nil {
			return nil, err
		}
		fields = withField(fields, text, dt)
	}
	_, err := d.ReadToken()
	return arrow.StructOf(fields...), err
}

func withField(fields []arrow.Field, name string, dt arrow.DataType) []arrow.Field {
	for i, f := range fields {
		if f.Name == name {
			fields[i].Type = meet(f.Type, dt)
			return fields
		}
	}
	return append(fields, columnar.Field(name, dt))
}

// meet is the type of values of two types: of objects with the fields of both, of what is
// unlike a text.
func meet(a, b arrow.DataType) arrow.DataType {
	x, ok1 := a.(*arrow.StructType)
	y, ok2 := b.(*arrow.StructType)
	if ok1 && ok2 {
		fields := append([]arrow.Field(nil), x.Fields()...)
		for _, f := range y.Fields() {
			fields = withField(fields, f.Name, f.Type)
		}
		return arrow.StructOf(fields...)
	}
	p, ok1 := a.(*arrow.ListType)
	q, ok2 := b.(*arrow.ListType)
	if ok1 && ok2 {
		return columnar.ListOf(meet(p.Elem(), q.Elem()))
	}
	if dt, ok := columnar.Common(a, b); ok {
		return dt
	}
	return columnar.String
}

// settled has VARCHAR where dt has NULL, of which no more is known.
func settled(dt arrow.DataType) arrow.DataType {
	switch t := dt.(type) {
	case *arrow.NullType:
		return columnar.String
	case *arrow.ListType:
		return columnar.ListOf(settled(t.Elem()))
	case *arrow.StructType:
		fields := append([]arrow.Field(nil), t.Fields()...)
		for i := range fields {
			fields[i].Type = settled(fields[i].Type)
		}
		return arrow.StructOf(fields...)
	}
	return dt
}
