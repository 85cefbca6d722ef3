package tidemill

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/file"
)

// SchemaReport is the inferred columns of a path, and where its files differ from them.
type SchemaReport struct {
	Schema *arrow.Schema
	Files  []FileSchema
}

// FileSchema is one file.
type FileSchema struct {
	Path string
	// Differences say what the file has otherwise: a missing or another column, another
	// type.
	Differences []string
}

// Schema infers the columns of the files at a path, directory or glob, and compares each
// file with them. format "" is what the names of the files say.
func (s *Session) Schema(ctx context.Context, path, format string) (SchemaReport, error) {
	return acting(ctx, s, func() (SchemaReport, error) { return s.schema(ctx, path, format) })
}

func (s *Session) schema(ctx context.Context, path, format string) (SchemaReport, error) {
	t, err := s.resolver(nil).Path(ctx, path, format, nil)
	if err != nil {
		// Files that no columns fit are compared with those of the first ones.
		var looseErr error
		if t, looseErr = s.resolver(nil).Path(ctx, path, format, map[string]string{"schema_evolution": "ignore"}); looseErr != nil {
			return SchemaReport{}, err
		}
	}
	report := SchemaReport{Schema: t.Schema()}
	files, ok := t.(*file.Table)
	if !ok {
		return report, nil
	}
	schemas, err := files.Schemas(ctx)
	if err != nil {
		return SchemaReport{}, err
	}
	for _, f := range schemas {
		report.Files = append(report.Files, FileSchema{Path: f.Path, Differences: differences(f, t.Schema())})
	}
	return report, nil
}

// differences compares the columns of one file with those of all.
func differences(f file.FileSchema, all *arrow.Schema) []string {
	switch {
	case f.Err != nil:
		return []string{f.Err.Error()}
	case f.Schema == nil:
		return nil // it has no records
	}
	var out []string
	for _, c := range f.Schema.Fields() {
		i, n := columnar.Lookup(all, c.Name)
		switch {
		case n != 1 && c.Type.ID() == arrow.NULL:
			out = append(out, "has a column "+c.Name)
		case n != 1:
			out = append(out, fmt.Sprintf("has a column %s %s", c.Name, columnar.TypeName(c.Type)))
		case !agree(c.Type, all.Field(i).Type):
			out = append(out, fmt.Sprintf("column %s is %s", c.Name, columnar.TypeName(c.Type)))
		}
	}
	for _, c := range all.Fields() {
		if _, n := columnar.Lookup(f.Schema, c.Name); n == 0 {
			out = append(out, "has no column "+c.Name)
		}
	}
	return out
}

// agree says whether a type that a file shows may be want: what has no value there, which
// is NULL, contradicts nothing.
func agree(seen, want arrow.DataType) bool {
	switch s := seen.(type) {
	case *arrow.NullType:
		return true
	case *arrow.StructType:
		w, ok := want.(*arrow.StructType)
		if !ok || s.NumFields() != w.NumFields() {
			return false
		}
		for i, f := range s.Fields() {
			if at, ok := w.FieldIdx(f.Name); !ok || !agree(s.Field(i).Type, w.Field(at).Type) {
				return false
			}
		}
		return true
	case *arrow.ListType:
		w, ok := want.(*arrow.ListType)
		return ok && agree(s.Elem(), w.Elem())
	}
	return arrow.TypeEqual(seen, want)
}
