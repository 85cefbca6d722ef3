package function

import (
	"bytes"
	"encoding/base64"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tidemill/tidemill/columnar"
)

// jsonReader appends JSON values to a column of any type: one for each node of the type.
// What does not fit is a null, and sets misfit.
type jsonReader struct {
	b        array.Builder
	loc      *time.Location
	misfit   *bool // shared by all nodes
	children []*jsonReader
	names    []string         // of the fields of a struct
	found    []jsontext.Value // the value of each field in the current object
	scratch  []byte
	source   bytes.Buffer
	decoder  *jsontext.Decoder // over source
}

var lenientJSON = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

func newJSONReader(dt arrow.DataType, b array.Builder, loc *time.Location, misfit *bool) *jsonReader {
	r := &jsonReader{b: b, loc: loc, misfit: misfit}
	child := func(dt arrow.DataType, b array.Builder) {
		r.children = append(r.children, newJSONReader(dt, b, loc, misfit))
	}
	switch t := dt.(type) {
	case *arrow.StructType:
		for i, f := range t.Fields() {
			r.names = append(r.names, f.Name)
			child(f.Type, b.(*array.StructBuilder).FieldBuilder(i))
		}
		r.found = make([]jsontext.Value, len(r.names))
	case *arrow.ListType:
		child(t.Elem(), b.(*array.ListBuilder).ValueBuilder())
	case *arrow.MapType:
		child(t.KeyType(), b.(*array.MapBuilder).KeyBuilder())
		child(t.ItemType(), b.(*array.MapBuilder).ItemBuilder())
	default:
		return r
	}
	r.decoder = jsontext.NewDecoder(&r.source, lenientJSON...)
	return r
}

// document appends a whole text; false, and nothing is appended, if it is not JSON, or not
// of the kind of r. A lone object is read as an array of one.
func (r *jsonReader) document(text []byte) bool {
	v := jsontext.Value(text)
	if !v.IsValid(lenientJSON...) {
		return false
	}
	switch b := r.b.(type) {
	case *array.ListBuilder:
		_, ofStructs := r.children[0].b.(*array.StructBuilder)
		if v.Kind() == '{' && ofStructs {
			b.Append(true)
			r.children[0].append(v)
			return true
		}
		if v.Kind() != '[' {
			return false
		}
	default:
		if v.Kind() != '{' {
			return false
		}
	}
	r.append(v)
	return true
}

// malformed appends what stands for a text that is no document: a struct of nulls, or null.
func (r *jsonReader) malformed() {
	b, ok := r.b.(*array.StructBuilder)
	if !ok {
		r.b.AppendNull()
		return
	}
	b.Append(true)
	for _, c := range r.children {
		c.b.AppendNull()
	}
}

// append appends one valid value.
func (r *jsonReader) append(v jsontext.Value) {
	kind := v.Kind()
	switch b := r.b.(type) {
	case *array.StructBuilder:
		if kind == '{' {
			b.Append(true)
			r.appendFields(v)
			return
		}
	case *array.ListBuilder:
		if kind == '[' {
			b.Append(true)
			r.open(v)
			for r.decoder.PeekKind() != ']' {
				r.children[0].append(r.next(v))
			}
			return
		}
	case *array.MapBuilder:
		if kind == '{' {
			r.appendEntries(v, b)
			return
		}
	default:
		if kind != 'n' && r.appendScalar(v, kind) {
			return
		}
	}
	*r.misfit = *r.misfit || kind != 'n'
	r.b.AppendNull()
}

// open begins to read the elements of an object or an array.
func (r *jsonReader) open(v jsontext.Value) {
	r.source = *bytes.NewBuffer(v)
	r.decoder.Reset(&r.source, lenientJSON...)
	_, _ = r.decoder.ReadToken() // v is valid, here and below
}

// next is the next name, element or value of the object or array v.
func (r *jsonReader) next(v jsontext.Value) jsontext.Value {
	part, _ := r.decoder.ReadValue()
	end := r.decoder.InputOffset()
	return v[end-int64(len(part)) : end] // part itself lives until the next call only
}

func (r *jsonReader) appendFields(v jsontext.Value) {
	clear(r.found)
	r.open(v)
	for r.decoder.PeekKind() != '}' {
		r.scratch, _ = jsontext.AppendUnquote(r.scratch[:0], r.next(v))
		value := r.next(v)
		for k, name := range r.names {
			if name == string(r.scratch) {
				r.found[k] = value
				break
			}
		}
	}
	for k, c := range r.children {
		if r.found[k] == nil {
			c.b.AppendNull()
			continue
		}
		c.append(r.found[k])
	}
}

// appendEntries appends an object as a map; of a name that is there twice the last value.
func (r *jsonReader) appendEntries(v jsontext.Value, b *array.MapBuilder) {
	at := map[string]int{}
	var keys, values []jsontext.Value
	r.open(v)
	for r.decoder.PeekKind() != '}' {
		key := r.next(v)
		value := r.next(v)
		r.scratch, _ = jsontext.AppendUnquote(r.scratch[:0], key)
		if k, ok := at[string(r.scratch)]; ok {
			values[k] = value
			continue
		}
		at[string(r.scratch)] = len(keys)
		keys, values = append(keys, key), append(values, value)
	}
	b.Append(true)
	for k := range keys {
		r.children[0].append(keys[k])
		r.children[1].append(values[k])
	}
}

