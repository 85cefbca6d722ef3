package harness

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// UsageError is a command that was asked for wrongly: nothing was made or measured.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

// Misused is a UsageError.
func Misused(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// ExitCode is the exit status of a command that ended with err: 0 if there is none or help
// was asked for, 2 of a UsageError, else 1. What went wrong is written to errs.
func ExitCode(errs io.Writer, command string, err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(errs, "%s: %v\n", command, err)
	var misused *UsageError
	if errors.As(err, &misused) {
		return 2
	}
	return 1
}

// Parse reads the flags of a command that takes nothing else.
func Parse(f *flag.FlagSet, args []string) error {
	if err := parse(f, args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return Misused("argument %q is not taken: all is said by flags; %s -h lists them", f.Arg(0), f.Name())
	}
	return nil
}

// ParseBefore reads the flags of a command that takes names of files after them.
func ParseBefore(f *flag.FlagSet, args []string) error {
	if err := parse(f, args); err != nil {
		return err
	}
	for i, arg := range f.Args() {
		if i > 0 && strings.HasPrefix(arg, "-") {
			return Misused("flag %q stands after %q: flags come first", arg, f.Arg(0))
		}
	}
	return nil
}

// parse reads flags, and prints them only if help is asked for.
func parse(f *flag.FlagSet, args []string) error {
	f.SetOutput(io.Discard)
	err := f.Parse(args)
	if err == nil {
		return nil
	}
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(os.Stderr)
		f.Usage()
		return err
	}
	return Misused("%v; %s -h lists the flags", err, f.Name())
}

// Positive checks that the numbers of flags are above zero.
func Positive(f *flag.FlagSet, names ...string) error {
	for _, name := range names {
		if err := AtLeast(f, name, 0, ""); err != nil {
			return err
		}
	}
	return nil
}

// AtLeast checks that the number of a flag is least or more; 0 asks for a positive one. why
// is said in the error.
func AtLeast(f *flag.FlagSet, name string, least int64, why string) error {
	fl := f.Lookup(name)
	var v float64
	switch n := fl.Value.(flag.Getter).Get().(type) {
	case int:
		v = float64(n)
	case int64:
		v = float64(n)
	case float64:
		v = n
	}
	if !(v > 0) || math.IsInf(v, 1) { // NaN is not above zero either
		return Misused("-%s must be positive, not %s", name, fl.Value)
	}
	if v < float64(least) {
		return Misused("-%s must be %d or more, not %s: %s", name, least, fl.Value, why)
	}
	return nil
}

// Known checks the value of a flag.
func Known(flagName, value string, known []string) error {
	if !slices.Contains(known, value) {
		return Misused("-%s: %q is unknown; known are %s", flagName, value, strings.Join(known, ", "))
	}
	return nil
}

// KnownList takes the value of a flag apart, which is a list with commas, and checks each.
func KnownList(flagName, value string, known []string) ([]string, error) {
	list := strings.Split(value, ",")
	for i, v := range list {
		if err := Known(flagName, v, known); err != nil {
			return nil, err
		}
		if slices.Contains(list[:i], v) {
			return nil, Misused("-%s: %q stands there twice", flagName, v)
		}
	}
	return list, nil
}

// NothingMatches is the error of a flag that left nothing to measure; names are those it
// could have kept.
func NothingMatches(flagName, value string, names []string) error {
	const most = 25
	text := strings.Join(names[:min(len(names), most)], "; ")
	if len(names) > most {
		text += fmt.Sprintf("; … (%d in all)", len(names))
	}
	return Misused("-%s: no name contains %q; the names are: %s", flagName, value, text)
}
