package columnar_test

import (
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
)

// TestShare reads the dictionary of shared batches by several goroutines that begin at once:
// nothing is left of what one of them made.
func TestShare(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	text := columnartest.Batch(t, mem, "s:varchar\na\nb\na")
	defer text.Release()
	for range 2000 {
		encoded := columnartest.Encode(mem, text.Column(0))
		schema := arrow.NewSchema([]arrow.Field{{Name: "s", Type: encoded.DataType()}}, nil)
		b := array.NewRecordBatch(schema, []arrow.Array{encoded}, int64(encoded.Len()))
		encoded.Release()
		columnar.Share(b)
		begin := make(chan struct{})
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				<-begin
				plain := columnar.PlainColumn(mem, b.Column(0))
				plain.Release()
			}()
		}
		close(begin)
		all.Wait()
		b.Release()
	}
}
