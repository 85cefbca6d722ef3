package codec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/connector"
)

// Typed is a file that says the types of its columns.
type Typed struct {
	Path string
	// Fields are the columns; the type is nil of one that cannot be read.
	Fields []arrow.Field
	// Mode is what happens to records that do not fit.
	Mode Mode
}

// ReadTyped gives the units of a file by the policy for columns that differ (CONTRACT
// 5.22). read gives them for columns that do not; it finds them by name.
func ReadTyped(file Typed, c Columns, req connector.ScanRequest, read func(Columns, connector.ScanRequest) ([]connector.Unit, error)) ([]connector.Unit, error) {
	if err := c.checkTyped(file); err != nil {
		return nil, err
	}
	if c.RescuedAt() < 0 && (c.Declared || c.Evolution != EvolveIgnore) {
		units, err := read(c, req)
		return units, c.remedied(file, err)
	}
	d, err := newTypedDrift(file, c, req)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return read(c, req)
	}
	inner, innerReq := d.inner()
	units, err := read(inner, innerReq)
	for i, u := range units {
		units[i] = &typedUnit{u, d}
	}
	return units, err
}

// remedied is err, which says what can be done if it is that of a column whose type in the
// file does not fit.
func (c *Columns) remedied(file Typed, err error) error {
	var bad *connector.RecordError
	if !errors.As(err, &bad) {
		return err
	}
	have := slices.IndexFunc(file.Fields, func(f arrow.Field) bool { return strings.EqualFold(f.Name, bad.Column) })
	want, _ := columnar.Lookup(c.Schema, bad.Column)
	if have < 0 || want < 0 || file.Fields[have].Type != nil && CanFit(file.Fields[have].Type, c.Schema.Field(want).Type) == nil {
		return err
	}
	with := *bad
	switch t := file.Fields[have].Type; {
	case t == nil && c.Declared:
		with.Reason += "; leave the column out of the declared ones"
	case t == nil:
		with.Reason += "; make it null with schema_evolution = 'ignore'"
	case c.Declared:
		with.Reason += fmt.Sprintf("; declare the column %s, or keep such values as JSON with schema_evolution = 'rescue'", columnar.TypeName(t))
	default:
		with.Reason += "; declare the column as it is in all files, or make it null where it differs with schema_evolution = 'ignore', or keep it as JSON with 'rescue'"
	}
	return &with
}

// checkTyped fails where another column is an error, also within a STRUCT.
func (c *Columns) checkTyped(file Typed) error {
	if !c.Checked() {
		return nil
	}
	for _, f := range file.Fields {
		if c.IsElsewhere(f.Name) {
			continue
		}
		i, n := columnar.Lookup(c.Schema, f.Name)
		stranger := ""
		switch {
		case i < 0 && n == 0:
			stranger = f.Name
		case i >= 0 && f.Type != nil:
			stranger = firstStranger(f.Name, f.Type, c.Schema.Field(i).Type)
		}
		if stranger != "" {
			return c.Unknown(file.Path, 0, stranger)
		}
	}
	return nil
}

// firstStranger is the path of a field that want has not; "" if there is none.
func firstStranger(path string, have, want arrow.DataType) string {
	switch h := have.(type) {
	case *arrow.StructType:
		w, ok := want.(*arrow.StructType)
		if !ok {
			break
		}
		for _, f := range h.Fields() {
			at := path + "." + f.Name
			i := fieldNamed(w, f.Name)
			if i < 0 {
				return at
			}
			if s := firstStranger(at, f.Type, w.Field(i).Type); s != "" {
				return s
			}
		}
	case *arrow.ListType:
		if w, ok := want.(*arrow.ListType); ok {
			return firstStranger(path+".element", h.Elem(), w.Elem())
		}
	case *arrow.MapType:
		if w, ok := want.(*arrow.MapType); ok {
			return firstStranger(path+".value", h.ItemType(), w.ItemType())
		}
	}
	return ""
}

