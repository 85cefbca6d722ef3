package file

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// constant is a folder's value as one of a column: null, and the file's misfit, where the
// column cannot hold it.
func (c *fileColumns) constant(l *layout, f foundFile, field arrow.Field, v folderValue) arrow.Array {
	d, err := parseFolder(heap, v, field.Type, l.env.Location)
	if err == nil && !l.declared && !l.byName && !v.isInferred(field.Type) {
		err = notA(v, field.Type)
	}
	if err != nil && l.rescues() {
		c.rescue(v)
		return columnar.NullConstant(heap, field.Type).Array()
	}
	if err != nil {
		reason := err.Error()
		if l.driftFails() {
			reason += "; declare the column VARCHAR, or make it null with schema_evolution = 'ignore'"
		}
		c.misfit = &connector.RecordError{File: f.Path, Column: field.Name, Reason: reason}
		d = columnar.NullConstant(heap, field.Type)
	}
	return d.Array()
}

// rescues says whether what no column takes is kept in the rescued column.
func (l *layout) rescues() bool { return l.evolution == codec.EvolveRescue && l.rescued != "" }

// rescue keeps what a folder says.
func (c *fileColumns) rescue(v folderValue) {
	if !v.null {
		c.rescued = codec.AppendMember(c.rescued, strings.ToValidUTF8(v.key, "\uFFFD"), strings.ToValidUTF8(v.value, "\uFFFD"))
	}
}

// rescueUnknown keeps what folders say that are no columns.
func (c *fileColumns) rescueUnknown(l *layout, found []folderValue) {
	for _, v := range found {
		if l.rescues() && !l.takesFolder(v, found) {
			c.rescue(v)
		}
	}
}

// unknownFolder is the first key=value folder that is no column of a source whose columns
// were found by its first files; nil if there is none.
func (l *layout) unknownFolder(f foundFile, found []folderValue) *connector.RecordError {
	if !l.driftFails() {
		return nil
	}
	for _, v := range found {
		if !l.takesFolder(v, found) {
			return &connector.RecordError{File: f.Path, Column: v.key, Reason: "the source had no such folders when its columns were found; declare its columns, " +
				"or leave this one out with schema_evolution = 'ignore'"}
		}
	}
	return nil
}

// takesFolder says whether a column has the name of a folder, be it in another case: then of
// two such folders it is that of one.
func (l *layout) takesFolder(v folderValue, found []folderValue) bool {
	return l.isColumn(v.key) || !hasTwin(found, v) &&
		slices.ContainsFunc(l.schema.Fields(), func(c arrow.Field) bool { return strings.EqualFold(c.Name, v.key) })
}

// driftFails says whether a file that has other columns ends the query.
func (l *layout) driftFails() bool {
	return !l.declared && (l.evolution == codec.EvolveFail || l.evolution == codec.EvolveAdd)
}

// judge does with a file of which e is wrong what mode and schema_evolution ask for: it
// is an error, all its records are left out, or it is counted.
func (l *layout) judge(e *connector.RecordError, stats *connector.ScanStats) (leftOut bool, err error) {
	if e == nil {
		return false, nil
	}
	mode := strings.ToLower(l.env.Options["mode"])
	if mode == "fail" || l.driftFails() {
		return false, e
	}
	stats.Malformed(*e)
	return mode == "drop", nil
}
