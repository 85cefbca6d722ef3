package connector

import (
	"fmt"

	"github.com/tidemill/tidemill/columnar"

	"github.com/apache/arrow-go/v18/arrow"
)

// OptionError says that an option, or the use of a connector, is wrong: bad usage,
// found before anything runs (exit code 2).
type OptionError struct {
	Key      string // "" if it is no single option
	Value    string
	HasValue bool
	Reason   string
	Err      error
}

func (e *OptionError) Error() string {
	switch {
	case e.Key == "":
		return e.Reason
	case e.HasValue:
		return fmt.Sprintf("option %s = %q: %s", e.Key, e.Value, e.Reason)
	}
	return fmt.Sprintf("option %s: %s", e.Key, e.Reason)
}

func (e *OptionError) Unwrap() error { return e.Err }

// NoFilesError says that a path matches no file. For a bounded table that is bad
// usage (exit code 2); a stream without columns cannot begin before there is one.
type NoFilesError struct {
	Path string
	// Why says more: the path does not exist, or what it holds was passed over.
	Why string
	// Stream is the stream whose path it is, if it is one.
	Stream string
}

func (e *NoFilesError) Error() string {
	if e.Why != "" {
		return fmt.Sprintf("no file to read at %q: %s", e.Path, e.Why)
	}
	return fmt.Sprintf("no file to read at %q", e.Path)
}

// RefusedError says that an output or a checkpoint refuses (exit code 3): it is
// another query's, locked, incomplete, or cannot be used. Remedy says what to do.
type RefusedError struct {
	Path   string
	Reason string
	Remedy string
	Err    error
}

func (e *RefusedError) Error() string {
	s := e.Reason
	if e.Path != "" {
		s = e.Path + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *RefusedError) Unwrap() error { return e.Err }

// SchemaGrownError is returned by Source.LatestOffset where new columns are to be
// added (schema_evolution = 'add') and files of the next batch have some. Nothing
// was logged. The query goes on by being planned anew over a source opened with
// Pinned.
type SchemaGrownError struct {
	Stream string // its name
	File   string // the first file that has new columns
	Schema *arrow.Schema
	Pinned map[string]string
}

func (e *SchemaGrownError) Error() string {
	return fmt.Sprintf("%s: has new columns; the columns are now %s", e.File, columnar.SchemaString(e.Schema))
}
