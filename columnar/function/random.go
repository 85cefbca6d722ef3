package function

import "encoding/binary"

// Mix derives another seed from seed, one for each n.
func Mix(seed, n uint64) uint64 {
	x := seed + (n+1)*0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// draws are the random values of one call. Each is a function of the number of its row
// alone, so that it does not matter in batches of how many rows they are asked for.
type draws struct{ seed, row uint64 }

// draws are those of the call that seed tells from others.
func (e *Env) draws(seed uint64) draws { return draws{Mix(e.Seed, seed), uint64(e.Row)} }

// float is the value of row i of the batch, from 0 up to, not including, 1.
func (d draws) float(i int) float64 {
	return float64(Mix(d.seed, d.row+uint64(i))>>11) / (1 << 53)
}

// bytes16 is the value of row i of the batch as bytes.
func (d draws) bytes16(i int) (b [16]byte) {
	n := 2 * (d.row + uint64(i))
	binary.LittleEndian.PutUint64(b[:8], Mix(d.seed, n))
	binary.LittleEndian.PutUint64(b[8:], Mix(d.seed, n+1))
	return b
}
