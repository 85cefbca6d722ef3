package incremental

import "github.com/tidemill/tidemill/columnar"

// Listener is told what a query does, from its own goroutine, in order. Nil fields
// are not called. The functions must not block and must not call the query's Stop or
// Wait.
type Listener struct {
	// Started is called once, after the checkpoint was opened.
	Started func(id, runID, name string)
	// Progress is called after each batch, data or not.
	Progress func(Progress)
	// Terminated is called once, last; err is nil after an orderly end.
	Terminated func(err error)
	// Warn is called with one line for the user: a file that changed, state that
	// grows without eviction.
	Warn func(text string)
}

func (l Listener) started(id, runID, name string) {
	defer columnar.NamePanic("the listener's function Started")
	if l.Started != nil {
		l.Started(id, runID, name)
	}
}

func (l Listener) progress(p Progress) {
	defer columnar.NamePanic("the listener's function Progress")
	if l.Progress != nil {
		l.Progress(p)
	}
}

func (l Listener) terminated(err error) {
	defer columnar.NamePanic("the listener's function Terminated")
	if l.Terminated != nil {
		l.Terminated(err)
	}
}

func (l Listener) warn(text string) {
	defer columnar.NamePanic("the listener's function Warn")
	if l.Warn != nil {
		l.Warn(text)
	}
}
