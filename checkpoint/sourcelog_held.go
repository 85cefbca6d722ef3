package checkpoint

import (
	"cmp"
	"slices"

	"github.com/tidemill/tidemill/logical/connector"
)

// heldEntries are the entries of a SourceLog that are not durable yet, in order. They
// stand for, or follow, what the directory holds.
type heldEntries struct {
	on      bool
	entries []connector.LogEntry
}

// Hold makes Put keep entries in memory, until WriteHeld: the batch before the one they
// are for may still fail, and nothing of a later one may be on disk by then. If the process
// dies they were never there.
func (l *SourceLog) Hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held.on = true
}

// WriteHeld makes what was held durable, in order, and ends holding. It is called before
// any offsets name such an entry. After an error the rest is still held.
func (l *SourceLog) WriteHeld() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.held.entries) > 0 {
		e := l.held.entries[0]
		if err := l.write(e.ID, e.Data); err != nil {
			return err
		}
		l.held.entries = l.held.entries[1:]
	}
	l.held = heldEntries{}
	return nil
}

func (h *heldEntries) find(id int64) (at int, there bool) {
	return slices.BinarySearchFunc(h.entries, id, func(e connector.LogEntry, id int64) int { return cmp.Compare(e.ID, id) })
}

// put keeps a copy of an entry.
func (h *heldEntries) put(id int64, entry []byte) {
	e := connector.LogEntry{ID: id, Data: slices.Clone(entry)}
	if at, there := h.find(id); there {
		h.entries[at] = e
	} else {
		h.entries = slices.Insert(h.entries, at, e)
	}
}

// get is the entry's content; ok is false if it is not held.
func (h *heldEntries) get(id int64) (data []byte, ok bool) {
	at, there := h.find(id)
	if !there {
		return nil, false
	}
	return slices.Clone(h.entries[at].Data), true
}

// latest is the largest number held, -1 for none.
func (h *heldEntries) latest() int64 {
	if n := len(h.entries); n > 0 {
		return h.entries[n-1].ID
	}
	return -1
}

// with is ids, in order, and those held.
func (h *heldEntries) with(ids []int64) []int64 {
	ids = slices.Clone(ids)
	for _, e := range h.entries {
		if at, there := slices.BinarySearch(ids, e.ID); !there {
			ids = slices.Insert(ids, at, e.ID)
		}
	}
	return ids
}

// dropAfter forgets the entries after a number.
func (h *heldEntries) dropAfter(id int64) {
	at, there := h.find(id)
	if there {
		at++
	}
	h.entries = h.entries[:at]
}
