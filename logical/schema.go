package logical

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
)

// Schema is the output columns of a node, in order. It is immutable.
type Schema struct{ Columns []*expr.Column }

// NewSchema makes a schema of columns.
func NewSchema(columns ...*expr.Column) *Schema { return &Schema{Columns: columns} }

// Index is the position of the column with the given ID, or -1.
func (s *Schema) Index(id expr.ID) int {
	for i, c := range s.Columns {
		if c.ID == id {
			return i
		}
	}
	return -1
}

// Has says whether all the given columns are in s.
func (s *Schema) Has(ids ...expr.ID) bool {
	for _, id := range ids {
		if s.Index(id) < 0 {
			return false
		}
	}
	return true
}

// Names are the column names, in order.
func (s *Schema) Names() []string {
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
	}
	return names
}

// Arrow is the schema as an Arrow schema; every field is nullable.
func (s *Schema) Arrow() *arrow.Schema {
	fields := make([]arrow.Field, len(s.Columns))
	for i, c := range s.Columns {
		fields[i] = columnar.Field(c.Name, c.DataType)
	}
	return arrow.NewSchema(fields, nil)
}

// String prints name TYPE, name TYPE.
func (s *Schema) String() string { return columnar.SchemaString(s.Arrow()) }

// UnknownColumnError says that there is no column of a name, and which is near.
type UnknownColumnError struct{ Name, Hint string }

func (e *UnknownColumnError) Error() string {
	return fmt.Sprintf("there is no column %s%s", e.Name, e.Hint)
}

// AmbiguousColumnError says that several columns answer to a name.
type AmbiguousColumnError struct {
	Name       string
	Candidates []string
}

func (e *AmbiguousColumnError) Error() string {
	return fmt.Sprintf("column %s is ambiguous; it could be %s", e.Name, strings.Join(e.Candidates, " or "))
}

// Lookup finds a column by name; qualifier may be "". An exact match wins over one
// that differs in case only. The error is an *UnknownColumnError or an
// *AmbiguousColumnError.
func (s *Schema) Lookup(qualifier, name string) (*expr.Column, error) {
	var exact, fold []*expr.Column
	for _, c := range s.Columns {
		if qualifier != "" && !strings.EqualFold(c.Qualifier, qualifier) {
			continue
		}
		switch {
		case c.Name == name:
			exact = append(exact, c)
		case strings.EqualFold(c.Name, name):
			fold = append(fold, c)
		}
	}
	found := exact
	if len(found) == 0 {
		found = fold
	}
	full := name
	if qualifier != "" {
		full = qualifier + "." + name
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, &UnknownColumnError{Name: full, Hint: columnar.DidYouMean(name, s.Names())}
	}
	e := &AmbiguousColumnError{Name: full}
	for _, c := range found {
		e.Candidates = append(e.Candidates, c.String())
	}
	return nil, e
}

// Requalified is s with every column under another qualifier; IDs stay.
func (s *Schema) Requalified(qualifier string) *Schema {
	out := make([]*expr.Column, len(s.Columns))
	for i, c := range s.Columns {
		n := *c
		n.Qualifier = qualifier
		out[i] = &n
	}
	return &Schema{Columns: out}
}

// nullable is s with every column nullable: the weaker side of an outer join.
func (s *Schema) nullable() *Schema {
	out := make([]*expr.Column, len(s.Columns))
	for i, c := range s.Columns {
		n := *c
		n.Null = true
		out[i] = &n
	}
	return &Schema{Columns: out}
}

// namedSchema is the output of a list of named expressions.
func namedSchema(list []expr.Named) *Schema {
	out := make([]*expr.Column, len(list))
	for i, n := range list {
		out[i] = n.Column()
	}
	return &Schema{Columns: out}
}
