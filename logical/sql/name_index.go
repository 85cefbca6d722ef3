package sql

import (
	"iter"
	"strings"
	"unicode"
)

// manyColumns is from how many columns a relation looks names up in an index.
const manyColumns = 64

// nameIndex finds the columns of a name among many, without regard to case.
type nameIndex struct {
	of int // the number of columns when it was made
	at map[string][]int
}

// named are the columns of r that have the name, whatever its case.
func (r *relation) named(name string) iter.Seq[*column] {
	return func(yield func(*column) bool) {
		if len(r.columns) < manyColumns {
			for i := range r.columns {
				if c := &r.columns[i]; strings.EqualFold(c.name, name) && !yield(c) {
					return
				}
			}
			return
		}
		if r.names == nil || r.names.of != len(r.columns) {
			r.names = &nameIndex{of: len(r.columns), at: make(map[string][]int, len(r.columns))}
			for i, c := range r.columns {
				key := folded(c.name)
				r.names.at[key] = append(r.names.at[key], i)
			}
		}
		for _, i := range r.names.at[folded(name)] {
			if !yield(&r.columns[i]) {
				return
			}
		}
	}
}

// folded is equal for the texts that strings.EqualFold takes for equal.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && !strings.ContainsRune("kKsS", r) { // which equal letters that are not ASCII, too
			return unicode.ToLower(r)
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}
