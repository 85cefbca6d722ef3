package csv

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
	"github.com/tidemill/tidemill/logical/connector"
)

// texts are the fields of a record as text.
func texts(rules *cells.Rules, buf []byte, record []cells.Cell) []string {
	out := make([]string, len(record))
	for i, c := range record {
		text, _ := rules.AppendText(nil, buf, c)
		out[i] = string(text)
	}
	return out
}

// looksLikeHeader is header = auto without declared columns: no field is a number, a
// date or empty, and the names are distinct.
func looksLikeHeader(rules *cells.Rules, record []string) bool {
	seen := map[string]bool{}
	for _, name := range record {
		if name == "" || seen[strings.ToLower(name)] {
			return false
		}
		seen[strings.ToLower(name)] = true
		switch rules.Classify([]byte(name)) {
		case cells.Integer, cells.Number, cells.Date, cells.Timestamp:
			return false
		}
		// Digits that stay text as values, such as 007, make no name either.
		if _, ok := columnar.ParseFloat(name, 64); ok && strings.ContainsAny(name, "0123456789") {
			return false
		}
	}
	return len(record) > 0
}

// holdsName is header = auto with declared columns: one of their names is there.
func holdsName(record []string, columns []string) bool {
	for _, field := range record {
		for _, name := range columns {
			if strings.EqualFold(field, name) {
				return true
			}
		}
	}
	return false
}

// columnNames are the names a header gives: _c0, _c1, … where it is empty, and the
// position added to names that occur twice, as Spark does. They are distinct.
func columnNames(header []string) []string {
	count := map[string]int{}
	for _, name := range header {
		count[strings.ToLower(name)]++
	}
	names := make([]string, len(header))
	taken := map[string]bool{}
	for i, name := range header {
		if name == "" {
			name = numberedName(i)
		} else if count[strings.ToLower(name)] > 1 {
			name += strconv.Itoa(i)
		}
		for taken[strings.ToLower(name)] {
			name += "_"
		}
		taken[strings.ToLower(name)] = true
		names[i] = name
	}
	return names
}

// checkNames sees that the names in a header are text.
func checkNames(file string, header []string) error {
	for i, name := range header {
		if !utf8.ValidString(name) {
			return &connector.RecordError{File: file, Line: 1, Reason: fmt.Sprintf("the name of column %d, %q, is not valid UTF-8; set encoding", i+1, name)}
		}
	}
	return nil
}

// numberedName is the name of a field that has none.
func numberedName(i int) string { return "_c" + strconv.Itoa(i) }

// numberedNames are the names of n columns without a header.
func numberedNames(n int) []string { return columnNames(make([]string, n)) }

// isHeader decides about the first record of a file.
func (sc *scan) isHeader(record []string) bool {
	switch sc.opts.Header {
	case HeaderYes:
		return true
	case HeaderNo:
		return false
	}
	if sc.columns.Declared {
		return holdsName(record, sc.names)
	}
	return looksLikeHeader(sc.rules, record)
}

// layout says where the fields of a file's records go.
type layout struct {
	hasHeader bool
	names     []string // that the header gives the fields
	fields    int      // fields of a record
	field     []int    // of each column of the source: its field, -1 if the file has none
	// first is how many fields the first record of a file without a header has.
	first int
}

// match finds the columns in the first record of a file; nil is a file without one.
func (sc *scan) match(first []string) (*layout, error) {
	l := &layout{field: make([]int, sc.columns.Schema.NumFields())}
	for i := range l.field {
		l.field[i] = -1
	}
	if first == nil {
		l.fields = 1
		return l, nil
	}
	if l.hasHeader = sc.isHeader(first); !l.hasHeader {
		for f, c := range sc.content {
			l.field[c] = f
		}
		l.fields, l.first = max(len(sc.content), 1), len(first)
		return l, nil
	}
	l.fields, l.names = len(first), columnNames(first)
	if sc.byName() {
		return l, sc.matchNames(l, first)
	}
	return l, sc.matchPlaces(l, first)
}

// matchNames finds each column by its name in the header.
func (sc *scan) matchNames(l *layout, header []string) error {
	written, made := codec.NewFields(header), codec.NewFields(l.names)
	for i, c := range sc.content {
		f, err := written.Of(sc.file.Path, sc.columns.Schema, sc.names[i])
		if err != nil {
			return err
		}
		if f < 0 {
			if f, err = made.Of(sc.file.Path, sc.columns.Schema, sc.names[i]); err != nil {
				return err
			}
		}
		l.field[c] = f
	}
	unknown := slices.DeleteFunc(sc.unknown(l), func(f int) bool {
		_, n := columnar.Lookup(sc.columns.Schema, header[f])
		return n > 0 // another spelling of a column, which an exact match won
	})
	if len(unknown) > 0 && sc.columns.Checked() && (sc.columns.Evolution == codec.EvolveAdd || sc.columns.ByName) {
		return sc.columns.Unknown(sc.file.Path, 1, l.names[unknown[0]])
	}
	return nil
}

// unknown are the fields of a header that are no columns of the source.
func (sc *scan) unknown(l *layout) []int {
	taken := map[int]bool{}
	for _, f := range l.field {
		taken[f] = true
	}
	var fields []int
	for f, name := range l.names {
		if !taken[f] && !sc.columns.IsElsewhere(name) && !sc.isCorrupt(name) {
			fields = append(fields, f)
		}
	}
	return fields
}

// matchPlaces finds the columns in their order, and sees that the header agrees. What
// it says of columns that come from somewhere else does not matter.
func (sc *scan) matchPlaces(l *layout, header []string) error {
	names := columnNames(header)
	var fields []int
	for f, name := range header {
		if !sc.columns.IsElsewhere(name) && !sc.isCorrupt(name) {
			fields = append(fields, f)
		}
	}
	for i, c := range sc.content {
		if i >= len(fields) {
			return sc.headerError("", i)
		}
		f := fields[i]
		if !strings.EqualFold(header[f], sc.names[i]) && !strings.EqualFold(names[f], sc.names[i]) {
			return sc.headerError(names[f], i)
		}
		l.field[c] = f
	}
	if len(fields) > len(sc.content) {
		return sc.headerError(names[fields[len(sc.content)]], len(sc.content))
	}
	return nil
}

func (sc *scan) isCorrupt(name string) bool {
	i := sc.columns.CorruptColumn
	return i >= 0 && strings.EqualFold(sc.columns.Schema.Field(i).Name, name)
}

// byName says whether columns are found by the names in the header.
func (sc *scan) byName() bool {
	switch sc.columns.Evolution {
	case codec.EvolveFail:
		return sc.opts.UnionByName || sc.columns.ByName
	case codec.EvolveRescue:
		return true
	}
	return sc.opts.UnionByName || !sc.columns.Declared
}

// headerError says where header and columns part: name stands in the place of column i,
// "" if nothing does.
func (sc *scan) headerError(name string, i int) error {
	e := &connector.RecordError{File: sc.file.Path, Line: 1}
	remedy := "set union_by_name = true to find columns by name"
	if !sc.columns.Declared {
		remedy += ", or schema_evolution = 'ignore', 'add' or 'rescue'"
	}
	switch {
	case i >= len(sc.names):
		e.Column = name
		e.Reason = fmt.Sprintf("the header has a column that the source has not; %s", remedy)
	case name == "":
		e.Column = sc.names[i]
		e.Reason = fmt.Sprintf("the header has no such column; %s", remedy)
	default:
		e.Column = sc.names[i]
		e.Reason = fmt.Sprintf("the header has %q in its place; %s", name, remedy)
	}
	return e
}
