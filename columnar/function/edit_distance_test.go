package function

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
)

// editTable counts by the whole table: insertions, deletions, replacements and, if wanted,
// exchanges.
func editTable(a, b []rune, exchanges bool) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		table[i][0] = i
	}
	for j := range table[0] {
		table[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			table[i][j] = min(table[i-1][j-1]+cost, table[i][j-1]+1, table[i-1][j]+1)
			for k := 1; exchanges && k < i; k++ {
				for l := 1; l < j; l++ {
					if a[k-1] == b[j-1] && b[l-1] == a[i-1] {
						table[i][j] = min(table[i][j], table[k-1][l-1]+(i-k-1)+1+(j-l-1))
					}
				}
			}
		}
	}
	return table[len(a)][len(b)]
}

// jaroByScan looks for each character among all that are near enough.
func jaroByScan(a, b []rune) float64 {
	reach := max(max(len(a), len(b))/2-1, 0)
	inA, inB := make([]bool, len(a)), make([]bool, len(b))
	matches := 0
	for i, r := range a {
		for j := max(0, i-reach); j < min(len(b), i+reach+1); j++ {
			if !inB[j] && b[j] == r {
				inA[i], inB[j] = true, true
				matches++
				break
			}
		}
	}
	if matches == 0 {
		return 0
	}
	return jaroOf(a, b, inA, inB, float64(matches))
}

func goesOn() error { return nil }

func TestEditDistances(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	text := func(n, letters int) []rune {
		out := make([]rune, random.IntN(n+1))
		for i := range out {
			out[i] = rune('α' + random.IntN(letters))
		}
		return out
	}
	for range 3000 {
		n, letters := 1+random.IntN(12), 1+random.IntN(5)
		checkDistances(t, text(n, letters), text(n, letters), true)
	}
	for range 40 { // over the edges of words and stripes
		checkDistances(t, text(300, 4), text(300, 4), false)
	}
	checkDistances(t, text(6000, 3)[:0], text(6000, 3), false)
	long := make([]rune, 2*stripe+70)
	for i := range long {
		long[i] = rune('a' + random.IntN(3))
	}
	checkDistances(t, long[:stripe+1], long[70:stripe+90], false)
	checkDistances(t, long[1:2*stripe+1], long[65:], false)
}

func checkDistances(t *testing.T, a, b []rune, exchanges bool) {
	t.Helper()
	if got, _ := levenshtein(a, b, goesOn); got != editTable(a, b, false) {
		t.Fatalf("levenshtein(%q, %q) = %d, want %d", string(a), string(b), got, editTable(a, b, false))
	}
	if exchanges {
		if got, _ := damerauLevenshtein(a, b, goesOn); got != editTable(a, b, true) {
			t.Fatalf("damerauLevenshtein(%q, %q) = %d, want %d", string(a), string(b), got, editTable(a, b, true))
		}
	}
	if got, want := jaro(a, b), jaroByScan(a, b); len(a) > 0 && len(b) > 0 && got != want {
		t.Fatalf("jaro(%q, %q) = %v, want %v", string(a), string(b), got, want)
	}
}

// TestLongDistancesStop checks that a query that is over ends within a single row.
func TestLongDistancesStop(t *testing.T) {
	t.Parallel()
	a, b := make([]rune, 100_000), make([]rune, 100_000)
	for i := range a {
		a[i], b[i] = rune('a'+i%7), rune('a'+i%5)
	}
	for name, f := range map[string]func(a, b []rune, stop func() error) (int, error){"levenshtein": levenshtein, "damerauLevenshtein": damerauLevenshtein} {
		asked := 0
		_, err := f(a, b, func() error {
			if asked++; asked > 2 {
				return context.Canceled
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || asked > 4 {
			t.Errorf("%s: asked %d times, error %v", name, asked, err)
		}
	}
}
