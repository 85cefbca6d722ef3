package file

import (
	"cmp"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/physical"
)

// maxParked is about how much memory the rows of one batch take that wait for a file.
const maxParked = 64 << 20

// parksWithin is how much of a memory limit the rows of one batch take that wait.
func parksWithin(limit int64) int64 {
	if limit > 0 {
		return min(maxParked, max(limit/8, 1<<20))
	}
	return maxParked
}

// parked are the rows of folders beyond those whose files are open: were they written as
// they come, each folder would have a file for every few of its rows.
type parked struct {
	folders map[string]*parkedFolder
	bytes   int64
}

type parkedFolder struct {
	batches []arrow.RecordBatch
	bytes   int64
}

// pieceBytes is about what a batch takes beside its values.
const pieceBytes = 512

// park keeps the rows of b for a folder; they are copied, for b may be a part of more.
func (w *batchWriter) park(folder string, b arrow.RecordBatch) error {
	rows := make([]int32, b.NumRows())
	for i := range rows {
		rows[i] = int32(i)
	}
	copied, err := kernel.TakeBatch(w.s.env.Mem, b, rows)
	if err != nil {
		return err
	}
	p := &w.parked
	if p.folders == nil {
		p.folders = map[string]*parkedFolder{}
	}
	f := p.folders[folder]
	if f == nil {
		f = &parkedFolder{}
		p.folders[folder] = f
	}
	size := physical.BatchBytes(copied) + pieceBytes
	f.batches = append(f.batches, copied)
	f.bytes += size
	if p.bytes += size; p.bytes > w.s.parks {
		return w.unpark(w.s.parks / 2)
	}
	return nil
}

// unpark writes the folders that hold most until what is parked takes no more than so many
// bytes.
func (w *batchWriter) unpark(most int64) error {
	p := &w.parked
	folders := slices.SortedFunc(maps.Keys(p.folders), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.folders[b].bytes, p.folders[a].bytes), cmp.Compare(a, b))
	})
	for _, folder := range folders {
		if p.bytes <= most {
			break
		}
		f := p.folders[folder]
		delete(p.folders, folder)
		p.bytes -= f.bytes
		for i, b := range f.batches {
			err := w.append("", folder, b)
			b.Release()
			if err != nil {
				releaseBatches(f.batches[i+1:])
				return err
			}
		}
	}
	return nil
}

// release gives up what is parked.
func (p *parked) release() {
	for _, f := range p.folders {
		releaseBatches(f.batches)
	}
	*p = parked{}
}

func releaseBatches(list []arrow.RecordBatch) {
	for _, b := range list {
		b.Release()
	}
}
