package group

// Partition orders rows by the upper bits of their hashes: rows of partition p are
// order[bounds[p]:bounds[p+1]], ascending. order has the length of hashes; bounds has
// 1<<bits + 1 elements. Above a million groups, grouping each partition by itself
// keeps its table in cache.
func Partition(hashes []uint64, bits int, order, bounds []uint32) {
	shift := uint(64 - bits)
	clear(bounds)
	for _, h := range hashes {
		bounds[h>>shift+1]++
	}
	for p := 1; p < len(bounds); p++ {
		bounds[p] += bounds[p-1]
	}
	// bounds[p] is the next free place of p while rows are placed, and so ends as the
	// beginning of p+1; the shift back restores it.
	for i, h := range hashes {
		p := h >> shift
		order[bounds[p]] = uint32(i)
		bounds[p]++
	}
	copy(bounds[1:], bounds[:len(bounds)-1])
	bounds[0] = 0
}
