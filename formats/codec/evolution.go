package codec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// Evolution is the policy for files whose columns differ from the inferred ones. Fields of
// a STRUCT are columns in this, wherever in a column it stands.
type Evolution uint8

const (
	EvolveFail   Evolution = iota // an error
	EvolveIgnore                  // left out, or null
	EvolveAdd                     // another column is added; another type is an error
	EvolveRescue                  // kept in the rescued column; of declared columns, too
)

// ExactNames is implemented by formats that find columns by their exact spelling, so that
// a name in other letters is another column.
type ExactNames interface{ ExactNames() }

// IsElsewhere says whether a column of the source has its values from somewhere else than
// the content of files: a field of that name in a file counts for nothing.
func (c *Columns) IsElsewhere(name string) bool {
	return slices.ContainsFunc(c.Elsewhere, func(n string) bool { return strings.EqualFold(n, name) })
}

// Checked says whether a file with a column that the source has not is an error.
func (c *Columns) Checked() bool {
	return !c.Declared && (c.Evolution == EvolveFail || c.Evolution == EvolveAdd)
}

// RescuedAt is the position of the rescued column, -1 if there is none.
func (c *Columns) RescuedAt() int {
	if c.Rescued == "" || c.Evolution != EvolveRescue {
		return -1
	}
	return slices.IndexFunc(c.Schema.Fields(), func(f arrow.Field) bool { return f.Name == c.Rescued })
}

// Unknown is the error of a file with a column that the source has not.
func (c *Columns) Unknown(file string, line int64, name string) error {
	reason := "the source had no such column when its columns were found; schema_evolution = 'ignore' leaves it out, 'add' takes it in, 'rescue' keeps it as JSON"
	if c.Evolution == EvolveAdd {
		reason = "it appears behind the records that columns are found by; declare the columns, or leave it out with schema_evolution = 'ignore', or keep it as JSON with 'rescue'"
	}
	return &connector.RecordError{File: file, Line: line, Column: name, Reason: reason}
}

// WithFields is a type with the fields that other has within its structs and it has not;
// is says whether two names mean the same field.
func WithFields(dt, other arrow.DataType, is func(a, b string) bool) arrow.DataType {
	switch t := dt.(type) {
	case *arrow.StructType:
		o, ok := other.(*arrow.StructType)
		if !ok {
			break
		}
		fields := slices.Clone(t.Fields())
		for _, f := range o.Fields() {
			i := slices.IndexFunc(fields, func(g arrow.Field) bool { return is(g.Name, f.Name) })
			if i < 0 {
				fields = append(fields, columnar.Field(f.Name, f.Type))
			} else {
				fields[i].Type = WithFields(fields[i].Type, f.Type, is)
			}
		}
		return arrow.StructOf(fields...)
	case *arrow.ListType:
		if o, ok := other.(*arrow.ListType); ok {
			return columnar.ListOf(WithFields(t.Elem(), o.Elem(), is))
		}
	case *arrow.MapType:
		if o, ok := other.(*arrow.MapType); ok {
			return arrow.MapOf(t.KeyType(), WithFields(t.ItemType(), o.ItemType(), is))
		}
	}
	return dt
}

// HasStruct says whether a type is a STRUCT or has one within.
func HasStruct(dt arrow.DataType) bool {
	switch t := dt.(type) {
	case *arrow.StructType:
		return true
	case *arrow.ListType:
		return HasStruct(t.Elem())
	case *arrow.MapType:
		return HasStruct(t.ItemType())
	}
	return false
}

// Drift finds the columns of one file whose type is another one than the source's, and
// the parts of nested ones: the file has values for them, and none fits; and the column
// that each record has beyond them in a file that names none. A value that does
// not fit among others that do is a malformed record and none of its business. The units
// of a file share it.
type Drift struct {
	file    string
	columns Columns
	left    atomic.Int64 // units that were not read to their end
	fits    []atomic.Bool
	bads    []atomic.Bool

	mu    sync.Mutex
	parts map[string]*driftPart // of nested columns, by path
	// longer: records have a field behind those of the columns, which it names; even: some
	// have none.
	longer string
	even   bool
}

// driftPart is a part of a nested column: a field of a struct, an element.
type driftPart struct {
	dt        arrow.DataType
	fits, bad bool
}

// NewDrift begins to look at a file of that many units. It is nil, whose methods do
// nothing, where other types are no error.
func NewDrift(file File, c Columns, units int) *Drift {
	if !c.Checked() {
		return nil
	}
	n := c.Schema.NumFields()
	d := &Drift{file: file.Path, columns: c, fits: make([]atomic.Bool, n), bads: make([]atomic.Bool, n), parts: map[string]*driftPart{}}
	d.left.Store(int64(units))
	for i, f := range c.Schema.Fields() {
		d.fits[i].Store(f.Type.ID() == arrow.STRING) // what is no text is damaged, not of another type
	}
	return d
}

// See notes that so many values of a column were right, and so many did not fit.
func (d *Drift) See(column, right, wrong int) {
	switch {
	case d == nil || d.fits[column].Load():
	case right > 0:
		d.fits[column].Store(true)
	case wrong > 0:
		d.bads[column].Store(true)
	}
}

// SeePart is See for a part of a nested column.
func (d *Drift) SeePart(path string, dt arrow.DataType, right, wrong int) {
	if d == nil || dt.ID() == arrow.STRING || right == 0 && wrong == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.parts[path]
	if p == nil {
		p = &driftPart{dt: dt}
		d.parts[path] = p
	}
	p.fits = p.fits || right > 0
	p.bad = p.bad || wrong > 0
}

// SeeLonger notes that so many records of a file that names no columns have a field called
// name behind those of the columns, and so many have none. If all have one it is a column.
func (d *Drift) SeeLonger(name string, longer, even int) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if longer > 0 {
		d.longer = name
	}
	d.even = d.even || even > 0
}

// Done says that a unit was read to its end. The last one learns of a column that
// drifted.
func (d *Drift) Done() error {
	if d == nil || d.left.Add(-1) != 0 {
		return nil
	}
	if d.longer != "" && !d.even {
		return d.columns.Unknown(d.file, 0, d.longer)
	}
	for i := range d.bads {
		if d.bads[i].Load() && !d.fits[i].Load() {
			f := d.columns.Schema.Field(i)
			return d.drifted(f.Name, f.Type)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(d.parts)) {
		if p := d.parts[path]; p.bad && !p.fits {
			return d.drifted(path, p.dt)
		}
	}
	return nil
}

func (d *Drift) drifted(name string, dt arrow.DataType) error {
	return &connector.RecordError{File: d.file, Column: name, Reason: fmt.Sprintf(
		"none of its values in this file is a %s, as the source's are; declare the column VARCHAR, or make them null with schema_evolution = 'ignore', or keep them as JSON with 'rescue'",
		columnar.TypeName(dt))}
}
