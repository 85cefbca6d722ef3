package codec

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// Evolution is the policy for files whose columns differ from the inferred ones.
type Evolution uint8

const (
	EvolveFail Evolution = iota
	EvolveIgnore
	EvolveAdd
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
func (c *Columns) Checked() bool { return !c.Declared && c.Evolution != EvolveIgnore }

// CheckNames applies the policy to a file whose columns have these names: nil, or the
// error that one of them is none of the source's. Names match without regard to case.
func (c *Columns) CheckNames(file string, names []string) error {
	if !c.Checked() {
		return nil
	}
	for _, name := range names {
		if i, n := columnar.Lookup(c.Schema, name); i < 0 && n == 0 && !c.IsElsewhere(name) {
			return c.Unknown(file, 0, name)
		}
	}
	return nil
}

// Unknown is the error of a file with a column that the source has not.
func (c *Columns) Unknown(file string, line int64, name string) error {
	reason := "the source had no such column when its columns were found; schema_evolution = 'ignore' leaves it out, 'add' takes it in"
	if c.Evolution == EvolveAdd {
		reason = "it appears behind the records that columns are found by; declare the columns, or leave it out with schema_evolution = 'ignore'"
	}
	return &connector.RecordError{File: file, Line: line, Column: name, Reason: reason}
}

// Drift finds the columns of one file whose type is another one than the source's: the
// file has values for them, and none fits. A value that does not fit among others that do
// is a malformed record and none of its business. The units of a file share it.
type Drift struct {
	file       string
	columns    Columns
	left       atomic.Int64 // units that were not read to their end
	fits, bads []atomic.Bool
}

// NewDrift begins to look at a file of that many units. It is nil, whose methods do
// nothing, where other types are no error.
func NewDrift(file File, c Columns, units int) *Drift {
	if !c.Checked() {
		return nil
	}
	n := c.Schema.NumFields()
	d := &Drift{file: file.Path, columns: c, fits: make([]atomic.Bool, n), bads: make([]atomic.Bool, n)}
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

// Done says that a unit was read to its end. The last one learns of a column that
// drifted.
func (d *Drift) Done() error {
	if d == nil || d.left.Add(-1) != 0 {
		return nil
	}
	for i := range d.bads {
		if d.bads[i].Load() && !d.fits[i].Load() {
			f := d.columns.Schema.Field(i)
			return &connector.RecordError{File: d.file, Column: f.Name, Reason: fmt.Sprintf(
				"none of its values in this file is a %s, as the source's are; declare the column VARCHAR, or make them null with schema_evolution = 'ignore'",
				columnar.TypeName(f.Type))}
		}
	}
	return nil
}
