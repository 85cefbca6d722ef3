package parquet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tidemill/tidemill/columnar"
)

// nodeKind is what a node of the file's schema is read as.
type nodeKind uint8

const (
	leafNode nodeKind = iota
	structNode
	listNode
	mapNode
)

// node is one column or nested field of a file, in the engine's terms. The levels
// say how to read it from the (definition, repetition) pairs of the leaves below:
// a pair makes a slot of the node if it defines the elements of the nearest repeated
// node above (definition >= above, repetition <= aboveRep); the slot is not null if
// definition >= def.
//
//	optional group a (LIST) { repeated group list { optional int32 element } }
//	             kind  def  above  aboveRep  elemDef  elemRep
//	a            list    1      0         0        2        1
//	a.element    leaf    3      2         1
type node struct {
	name            string
	kind            nodeKind
	typ             arrow.DataType // nil if err is set
	def, rep        int
	above, aboveRep int
	elemDef         int     // lists and maps: from here on there is an element
	elemRep         int     // lists and maps: this repetition adds an element
	children        []*node // struct: fields; list: element; map: key, value
	// leaves
	leaf     int // number of the column chunk in its row group
	path     []string
	physical format.Type
	length   int // of FIXED_LEN_BYTE_ARRAY
	element  *format.SchemaElement
	signed   bool  // statistics are ordered as signed numbers
	err      error // why the column cannot be read
}

// firstLeaf is the first leaf at or below n.
func (n *node) firstLeaf() *node {
	for n.kind != leafNode {
		n = n.children[0]
	}
	return n
}

// raw is the tree of schema elements with their levels.
type raw struct {
	element  *format.SchemaElement
	children []*raw
	def, rep int
	leaf     int
	path     []string // of a leaf: its names from the top
}

const maxSchemaDepth = 100

// schemaBuilder walks the flattened schema.
type schemaBuilder struct {
	elements []format.SchemaElement
	at       int
	path     []string // of the element at hand
	leaves   []*node
	nleaves  int
	exact    bool // intervals are exact
}

// buildSchema turns the elements of a footer into nodes. leaves are in the order of
// the column chunks of a row group. exact says that intervals are as ExactIntervals has
// them.
func buildSchema(elements []format.SchemaElement, exact bool) (root *node, leaves []*node, err error) {
	if len(elements) == 0 {
		return nil, nil, errors.New("damaged Parquet file: it has no schema")
	}
	b := &schemaBuilder{elements: elements, exact: exact}
	top, err := b.parse(0, 0, 0)
	if err != nil {
		return nil, nil, err
	}
	if b.at != len(elements) || top.element.Type.Valid {
		return nil, nil, errors.New("damaged Parquet file: its schema is not a tree of columns")
	}
	b.leaves = make([]*node, b.nleaves)
	root = b.structure(top, 0, 0)
	return root, b.leaves, nil
}

// parse reads one element and what is below it.
func (b *schemaBuilder) parse(depth, def, rep int) (*raw, error) {
	if b.at >= len(b.elements) || depth > maxSchemaDepth {
		return nil, errors.New("damaged Parquet file: its schema is not a tree of columns")
	}
	e := &b.elements[b.at]
	b.at++
	if depth > 0 {
		switch repetition(e) {
		case format.Optional:
			def++
		case format.Repeated:
			def++
			rep++
		}
		b.path = append(b.path, e.Name)
		defer func() { b.path = b.path[:depth-1] }()
	}
	r := &raw{element: e, def: def, rep: rep}
	if e.Type.Valid {
		r.leaf, r.path = b.nleaves, slices.Clone(b.path)
		b.nleaves++
		return r, nil
	}
	for range e.NumChildren.V {
		c, err := b.parse(depth+1, def, rep)
		if err != nil {
			return nil, err
		}
		r.children = append(r.children, c)
	}
	return r, nil
}

func repetition(e *format.SchemaElement) format.FieldRepetitionType {
	if e.RepetitionType.Valid {
		return e.RepetitionType.V
	}
	return format.Required
}

// node builds the node of a field. A repeated field that no LIST or MAP stands
// around is a list of required elements.
func (b *schemaBuilder) node(r *raw, above, aboveRep int) *node {
	if repetition(r.element) != format.Repeated {
		return b.single(r, above, aboveRep)
	}
	n := &node{
		name: r.element.Name, kind: listNode, def: r.def - 1, rep: r.rep - 1,
		above: above, aboveRep: aboveRep, elemDef: r.def, elemRep: r.rep,
	}
	return n.listOf(b.single(r, r.def, r.rep))
}

