package file

import (
	"bytes"
	"cmp"
	"math"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/logical/connector"
)

// seenSet knows every file that was ever logged, and those that wait to be: exactly, in
// about 60 bytes a file and its name, without pointers and in pieces that never move, so
// that a million files cost neither much memory nor time in garbage collection.
//
//	slots  hash table, linear probing: 32 bits of the hash of a path above its record's
//	       number + 1; 0 is free
//	recs   one record a path, recordsPiece to a piece: its folder (a number in dirs), its
//	       name (a place in names), identity and what is known of it
//	names  base names one after another, namesPiece bytes to a piece
//	dirs   folders with their last slash: "", "day=1/"
//
// Whether two paths are the same is decided by their bytes; hashes only find candidates.
type seenSet struct {
	hash    func(dir uint32, base string) uint32
	slots   []uint64
	recs    [][]seenRecord
	n       int // records in recs
	names   [][]byte
	dirs    []string
	dirByID map[string]uint32
	lastDir string // of the newest look-up, and its number
	lastID  uint32
	logged  int // files that an entry names
	queued  int // files that wait
	// before is what was logged of files that wait to be read again.
	before map[uint32]seenRecord
}

const (
	recordsPiece = 4096
	namesPiece   = 1 << 16
)

// seenRecord is what is known of one path.
type seenRecord struct {
	size    int64
	mtime   int64
	number  int64 // stateLogged: the newest log entry with the file; queued: the listing that found it
	dir     uint32
	piece   uint32 // of names
	at      uint16 // in the piece
	nameLen uint16
	state   seenState
	skipped bool // the entry passes it over: it was never read
}

// seenState is how far a file has come.
type seenState uint8

const (
	stateGone   seenState = iota // nothing is known of it any more: its path stays in the table
	stateLogged                  // a log entry names it
	stateQueued                  // no entry names it yet: it waits to be read, or for its age, or was passed over
)

func newSeenSet() *seenSet {
	return &seenSet{hash: hashName, slots: make([]uint64, 64), dirByID: map[string]uint32{}, before: map[uint32]seenRecord{}}
}

// splitPath is the folder of a path with its last slash, and its name. A name that has
// no room in a record is taken for a folder without one: both together stay the path.
func splitPath(rel string) (dir, base string) {
	at := strings.LastIndexByte(rel, '/') + 1
	if len(rel)-at > math.MaxUint16 {
		return rel, ""
	}
	return rel[:at], rel[at:]
}

// dirID is the number of a folder; ok is false if there is none and it is not made.
func (s *seenSet) dirID(dir string, create bool) (id uint32, ok bool) {
	if dir == s.lastDir && len(s.dirs) > 0 {
		return s.lastID, true
	}
	id, ok = s.dirByID[dir]
	if !ok {
		if !create {
			return 0, false
		}
		dir = strings.Clone(dir)
		id = uint32(len(s.dirs))
		s.dirs = append(s.dirs, dir)
		s.dirByID[dir] = id
	}
	s.lastDir, s.lastID = s.dirs[id], id
	return id, true
}

func hashName(dir uint32, base string) uint32 {
	return uint32(xxh3.HashStringSeed(base, uint64(dir)) >> 32)
}

// find returns the slot of a path and its record, -1 if the slot is free.
func (s *seenSet) find(dir uint32, base string) (slot, rec int) {
	hash, mask := s.hash(dir, base), len(s.slots)-1
	for slot = int(hash) & mask; ; slot = (slot + 1) & mask {
		v := s.slots[slot]
		if v == 0 {
			return slot, -1
		}
		if uint32(v>>32) != hash {
			continue
		}
		rec = int(uint32(v)) - 1
		if r := s.rec(rec); r.dir == dir && string(s.nameOf(r)) == base {
			return slot, rec
		}
	}
}

func (s *seenSet) rec(i int) *seenRecord { return &s.recs[i/recordsPiece][i%recordsPiece] }

func (s *seenSet) nameOf(r *seenRecord) []byte {
	return s.names[r.piece][r.at : int(r.at)+int(r.nameLen)]
}

// get returns the number of a path's record, -1 if nothing is known of it.
func (s *seenSet) get(dir, base string) int {
	id, ok := s.dirID(dir, false)
	if !ok {
		return -1
	}
	_, rec := s.find(id, base)
	if rec < 0 || s.rec(rec).state == stateGone {
		return -1
	}
	return rec
}

// make returns the record of a path, a new one if it has none.
func (s *seenSet) make(rel string) int {
	if (s.n+1)*4 > len(s.slots)*3 {
		s.grow()
	}
	dir, base := splitPath(rel)
	id, _ := s.dirID(dir, true)
	slot, rec := s.find(id, base)
	if rec >= 0 {
		return rec
	}
	rec = s.n
	if rec%recordsPiece == 0 {
		s.recs = append(s.recs, make([]seenRecord, recordsPiece))
	}
	s.n++
	r := s.rec(rec)
	r.dir, r.nameLen = id, uint16(len(base))
	last := len(s.names) - 1
	if last < 0 || len(s.names[last])+len(base) > namesPiece {
		s.names = append(s.names, make([]byte, 0, namesPiece))
		last++
	}
	r.piece, r.at = uint32(last), uint16(len(s.names[last]))
	s.names[last] = append(s.names[last], base...)
	s.slots[slot] = uint64(s.hash(id, base))<<32 | uint64(rec+1)
	return rec
}

