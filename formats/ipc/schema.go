package ipc

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// layout is how the values of a field are laid out in buffers.
type layout uint8

const (
	layoutNull          layout = iota // no buffers
	layoutBool                        // validity, bits
	layoutFixed                       // validity, values
	layoutBinary                      // validity, 32-bit offsets, bytes
	layoutLargeBinary                 // validity, 64-bit offsets, bytes
	layoutView                        // validity, views, any number of buffers of bytes
	layoutBytes                       // validity, values of one width that are bytes
	layoutList                        // validity, 32-bit offsets; child
	layoutLargeList                   // validity, 64-bit offsets; child
	layoutListView                    // validity, 32-bit offsets, 32-bit sizes; child
	layoutLargeListView               // the same in 64 bits
	layoutFixedList                   // validity; child
	layoutStruct                      // validity; children
	layoutMap                         // as list, of structs of key and value
	layoutUnion                       // types and perhaps offsets; children
	layoutRunEnds                     // no buffers; children run ends and values
)

// buffers is how many buffers a layout has, those of views that vary not counted.
var layoutBuffers = [...]int{
	layoutNull: 0, layoutBool: 2, layoutFixed: 2, layoutBinary: 3, layoutLargeBinary: 3, layoutView: 2, layoutBytes: 2,
	layoutList: 2, layoutLargeList: 2, layoutListView: 3, layoutLargeListView: 3, layoutFixedList: 1, layoutStruct: 1,
	layoutMap: 2, layoutUnion: 1, layoutRunEnds: 0,
}

// field is a column of a file, or a part of a nested one.
type field struct {
	name     string
	layout   layout
	width    int            // bytes of a value of layoutFixed and layoutBytes; elements of a fixed list
	dense    bool           // of a union
	convert  conversion     // from the values of layoutFixed
	typ      arrow.DataType // what it is in the engine; nil if it is nothing there
	why      string         // then: what it is
	children []*field
	dict     *dictionary // of a field that is dictionary-encoded
}

// dictionary says how a field is encoded: its batches hold indexes of type index into
// the dictionary of an id, whose values are laid out as the field says.
type dictionary struct {
	id    int64
	index *field
}

// Numbers of the union Type.
const (
	typeNull = iota + 1
	typeInt
	typeFloat
	typeBinary
	typeUtf8
	typeBool
	typeDecimal
	typeDate
	typeTime
	typeTimestamp
	typeInterval
	typeList
	typeStruct
	typeUnion
	typeFixedSizeBinary
	typeFixedSizeList
	typeMap
	typeDuration
	typeLargeBinary
	typeLargeUtf8
	typeLargeList
	typeRunEndEncoded
	typeBinaryView
	typeUtf8View
	typeListView
	typeLargeListView
)

// maxDepth bounds nesting.
const maxDepth = 64

// readSchema reads the fields of a schema.
func readSchema(t table) ([]*field, error) {
	if t.i16(0, 0) != 0 {
		return nil, fmt.Errorf("it is big-endian; write it again on a little-endian machine")
	}
	list := t.vector(1, 4)
	fields := make([]*field, list.n)
	for i := range fields {
		var err error
		if fields[i], err = readField(list.table(i), maxDepth); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func readField(t table, depth int) (*field, error) {
	if depth == 0 || t.f.err != nil {
		return nil, errMetadata
	}
	f := &field{name: t.text(0)}
	children := t.vector(5, 4)
	for i := range children.n {
		c, err := readField(children.table(i), depth-1)
		if err != nil {
			return nil, err
		}
		f.children = append(f.children, c)
	}
	if err := f.setType(t.u8(2), t.table(3)); err != nil {
		return nil, fmt.Errorf("column %s: %w", f.name, err)
	}
	if d := t.table(4); d.exists() {
		width, signed := 32, true
		if i := d.table(1); i.exists() {
			width, signed = i.i32(0, 0), i.u8(1) != 0
		}
		f.dict = &dictionary{id: d.i64(0), index: &field{}}
		err := f.dict.index.setInt(width, signed)
		if err == nil && f.dict.index.typ == nil {
			err = errMetadata
		}
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.name, err)
		}
	}
	return f, t.f.err
}

