package function

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar/kernel"
)

// distances makes a column of what f counts between two texts. f is given their characters
// without those that they have in common at the beginning and at the end, and asks stop as
// it goes, whose error ends it.
func distances[T int32 | int64](c *call, f func(a, b []rune, stop func() error) (int, error)) (arrow.Array, error) {
	x, y := kernel.TextsOf(c.args[0]), kernel.TextsOf(c.args[1])
	var stopped error
	column, err := fixedRows(c, func(i int) T {
		if stopped != nil {
			return 0
		}
		a, b := withoutCommonEnds([]rune(string(x.At(i))), []rune(string(y.At(i))))
		var n int
		n, stopped = f(a, b, c.stopped)
		return T(n)
	})
	if stopped != nil {
		column.Release()
		return nil, stopped
	}
	return column, err
}

func withoutCommonEnds(a, b []rune) ([]rune, []rune) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}

// stepsUnasked is how many steps of a table are made before the query is asked whether it
// goes on: some milliseconds.
const stepsUnasked = 1 << 20

// stripe is how many rows of a table are computed before the next ones are: their bits are
// few enough to stay in the cache, whatever the number of different characters.
const stripe = 4096

// levenshtein counts insertions, deletions and replacements, 64 rows of the table at a time,
// as G. Myers has it (Journal of the ACM 46, 1999).
func levenshtein(a, b []rune, stop func() error) (int, error) {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) == 0 {
		return len(b), nil
	}
	// By how much the row above grows from one column to the next: by one in the first.
	growth := make([]int8, len(b))
	for j := range growth {
		growth[j] = 1
	}
	distance := len(a)
	for len(a) > 0 {
		rows := a[:min(stripe, len(a))]
		if a = a[len(rows):]; len(rows)*len(b)/64 >= stepsUnasked/64 {
			if err := stop(); err != nil {
				return 0, err
			}
		}
		levenshteinRows(rows, b, growth)
	}
	for _, d := range growth {
		distance += int(d)
	}
	return distance, nil
}

// levenshteinRows takes growth from the row above those of a to the last of them. Up has the
// bits of the rows whose value is one more than that of the row above, down of those whose
// value is one less.
func levenshteinRows(a, b []rune, growth []int8) {
	blocks := (len(a) + 63) / 64
	rows := runeRows(a, blocks)
	none := make([]uint64, blocks)
	up, down := make([]uint64, blocks), make([]uint64, blocks)
	for k := range up {
		up[k] = math.MaxUint64
	}
	last := (len(a) - 1) % 64
	for j, r := range b {
		equal := rows[r]
		if equal == nil {
			equal = none
		}
		carryUp, carryDown := uint64(0), uint64(0)
		switch growth[j] {
		case 1:
			carryUp = 1
		case -1:
			carryDown = 1
		}
		for k := range blocks {
			top := 63
			if k == blocks-1 {
				top = last
			}
			eq, u, d := equal[k], up[k], down[k]
			vertical := eq | d
			eq |= carryDown
			horizontal := (((eq & u) + u) ^ u) | eq
			more, less := d|^(horizontal|u), u&horizontal
			nextUp, nextDown := more>>top&1, less>>top&1
			more, less = more<<1|carryUp, less<<1|carryDown
			up[k], down[k] = less|^(vertical|more), more&vertical
			carryUp, carryDown = nextUp, nextDown
		}
		growth[j] = int8(carryUp) - int8(carryDown)
	}
}

// runeRows is, for each character of a, the bits of the places where it stands.
func runeRows(a []rune, blocks int) map[rune][]uint64 {
	rows := map[rune][]uint64{}
	for i, r := range a {
		bits := rows[r]
		if bits == nil {
			bits = make([]uint64, blocks)
			rows[r] = bits
		}
		bits[i/64] |= 1 << (i % 64)
	}
	return rows
}

// damerauLevenshtein counts exchanges of neighbours, too, between which others may be
// inserted or deleted. Of those it is enough to look at the ones with nothing inserted or
// nothing deleted between them: of the table, rows that were needed long before are kept as
// the one value of them that can be asked for.
func damerauLevenshtein(a, b []rune, stop func() error) (int, error) {
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b), nil
	}
	far := len(a) + len(b) + 1
	// Of columns -1, 0, 1, …: the present row and the one before it, and beyond, for each
	// column, the row above the last one whose character is that of the column, one column back.
	row, above, beyond := make([]int, len(b)+2), make([]int, len(b)+2), make([]int, len(b)+2)
	for j := range row {
		row[j], above[j], beyond[j] = j-1, far, far
	}
	row[0] = far
	lastRow := map[rune]int{}
	steps := 0
	for i := 1; i <= len(a); i++ {
		row, above = above, row
		// What row holds is two rows back, until it is written over.
		twoBack := row[1]
		row[0], row[1] = far, i
		lastColumn, inserted := -1, far // of the character in this row; the value two rows above and one back of it
		for j := 1; j <= len(b); j++ {
			x, y := a[i-1], b[j-1]
			best := min(above[j+1], row[j]) + 1
			if x == y {
				best = min(best, above[j])
				lastColumn, beyond[j+1], inserted = j, above[j-1], twoBack
			} else {
				best = min(best, above[j]+1)
				if k := lastRow[y]; lastColumn == j-1 && k > 0 {
					best = min(best, beyond[j+1]+i-k)
				} else if k == i-1 && k > 0 && lastColumn > 0 {
					best = min(best, inserted+j-lastColumn)
				}
			}
			twoBack, row[j+1] = row[j+1], best
		}
		lastRow[a[i-1]] = i
		if steps += len(b); steps >= stepsUnasked {
			if steps = 0; stop() != nil {
				return 0, stop()
			}
		}
	}
	return row[len(b)+1], nil
}

// jaro matches equal characters that are less than half the longer text apart, each with the
// first one left that it can have.
func jaro(a, b []rune) float64 {
	reach := max(max(len(a), len(b))/2-1, 0)
	left := map[rune][]int{} // where a character stands in b, without places taken or too far back
	for j, r := range b {
		left[r] = append(left[r], j)
	}
	inA, inB := make([]bool, len(a)), make([]bool, len(b))
	matches := 0
	for i, r := range a {
		places := left[r]
		for len(places) > 0 && places[0] < i-reach {
			places = places[1:]
		}
		if len(places) > 0 && places[0] <= i+reach {
			inA[i], inB[places[0]] = true, true
			places = places[1:]
			matches++
		}
		left[r] = places
	}
	if matches == 0 {
		return 0
	}
	return jaroOf(a, b, inA, inB, float64(matches))
}

// jaroOf is Jaro's measure of texts of which some characters are matched.
func jaroOf(a, b []rune, inA, inB []bool, matches float64) float64 {
	moved, j := 0, 0
	for i, r := range a {
		if !inA[i] {
			continue
		}
		for !inB[j] {
			j++
		}
		if b[j] != r {
			moved++
		}
		j++
	}
	return (matches/float64(len(a)) + matches/float64(len(b)) + (matches-float64(moved)/2)/matches) / 3
}
