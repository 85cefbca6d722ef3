package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash returns what a power cut at this moment might leave: m itself is not
// changed, and neither filesystem sees later changes of the other. What was
// synced is there. Of the rest, each change of a name and the unsynced bytes of
// each file survive with probability keep, drawn from seed: 0 loses everything
// that was not synced, 1 nothing. Bytes that do not survive vanish, are zero,
// or are cut at some place. Changes of one name happen in order, renames wholly
// or not at all. Locks are free, and nothing is pending: the result is what is
// on disk. The clock and the rules of m are not taken over.
func (m *Mem) Crash(seed uint64, keep float64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := crasher{
		rnd:   rand.New(rand.NewPCG(seed, 0)),
		keep:  keep,
		names: map[*memNode]map[string]*memNode{},
		done:  map[*memNode]*memNode{},
	}
	c.pickChanges(m.pending)
	after := &Mem{root: c.clone(m.root), last: m.last}
	return after
}

// Clone returns a copy of everything that programs see now, as if all of it was
// synced, with all locks free. It is Crash without loss.
func (m *Mem) Clone() *Mem { return m.Crash(0, 1) }

// crasher draws what survives.
type crasher struct {
	rnd   *rand.Rand
	keep  float64
	names map[*memNode]map[string]*memNode // names that differ from the durable ones
	done  map[*memNode]*memNode
}

func (c *crasher) survives() bool { return c.rnd.Float64() < c.keep }

// pickChanges decides which changes of names happened.
func (c *crasher) pickChanges(pending []*dirChange) {
	lost := map[entry]bool{}
	for _, change := range pending {
		kept := c.survives() && !slices.ContainsFunc(change.edits, func(e edit) bool {
			return lost[entry{e.dir, e.name}]
		})
		for _, e := range change.edits {
			if !kept {
				lost[entry{e.dir, e.name}] = true
				continue
			}
			if c.names[e.dir] == nil {
				c.names[e.dir] = maps.Clone(e.dir.durable)
			}
			apply(c.names[e.dir], e)
		}
	}
}

// clone copies a node as the crash leaves it. Nodes are visited in an order that
// depends on names alone, so that a seed always gives the same result.
func (c *crasher) clone(n *memNode) *memNode {
	if after := c.done[n]; after != nil {
		return after
	}
	after := &memNode{mode: n.mode, mtime: n.mtime, target: n.target}
	c.done[n] = after
	if !n.mode.IsDir() {
		after.data = c.content(n)
		after.synced = after.data[:len(after.data):len(after.data)]
		return after
	}
	names := c.names[n]
	if names == nil {
		names = n.durable
	}
	after.names = make(map[string]*memNode, len(names))
	for _, base := range slices.Sorted(maps.Keys(names)) {
		after.names[base] = c.clone(names[base])
	}
	after.durable = maps.Clone(after.names)
	return after
}

// content draws what is left of a file.
func (c *crasher) content(n *memNode) []byte {
	if c.survives() {
		return slices.Clone(n.data)
	}
	// A file that was cut by Create may be as it was, or have some of the new bytes.
	safe := len(n.synced)
	if safe > len(n.data) || string(n.data[:safe]) != string(n.synced) {
		if c.keep == 0 || c.rnd.IntN(2) == 0 {
			return slices.Clone(n.synced)
		}
		safe = 0
	}
	fresh := len(n.data) - safe
	if c.keep == 0 || fresh == 0 {
		return slices.Clone(n.data[:safe])
	}
	switch c.rnd.IntN(3) {
	case 0: // vanished
		return slices.Clone(n.data[:safe])
	case 1: // the length was written, the bytes were not
		data := slices.Clone(n.data)
		clear(data[safe+c.rnd.IntN(fresh):])
		return data
	default: // cut
		return slices.Clone(n.data[:safe+c.rnd.IntN(fresh)])
	}
}
