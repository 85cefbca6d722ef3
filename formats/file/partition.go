package file

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// nullFolder is the value of a folder name that stands for null.
const nullFolder = "__HIVE_DEFAULT_PARTITION__"

// folderValue is one key=value folder on the way to a file.
type folderValue struct {
	key, value string
	null       bool
}

// folderValues reads the folder names of a path relative to the root of a listing.
// The last element is the file's own name and counts for nothing. Of a doubled key
// the last value counts.
func folderValues(rel string) []folderValue {
	var values []folderValue
	for {
		folder, rest, ok := strings.Cut(rel, "/")
		if !ok {
			return values
		}
		rel = rest
		key, value, ok := strings.Cut(folder, "=")
		if !ok || key == "" {
			continue
		}
		v := folderValue{key: unescape(key), value: unescape(value), null: value == nullFolder}
		if i := slices.IndexFunc(values, func(o folderValue) bool { return o.key == v.key }); i >= 0 {
			values[i] = v
		} else {
			values = append(values, v)
		}
	}
}

// unescape decodes %XX; a percent sign that starts no pair of hexadecimal digits
// stays, and so does a plus.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if b, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil && s[i+1] != '+' {
				out = append(out, byte(b))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// escaped marks the bytes that Hive writes as %XX in folder names.
var escaped = func() (t [256]bool) {
	for b := range 0x20 {
		t[b] = true
	}
	for _, b := range []byte("\"#%'*/:=?\\{[]^\x7f") {
		t[b] = true
	}
	return t
}()

// appendEscaped writes s as a part of a folder name. Bytes that are not UTF-8 are
// escaped, too.
func appendEscaped(dst []byte, s []byte) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); {
		b := s[i]
		n := 1
		bad := escaped[b]
		if b >= utf8.RuneSelf {
			var r rune
			r, n = utf8.DecodeRune(s[i:])
			bad = r == utf8.RuneError && n == 1
		}
		if bad {
			dst = append(dst, '%', hex[b>>4], hex[b&15])
		} else {
			dst = append(dst, s[i:i+n]...)
		}
		i += n
	}
	return dst
}

// appendFolderText writes a value that is not null as a part of a folder name. A text that
// reads as null does is told apart by escaping its first character.
func appendFolderText(dst []byte, s []byte) []byte {
	if string(s) == nullFolder {
		return append(append(dst, "%5F"...), s[1:]...)
	}
	return appendEscaped(dst, s)
}

// inferFolders finds the columns that the folders of files make, in order of first
// sight, each with the type that fits all values: BIGINT, DATE, or VARCHAR. Names that
// differ in case are one column, unless a path has both.
func inferFolders(files []foundFile) []arrow.Field {
	type column struct {
		name             string
		some, bigint, dt bool
	}
	var columns []column
	for _, f := range files {
		values := folderValues(f.rel)
		for _, v := range values {
			i := slices.IndexFunc(columns, func(c column) bool { return c.name == v.key })
			if i < 0 && !hasTwin(values, v) {
				i = slices.IndexFunc(columns, func(c column) bool { return strings.EqualFold(c.name, v.key) })
			}
			if i < 0 {
				i = len(columns)
				columns = append(columns, column{name: v.key, bigint: true, dt: true})
			}
			if v.null {
				continue
			}
			c := &columns[i]
			c.some = true
			c.bigint = c.bigint && isPlainInt(v.value)
			c.dt = c.dt && isPlainDate(v.value)
		}
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		dt := columnar.String
		switch {
		case c.some && c.bigint:
			dt = columnar.Int64
		case c.some && c.dt:
			dt = columnar.Date
		}
		fields[i] = columnar.Field(c.name, dt)
	}
	return fields
}

// hasTwin says whether a path has another folder of a name that differs in case alone.
func hasTwin(values []folderValue, v folderValue) bool {
	return slices.ContainsFunc(values, func(o folderValue) bool { return o.key != v.key && strings.EqualFold(o.key, v.key) })
}

// isPlainInt accepts what is written back the same: no leading zeros, no plus sign.
func isPlainInt(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == s
}

func isPlainDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// parseFolder is a folder's value as a value of dt.
func parseFolder(mem memory.Allocator, v folderValue, dt arrow.DataType, loc *time.Location) (columnar.Datum, error) {
	if v.null {
		return columnar.NullConstant(mem, dt), nil
	}
	ok := true
	var value any = v.value
	switch t := dt.(type) {
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type:
		value, ok = columnar.ParseInt(v.value)
	case *arrow.Float32Type:
		value, ok = columnar.ParseFloat(v.value, 32)
	case *arrow.Float64Type:
		value, ok = columnar.ParseFloat(v.value, 64)
	case *arrow.BooleanType:
		value, ok = columnar.ParseBool(v.value)
	case *arrow.Decimal128Type:
		value, ok = columnar.ParseDecimal(v.value, t.Precision, t.Scale)
	case *arrow.Date32Type:
		var days int32
		days, ok = columnar.ParseDay(v.value)
		value = arrow.Date32(days)
	case *arrow.Time64Type:
		var us int64
		us, ok = columnar.ParseTime(v.value)
		value = arrow.Time64(us)
	case *arrow.TimestampType:
		var us int64
		us, ok = columnar.ParseTimestamp(v.value, loc)
		value = arrow.Timestamp(us)
	case *arrow.BinaryType:
		value = columnar.UnescapeBinary([]byte(v.value))
	case *arrow.MonthDayNanoIntervalType:
	case *arrow.StringType:
		if !utf8.ValidString(v.value) {
			value = strings.ToValidUTF8(v.value, "\uFFFD")
		}
	default:
		ok = false
	}
	if !ok {
		return columnar.Datum{}, notA(v, dt)
	}
	d, err := columnar.Constant(mem, dt, value)
	if err != nil {
		return columnar.Datum{}, notA(v, dt)
	}
	return d, nil
}

