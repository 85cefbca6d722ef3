package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// maxOpen is how many files of one batch are written at a time. Rows of more folders
// wait in memory; when that is full, the file unused for longest is finished, and its
// folder gets another one if it is met again.
const maxOpen = 64

// write drains a batch into staging and makes it durable there.
func (s *Sink) write(ctx context.Context, b connector.SinkBatch) (*staged, error) {
	w := &batchWriter{s: s, batch: b.ID, complete: b.Mode == connector.Complete, open: map[string]*fileWriter{}}
	w.syncs.SetLimit(syncers)
	st := &staged{s: s, entry: manifestEntry{Kind: kindAdd, Batch: b.ID}}
	if w.complete {
		st.entry.Kind = kindComplete
	}
	err := w.all(ctx, b)
	if err == nil {
		err = w.finish(st)
	}
	if err != nil {
		w.abort()
		return nil, errors.Join(err, st.Discard())
	}
	st.rows = st.entry.rows()
	return st, nil
}

// batchWriter writes the files of one batch.
type batchWriter struct {
	s        *Sink
	batch    int64
	complete bool
	next     map[string]int // number of the next file, by side
	open     map[string]*fileWriter
	parked   parked
	buffered int64 // by the open files
	done     []*fileWriter
	clock    int // counts uses, for finding the file unused for longest
	syncs    errgroup.Group
	dirs     []string // staging directories with new names
}

// fileWriter is one staged file.
type fileWriter struct {
	out    outFile
	file   vfs.File
	sum    *blockHasher
	buf    *bufio.Writer
	codec  codec.Writer
	size   int64
	used   int
	buffer int64 // bytes that codec buffers
	closed bool
}

// Write counts and hashes what goes into the file.
func (f *fileWriter) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	f.sum.write(p[:n])
	f.size += int64(n)
	return n, err
}

func (w *batchWriter) all(ctx context.Context, b connector.SinkBatch) error {
	schema := b.Data.Schema()
	columns, err := partitionColumns(schema, w.s.options.PartitionBy)
	if err != nil {
		return err
	}
	split := newSplitter(w.s.env.Mem, w.s.env.Location, schema, columns)
	for batch, err := range columnar.All(ctx, b.Data) {
		if err != nil {
			return err
		}
		if err := w.rows(split, batch); err != nil {
			return err
		}
	}
	if err := w.unpark(0); err != nil {
		return err
	}
	if w.complete && len(w.open) == 0 {
		// The table is there even if it has no row.
		if _, err := w.writer("", "", schema); err != nil {
			return err
		}
	}
	return w.sides(ctx, b)
}

// sides writes late and bad rows.
func (w *batchWriter) sides(ctx context.Context, b connector.SinkBatch) error {
	if b.Side == nil {
		return nil
	}
	outputs, err := b.Side()
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range outputs {
		errs = append(errs, w.side(ctx, o), o.Data.Close())
	}
	return errors.Join(errs...)
}

func (w *batchWriter) side(ctx context.Context, o connector.SideOutput) error {
	if o.Name != "late" && o.Name != "bad" {
		return fmt.Errorf("bug: side output %q", o.Name)
	}
	for batch, err := range columnar.All(ctx, o.Data) {
		if err != nil {
			return err
		}
		if err := w.put(o.Name, "", batch); err != nil {
			return err
		}
	}
	return nil
}

