package json

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec/cells"
)

// Readable says whether JSON can be read as a value of dt.
func Readable(dt arrow.DataType) bool {
	switch t := dt.(type) {
	case *arrow.MapType:
		return cells.Readable(t.KeyType()) && Readable(t.ItemType())
	case *arrow.ListType:
		return Readable(t.Elem())
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if !Readable(f.Type) {
				return false
			}
		}
		return t.NumFields() > 0
	}
	return cells.Readable(dt)
}

type nodeKind uint8

const (
	leaf nodeKind = iota
	object
	list
	mapping
)

// What a row of a node that is not a leaf holds.
const (
	rowNull uint8 = iota
	rowValid
	rowBad   // a value of another kind: null, and counted
	rowTwice // a map that has a key twice: the same
)

// node is one column, or one part of a nested column, in two halves: the rows of the
// chunk being scanned, and the rows of the batch being filled.
//
//	{"a": 1, "b": [{"c": 2}, {"c": 3}]}    a leaf, b list ─ object ─ c leaf
//
//	rows of the chunk:  a 1 row, b 1 row (ends [2]), its object and c 2 rows
type node struct {
	kind   nodeKind
	dt     arrow.DataType
	name   string
	parent *node

	cells  []cells.Cell // of a leaf
	column *cells.Column
	probe  *cells.Column // of a leaf whose misfits are rescued: judges single values

	// bare: only keys that are not known matter. Nothing below fills a column.
	bare bool

	rows     []uint8 // of the others
	children []*node // of an object, by field; of a list its elements; of a map keys and values
	ends     []int32 // of a list or map: rows of the elements up to the end of each row
	keys     []key   // of an object
	index    map[string]int32
	admit    func(key string) bool // whether a key that is not known may be there; nil: any may
	keepsAll bool                  // admit is told of keys that can be no name, too
	filled   frame

	// What was in the batch at mark, and values of the wrong kind since.
	markedRows, markedNulls, wrong int
}

// key is a key seen in an object.
type key struct {
	quoted string // as it usually stands: "name":
	node   *node  // nil: nobody asked for it
	next   int32  // the key that followed last time
}

// Key 0 stands for the beginning of the object, and for keys that nobody asked for and
// that came when maxKeys were known.
const (
	noKey   = 0
	maxKeys = 4096
)

// newNode makes the tree for a type that is Readable; a bare one without rules.
func newNode(mem memory.Allocator, name string, dt arrow.DataType, rules *cells.Rules) (*node, error) {
	n := &node{dt: dt, name: name, bare: rules == nil}
	var err error
	switch t := dt.(type) {
	case *arrow.MapType:
		n.kind = mapping
		err = n.adopt(mem, rules, columnar.Field("key", t.KeyType()), columnar.Field("value", t.ItemType()))
	case *arrow.ListType:
		n.kind = list
		err = n.adopt(mem, rules, columnar.Field("element", t.Elem()))
	case *arrow.StructType:
		n.kind = object
		err = n.adopt(mem, rules, t.Fields()...)
		n.learn()
	default:
		n.kind = leaf
		if !n.bare {
			n.column, err = cells.NewColumn(mem, dt, rules)
		}
	}
	n.filled.mem = mem
	if err != nil {
		n.release()
		return nil, err
	}
	return n, nil
}

func (n *node) adopt(mem memory.Allocator, rules *cells.Rules, fields ...arrow.Field) error {
	for _, f := range fields {
		child, err := newNode(mem, f.Name, f.Type, rules)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		child.parent = n
		n.children = append(n.children, child)
	}
	return nil
}

// learn makes the keys of an object from its children.
func (n *node) learn() {
	n.keys = []key{{}}
	n.index = map[string]int32{}
	for _, c := range n.children {
		n.addKey(c.name, c)
	}
}

