package stateful

import (
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/incremental/state"
	"github.com/tidemill/tidemill/logical"
)

// groupStore is a state table as a function of groups sees it: one, whatever the shards.
type groupStore struct {
	table   *state.Table
	mem     memory.Allocator
	values  int           // columns the function knows of
	ttl     time.Duration // 0: no column of expiry
	now     int64
	updated *atomic.Int64
	removed *atomic.Int64
}

// newGroupStore wraps a table.
func newGroupStore(t *state.Table, mem memory.Allocator, ttl time.Duration, now int64) *groupStore {
	s := &groupStore{table: t, mem: mem, ttl: ttl, now: now, values: len(t.Schema().Values), updated: new(atomic.Int64), removed: new(atomic.Int64)}
	if ttl > 0 {
		s.values--
	}
	return s
}

// expire removes what has no time to live left.
func (s *groupStore) expire() {
	if s.ttl == 0 {
		return
	}
	for _, shard := range s.table.Shards() {
		for rows := range shard.Evict(s.now) {
			s.removed.Add(int64(len(rows)))
		}
	}
}

func groupRow(shard int, slot uint32) logical.GroupRow {
	return logical.GroupRow(shard)<<32 | logical.GroupRow(slot)
}

// part is what of a call falls to one shard: positions in the call.
type part struct {
	shard *state.Shard
	at    []int32
}

// partsOf shares n positions out by their shard; the shard of all is 0 where there is
// but one.
func (s *groupStore) partsOf(n int, shardOf func(i int) int) []part {
	shards := s.table.Shards()
	parts := make([]part, len(shards))
	for i := range parts {
		parts[i].shard = shards[i]
	}
	for i := range n {
		k := 0
		if len(shards) > 1 {
			k = shardOf(i)
		}
		parts[k].at = append(parts[k].at, int32(i))
	}
	return parts
}

// partsOfKeys shares keys out.
func (s *groupStore) partsOfKeys(keys []arrow.Array, n int) []part {
	numbers := make([]int32, n)
	s.table.Partition(keys, numbers)
	return s.partsOf(n, func(i int) int { return int(numbers[i]) })
}

func (s *groupStore) partsOfRows(rows []logical.GroupRow) []part {
	return s.partsOf(len(rows), func(i int) int { return int(rows[i] >> 32) })
}

// picked are the values of columns at positions, all of them if there are n.
func (s *groupStore) picked(columns []arrow.Array, at []int32, n int) []arrow.Array {
	out := make([]arrow.Array, len(columns))
	for i, c := range columns {
		if len(at) == n {
			c.Retain()
			out[i] = c
			continue
		}
		out[i] = kernel.Filter(s.mem, c, at)
	}
	return out
}

func slotsAt(rows []logical.GroupRow, at []int32) []uint32 {
	out := make([]uint32, len(at))
	for i, k := range at {
		out[i] = uint32(rows[k])
	}
	return out
}

// Find implements logical.GroupStore.
func (s *groupStore) Find(keys []arrow.Array, n int) (from []uint32, rows []logical.GroupRow, err error) {
	parts := s.partsOfKeys(keys, n)
	found := make([][]logical.GroupRow, n) // rows of each key
	total := 0
	for k, p := range parts {
		if len(p.at) == 0 {
			continue
		}
		picked := s.picked(keys, p.at, n)
		starts, slots, err := p.shard.Find(picked, len(p.at))
		releaseAll(picked)
		if err != nil {
			return nil, nil, err
		}
		all := make([]logical.GroupRow, len(slots))
		for i, slot := range slots {
			all[i] = groupRow(k, slot)
		}
		for i, at := range p.at {
			found[at] = all[starts[i]:starts[i+1]]
		}
		total += len(all)
	}
	from = make([]uint32, n+1)
	rows = make([]logical.GroupRow, 0, total)
	for i, list := range found {
		rows = append(rows, list...)
		from[i+1] = uint32(len(rows))
	}
	return from, rows, nil
}

