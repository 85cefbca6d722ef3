package checkpoint

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of errors, to be tested with errors.Is. The types below carry the
// details.
var (
	// ErrCorrupt is what every *CorruptError is.
	ErrCorrupt = errors.New("checkpoint is corrupt")
	// ErrLocked is what every *LockedError is.
	ErrLocked = errors.New("checkpoint is locked")
	// ErrIncompatible is what every *IncompatibleError is.
	ErrIncompatible = errors.New("checkpoint is incompatible")
	// ErrExists says that a log has an entry of that number already: another
	// process writes to the checkpoint, or the caller forgot to withdraw it.
	ErrExists = errors.New("entry exists already")
)

// NoBatch stands for "no batch" where a batch number is wanted.
const NoBatch int64 = -1

// CorruptError says that a file of a checkpoint is damaged or missing.
type CorruptError struct {
	Path   string // the file
	Batch  int64  // the batch it belongs to, or NoBatch
	Reason string
	Err    error // may be nil
}

// Error names file, batch and reason.
func (e *CorruptError) Error() string {
	text := fmt.Sprintf("checkpoint file %q", e.Path)
	if e.Batch != NoBatch {
		text += fmt.Sprintf(" (batch %d)", e.Batch)
	}
	text += ": " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is reports whether target is ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap returns the cause, or nil.
func (e *CorruptError) Unwrap() error { return e.Err }

// LockedError says that another process, or another query of this one, uses the
// checkpoint.
type LockedError struct {
	Path string // the checkpoint
	Err  error
}

// Error names the checkpoint.
func (e *LockedError) Error() string {
	return fmt.Sprintf("checkpoint %q is in use by another run; wait until that has ended, or stop it", e.Path)
}

// Is reports whether target is ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// Unwrap returns the cause.
func (e *LockedError) Unwrap() error { return e.Err }

// IncompatibleError says that a whole checkpoint cannot be used by this query or
// this version of the engine.
type IncompatibleError struct {
	Path    string   // the checkpoint, or a file in it
	Batch   int64    // NoBatch if it is none in particular
	Reasons []string // one or more; each says what was and what is
	// Query says that the query or its settings changed; the checkpoint is sound.
	Query bool
}

// Error names the checkpoint and the reasons, the first few of many.
func (e *IncompatibleError) Error() string {
	const most = 8
	reasons := e.Reasons
	more := ""
	if len(reasons) > most {
		more = fmt.Sprintf("; and %d more", len(reasons)-most)
		reasons = reasons[:most]
	}
	text := fmt.Sprintf("checkpoint %q", e.Path)
	if e.Batch != NoBatch {
		text += fmt.Sprintf(" (batch %d)", e.Batch)
	}
	return text + " does not fit: " + strings.Join(reasons, "; ") + more
}

// Is reports whether target is ErrIncompatible.
func (e *IncompatibleError) Is(target error) bool { return target == ErrIncompatible }

func corrupt(path string, batch int64, reason string, err error) error {
	return &CorruptError{Path: path, Batch: batch, Reason: reason, Err: err}
}

func incompatible(path string, reasons ...string) error {
	return &IncompatibleError{Path: path, Batch: NoBatch, Reasons: reasons}
}

// NoCheckpointError says that a directory is no checkpoint.
type NoCheckpointError struct {
	Dir    string
	Absent bool // there is no such directory
	Err    error
}

// Why is what is missing.
func (e *NoCheckpointError) Why() string {
	if e.Absent {
		return "there is no such directory"
	}
	return "it has neither metadata nor offsets"
}

func (e *NoCheckpointError) Error() string {
	return fmt.Sprintf("%q is not a checkpoint: %s", e.Dir, e.Why())
}

func (e *NoCheckpointError) Unwrap() error { return e.Err }
