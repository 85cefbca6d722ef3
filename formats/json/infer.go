package json

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
)

// The sample that columns are inferred from.
const (
	sampleRecords = 20480
	sampleFiles   = 16
)

// shape is what values in one place of the records have looked like.
type shape struct {
	kinds  cells.Kinds // of numbers, booleans and texts
	fields []*field    // of objects, in order of appearance
	index  map[string]int
	elem   *shape // of arrays
	isObj  bool
}

type field struct {
	name string
	shape
}

// Infer finds the columns from a sample of files: one for each key seen.
func (f *format) Infer(ctx context.Context, files []codec.File) (codec.Inferred, bool, error) {
	root := &shape{}
	left, sampled := sampleRecords, 0
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return codec.Inferred{}, false, err
		}
		if sampled == sampleFiles || left == 0 {
			break
		}
		if file.Size == 0 {
			continue
		}
		n, err := f.sample(file, root, left)
		if err != nil {
			return codec.Inferred{}, false, err
		}
		// A file without records, or of empty ones, must not take the place of one that tells.
		if n > 0 && len(root.fields) > 0 {
			sampled++
		}
		left -= n
	}
	if len(root.fields) == 0 {
		return codec.Inferred{}, false, nil
	}
	return codec.Inferred{Schema: root.schema(columnar.String), Seen: root.schema(arrow.Null)}, true, nil
}

// sample adds up to most records of one file to root. What is no record counts, too,
// but says nothing.
func (f *format) sample(file codec.File, root *shape, most int) (n int, err error) {
	file.Hash = nil
	whole := codec.Range{End: file.Size}
	in, err := codec.OpenInput(codec.InputSpec{File: file, Range: whole, Compression: f.opts.Compression,
		Encoding: f.opts.Encoding, Mode: f.opts.Mode})
	if err != nil {
		return 0, err
	}
	defer in.Close()
	r, err := newRecords(in, f.opts.Multiline, whole)
	if err != nil {
		return 0, err
	}
	for n < most {
		p, isBad, err := r.next(false)
		if err != nil || p < 0 {
			return n, err
		}
		end, ok := p, false
		if !isBad {
			end, ok = r.skip(p) // first, so that half a record says nothing
		}
		switch {
		case !isBad && r.unfinished(end):
			if err := r.more(p); err != nil {
				return n, err
			}
			continue
		case !ok:
			r.broken(p)
		default:
			if r.buf[p] == '{' {
				f.look(&r.scanner, root, p)
			}
			r.took(end)
		}
		n++
	}
	return n, nil
}

// look adds the value at p, which is well-formed, to s.
func (f *format) look(r *scanner, s *shape, p int) (end int, ok bool) {
	switch r.buf[p] {
	case '{':
		s.isObj = true
		return r.members(p, func(from, to, p int) (int, bool) {
			name, ok := jsonRules.AppendText(nil, r.buf, keyCell(r.buf, from, to, true))
			if !ok {
				return r.skip(p)
			}
			return f.look(r, s.field(string(name)), p)
		})
	case '[':
		if s.elem == nil {
			s.elem = &shape{}
		}
		return r.elements(p, func(p int) (int, bool) { return f.look(r, s.elem, p) })
	}
	cell, end, ok := r.scalar(p)
	from, to := cell.Span()
	switch {
	case cell == cells.Absent:
	case r.buf[p] == 't' || r.buf[p] == 'f':
		s.kinds.Add(cells.Boolean)
	case !cell.IsQuoted():
		s.kinds.Add(f.rules.Classify(r.buf[from:to]))
	default:
		s.kinds.Add(f.classifyText(r.buf[from:to]))
	}
	return end, ok
}

// classifyText says what a text is: a date, a timestamp, or a text. Numbers in quotes
// were put there on purpose.
func (f *format) classifyText(text []byte) cells.Kind {
	if k := f.rules.Classify(text); k == cells.Date || k == cells.Timestamp {
		return k
	}
	return cells.Text
}

func (s *shape) field(name string) *shape {
	if i, ok := s.index[name]; ok {
		return &s.fields[i].shape
	}
	if s.index == nil {
		s.index = map[string]int{}
	}
	s.index[name] = len(s.fields)
	s.fields = append(s.fields, &field{name: name})
	return &s.fields[len(s.fields)-1].shape
}

// schema is the columns of the records seen; without is the type of what had no value.
func (s *shape) schema(without arrow.DataType) *arrow.Schema {
	return columnar.NewSchema(s.typed(without)...)
}

func (s *shape) typed(without arrow.DataType) []arrow.Field {
	fields := make([]arrow.Field, len(s.fields))
	for i, f := range s.fields {
		fields[i] = columnar.Field(f.name, f.dataType(without))
	}
	return fields
}

// dataType is the type that holds all values seen; VARCHAR, as JSON text, where their
// kinds conflict.
func (s *shape) dataType(without arrow.DataType) arrow.DataType {
	switch {
	case s.isObj && s.elem == nil && s.kinds.Empty() && len(s.fields) > 0:
		return arrow.StructOf(s.typed(without)...)
	case s.elem != nil && !s.isObj && s.kinds.Empty():
		return columnar.ListOf(s.elem.dataType(without))
	case s.elem == nil && !s.isObj && s.kinds.Empty():
		return without
	case s.elem == nil && !s.isObj:
		return s.kinds.Type()
	}
	return columnar.String
}
