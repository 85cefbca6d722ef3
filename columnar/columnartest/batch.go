package columnartest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Type reads a type as SQL spells it, in any case (BIGINT, decimal(10,2),
// array<varchar>, struct<a bigint, b varchar>, map<varchar, bigint>); a name in
// struct fields may also be followed by a colon.
func Type(name string) (arrow.DataType, error) {
	p := typeParser{rest: name}
	dt, err := p.parse()
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = fmt.Errorf("type %q: %q is left over", name, p.rest)
	}
	return dt, err
}

type typeParser struct{ rest string }

func (p *typeParser) word() string {
	p.rest = strings.TrimLeft(p.rest, " ")
	n := 0
	for n < len(p.rest) && !strings.ContainsRune("<>(), :", rune(p.rest[n])) {
		n++
	}
	w := p.rest[:n]
	p.rest = strings.TrimLeft(p.rest[n:], " ")
	return w
}

func (p *typeParser) skip(c string) bool {
	r, ok := strings.CutPrefix(strings.TrimLeft(p.rest, " "), c)
	if ok {
		p.rest = r
	}
	return ok
}

var typeWords = map[string]arrow.DataType{
	"null": columnar.Null, "boolean": columnar.Boolean, "bool": columnar.Boolean,
	"tinyint": columnar.Int8, "smallint": columnar.Int16, "integer": columnar.Int32, "int": columnar.Int32, "bigint": columnar.Int64,
	"real": columnar.Float32, "float": columnar.Float32, "double": columnar.Float64,
	"varchar": columnar.String, "string": columnar.String, "text": columnar.String, "binary": columnar.Binary,
	"date": columnar.Date, "time": columnar.Time, "timestamp": columnar.Timestamp, "interval": columnar.Interval,
}

func (p *typeParser) parse() (arrow.DataType, error) {
	w := strings.ToLower(p.word())
	switch w {
	case "decimal":
		precision, scale := 18, 3
		if p.skip("(") {
			precision, _ = strconv.Atoi(p.word())
			scale = 0
			if p.skip(",") {
				scale, _ = strconv.Atoi(p.word())
			}
			p.skip(")")
		}
		return columnar.Decimal(int32(precision), int32(scale)), nil
	case "array", "struct", "map":
		if !p.skip("<") {
			return nil, fmt.Errorf("type %s needs <…>", w)
		}
		dt, err := p.nested(w)
		if err == nil && !p.skip(">") {
			err = fmt.Errorf("type %s: > is missing before %q", w, p.rest)
		}
		return dt, err
	}
	if dt, ok := typeWords[w]; ok {
		return dt, nil
	}
	return nil, fmt.Errorf("unknown type %q", w)
}

func (p *typeParser) nested(kind string) (arrow.DataType, error) {
	switch kind {
	case "array":
		e, err := p.parse()
		if err != nil {
			return nil, err
		}
		return columnar.ListOf(e), nil
	case "map":
		k, err := p.parse()
		if err != nil || !p.skip(",") {
			return nil, fmt.Errorf("a map has a key and a value type: %w", err)
		}
		v, err := p.parse()
		if err != nil {
			return nil, err
		}
		return arrow.MapOf(k, v), nil
	}
	var fields []arrow.Field
	for {
		name := p.word()
		p.skip(":")
		dt, err := p.parse()
		if err != nil {
			return nil, err
		}
		fields = append(fields, columnar.Field(strings.Trim(name, `"`), dt))
		if !p.skip(",") {
			return arrow.StructOf(fields...), nil
		}
	}
}

// Schema reads "name:type  name:type", fields apart by two blanks or more.
func Schema(t testing.TB, header string) *arrow.Schema {
	t.Helper()
	var fields []arrow.Field
	for _, cell := range splitCells(header) {
		name, typ, ok := cutLastType(cell)
		if !ok {
			t.Fatalf("header field %q is not name:type", cell)
		}
		dt, err := Type(typ)
		if err != nil {
			t.Fatalf("header field %q: %v", cell, err)
		}
		if name != "" && name[0] == '"' {
			name, _ = strconv.Unquote(name)
		}
		fields = append(fields, columnar.Field(name, dt))
	}
	return columnar.NewSchema(fields...)
}