// Get implements logical.GroupStore.
func (s *groupStore) Get(rows []logical.GroupRow) ([]arrow.Array, error) {
	if s.values == 0 {
		return nil, nil
	}
	columns := make([]int, s.values)
	for i := range columns {
		columns[i] = len(s.table.Schema().Key) + i
	}
	parts := s.partsOfRows(rows)
	if len(parts) == 1 {
		return parts[0].shard.Get(slotsAt(rows, parts[0].at), columns...)
	}
	sources := make([][]arrow.Array, s.values) // by column, then shard
	defer func() {
		for _, list := range sources {
			releaseAll(list)
		}
	}()
	refs := make([]kernel.Ref, len(rows))
	for k, p := range parts {
		got, err := p.shard.Get(slotsAt(rows, p.at), columns...)
		if err != nil {
			return nil, err
		}
		for i, a := range got {
			sources[i] = append(sources[i], a)
		}
		for i, at := range p.at {
			refs[at] = kernel.MakeRef(k, i)
		}
	}
	out := make([]arrow.Array, 0, s.values)
	for _, list := range sources {
		a, err := kernel.Gather(s.mem, list, refs)
		if err != nil {
			releaseAll(out)
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// stored is values with their expiry.
func (s *groupStore) stored(values []arrow.Array, n int) []arrow.Array {
	out := make([]arrow.Array, len(values), len(values)+1)
	for i, v := range values {
		v.Retain()
		out[i] = v
	}
	if s.ttl > 0 {
		micros := make([]int64, n)
		for i := range micros {
			micros[i] = s.now + s.ttl.Microseconds()
		}
		out = append(out, timestamps(s.mem, micros))
	}
	return out
}

// Append implements logical.GroupStore.
func (s *groupStore) Append(keys, values []arrow.Array, n int) error {
	if n == 0 {
		return nil
	}
	s.updated.Add(int64(n))
	stored := s.stored(values, n)
	defer releaseAll(stored)
	for _, p := range s.partsOfKeys(keys, n) {
		if len(p.at) == 0 {
			continue
		}
		if err := s.appendTo(p, keys, stored, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *groupStore) appendTo(p part, keys, values []arrow.Array, n int) error {
	k, v := s.picked(keys, p.at, n), s.picked(values, p.at, n)
	defer releaseAll(k)
	defer releaseAll(v)
	slots := make([]uint32, len(p.at))
	if s.table.Schema().MultiRow {
		return p.shard.Append(k, v, slots)
	}
	if _, err := p.shard.Intern(k, slots); err != nil {
		return err
	}
	return s.set(p.shard, slots, v)
}

func (s *groupStore) set(shard *state.Shard, slots []uint32, values []arrow.Array) error {
	for i, v := range values {
		if err := shard.Set(slots, len(s.table.Schema().Key)+i, v); err != nil {
			return err
		}
	}
	return nil
}

// Set implements logical.GroupStore.
func (s *groupStore) Set(rows []logical.GroupRow, values []arrow.Array) error {
	if len(rows) == 0 {
		return nil
	}
	s.updated.Add(int64(len(rows)))
	stored := s.stored(values, len(rows))
	defer releaseAll(stored)
	for _, p := range s.partsOfRows(rows) {
		if len(p.at) == 0 {
			continue
		}
		v := s.picked(stored, p.at, len(rows))
		err := s.set(p.shard, slotsAt(rows, p.at), v)
		releaseAll(v)
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete implements logical.GroupStore.
func (s *groupStore) Delete(rows []logical.GroupRow) error {
	if len(rows) == 0 {
		return nil
	}
	s.removed.Add(int64(len(rows)))
	for _, p := range s.partsOfRows(rows) {
		if len(p.at) == 0 {
			continue
		}
		if err := p.shard.Delete(slotsAt(rows, p.at)); err != nil {
			return err
		}
	}
	return nil
}
