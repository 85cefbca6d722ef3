package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/internal/vfs"
)

// StateDir is the directory of an operator's state files. Different operators have
// different ones.
func (d *Dir) StateDir(operator string) string { return stateDir(d.path, operator) }

func stateDir(dir, operator string) string {
	return path.Join(dir, stateName, operatorDirName(operator))
}

// maxDirName bounds the names of operator directories; systems end at 255 bytes.
const maxDirName = 120

// operatorDirName makes a name that is safe on every filesystem: letters, digits
// and a few signs stay, the rest is written %XX. Names that only differ in case, or
// are long, get a hash, too.
func operatorDirName(operator string) string {
	var b strings.Builder
	plain := true
	for i := 0; i < len(operator); i++ {
		c := operator[i]
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == ',' || c == '(' || c == ')' || c == '=':
			b.WriteByte(c)
		case 'A' <= c && c <= 'Z':
			b.WriteByte(c)
			plain = false
		case c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	if plain && len(name) <= maxDirName && name != "" && !strings.HasSuffix(name, ".tmp") {
		return name
	}
	return name[:min(len(name), maxDirName)] + "-" + HashBytes([]byte(operator))[:8]
}

// stateSuffix ends the names of state files: any Parquet tool opens them.
const stateSuffix = ".parquet"

// StateFileName is the name of a state file in its operator's directory:
//
//	groups.000000000013.change.parquet
//	groups.000000000008-000000000013.change.parquet   (of several batches)
//	groups.000000000013.snapshot.parquet
//
// The number is the version it leads to. The same arguments give the same name, so
// a batch that is run again overwrites what it left.
func StateFileName(table string, kind FileKind, from, to int64) string {
	if kind == Change && from != to-1 {
		return fmt.Sprintf("%s.%012d-%012d.%s%s", table, from, to, kind, stateSuffix)
	}
	return fmt.Sprintf("%s.%012d.%s%s", table, to, kind, stateSuffix)
}

// StatePath is the path of a state file.
func (d *Dir) StatePath(operator string, f StateFile) string {
	return path.Join(d.StateDir(operator), f.Name)
}

// WriteState writes a state file of the operator, durably. file says table, kind
// and versions (and rows and eviction bound, if they are known before; write may
// set them through what it closes over, and the caller after); name, size and hash
// are filled in. After a crash the file is there whole or not at all; nothing
// believes in it before prepared/N names it.
func (d *Dir) WriteState(operator string, file StateFile, write func(w io.Writer) error) (StateFile, error) {
	dir := d.StateDir(operator)
	if err := vfs.MkdirAll(d.fs, dir); err != nil {
		return file, err
	}
	file.Name = StateFileName(file.Table, file.Kind, file.From, file.To)
	sum := hashWriter{h: xxh3.New()}
	err := vfs.WriteAtomicFunc(d.fs, path.Join(dir, file.Name), func(w io.Writer) error {
		sum.w = w
		return write(&sum)
	})
	if err != nil {
		return file, err
	}
	file.Size = sum.size
	file.Hash = sum.hash()
	return file, nil
}

// hashWriter hashes what passes through it.
type hashWriter struct {
	w    io.Writer
	h    *xxh3.Hasher
	size int64
}

func (w *hashWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	_, _ = w.h.Write(p[:n])
	w.size += int64(n)
	return n, err
}

func (w *hashWriter) hash() string {
	sum := w.h.Sum128().Bytes()
	return fmt.Sprintf("%x", sum[:])
}

// OpenState opens a state file for reading after it checked its size and hash:
// ErrCorrupt if it is missing or not what the commit names.
func (d *Dir) OpenState(operator string, file StateFile) (vfs.File, error) {
	if err := checkStateFile(d.fs, d.StateDir(operator), file); err != nil {
		return nil, err
	}
	return d.fs.Open(d.StatePath(operator, file))
}

// VerifyState reads every state file that a commit names and compares size and
// hash; the error is ErrCorrupt and names the first file that differs.
func (d *Dir) VerifyState(c *CommitEntry) error {
	for _, op := range c.State {
		for _, f := range op.Files {
			if err := checkStateFile(d.fs, d.StateDir(op.Operator), f); err != nil {
				return err
			}
		}
	}
	return nil
}

var copyBuffers = sync.Pool{New: func() any { return new([1 << 17]byte) }}

func checkStateFile(fsys vfs.FS, dir string, file StateFile) error {
	name := path.Join(dir, file.Name)
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return corrupt(name, NoBatch, "the file is missing", nil)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	sum := hashWriter{w: io.Discard, h: xxh3.New()}
	// A buffer is given since the hasher and Discard would make small ones.
	buf := copyBuffers.Get().(*[1 << 17]byte)
	defer copyBuffers.Put(buf)
	if _, err := io.CopyBuffer(&sum, struct{ io.Reader }{f}, buf[:]); err != nil {
		return err
	}
	switch {
	case sum.size != file.Size:
		return corrupt(name, NoBatch, fmt.Sprintf("it has %d bytes, its commit says %d", sum.size, file.Size), nil)
	case sum.hash() != file.Hash:
		return corrupt(name, NoBatch, "its hash is not the one its commit names", nil)
	}
	return nil
}

// SnapshotPolicy says when files of a table are to be joined. The zero value is the rule of
// the engine: into a snapshot when more than half of the rows in the files were replaced or
// removed by later ones, and the changes are more than 4 MiB, or when there are 16 changes
// and all is small; the newest ones when there are 64. State that only grows is written
// once more in all, and then as often as its size doubles.
type SnapshotPolicy struct {
	// Never, Always and Changes are for tests: Changes joins any two changes, but never
	// the first file.
	Never, Always, Changes bool
}

// The rule. Changes that are read in milliseconds are not worth a snapshot, whatever the
// base: a small state that changes wholly in each batch would be written twice each time.
// But each of them stands in every commit, so a state that is written in a moment has few.
const (
	joinedFiles   = 64
	snapshotSmall = 4 << 20
	fewFiles      = 16
	fewBytes      = 1 << 20
)

// Due reports whether the files of one table from first on, in the order of
// OperatorState.Files, should be joined; live is the number of rows they make up. From the
// first file on they become a snapshot. Without one the first change is the base.
func (p SnapshotPolicy) Due(files []StateFile, live int64) (first int, due bool) {
	if len(files) < 2 || p.Never {
		return 0, false
	}
	var changed, rows int64
	for _, f := range files[1:] {
		changed += f.Size
		rows += f.Rows
	}
	switch {
	case p.Always, len(files)-1 >= fewFiles && changed+files[0].Size < fewBytes, changed > snapshotSmall && rows+files[0].Rows-live > live:
		return 0, true
	case p.Changes:
		return 1, len(files) > 2
	case len(files)-1 < joinedFiles:
		return 0, false
	}
	// A file larger than all after it is left alone.
	for behind := changed; first < len(files)-2 && files[first].Size > behind; {
		first++
		behind -= files[first].Size
	}
	return first, true
}

// TableFiles returns the files of one table, in order.
func (s OperatorState) TableFiles(table string) []StateFile {
	var files []StateFile
	for i, f := range s.Files {
		if f.Table == table {
			if files == nil {
				files = make([]StateFile, 0, len(s.Files)-i)
			}
			files = append(files, f)
		}
	}
	return files
}

// Bytes is the size of all files.
func (s OperatorState) Bytes() int64 {
	var n int64
	for _, f := range s.Files {
		n += f.Size
	}
	return n
}

// CollectState removes the state files that neither a retained commit, nor a
// prepared batch, nor inUse names. What replaces a file is durable before this is
// called. A crash leaves some of them, to be removed by the next call.
func (d *Dir) CollectState(inUse ...OperatorState) error {
	reached := reachedFiles{}
	reached.add(inUse...)
	ids, err := d.commits.IDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		c, err := d.committed(id)
		if err != nil {
			return err
		}
		reached.add(c.State...)
	}
	for _, r := range d.prepared.Range(0, everything) {
		if r.Err != nil {
			return r.Err
		}
		reached.add(r.Value.State...)
	}
	root := d.file(stateName)
	ops, err := d.fs.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, op := range ops {
		if !op.IsDir() {
			continue
		}
		if err := d.collectDir(path.Join(root, op.Name()), reached[op.Name()]); err != nil {
			return err
		}
	}
	return nil
}

// reachedFiles are the names of state files by the name of their directory.
type reachedFiles map[string]map[string]bool

func (r reachedFiles) add(states ...OperatorState) {
	for _, op := range states {
		dir := operatorDirName(op.Operator)
		if r[dir] == nil {
			r[dir] = map[string]bool{}
		}
		for _, f := range op.Files {
			r[dir][f.Name] = true
		}
	}
}

// collectDir removes what is not reached from one operator's directory. Only names
// that a state file can have are touched.
func (d *Dir) collectDir(dir string, reached map[string]bool) error {
	files, err := d.fs.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.IsDir() || reached[f.Name()] || !strings.HasSuffix(f.Name(), stateSuffix) {
			continue
		}
		if err := d.fs.Remove(path.Join(dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
