package file

import (
	"cmp"
	"sync"
)

// handover is the listing by which a stream's columns were found, for the source that is
// opened next: it looks only at what changed since. The first source that can use it takes
// it; whoever comes later lists by himself.
type handover struct {
	mu   sync.Mutex
	seen *seenSet // the files, as waiting
	dirs map[string]*dirState
}

// newHandover makes l remember the directories of its next listing, whose files are to be
// added.
func newHandover(l *lister) *handover {
	h := &handover{seen: newSeenSet(), dirs: map[string]*dirState{}}
	l.dirs = h.dirs
	return h
}

func (h *handover) add(f foundFile) { h.seen.queue(f, 0) }

// tell visits the files that were handed over, without their full paths; ok is false if
// everything must be listed.
func (h *handover) tell(visit func(foundFile)) (ok bool) {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.dirs) == 0 {
		return false // it was taken, or the path is one file
	}
	for rec := range uint32(h.seen.n) {
		visit(h.seen.file(rec))
	}
	return true
}

// take is what was handed over, nil if it was taken before, or if there is nothing to save.
func (h *handover) take() (seen *seenSet, dirs map[string]*dirState) {
	if h == nil {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	seen, dirs = h.seen, h.dirs
	h.seen, h.dirs = nil, nil
	if len(dirs) == 0 {
		return nil, nil // the path is one file
	}
	return seen, dirs
}

// takeOver meets the files that were handed over; ok is false if everything must be listed.
func (s *Source) takeOver() (ok bool, err error) {
	handed := s.handed
	s.handed = nil
	if s.last >= 0 {
		return false, nil // what was found long ago tells nothing of what was rewritten
	}
	seen, dirs := handed.take()
	if seen == nil {
		return false, nil
	}
	fresh := s.seen.n == 0
	if fresh {
		s.seen = seen // of a million files, no second record
	}
	for rec := range uint32(seen.n) {
		f := seen.file(rec)
		switch accepted := s.o.lister.accept(f.rel); {
		case !accepted: // the format was not known yet
			seen.unqueue(rec)
		case fresh:
			s.enqueue(f)
		default:
			err = cmp.Or(err, s.met(f))
		}
	}
	if err != nil {
		return false, err
	}
	s.o.lister.dirs = dirs
	return true, nil
}
