package csv

import (
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
)

// rest is what of a file's records no column takes.
type rest struct {
	column  *codec.Rescued
	unknown []field  // of the header, that are no columns
	misfits []misfit // of the chunk
	longer  []int32  // records of the chunk that have fields behind those of the columns
}

// field is one of the header, with the slot of its cells.
type field struct {
	name string
	slot int
}

// misfit is a cell that is no value of its column.
type misfit struct {
	row int32
	t   *target
}

// newRest gives the fields that are no columns a slot behind those of the targets.
func (r *reader) newRest(l *layout, slots []int) *rest {
	x := &rest{column: codec.NewRescued(r.req.Mem, r.file.Path)}
	for _, f := range r.unknown(l) {
		slots[f] = len(r.targets) + len(x.unknown)
		x.unknown = append(x.unknown, field{l.names[f], slots[f]})
	}
	return x
}

// fields is how many slots it has.
func (x *rest) fields() int {
	if x == nil {
		return 0
	}
	return len(x.unknown)
}

// add notes a cell of the chunk that is no value of its column.
func (x *rest) add(row int32, t *target) { x.misfits = append(x.misfits, misfit{row, t}) }

// fill adds the records of the chunk to the rescued column.
func (x *rest) fill(r *reader, buf []byte) {
	dropped := make([]bool, r.s.rows)
	for _, p := range r.s.problems {
		dropped[p.row] = r.opts.Mode == codec.Drop
	}
	of := make([][]*target, r.s.rows)
	for _, m := range x.misfits {
		of[m.row] = append(of[m.row], m.t)
	}
	longer := make([]bool, r.s.rows)
	for _, row := range x.longer {
		longer[row] = true
	}
	x.misfits, x.longer = x.misfits[:0], x.longer[:0]
	var text []byte
	for i := range r.s.rows {
		if dropped[i] {
			continue
		}
		add := func(name string, cell cells.Cell) {
			text, _ = r.rules.AppendText(text[:0], buf, cell)
			x.column.AddText(name, text)
		}
		for _, t := range of[i] {
			if c, ok := t.column.(*nested); ok {
				c.rescue(x.column, t.name, buf, r.s.slot(t.slot)[i])
			} else {
				add(t.name, r.s.slot(t.slot)[i])
			}
		}
		for _, f := range x.unknown {
			if cell := r.s.slot(f.slot)[i]; !r.isNull(buf, cell) {
				add(f.name, cell)
			}
		}
		if longer[i] {
			for f, cell := range r.s.fieldsOf(i) {
				if f >= r.s.fields && !r.isNull(buf, cell) {
					add(numberedName(f), cell)
				}
			}
		}
		x.column.Append(x.column.Row())
	}
}

// isNull says whether a cell is null in a VARCHAR column.
func (r *reader) isNull(buf []byte, c cells.Cell) bool {
	if c == cells.Absent {
		return true
	}
	from, to := c.Span()
	return !c.IsQuoted() && string(buf[from:to]) == r.opts.NullValue
}
