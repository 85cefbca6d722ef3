package parquet

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tidemill/tidemill/columnar"
)

// writeNode is a column or nested field of a file being written. Everything but the
// keys of maps is optional, lists have three levels.
type writeNode struct {
	typ      arrow.DataType
	children []*writeNode // struct: fields; list: element; map: key, value
	optional bool
	def, rep int // levels of a value that is there; of an element, for lists
	leaf     *leafWriter
}

// schemaWriter builds the schema elements and leaves of a file.
type schemaWriter struct {
	elements []format.SchemaElement
	leaves   []*leafWriter
	path     []string
	// exact asks for intervals of any sign in nanoseconds; some says that there are.
	exact, some bool
}

func element(name string, r format.FieldRepetitionType) format.SchemaElement {
	return format.SchemaElement{Name: name, RepetitionType: thrift.New(r)}
}

func (w *schemaWriter) root(s *arrow.Schema) ([]*writeNode, error) {
	w.elements = append(w.elements, format.SchemaElement{Name: "schema", NumChildren: thrift.New(int32(s.NumFields()))})
	var nodes []*writeNode
	for _, f := range s.Fields() {
		n, err := w.field(f.Name, f.Type, true, 0, 0)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// field adds a field below levels def and rep.
func (w *schemaWriter) field(name string, dt arrow.DataType, optional bool, def, rep int) (*writeNode, error) {
	w.path = append(w.path, name)
	defer func() { w.path = w.path[:len(w.path)-1] }()
	e := element(name, format.Required)
	if optional {
		e.RepetitionType = thrift.New(format.Optional)
		def++
	}
	n := &writeNode{typ: dt, optional: optional, def: def, rep: rep}
	switch t := dt.(type) {
	case *arrow.MapType:
		return n, w.maps(n, e, t)
	case *arrow.ListType:
		return n, w.list(n, e, t)
	case *arrow.StructType:
		return n, w.structure(n, e, t)
	case *arrow.DictionaryType:
		return nil, fmt.Errorf("bug: a schema with the dictionary type %s", dt)
	}
	if err := annotate(&e, dt); err != nil {
		return nil, err
	}
	if w.exact && dt.ID() == arrow.INTERVAL_MONTH_DAY_NANO {
		e = exactInterval(e)
		w.some = true
	}
	w.elements = append(w.elements, e)
	n.leaf = newLeafWriter(append([]string(nil), w.path...), dt, &e, def, rep)
	w.leaves = append(w.leaves, n.leaf)
	return n, nil
}

func (w *schemaWriter) structure(n *writeNode, e format.SchemaElement, t *arrow.StructType) error {
	if t.NumFields() == 0 {
		return fmt.Errorf("a STRUCT without fields cannot be written to Parquet")
	}
	e.NumChildren = thrift.New(int32(t.NumFields()))
	w.elements = append(w.elements, e)
	for _, f := range t.Fields() {
		c, err := w.field(f.Name, f.Type, true, n.def, n.rep)
		if err != nil {
			return err
		}
		n.children = append(n.children, c)
	}
	return nil
}

func (w *schemaWriter) list(n *writeNode, e format.SchemaElement, t *arrow.ListType) error {
	e.NumChildren = thrift.New(int32(1))
	e.ConvertedType = thrift.New(deprecated.List)
	e.LogicalType.Value = &format.ListType{}
	repeated := element("list", format.Repeated)
	repeated.NumChildren = thrift.New(int32(1))
	w.elements = append(w.elements, e, repeated)
	n.def++
	n.rep++
	w.path = append(w.path, "list")
	defer func() { w.path = w.path[:len(w.path)-1] }()
	c, err := w.field("element", t.Elem(), true, n.def, n.rep)
	n.children = []*writeNode{c}
	return err
}

func (w *schemaWriter) maps(n *writeNode, e format.SchemaElement, t *arrow.MapType) error {
	e.NumChildren = thrift.New(int32(1))
	e.ConvertedType = thrift.New(deprecated.Map)
	e.LogicalType.Value = &format.MapType{}
	repeated := element("key_value", format.Repeated)
	repeated.NumChildren = thrift.New(int32(2))
	w.elements = append(w.elements, e, repeated)
	n.def++
	n.rep++
	w.path = append(w.path, "key_value")
	defer func() { w.path = w.path[:len(w.path)-1] }()
	key, err := w.field("key", t.KeyType(), false, n.def, n.rep)
	if err != nil {
		return err
	}
	value, err := w.field("value", t.ItemType(), true, n.def, n.rep)
	n.children = []*writeNode{key, value}
	return err
}

// annotate fills in the physical and logical type of a leaf.
func annotate(e *format.SchemaElement, dt arrow.DataType) error {
	set := func(p format.Type, c deprecated.ConvertedType, l format.LogicalTypeValue) {
		e.Type = thrift.New(p)
		if c >= 0 {
			e.ConvertedType = thrift.New(c)
		}
		e.LogicalType.Value = l
	}
	micros := format.TimeUnit{Value: &format.MicroSeconds{}}
	const none = deprecated.ConvertedType(-1)
	switch t := dt.(type) {
	case *arrow.NullType:
		set(format.Int32, none, &format.NullType{})
	case *arrow.BooleanType:
		set(format.Boolean, none, nil)
	case *arrow.Int8Type:
		set(format.Int32, deprecated.Int8, &format.IntType{BitWidth: 8, IsSigned: true})
	case *arrow.Int16Type:
		set(format.Int32, deprecated.Int16, &format.IntType{BitWidth: 16, IsSigned: true})
	case *arrow.Int32Type:
		set(format.Int32, none, nil)
	case *arrow.Int64Type:
		set(format.Int64, none, nil)
	case *arrow.Float32Type:
		set(format.Float, none, nil)
	case *arrow.Float64Type:
		set(format.Double, none, nil)
	case *arrow.StringType:
		set(format.ByteArray, deprecated.UTF8, &format.StringType{})
	case *arrow.BinaryType:
		set(format.ByteArray, none, nil)
	case *arrow.Date32Type:
		set(format.Int32, deprecated.Date, &format.DateType{})
	case *arrow.Time64Type:
		set(format.Int64, none, &format.TimeType{Unit: micros})
	case *arrow.TimestampType:
		set(format.Int64, deprecated.TimestampMicros, &format.TimestampType{IsAdjustedToUTC: true, Unit: micros})
	case *arrow.MonthDayNanoIntervalType:
		set(format.FixedLenByteArray, deprecated.Interval, nil)
		e.TypeLength = thrift.New(int32(intervalLength))
	case *arrow.Decimal128Type:
		set(format.Int64, deprecated.Decimal, &format.DecimalType{Precision: t.Precision, Scale: t.Scale})
		e.Precision, e.Scale = thrift.New(t.Precision), thrift.New(t.Scale)
		if t.Precision > int64Digits {
			e.Type = thrift.New(format.FixedLenByteArray)
			e.TypeLength = thrift.New(int32(decimalBytes(t.Precision)))
		}
	default:
		return fmt.Errorf("%s cannot be written to Parquet", columnar.TypeName(dt))
	}
	if !columnar.Supported(dt) {
		return fmt.Errorf("%s cannot be written to Parquet", dt)
	}
	return nil
}

// int64Digits is the number of decimal digits every 64-bit number holds.
const int64Digits = 18

// decimalBytes is the least number of bytes that hold precision digits and a sign.
func decimalBytes(precision int32) int {
	// log2(10) is 3.3219…; one bit for the sign.
	return (int(precision)*33220/10000 + 1 + 1 + 7) / 8
}

// entries are the levels of one node for some rows, and where its values are:
// indices in its array, or -1 where something above is null or empty.
type entries struct {
	index    []int32
	def, rep []byte
}

// shred appends rows of a to the leaves below n.
func (n *writeNode) shred(a arrow.Array) error {
	if n.leaf != nil {
		return n.leaf.appendFlat(a)
	}
	e := &entries{index: make([]int32, a.Len()), def: make([]byte, a.Len()), rep: make([]byte, a.Len())}
	for i := range e.index {
		e.index[i] = int32(i)
	}
	return n.nested(a, e)
}

// nested appends the entries of a, whose levels are those of what is above.
func (n *writeNode) nested(a arrow.Array, e *entries) error {
	if n.leaf != nil {
		return n.leaf.appendEntries(a, e)
	}
	switch a := a.(type) {
	case *array.Struct:
		down := e.present(a, n.optional)
		for i, c := range n.children {
			if err := c.nested(a.Field(i), down); err != nil {
				return err
			}
		}
		return nil
	case *array.Map:
		down, from := e.elements(a, a.Offsets(), a.Data().Offset(), byte(n.rep))
		key := array.NewSlice(a.Keys(), from[0], from[1])
		defer key.Release()
		if key.NullN() > 0 {
			return fmt.Errorf("a key of a map is null")
		}
		value := array.NewSlice(a.Items(), from[0], from[1])
		defer value.Release()
		if err := n.children[0].nested(key, down); err != nil {
			return err
		}
		return n.children[1].nested(value, down)
	case *array.List:
		down, from := e.elements(a, a.Offsets(), a.Data().Offset(), byte(n.rep))
		element := array.NewSlice(a.ListValues(), from[0], from[1])
		defer element.Release()
		return n.children[0].nested(element, down)
	}
	return fmt.Errorf("bug: a column of type %s where %s was expected", a.DataType(), n.typ)
}

// present goes down into a struct: entries of null structs end here.
func (e *entries) present(a arrow.Array, optional bool) *entries {
	down := &entries{index: make([]int32, len(e.index)), def: append([]byte(nil), e.def...), rep: e.rep}
	for i, at := range e.index {
		switch {
		case at < 0 || a.IsNull(int(at)):
			down.index[i] = -1
		default:
			down.index[i] = at
			if optional {
				down.def[i]++
			}
		}
	}
	return down
}

// elements goes down into a list or map: each element is an entry, and so is each
// list that is null or empty. offsets are those of the whole array, a begins at shift.
// The indices of elements count from from[0].
func (e *entries) elements(a arrow.Array, offsets []int32, shift int, rep byte) (down *entries, from [2]int64) {
	down = &entries{}
	if a.Len() == 0 {
		offsets, shift = []int32{0}, 0
	}
	offsets = offsets[shift:]
	base := offsets[0]
	from = [2]int64{int64(base), int64(offsets[a.Len()])}
	for i, at := range e.index {
		def := e.def[i]
		if at < 0 || a.IsNull(int(at)) {
			down.add(-1, def, e.rep[i])
			continue
		}
		first, end := offsets[at], offsets[at+1]
		if first == end {
			down.add(-1, def+1, e.rep[i])
			continue
		}
		r := e.rep[i]
		for j := first; j < end; j++ {
			down.add(j-base, def+2, r)
			r = rep
		}
	}
	return down, from
}

func (e *entries) add(index int32, def, rep byte) {
	e.index = append(e.index, index)
	e.def = append(e.def, def)
	e.rep = append(e.rep, rep)
}
