package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"

	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// identity binds an output directory to a query: the content of .tidemill/id.
type identity struct {
	Version    int    `json:"tidemill"`
	Query      string `json:"query"`
	Mode       string `json:"mode"`
	Checkpoint string `json:"checkpoint,omitempty"` // as the query wrote it, for messages
	// First is the number of the first batch; nil in outputs of older releases.
	First *int64 `json:"first,omitempty"`
	// Format, Columns and Written tell what the rows are. Untold says that there may be
	// rows of other columns, and then Written is nil, as it is in outputs of older releases.
	Format  string   `json:"format,omitempty"`
	Columns string   `json:"columns,omitempty"`
	Untold  bool     `json:"untold,omitempty"`
	Written *written `json:"written,omitempty"`
	// Kept are the rows that the query keeps beside the output, "late" and "bad".
	Kept []string `json:"kept,omitempty"`
	// Sum is that of the rest; "" in outputs of older releases.
	Sum string `json:"sum,omitempty"`
}

// sum is what Sum should be.
func (id identity) sum() (string, error) {
	id.Sum = ""
	text, err := json.Marshal(id)
	return fmt.Sprintf("%016x", xxh3.Hash(text)), err
}

// isWhole says whether id is as it was written. Older releases, which wrote no sum, did
// not know of First either.
func (id *identity) isWhole() bool {
	sum, err := id.sum()
	return err == nil && id.Query != "" && (id.Sum == sum || id.Sum == "" && id.First == nil)
}

// first is the number of the first batch, of which the manifest has the oldest entry.
func (id *identity) first() int64 {
	if id.First == nil {
		return 0
	}
	return *id.First
}

const identityVersion = 1

// Names in the control directory.
const (
	idName      = "id"
	lockName    = "lock"
	stagingName = "staging"
	pendingName = "pending"
	manifestDir = "manifest"
)

// readIdentity reads the identity of an output directory; ok is false if there is
// none.
func readIdentity(fsys vfs.FS, dir string) (id identity, ok bool, err error) {
	name := path.Join(dir, controlDir, idName)
	data, err := vfs.ReadFile(fsys, name)
	if isAbsent(err) {
		return id, false, nil
	}
	if err != nil {
		return id, false, err
	}
	if err := json.Unmarshal(data, &id); err != nil || id.Version <= identityVersion && !id.isWhole() {
		return id, false, fmt.Errorf("%s: %w", name, errCorrupt)
	}
	if id.Version > identityVersion {
		return id, false, fmt.Errorf("%s: it was written by a newer release (version %d)", name, id.Version)
	}
	return id, true, nil
}

// bind opens the output directory for its one writer: it makes what is missing of a
// new one, takes the lock and compares the identity.
func (s *Sink) bind() error {
	control := path.Join(s.dir, controlDir)
	// Asked before anything is made, so that what is refused is left as it was.
	if _, err := s.isFresh(); err != nil {
		return err
	}
	if err := vfs.MkdirAll(s.fs, control); err != nil {
		return s.refuse(err, "it cannot be made", "")
	}
	var err error
	if s.lock, err = s.fs.Lock(path.Join(control, lockName)); err != nil {
		if errors.Is(err, vfs.ErrLocked) {
			return s.refuse(err, "another query is writing it", "stop that one first, or write elsewhere")
		}
		return s.refuse(err, "it cannot be locked", "")
	}
	// Asked again: another process may have made it, and gone, in between.
	fresh, err := s.isFresh()
	if err != nil {
		return err
	}
	if fresh {
		return s.create(control)
	}
	return s.compareIdentity(control)
}

// isFresh says whether the directory was never an output, or was deleted: nothing
// tells which query it belongs to.
func (s *Sink) isFresh() (bool, error) {
	control := path.Join(s.dir, controlDir)
	if info, err := s.fs.Stat(s.dir); err == nil && !info.IsDir() {
		return false, s.refuse(nil, "it is a file, not a directory", "name a directory")
	}
	_, ok, err := readIdentity(s.fs, s.dir)
	if err != nil {
		return false, s.refuse(err, "it cannot be used", "delete "+s.dir+" and the checkpoint"+named(s.env.Checkpoint)+" to start over")
	}
	if ok {
		return false, nil
	}
	if list, err := s.fs.ReadDir(path.Join(control, manifestDir)); err == nil && len(list) > 0 {
		return false, s.refuse(nil, controlDir+"/"+idName+" is gone", "delete "+s.dir+" and the checkpoint"+named(s.env.Checkpoint)+" to start over")
	}
	if s.env.Committed > 0 {
		if s.env.Mode == connector.Complete {
			return true, nil // it is written again
		}
		return false, s.refuse(nil, fmt.Sprintf("the output of %d committed batches is gone", s.env.Committed),
			"bring it back, or delete the checkpoint"+named(s.env.Checkpoint)+" too, to start over")
	}
	stray, err := s.strayPart()
	if err != nil {
		return false, s.refuse(err, "it cannot be listed", "")
	}
	if stray != "" {
		return false, s.refuse(nil, "it holds output of another query ("+stray+") without its "+controlDir, "delete "+s.dir+" to start over, or write elsewhere")
	}
	return true, nil
}

