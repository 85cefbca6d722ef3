package json

import (
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

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
	for i, p := range r.start {
		if dropped[i] {
			continue
		}
		if odd[i] {
			r.rec.depth = 0
			r.unplaced(r.root, p, func(key string, rest []byte) {
				r.rescued.Add(key, func(dst []byte) []byte { return append(dst, rest...) })
			})
		}
		r.rescued.Append(r.rescued.Row())
	}
}

// member is one of an object.
type member struct {
	name     string
	from, to int // its value
}

// membersAt are the members of the object at p; of a doubled key the last.
func (r *reader) membersAt(p int) []member {
	var list []member
	r.rec.members(p, func(from, to, p int) (int, bool) {
		end, ok := r.rec.skip(p)
		name, plain := jsonRules.AppendText(nil, r.rec.buf, keyCell(r.rec.buf, from, to, true))
		if !plain {
			name = r.rec.buf[from:to]
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
func (r *reader) unplaced(n *node, p int, found func(key string, rest []byte)) {
	for _, m := range r.membersAt(p) {
		k, known := n.index[m.name]
		var rest []byte
		switch {
		case r.rec.buf[m.from] == 'n': // null, wherever it belongs
		case !known && !(n == r.root && r.columns.IsElsewhere(m.name)):
			rest = r.raw(m.from, m.to)
		case known && n.keys[k].node != nil:
			rest = r.rest(n.keys[k].node, m.from, m.to)
		}
		if rest != nil {
			found(m.name, rest)
		}
	}
}

// raw is the text of a value.
func (r *reader) raw(from, to int) []byte {
	text := r.rec.buf[from:to]
	if !utf8.Valid(text) {
		text = slices.Clone(text)
		plainText(text)
	}
	return text
}

// rest is the JSON of what n does not take of the value [from, to): of an object the
// members in question, of a list or map all of it, nil if n takes all.
func (r *reader) rest(n *node, from, to int) []byte {
	switch c := r.rec.buf[from]; {
	case c == 'n':
		return nil
	case n.kind == leaf:
		if cell, _, _ := r.rec.cell(from); n.takes(r.rec.buf, cell) {
			return nil
		}
	case n.kind == object && c == '{':
		return r.restOfObject(n, from)
	case n.kind == list && c == '[':
		whole := true
		r.rec.elements(from, func(p int) (int, bool) {
			end, ok := r.rec.skip(p)
			whole = whole && r.rest(n.children[0], p, end) == nil
			return end, ok
		})
		if whole {
			return nil
		}
	case n.kind == mapping && c == '{' && r.mapTakes(n, from):
		return nil
	}
	return r.raw(from, to)
}

func (r *reader) restOfObject(n *node, p int) []byte {
	var out []byte
	r.unplaced(n, p, func(key string, rest []byte) {
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
func (r *reader) mapTakes(n *node, p int) bool {
	keys := n.children[0]
	text := keys.dt.ID() == arrow.STRING
	takes := true
	r.rec.members(p, func(from, to, p int) (int, bool) {
		end, ok := r.rec.skip(p)
		takes = takes && keys.takes(r.rec.buf, keyCell(r.rec.buf, from, to, text)) && r.rest(n.children[1], p, end) == nil
		return end, ok
	})
	return takes
}

// takes says whether a cell is a value of a leaf.
func (n *node) takes(buf []byte, cell cells.Cell) bool {
	bad := n.probe.Append(buf, []cells.Cell{cell})
	n.probe.Truncate(0)
	return len(bad) == 0
}
