package streamtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/formats/parquet"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// Variant is one way to run a query that must not change its results.
type Variant struct {
	Name       string
	Restart    bool // reopened before every batch
	Replay     bool // every batch run twice: its commit is taken away in between
	Kill       killPoint
	BatchRows  int
	Shards     int
	Snapshots  checkpoint.SnapshotPolicy
	NoOptimize bool
	// NamedInputs: see incremental.Config.
	NamedInputs int
	Format      string // inputs written as csv or parquet instead of what they are
}

// Matrix is the variants every golden file is run in.
func Matrix() []Variant {
	return []Variant{
		{Name: "plain"},
		{Name: "restart", Restart: true},
		{Name: "replay", Replay: true},
		{Name: "unpublished", Kill: beforePublish},
		{Name: "uncommitted", Kill: beforeCommit},
		{Name: "batch1", BatchRows: 1},
		{Name: "batch3", BatchRows: 3, Shards: 2},
		{Name: "shards4", Shards: 4},
		{Name: "shards4-restart", Shards: 4, Restart: true},
		{Name: "snapshots", Restart: true, Snapshots: checkpoint.SnapshotPolicy{Always: true}},
		{Name: "no-snapshots", Restart: true, Snapshots: checkpoint.SnapshotPolicy{Never: true}},
		{Name: "unoptimized", NoOptimize: true},
		{Name: "hashes", NamedInputs: 1},
		{Name: "csv", Format: "csv"},
		{Name: "parquet", Format: "parquet"},
	}
}

// killPoint is where the process dies in each batch.
type killPoint uint8

const (
	notKilled     killPoint = iota
	beforePublish           // state and prepared/N are durable, nothing is visible
	beforeCommit            // the batch is visible, commits/N is not there
)

// errKilled stands for the end of the process.
var errKilled = errors.New("killed by the test")

// killed are the batches in which the process has died: each once.
type killed map[int64]bool

// killSink kills the process once in each batch.
type killSink struct {
	connector.Sink
	when   killPoint
	killed killed
}

// Stage implements connector.Sink.
func (s *killSink) Stage(ctx context.Context, b connector.SinkBatch) (connector.Staged, error) {
	staged, err := s.Sink.Stage(ctx, b)
	if err != nil || s.killed[b.ID] {
		return staged, err
	}
	return &killStaged{Staged: staged, sink: s, batch: b.ID}, nil
}

// NeedsRewrite implements connector.Rewriter.
func (s *killSink) NeedsRewrite() bool {
	r, ok := s.Sink.(connector.Rewriter)
	return ok && r.NeedsRewrite()
}

// KeepsSides implements connector.SideKeeper.
func (s *killSink) KeepsSides() bool {
	k, ok := s.Sink.(connector.SideKeeper)
	return ok && k.KeepsSides()
}

type killStaged struct {
	connector.Staged
	sink  *killSink
	batch int64
}

// Publish implements connector.Staged.
func (s *killStaged) Publish(ctx context.Context) error {
	s.sink.killed[s.batch] = true
	if s.sink.when == beforeCommit {
		if err := s.Staged.Publish(ctx); err != nil {
			return err
		}
	}
	return errKilled
}

// memOf is the memory filesystem below fsys, nil if there is none.
func memOf(fsys vfs.FS) *vfs.Mem {
	switch f := fsys.(type) {
	case *vfs.Mem:
		return f
	case *faulty:
		return f.mem
	case *traced:
		return f.mem
	}
	return nil
}

// faulty is a memory filesystem with faults.
type faulty struct {
	*faultfs.FS
	mem *vfs.Mem
}

func newFaulty(mem *vfs.Mem, rules ...faultfs.Rule) *faulty {
	return &faulty{FS: faultfs.New(mem, rules...), mem: mem}
}

// traced is a memory filesystem whose calls are noted.
type traced struct {
	*vfs.Trace
	mem *vfs.Mem
}

func newTraced(mem *vfs.Mem) *traced { return &traced{Trace: vfs.NewTrace(mem, "/"), mem: mem} }

// converted is a file of a stream in the stream's other format.
func (w *World) converted(ctx context.Context, d *streamDecl, name string, data []byte) (string, []byte, error) {
	if hidden := strings.Contains("/"+name, "/.") || strings.Contains("/"+name, "/_"); hidden {
		return name, data, nil
	}
	scratch := NewWorld(vfs.NewMem(), w.Mem, Variant{})
	plain := *d
	plain.asFormat = ""
	scratch.streams = []*streamDecl{&plain}
	if err := scratch.WriteInput(ctx, name, data); err != nil {
		return "", nil, err
	}
	rows, err := scratch.Bounded(ctx, "SELECT * FROM "+d.name)
	if err != nil {
		return "", nil, fmt.Errorf("%s cannot be written as %s: %w", name, d.asFormat, err)
	}
	defer rows.release()
	f, err := formatNamed(d.asFormat)
	if err != nil {
		return "", nil, err
	}
	out, err := encode(f, rows)
	ext := path.Ext(name)
	return strings.TrimSuffix(name, ext) + f.Extension(), out, err
}

func formatNamed(name string) (codec.Format, error) {
	if name == "csv" {
		return csv.New(csv.Options{Header: csv.HeaderYes})
	}
	return parquet.New(parquet.Options{})
}

// encode writes rows as one file.
func encode(f codec.Format, rows *rowSet) ([]byte, error) {
	var out bytes.Buffer
	wr, err := f.NewWriter(&out, rows.schema, codec.WriterOptions{})
	if err != nil {
		return nil, err
	}
	for _, b := range rows.batches {
		if err := wr.Write(b); err != nil {
			return nil, err
		}
	}
	err = wr.Close()
	return out.Bytes(), err
}