// appendScalar appends a value that is not null; false if it does not fit.
func (r *jsonReader) appendScalar(v jsontext.Value, kind jsontext.Kind) bool {
	if b, ok := r.b.(*array.StringBuilder); ok {
		b.BinaryBuilder.Append(r.textOf(v, kind))
		return true
	}
	switch kind {
	case 't', 'f':
		b, ok := r.b.(*array.BooleanBuilder)
		if ok {
			b.Append(kind == 't')
		}
		return ok
	case '0':
		return r.appendNumber(v)
	case '"':
		return r.appendWord(r.textOf(v, kind))
	}
	return false
}

// textOf is a text without its quotes, and anything else as JSON.
func (r *jsonReader) textOf(v jsontext.Value, kind jsontext.Kind) []byte {
	switch kind {
	case '"':
		r.scratch, _ = jsontext.AppendUnquote(r.scratch[:0], v)
	case '{', '[':
		compact := v.Clone()
		_ = compact.Compact(lenientJSON...)
		return compact
	default:
		return v
	}
	return r.scratch
}

func (r *jsonReader) appendNumber(v []byte) bool {
	switch b := r.b.(type) {
	case *array.Int64Builder:
		return appendIf(b.Append, parseWhole[int64], v)
	case *array.Int32Builder:
		return appendIf(b.Append, parseWhole[int32], v)
	case *array.Int16Builder:
		return appendIf(b.Append, parseWhole[int16], v)
	case *array.Int8Builder:
		return appendIf(b.Append, parseWhole[int8], v)
	case *array.Float64Builder:
		return appendIf(b.Append, func(v []byte) (float64, bool) { return columnar.ParseFloat(v, 64) }, v)
	case *array.Float32Builder:
		return appendIf(b.Append, parseReal, v)
	case *array.Decimal128Builder:
		return r.appendDecimal(b, v)
	case *array.TimestampBuilder: // seconds, as a cast reads a number
		seconds, ok := columnar.ParseInt(v)
		if ok = ok && seconds <= math.MaxInt64/columnar.MicrosPerSecond && seconds >= math.MinInt64/columnar.MicrosPerSecond; ok {
			b.Append(arrow.Timestamp(seconds * columnar.MicrosPerSecond))
		}
		return ok
	}
	return false
}

// appendWord appends what is written as a text in JSON.
func (r *jsonReader) appendWord(s []byte) bool {
	switch b := r.b.(type) {
	case *array.Float64Builder:
		return appendIf(b.Append, parseSpecial, s)
	case *array.Float32Builder:
		return appendIf(func(v float64) { b.Append(float32(v)) }, parseSpecial, s)
	case *array.Decimal128Builder:
		return r.appendDecimal(b, s)
	case *array.Date32Builder:
		return appendIf(func(v int32) { b.Append(arrow.Date32(v)) }, columnar.ParseDate[[]byte], s)
	case *array.Time64Builder:
		return appendIf(func(v int64) { b.Append(arrow.Time64(v)) }, columnar.ParseTime[[]byte], s)
	case *array.TimestampBuilder:
		return appendIf(func(v int64) { b.Append(arrow.Timestamp(v)) }, func(s []byte) (int64, bool) { return columnar.ParseTimestamp(s, r.loc) }, s)
	case *array.MonthDayNanoIntervalBuilder:
		return appendIf(b.Append, func(s []byte) (arrow.MonthDayNanoInterval, bool) {
			v, err := columnar.ParseInterval(string(s))
			return v, err == nil
		}, s)
	case *array.BinaryBuilder:
		return appendIf(b.Append, func(s []byte) ([]byte, bool) {
			v, err := base64.StdEncoding.AppendDecode(nil, s)
			return v, err == nil
		}, s)
	}
	return false
}

func (r *jsonReader) appendDecimal(b *array.Decimal128Builder, s []byte) bool {
	t := b.Type().(*arrow.Decimal128Type)
	return appendIf(b.Append, func(s []byte) (decimal128.Num, bool) { return columnar.ParseDecimal(s, t.Precision, t.Scale) }, s)
}

func appendIf[T any](add func(T), parse func([]byte) (T, bool), s []byte) bool {
	v, ok := parse(s)
	if ok {
		add(v)
	}
	return ok
}

func parseWhole[T int8 | int16 | int32 | int64](s []byte) (T, bool) {
	v, ok := columnar.ParseInt(s)
	return T(v), ok && int64(T(v)) == v
}

func parseReal(s []byte) (float32, bool) {
	v, ok := columnar.ParseFloat(s, 32)
	return float32(v), ok
}

// parseSpecial reads the numbers that JSON has no digits for.
func parseSpecial(s []byte) (float64, bool) {
	switch string(s) {
	case "NaN":
		return math.NaN(), true
	case "Infinity", "+Infinity", "INF", "+INF":
		return math.Inf(1), true
	case "-Infinity", "-INF":
		return math.Inf(-1), true
	}
	return 0, false
}
