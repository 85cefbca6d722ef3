package checkpoint

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// segments is a directory of write-once files, each of which holds the entries of
// a range of numbers. Small ones are merged into larger ones, so that n entries are
// in about log n files; a segment that lies within another is a left-over of a
// merge and does not count.
//
// The body of a file, packed with gzip if packed is set, is for each entry a line
// "@number length", the bytes, and a line end.
type segments struct {
	fs     vfs.FS
	dir    string
	kind   string
	packed bool
}

// segment is one file, FROM-TO. Its entries have numbers from from to to; not
// every number need be there.
type segment struct {
	from, to int64
	size     int64
}

func (s segment) name() string { return fmt.Sprintf("%d-%d", s.from, s.to) }

func (s segment) covers(o segment) bool { return s.from <= o.from && o.to <= s.to }

// parseSegment reads a name that segment.name wrote.
func parseSegment(name string) (segment, bool) {
	from, to, ok := strings.Cut(name, "-")
	if !ok {
		return segment{}, false
	}
	a, okA := parseID(from)
	b, okB := parseID(to)
	return segment{from: a, to: b}, okA && okB && a <= b
}

// list returns the segments that count, in order, and the left-overs.
func (s *segments) list() (live, stale []segment, err error) {
	entries, err := s.fs.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var all []segment
	for _, e := range entries {
		seg, ok := parseSegment(e.Name())
		if !ok || e.IsDir() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // merged away while listing: an inspection runs beside the query
		}
		if err != nil {
			return nil, nil, err
		}
		seg.size = info.Size()
		all = append(all, seg)
	}
	slices.SortFunc(all, func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	for _, seg := range all {
		last := len(live) - 1
		switch {
		case last >= 0 && live[last].covers(seg):
			stale = append(stale, seg)
		case last >= 0 && seg.from <= live[last].to:
			return nil, nil, corrupt(s.path(seg), NoBatch, "it overlaps "+live[last].name(), nil)
		default:
			live = append(live, seg)
		}
	}
	return live, stale, nil
}

func (s *segments) path(seg segment) string { return path.Join(s.dir, seg.name()) }

// write makes the segment durable. The entries are in order and within it.
func (s *segments) write(seg segment, entries []connector.LogEntry) error {
	body, err := s.pack(entries)
	if err != nil {
		return err
	}
	return vfs.WriteAtomic(s.fs, s.path(seg), encodeFile(s.kind, seg.name(), body))
}

func (s *segments) pack(entries []connector.LogEntry) ([]byte, error) {
	var buf bytes.Buffer
	var w io.Writer = &buf
	var zip *gzip.Writer
	if s.packed {
		var err error
		if zip, err = gzip.NewWriterLevel(&buf, gzip.BestCompression); err != nil {
			return nil, err
		}
		w = zip
	}
	for _, e := range entries {
		// Writes to a bytes.Buffer do not fail.
		_, _ = fmt.Fprintf(w, "@%d %d\n", e.ID, len(e.Data))
		_, _ = w.Write(e.Data)
		_, _ = io.WriteString(w, "\n")
	}
	if zip != nil {
		if err := zip.Close(); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), nil
}

// read returns the entries of a segment.
func (s *segments) read(seg segment) ([]connector.LogEntry, error) {
	body, err := readChecked(s.fs, s.path(seg), s.kind, seg.name(), NoBatch)
	if err != nil {
		return nil, err
	}
	entries, err := s.unpack(body, seg)
	if err != nil {
		return nil, corrupt(s.path(seg), NoBatch, "the content cannot be read", err)
	}
	return entries, nil
}

