package avro

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/avro"

	"github.com/tidemill/tidemill/columnar"
)

type kind uint8

// The types of Avro.
const (
	kindNull kind = iota
	kindBoolean
	kindInt
	kindLong
	kindFloat
	kindDouble
	kindBytes
	kindString
	kindEnum
	kindFixed
	kindArray
	kindMap
	kindRecord
	kindUnion
)

var kinds = map[string]kind{
	"null": kindNull, "boolean": kindBoolean, "int": kindInt, "long": kindLong, "float": kindFloat, "double": kindDouble,
	"bytes": kindBytes, "string": kindString, "enum": kindEnum, "fixed": kindFixed, "array": kindArray, "map": kindMap,
	"record": kindRecord, "error": kindRecord, "union": kindUnion,
}

// node is a type of a file's schema. Nodes of a recursive schema are circular.
type node struct {
	kind     kind
	word     string         // of the schema
	logical  string         // the logical type, "" where it has none that is known
	typ      arrow.DataType // what it is in the engine; nil if it is nothing there
	why      string         // then: what it is
	children []*node        // fields of a record, elements of an array, values of a map, branches of a union
	names    []string       // of fields
	symbols  []string       // of an enum
	size     int            // of a fixed
	// value and null are branches of a union that is one type or null; value is -1 of
	// another union, null is -1 where none is null.
	value, null int
	least       int // the fewest bytes a value takes
	weight      int // how many types it is made of
}

const (
	// maxDepth bounds nesting.
	maxDepth = 64
	// maxWeight bounds the types a column is made of: named types that are used more
	// than once multiply.
	maxWeight = 100_000
)

// readSchema reads the schema of a file, which must be that of a record.
func readSchema(text string) (root *node, err error) {
	defer func() {
		// The library takes what anyone wrote.
		if p := recover(); p != nil {
			root, err = nil, fmt.Errorf("it cannot be understood: %v", p)
		}
	}()
	// Any name will do: some writers give a record none.
	s, err := avro.Parse(text, avro.WithLaxNames(func(string) error { return nil }))
	if err != nil {
		return nil, err
	}
	r := schemaReader{named: map[string]*node{}}
	if root, err = r.node(s.Root(), "", maxDepth); err != nil {
		return nil, err
	}
	if root.kind != kindRecord {
		return nil, fmt.Errorf("it is one of %s, not of a record with fields", root.word)
	}
	return root, nil
}

// schemaReader makes nodes; named are those of the names it met.
type schemaReader struct{ named map[string]*node }

