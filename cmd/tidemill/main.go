// Command tidemill runs SQL over files, once or for ever: a single-node, columnar
// micro-batch engine. See tidemill help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	stack "runtime/debug"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // time zones work where the system has none

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is main with arguments and an exit code.
func run(args []string) (code int) {
	// A reader that goes away (head, less) is an error of a write, not the end of the process.
	signal.Ignore(syscall.SIGPIPE)
	easeCollector()
	root := newRoot()
	root.SetArgs(markTexts(args))
	var m measures
	m.flags(root)
	debug := func() bool { d, _ := root.PersistentFlags().GetBool("debug"); return d }
	defer func() {
		if p := recover(); p != nil {
			code = report(&tidemill.PanicError{Value: p, Stack: stack.Stack()}, debug())
		}
	}()
	err := root.ExecuteContext(context.Background())
	if late := m.stop(); err == nil {
		err = late
	}
	return report(err, debug())
}

// report tells an error, if there is one, and returns the exit code.
func report(err error, debug bool) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, message(err, debug))
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
	text := "error: " + strings.TrimSpace(err.Error())
	var misfit *checkpoint.IncompatibleError
	switch {
	case errors.Is(err, tidemill.ErrCorrupt):
		text += "; restore the checkpoint from a copy, or delete it and the output to start over"
	case errors.As(err, &misfit) && misfit.Query:
		text += "; run the query as it was, or give it a new checkpoint and a new output"
	}
	var panicked *tidemill.PanicError
	if errors.As(err, &panicked) {
		text += "\n" + string(panicked.Stack)
	}
	if debug {
		return text
	}
	if i := strings.Index(text, "\ngoroutine "); i >= 0 {
		text = text[:i] + " (run with --debug for the stack)"
	}
	text = blankLines.ReplaceAllString(text, "\n")
	if r := []rune(text); len(r) > maxMessage {
		text = string(r[:maxMessage-1]) + "…"
	}
	return text
}

// blankLines would end the paragraph.
var blankLines = regexp.MustCompile(`\n\s*\n`)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "tidemill",
		Short:         "exact, incremental answers over files that keep landing",
		Version:       tidemill.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return c.Help()
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.PersistentFlags().Bool("debug", false, "show stack traces and causes")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newQuery(), newRun(), newExplain(), newSchema(), newStatus(), newState(), newCheckpoint(),
		newVerify(), newReplay(), newPlan())
	root.SetHelpCommand(newHelp(root))
	return root
}

// newHelp is the help command; cobra's own answers an unknown word with success.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "help about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(root, strings.Join(args, " "))
			}
			return c.Help()
		},
	}
}

// group is a command that only holds others.
func group(c *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	c.AddCommand(subs...)
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0])
		}
		var uses []string
		for _, sub := range subs {
			uses = append(uses, c.CommandPath()+" "+sub.Use)
		}
		return usagef("say %s", strings.Join(uses, " or "))
	}
	return c
}

// markTexts puts a blank before texts of SQL that begin with a comment, so that they are
// not read as flags.
func markTexts(args []string) []string {
	out := slices.Clone(args)
	for i, a := range args {
		first, _, several := strings.Cut(a, "\n")
		text, ok := strings.CutPrefix(first, "--")
		if ok && (several && !strings.Contains(text, "=") || strings.TrimLeft(text, " \t") != text) {
			out[i] = " " + a
		}
	}
	return out
}

// helpName is what help is asked for by: state get.
func helpName(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

func unknownCommand(c *cobra.Command, word string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usagef("%s has no command %q%s", c.CommandPath(), word, columnar.DidYouMean(word, names))
}

// flagError is a flag that is not there or has a wrong value.
func flagError(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if kind := ""; errors.As(err, &invalid) {
		switch invalid.GetFlag().Value.Type() {
		case "int64":
			kind = "a whole number"
		case "int64Slice":
			kind = "a list of whole numbers"
		case "bool":
			kind = "true or false"
		}
		if kind != "" {
			return usagef("--%s takes %s, not %q; see tidemill help %s", invalid.GetFlag().Name, kind, invalid.GetValue(), helpName(c))
		}
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usagef("%w; see tidemill help %s", err, helpName(c))
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	dashes := "--"
	if len(unknown.GetSpecifiedShortnames()) > 0 {
		dashes = "-"
	}
	word := dashes + unknown.GetSpecifiedName()
	hint := columnar.DidYouMean(word, names)
	if hint == "" {
		hint = "; see tidemill help " + helpName(c)
	}
	return usagef("%s has no flag %s%s", c.Name(), word, hint)
}

// takes checks the number of arguments: from min to max (-1: any number), called what.
func takes(min, max int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= min && (max < 0 || len(args) <= max) {
			return nil
		}
		return usagef("%s takes %s, not %s; see tidemill help %s", c.CommandPath(), what, count(int64(len(args)), "argument"), helpName(c))
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

// newSession starts a session with the --set flags.
func newSession(set []string) (*tidemill.Session, error) {
	settings, err := parseSettings(set)
	if err != nil {
		return nil, err
	}
	var shown warnings
	s, err := tidemill.NewSession(tidemill.Options{Settings: settings, Warn: func(text string) {
		if shown.isNew(text) {
			fmt.Fprintln(os.Stderr, "warning: "+text)
		}
	}})
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
	case len(args) == 1 && strings.TrimSpace(args[0]) != "":
		return args[0], "", nil
	}
	return "", "", usagef("there is no SQL; give it as one argument, or a file with -f")
}
