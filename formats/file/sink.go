package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// Sink writes batches into a directory, each exactly once (see the package comment
// for the protocol). In append mode a batch adds files; in complete mode it replaces
// the one file part-000.EXT.
type Sink struct {
	fs      vfs.FS
	dir     string
	options WriteOptions
	format  codec.Format
	kept    codec.Format // of side outputs
	formats Formats
	env     connector.Env
	lock    io.Closer

	names   manifestNames
	pending []int64 // decided, but not finished by the process that decided
	last    int64   // newest visible batch, -1: none
	lost    bool    // complete mode: the table is gone
	least   int     // leastCompacted, or less in tests
	parks   int64   // maxParked, or less
	buffers int64   // bytes that the open files may buffer; 0 is any number
}

var (
	_ connector.Sink       = (*Sink)(nil)
	_ connector.Describer  = (*Sink)(nil)
	_ connector.Rewriter   = (*Sink)(nil)
	_ connector.SideKeeper = (*Sink)(nil)
)

// OpenSink opens an output directory for writing and binds it to env.QueryID.
func OpenSink(_ context.Context, formats Formats, env connector.Env) (*Sink, error) {
	s, err := newSink(formats, env)
	if err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, unlock(s.lock))
	}
	return s, nil
}

// CheckSink finds wrong options of an output without touching a file.
func CheckSink(formats Formats, env connector.Env) error {
	_, err := newSink(formats, env)
	return err
}

// newSink reads the options.
func newSink(formats Formats, env connector.Env) (*Sink, error) {
	o, rest, err := decodeWrite(env.Options)
	if err != nil {
		return nil, err
	}
	format, err := sinkFormat(formats, o, rest, &env)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(checkMode(env, o), checkColumns(format, env, o)); err != nil {
		return nil, err
	}
	if strings.ContainsAny(path.Base(o.Path), "*?") {
		return nil, &connector.OptionError{Key: "path", Value: o.Path, HasValue: true, Reason: "an output is a directory, not a pattern"}
	}
	kept, err := sideFormat(formats, format, &env)
	if err != nil {
		return nil, err
	}
	return &Sink{fs: env.FS, dir: o.Path, options: o, format: format, kept: kept, formats: formats, env: env, last: -1, least: leastCompacted, parks: parksWithin(env.MemoryLimit), buffers: buffersWithin(env.MemoryLimit)}, nil
}

// PinnedOptions are those options of an output that a checkpoint keeps, as they are meant
// and not as they are spelt: path, format and partition_by.
func PinnedOptions(formats Formats, options map[string]string) map[string]string {
	o, _, err := decodeWrite(options)
	if err != nil {
		return nil // refused before anything is pinned
	}
	pinned := map[string]string{"path": o.Path, "format": "parquet"}
	if f, _, ok := formats.byExtension(o.Path); ok {
		pinned["format"] = f.Name
	}
	if o.Format != "" {
		pinned["format"] = strings.ToLower(o.Format)
	}
	if len(o.PartitionBy) > 0 {
		pinned["partition_by"] = strings.ToLower(strings.Join(o.PartitionBy, ", "))
	}
	return pinned
}

// sinkFormat makes the format that is stated, or that the name of the path means:
// out/x.csv is a directory of CSV files. Parquet is the default.
func sinkFormat(formats Formats, o WriteOptions, rest map[string]string, env *connector.Env) (codec.Format, error) {
	var f Format
	ext := ""
	switch {
	case o.Format != "":
		var err error
		if f, err = formats.byName(o.Format); err != nil {
			return nil, err
		}
	default:
		var ok bool
		if f, ext, ok = formats.byExtension(o.Path); !ok {
			var err error
			if f, err = formats.byName("parquet"); err != nil {
				return nil, &connector.OptionError{Key: "format", Reason: "it is missing: state one of " + strings.Join(formats.Names(), ", ")}
			}
		}
	}
	return formats.make(f, ext, rest, connector.Names(o.keys()), env, true)
}

// sideFormat is the format of late and bad rows: Parquet, whatever that of the output,
// for it keeps every type; where there is no Parquet, the output's.
func sideFormat(formats Formats, output codec.Format, env *connector.Env) (codec.Format, error) {
	f, err := formats.byName("parquet")
	if err != nil {
		return output, nil
	}
	return formats.make(f, "", nil, nil, env, true)
}

