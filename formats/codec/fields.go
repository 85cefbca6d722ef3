package codec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// Fields finds the fields of a file by name: an exact match wins, then one without regard
// to case.
type Fields struct {
	names         []string
	exact, folded map[string][]int
}

// NewFields takes the names of the fields in order.
func NewFields(names []string) *Fields {
	f := &Fields{exact: map[string][]int{}, folded: map[string][]int{}}
	for _, name := range names {
		f.Add(name)
	}
	return f
}

// Add adds a field behind the others.
func (f *Fields) Add(name string) {
	i := len(f.names)
	f.names = append(f.names, name)
	f.exact[name] = append(f.exact[name], i)
	folded := strings.ToLower(name)
	f.folded[folded] = append(f.folded[folded], i)
}

// Find is the position of name, -1 unless n, the number of fields that match equally
// well, is 1.
func (f *Fields) Find(name string) (at, n int) {
	list := f.exact[name]
	if len(list) == 0 {
		list = f.folded[strings.ToLower(name)]
	}
	if len(list) != 1 {
		return -1, len(list)
	}
	return list[0], 1
}

// Of is the field of a column of a source with the given columns, -1 if the file has
// none. A field that is spelt exactly as another column is that one's. Where the name
// does not tell which field is meant, it is a *connector.RecordError.
func (f *Fields) Of(file string, columns *arrow.Schema, name string) (int, error) {
	at, n := f.Find(name)
	if n > 1 {
		return -1, &connector.RecordError{File: file, Column: name,
			Reason: fmt.Sprintf("the file has %d fields of that name, which does not tell the one that is meant; rename them", n)}
	}
	if at >= 0 && f.names[at] != name && len(columns.FieldIndices(f.names[at])) > 0 {
		return -1, nil
	}
	return at, nil
}

// maxSampleFiles bounds the files whose own columns InferFiles looks at.
const maxSampleFiles = 16

// InferFiles infers the columns of files that carry their types: those of the first
// sample of files that can be read, widened to their common types. Columns that only later
// files have come after those of earlier ones. schema gives the columns of a file; nil
// for one that is damaged, where such are dropped.
func InferFiles(ctx context.Context, files []File, schema func(File) (*arrow.Schema, error)) (Inferred, bool, error) {
	var merged Merged
	seen := 0
	for _, file := range files {
		if seen == maxSampleFiles {
			break
		}
		if err := ctx.Err(); err != nil {
			return Inferred{}, false, err
		}
		s, err := schema(file)
		if err != nil {
			return Inferred{}, false, err
		}
		if s == nil {
			continue
		}
		seen++
		if err := merged.Add(file.Path, s); err != nil {
			return Inferred{}, false, err
		}
	}
	inferred, ok := merged.Inferred()
	return inferred, ok, nil
}

// Merged collects the columns of several files that carry their types: the common type of
// those of one name.
type Merged struct {
	// First: where there is no common type, that of the first file stands. Otherwise it is
	// an error.
	First  bool
	fields []arrow.Field
	names  *Fields
}

// Add takes in the columns of a file.
func (m *Merged) Add(file string, s *arrow.Schema) error {
	if m.names == nil {
		m.names = NewFields(nil)
	}
	before := len(m.fields) // columns of other files
	for i, f := range s.Fields() {
		if slices.ContainsFunc(s.FieldIndices(f.Name), func(j int) bool { return j < i }) {
			return &connector.RecordError{File: file, Column: f.Name, Reason: "the file has two columns of that name; rename one"}
		}
		at, _ := m.names.Find(f.Name)
		if at >= 0 && m.fields[at].Name != f.Name && (at >= before || s.HasField(m.fields[at].Name)) {
			at = -1 // the file has both, in two spellings
		}
		if at < 0 {
			m.names.Add(f.Name)
			m.fields = append(m.fields, f)
			continue
		}
		t, ok := commonOf(m.fields[at].Type, f.Type)
		if !ok && m.First {
			continue
		}
		if !ok {
			return &connector.RecordError{File: file, Column: f.Name, Reason: fmt.Sprintf(
				"it is %s here and %s in earlier files; declare the columns you want, or let the first file decide with schema_evolution = 'ignore' or 'rescue'",
				columnar.TypeName(f.Type), columnar.TypeName(m.fields[at].Type))}
		}
		m.fields[at].Type = t
	}
	return nil
}

// commonOf is the type that values of both have a place in. Fields of structs are found by
// name; those of one alone are null in values of the other.
func commonOf(a, b arrow.DataType) (arrow.DataType, bool) {
	switch t := a.(type) {
	case *arrow.StructType:
		if o, ok := b.(*arrow.StructType); ok {
			return commonStruct(t, o)
		}
	case *arrow.ListType:
		if o, ok := b.(*arrow.ListType); ok {
			e, ok := commonOf(t.Elem(), o.Elem())
			if !ok {
				return nil, false
			}
			return columnar.ListOf(e), true
		}
	case *arrow.MapType:
		if o, ok := b.(*arrow.MapType); ok {
			k, ok1 := commonOf(t.KeyType(), o.KeyType())
			v, ok2 := commonOf(t.ItemType(), o.ItemType())
			if !ok1 || !ok2 {
				return nil, false
			}
			return arrow.MapOf(k, v), true
		}
	}
	return columnar.Common(a, b)
}

func commonStruct(a, b *arrow.StructType) (arrow.DataType, bool) {
	fields := slices.Clone(a.Fields())
	for _, f := range b.Fields() {
		i := fieldNamed(a, f.Name)
		if i < 0 {
			fields = append(fields, columnar.Field(f.Name, f.Type))
			continue
		}
		t, ok := commonOf(fields[i].Type, f.Type)
		if !ok {
			return nil, false
		}
		fields[i].Type = t
	}
	return arrow.StructOf(fields...), true
}

// Inferred is what was collected; ok is false if that is nothing.
func (m *Merged) Inferred() (i Inferred, ok bool) {
	return Inferred{Schema: arrow.NewSchema(m.fields, nil)}, len(m.fields) > 0
}
