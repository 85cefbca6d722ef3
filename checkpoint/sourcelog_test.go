package checkpoint

import (
	"bytes"
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
)

// What the log of a source costs grows with what is put into it: four times the entries
// are written in less than six times the bytes, compaction included.
func TestSourceLogIsLinear(t *testing.T) {
	t.Parallel()
	written := func(entries int64) int64 {
		d := open(t, vfs.NewMem(), small)
		defer d.Close()
		log, err := d.SourceLog(0, NoBatch)
		must(t, err)
		count := &writtenBytes{FS: log.fs}
		log.fs, log.segs.fs = count, count
		for id := range entries {
			must(t, log.Put(id, bytes.Repeat([]byte{'x'}, 100)))
			log.SetNamed(id)
			must(t, log.Compact())
		}
		return count.n
	}
	few, many := written(2000), written(8000)
	if many > 6*few {
		t.Errorf("8000 entries are written in %d bytes, 2000 in %d", many, few)
	}
}

// writtenBytes counts what is written.
type writtenBytes struct {
	vfs.FS
	n int64
}

func (w *writtenBytes) Create(name string) (vfs.File, error) {
	f, err := w.FS.Create(name)
	return &countedFile{f, w}, err
}

type countedFile struct {
	vfs.File
	of *writtenBytes
}

func (f *countedFile) Write(p []byte) (int, error) {
	f.of.n += int64(len(p))
	return f.File.Write(p)
}

// Large entries are joined some at a time, whatever their number.
func TestSourceLogLargeEntries(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	d := open(t, m, small)
	defer d.Close()
	log, err := d.SourceLog(0, NoBatch)
	must(t, err)
	const n = keepSingle + foldSingle
	entry := bytes.Repeat([]byte("large"), foldBytes/5/10+1)
	for id := range int64(n) {
		must(t, log.Put(id, entry))
	}
	log.SetNamed(n - 1)
	must(t, log.Compact())
	live, _, err := log.segs.list()
	must(t, err)
	if len(live) != 4 {
		t.Errorf("%d segments, not 4 of 10 entries each but the last", len(live))
	}
	next := int64(0)
	for e, err := range log.Range(-1, everything) {
		must(t, err)
		if e.ID != next || !bytes.Equal(e.Data, entry) {
			t.Fatalf("entry %d is wrong", next)
		}
		next++
	}
	if next != n {
		t.Errorf("%d entries", next)
	}
}
