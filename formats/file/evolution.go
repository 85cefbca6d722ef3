package file

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// inferTypes finds the columns of a sample. In files that carry their types those of the
// first ones stand where the policy is to leave out or rescue what does not fit.
func (o *opened) inferTypes(ctx context.Context, sample []codec.File) (codec.Inferred, bool, error) {
	if e := o.layout.evolution; o.spec.RowCount == nil || e != codec.EvolveIgnore && e != codec.EvolveRescue {
		return o.layout.format.Infer(ctx, sample)
	}
	merged := codec.Merged{First: true}
	for _, f := range sample {
		one, ok, err := o.layout.format.Infer(ctx, []codec.File{f})
		if err != nil {
			return codec.Inferred{}, false, err
		}
		if !ok {
			continue
		}
		if err := merged.Add(f.Path, one.Schema); err != nil {
			return codec.Inferred{}, false, err
		}
	}
	inferred, ok := merged.Inferred()
	return inferred, ok, nil
}

// addRescued makes room for what no column takes: behind inferred columns, or in a
// declared one.
func (o *opened) addRescued() error {
	if o.options.Evolution != codec.EvolveRescue {
		return nil
	}
	l, name := o.layout, o.options.Rescued
	wrong := func(reason string) error {
		return &connector.OptionError{Key: "rescued_column", Value: name, HasValue: name != "", Reason: reason}
	}
	if l.format.Name() == "text" {
		return &connector.OptionError{Key: "schema_evolution", Value: "rescue", HasValue: true, Reason: "text has one column, which takes every line"}
	}
	if l.declared {
		i, _ := columnar.Lookup(l.schema, name)
		if i < 0 || l.schema.Field(i).Type.ID() != arrow.STRING {
			return wrong("where columns are declared it must be one of them, of type VARCHAR")
		}
		l.rescued = l.schema.Field(i).Name
		if c, ok := l.format.(codec.CorruptColumn); ok && strings.EqualFold(c.CorruptColumn(), name) {
			return wrong("it is the corrupt_column, too; declare one for each")
		}
		return nil
	}
	if name == "" {
		name = codec.DefaultRescued
	}
	if _, n := columnar.Lookup(l.schema, name); n > 0 {
		return wrong("the files have a column of that name; choose another")
	}
	l.rescued = name
	l.schema = arrow.NewSchema(append(slices.Clone(l.schema.Fields()), columnar.Field(name, columnar.String)), nil)
	return nil
}

// grow is known with a field of a file: a column of its own, or fields within one that is
// known. grew says that there is something new.
func (o *opened) grow(known *arrow.Schema, f arrow.Field) (wider *arrow.Schema, grew bool) {
	fields := slices.Clone(known.Fields())
	if !o.knows(known, f.Name) {
		return arrow.NewSchema(append(fields, columnar.Field(f.Name, f.Type)), nil), true
	}
	i, _ := columnar.Lookup(known, f.Name)
	if i < 0 {
		return known, false // reading it will say which of several is meant
	}
	_, exact := o.layout.format.(codec.ExactNames)
	t := codec.WithFields(fields[i].Type, f.Type, func(a, b string) bool {
		return a == b || !exact && strings.EqualFold(a, b)
	})
	if arrow.TypeEqual(t, fields[i].Type) {
		return known, false
	}
	fields[i].Type = t
	return arrow.NewSchema(fields, nil), true
}
