package file

import "github.com/tidemill/tidemill/formats/codec"

// buffersWithin is how much of a memory limit the open files of a batch may buffer together:
// 0, any number, without one.
func buffersWithin(limit int64) int64 {
	if limit > 0 {
		return max(limit/4, 1<<20)
	}
	return 0
}

// flushSome makes the files that buffer most write it, after f was written to, if all together
// buffer too much.
func (w *batchWriter) flushSome(f *fileWriter) error {
	b, ok := f.codec.(codec.Bufferer)
	if !ok || w.s.buffers == 0 {
		return nil
	}
	w.setBuffer(f, b.Buffered())
	for w.buffered > w.s.buffers {
		var most *fileWriter
		for _, o := range w.open {
			if most == nil || o.buffer > most.buffer || o.buffer == most.buffer && o.out.Staged < most.out.Staged {
				most = o
			}
		}
		if most == nil || most.buffer == 0 {
			return nil
		}
		if err := most.codec.(codec.Bufferer).Flush(); err != nil {
			return err
		}
		w.setBuffer(most, 0)
	}
	return nil
}

// setBuffer notes what an open file buffers.
func (w *batchWriter) setBuffer(f *fileWriter, n int64) {
	w.buffered += n - f.buffer
	f.buffer = n
}
