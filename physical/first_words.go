package physical

// firstWords is the n smallest words seen of each partition, of equal ones those seen
// first; for dense_rank the n smallest different ones.
type firstWords struct {
	n    int
	rank string
	last bool     // no further key decides between rows of equal words
	heap []uint64 // n for each partition, the largest first (a heap)
	size []int32  // how many of them are there
}

// growth is the bytes that grow will take.
func (f *firstWords) growth(partitions int) int64 {
	if partitions <= cap(f.size) {
		return 0
	}
	return int64(2*partitions-cap(f.size)) * int64(8*f.n+4)
}

// grow makes room for so many partitions.
func (f *firstWords) grow(partitions int) {
	if partitions > cap(f.size) {
		f.heap = append(make([]uint64, 0, 2*partitions*f.n), f.heap...)
		f.size = append(make([]int32, 0, 2*partitions), f.size...)
	}
	f.heap, f.size = f.heap[:partitions*f.n], f.size[:partitions]
}

// pick appends the rows that are among the first of their partition so far, and notes
// them. Rows are given in order of arrival.
func (f *firstWords) pick(ids []uint32, words []uint64, out []int32) []int32 {
	for i, id := range ids {
		w := words[i]
		size := int(f.size[id])
		heap := f.heap[int(id)*f.n : int(id)*f.n+f.n]
		if size == f.n && (w > heap[0] || w == heap[0] && f.later(w)) {
			continue
		}
		out = append(out, int32(i))
		switch {
		case f.rank == "dense_rank" && contains(heap[:size], w):
		case size < f.n:
			f.size[id]++
			siftUp(heap[:size+1], w)
		case w < heap[0]:
			siftDown(heap, w)
		}
	}
	return out
}

// later says whether a row of word w comes behind those of the same word seen before, in
// a ranking in which they count. A null may share the words at the ends.
func (f *firstWords) later(w uint64) bool {
	return f.rank == "row_number" && f.last && w > 0 && w < ^uint64(0)
}

// still appends the rows that are among the first now.
func (f *firstWords) still(ids []uint32, words []uint64, out []int32) []int32 {
	for i, id := range ids {
		if int(f.size[id]) < f.n || words[i] <= f.heap[int(id)*f.n] {
			out = append(out, int32(i))
		}
	}
	return out
}

func contains(list []uint64, w uint64) bool {
	for _, x := range list {
		if x == w {
			return true
		}
	}
	return false
}

// siftUp puts w into a heap whose last place is free.
func siftUp(heap []uint64, w uint64) {
	i := len(heap) - 1
	for i > 0 && heap[(i-1)/2] < w {
		heap[i] = heap[(i-1)/2]
		i = (i - 1) / 2
	}
	heap[i] = w
}

// siftDown puts w into the place of the largest.
func siftDown(heap []uint64, w uint64) {
	i := 0
	for {
		c := 2*i + 1
		if c >= len(heap) {
			break
		}
		if c+1 < len(heap) && heap[c+1] > heap[c] {
			c++
		}
		if heap[c] <= w {
			break
		}
		heap[i] = heap[c]
		i = c
	}
	heap[i] = w
}