// addKey makes name known and expects it after the key added before it.
func (n *node) addKey(name string, target *node) int32 {
	k := int32(len(n.keys))
	n.keys[k-1].next = k
	n.keys = append(n.keys, key{quoted: string(columnar.AppendJSONString(nil, name)) + ":", node: target})
	n.index[name] = k
	return k
}

// len is the number of rows in the chunk.
func (n *node) len() int {
	if n.kind == leaf {
		return len(n.cells)
	}
	return len(n.rows)
}

// truncate drops the rows of the chunk from the given one on, also what is there of a
// row that was not finished.
func (n *node) truncate(rows int) {
	switch n.kind {
	case leaf:
		n.cells = n.cells[:min(rows, len(n.cells))]
		return
	case object:
		for _, c := range n.children {
			c.truncate(rows)
		}
	default:
		n.ends = n.ends[:min(rows, len(n.ends))]
		for _, c := range n.children {
			c.truncate(n.elements())
		}
	}
	n.rows = n.rows[:min(rows, len(n.rows))]
}

// elements is the number of rows of the elements of a list or map.
func (n *node) elements() int {
	if len(n.ends) == 0 {
		return 0
	}
	return int(n.ends[len(n.ends)-1])
}

// appendNothing adds a row without a value: null, or bad.
func (n *node) appendNothing(what uint8) {
	switch n.kind {
	case leaf:
		n.cells = append(n.cells, cells.Absent)
		return
	case object:
		row := len(n.rows)
		for _, c := range n.children {
			if c.len() == row {
				c.appendNothing(rowNull)
			}
		}
	default:
		n.ends = append(n.ends, int32(n.elements()))
	}
	n.rows = append(n.rows, what)
}

// value scans the value at p as the next row of n. When ok is false n may hold part
// of the row.
func (s *scanner) value(n *node, p int) (end int, ok bool) {
	if n.kind == leaf {
		cell, end, ok := s.cell(p)
		n.cells = append(n.cells, cell)
		return end, ok
	}
	switch c := s.buf[p]; {
	case c == '{' && n.kind == object:
		return s.object(n, p)
	case c == '[' && n.kind == list:
		elements := n.children[0]
		end, ok = s.elements(p, func(p int) (int, bool) { return s.value(elements, p) })
		n.ends = append(n.ends, int32(elements.len()))
		n.rows = append(n.rows, rowValid)
		return end, ok
	case c == '{' && n.kind == mapping:
		return s.mapping(n, p)
	case c == 'n':
		n.appendNothing(rowNull)
		return s.literal(p, "null")
	}
	n.appendNothing(rowBad)
	return s.skip(p)
}

// object scans the object at p as the next row of n.
func (s *scanner) object(n *node, p int) (end int, ok bool) {
	if !s.enter() {
		return p, false
	}
	row := len(n.rows)
	matched := 0
	k := n.keys[noKey].next
	previous := int32(noKey)
	p = s.blanks(p + 1)
	if s.buf[p] == '}' {
		goto done
	}
	for {
		quoted := n.keys[k].quoted
		if after := p + len(quoted); k != noKey && after <= s.hi && string(s.buf[p:after]) == quoted {
			p = after
		} else {
			if k, p, ok = s.findKey(n, p); !ok {
				return p, false
			}
			n.keys[previous].next = k
		}
		if s.buf[p] <= ' ' {
			p = s.blanks(p)
		}
		if child := n.keys[k].node; child == nil {
			p, ok = s.skip(p)
		} else if child.kind == leaf && len(child.cells) == row {
			cell := cells.Absent
			if s.buf[p] == '"' {
				cell, p, ok = s.quoted(p)
			} else {
				cell, p, ok = s.cell(p)
			}
			child.cells = append(child.cells, cell)
			matched++
		} else {
			if child.len() == row {
				matched++
			}
			child.truncate(row) // of a doubled key the last value counts
			p, ok = s.value(child, p)
		}
		if !ok {
			return p, false
		}
		if s.buf[p] <= ' ' {
			p = s.blanks(p)
		}
		switch s.buf[p] {
		case ',':
			p++
			if s.buf[p] <= ' ' {
				p = s.blanks(p)
			}
		case '}':
			goto done
		default:
			return p, false
		}
		previous, k = k, n.keys[k].next
	}
done:
	if matched < len(n.children) {
		for _, c := range n.children {
			if c.len() == row {
				c.appendNothing(rowNull)
			}
		}
	}
	n.rows = append(n.rows, rowValid)
	s.depth--
	return p + 1, true
}

