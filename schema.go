package tidemill

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
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
	t, err := s.resolver(nil).Path(ctx, path, format, nil)
	if err != nil {
		return SchemaReport{}, err
	}
	report := SchemaReport{Schema: t.Schema()}
	set, ok := t.(connector.FileSet)
	if !ok {
		return report, nil
	}
	files, err := set.Files(ctx, "", "")
	if err != nil {
		return SchemaReport{}, err
	}
	for _, f := range files {
		report.Files = append(report.Files, FileSchema{Path: f.Path, Differences: s.differences(ctx, f.Path, format, t.Schema())})
	}
	return report, nil
}

// differences compares the columns of one file with those of all.
func (s *Session) differences(ctx context.Context, path, format string, all *arrow.Schema) []string {
	t, err := s.resolver(nil).Path(ctx, escapeGlob(path), format, nil)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, f := range t.Schema().Fields() {
		i, n := columnar.Lookup(all, f.Name)
		switch {
		case n != 1:
			out = append(out, fmt.Sprintf("has a column %s %s", f.Name, columnar.TypeName(f.Type)))
		case !arrow.TypeEqual(all.Field(i).Type, f.Type):
			out = append(out, fmt.Sprintf("column %s is %s", f.Name, columnar.TypeName(f.Type)))
		}
	}
	for _, f := range all.Fields() {
		if _, n := columnar.Lookup(t.Schema(), f.Name); n == 0 {
			out = append(out, "has no column "+f.Name)
		}
	}
	return out
}

// escapeGlob makes the name of a file a path that matches it alone.
func escapeGlob(path string) string {
	var out []rune
	for _, r := range path {
		switch r {
		case '*', '?', '[', '{':
			out = append(out, '[', r, ']')
		default:
			out = append(out, r)
		}
	}
	return string(out)
}
