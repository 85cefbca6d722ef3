package state

import (
	"iter"
	"slices"
)

// handfulBytes is about how much of a state is copied out at a time, where no memory limit
// says less.
const (
	handfulBytes = 16 << 20
	handfulLeast = 64 << 10
)

// handful is how many rows a shard hands out at a time: fewer where rows are wide, as they
// are on average.
func (s *Shard) handful() int {
	most := int64(handfulBytes)
	if limit := s.account.budget.Limit(); limit > 0 {
		most = min(most, max(limit/(8*s.seqStep), handfulLeast))
	}
	wide := s.Bytes()/int64(max(s.room, 1)) + 1
	return int(min(max(most/wide, 1), evictRows))
}

// handful is the least of its shards'.
func (t *Table) handful() int {
	n := evictRows
	for _, s := range t.shards {
		n = min(n, s.handful())
	}
	return n
}

// Touching ranges over the rows that Touched lists, some at a time.
func (s *Shard) Touching() iter.Seq[[]uint32] { return slices.Chunk(s.Touched(), s.handful()) }

// Widths is about how much memory rows take as columns of a batch, as a function of the row,
// and the most that one takes.
func (s *Shard) Widths() (of func(row uint32) int64, most int64) {
	of = func(row uint32) int64 { return s.keys.width(row) + s.values.width(row) }
	return of, s.keys.widest() + s.values.widest()
}

// width is about how much memory a row takes as columns of a batch.
func (s *rowStore) width(row uint32) int64 {
	n := int64(s.stride) * 8
	if len(s.texts) > 0 {
		words := s.words.row(row)
		for _, c := range s.texts {
			n += int64(uint32(words[s.columns[c].word]))
		}
	}
	return n
}

// widest is more than any row takes.
func (s *rowStore) widest() int64 {
	return int64(s.stride)*8 + int64(len(s.texts))*max(int64(s.arena.Widest()), shortText)
}