// typedDrift reads a file whose columns differ: what differs is read in the file's own
// type, and then taken apart into what fits and what does not.
type typedDrift struct {
	file    Typed
	columns Columns
	schema  *arrow.Schema // of what is handed out
	req     connector.ScanRequest
	fields  []arrow.Field // of what is read
	out     []driftColumn // of what is handed out
	apart   []apartColumn // what is taken apart, in the order of fields
	lost    string        // a wanted column that cannot be read in any type, "" if there is none
	rescues bool          // the rescued column is wanted
}

// driftColumn is where a column that is handed out comes from.
type driftColumn struct {
	from  int // position of what is read; -1: null, rescuedColumn
	apart bool
}

const (
	nullColumn    = -1
	rescuedColumn = -2
)

// apartColumn is a column in the file's own type.
type apartColumn struct {
	name  string
	from  int
	parts *typeParts // nil: no column of the source takes it
	want  arrow.DataType
}

// newTypedDrift is nil if the file can be read as if nothing differed.
func newTypedDrift(file Typed, c Columns, req connector.ScanRequest) (*typedDrift, error) {
	d := &typedDrift{file: file, columns: c, schema: columnar.Select(c.Schema, req.Columns), req: req}
	if d.req.Mem == nil {
		d.req.Mem = memory.DefaultAllocator
	}
	wanted := req.Columns
	if wanted == nil {
		for i := range c.Schema.NumFields() {
			wanted = append(wanted, i)
		}
	}
	rescued := c.RescuedAt()
	d.rescues = rescued >= 0 && slices.Contains(wanted, rescued)
	differs := rescued >= 0 && slices.Contains(wanted, rescued)
	places, err := d.places()
	if err != nil {
		return nil, err
	}
	read := map[int]driftColumn{}
	for _, i := range wanted {
		if i == rescued {
			d.out = append(d.out, driftColumn{from: rescuedColumn})
			continue
		}
		if _, ok := read[i]; !ok {
			if read[i], err = d.plan(i, places[i]); err != nil {
				return nil, err
			}
		}
		differs = differs || read[i].apart
		d.out = append(d.out, read[i])
	}
	if d.rescues {
		err = d.planRest(read, places)
	}
	if err != nil || !differs {
		return nil, err
	}
	return d, nil
}

