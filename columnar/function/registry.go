package function

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tidemill/tidemill/columnar"
)

// Registry maps names to functions. It is safe for concurrent use.
type Registry struct {
	mu         sync.RWMutex
	scalars    map[string]*Scalar
	aggregates map[string]*Aggregate
}

// NewRegistry returns a registry without functions; Builtins has them all.
func NewRegistry() *Registry {
	return &Registry{scalars: map[string]*Scalar{}, aggregates: map[string]*Aggregate{}}
}

// AddScalar registers f under its name and aliases; a name already taken is an error.
func (r *Registry) AddScalar(f *Scalar) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range append([]string{f.Name}, f.Aliases...) {
		key := strings.ToLower(name)
		if r.taken(key) {
			return fmt.Errorf("function %s is already registered", name)
		}
		r.scalars[key] = f
	}
	return nil
}

// AddAggregate registers f under its name and aliases; a name already taken is an error.
func (r *Registry) AddAggregate(f *Aggregate) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range append([]string{f.Name}, f.Aliases...) {
		key := strings.ToLower(name)
		if r.taken(key) {
			return fmt.Errorf("function %s is already registered", name)
		}
		r.aggregates[key] = f
	}
	return nil
}

func (r *Registry) taken(key string) bool { return r.scalars[key] != nil || r.aggregates[key] != nil }

// Scalar finds a scalar function by name or alias.
func (r *Registry) Scalar(name string) (*Scalar, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f, ok := r.scalars[strings.ToLower(name)]
	return f, ok
}

// Aggregate finds an aggregate function by name or alias.
func (r *Registry) Aggregate(name string) (*Aggregate, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f, ok := r.aggregates[strings.ToLower(name)]
	return f, ok
}

// Clone returns a copy to which a session's own functions can be added.
func (r *Registry) Clone() *Registry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c := NewRegistry()
	for k, v := range r.scalars {
		c.scalars[k] = v
	}
	for k, v := range r.aggregates {
		c.aggregates[k] = v
	}
	return c
}

// Names lists all names and aliases, sorted.
func (r *Registry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var names []string
	for k := range r.scalars {
		names = append(names, k)
	}
	for k := range r.aggregates {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// BindError is a constant that a function refused as it was bound: a unit, a pattern, a
// path. It is a mistake in what was asked for, found without looking at a row.
type BindError struct{ Err error }

func (e *BindError) Error() string { return e.Err.Error() }
func (e *BindError) Unwrap() error { return e.Err }

// UnknownError says that no function is called name, and which one is near.
type UnknownError struct {
	Name string
	Hint string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no function %s%s", e.Name, e.Hint)
}

// Unknown makes the error for a name that is not registered; others are names that may have
// been meant beside those of the registry.
func (r *Registry) Unknown(name string, others ...string) error {
	words := slices.Clone(others)
	for _, n := range r.Names() {
		if n[0] >= 'a' && n[0] <= 'z' {
			words = append(words, n)
		}
	}
	return &UnknownError{Name: name, Hint: columnar.DidYouMean(name, words)}
}
