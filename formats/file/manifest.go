package file

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// controlDir is where an output directory keeps what is not data.
const controlDir = ".tidemill"

// Kinds of manifest entries.
const (
	kindAdd      = "add"      // files are added
	kindComplete = "complete" // the files of the output proper are replaced by these
	kindReplace  = "replace"  // Removed are replaced by Files: data files were compacted
)

// outFile is one file of the output.
type outFile struct {
	// Side is "" for the output proper, late or bad for a side output.
	Side string `json:"side,omitempty"`
	// Path is relative to the directory of the (side) output.
	Path string `json:"path"`
	// Staged is the file's name in staging.
	Staged string `json:"staged,omitempty"`
	Size   int64  `json:"size"`
	Rows   int64  `json:"rows"`
	Hash   string `json:"hash"` // codec.ContentHash
}

// manifestEntry is what one batch did to the output.
type manifestEntry struct {
	Kind    string
	Batch   int64
	Files   []outFile
	Removed []string
}

// A manifest file is JSON lines: for each entry a head, then its files; the last line
// is the checksum of all bytes before it. A compact file begins with a head of kind
// compact, whose batch is the newest one it holds.
type manifestLine struct {
	Kind    string   `json:"kind,omitempty"`
	Batch   int64    `json:"batch"`
	Files   int      `json:"files"`
	Removed []string `json:"removed,omitempty"`
}

const kindCompact = "compact"

// errCorrupt marks a manifest file that is not what was written.
var errCorrupt = errors.New("damaged")

// manifestWriter writes manifest lines and their checksum.
type manifestWriter struct {
	w   *bufio.Writer
	sum *xxh3.Hasher
}

func newManifestWriter(w io.Writer) *manifestWriter {
	sum := xxh3.New()
	return &manifestWriter{bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16), sum}
}

func (m *manifestWriter) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := m.w.Write(text); err != nil {
		return err
	}
	return m.w.WriteByte('\n')
}