// cutLastType splits name:type at the first colon outside of quotes.
func cutLastType(cell string) (name, typ string, ok bool) {
	if strings.HasPrefix(cell, `"`) {
		if q, err := strconv.QuotedPrefix(cell); err == nil && strings.HasPrefix(cell[len(q):], ":") {
			return q, cell[len(q)+1:], true
		}
	}
	return strings.Cut(cell, ":")
}

// splitCells cuts a line where two blanks or more stand outside of quotes and of
// nested values.
func splitCells(line string) []string {
	var cells []string
	line = strings.TrimSpace(line)
	from := 0
	for i := 0; i < len(line); i++ {
		if i == from && strings.IndexByte(`"[{`, line[i]) >= 0 {
			i = skipCell(line, i)
			if i == len(line) {
				break
			}
		}
		if line[i] == '\t' || strings.HasPrefix(line[i:], "  ") {
			cells = append(cells, line[from:i])
			for i+1 < len(line) && (line[i+1] == ' ' || line[i+1] == '\t') {
				i++
			}
			from = i + 1
		}
	}
	return append(cells, line[from:])
}

// skipCell passes over a quoted text or a nested value that begins at i.
func skipCell(line string, i int) int {
	depth := 0
	for ; i < len(line); i++ {
		switch line[i] {
		case '"':
			q, err := strconv.QuotedPrefix(line[i:])
			if err != nil {
				return i
			}
			i += len(q) - 1
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		default:
			if depth == 0 {
				return i
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// Batch reads the canonical text of columnar.Text: a header name:type, then a line
// a row, cells two blanks or more apart; NULL, "" and quoted text as there; nested
// values as JSON. Blank lines are passed over. It is released when t ends.
func Batch(t testing.TB, mem memory.Allocator, text string) arrow.RecordBatch {
	t.Helper()
	var schema *arrow.Schema
	var builders []*columnar.Builder
	rows := int64(0)
	for _, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if schema == nil {
			schema = Schema(t, line)
			for _, f := range schema.Fields() {
				builders = append(builders, columnar.NewBuilder(mem, f.Type))
			}
			continue
		}
		cells := splitCells(line)
		if len(cells) != len(builders) {
			t.Fatalf("row %q has %d cells, the header %d", line, len(cells), len(builders))
		}
		for i, cell := range cells {
			if err := appendCell(builders[i], schema.Field(i).Type, cell); err != nil {
				t.Fatalf("row %q, column %s: %v", line, schema.Field(i).Name, err)
			}
		}
		rows++
	}
	if schema == nil {
		t.Fatalf("a batch needs a header")
	}
	return finish(t, schema, builders, rows)
}

func finish(t testing.TB, schema *arrow.Schema, builders []*columnar.Builder, rows int64) arrow.RecordBatch {
	columns := make([]arrow.Array, len(builders))
	for i, b := range builders {
		columns[i] = b.NewArray()
		b.Release()
	}
	out := array.NewRecordBatch(schema, columns, rows)
	for _, c := range columns {
		c.Release()
	}
	t.Cleanup(out.Release)
	return out
}

// Column reads values, one a line as in Batch, as a column of the named type. It is
// released when t ends.
func Column(t testing.TB, mem memory.Allocator, typ string, values ...string) arrow.Array {
	t.Helper()
	dt, err := Type(typ)
	if err != nil {
		t.Fatal(err)
	}
	b := columnar.NewBuilder(mem, dt)
	defer b.Release()
	for _, v := range values {
		if err := appendCell(b, dt, v); err != nil {
			t.Fatalf("value %q: %v", v, err)
		}
	}
	a := b.NewArray()
	t.Cleanup(a.Release)
	return a
}

func appendCell(b *columnar.Builder, dt arrow.DataType, cell string) error {
	v, err := cellValue(dt, cell)
	if err != nil {
		return err
	}
	return b.Append(v)
}

func cellValue(dt arrow.DataType, cell string) (any, error) {
	if cell == "NULL" {
		return nil, nil
	}
	bad := fmt.Errorf("%q is no %s", cell, columnar.TypeName(dt))
	switch dt.ID() {
	case arrow.STRING:
		if strings.HasPrefix(cell, `"`) {
			return strconv.Unquote(cell)
		}
		return cell, nil
	case arrow.BINARY:
		return unescapeBinary(cell)
	case arrow.BOOL:
		v, ok := columnar.ParseBool(cell)
		if !ok {
			return nil, bad
		}
		return v, nil
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64:
		v, ok := columnar.ParseInt(cell)
		if !ok {
			return nil, bad
		}
		return v, nil
	case arrow.FLOAT32, arrow.FLOAT64:
		v, ok := columnar.ParseFloat(cell, 64)
		if !ok {
			return nil, bad
		}
		return v, nil
	case arrow.LIST, arrow.STRUCT, arrow.MAP:
		d := json.NewDecoder(strings.NewReader(cell))
		d.UseNumber()
		v, err := decodeJSON(d)
		if err != nil {
			return nil, err
		}
		return jsonValue(dt, v)
	}
	return cell, nil
}

func unescapeBinary(cell string) (any, error) {
	if strings.HasPrefix(cell, `"`) {
		s, err := strconv.Unquote(cell)
		if err != nil {
			return nil, err
		}
		cell = s
	}
	var out []byte
	for i := 0; i < len(cell); i++ {
		if strings.HasPrefix(cell[i:], `\x`) && i+4 <= len(cell) {
			v, err := strconv.ParseUint(cell[i+2:i+4], 16, 8)
			if err != nil {
				return nil, err
			}
			out = append(out, byte(v))
			i += 3
			continue
		}
		out = append(out, cell[i])
	}
	if out == nil {
		out = []byte{}
	}
	return out, nil
}

// pair is a member of a JSON object: the order of a map's entries is data.
type pair struct {
	key   string
	value any
}

// decodeJSON reads one value: objects as []pair, arrays as []any, numbers as they
// are written.
func decodeJSON(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeJSON(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		object := []pair{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeJSON(d)
			if err != nil {
				return nil, err
			}
			object = append(object, pair{key.(string), v})
		}
		_, err = d.Token()
		return object, err
	}
	return token, nil
}

// jsonValue turns decoded JSON into what columnar.Builder.Append takes.
func jsonValue(dt arrow.DataType, v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch t := dt.(type) {
	case *arrow.MapType:
		m, ok := v.([]pair)
		if !ok {
			return nil, fmt.Errorf("%v is no map", v)
		}
		out := [][2]any{}
		for _, p := range m {
			key, err := jsonValue(t.KeyType(), p.key)
			if err != nil {
				return nil, err
			}
			item, err := jsonValue(t.ItemType(), p.value)
			if err != nil {
				return nil, err
			}
			out = append(out, [2]any{key, item})
		}
		return out, nil
	case *arrow.ListType:
		l, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%v is no array", v)
		}
		out := make([]any, len(l))
		for i, e := range l {
			var err error
			if out[i], err = jsonValue(t.Elem(), e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *arrow.StructType:
		m, ok := v.([]pair)
		if !ok {
			return nil, fmt.Errorf("%v is no object", v)
		}
		out := make([]any, t.NumFields())
		for _, p := range m {
			i, ok := t.FieldIdx(p.key)
			if !ok {
				return nil, fmt.Errorf("%s has no field %q", columnar.TypeName(dt), p.key)
			}
			var err error
			if out[i], err = jsonValue(t.Field(i).Type, p.value); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	if s, ok := v.(string); ok && dt.ID() == arrow.STRING {
		return s, nil
	}
	return cellValue(dt, fmt.Sprint(v))
}
