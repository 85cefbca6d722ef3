package file

import "slices"

// queue is the files that wait for their batch.
type queue struct {
	files  []queuedFile
	sorted int // how many of them, from the front, are in order
}

// queuedFile is a file by its record in the seenSet. Its time stands here, too, since
// most comparisons need no more.
type queuedFile struct {
	mtime int64
	rec   uint32
}

func (q *queue) add(f queuedFile) { q.files = append(q.files, f) }

// sort brings the files into order. What came since it was last in order is sorted by
// itself and merged into the rest, from the back: new files are mostly the newest.
func (q *queue) sort(compare func(a, b queuedFile) int) {
	fresh := q.files[q.sorted:]
	slices.SortFunc(fresh, compare)
	if q.sorted > 0 && len(fresh) > 0 && compare(q.files[q.sorted-1], fresh[0]) > 0 {
		fresh = slices.Clone(fresh)
		old, at := q.sorted-1, len(q.files)-1
		for next := len(fresh) - 1; next >= 0; at-- {
			if old >= 0 && compare(q.files[old], fresh[next]) > 0 {
				q.files[at] = q.files[old]
				old--
				continue
			}
			q.files[at] = fresh[next]
			next--
		}
	}
	q.sorted = len(q.files)
}

// remove takes out the files that drop names, and keeps the order.
func (q *queue) remove(drop func(f queuedFile) bool) {
	kept := q.files[:0]
	sorted := 0
	for i, f := range q.files {
		if drop(f) {
			continue
		}
		if i < q.sorted {
			sorted++
		}
		kept = append(kept, f)
	}
	q.files, q.sorted = kept, sorted
}

// take takes out the first end files but those of left, which come before the others.
func (q *queue) take(end int, left []queuedFile) {
	switch rest := q.files[end:]; {
	case len(left) > 0:
		q.files = append(left, rest...)
	case len(rest) > 0:
		q.files = rest
	default:
		q.files = nil // the array is kept by no one any more
	}
	q.sorted = len(q.files)
}
