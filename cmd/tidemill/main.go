// Command tidemill runs SQL over files, once or for ever: a single-node, columnar
// micro-batch engine. See tidemill help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is main with arguments and an exit code.
func run(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return 0
	}
	debug, _ := root.PersistentFlags().GetBool("debug")
	fmt.Fprintln(os.Stderr, "error: "+message(err, debug))
	return exitCode(err)
}

// usageError is bad usage of the command line: exit code 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// exitError ends with a code and has said already what it had to say.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

func exitCode(err error) int {
	var usage *usageError
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage):
		return 2
	}
	return int(tidemill.KindOf(err))
}

// maxMessage bounds an error in characters.
const maxMessage = 3000

// message is an error as a user sees it: one paragraph, never a stack trace unless
// asked for.
func message(err error, debug bool) string {
	text := strings.TrimSpace(err.Error())
	if debug {
		return text
	}
	if i := strings.Index(text, "\ngoroutine "); i >= 0 {
		text = text[:i] + " (run with --debug for the stack)"
	}
	if r := []rune(text); len(r) > maxMessage {
		text = string(r[:maxMessage-1]) + "…"
	}
	return text
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "tidemill",
		Short:         "exact, incremental answers over files that keep landing",
		Version:       tidemill.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().Bool("debug", false, "show stack traces and causes")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newQuery(), newRun(), newExplain(), newSchema(), newStatus(), newState(), newCheckpoint())
	for _, c := range root.Commands() {
		wrapArgs(c)
	}
	return root
}

// wrapArgs makes wrong arguments bad usage, for a command and those below it.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return &usageError{fmt.Errorf("%w; see tidemill help %s", err, c.Name())}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// parseSettings reads repeated --set name=value.
func parseSettings(list []string) (map[string]string, error) {
	m := map[string]string{}
	for _, s := range list {
		k, v, ok := strings.Cut(s, "=")
		if !ok || strings.TrimSpace(k) == "" {
			return nil, usagef("--set %q is not name=value", s)
		}
		m[strings.TrimSpace(k)] = strings.Trim(strings.TrimSpace(v), "'")
	}
	return m, nil
}

// warn writes one line for the user.
func warn(text string) { fmt.Fprintln(os.Stderr, "warning: "+text) }

// newSession starts a session with the --set flags.
func newSession(set []string) (*tidemill.Session, error) {
	settings, err := parseSettings(set)
	if err != nil {
		return nil, err
	}
	s, err := tidemill.NewSession(tidemill.Options{Settings: settings, Warn: warn})
	if err != nil {
		return nil, &usageError{err}
	}
	return s, nil
}

// textOrFile is the SQL of a command that takes it as its argument or with -f.
func textOrFile(args []string, file string) (text, name string, err error) {
	switch {
	case file != "" && len(args) > 0:
		return "", "", usagef("give the SQL as an argument or with -f, not both")
	case file != "":
		data, err := os.ReadFile(file)
		if err != nil {
			return "", "", &usageError{err}
		}
		return string(data), file, nil
	case len(args) == 1:
		return args[0], "", nil
	}
	return "", "", usagef("there is no SQL; give it as one argument, or a file with -f")
}