func checkMode(env connector.Env, o WriteOptions) error {
	switch {
	case env.Mode == connector.Update:
		return &connector.OptionError{Key: "output_mode", Value: "update", HasValue: true,
			Reason: "files cannot be updated row by row; use output_mode = 'complete' (the whole table, replaced each batch), " +
				"or output_mode = 'append' with a watermark"}
	case env.Mode == connector.Complete && len(o.PartitionBy) > 0:
		return &connector.OptionError{Key: "partition_by",
			Reason: "the table of output_mode = 'complete' is one file, so that it can be replaced by one rename; leave partition_by out"}
	}
	return nil
}

// checkColumns finds columns that files of the format cannot have: it begins one and
// drops it.
func checkColumns(format codec.Format, env connector.Env, o WriteOptions) error {
	if env.Columns == nil {
		return nil
	}
	folders, err := partitionColumns(env.Columns, o.PartitionBy)
	if err != nil {
		return err
	}
	fields := slices.Clone(env.Columns.Fields())
	slices.Sort(folders)
	for _, i := range slices.Backward(folders) {
		fields = slices.Delete(fields, i, i+1)
	}
	w, err := format.NewWriter(io.Discard, columnar.NewSchema(fields...), codec.WriterOptions{Mem: memory.DefaultAllocator})
	if err != nil {
		return err
	}
	return w.Close()
}

// open finds where the output stands and tidies what a crash left.
func (s *Sink) open() error {
	if err := s.bind(); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		var refused *connector.RefusedError
		if errors.As(err, &refused) {
			return err
		}
		return s.refuse(err, "it cannot be used", "delete "+s.dir+" and the checkpoint"+named(s.env.Checkpoint)+" to start over")
	}
	if err := s.compareProgress(); err != nil {
		return err
	}
	return s.record()
}

func (s *Sink) load() error {
	var err error
	if s.names, err = listManifest(s.fs, s.control(manifestDir)); err != nil {
		return err
	}
	s.last = s.names.last()
	pending, err := s.fs.ReadDir(s.control(pendingName))
	if err != nil {
		return err
	}
	for _, e := range pending {
		if id, err := strconv.ParseInt(e.Name(), 10, 64); err == nil {
			s.pending = append(s.pending, id)
			s.last = max(s.last, id)
		}
	}
	for _, d := range []string{"", pendingName, manifestDir} {
		if err := vfs.RemoveTemp(s.fs, s.control(d)); err != nil {
			return err
		}
	}
	if err := removeStale(s.fs, s.control(manifestDir), s.names); err != nil {
		return err
	}
	// What no pending entry names is a batch that never was.
	if len(s.pending) == 0 {
		if err := s.clearStaging(); err != nil {
			return err
		}
	}
	return s.verify()
}

// compareProgress holds what the output says against what the checkpoint says.
func (s *Sink) compareProgress() error {
	committed := s.env.Committed
	if s.env.Mode == connector.Complete {
		return s.findTable()
	}
	switch {
	case committed > 0 && s.last < committed-1:
		return s.refuse(nil, fmt.Sprintf("it holds batches up to %d, but %d is committed in the checkpoint%s: part of it was removed",
			s.last, committed-1, named(s.env.Checkpoint)), "bring it back, or delete both to start over")
	case committed > 0 && s.last > committed:
		return s.refuse(nil, fmt.Sprintf("it holds batches up to %d, but the checkpoint%s knows only %d: the checkpoint is older than the output",
			s.last, named(s.env.Checkpoint), committed-1), "bring the newer checkpoint back, or delete both to start over")
	}
	return nil
}

