package logical

import (
	"errors"
	"fmt"

	"github.com/tidemill/tidemill/logical/expr"
)

// ErrUnsupported is matched by every *UnsupportedError.
var ErrUnsupported = errors.New("not supported")

// UnsupportedError says that legal SQL, or a legal plan, is not supported, here or
// on streams: what, why, and what would work.
type UnsupportedError struct {
	What   string // "LIMIT in update mode"
	Reason string
	Remedy string
}

func (e *UnsupportedError) Error() string {
	s := e.What + " is not supported"
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

// Is makes errors.Is(err, ErrUnsupported) hold.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// UsageError is a mistake in what was asked for, found before anything ran, for which
// there is no type of its own.
type UsageError = expr.UsageError

// Usagef makes a UsageError as fmt.Errorf makes an error.
func Usagef(format string, args ...any) error { return &UsageError{Err: fmt.Errorf(format, args...)} }
