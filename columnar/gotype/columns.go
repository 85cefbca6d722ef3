package gotype

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// tagKey is the key of struct tags.
const tagKey = "tidemill"

// ValueColumn is the name of the one column of a type that is no struct.
const ValueColumn = "value"

// Rows moves values of T to columns and back. It is immutable and safe for concurrent
// use.
type Rows[T any] struct {
	columns []column
	stride  uintptr
	single  bool
}

// column is one column of a type.
type column struct {
	field  arrow.Field
	goName string // as the struct spells it; "" for the column of a plain type
	tagged bool   // the name is from a tag
	offset uintptr
	codec  codec
}

// For looks at a type.
func For[T any]() (*Rows[T], error) {
	t := reflect.TypeFor[T]()
	list, err := columnsOf(t)
	if err != nil {
		return nil, err
	}
	return &Rows[T]{columns: list, stride: t.Size(), single: !isRecord(t)}, nil
}

// Fields are the columns.
func (r *Rows[T]) Fields() []arrow.Field {
	out := make([]arrow.Field, len(r.columns))
	for i, c := range r.columns {
		out[i] = c.field
	}
	return out
}

// IsSingle says whether T is no struct: a value in one column.
func (r *Rows[T]) IsSingle() bool { return r.single }

// Aliases are other names by which column i may be found: what its field is called.
func (r *Rows[T]) Aliases(i int) []string {
	if c := r.columns[i]; !c.tagged && c.goName != "" {
		return []string{c.goName}
	}
	return nil
}

// Encode makes the columns of values. The caller releases them.
func (r *Rows[T]) Encode(mem memory.Allocator, values []T) (_ []arrow.Array, err error) {
	out := make([]arrow.Array, 0, len(r.columns))
	for _, c := range r.columns {
		b := array.NewBuilder(mem, c.field.Type)
		if len(values) > 0 {
			b.Reserve(len(values))
			err = c.codec.append(b, strided{unsafe.Pointer(unsafe.SliceData(values)), r.stride, len(values)}.at(c.offset))
		}
		if err == nil {
			out = append(out, b.NewArray())
		}
		b.Release()
		if err != nil {
			releaseAll(out)
			return nil, r.inColumn(c, err)
		}
	}
	return out, nil
}

// Decode fills values from rows from, from+1, … of columns, which have the types of
// Fields and are plain. What it writes does not refer to the columns.
func (r *Rows[T]) Decode(columns []arrow.Array, from int, values []T) error {
	if len(columns) != len(r.columns) {
		return fmt.Errorf("bug: %d columns for a type of %d", len(columns), len(r.columns))
	}
	if len(values) == 0 {
		return nil
	}
	for i, c := range r.columns {
		if !arrow.TypeEqual(columns[i].DataType(), c.field.Type) {
			return fmt.Errorf("bug: column %s is %s, not %s", c.field.Name, columns[i].DataType(), c.field.Type)
		}
		to := strided{unsafe.Pointer(unsafe.SliceData(values)), r.stride, len(values)}.at(c.offset)
		if err := c.codec.decode(columns[i], from, to); err != nil {
			return r.inColumn(c, err)
		}
	}
	return nil
}

// inColumn says in which column err happened, where there are several.
func (r *Rows[T]) inColumn(c column, err error) error {
	if r.single {
		return err
	}
	return fmt.Errorf("column %s: %w", c.field.Name, err)
}

func releaseAll(list []arrow.Array) {
	for _, a := range list {
		a.Release()
	}
}

// strided is n values in memory, the first at p.
type strided struct {
	p      unsafe.Pointer
	stride uintptr
	n      int
}

func (s strided) at(offset uintptr) strided {
	s.p = unsafe.Add(s.p, offset)
	return s
}

// value is where value i is.
func (s strided) value(i int) unsafe.Pointer { return unsafe.Add(s.p, uintptr(i)*s.stride) }

// isRecord says whether a type is a struct of columns.
func isRecord(t reflect.Type) bool { return t.Kind() == reflect.Struct && t != timeType }

// columnsOf lists the columns of a type.
func columnsOf(t reflect.Type) ([]column, error) {
	m := mapper{open: map[reflect.Type]bool{}}
	if !isRecord(t) {
		c, err := m.codec(t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		return []column{{field: columnar.Field(ValueColumn, c.dataType()), codec: c}}, nil
	}
	list, err := m.record(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	return list, nil
}

// mapper maps types; open are those being mapped, to find those that hold themselves.
type mapper struct{ open map[reflect.Type]bool }

func (m mapper) enter(t reflect.Type) error {
	if m.open[t] {
		return fmt.Errorf("%s holds itself; a column has a fixed depth", t)
	}
	m.open[t] = true
	return nil
}

// record lists the columns of a struct.
func (m mapper) record(t reflect.Type) ([]column, error) {
	if err := m.enter(t); err != nil {
		return nil, err
	}
	defer delete(m.open, t)
	var list []column
	for f := range fieldsOf(t) {
		name, inline, tagged := columnName(f)
		if name == "-" {
			continue
		}
		added, err := m.field(f, name, inline && isRecord(f.Type))
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		if len(added) == 1 && added[0].goName == "" {
			added[0].goName, added[0].tagged = f.Name, tagged
		}
		list = append(list, added...)
	}
	seen := map[string]string{}
	for _, c := range list {
		lower := strings.ToLower(c.field.Name)
		if before, ok := seen[lower]; ok {
			return nil, fmt.Errorf("fields %s and %s are both called %s; give one another name: `%s:\"…\"`", before, c.goName, c.field.Name, tagKey)
		}
		seen[lower] = c.goName
	}
	return list, nil
}

func (m mapper) field(f reflect.StructField, name string, inline bool) ([]column, error) {
	if !inline {
		c, err := m.codec(f.Type)
		if err != nil {
			return nil, err
		}
		return []column{{field: columnar.Field(name, c.dataType()), offset: f.Offset, codec: c}}, nil
	}
	inner, err := m.record(f.Type)
	for i := range inner {
		inner[i].offset += f.Offset
	}
	return inner, err
}

// fieldsOf ranges over the fields of a struct that can be columns.
func fieldsOf(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() && !(f.Anonymous && isRecord(f.Type)) {
				continue
			}
			if !yield(f) {
				return
			}
		}
	}
}

// columnName is what the column of a field is called.
func columnName(f reflect.StructField) (name string, inline, tagged bool) {
	tag, rest, _ := strings.Cut(f.Tag.Get(tagKey), ",")
	inline = rest == "inline" || f.Anonymous && tag == ""
	if tag != "" {
		return tag, inline, true
	}
	return snake(f.Name), inline, false
}

// snake spells a Go name with underscores: UserID is user_id.
func snake(name string) string {
	runes := []rune(name)
	var sb strings.Builder
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && runes[i-1] != '_' {
			after := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if !unicode.IsUpper(runes[i-1]) || after {
				sb.WriteByte('_')
			}
		}
		sb.WriteRune(unicode.ToLower(r))
	}
	return sb.String()
}
