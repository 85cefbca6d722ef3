package tidemill

import (
	"context"
	"fmt"
	"maps"
	"path"
	"strings"
	"sync"
	"unicode"

	"github.com/tidemill/tidemill/logical"
)

// streams are those that ReadStream made. They are safe for concurrent use.
type streams struct {
	mu    sync.Mutex
	known map[string]*logical.Stream // by what they were made of
	named map[string]int             // how many of them begin with a name
}

func newStreams() *streams {
	return &streams{known: map[string]*logical.Stream{}, named: map[string]int{}}
}

// find finds the columns of a declared stream: the one it was the last time, if they have
// not changed.
func (x *streams) find(ctx context.Context, s *Session, d *logical.SourceDecl) (*logical.Stream, error) {
	x.mu.Lock() // also while columns are looked for: who is first has the name without a number
	defer x.mu.Unlock()
	words := fmt.Sprint(d.Options, d.Columns)
	known := x.known[words]
	if known != nil {
		d.Name = known.Name
	} else {
		d.Name = x.name(d.Connector(), d.Options["path"])
	}
	stream, err := s.resolver(nil).Stream(ctx, d)
	if err != nil {
		return nil, err
	}
	if known != nil && known.Schema.Equal(stream.Schema) && maps.Equal(known.Pinned, stream.Pinned) {
		return known, nil
	}
	x.known[words] = stream
	return stream, nil
}

// name calls a stream by its path or connector.
func (x *streams) name(connectorName, dir string) string {
	name := connectorName
	if base := path.Base(path.Clean(dir)); dir != "" && base != "/" {
		name, _, _ = strings.Cut(base, ".")
	}
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
	if name == "" {
		name = "stream"
	}
	x.named[name]++
	if n := x.named[name]; n > 1 {
		return fmt.Sprintf("%s_%d", name, n)
	}
	return name
}

// queries are those of a session by their names, of which two that run differ. They are
// safe for concurrent use.
type queries struct {
	mu    sync.Mutex
	named map[string]*Query // nil: about to start
}

func newQueries() *queries { return &queries{named: map[string]*Query{}} }

// start starts a query unless one of its name is running.
func (x *queries) start(name string, start func() (*Query, error)) (*Query, error) {
	if name == "" {
		return start()
	}
	if err := x.take(name); err != nil {
		return nil, err
	}
	q, err := start()
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		delete(x.named, name)
		return nil, err
	}
	x.named[name] = q
	return q, nil
}

func (x *queries) take(name string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if q, taken := x.named[name]; taken && (q == nil || isRunning(q)) {
		return logical.Usagef("a query named %s is running in this session; stop it first, or give this one another name", name)
	}
	x.named[name] = nil
	return nil
}

func isRunning(q *Query) bool {
	select {
	case <-q.Done():
		return false
	default:
		return true
	}
}
