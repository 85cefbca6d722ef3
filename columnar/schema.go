package columnar

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// NewSchema makes a schema of nullable fields, names and types alternating.
func NewSchema(fields ...arrow.Field) *arrow.Schema { return arrow.NewSchema(fields, nil) }

// Field is a nullable field.
func Field(name string, dt arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: dt, Nullable: true}
}

// Lookup finds the field called name: an exact match wins, then a match without
// regard to case. n is how many fields match equally well; index is -1 unless n is 1.
func Lookup(s *arrow.Schema, name string) (index, n int) {
	index = -1
	exact, fold := 0, 0
	for i, f := range s.Fields() {
		if f.Name == name {
			exact++
			index = i
		}
	}
	if exact > 0 {
		if exact > 1 {
			index = -1
		}
		return index, exact
	}
	for i, f := range s.Fields() {
		if strings.EqualFold(f.Name, name) {
			fold++
			index = i
		}
	}
	if fold != 1 {
		index = -1
	}
	return index, fold
}

// Select is the schema of the named positions of s, in that order; nil selects all.
func Select(s *arrow.Schema, columns []int) *arrow.Schema {
	if columns == nil {
		return s
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = s.Field(c)
	}
	return arrow.NewSchema(fields, nil)
}

// EqualTypes says whether a and b have the same column types in the same order;
// names and nullability may differ.
func EqualTypes(a, b *arrow.Schema) bool {
	if a.NumFields() != b.NumFields() {
		return false
	}
	for i := range a.NumFields() {
		if !arrow.TypeEqual(a.Field(i).Type, b.Field(i).Type) {
			return false
		}
	}
	return true
}

// SchemaString prints a schema in one line: name TYPE, name TYPE.
func SchemaString(s *arrow.Schema) string {
	parts := make([]string, s.NumFields())
	for i, f := range s.Fields() {
		parts[i] = quoteName(f.Name) + " " + TypeName(f.Type)
	}
	return strings.Join(parts, ", ")
}

// NearestName returns the candidate most like name, or "" when none is near
// enough to be worth suggesting: of a short name little may differ.
func NearestName(name string, candidates []string) string {
	best, bestDistance := "", 4
	switch n := len(name); {
	case n < 2:
		bestDistance = 1
	case n < 5:
		bestDistance = 2
	case n < 8:
		bestDistance = 3
	}
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		if d := editDistance(strings.ToLower(name), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// DidYouMean is the closing clause of an unknown-name error: a suggestion, the
// known names if they are few, or nothing.
func DidYouMean(name string, candidates []string) string {
	if near := NearestName(name, candidates); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	if len(candidates) > 0 && len(candidates) <= 12 {
		return "; known are " + strings.Join(candidates, ", ")
	}
	return ""
}

// editDistance counts insertions, deletions, substitutions and swaps of neighbours
// between a and b (the optimal string alignment distance), in bytes.
func editDistance(a, b string) int {
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
