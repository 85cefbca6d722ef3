package avro

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// layout makes the schema that columns are written with.
type layout struct {
	records     int // so far; they are named by numbers
	hasDuration bool
}

type recordType struct {
	Type   string      `json:"type"`
	Name   string      `json:"name"`
	Fields []fieldType `json:"fields"`
}

type fieldType struct {
	Name string `json:"name"`
	Type any    `json:"type"`
}

type logicalType struct {
	Type      string `json:"type"`
	Name      string `json:"name,omitempty"`
	Size      int    `json:"size,omitempty"`
	Logical   string `json:"logicalType"`
	Precision int32  `json:"precision,omitempty"`
	Scale     int32  `json:"scale,omitempty"`
}

// intType is an int that is no more than the type of the engine it is written of.
type intType struct {
	Type string `json:"type"`
	Of   string `json:"tidemill.type"`
}

// narrowKey is the property that says it; other readers take the int.
const narrowKey = "tidemill.type"

type arrayType struct {
	Type  string `json:"type"`
	Items any    `json:"items"`
}

type mapType struct {
	Type   string `json:"type"`
	Values any    `json:"values"`
}

// rootName is the name of the record of a row.
const rootName = "row"

// schemaText is the schema of a file with the given columns.
func schemaText(schema *arrow.Schema) (string, error) {
	var l layout
	root, err := l.record(rootName, schema.Fields())
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(root)
	return string(text), err
}

func (l *layout) record(name string, fields []arrow.Field) (*recordType, error) {
	r := &recordType{Type: "record", Name: name, Fields: []fieldType{}}
	seen := map[string]bool{}
	for _, f := range fields {
		switch {
		case !isName(f.Name):
			return nil, fmt.Errorf("column %q cannot be written to an Avro file, whose names have letters, digits and _ only, and no digit first; name it with AS", f.Name)
		case seen[f.Name]:
			return nil, fmt.Errorf("two columns are named %s, which an Avro file cannot have; name one with AS", f.Name)
		}
		seen[f.Name] = true
		t, err := l.optional(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		r.Fields = append(r.Fields, fieldType{f.Name, t})
	}
	return r, nil
}

func isName(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// optional is the type of values that may be null.
func (l *layout) optional(dt arrow.DataType) (any, error) {
	t, err := l.typeOf(dt)
	if err != nil || dt.ID() == arrow.NULL {
		return t, err
	}
	return []any{"null", t}, nil
}

func (l *layout) typeOf(dt arrow.DataType) (any, error) {
	switch t := dt.(type) {
	case *arrow.Decimal128Type:
		return logicalType{Type: "bytes", Logical: "decimal", Precision: t.Precision, Scale: t.Scale}, nil
	case *arrow.MapType:
		if t.KeyType().ID() != arrow.STRING {
			return nil, fmt.Errorf("it is %s, and keys of a map in an Avro file are texts; make it an ARRAY of STRUCT", columnar.TypeName(dt))
		}
		values, err := l.optional(t.ItemType())
		return mapType{"map", values}, err
	case *arrow.ListType:
		items, err := l.optional(t.Elem())
		return arrayType{"array", items}, err
	case *arrow.StructType:
		l.records++
		return l.record(fmt.Sprintf("%s_%d", rootName, l.records), t.Fields())
	}
	return l.plain(dt)
}

func (l *layout) plain(dt arrow.DataType) (any, error) {
	switch dt.ID() {
	case arrow.NULL:
		return "null", nil
	case arrow.BOOL:
		return "boolean", nil
	case arrow.INT8, arrow.INT16:
		return intType{"int", columnar.TypeName(dt)}, nil
	case arrow.INT32:
		return "int", nil
	case arrow.INT64:
		return "long", nil
	case arrow.FLOAT32:
		return "float", nil
	case arrow.FLOAT64:
		return "double", nil
	case arrow.STRING:
		return "string", nil
	case arrow.BINARY:
		return "bytes", nil
	case arrow.DATE32:
		return logicalType{Type: "int", Logical: "date"}, nil
	case arrow.TIME64:
		return logicalType{Type: "long", Logical: "time-micros"}, nil
	case arrow.TIMESTAMP:
		return logicalType{Type: "long", Logical: "timestamp-micros"}, nil
	case arrow.INTERVAL_MONTH_DAY_NANO:
		if l.hasDuration {
			return "duration", nil // a name is defined once
		}
		l.hasDuration = true
		return logicalType{Type: "fixed", Name: "duration", Size: durationSize, Logical: "duration"}, nil
	}
	return nil, errors.New(columnar.TypeName(dt) + " cannot be written to an Avro file")
}
