package state

import "github.com/apache/arrow-go/v18/arrow"

// Probe enumerates the rows of keys, some at a time, so that a key with very many rows
// costs no memory: what a join looks for. Until its end the shard gets no new rows and
// loses none; values may be set.
type Probe struct {
	shard *Shard
	heads []uint32
	key   int
	row   uint32 // the next row of key; noRow: its first
}

// Start begins with n keys.
func (p *Probe) Start(s *Shard, keys []arrow.Array, n int) error {
	defer s.pk.release()
	p.shard, p.key, p.row = s, 0, noRow
	p.heads = resized(p.heads, n)
	_, err := s.lookUp(keys, n, p.heads)
	return err
}

// Skip makes a key find nothing.
func (p *Probe) Skip(key int) { p.heads[key] = noRow }

// Next fills keys and rows, of one length, with pairs of a key's number and a row that
// has it: keys in order, the rows of a key in the order they were appended. It returns
// their number; 0 is the end.
func (p *Probe) Next(keys []int32, rows []uint32) int {
	n, multi := 0, p.shard.schema.MultiRow
	for ; p.key < len(p.heads); p.key++ {
		head := p.heads[p.key]
		if head == noRow {
			continue
		}
		row := head
		if p.row != noRow {
			row = p.row
		}
		for {
			if n == len(rows) {
				p.row = row
				return n
			}
			keys[n], rows[n] = int32(p.key), row
			n++
			if !multi {
				break
			}
			if row = p.shard.same.at(row).next; row == head {
				break
			}
		}
		p.row = noRow
	}
	return n
}