// places are the fields of the file of each column of the source, -1 where it has none.
func (d *typedDrift) places() ([]int, error) {
	names := make([]string, len(d.file.Fields))
	for i, f := range d.file.Fields {
		names[i] = f.Name
	}
	fields := NewFields(names)
	places := make([]int, d.columns.Schema.NumFields())
	for i, f := range d.columns.Schema.Fields() {
		if i == d.columns.RescuedAt() {
			places[i] = -1
			continue
		}
		var err error
		if places[i], err = fields.Of(d.file.Path, d.columns.Schema, f.Name); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// plan says how column i is read, which field at of the file has.
func (d *typedDrift) plan(i, at int) (driftColumn, error) {
	if at < 0 {
		return driftColumn{from: nullColumn}, nil
	}
	want, have := d.columns.Schema.Field(i), d.file.Fields[at]
	if have.Type == nil {
		if d.columns.Evolution == EvolveRescue {
			return driftColumn{}, d.unreadable(have.Name)
		}
		d.lost = have.Name
		return driftColumn{from: nullColumn, apart: true}, nil
	}
	parts := newTypeParts(have.Type, want.Type)
	from := len(d.fields)
	if !parts.misfits && !(d.rescues && parts.strangers) {
		d.fields = append(d.fields, columnar.Field(have.Name, want.Type))
		return driftColumn{from: from}, nil
	}
	d.fields = append(d.fields, columnar.Field(have.Name, have.Type))
	d.apart = append(d.apart, apartColumn{have.Name, from, parts, want.Type})
	return driftColumn{from, true}, nil
}

func (d *typedDrift) unreadable(name string) error {
	return &connector.RecordError{File: d.file.Path, Column: name,
		Reason: "there is no type for it, so it cannot be rescued; schema_evolution = 'ignore' leaves it out"}
}

// planRest adds what the rescued column needs beside the columns that are wanted.
func (d *typedDrift) planRest(read map[int]driftColumn, places []int) error {
	for at, f := range d.file.Fields {
		i := slices.Index(places, at)
		_, known := read[i]
		switch {
		case known || d.columns.IsElsewhere(f.Name):
		case f.Type == nil:
			return d.unreadable(f.Name)
		case i < 0:
			d.apart = append(d.apart, apartColumn{name: f.Name, from: len(d.fields)})
			d.fields = append(d.fields, columnar.Field(f.Name, f.Type))
		default:
			want := d.columns.Schema.Field(i).Type
			if parts := newTypeParts(f.Type, want); parts.misfits || parts.strangers {
				d.apart = append(d.apart, apartColumn{f.Name, len(d.fields), parts, want})
				d.fields = append(d.fields, columnar.Field(f.Name, f.Type))
			}
		}
	}
	return nil
}

// inner is the request for what is read. Filters would judge by columns that are null or
// of another type in this file.
func (d *typedDrift) inner() (Columns, connector.ScanRequest) {
	c := Columns{Schema: arrow.NewSchema(d.fields, nil), Declared: true, CorruptColumn: -1}
	req := d.req
	req.Columns, req.Filters = nil, nil
	return c, req
}

// typedUnit is a unit of such a file.
type typedUnit struct {
	connector.Unit
	drift *typedDrift
}

// Open implements connector.Unit.
func (u *typedUnit) Open(ctx context.Context) (columnar.Reader, error) {
	r, err := u.Unit.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &typedReader{Reader: r, typedDrift: u.drift}, nil
}

type typedReader struct {
	columnar.Reader
	*typedDrift
	rescued *Rescued
}

func (r *typedReader) Schema() *arrow.Schema { return r.schema }

// Next gives the next rows.
func (r *typedReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		b, err := r.Reader.Next(ctx)
		if err != nil {
			return nil, err
		}
		out, err := r.take(b)
		b.Release()
		if err != nil || out.NumRows() > 0 {
			return out, err
		}
		out.Release() // all of its records were dropped
	}
}

// take makes the batch that is handed out of one that was read.
func (r *typedReader) take(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	columns := slices.Clone(b.Columns())
	for _, a := range r.apart {
		plain, err := whole(r.req.Mem, columns[a.from])
		if err != nil {
			return nil, err
		}
		defer plain.Release()
		columns[a.from] = plain
	}
	bad, err := r.judge(columns, int(b.NumRows()))
	if err != nil {
		return nil, err
	}
	out, err := r.assemble(columns, int(b.NumRows()))
	if err != nil || len(bad) == 0 || r.file.Mode != Drop {
		return out, err
	}
	defer out.Release()
	return kernel.FilterBatch(r.req.Mem, out, rowsWithout(bad, int(b.NumRows()))), nil
}

// whole is a column that is neither encoded nor a slice.
func whole(mem memory.Allocator, a arrow.Array) (arrow.Array, error) {
	plain := columnar.PlainColumn(mem, a)
	if plain.Data().Offset() == 0 {
		return plain, nil
	}
	defer plain.Release()
	return array.Concatenate([]arrow.Array{plain}, mem)
}

// judge looks at each row for what does not fit: it is rescued, or makes the record
// malformed. bad are the rows that are.
func (r *typedReader) judge(columns []arrow.Array, rows int) (bad []int32, err error) {
	if r.columns.Evolution == EvolveRescue {
		if r.rescues {
			r.rescue(columns, rows)
		}
		return nil, nil
	}
	for i := range rows {
		e := r.malformed(columns, i)
		if e == nil {
			continue
		}
		if r.file.Mode == Fail {
			return nil, e
		}
		r.req.Stats.Malformed(*e)
		bad = append(bad, int32(i))
	}
	return bad, nil
}

// rescue fills the rescued column.
func (r *typedReader) rescue(columns []arrow.Array, rows int) {
	if r.rescued == nil {
		r.rescued = NewRescued(r.req.Mem, r.file.Path)
	}
	var rest []byte
	var found partsFound
	for i := range rows {
		for _, a := range r.apart {
			if rest, found = a.rest(rest[:0], columns[a.from], i); found != foundNothing {
				r.rescued.Add(a.name, func(dst []byte) []byte { return append(dst, rest...) })
			}
		}
		r.rescued.Append(r.rescued.Row())
	}
}

// malformed says what of record i does not fit; nil if all does.
func (r *typedReader) malformed(columns []arrow.Array, i int) *connector.RecordError {
	for _, a := range r.apart {
		if _, found := a.rest(nil, columns[a.from], i); found&foundMisfit != 0 {
			return &connector.RecordError{File: r.file.Path, Column: a.name, Reason: misfitReason(r.fields[a.from].Type, a.want)}
		}
	}
	if r.lost != "" {
		return &connector.RecordError{File: r.file.Path, Column: r.lost, Reason: "there is no type for it in the file"}
	}
	return nil
}

// misfitReason says why a value of type have has no place in want.
func misfitReason(have, want arrow.DataType) string {
	if err := CanFit(have, want); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("it is %s in the file, with bytes that are not UTF-8, and %s here", columnar.TypeName(have), columnar.TypeName(want))
}

// rest is the JSON of what no column takes of value i.
func (a *apartColumn) rest(dst []byte, column arrow.Array, i int) ([]byte, partsFound) {
	if a.parts != nil {
		return a.parts.rest(dst, column, i)
	}
	if columnar.IsNull(column, i) {
		return dst, foundNothing
	}
	return columnar.AppendJSON(dst, column, i), foundStranger
}

// assemble makes the columns that are handed out.
func (r *typedReader) assemble(columns []arrow.Array, rows int) (out arrow.RecordBatch, err error) {
	arrays := make([]arrow.Array, 0, len(r.out))
	defer func() {
		for _, a := range arrays {
			a.Release()
		}
	}()
	var rescued arrow.Array
	if r.rescues {
		rescued = r.rescued.Finish()
		defer rescued.Release()
	}
	fields := r.schema.Fields()
	for k, from := range r.out {
		var a arrow.Array
		switch {
		case from.from == rescuedColumn:
			a = rescued
			a.Retain()
		case from.from == nullColumn:
			a = columnar.Nulls(r.req.Mem, fields[k].Type, rows)
		case from.apart:
			if a, err = FitParts(r.req.Mem, columns[from.from], fields[k].Type); err != nil {
				return nil, &connector.RecordError{File: r.file.Path, Column: fields[k].Name, Reason: err.Error(), Err: err}
			}
		default:
			a = columns[from.from]
			a.Retain()
		}
		arrays = append(arrays, a)
		fields[k].Type = a.DataType() // it may be dictionary-encoded
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, int64(rows)), nil
}

// Close releases everything.
func (r *typedReader) Close() error {
	if r.rescued != nil {
		r.rescued.Release()
		r.rescued = nil
	}
	return r.Reader.Close()
}

// rowsWithout are the numbers up to n that are not among those of bad.
func rowsWithout(bad []int32, n int) []int32 {
	rows := make([]int32, 0, n-len(bad))
	for i := range int32(n) {
		if len(bad) > 0 && bad[0] == i {
			bad = bad[1:]
			continue
		}
		rows = append(rows, i)
	}
	return rows
}

// partsFound is what a value has that its column does not take.
type partsFound uint8

const (
	foundMisfit   partsFound = 1 << iota // a value of another type
	foundStranger                        // a field that is unknown
	foundNothing  partsFound = 0
)

// typeParts says which parts of values of one type have a place in another.
type typeParts struct {
	misfits, strangers bool // somewhere within
	whole              bool // no part of a value has a place
	text               bool // a value that is no text has none
	// Of a STRUCT: its fields; nil is one that is unknown.
	names  []string
	fields []*typeParts
	// Of an ARRAY its elements, of a MAP its values.
	element *typeParts
}

func newTypeParts(have, want arrow.DataType) *typeParts {
	p := &typeParts{}
	switch h := have.(type) {
	case *arrow.StructType:
		if w, ok := want.(*arrow.StructType); ok {
			return p.ofStruct(h, w)
		}
	case *arrow.ListType:
		if w, ok := want.(*arrow.ListType); ok {
			return p.of(newTypeParts(h.Elem(), w.Elem()))
		}
	case *arrow.MapType:
		if w, ok := want.(*arrow.MapType); ok && canFitKeys(h, w) {
			return p.of(newTypeParts(h.ItemType(), w.ItemType()))
		}
	default:
		if mayBeNoText(have, want) {
			p.misfits, p.text = true, true
			return p
		}
		if CanFit(have, want) == nil {
			return p
		}
	}
	p.misfits, p.whole = true, true
	return p
}

func (p *typeParts) of(element *typeParts) *typeParts {
	p.element, p.misfits, p.strangers = element, element.misfits, element.strangers
	return p
}

func (p *typeParts) ofStruct(have, want *arrow.StructType) *typeParts {
	for _, f := range have.Fields() {
		p.names = append(p.names, f.Name)
		i := fieldNamed(want, f.Name)
		if i < 0 {
			p.fields = append(p.fields, nil)
			p.strangers = true
			continue
		}
		part := newTypeParts(f.Type, want.Field(i).Type)
		p.fields = append(p.fields, part)
		p.misfits, p.strangers = p.misfits || part.misfits, p.strangers || part.strangers
	}
	return p
}

// rest appends the JSON of what has no place of value i of a: of a STRUCT the fields in
// question, of an ARRAY or MAP all of it.
func (p *typeParts) rest(dst []byte, a arrow.Array, i int) ([]byte, partsFound) {
	switch {
	case !p.misfits && !p.strangers || columnar.IsNull(a, i):
		return dst, foundNothing
	case p.text && isText(a, i):
		return dst, foundNothing
	case p.whole || p.text:
		return columnar.AppendJSON(dst, a, i), foundMisfit
	case p.element == nil:
		return p.restOfStruct(dst, a.(*array.Struct), i)
	}
	var from, to int64
	var elements arrow.Array
	switch l := a.(type) {
	case *array.Map:
		from, to = l.ValueOffsets(i)
		elements = l.Items()
	case *array.List:
		from, to = l.ValueOffsets(i)
		elements = l.ListValues()
	}
	found := foundNothing
	for k := from; k < to; k++ {
		_, more := p.element.rest(dst, elements, int(k))
		found |= more
	}
	if found != foundNothing {
		dst = columnar.AppendJSON(dst, a, i)
	}
	return dst, found
}

// isText says whether value i of a BINARY column is a text.
func isText(a arrow.Array, i int) bool {
	b, ok := a.(*array.Binary)
	return ok && utf8.Valid(b.Value(i))
}

func (p *typeParts) restOfStruct(dst []byte, s *array.Struct, i int) ([]byte, partsFound) {
	found := foundNothing
	begin := len(dst)
	for k, part := range p.fields {
		back := len(dst)
		dst = append(dst, "{,"[min(found, 1)])
		dst = columnar.AppendJSONString(dst, p.names[k])
		dst = append(dst, ':')
		more := foundNothing
		switch field := s.Field(k); {
		case part != nil:
			dst, more = part.rest(dst, field, i)
		case !columnar.IsNull(field, i):
			dst, more = columnar.AppendJSON(dst, field, i), foundStranger
		}
		if more == foundNothing {
			dst = dst[:back]
		}
		found |= more
	}
	if found == foundNothing {
		return dst[:begin], found
	}
	return append(dst, '}'), found
}
