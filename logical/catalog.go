package logical

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// ColumnDecl is a column written in CREATE STREAM or CREATE TABLE.
type ColumnDecl struct {
	Name string
	Type arrow.DataType
}

// SourceDecl is what CREATE STREAM or CREATE TABLE said.
type SourceDecl struct {
	Name    string
	Columns []ColumnDecl      // nil: to be inferred
	Options map[string]string // WITH (…), keys in lower case; "connector" defaults to filesystem
}

// Connector is the connector's name.
func (d *SourceDecl) Connector() string {
	if c := d.Options["connector"]; c != "" {
		return strings.ToLower(c)
	}
	return "filesystem"
}

// WatermarkDecl is WATERMARK FOR column AS column - INTERVAL delay.
type WatermarkDecl struct {
	Column string
	Delay  time.Duration
}

// Stream is an unbounded relation of a catalog, its columns known.
type Stream struct {
	Name string
	Decl *SourceDecl
	// Schema is the columns the source delivers (computed columns are a projection
	// over the scan).
	Schema *arrow.Schema
	// Open opens the source with the durable memory of a query. It is called once a
	// run.
	Open func(ctx context.Context, log connector.BatchLog) (connector.Source, error)
	// Bounded reads what is there now as a table: for bounded queries over a stream.
	Bounded func(ctx context.Context) (connector.Table, error)
	// Pinned are the choices made while inferring (columns, header), to be stored in
	// a checkpoint and given to the Resolver at the next start.
	Pinned map[string]string
	// HasMetadata says that its rows have the hidden columns of files.
	HasMetadata bool
}

// SinkDecl is what CREATE SINK said.
type SinkDecl struct {
	Name    string
	Options map[string]string
}

// Resolver opens what declarations and paths in FROM mean. It belongs to a session,
// which knows the filesystem and the connectors. Errors name the path or option.
type Resolver interface {
	// Stream finds the columns of a declared stream.
	Stream(ctx context.Context, d *SourceDecl) (*Stream, error)
	// Table opens a declared bounded table.
	Table(ctx context.Context, d *SourceDecl) (connector.Table, error)
	// Path opens a path or glob written in FROM; format "" is found by the names,
	// options are those of read_csv(…) and kin.
	Path(ctx context.Context, path, format string, options map[string]string) (connector.Table, error)
}

// Entry is one named relation of a Catalog; exactly one field is set.
type Entry struct {
	Table  *SourceDecl
	Syntax any             // *sql.Declaration of Table, if SQL declared it
	Opened connector.Table // registered from Go, already open
	Stream any             // *sql.StreamDecl: declaration with its AST, bound on use
	View   any             // *sql.View, bound anew at each use, or the Node of a DataFrame
}

// Catalog holds the named tables, streams, views and sinks of a session. Names are
// found without regard to case. It is safe for concurrent use.
type Catalog struct {
	mu      sync.RWMutex
	entries map[string]namedEntry
	sinks   map[string]*SinkDecl
}

type namedEntry struct {
	name string
	Entry
}

// NewCatalog returns an empty catalog.
func NewCatalog() *Catalog {
	return &Catalog{entries: map[string]namedEntry{}, sinks: map[string]*SinkDecl{}}
}

// Clone returns a copy to which entries can be added apart.
func (c *Catalog) Clone() *Catalog {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return &Catalog{entries: maps.Clone(c.entries), sinks: maps.Clone(c.sinks)}
}

// Add registers a relation; a name already taken is an error.
func (c *Catalog) Add(name string, e Entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.ToLower(name)
	if old, ok := c.entries[key]; ok {
		return fmt.Errorf("%s already exists (as %s)", name, old.name)
	}
	c.entries[key] = namedEntry{name, e}
	return nil
}

// Lookup finds a relation.
func (c *Catalog) Lookup(name string) (Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[strings.ToLower(name)]
	return e.Entry, ok
}

// AddSink registers a sink; a name already taken is an error.
func (c *Catalog) AddSink(d *SinkDecl) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.ToLower(d.Name)
	if _, ok := c.sinks[key]; ok {
		return fmt.Errorf("sink %s already exists", d.Name)
	}
	c.sinks[key] = d
	return nil
}

// Sink finds a sink.
func (c *Catalog) Sink(name string) (*SinkDecl, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	d, ok := c.sinks[strings.ToLower(name)]
	return d, ok
}

// Names lists the relations, for suggestions and SHOW TABLES; unsorted.
func (c *Catalog) Names() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var names []string
	for _, e := range c.entries {
		names = append(names, e.name)
	}
	return names
}

// Unknown is the error for a relation that does not exist.
func (c *Catalog) Unknown(name string) error {
	return fmt.Errorf("there is no table, stream or view %s%s", name, columnar.DidYouMean(name, c.Names()))
}

// Sinks lists the names of the sinks, sorted.
func (c *Catalog) Sinks() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var names []string
	for _, d := range c.sinks {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}