// findTable sees whether the table of a complete-mode output is there.
func (s *Sink) findTable() error {
	if s.env.Committed == 0 || len(s.pending) > 0 {
		return nil
	}
	if s.last < 0 {
		// The directory was deleted: what the checkpoint says goes on, and the next
		// batch writes the table again.
		s.last, s.lost = s.env.Committed-1, true
		return nil
	}
	_, err := s.fs.Stat(path.Join(s.dir, s.completeName()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.lost = err != nil
	return nil
}

func (s *Sink) control(name string) string { return path.Join(s.dir, controlDir, name) }

// sideDir is the directory of a side output.
func (s *Sink) sideDir(side string) string {
	if side == "" {
		return s.dir
	}
	return s.dir + "." + side
}

// stagingDir is where files of a (side) output wait. It is below the output, since a
// rename cannot leave a file system.
func (s *Sink) stagingDir(side string) string {
	if side == "" {
		return s.control(stagingName)
	}
	return path.Join(s.sideDir(side), "."+stagingName)
}

var sides = []string{"", "late", "bad"}

func (s *Sink) clearStaging() error {
	for _, side := range sides {
		list, err := s.fs.ReadDir(s.stagingDir(side))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range list {
			if err := s.fs.Remove(path.Join(s.stagingDir(side), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// formatOf is the format of the output, or of a side output.
func (s *Sink) formatOf(side string) codec.Format {
	if side == "" {
		return s.format
	}
	return s.kept
}

func (s *Sink) completeName() string { return tableName + s.format.Extension() }

// tableName is the name of the file of a complete-mode output, without its extension.
const tableName = "part-000"

// Description implements connector.Describer.
func (s *Sink) Description() string { return "FileSink[" + s.dir + "]" }

// KeepsSides implements connector.SideKeeper: late rows go to the directory
// <path>.late, bad ones to <path>.bad.
func (s *Sink) KeepsSides() bool { return true }

// NeedsRewrite implements connector.Rewriter.
func (s *Sink) NeedsRewrite() bool { return s.lost }

// LastBatch implements connector.Sink.
func (s *Sink) LastBatch(context.Context) (int64, bool, error) { return s.last, true, nil }

// Recover implements connector.Sink.
func (s *Sink) Recover(context.Context) (connector.Staged, error) {
	if len(s.pending) == 0 {
		return nil, nil
	}
	list := make([]manifestEntry, len(s.pending))
	for i, id := range s.pending {
		entries, err := readManifestFile(s.fs, s.control(pendingName), strconv.FormatInt(id, 10))
		if err == nil && (len(entries) != 1 || entries[0].Batch != id) {
			err = fmt.Errorf("%s: %w: it is not the entry of batch %d", s.control(pendingName), errCorrupt, id)
		}
		if err != nil {
			return nil, s.refuse(err, "a decided batch cannot be finished", "delete "+s.dir+" and the checkpoint"+named(s.env.Checkpoint)+" to start over")
		}
		list[i] = entries[0]
	}
	return &recovered{s, list}, nil
}

// Stage implements connector.Sink. A batch that is visible already is read to its end
// and dropped.
func (s *Sink) Stage(ctx context.Context, b connector.SinkBatch) (connector.Staged, error) {
	if err := s.finishPending(ctx); err != nil {
		return nil, err
	}
	if b.ID <= s.last {
		return drain(ctx, b)
	}
	if err := s.clearStaging(); err != nil {
		return nil, s.wrap(err)
	}
	st, err := s.write(ctx, b)
	if err != nil {
		return nil, s.wrap(err)
	}
	return st, nil
}

// finishPending rolls forward what Recover was not asked for.
func (s *Sink) finishPending(ctx context.Context) error {
	st, err := s.Recover(ctx)
	if err != nil || st == nil {
		return err
	}
	return st.Publish(ctx)
}

func (s *Sink) wrap(err error) error {
	return fmt.Errorf("sink %s: %w", s.dir, err)
}

// drain reads a batch that is already part of the output.
func drain(ctx context.Context, b connector.SinkBatch) (connector.Staged, error) {
	rows := int64(0)
	for batch, err := range columnar.All(ctx, b.Data) {
		if err != nil {
			return nil, err
		}
		rows += batch.NumRows()
	}
	return dropped(rows), nil
}

// dropped is the Staged of a batch that was visible before it was staged.
type dropped int64

func (dropped) Publish(context.Context) error { return nil }
func (dropped) Discard() error                { return nil }
func (d dropped) Rows() int64                 { return int64(d) }

// Close implements connector.Sink.
func (s *Sink) Close() error {
	err := unlock(s.lock)
	s.lock = nil
	return err
}