// single builds the node of a field without regard to its being repeated.
func (b *schemaBuilder) single(r *raw, above, aboveRep int) *node {
	switch {
	case r.element.Type.Valid:
		n := &node{
			name: r.element.Name, kind: leafNode, def: r.def, rep: r.rep,
			above: above, aboveRep: aboveRep, leaf: r.leaf, path: r.path, element: r.element,
			physical: r.element.Type.V, length: int(r.element.TypeLength.V),
		}
		n.typ, n.signed, n.err = leafType(r.element)
		if b.exact && isExactInterval(r.element) {
			n.typ = columnar.Interval
		}
		b.leaves[r.leaf] = n
		return n
	case isList(r.element) && len(r.children) == 1 && repetition(r.children[0].element) == format.Repeated:
		return b.list(r, above, aboveRep)
	case isMap(r.element) && len(r.children) == 1 && repetition(r.children[0].element) == format.Repeated:
		switch len(r.children[0].children) {
		case 2:
			return b.maps(r, above, aboveRep)
		case 1:
			return b.list(r, above, aboveRep) // keys without values
		}
	}
	return b.structure(r, above, aboveRep)
}

func (b *schemaBuilder) structure(r *raw, above, aboveRep int) *node {
	n := &node{name: r.element.Name, kind: structNode, def: r.def, rep: r.rep, above: above, aboveRep: aboveRep}
	var fields []arrow.Field
	for _, c := range r.children {
		child := b.node(c, above, aboveRep)
		if child.kind == structNode && len(child.children) == 0 {
			continue // a group without fields holds nothing
		}
		n.children = append(n.children, child)
		if child.err != nil && n.err == nil {
			n.err = child.err
		}
		fields = append(fields, columnar.Field(child.name, child.typ))
	}
	if n.err == nil {
		n.typ = arrow.StructOf(fields...)
	}
	return n
}

// list applies the format's rules for lists of older writers: what is repeated is
// the element itself unless it is a group of exactly one field that is not repeated
// and whose name does not say otherwise.
func (b *schemaBuilder) list(r *raw, above, aboveRep int) *node {
	repeated := r.children[0]
	n := &node{
		name: r.element.Name, kind: listNode, def: r.def, rep: r.rep,
		above: above, aboveRep: aboveRep, elemDef: repeated.def, elemRep: repeated.rep,
	}
	threeLevel := !repeated.element.Type.Valid && len(repeated.children) == 1 &&
		repetition(repeated.children[0].element) != format.Repeated &&
		repeated.element.Name != "array" && repeated.element.Name != r.element.Name+"_tuple"
	if threeLevel {
		return n.listOf(b.single(repeated.children[0], repeated.def, repeated.rep))
	}
	return n.listOf(b.single(repeated, repeated.def, repeated.rep))
}

func (n *node) listOf(element *node) *node {
	n.children = []*node{element}
	if n.err = element.err; n.err == nil {
		n.typ = columnar.ListOf(element.typ)
	}
	if element.kind == structNode && len(element.children) == 0 {
		// Nothing below has levels, so the length of the list is unknown.
		return &node{name: n.name, kind: structNode}
	}
	return n
}

func (b *schemaBuilder) maps(r *raw, above, aboveRep int) *node {
	entries := r.children[0]
	n := &node{
		name: r.element.Name, kind: mapNode, def: r.def, rep: r.rep,
		above: above, aboveRep: aboveRep, elemDef: entries.def, elemRep: entries.rep,
	}
	key, value := b.node(entries.children[0], entries.def, entries.rep), b.node(entries.children[1], entries.def, entries.rep)
	n.children = []*node{key, value}
	switch {
	case key.err != nil:
		n.err = key.err
	case value.err != nil:
		n.err = value.err
	default:
		n.typ = arrow.MapOf(key.typ, value.typ)
	}
	for _, c := range n.children {
		if c.kind == structNode && len(c.children) == 0 {
			n.err = fmt.Errorf("%s of the map have no columns", c.name)
		}
	}
	return n
}

func isList(e *format.SchemaElement) bool {
	if _, ok := e.LogicalType.Value.(*format.ListType); ok {
		return true
	}
	return e.ConvertedType.Valid && e.ConvertedType.V == deprecated.List
}

func isMap(e *format.SchemaElement) bool {
	if _, ok := e.LogicalType.Value.(*format.MapType); ok {
		return true
	}
	return e.ConvertedType.Valid && (e.ConvertedType.V == deprecated.Map || e.ConvertedType.V == deprecated.MapKeyValue)
}

// find is the child called name: an exact match wins, then one without regard to
// case; nil if there is none.
func (n *node) find(name string) *node {
	var fold *node
	for _, c := range n.children {
		if c.name == name {
			return c
		}
		if fold == nil && strings.EqualFold(c.name, name) {
			fold = c
		}
	}
	return fold
}

// schema is the file's columns in the engine's types.
func (m *fileMeta) schema() (*arrow.Schema, error) {
	var fields []arrow.Field
	for _, c := range m.root.children {
		if c.err != nil {
			return nil, &recordColumnError{c.name, fmt.Errorf("%w; declare the columns you want", c.err)}
		}
		fields = append(fields, columnar.Field(c.name, c.typ))
	}
	return arrow.NewSchema(fields, nil), nil
}

// recordColumnError says which column cannot be read.
type recordColumnError struct {
	column string
	err    error
}

func (e *recordColumnError) Error() string { return "column " + e.column + ": " + e.err.Error() }
func (e *recordColumnError) Unwrap() error { return e.err }
