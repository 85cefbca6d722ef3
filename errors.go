package tidemill

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/sql"
)

// Version is the engine's version, kept in checkpoints and files.
const Version = "0.1.0"

// The errors a caller may test for with errors.Is.
var (
	// ErrUnsupported is legal SQL that we, or streaming, do not support.
	ErrUnsupported = logical.ErrUnsupported
	// ErrMemory is a query that asked for more than memory_limit.
	ErrMemory = columnar.ErrMemory
	// ErrCorrupt is a file of a checkpoint that is damaged.
	ErrCorrupt = checkpoint.ErrCorrupt
	// ErrLocked is a checkpoint that another query holds.
	ErrLocked = checkpoint.ErrLocked
	// ErrIncompatible is a checkpoint of another query, or of other pinned settings.
	ErrIncompatible = checkpoint.ErrIncompatible
)

// The types of errors that carry details, for errors.As.
type (
	// SQLError is a mistake in a text: place, line, hint.
	SQLError = sql.Error
	// RecordError is a record or file that cannot be decoded.
	RecordError = connector.RecordError
	// OptionError is a wrong option.
	OptionError = connector.OptionError
	// RefusedError is an output or checkpoint that refuses.
	RefusedError = connector.RefusedError
	// BatchError says in which batch of which query something failed.
	BatchError = incremental.BatchError
)

// ErrorKind sorts errors as the exit codes of the command line do.
type ErrorKind int

// The kinds; their numbers are the exit codes.
const (
	NoError      ErrorKind = 0
	FailedError  ErrorKind = 1 // the query failed while running
	UsageError   ErrorKind = 2 // bad SQL, bad options: found before anything ran
	RefusalError ErrorKind = 3 // the checkpoint or the output refuses
)

// KindOf sorts an error: what a checkpoint or an output refuses, wherever it was found;
// what failed within a batch; what was wrong before anything ran; else a failure.
func KindOf(err error) ErrorKind {
	if err == nil {
		return NoError
	}
	for _, refusal := range []error{ErrCorrupt, ErrLocked, ErrIncompatible} {
		if errors.Is(err, refusal) {
			return RefusalError
		}
	}
	var (
		refused   *connector.RefusedError
		option    *connector.OptionError
		noFiles   *connector.NoFilesError
		text      *sql.Error
		texts     sql.ErrorList
		batch     *incremental.BatchError
		unknown   *logical.UnknownColumnError
		ambiguous *logical.AmbiguousColumnError
		usage     *usageError
		record    *connector.RecordError
		file      *fs.PathError
	)
	switch {
	case errors.As(err, &refused):
		return RefusalError
	case errors.As(err, &batch), errors.As(err, &record):
		return FailedError
	case errors.As(err, &file) && !misspelt(err) && !errors.As(err, &noFiles) && !errors.As(err, &option) && !errors.As(err, &usage):
		return FailedError // a file met while a statement was planned cannot be read
	case errors.As(err, &option), errors.As(err, &noFiles), errors.As(err, &text), errors.As(err, &texts),
		errors.As(err, &unknown), errors.As(err, &ambiguous), errors.As(err, &usage), errors.Is(err, ErrUnsupported):
		return UsageError
	}
	return FailedError
}

// misspelt says that a path cannot name anything, which is not the file's fault.
func misspelt(err error) bool {
	for _, e := range []error{fs.ErrNotExist, fs.ErrInvalid, syscall.ENAMETOOLONG, syscall.ENOTDIR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// usageError is bad usage that no other package has a type for.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }
