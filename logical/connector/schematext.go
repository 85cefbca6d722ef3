package connector

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// fieldText is the JSON of one column or nested field.
type fieldText struct {
	Name   string      `json:"name,omitempty"`
	Type   string      `json:"type"`
	P      int32       `json:"precision,omitempty"`
	S      int32       `json:"scale,omitempty"`
	Fields []fieldText `json:"fields,omitempty"` // STRUCT; ARRAY: element; MAP: key, value
}

// EncodeSchema writes a schema of the engine's types as JSON, for pinning.
func EncodeSchema(s *arrow.Schema) string {
	list := make([]fieldText, s.NumFields())
	for i, f := range s.Fields() {
		list[i] = encodeField(f.Name, f.Type)
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return string(text)
}

func encodeField(name string, dt arrow.DataType) fieldText {
	switch t := dt.(type) {
	case *arrow.Decimal128Type:
		return fieldText{Name: name, Type: "DECIMAL", P: t.Precision, S: t.Scale}
	case *arrow.MapType:
		return fieldText{Name: name, Type: "MAP", Fields: []fieldText{encodeField("", t.KeyType()), encodeField("", t.ItemType())}}
	case *arrow.ListType:
		return fieldText{Name: name, Type: "ARRAY", Fields: []fieldText{encodeField("", t.Elem())}}
	case *arrow.StructType:
		f := fieldText{Name: name, Type: "STRUCT"}
		for _, inner := range t.Fields() {
			f.Fields = append(f.Fields, encodeField(inner.Name, inner.Type))
		}
		return f
	}
	return fieldText{Name: name, Type: columnar.TypeName(dt)}
}

// DecodeSchema reads what EncodeSchema wrote.
func DecodeSchema(text string) (*arrow.Schema, error) {
	var list []fieldText
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("pinned columns: %w", err)
	}
	fields := make([]arrow.Field, len(list))
	for i, f := range list {
		dt, err := decodeField(f)
		if err != nil {
			return nil, fmt.Errorf("pinned columns: %s: %w", f.Name, err)
		}
		fields[i] = columnar.Field(f.Name, dt)
	}
	return arrow.NewSchema(fields, nil), nil
}

var plainTypes = func() map[string]arrow.DataType {
	m := map[string]arrow.DataType{}
	for _, dt := range []arrow.DataType{
		columnar.Null, columnar.Boolean, columnar.Int8, columnar.Int16, columnar.Int32, columnar.Int64,
		columnar.Float32, columnar.Float64, columnar.String, columnar.Binary, columnar.Date, columnar.Time,
		columnar.Timestamp, columnar.Interval,
	} {
		m[columnar.TypeName(dt)] = dt
	}
	return m
}()

func decodeField(f fieldText) (arrow.DataType, error) {
	if dt, ok := plainTypes[f.Type]; ok {
		return dt, nil
	}
	inner := make([]arrow.Field, len(f.Fields))
	for i, g := range f.Fields {
		dt, err := decodeField(g)
		if err != nil {
			return nil, err
		}
		inner[i] = columnar.Field(g.Name, dt)
	}
	switch {
	case f.Type == "DECIMAL" && f.P >= 1 && f.P <= columnar.MaxPrecision && f.S >= 0 && f.S <= f.P:
		return columnar.Decimal(f.P, f.S), nil
	case f.Type == "ARRAY" && len(inner) == 1:
		return columnar.ListOf(inner[0].Type), nil
	case f.Type == "MAP" && len(inner) == 2:
		return arrow.MapOf(inner[0].Type, inner[1].Type), nil
	case f.Type == "STRUCT":
		return arrow.StructOf(inner...), nil
	}
	return nil, fmt.Errorf("unknown type %q", f.Type)
}