// node makes the node of a type that stands in a namespace.
func (r *schemaReader) node(s *avro.SchemaNode, namespace string, depth int) (*node, error) {
	if depth == 0 {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	k, ok := kinds[s.Type]
	if !ok {
		return r.reference(s.Type, namespace)
	}
	n := &node{kind: k, word: s.Type, value: -1, null: -1, weight: 1}
	if k == kindRecord || k == kindEnum || k == kindFixed {
		namespace = s.Namespace
		if i := strings.LastIndexByte(s.Name, '.'); i >= 0 {
			namespace = s.Name[:i]
		}
		r.named[fullName(s.Name, namespace)] = n
	}
	children, err := n.parts(s)
	if err != nil {
		return nil, err
	}
	// Until it is whole, whoever refers to it is a part of it.
	n.why = "it is recursive"
	for _, c := range children {
		child, err := r.node(c, namespace, depth-1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
		n.weight += child.weight
	}
	n.why = ""
	n.setType(s)
	if n.weight > maxWeight {
		n.typ, n.why, n.weight = nil, "it has too many fields", maxWeight
	}
	return n, nil
}

func fullName(name, namespace string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

func (r *schemaReader) reference(name, namespace string) (*node, error) {
	for _, full := range []string{fullName(name, namespace), name} {
		if n := r.named[full]; n != nil {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the type %s in it is not known", name)
}

// parts are the types that a type is made of.
func (n *node) parts(s *avro.SchemaNode) (list []*avro.SchemaNode, err error) {
	switch n.kind {
	case kindArray:
		list = append(list, s.Items)
	case kindMap:
		list = append(list, s.Values)
	case kindRecord:
		for i := range s.Fields {
			if s.Fields[i].Name == "" {
				return nil, fmt.Errorf("field %d of a record in it has no name", i+1)
			}
			list = append(list, &s.Fields[i].Type)
			n.names = append(n.names, s.Fields[i].Name)
		}
	case kindUnion:
		for i := range s.Branches {
			list = append(list, &s.Branches[i])
		}
	}
	for _, p := range list {
		if p == nil {
			return nil, fmt.Errorf("an %s in it is of nothing", n.word)
		}
	}
	return list, nil
}

// setType finds what a type is in the engine, once its parts are known.
func (n *node) setType(s *avro.SchemaNode) {
	n.least = 1
	switch n.kind {
	case kindNull:
		n.typ, n.least = columnar.Null, 0
	case kindBoolean:
		n.typ = columnar.Boolean
	case kindInt, kindLong:
		n.setNumber(s)
	case kindFloat:
		n.typ, n.least = columnar.Float32, 4
	case kindDouble:
		n.typ, n.least = columnar.Float64, 8
	case kindBytes, kindFixed:
		n.setBytes(s)
	case kindString:
		n.typ = columnar.String
	case kindEnum:
		n.typ, n.symbols = columnar.String, s.Symbols
	default:
		n.setNested()
	}
}

func (n *node) setNumber(s *avro.SchemaNode) {
	of := map[string]arrow.DataType{}
	if n.kind == kindInt {
		n.typ = columnar.Int32
		of["date"], of["time-millis"] = columnar.Date, columnar.Time
	} else {
		n.typ = columnar.Int64
		of["time-micros"] = columnar.Time
		for _, unit := range []string{"millis", "micros", "nanos"} {
			of["timestamp-"+unit], of["local-timestamp-"+unit] = columnar.Timestamp, columnar.Timestamp
		}
	}
	if t, ok := of[s.LogicalType]; ok {
		n.typ, n.logical = t, s.LogicalType
		return
	}
	for _, t := range []arrow.DataType{columnar.Int8, columnar.Int16} {
		if n.kind == kindInt && s.Props[narrowKey] == columnar.TypeName(t) {
			n.typ = t
		}
	}
}

const (
	uuidSize     = 16
	durationSize = 12
)

func (n *node) setBytes(s *avro.SchemaNode) {
	n.typ, n.size = columnar.Binary, s.Size
	if n.kind == kindFixed {
		n.least = s.Size
	}
	switch {
	case s.LogicalType == "decimal" && s.Precision > 0:
		n.logical = s.LogicalType
		if s.Precision > columnar.MaxPrecision || s.Scale < 0 || s.Scale > s.Precision {
			n.typ, n.why = nil, fmt.Sprintf("it is a decimal of %d digits, %d of them behind the point", s.Precision, s.Scale)
			return
		}
		n.typ = columnar.Decimal(int32(s.Precision), int32(s.Scale))
	case s.LogicalType == "uuid" && s.Size == uuidSize:
		n.logical, n.typ = s.LogicalType, columnar.String
	case s.LogicalType == "duration" && s.Size == durationSize:
		n.logical, n.typ = s.LogicalType, columnar.Interval
	}
}

func (n *node) setNested() {
	if n.kind == kindUnion {
		n.setUnion()
		return
	}
	if n.kind == kindRecord {
		n.least = 0
	}
	fields := make([]arrow.Field, len(n.children))
	for i, c := range n.children {
		if n.kind == kindRecord {
			n.least = min(n.least+c.least, maxBlock)
			fields[i] = columnar.Field(n.names[i], c.typ)
		}
		if c.typ == nil && n.why == "" {
			n.why = c.why
		}
	}
	switch {
	case n.why != "":
	case n.kind == kindRecord:
		n.typ = arrow.StructOf(fields...)
	case n.kind == kindArray:
		n.typ = columnar.ListOf(n.children[0].typ)
	case n.kind == kindMap:
		n.typ = arrow.MapOf(columnar.String, n.children[0].typ)
	}
}

// setUnion finds the one type that a union is, or null.
func (n *node) setUnion() {
	var words []string
	for i, c := range n.children {
		words = append(words, c.word)
		if c.kind == kindNull {
			n.null = i
		} else {
			n.value = i
		}
	}
	switch {
	case n.value < 0 && n.null >= 0:
		n.value, n.null = n.null, -1
	case len(words) > 2 || len(words) == 2 && n.null < 0 || len(words) == 0:
		n.value, n.why = -1, "it is a union of "+strings.Join(words, ", ")
		return
	}
	v := n.children[n.value]
	n.typ, n.why = v.typ, v.why
}

// engineSchema is the columns that mean something in the engine; other is the place of
// the first that does not, -1 if there is none.
func engineSchema(root *node) (s *arrow.Schema, other int) {
	var list []arrow.Field
	other = -1
	for i, c := range root.children {
		switch {
		case c.typ != nil:
			list = append(list, columnar.Field(root.names[i], c.typ))
		case other < 0:
			other = i
		}
	}
	return arrow.NewSchema(list, nil), other
}

// maxSkipDepth bounds how deep a recursive value that is skipped may be.
const maxSkipDepth = 10_000

// skip moves the cursor behind a value.
func (n *node) skip(c *cursor) {
	switch n.kind {
	case kindBoolean:
		c.next(1)
	case kindInt, kindLong, kindEnum:
		c.long()
	case kindFloat:
		c.next(4)
	case kindDouble:
		c.next(8)
	case kindBytes, kindString:
		c.bytes()
	case kindFixed:
		c.next(n.size)
	case kindUnion:
		i := c.long()
		if i < 0 || i >= int64(len(n.children)) {
			c.fail(errBranch)
			return
		}
		n.children[i].skip(c)
	case kindRecord:
		n.skipFields(c)
	case kindArray, kindMap:
		n.skipElements(c)
	}
}

// skipFields skips a record; types that contain themselves do so through one.
func (n *node) skipFields(c *cursor) {
	if c.depth++; c.depth > maxSkipDepth {
		c.fail(fmt.Errorf("it is nested more than %d deep", maxSkipDepth))
	}
	for _, f := range n.children {
		if c.err != nil {
			break
		}
		f.skip(c)
	}
	c.depth--
}

// skipElements skips an array or a map, by the sizes of its parts where the file has them.
func (n *node) skipElements(c *cursor) {
	item := n.children[0]
	least := item.least
	if n.kind == kindMap {
		least++
	}
	for c.err == nil {
		count, size := c.elements(least)
		if count == 0 {
			return
		}
		if size >= 0 {
			c.next(int(size))
			continue
		}
		for range count {
			if n.kind == kindMap {
				c.bytes()
			}
			if item.skip(c); c.err != nil {
				return
			}
		}
	}
}
