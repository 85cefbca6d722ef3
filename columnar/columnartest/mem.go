package columnartest

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Poison bytes: fresh memory reads as fresh, freed memory as freed, so neither
// reading before writing nor reading after Release goes unseen.
const (
	fresh = 0xA5
	freed = 0xDB
)

// poison is an allocator that overwrites what it hands out and what it takes back.
type poison struct{ base memory.Allocator }

func (p poison) Allocate(size int) []byte {
	b := p.base.Allocate(size)
	fill(b, fresh)
	return b
}

func (p poison) Reallocate(size int, b []byte) []byte {
	// A move always, so that a slice of the old buffer shows as garbage.
	n := p.Allocate(size)
	copy(n, b)
	p.Free(b)
	return n
}

func (p poison) Free(b []byte) {
	fill(b[:cap(b)], freed)
	p.base.Free(b)
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// Mem returns the allocator of a test: what is not released when t ends fails t
// with the place it was allocated at, and memory is poisoned when handed out and
// when freed. It is safe for concurrent use.
func Mem(t testing.TB) memory.Allocator {
	t.Helper()
	mem := memory.NewCheckedAllocator(poison{memory.NewGoAllocator()})
	t.Cleanup(func() {
		t.Helper()
		if !t.Failed() {
			mem.AssertSize(t, 0)
		}
	})
	return mem
}