// grow doubles the table. No name is looked at: the slots have the hashes.
func (s *seenSet) grow() {
	slots := make([]uint64, 2*len(s.slots))
	mask := len(slots) - 1
	for _, v := range s.slots {
		if v == 0 {
			continue
		}
		at := int(v>>32) & mask
		for slots[at] != 0 {
			at = (at + 1) & mask
		}
		slots[at] = v
	}
	s.slots = slots
}

// put notes that a log entry names the file. One that waits to be read again goes on
// waiting.
func (s *seenSet) put(f loggedFile, entry int64) {
	rec := s.make(f.rel)
	r := s.rec(rec)
	to := r
	if r.state == stateQueued {
		again := *r
		to = &again
	} else {
		s.leave(r)
		s.logged++
	}
	to.size, to.mtime, to.number, to.state, to.skipped = f.Size, f.ModTime, entry, stateLogged, f.skipped
	if to != r {
		s.before[uint32(rec)] = *to
	}
}

// queue notes that the file waits. What was logged of it is kept.
func (s *seenSet) queue(f foundFile, listing int64) uint32 {
	rec := uint32(s.make(f.rel))
	r := s.rec(int(rec))
	if r.state == stateLogged {
		s.before[rec] = *r
	}
	s.leave(r)
	r.size, r.mtime, r.number, r.state = f.Size, f.ModTime, listing, stateQueued
	s.queued++
	return rec
}

// unqueue says that the file does not wait any more. What was logged of it counts again.
func (s *seenSet) unqueue(rec uint32) {
	r := s.rec(int(rec))
	if r.state != stateQueued {
		return
	}
	s.leave(r)
	if old, ok := s.before[rec]; ok {
		delete(s.before, rec)
		*r = old
		s.logged++
	}
}

// wasLogged says whether a log entry names the file, be it that it waits again.
func (s *seenSet) wasLogged(rec uint32) bool {
	_, again := s.before[rec]
	return again || s.rec(int(rec)).state == stateLogged
}

// leave takes a record out of its state.
func (s *seenSet) leave(r *seenRecord) {
	switch r.state {
	case stateLogged:
		s.logged--
	case stateQueued:
		s.queued--
	}
	r.state = stateGone
}

// forgetLogged forgets what was logged, and keeps what waits.
func (s *seenSet) forgetLogged() {
	clear(s.before)
	for i := range s.n {
		if r := s.rec(i); r.state == stateLogged {
			s.leave(r)
		}
	}
}

// path is the path of a record.
func (s *seenSet) path(rec int) string {
	r := s.rec(rec)
	return s.dirs[r.dir] + string(s.nameOf(r))
}

// pathLen is the length of a record's path.
func (r *seenRecord) pathLen(s *seenSet) int { return len(s.dirs[r.dir]) + int(r.nameLen) }

// file is a record as a file of a listing, without its full path.
func (s *seenSet) file(rec uint32) foundFile {
	r := s.rec(int(rec))
	return foundFile{s.path(int(rec)), connector.FileIdentity{Size: r.size, ModTime: r.mtime}}
}

// logBytes is about what the lines of these records need in the log.
func (s *seenSet) logBytes(recs []uint32) int {
	const numbers = 32
	n := 0
	for _, rec := range recs {
		n += s.rec(int(rec)).pathLen(s) + numbers
	}
	return n
}

// logNow says that an entry names a file that waited.
func (s *seenSet) logNow(rec uint32, entry int64, skipped bool) {
	r := s.rec(int(rec))
	s.leave(r)
	delete(s.before, rec)
	r.number, r.state, r.skipped = entry, stateLogged, skipped
	s.logged++
}

// len is how many files were logged, those that wait to be read again too.
func (s *seenSet) len() int { return s.logged + len(s.before) }

// same says whether the file is the one the record knows.
func (r *seenRecord) same(f foundFile) bool { return r.size == f.Size && r.mtime == f.ModTime }

// comparePaths orders two records by their paths, in byte order.
func (s *seenSet) comparePaths(a, b uint32) int {
	x, y := s.rec(int(a)), s.rec(int(b))
	if x.dir == y.dir {
		return bytes.Compare(s.nameOf(x), s.nameOf(y))
	}
	return compareJoined(s.dirs[x.dir], s.nameOf(x), s.dirs[y.dir], s.nameOf(y))
}

// compareJoined compares a1+a2 with b1+b2.
func compareJoined(a1 string, a2 []byte, b1 string, b2 []byte) int {
	if len(a1) > len(b1) {
		return -compareJoined(b1, b2, a1, a2)
	}
	n := len(a1)
	if c := cmp.Compare(a1, b1[:n]); c != 0 {
		return c
	}
	rest := b1[n:] // a2 against rest + b2
	m := min(len(a2), len(rest))
	if c := cmp.Compare(string(a2[:m]), rest[:m]); c != 0 {
		return c
	}
	if m < len(rest) {
		return -1 // a ends within rest
	}
	return bytes.Compare(a2[m:], b2)
}