func (m *manifestWriter) entry(e manifestEntry) error {
	if err := m.line(manifestLine{Kind: e.Kind, Batch: e.Batch, Files: len(e.Files), Removed: e.Removed}); err != nil {
		return err
	}
	for i := range e.Files {
		if err := m.line(&e.Files[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m *manifestWriter) close() error {
	if err := m.w.Flush(); err != nil {
		return err
	}
	if _, err := m.w.Write(sumLine(m.sum.Sum128())); err != nil {
		return err
	}
	return m.w.Flush()
}

func encodeEntry(e manifestEntry) ([]byte, error) {
	var b bytes.Buffer
	w := newManifestWriter(&b)
	if err := w.entry(e); err != nil {
		return nil, err
	}
	if err := w.close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// decodeEntries reads the entries of a manifest file; upto is the batch of a compact
// head, -1 if there is none.
func decodeEntries(data []byte) (entries []manifestEntry, upto int64, err error) {
	body, err := checkSum(data)
	if err != nil {
		return nil, -1, err
	}
	upto = -1
	for first := true; len(body) > 0; first = false {
		var head manifestLine
		if body, err = takeLine(body, &head); err != nil {
			return nil, -1, err
		}
		switch head.Kind {
		case kindCompact:
			if !first {
				return nil, -1, fmt.Errorf("%w: a compact head inside", errCorrupt)
			}
			upto = head.Batch
			continue
		case kindAdd, kindComplete, kindReplace:
		default:
			return nil, -1, fmt.Errorf("%w: entry of unknown kind %q", errCorrupt, head.Kind)
		}
		e := manifestEntry{Kind: head.Kind, Batch: head.Batch, Removed: head.Removed}
		for range head.Files {
			var f outFile
			if body, err = takeLine(body, &f); err != nil {
				return nil, -1, err
			}
			if f.Path == "" {
				return nil, -1, fmt.Errorf("%w: a file without a path", errCorrupt)
			}
			e.Files = append(e.Files, f)
		}
		entries = append(entries, e)
	}
	return entries, upto, nil
}

func takeLine(body []byte, v any) (rest []byte, err error) {
	line, rest, ok := bytes.Cut(body, []byte{'\n'})
	if !ok {
		return nil, fmt.Errorf("%w: it is cut", errCorrupt)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return nil, fmt.Errorf("%w: %v", errCorrupt, err)
	}
	return rest, nil
}

// sumLine is the last line of a file whose other bytes have this checksum.
func sumLine(sum xxh3.Uint128) []byte {
	b := sum.Bytes()
	return fmt.Appendf(nil, "{\"xxh3\":%q}\n", hex.EncodeToString(b[:]))
}

// checkSum returns what stands before the last line, if that is its checksum.
func checkSum(data []byte) ([]byte, error) {
	end := bytes.LastIndexByte(bytes.TrimSuffix(data, []byte{'\n'}), '\n') + 1
	if !bytes.Equal(data[end:], sumLine(xxh3.Hash128(data[:end]))) {
		return nil, fmt.Errorf("%w: its checksum is missing or wrong", errCorrupt)
	}
	return data[:end], nil
}

const compactSuffix = ".compact"

// manifestNames is what the manifest directory holds, in order.
type manifestNames struct {
	entries []int64 // after compact
	compact int64   // -1: none
	stale   []string
}

// last is the newest batch that has an entry, -1 if there is none.
func (n manifestNames) last() int64 {
	if len(n.entries) > 0 {
		return n.entries[len(n.entries)-1]
	}
	return n.compact
}

// listManifest reads the names in dir. Entries that a compact file holds are stale.
func listManifest(fsys vfs.FS, dir string) (manifestNames, error) {
	names := manifestNames{compact: -1}
	list, err := fsys.ReadDir(dir)
	if err != nil {
		return names, err
	}
	var compacts []int64
	for _, e := range list {
		base, isCompact := strings.CutSuffix(e.Name(), compactSuffix)
		id, err := strconv.ParseInt(base, 10, 64)
		switch {
		case err != nil || id < 0 || strconv.FormatInt(id, 10) != base:
			continue // a temporary file, or a stranger's
		case isCompact:
			compacts = append(compacts, id)
			names.compact = max(names.compact, id)
		default:
			names.entries = append(names.entries, id)
		}
	}
	slices.Sort(names.entries)
	for len(names.entries) > 0 && names.entries[0] <= names.compact {
		names.stale = append(names.stale, strconv.FormatInt(names.entries[0], 10))
		names.entries = names.entries[1:]
	}
	for _, id := range compacts {
		if id < names.compact {
			names.stale = append(names.stale, strconv.FormatInt(id, 10)+compactSuffix)
		}
	}
	return names, names.check(fsys, dir)
}

// gapError is a manifest that lacks the entry of a batch. One that changes while it is
// listed may seem to.
type gapError struct {
	dir   string
	batch int64
}

func (e *gapError) Error() string {
	return fmt.Sprintf("%s: %v: the entry of batch %d is missing", e.dir, errCorrupt, e.batch)
}

func (e *gapError) Unwrap() error { return errCorrupt }

// check finds entries that were taken away.
func (n manifestNames) check(fsys vfs.FS, dir string) error {
	want := n.compact + 1
	for i, id := range n.entries {
		if i == 0 && n.compact < 0 && id > 0 {
			var err error
			if want, err = oldestEntry(fsys, dir, id); err != nil {
				return err
			}
		}
		if id != want {
			return &gapError{dir, want}
		}
		want = id + 1
	}
	return nil
}

// oldestEntry is the batch that the manifest begins with, or found where nothing says so:
// the table of a complete-mode output of an older release may begin anywhere.
func oldestEntry(fsys vfs.FS, dir string, found int64) (int64, error) {
	id, ok, err := readIdentity(fsys, path.Dir(path.Dir(dir)))
	if errors.Is(err, errCorrupt) || err == nil && !ok {
		return found, nil // that is told apart
	}
	if id.First == nil && id.Mode == connector.Complete.String() {
		return found, nil
	}
	return id.first(), err
}

// readManifestFile reads one manifest file.
func readManifestFile(fsys vfs.FS, dir, name string) ([]manifestEntry, error) {
	name = path.Join(dir, name)
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	entries, _, err := decodeEntries(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return entries, nil
}

// readEntries reads every entry, in order.
func readEntries(fsys vfs.FS, dir string) ([]manifestEntry, error) {
	entries, _, err := readEntriesAfter(fsys, dir, -1)
	return entries, err
}

// readEntriesAfter reads the entries of the batches after one, in order, and tells which
// is the newest batch. A writer may compact meanwhile: then the listing is taken again.
func readEntriesAfter(fsys vfs.FS, dir string, after int64) (entries []manifestEntry, last int64, err error) {
	const tries = 10
	for try := 1; ; try++ {
		names, err := listManifest(fsys, dir)
		if err == nil {
			if entries, err = names.readAfter(fsys, dir, after); err == nil {
				return entries, names.last(), nil
			}
		}
		var gap *gapError
		if try == tries || !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &gap) {
			return nil, -1, err
		}
		// The directory itself may be gone, too.
		if _, dirErr := fsys.Stat(dir); dirErr != nil {
			return nil, -1, dirErr
		}
	}
}

func (n manifestNames) read(fsys vfs.FS, dir string) ([]manifestEntry, error) {
	return n.readAfter(fsys, dir, -1)
}

// readAfter reads the entries of the batches after one.
func (n manifestNames) readAfter(fsys vfs.FS, dir string, after int64) ([]manifestEntry, error) {
	var all []manifestEntry
	if n.compact > after {
		entries, err := readManifestFile(fsys, dir, strconv.FormatInt(n.compact, 10)+compactSuffix)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(entries, func(e manifestEntry) bool { return e.Batch <= after })
	}
	for _, id := range n.entries {
		if id <= after {
			continue
		}
		entries, err := readManifestFile(fsys, dir, strconv.FormatInt(id, 10))
		if err != nil {
			return nil, err
		}
		if len(entries) != 1 || entries[0].Batch != id {
			return nil, fmt.Errorf("%s: %w: it is not the entry of batch %d", path.Join(dir, strconv.FormatInt(id, 10)), errCorrupt, id)
		}
		all = append(all, entries[0])
	}
	return all, nil
}

// fold drops what later entries replaced. Batches stay, without files if they have
// none left.
func fold(entries []manifestEntry) []manifestEntry {
	complete := int64(-1) // the newest entry that replaces everything before it
	removed := map[string]int64{}
	for _, e := range entries {
		if e.Kind == kindComplete {
			complete = e.Batch
		}
		for _, p := range e.Removed {
			removed[p] = e.Batch
		}
	}
	if complete < 0 && len(removed) == 0 {
		return entries
	}
	out := make([]manifestEntry, len(entries))
	for i, e := range entries {
		kept := e
		kept.Files, kept.Removed = nil, nil
		for _, f := range e.Files {
			by, gone := removed[f.Path]
			if f.Side == "" && (e.Batch < complete || gone && by > e.Batch) {
				continue
			}
			kept.Files = append(kept.Files, f)
		}
		out[i] = kept
	}
	return out
}

// compactManifest folds every entry into one file, durably, then removes what it
// holds. A crash leaves entries that are in the compact file as well: readers pass
// over those.
func compactManifest(fsys vfs.FS, dir string) (manifestNames, error) {
	names, err := listManifest(fsys, dir)
	if err != nil {
		return names, err
	}
	entries, err := names.read(fsys, dir)
	if err != nil {
		return names, err
	}
	upto := names.last()
	name := path.Join(dir, strconv.FormatInt(upto, 10)+compactSuffix)
	err = vfs.WriteAtomicFunc(fsys, name, func(w io.Writer) error {
		m := newManifestWriter(w)
		if err := m.line(manifestLine{Kind: kindCompact, Batch: upto}); err != nil {
			return err
		}
		for _, e := range fold(entries) {
			if err := m.entry(e); err != nil {
				return err
			}
		}
		return m.close()
	})
	if err != nil {
		return names, err
	}
	if names, err = listManifest(fsys, dir); err != nil {
		return names, err
	}
	return names, removeStale(fsys, dir, names)
}

func removeStale(fsys vfs.FS, dir string, names manifestNames) error {
	for _, name := range names.stale {
		if err := fsys.Remove(path.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// leastCompacted is how many entries there are before compaction is worth it.
const leastCompacted = 64

// compactionDue says whether the entries since the last compact file outnumber half
// of what that holds.
func compactionDue(names manifestNames, least int) bool {
	return int64(len(names.entries)) > max(int64(least), (names.compact+1)/2)
}
