package tidemill

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
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
	// ErrStopped is of a query that was stopped before it did what was asked of it.
	ErrStopped = incremental.ErrStopped
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
	// PanicError is a panic of what a user handed over: which part, with what value, and
	// the stack, which its text leaves out.
	PanicError = columnar.PanicError
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
// what was interrupted, panicked or failed within a batch; what was wrong before anything
// ran; else a failure.
func KindOf(err error) ErrorKind {
	var (
		refused  *connector.RefusedError
		batch    *incremental.BatchError
		record   *connector.RecordError
		bind     *function.BindError
		panicked *columnar.PanicError
		file     *fs.PathError
	)
	switch {
	case err == nil:
		return NoError
	case isAny(err, ErrCorrupt, ErrLocked, ErrIncompatible), errors.As(err, &refused):
		return RefusalError
	case isAny(err, context.Canceled, context.DeadlineExceeded), errors.As(err, &panicked):
		return FailedError
	case errors.As(err, &bind):
		return UsageError // also where a batch was the first to look
	case errors.As(err, &batch), errors.As(err, &record):
		return FailedError
	case errors.As(err, &file) && !isAny(err, fs.ErrNotExist, fs.ErrInvalid, syscall.ENAMETOOLONG, syscall.ENOTDIR) && !isStated(err):
		return FailedError // a file met while a statement was planned cannot be read
	case isStated(err), isMistake(err):
		return UsageError
	}
	return FailedError
}

// isStated says whether an error says itself that it is one of usage, whatever the
// filesystem said below it.
func isStated(err error) bool {
	var option *connector.OptionError
	var noFiles *connector.NoFilesError
	return errors.As(err, &option) || errors.As(err, &noFiles)
}

// isMistake says whether an error is about what was asked for: the text, the plan, a name.
func isMistake(err error) bool {
	var (
		text      *sql.Error
		texts     sql.ErrorList
		unknown   *logical.UnknownColumnError
		ambiguous *logical.AmbiguousColumnError
		usage     *logical.UsageError
	)
	return errors.As(err, &text) || errors.As(err, &texts) || errors.As(err, &unknown) || errors.As(err, &ambiguous) ||
		errors.As(err, &usage) || errors.Is(err, ErrUnsupported)
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}