// findKey reads the key at p and its colon.
func (s *scanner) findKey(n *node, p int) (k int32, end int, ok bool) {
	if s.buf[p] != '"' {
		return noKey, p, false
	}
	close, hasEscape, ok := s.text(p)
	if !ok {
		return noKey, close, false
	}
	from := p + 1
	name := s.buf[from:close]
	if p = s.blanks(close + 1); s.buf[p] != ':' {
		return noKey, p, false
	}
	if hasEscape {
		name, ok = jsonRules.AppendText(s.scratch[:0], s.buf, cells.Escaped(from, close))
		if s.scratch = name; !ok { // a lone surrogate names no column
			if n.keepsAll {
				n.admit(string(s.buf[from:close]))
			}
			return noKey, p + 1, true
		}
	}
	k, ok = n.index[string(name)]
	if !ok && (n.admit == nil || n.admit(string(name))) && len(n.keys) < maxKeys {
		k = n.addKey(string(name), nil)
	}
	return k, p + 1, true
}

var jsonRules = &cells.Rules{JSON: true}

// mapping scans the object at p as a row of a map.
func (s *scanner) mapping(n *node, p int) (end int, ok bool) {
	keys, values := n.children[0], n.children[1]
	from := keys.len()
	quoted := standsInQuotes(keys.dt)
	start := p
	end, ok = s.members(p, func(keyStart, keyEnd, p int) (int, bool) {
		keys.cells = append(keys.cells, keyCell(s.buf, keyStart, keyEnd, quoted))
		return s.value(values, p)
	})
	if ok && s.hasTwice(keys.cells[from:]) {
		s.lastOfEach(n, start, from)
	}
	n.ends = append(n.ends, int32(keys.len()))
	n.rows = append(n.rows, rowValid)
	return end, ok
}

// keyCell is the cell of a key, which stands in quotes whether or not a value of its type
// does.
func keyCell(buf []byte, start, end int, quoted bool) cells.Cell {
	for _, c := range buf[start:end] {
		if c == '\\' {
			return cells.Escaped(start, end)
		}
	}
	if !quoted {
		return cells.Plain(start, end)
	}
	return cells.Quoted(start, end)
}

// hasTwice says whether two keys are the same.
func (s *scanner) hasTwice(keys []cells.Cell) bool {
	if len(keys) < 2 {
		return false
	}
	seen := make(map[string]bool, len(keys))
	for _, c := range keys {
		s.scratch, _ = jsonRules.AppendText(s.scratch[:0], s.buf, c)
		if seen[string(s.scratch)] {
			return true
		}
		seen[string(s.scratch)] = true
	}
	return false
}

// lastOfEach scans the map at p again, from element row from on, and leaves out
// entries whose key comes again.
func (s *scanner) lastOfEach(n *node, p, from int) {
	keys, values := n.children[0], n.children[1]
	left := map[string]int{}
	for _, c := range keys.cells[from:] {
		text, _ := jsonRules.AppendText(nil, s.buf, c)
		left[string(text)]++
	}
	all := append([]cells.Cell(nil), keys.cells[from:]...)
	keys.truncate(from)
	values.truncate(from)
	i := -1
	s.members(p, func(_, _, p int) (int, bool) {
		i++
		text, _ := jsonRules.AppendText(nil, s.buf, all[i])
		if left[string(text)]--; left[string(text)] > 0 {
			return s.skip(p)
		}
		keys.cells = append(keys.cells, all[i])
		return s.value(values, p)
	})
}
