package file

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// hoarder is a codec that buffers what it is told to.
type hoarder struct {
	buffered int64
	flushed  int
}

func (h *hoarder) Write(arrow.RecordBatch) error { return nil }
func (h *hoarder) Size() int64                   { return h.buffered }
func (h *hoarder) Close() error                  { return nil }
func (h *hoarder) Buffered() int64               { return h.buffered }

func (h *hoarder) Flush() error {
	h.buffered = 0
	h.flushed++
	return nil
}

// TestSinkBuffersWithin: under a memory limit the open files of a batch buffer a part of it
// together, and those that have most write it; without one each file decides for itself.
func TestSinkBuffersWithin(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, 400} {
		w := &batchWriter{s: &Sink{buffers: limit}, open: map[string]*fileWriter{}}
		var codecs []*hoarder
		for i := range 10 {
			h := &hoarder{}
			codecs = append(codecs, h)
			w.open[fmt.Sprint(i)] = &fileWriter{codec: h, out: outFile{Staged: fmt.Sprint(i)}}
		}
		for range 100 {
			for i, h := range codecs {
				h.buffered += int64(i)
				if err := w.flushSome(w.open[fmt.Sprint(i)]); err != nil {
					t.Fatal(err)
				}
				sum := int64(0)
				for _, h := range codecs {
					sum += h.buffered
				}
				if limit > 0 && (sum > limit || sum != w.buffered) {
					t.Fatalf("%d bytes are buffered, %d noted, with a limit of %d", sum, w.buffered, limit)
				}
			}
		}
		few, many := codecs[1].flushed, codecs[9].flushed
		if limit == 0 && few+many > 0 || limit > 0 && many <= few {
			t.Errorf("limit %d: the smallest was flushed %d times, the largest %d", limit, few, many)
		}
	}
	if p, b := parksWithin(80<<20), buffersWithin(80<<20); p != 10<<20 || b != 20<<20 {
		t.Errorf("of 80 MiB %d bytes are parked and %d buffered", p, b)
	}
}
