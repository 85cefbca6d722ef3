package file

import (
	"math"
	"path"
	"strings"

	"github.com/zeebo/xxh3"
)

// seenSet remembers every file that was ever logged: exactly, in about 70 bytes a
// file and without pointers, so that a million files cost neither much memory nor
// time in garbage collection.
//
//	slots  hash table of record numbers + 1, linear probing
//	recs   one record a path: its folder (a number in dirs), its name (a part of
//	       names), identity and the log entry that names it
type seenSet struct {
	slots   []uint32
	recs    []seenRecord
	names   []byte
	dirs    []string
	dirByID map[string]uint32
	live    int
}

// seenRecord is what is known of one path.
type seenRecord struct {
	name    uint64 // where its base name begins in names
	size    int64
	mtime   int64
	entry   int64 // id of the newest log entry with the file, gone if there is none
	dir     uint32
	nameLen uint32
}

// gone marks a record whose entries were withdrawn. Its path stays in the table.
const gone = math.MinInt64

func newSeenSet() *seenSet {
	return &seenSet{slots: make([]uint32, 64), dirByID: map[string]uint32{}}
}

func (s *seenSet) hash(rel string) uint64 { return xxh3.HashString(rel) }

// find returns the slot of rel and its record, -1 if the slot is free.
func (s *seenSet) find(rel string) (slot, rec int) {
	mask := len(s.slots) - 1
	dir, base := path.Split(rel)
	for slot = int(s.hash(rel)) & mask; ; slot = (slot + 1) & mask {
		if s.slots[slot] == 0 {
			return slot, -1
		}
		rec = int(s.slots[slot]) - 1
		r := &s.recs[rec]
		if string(s.nameOf(r)) == base && s.dirs[r.dir] == dir {
			return slot, rec
		}
	}
}

func (s *seenSet) nameOf(r *seenRecord) []byte {
	return s.names[r.name : r.name+uint64(r.nameLen)]
}

// get returns the record of a path, nil if it was never logged.
func (s *seenSet) get(rel string) *seenRecord {
	_, rec := s.find(rel)
	if rec < 0 || s.recs[rec].entry == gone {
		return nil
	}
	return &s.recs[rec]
}

// put notes that the file is in a log entry.
func (s *seenSet) put(f foundFile, entry int64) {
	if (len(s.recs)+1)*4 > len(s.slots)*3 {
		s.grow()
	}
	slot, rec := s.find(f.rel)
	if rec < 0 {
		dir, base := path.Split(f.rel)
		id, ok := s.dirByID[dir]
		if !ok {
			id = uint32(len(s.dirs))
			dir = strings.Clone(dir)
			s.dirs = append(s.dirs, dir)
			s.dirByID[dir] = id
		}
		rec = len(s.recs)
		s.recs = append(s.recs, seenRecord{name: uint64(len(s.names)), nameLen: uint32(len(base)), dir: id, entry: gone})
		s.names = append(s.names, base...)
		s.slots[slot] = uint32(rec) + 1
	}
	r := &s.recs[rec]
	if r.entry == gone {
		s.live++
	}
	r.size, r.mtime, r.entry = f.Size, f.ModTime, entry
}

// remove forgets a path.
func (s *seenSet) remove(rel string) {
	if _, rec := s.find(rel); rec >= 0 && s.recs[rec].entry != gone {
		s.recs[rec].entry = gone
		s.live--
	}
}

func (s *seenSet) grow() {
	slots := make([]uint32, 2*len(s.slots))
	mask := len(slots) - 1
	for i := range s.recs {
		at := int(s.hash(s.path(i))) & mask
		for slots[at] != 0 {
			at = (at + 1) & mask
		}
		slots[at] = uint32(i) + 1
	}
	s.slots = slots
}

// path is the path of record i.
func (s *seenSet) path(i int) string {
	r := &s.recs[i]
	return s.dirs[r.dir] + string(s.nameOf(r))
}

// len is how many files are remembered.
func (s *seenSet) len() int { return s.live }

// same says whether the file is the one the record knows.
func (r *seenRecord) same(f foundFile) bool { return r.size == f.Size && r.mtime == f.ModTime }