// rows writes one batch, by folder.
func (w *batchWriter) rows(p *splitter, b arrow.RecordBatch) error {
	if len(p.columns) == 0 {
		return w.put("", "", b)
	}
	if err := p.split(b); err != nil {
		return err
	}
	files := selectColumns(b, p.rest)
	defer files.Release()
	for _, folder := range p.used {
		part := files
		if len(p.used) == 1 {
			part.Retain()
		} else {
			part = kernel.FilterBatch(w.s.env.Mem, files, p.rows[folder])
		}
		err := w.put("", p.names[folder], part)
		part.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// selectColumns is b with some of its columns.
func selectColumns(b arrow.RecordBatch, columns []int) arrow.RecordBatch {
	arrays := make([]arrow.Array, len(columns))
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		arrays[i], fields[i] = b.Column(c), b.Schema().Field(c)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, b.NumRows())
}

// put appends a batch to the open file of a folder, or makes it wait for one.
func (w *batchWriter) put(side, folder string, b arrow.RecordBatch) error {
	plain := columnar.Plain(w.s.env.Mem, b)
	defer plain.Release()
	if w.open[side+"/"+folder] == nil && len(w.open) >= maxOpen && side == "" {
		return w.park(folder, plain)
	}
	return w.append(side, folder, plain)
}

// append appends a plain batch to the open file of a folder.
func (w *batchWriter) append(side, folder string, plain arrow.RecordBatch) error {
	f, err := w.writer(side, folder, plain.Schema())
	if err != nil {
		return err
	}
	if err := f.codec.Write(plain); err != nil {
		return err
	}
	if err := w.flushSome(f); err != nil {
		return err
	}
	f.out.Rows += plain.NumRows()
	if target := w.s.options.TargetFileSize; target > 0 && !(w.complete && side == "") && f.codec.Size() >= target {
		return w.close(side+"/"+folder, f)
	}
	return nil
}

// writer finds or makes the file of a folder.
func (w *batchWriter) writer(side, folder string, schema *arrow.Schema) (*fileWriter, error) {
	key := side + "/" + folder
	w.clock++
	if f := w.open[key]; f != nil {
		f.used = w.clock
		return f, nil
	}
	if len(w.open) >= maxOpen {
		if err := w.closeOldest(); err != nil {
			return nil, err
		}
	}
	f, err := w.create(side, folder, schema)
	if err != nil {
		return nil, err
	}
	f.used = w.clock
	w.open[key] = f
	return f, nil
}

func (w *batchWriter) create(side, folder string, schema *arrow.Schema) (*fileWriter, error) {
	if w.next == nil {
		w.next = map[string]int{}
	}
	number := w.next[side]
	w.next[side]++
	dir := w.s.stagingDir(side)
	if number == 0 {
		if err := vfs.MkdirAll(w.s.fs, dir); err != nil {
			return nil, err
		}
		w.dirs = append(w.dirs, dir)
	}
	format := w.s.formatOf(side)
	name := fmt.Sprintf("part-%020d-%03d%s", w.batch, number, format.Extension())
	if w.complete && side == "" {
		name = w.s.completeName()
	}
	f := &fileWriter{out: outFile{
		Side:   side,
		Path:   path.Join(folder, name),
		Staged: fmt.Sprintf("%d-%03d.staged", w.batch, number),
	}, sum: newBlockHasher()}
	var err error
	if f.file, err = w.s.fs.Create(path.Join(dir, f.out.Staged)); err != nil {
		return nil, err
	}
	w.done = append(w.done, f)
	f.buf = bufio.NewWriterSize(f, 1<<16)
	f.codec, err = format.NewWriter(f.buf, schema, codec.WriterOptions{Mem: w.s.env.Mem, Metadata: map[string]string{
		"tidemill.query": w.s.env.QueryID,
		"tidemill.batch": fmt.Sprint(w.batch),
	}})
	return f, err
}

func (w *batchWriter) closeOldest() error {
	var key string
	var oldest *fileWriter
	for k, f := range w.open {
		if oldest == nil || f.used < oldest.used {
			key, oldest = k, f
		}
	}
	return w.close(key, oldest)
}

// close ends a file; its sync goes on beside what is written next.
func (w *batchWriter) close(key string, f *fileWriter) error {
	delete(w.open, key)
	w.setBuffer(f, 0)
	if err := w.end(f); err != nil {
		return err
	}
	w.sync(f)
	return nil
}

// end writes what is left of a file.
func (w *batchWriter) end(f *fileWriter) error {
	err := f.codec.Close()
	f.codec = nil
	if err != nil {
		return err
	}
	if err := f.buf.Flush(); err != nil {
		return err
	}
	hash, err := f.sum.hash()
	if err != nil {
		return err
	}
	f.out.Size, f.out.Hash = f.size, hash
	return nil
}

// sync makes the bytes of a file durable, in the background.
func (w *batchWriter) sync(f *fileWriter) {
	f.closed = true
	f.codec, f.buf = nil, nil // there may be many
	w.syncs.Go(func() error {
		// A sync that fails is final: the batch fails, and is written anew.
		return errors.Join(f.file.Sync(), f.file.Close())
	})
}

// finish ends all files and makes them durable, with their names and the draft of the
// decision, and makes the folders they will go to: what can go wrong should do so before
// the decision.
func (w *batchWriter) finish(st *staged) error {
	var open []*fileWriter
	for _, f := range w.done {
		if f.closed {
			continue
		}
		open = append(open, f)
		if err := w.end(f); err != nil {
			return err
		}
	}
	st.entry.Files = w.files()
	if err := st.writeDraft(); err != nil {
		return err
	}
	for _, f := range open {
		w.sync(f)
	}
	w.syncs.Go(st.draft.Sync)
	for _, dir := range w.dirs {
		w.syncs.Go(func() error { return vfs.SyncDir(w.s.fs, dir) })
	}
	if err := w.syncs.Wait(); err != nil {
		return err
	}
	seen := map[string]bool{}
	var folders []string
	for _, f := range w.done {
		if d := path.Dir(path.Join(w.s.sideDir(f.out.Side), f.out.Path)); !seen[d] {
			seen[d] = true
			folders = append(folders, d)
		}
	}
	return makeDirs(w.s.fs, folders)
}

// makeDirs makes directories durably, syncing each parent once, beside the others.
func makeDirs(fsys vfs.FS, dirs []string) error {
	parents, err := vfs.MkdirUnsynced(fsys, dirs...)
	if err != nil || len(parents) == 0 {
		return err
	}
	return syncDirs(fsys, parents)
}

// abort closes what is open; the error of the batch is the one that counts.
func (w *batchWriter) abort() {
	w.parked.release()
	for _, f := range w.done {
		if !f.closed {
			if f.codec != nil {
				_ = f.codec.Close()
			}
			_ = f.file.Close()
		}
	}
	_ = w.syncs.Wait()
}

func (w *batchWriter) files() []outFile {
	files := make([]outFile, len(w.done))
	for i, f := range w.done {
		files[i] = f.out
	}
	return files
}

// blockHasher takes the codec.ContentHash of what is written.
type blockHasher struct {
	block xxh3.Hasher
	n     int
	sums  []xxh3.Uint128
	total int64
}

func newBlockHasher() *blockHasher { return &blockHasher{} }

func (h *blockHasher) write(p []byte) {
	h.total += int64(len(p))
	for len(p) > 0 {
		k := min(len(p), codec.HashBlock-h.n)
		_, _ = h.block.Write(p[:k])
		h.n += k
		p = p[k:]
		if h.n == codec.HashBlock {
			h.end()
		}
	}
}

func (h *blockHasher) end() {
	h.sums = append(h.sums, h.block.Sum128())
	h.block.Reset()
	h.n = 0
}

func (h *blockHasher) hash() (string, error) {
	if h.n > 0 {
		h.end()
	}
	c := codec.NewContentHash(h.total)
	for i, s := range h.sums {
		c.Set(i, s)
	}
	return c.Sum()
}

// ageOf is how old a modification time is; one in the future has no age.
func ageOf(now time.Time, mtimeMicros int64) time.Duration {
	return max(now.Sub(time.UnixMicro(mtimeMicros)), 0)
}
