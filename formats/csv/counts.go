package csv

import (
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
)

// Without a header the number of fields tells which columns a file has.

// mayDiffer says whether a file without a header may have more columns than the source, or
// fewer, and its records be whole.
func (sc *scan) mayDiffer() bool {
	return sc.columns.Evolution == codec.EvolveRescue || !sc.columns.Declared && sc.columns.Evolution != codec.EvolveFail
}

// settleCounts judges the records of the chunk that have another number of fields than the
// source has columns.
func (r *reader) settleCounts() {
	left := r.s.problems[:0]
	longer := 0
	for _, p := range r.s.problems {
		switch {
		case p.what == tooMany:
			longer++
			if e := r.columns.Evolution; r.mayDiffer() && e != codec.EvolveAdd {
				if r.rest != nil {
					r.rest.longer = append(r.rest.longer, p.row)
				}
				continue
			}
		case p.what == tooFew && r.mayDiffer() && !r.columns.Declared && int(p.field) >= r.layout.first:
			continue // the file has not the columns behind those of its first record
		}
		left = append(left, p)
	}
	r.s.problems = left
	r.drift.SeeLonger(numberedName(r.layout.fields), longer, r.s.rows-longer)
}

// fieldsOf are all fields of a record of the chunk.
func (s *scanner) fieldsOf(row int) []cells.Cell {
	fields, kept := s.fields, s.cells
	s.fields, s.cells = 0, nil
	s.careful(s.in.Buf(), s.in.Hi(), s.start[row], recordStart)
	all := s.cells
	s.fields, s.cells = fields, kept
	return all
}