func (s *segments) unpack(body []byte, seg segment) ([]connector.LogEntry, error) {
	if s.packed {
		zip, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		if body, err = io.ReadAll(zip); err != nil {
			return nil, err
		}
	}
	var entries []connector.LogEntry
	last := seg.from - 1
	for len(body) > 0 {
		line, rest, ok := bytes.Cut(body, []byte("\n"))
		number, length, ok2 := strings.Cut(strings.TrimPrefix(string(line), "@"), " ")
		id, ok3 := parseID(number)
		n, err := strconv.Atoi(length)
		if !ok || !ok2 || !ok3 || err != nil || n < 0 || n >= len(rest) || rest[n] != '\n' || id <= last || id > seg.to {
			return nil, fmt.Errorf("bad entry after number %d", last)
		}
		entries = append(entries, connector.LogEntry{ID: id, Data: rest[:n:n]})
		body = rest[n+1:]
		last = id
	}
	return entries, nil
}

// Merging: of the newest segments, those smaller than a limit and about as large as one
// another are joined once there are mergeCount of them; the limit grows by the same
// factor. An entry is rewritten about once a level, and segments above mergeMax are left alone: what is read at once stays
// below mergeCount times that.
const (
	mergeCount = 8
	mergeFirst = 32 << 10
	mergeMax   = 2 << 20
)

// merge joins small segments and removes left-overs. What replaces a file is
// durable before the file goes.
func (s *segments) merge() error {
	live, stale, err := s.list()
	if err != nil {
		return err
	}
	for limit := int64(mergeFirst); limit <= mergeMax; limit *= mergeCount {
		run := evenRun(live, limit)
		if len(run) < mergeCount {
			continue
		}
		joined, err := s.join(run)
		if err != nil {
			return err
		}
		stale = append(stale, run...)
		live = append(slices.Clone(live[:len(live)-len(run)]), joined)
	}
	for _, seg := range stale {
		if err := s.fs.Remove(s.path(seg)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// evenRun is the newest segments, all smaller than limit and the oldest no larger than
// the others together: a segment that is joined becomes part of one at least twice its
// size, so that no entry is rewritten more often than its segment can double.
func evenRun(live []segment, limit int64) []segment {
	at, sum := len(live), int64(0)
	for at > 0 && live[at-1].size < limit {
		at--
		sum += live[at].size
	}
	for ; at < len(live) && live[at].size > sum-live[at].size; at++ {
		sum -= live[at].size
	}
	return live[at:]
}

// join writes the entries of all of run as one segment.
func (s *segments) join(run []segment) (segment, error) {
	joined := segment{from: run[0].from, to: run[len(run)-1].to}
	var all []connector.LogEntry
	for _, seg := range run {
		entries, err := s.read(seg)
		if err != nil {
			return segment{}, err
		}
		all = append(all, entries...)
	}
	if err := s.write(joined, all); err != nil {
		return segment{}, err
	}
	info, err := s.fs.Stat(s.path(joined))
	if err != nil {
		return segment{}, err
	}
	joined.size = info.Size()
	return joined, nil
}

// last is the newest number that a segment covers, -1 if there is none.
func (s *segments) last() (int64, error) {
	live, _, err := s.list()
	if err != nil || len(live) == 0 {
		return -1, err
	}
	return live[len(live)-1].to, nil
}

// each calls visit for the entries of (after, upto], in order, until it says false.
func (s *segments) each(after, upto int64, visit func(connector.LogEntry) bool) error {
	live, _, err := s.list()
	if err != nil {
		return err
	}
	_, err = s.eachOf(live, after, upto, visit)
	return err
}

// eachOf is each over listed segments; it reports whether visit wants more.
func (s *segments) eachOf(live []segment, after, upto int64, visit func(connector.LogEntry) bool) (bool, error) {
	for _, seg := range live {
		if seg.to <= after || seg.from > upto {
			continue
		}
		entries, err := s.read(seg)
		if err != nil {
			return false, err
		}
		for _, e := range entries {
			if e.ID > after && e.ID <= upto && !visit(e) {
				return false, nil
			}
		}
	}
	return true, nil
}

// everything is an upper bound for each.
const everything = math.MaxInt64
