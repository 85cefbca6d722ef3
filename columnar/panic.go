package columnar

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// PanicError is a panic made an error: of what a user handed to the engine, or, with
// What "", a bug of ours. Error is one line, without the stack.
type PanicError struct {
	What  string // function initials, sink ledger
	Value any    // what panic was called with
	Stack []byte // of the goroutine, from the panic on
}

func (e *PanicError) Error() string {
	// A panic within the String method of Value is fmt's to tell.
	text := strings.Join(strings.Fields(strings.ToValidUTF8(fmt.Sprint(e.Value), "\uFFFD")), " ")
	if r := []rune(text); len(r) > maxPanicText {
		text = string(r[:maxPanicText-1]) + "…"
	}
	if e.What == "" {
		return "bug: panic: " + text
	}
	return e.What + " panicked: " + text
}

// maxPanicText bounds the text of a value in characters.
const maxPanicText = 500

// Unwrap is the value, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Guard calls f and makes a panic of it a *PanicError that names what. Of guards within
// one another the innermost names the panic.
func Guard(what string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicOf(what, v)
		}
	}()
	return f()
}

// NamePanic is deferred by what cannot return an error: a panic goes on, as a *PanicError
// that names what.
func NamePanic(what string) {
	if v := recover(); v != nil {
		panic(panicOf(what, v))
	}
}

// panicOf is a panic with a name, unless it has one.
func panicOf(what string, v any) *PanicError {
	if named, ok := v.(*PanicError); ok {
		return named
	}
	return &PanicError{What: what, Value: v, Stack: debug.Stack()}
}

// Go runs f in a goroutine and gives done its error, a panic made one. done is called in
// any case: also where f ends the goroutine, as testing.T.FailNow does in a user's function.
func Go(f func() error, done func(err error)) {
	go func() {
		err := errExited
		defer func() { done(err) }()
		err = Guard("", f)
	}()
}

var errExited = errors.New("a function that was called ended its goroutine (runtime.Goexit; testing.T.FailNow does); it must return")