// strayPart finds a file named as output files are.
func (s *Sink) strayPart() (string, error) {
	found := ""
	errFound := errors.New("found")
	err := vfs.Walk(s.fs, s.dir, func(name string, e fs.DirEntry) error {
		switch {
		case e.IsDir() && isHidden(e.Name()):
			return fs.SkipDir
		case !e.IsDir() && isPartName(e.Name()):
			found = name
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return found, nil
}

// isPartName says whether a name has the form part-<20 digits>-<number>… or part-000.….
func isPartName(name string) bool {
	var batch, number int64
	n, _ := fmt.Sscanf(name, "part-%20d-%d.", &batch, &number)
	return n == 2 || len(name) > 9 && name[:9] == "part-000."
}

// create makes the directories of a new output, the identity last: it says that the
// rest is whole.
func (s *Sink) create(control string) error {
	if err := s.makeControl(stagingName, pendingName, manifestDir); err != nil {
		return s.refuse(err, "it cannot be made", "")
	}
	id := identity{Query: s.env.QueryID, Mode: s.env.Mode.String(), Checkpoint: s.env.Checkpoint, First: &s.env.Committed, Kept: s.env.Kept}
	if err := s.describe(&id, s.env.Committed); err != nil {
		return err
	}
	return s.writeIdentity(control, id)
}

// record brings the identity up to date with what the query's rows are now.
func (s *Sink) record() error {
	control := s.control("")
	id, ok, err := readIdentity(s.fs, s.dir)
	if err != nil || !ok {
		return s.refuse(err, "it changed while it was opened", "try again")
	}
	now := id
	now.Kept = s.env.Kept
	if err := s.describe(&now, s.last+1); err != nil || reflect.DeepEqual(id, now) {
		return err
	}
	return s.writeIdentity(control, now)
}

func (s *Sink) writeIdentity(control string, id identity) error {
	id.Version = identityVersion
	var err error
	if id.Sum, err = id.sum(); err != nil {
		return err
	}
	text, err := json.Marshal(id)
	if err != nil {
		return err
	}
	if err := vfs.WriteAtomic(s.fs, path.Join(control, idName), append(text, '\n')); err != nil {
		return s.refuse(err, "it cannot be written", "")
	}
	return nil
}

func (s *Sink) compareIdentity(control string) error {
	id, ok, err := readIdentity(s.fs, s.dir)
	if err != nil || !ok {
		return s.refuse(err, "it changed while it was opened", "try again")
	}
	if id.Query != s.env.QueryID {
		return s.refuse(nil, fmt.Sprintf("it is the output of another query%s (id %s, this one is %s)", checkpointOf(id), id.Query, s.env.QueryID),
			"write elsewhere, use that query's checkpoint, or delete "+s.dir+" to start over")
	}
	if id.Mode != s.env.Mode.String() {
		return s.refuse(nil, fmt.Sprintf("it was written with output_mode = '%s', not '%s'", id.Mode, s.env.Mode),
			"write elsewhere, or delete it and the checkpoint to start over")
	}
	if _, err := s.fs.Stat(path.Join(control, manifestDir)); err != nil {
		return s.refuse(nil, "its manifest ("+path.Join(control, manifestDir)+") is gone",
			"delete "+s.dir+" and the checkpoint"+named(s.env.Checkpoint)+" to start over")
	}
	if err := s.makeControl(stagingName, pendingName); err != nil {
		return s.refuse(err, "it cannot be written", "")
	}
	return nil
}

// makeControl makes directories in the control directory.
func (s *Sink) makeControl(names ...string) error {
	dirs := make([]string, len(names))
	for i, name := range names {
		dirs[i] = s.control(name)
	}
	return vfs.MkdirAll(s.fs, dirs...)
}

func checkpointOf(id identity) string {
	if id.Checkpoint == "" {
		return ""
	}
	return " with checkpoint " + id.Checkpoint
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return " " + name
}

func (s *Sink) refuse(err error, reason, remedy string) error {
	return &connector.RefusedError{Path: s.dir, Reason: reason, Remedy: remedy, Err: err}
}

// unlock gives the lock back.
func unlock(c io.Closer) error {
	if c == nil {
		return nil
	}
	return c.Close()
}
