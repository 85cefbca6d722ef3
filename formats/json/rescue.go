package json

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
)

// rescue adds what the columns do not take of each record of the chunk to the rescued
// column.
func (r *reader) rescue() {
	odd := make([]bool, len(r.start))
	for _, row := range r.odd {
		odd[row] = true
	}
	dropped := make([]bool, len(r.start))
	for _, p := range r.problems {
		odd[p.row] = p.node != nil
		dropped[p.row] = r.opts.Mode == codec.Drop
	}
	left := &leftover{scanner: &r.rec.scanner, root: r.root, isElsewhere: r.columns.IsElsewhere}
	for i, p := range r.start {
		if dropped[i] {
			continue
		}
		if odd[i] {
			r.rec.depth = 0
			left.unplaced(r.root, p, func(key string, rest []byte) {
				r.rescued.Add(key, func(dst []byte) []byte { return append(dst, rest...) })
			})
		}
		r.rescued.Append(r.rescued.Row())
	}
}

// leftover finds what the nodes of a tree do not take of a text that was scanned before.
type leftover struct {
	*scanner
	root        *node
	isElsewhere func(name string) bool // of members of the root: they are no columns of the text
}

// member is one of an object.
type member struct {
	name     string
	from, to int // its value
}

// membersAt are the members of the object at p; of a doubled key the last.
func (l *leftover) membersAt(p int) []member {
	var list []member
	l.members(p, func(from, to, p int) (int, bool) {
		end, ok := l.skip(p)
		name, plain := jsonRules.AppendText(nil, l.buf, keyCell(l.buf, from, to, true))
		if !plain {
			name = l.buf[from:to]
		}
		m := member{string(name), p, end}
		if i := slices.IndexFunc(list, func(o member) bool { return o.name == m.name }); i >= 0 {
			list[i] = m
		} else {
			list = append(list, m)
		}
		return end, ok
	})
	return list
}

// unplaced calls found with the JSON of what the children of n do not take of each member
// of the object at p.
func (l *leftover) unplaced(n *node, p int, found func(key string, rest []byte)) {
	for _, m := range l.membersAt(p) {
		k, known := n.index[m.name]
		var rest []byte
		switch {
		case l.buf[m.from] == 'n': // null, wherever it belongs
		case !known && !(n == l.root && l.isElsewhere(m.name)):
			rest = l.raw(m.from, m.to)
		case known && n.keys[k].node != nil:
			rest = l.rest(n.keys[k].node, m.from, m.to)
		}
		if rest != nil {
			found(m.name, rest)
		}
	}
}

// raw is the text of a value.
func (l *leftover) raw(from, to int) []byte {
	text := l.buf[from:to]
	if !utf8.Valid(text) {
		return bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	return text
}

// rest is the JSON of what n does not take of the value [from, to): of an object the
// members in question, of a list or map all of it, nil if n takes all.
func (l *leftover) rest(n *node, from, to int) []byte {
	switch c := l.buf[from]; {
	case c == 'n':
		return nil
	case n.kind == leaf:
		if cell, _, _ := l.cell(from); n.takes(l.buf, cell) {
			return nil
		}
	case n.kind == object && c == '{':
		return l.restOfObject(n, from)
	case n.kind == list && c == '[':
		whole := true
		l.elements(from, func(p int) (int, bool) {
			end, ok := l.skip(p)
			whole = whole && l.rest(n.children[0], p, end) == nil
			return end, ok
		})
		if whole {
			return nil
		}
	case n.kind == mapping && c == '{' && l.mapTakes(n, from):
		return nil
	}
	return l.raw(from, to)
}

func (l *leftover) restOfObject(n *node, p int) []byte {
	var out []byte
	l.unplaced(n, p, func(key string, rest []byte) {
		out = append(out, "{,"[min(len(out), 1)])
		out = append(columnar.AppendJSONString(out, key), ':')
		out = append(out, rest...)
	})
	if out == nil {
		return nil
	}
	return append(out, '}')
}

// mapTakes says whether a map takes all of the object at p.
func (l *leftover) mapTakes(n *node, p int) bool {
	keys := n.children[0]
	quoted := standsInQuotes(keys.dt)
	takes := true
	seen := map[string]bool{} // of a text that is there twice the last value counts
	var all []cells.Cell
	l.members(p, func(from, to, p int) (int, bool) {
		end, ok := l.skip(p)
		key := keyCell(l.buf, from, to, quoted)
		if text, _ := jsonRules.AppendText(nil, l.buf, key); !seen[string(text)] {
			seen[string(text)] = true
			all = append(all, key)
		}
		takes = takes && keys.takes(l.buf, key) && l.rest(n.children[1], p, end) == nil
		return end, ok
	})
	return takes && keys.distinct(l.buf, all)
}

// takes says whether a cell is a value of a leaf.
func (n *node) takes(buf []byte, cell cells.Cell) bool {
	bad := n.probe.Append(buf, []cells.Cell{cell})
	n.probe.Truncate(0)
	return len(bad) == 0
}
