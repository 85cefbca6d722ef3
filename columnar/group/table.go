package group

import (
	"fmt"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// NotFound is the id Find gives a key that is not in the table.
const NotFound = ^uint32(0)

// maxKeyColumns is the number of columns whose nulls fit one word.
const maxKeyColumns = 64

// Table gives each distinct key a dense id: 0, 1, 2, … in order of first sight.
// Keys are compared by value, never by hash alone; nulls equal nulls.
type Table interface {
	// Intern puts the id of row i into ids[i], for as many rows as ids has, and
	// makes ids for keys not seen before. Columns have the types the table was made
	// for; text may be dictionary-encoded. An error (memory) leaves the table usable
	// and ids undefined.
	Intern(keys []arrow.Array, ids []uint32) error
	// Find is Intern without making ids: unknown keys get NotFound.
	Find(keys []arrow.Array, ids []uint32) error
	// Len is the number of ids given.
	Len() int
	// Keys returns the key columns of the given ids, in that order, plain.
	Keys(ids []uint32) ([]arrow.Array, error)
	// Bytes is the memory held.
	Bytes() int64
	// Reset forgets all keys and keeps the memory.
	Reset()
	// Release gives the memory and its reservation back. The table may not be used
	// again; Release may be.
	Release()
}

// Options are the parameters of New and NewRowTable; the zero value works.
type Options struct {
	// Budget is asked whenever a table grows; nil never refuses.
	Budget *columnar.Budget
	// Who names the owner in the error of a refusal.
	Who string
	// Groups is how many keys are expected, if something is known.
	Groups int

	tagMask uint32 // forces collisions in tests; 0 keeps all hash bits
}

// processSeed makes hash collisions unpredictable from outside.
var processSeed = rand.Uint64()

// New makes a Table for keys of the given column types and picks its layout. Without
// columns every row has id 0. mem allocates what Keys returns; tables themselves are
// ordinary Go memory, reserved from the Budget.
func New(mem memory.Allocator, types []arrow.DataType, opts Options) (Table, error) {
	for _, dt := range types {
		if !columnar.Supported(dt) {
			return nil, fmt.Errorf("a column of type %s cannot be a grouping key", columnar.TypeName(dt))
		}
	}
	if opts.Who == "" {
		opts.Who = "grouping"
	}
	if opts.tagMask == 0 {
		opts.tagMask = ^uint32(0)
	}
	switch {
	case len(types) == 1 && isText(types[0]):
		return &textKey{mem: mem, dt: types[0], table: newTextTable(opts)}, nil
	case len(types) == 0 || len(types) > maxKeyColumns:
		return newEncodedKey(mem, types, opts)
	}
	return newPackedKey(mem, types, opts)
}

func isText(dt arrow.DataType) bool {
	return dt.ID() == arrow.STRING || dt.ID() == arrow.BINARY
}

// checkKeys makes sure that keys are what the table was made for.
func checkKeys(types []arrow.DataType, keys []arrow.Array, rows int) error {
	if len(keys) != len(types) {
		return fmt.Errorf("bug: %d key columns given, %d expected", len(keys), len(types))
	}
	for i, a := range keys {
		dt := a.DataType()
		if d, ok := dt.(*arrow.DictionaryType); ok {
			dt = d.ValueType
		}
		if !arrow.TypeEqual(dt, types[i]) {
			return fmt.Errorf("bug: key column %d is %s, not %s", i, dt, types[i])
		}
		if a.Len() != rows {
			return fmt.Errorf("bug: key column %d has %d rows, not %d", i, a.Len(), rows)
		}
	}
	return nil
}

// reservation keeps a Budget informed of the bytes held.
type reservation struct {
	budget *columnar.Budget
	who    string
	held   int64
}

// set changes what is reserved to n bytes.
func (r *reservation) set(n int64) error {
	if n > r.held {
		if err := r.budget.Reserve(r.who, n-r.held); err != nil {
			return err
		}
	} else {
		r.budget.Return(r.held - n)
	}
	r.held = n
	return nil
}

func (r *reservation) release() {
	r.budget.Return(r.held)
	r.held = 0
}

// doubled is the capacity a slice grows to when it must hold need elements: Go's own
// append adds a quarter at a time, which copies large tables too often.
func doubled(have, need int) int {
	c := max(have, 1024)
	for c < need {
		c *= 2
	}
	return c
}

// growTo returns s with capacity for need elements, its length and content kept.
func growTo[T any](s []T, need int) []T {
	if need <= cap(s) {
		return s
	}
	g := make([]T, len(s), doubled(cap(s), need))
	copy(g, s)
	return g
}

// resized returns s with length n, content undefined.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, doubled(cap(s), n))
	}
	return s[:n]
}

// dictionaryOf is the dictionary of an encoded column, or nil.
func dictionaryOf(a arrow.Array) *array.Dictionary {
	d, _ := a.(*array.Dictionary)
	return d
}
