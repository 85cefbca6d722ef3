package faultfs

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tidemill/tidemill/internal/vfs"
)

// Errors are the errors that a rule can name.
var Errors = map[string]error{
	"EIO":    syscall.EIO,
	"ENOSPC": syscall.ENOSPC,
	"EACCES": syscall.EACCES,
	"EROFS":  syscall.EROFS,
	"EMFILE": syscall.EMFILE,
	"ENOENT": syscall.ENOENT,
	"EEXIST": syscall.EEXIST,
}

// Action is what a rule does to a call.
type Action string

// The actions.
const (
	Crash Action = "crash"
	Error Action = "error"
	Short Action = "short"
)

// Rule says which calls fail, and how. It holds no counts: those belong to the
// FS that uses it, so a Rule may be used many times.
type Rule struct {
	Action Action
	Err    string // a name in Errors, for Error
	When   Pred
}

// String returns the text form, which Parse reads back to an equal rule.
func (r Rule) String() string {
	if r.Action == Error {
		return fmt.Sprintf("(error %s %s)", r.Err, r.When)
	}
	return fmt.Sprintf("(%s %s)", r.Action, r.When)
}

// Pred is a condition on a call, made by Parse or by the functions of this
// package.
type Pred struct {
	word string // any, mutating, …, path, and, or, not, nth, from
	n    int    // of nth and from
	path string // of path
	args []Pred
}

// On holds for the calls of this kind.
func On(op vfs.Op) Pred { return Pred{word: string(op)} }

// Any holds for every call.
func Any() Pred { return Pred{word: "any"} }

// Mutating holds for the calls that may change the disk.
func Mutating() Pred { return Pred{word: "mutating"} }

// Reading holds for the calls that do not change the disk.
func Reading() Pred { return Pred{word: "reading"} }

// Path holds for the calls on names that end with the pattern.
func Path(pattern string) Pred { return Pred{word: "path", path: pattern} }

// And holds if all of preds do.
func And(preds ...Pred) Pred { return Pred{word: "and", args: preds} }

// Or holds if one of preds does.
func Or(preds ...Pred) Pred { return Pred{word: "or", args: preds} }

// Not holds if p does not.
func Not(p Pred) Pred { return Pred{word: "not", args: []Pred{p}} }

// Nth holds once: when p holds after it held n times.
func Nth(n int, p Pred) Pred { return Pred{word: "nth", n: n, args: []Pred{p}} }

// From holds whenever p does, but for its first n times.
func From(n int, p Pred) Pred { return Pred{word: "from", n: n, args: []Pred{p}} }

// String returns the text form.
func (p Pred) String() string {
	switch p.word {
	case "path":
		return "(path " + strconv.Quote(p.path) + ")"
	case "nth", "from":
		return fmt.Sprintf("(%s %d %s)", p.word, p.n, p.args[0])
	case "and", "or", "not":
		var b strings.Builder
		b.WriteString("(" + p.word)
		for _, arg := range p.args {
			b.WriteString(" " + arg.String())
		}
		return b.String() + ")"
	}
	return p.word
}

// words are the predicates without arguments.
var words = []string{
	"any", "reading", "mutating",
	"open", "create", "opendir", "rename", "remove", "mkdir", "readdir", "stat", "lock",
	"read", "write", "sync", "close",
}

// call is one call to be judged.
type call struct {
	op    vfs.Op
	names []string
}

// counter is a Pred with its counts.
type counter struct {
	Pred
	seen int
	args []*counter
}

func newCounter(p Pred) *counter {
	c := &counter{Pred: p}
	for _, arg := range p.args {
		c.args = append(c.args, newCounter(arg))
	}
	return c
}

// holds judges the call and counts it.
func (c *counter) holds(k call) bool {
	// All arguments are asked, so that their counts do not depend on each other.
	all, one := true, false
	for _, arg := range c.args {
		h := arg.holds(k)
		all = all && h
		one = one || h
	}
	switch c.word {
	case "any":
		return true
	case "mutating":
		return k.op.Mutates()
	case "reading":
		return !k.op.Mutates()
	case "path":
		return slices.ContainsFunc(k.names, func(name string) bool { return matches(c.path, name) })
	case "and":
		return all
	case "or":
		return one
	case "not":
		return !all
	case "nth", "from":
		if !all {
			return false
		}
		c.seen++
		return c.seen == c.n+1 || c.word == "from" && c.seen > c.n
	}
	return c.word == string(k.op)
}

// matches reports whether the last elements of name match the pattern.
func matches(pattern, name string) bool {
	pattern, name = path.Clean(pattern), path.Clean(name)
	if !strings.HasPrefix(pattern, "/") {
		elems := strings.Split(strings.TrimPrefix(name, "/"), "/")
		if n := strings.Count(pattern, "/") + 1; n < len(elems) {
			elems = elems[len(elems)-n:]
		}
		name = strings.Join(elems, "/")
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