// setType finds layout and engine type of a field whose children are known.
func (f *field) setType(number int, t table) error {
	switch number {
	case typeNull:
		f.layout, f.typ = layoutNull, columnar.Null
	case typeInt:
		return f.setInt(t.i32(0, 0), t.u8(1) != 0)
	case typeFloat:
		return f.setFloat(t.i16(0, 0))
	case typeBool:
		f.layout, f.typ = layoutBool, columnar.Boolean
	case typeBinary:
		f.layout, f.typ = layoutBinary, columnar.Binary
	case typeUtf8:
		f.layout, f.typ = layoutBinary, columnar.String
	case typeLargeBinary:
		f.layout, f.typ = layoutLargeBinary, columnar.Binary
	case typeLargeUtf8:
		f.layout, f.typ = layoutLargeBinary, columnar.String
	case typeBinaryView:
		f.layout, f.typ = layoutView, columnar.Binary
	case typeUtf8View:
		f.layout, f.typ = layoutView, columnar.String
	case typeFixedSizeBinary:
		f.layout, f.width, f.typ = layoutBytes, t.i32(0, 0), columnar.Binary
		if f.width < 0 {
			return errMetadata
		}
	case typeDecimal, typeDate, typeTime, typeTimestamp, typeInterval, typeDuration:
		return f.setTemporal(number, t)
	default:
		return f.setNested(number, t)
	}
	return nil
}

func (f *field) setNested(number int, t table) error {
	wanted := 1
	switch number {
	case typeList:
		f.layout = layoutList
	case typeLargeList:
		f.layout = layoutLargeList
	case typeListView:
		f.layout = layoutListView
	case typeLargeListView:
		f.layout = layoutLargeListView
	case typeFixedSizeList:
		f.layout, f.width = layoutFixedList, t.i32(0, 0)
		if f.width < 0 {
			return errMetadata
		}
	case typeMap:
		return f.setMap()
	case typeStruct:
		f.setStruct()
		return nil
	case typeUnion:
		f.layout, f.dense, f.why = layoutUnion, t.i16(0, 0) == 1, "it is a union"
		return nil
	case typeRunEndEncoded:
		f.layout, wanted = layoutRunEnds, 2
	default:
		return fmt.Errorf("its type has number %d, which is not known", number)
	}
	if len(f.children) != wanted {
		return errMetadata
	}
	last := f.children[wanted-1]
	switch {
	case last.typ == nil:
		f.why = last.why
	case number == typeRunEndEncoded:
		f.typ = last.typ
	default:
		f.typ = columnar.ListOf(last.typ)
	}
	return nil
}

func (f *field) setMap() error {
	f.layout = layoutMap
	if len(f.children) != 1 || f.children[0].layout != layoutStruct || f.children[0].dict != nil || len(f.children[0].children) != 2 {
		return errMetadata
	}
	entries := f.children[0]
	if entries.typ == nil {
		f.why = entries.why
		return nil
	}
	f.typ = arrow.MapOf(entries.children[0].typ, entries.children[1].typ)
	return nil
}

func (f *field) setStruct() {
	f.layout = layoutStruct
	fields := make([]arrow.Field, len(f.children))
	for i, c := range f.children {
		if c.typ == nil {
			f.why = c.why
			return
		}
		fields[i] = columnar.Field(c.name, c.typ)
	}
	f.typ = arrow.StructOf(fields...)
}

// engineSchema is the columns that mean something in the engine; others is the first
// that does not.
func engineSchema(fields []*field) (s *arrow.Schema, other *field) {
	var list []arrow.Field
	for _, f := range fields {
		if f.typ == nil {
			if other == nil {
				other = f
			}
			continue
		}
		list = append(list, columnar.Field(f.name, f.typ))
	}
	return arrow.NewSchema(list, nil), other
}