func notA(v folderValue, dt arrow.DataType) error {
	return fmt.Errorf("folder value %q is not a %s", v.value, columnar.TypeName(dt))
}

// isInferred says whether a value of dt is what a column is inferred as that type from:
// 007 is text then, though it can be read as a number.
func (v folderValue) isInferred(dt arrow.DataType) bool {
	return v.null || dt.ID() != arrow.INT64 || isPlainInt(v.value)
}

// partitionColumns finds the columns of partition_by.
func partitionColumns(s *arrow.Schema, names []string) ([]int, error) {
	wrong := func(reason string) error {
		return &connector.OptionError{Key: "partition_by", Value: strings.Join(names, ", "), HasValue: true, Reason: reason}
	}
	var columns []int
	for _, name := range names {
		i, n := columnar.Lookup(s, name)
		switch {
		case n > 1:
			return nil, wrong(fmt.Sprintf("more than one column is called %s", name))
		case n == 0:
			known := make([]string, s.NumFields())
			for j, f := range s.Fields() {
				known[j] = f.Name
			}
			return nil, wrong(fmt.Sprintf("there is no column %s%s", name, columnar.DidYouMean(name, known)))
		case slices.Contains(columns, i):
			return nil, wrong(fmt.Sprintf("%s is named twice", name))
		case columnar.IsNested(s.Field(i).Type):
			return nil, wrong(fmt.Sprintf("%s is a %s; folder names hold single values", name, columnar.TypeName(s.Field(i).Type)))
		}
		columns = append(columns, i)
	}
	if len(columns) > 0 && len(columns) == s.NumFields() {
		return nil, wrong("no column is left for the files")
	}
	return columns, nil
}

// splitter divides batches by the folders their rows go to.
type splitter struct {
	mem     memory.Allocator
	loc     *time.Location
	columns []int    // of partition_by
	heads   [][]byte // name= of each
	rest    []int    // the columns left for the files

	folders map[string]int
	names   []string
	rows    [][]int32
	used    []int // folders that have rows of this batch, in order of first sight
}

func newSplitter(mem memory.Allocator, loc *time.Location, s *arrow.Schema, columns []int) *splitter {
	p := &splitter{mem: mem, loc: loc, columns: columns, folders: map[string]int{}}
	for _, c := range columns {
		p.heads = append(p.heads, append(appendEscaped(nil, []byte(s.Field(c).Name)), '='))
	}
	for i := range s.NumFields() {
		if !slices.Contains(columns, i) {
			p.rest = append(p.rest, i)
		}
	}
	return p
}

// maxFolderName is the longest name of a folder that file systems take.
const maxFolderName = 255

// split finds the folder of each row of b: rows[folder] holds row numbers for the
// folders in used.
func (p *splitter) split(b arrow.RecordBatch) error {
	for _, f := range p.used {
		p.rows[f] = p.rows[f][:0]
	}
	p.used = p.used[:0]
	columns := make([]arrow.Array, len(p.columns))
	for i, c := range p.columns {
		columns[i] = columnar.PlainColumn(p.mem, b.Column(c))
		defer columns[i].Release()
	}
	var name, value []byte
	for row := range int(b.NumRows()) {
		name = name[:0]
		for i, c := range columns {
			if i > 0 {
				name = append(name, '/')
			}
			at := len(name)
			name = append(name, p.heads[i]...)
			if c.IsNull(row) {
				name = append(name, nullFolder...)
			} else {
				value = p.appendValue(value[:0], c, row)
				name = appendFolderText(name, value)
			}
			if len(name)-at > maxFolderName {
				return fmt.Errorf("column %s: the value %.60q… is too long for the name of a folder", b.ColumnName(p.columns[i]), value)
			}
		}
		p.add(name, int32(row))
	}
	return nil
}

func (p *splitter) appendValue(dst []byte, c arrow.Array, row int) []byte {
	if t, ok := c.(*array.Timestamp); ok {
		return columnar.AppendStoredTimestamp(dst, int64(t.Value(row)), p.loc)
	}
	return columnar.AppendValue(dst, c, row, p.loc)
}

func (p *splitter) add(name []byte, row int32) {
	f, ok := p.folders[string(name)]
	if !ok {
		f = len(p.names)
		p.names = append(p.names, string(name))
		p.rows = append(p.rows, nil)
		p.folders[string(name)] = f
	}
	if len(p.rows[f]) == 0 {
		p.used = append(p.used, f)
	}
	p.rows[f] = append(p.rows[f], row)
}
