package state

import (
	"math/bits"

	"github.com/tidemill/tidemill/columnar/function"
)

// compact moves at most limit rows from the highest slots to the lowest free ones, if
// more than half of the slots are free, and lets go of segments that are empty then.
// Slots may only change between batches.
func (s *Shard) compact(limit int) error {
	if s.top < 2*segmentRows || s.n > s.top/2 {
		return nil
	}
	var from, to []uint32
	high := s.lastLive()
	low := s.firstFree(0)
	for len(from) < limit && low < high {
		from, to = append(from, uint32(high)), append(to, uint32(low))
		s.live[high>>6] &^= 1 << (high & 63)
		s.live[low>>6] |= 1 << (low & 63)
		high = s.lastLive()
		low = s.firstFree(low)
	}
	if err := s.move(from, to); err != nil {
		return err
	}
	s.top = high + 1
	s.low = 0
	s.live = s.live[:(s.top+63)/64]
	return s.shrink()
}

// lastLive is the highest slot in use, -1 if none is.
func (s *Shard) lastLive() int {
	for len(s.live) > 0 {
		if w := s.live[len(s.live)-1]; w != 0 {
			return (len(s.live)-1)<<6 + 63 - bits.LeadingZeros64(w)
		}
		s.live = s.live[:len(s.live)-1]
	}
	return -1
}

// firstFree is the lowest free slot at or after one before which none is free.
func (s *Shard) firstFree(from int) int {
	for w := from >> 6; w < len(s.live); w++ {
		if f := ^s.live[w]; f != 0 {
			return w<<6 + bits.TrailingZeros64(f)
		}
	}
	return len(s.live) << 6
}

// move gives rows other slots.
func (s *Shard) move(from, to []uint32) error {
	if len(from) == 0 {
		return nil
	}
	for _, a := range s.accs {
		state, err := a.State(from)
		if err != nil {
			return err
		}
		err = a.Load(to, state)
		releaseAll(state)
		if err != nil {
			return err
		}
		a.Clear(from)
	}
	prefixes := make([]int64, len(from))
	if !s.unordered {
		var err error
		if prefixes, err = s.prefixes(from); err != nil {
			return err
		}
	}
	for i, f := range from {
		s.moveRow(f, to[i], prefixes[i])
	}
	return nil
}

func (s *Shard) moveRow(from, to uint32, prefix int64) {
	tag := tagOf(s.keys.hashRow(from))
	if !s.schema.MultiRow || s.index.holds(tag, from) {
		s.index.replace(tag, from, to)
	}
	if s.schema.MultiRow {
		s.same.move(from, to)
		s.seq.row(to)[0] = s.seq.row(from)[0]
	}
	s.keys.move(from, to)
	s.values.move(from, to)
	f := s.flags.row(from)
	s.flags.row(to)[0] = f[0]
	if f[0]&rowOrdered != 0 {
		s.order.moved(from, to, prefix)
	}
	f[0] = 0
}

// shrink lets go of segments beyond top, and makes the accumulators anew once they are
// twice as large as needed.
func (s *Shard) shrink() error {
	room := max((s.top+segmentRows-1)&^(segmentRows-1), segmentRows)
	if room >= s.room {
		return nil
	}
	before := s.room
	s.room = room
	s.keys.shrink(room)
	s.values.shrink(room)
	s.flags.shrink(room)
	s.order.links.shrink(room)
	s.same.links.shrink(room)
	s.seq.shrink(room)
	s.accRoom = max(s.accRoom, before)
	if s.accRoom < 2*room {
		return nil
	}
	s.accRoom = room
	for i, a := range s.schema.Aggregates {
		fresh, err := a.New(s.mem)
		if err != nil {
			return err
		}
		fresh.Resize(room)
		if err := s.copyStates(s.accs[i], fresh); err != nil {
			fresh.Release()
			return err
		}
		s.accs[i].Release()
		s.accs[i] = fresh
	}
	return nil
}

func (s *Shard) copyStates(from, to function.Accumulator) error {
	for rows := range s.All() {
		state, err := from.State(rows)
		if err != nil {
			return err
		}
		err = to.Load(rows, state)
		releaseAll(state)
		if err != nil {
			return err
		}
	}
	return nil
}
