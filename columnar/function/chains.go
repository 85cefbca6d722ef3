package function

import "errors"

// chains keeps a list of places for every group. A place is the number of a slot in
// storage that the owner has, segments of segmentPlaces each. Places are given out in
// runs that double up to longestRun, so that a list that grows is a few stretches of
// memory, and none of its owner's values is ever moved. Nothing holds a pointer.
//
//	cells       per group: its first and last run, and the free places of the last
//	runs        per run: where it begins, its size as a power of two, the one after it
//	unused      per size: the runs of cleared groups, to be given out again
type chains struct {
	cells  []chainCell
	runs   []chainRun
	unused [longestRun + 1][]uint32
	places uint32 // given out as runs
}

// chainCell is a group's list; the zero value is empty. Runs are numbered from 1.
type chainCell struct {
	head, tail uint32
	at, end    uint32 // the next free place, and where the last run ends
}

type chainRun struct {
	start, next uint32
	size        uint8
}

// Runs have 1<<shortestRun to 1<<longestRun places.
const (
	shortestRun   = 1
	longestRun    = 10
	segmentBits   = 16
	segmentPlaces = 1 << segmentBits
)

var errPlaces = errors.New("more than four billion values would have to be kept")

// grow gives the list of c another run, since at is end.
func (l *chains) grow(c *chainCell) error {
	size := uint8(shortestRun)
	if c.tail != 0 {
		size = min(l.runs[c.tail-1].size+1, longestRun)
	}
	run := uint32(0)
	if u := l.unused[size]; len(u) > 0 {
		run = u[len(u)-1]
		l.unused[size] = u[:len(u)-1]
	} else {
		start := l.places
		if start&(segmentPlaces-1)+1<<size > segmentPlaces { // a run is in one segment
			start = (start | (segmentPlaces - 1)) + 1
		}
		if start < l.places || start > 1<<32-segmentPlaces {
			return errPlaces
		}
		l.places = start + 1<<size
		l.runs = append(l.runs, chainRun{start: start, size: size})
		run = uint32(len(l.runs))
	}
	r := &l.runs[run-1]
	r.next = 0
	if c.tail == 0 {
		c.head = run
	} else {
		l.runs[c.tail-1].next = run
	}
	c.tail, c.at, c.end = run, r.start, r.start+1<<r.size
	return nil
}

// each calls f for the stretches of places of group g, in order.
func (l *chains) each(g uint32, f func(from, to uint32)) {
	c := &l.cells[g]
	for run := c.head; run != 0; {
		r := l.runs[run-1]
		if run == c.tail {
			f(r.start, c.at)
		} else {
			f(r.start, r.start+1<<r.size)
		}
		run = r.next
	}
}

// clear empties the list of g.
func (l *chains) clear(g uint32) {
	c := &l.cells[g]
	for run := c.head; run != 0; run = l.runs[run-1].next {
		size := l.runs[run-1].size
		l.unused[size] = append(l.unused[size], run)
	}
	*c = chainCell{}
}

func (l *chains) bytes() int64 {
	n := int64(cap(l.cells))*16 + int64(cap(l.runs))*12
	for _, u := range l.unused {
		n += int64(cap(u)) * 4
	}
	return n
}
