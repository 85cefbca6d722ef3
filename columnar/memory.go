package columnar

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// ErrMemory is matched by every refusal of a Budget.
var ErrMemory = errors.New("memory limit")

// MemoryError says who was refused how much.
type MemoryError struct {
	Who         string
	Asked, Used int64
	Limit       int64
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s needs %d more bytes, but %d of the limit of %d are in use; raise the limit with SET memory_limit", e.Who, e.Asked, e.Used, e.Limit)
}

// Is makes errors.Is(err, ErrMemory) hold.
func (e *MemoryError) Is(target error) bool { return target == ErrMemory }

// Budget bounds the memory of one query. Operators ask at growth points. It is
// safe for concurrent use; a nil Budget never refuses.
type Budget struct {
	limit int64
	used  atomic.Int64
	peak  atomic.Int64
}

// NewBudget allows limit bytes; 0 or less means no limit.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Reserve takes n more bytes for who, or returns a *MemoryError and takes nothing.
func (b *Budget) Reserve(who string, n int64) error {
	if b == nil {
		return nil
	}
	used := b.used.Add(n)
	if b.limit > 0 && used > b.limit {
		b.used.Add(-n)
		return &MemoryError{Who: who, Asked: n, Used: used - n, Limit: b.limit}
	}
	for p := b.peak.Load(); used > p && !b.peak.CompareAndSwap(p, used); p = b.peak.Load() {
	}
	return nil
}

// Return gives n reserved bytes back.
func (b *Budget) Return(n int64) {
	if b != nil {
		b.used.Add(-n)
	}
}

// Limit is how many bytes may be reserved; 0 is any number.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	return max(b.limit, 0)
}

// Used and Peak are the bytes reserved now and at most so far.
func (b *Budget) Used() int64 { return b.used.Load() }

// Peak is the most that was ever reserved at one time.
func (b *Budget) Peak() int64 { return b.peak.Load() }

// Touch writes to every page of words, which are all zero: those of a hash table that is
// about to be looked into at random. A page the system has not given memory yet costs two
// faults if it is read before it is written, and the second one interrupts every core.
func Touch[T uint32 | uint64](words []T) {
	const page = 4096 / 8 // words of eight bytes
	for i := 0; i < len(words); i += page {
		words[i] = 0
	}
}

// Size classes of a Pool: four per power of two, from 64 bytes to 64 MiB.
const (
	minClassBits = 6
	maxClassBits = 26
	classes      = (maxClassBits - minClassBits) * 4
	poolKeep     = 64 << 20 // bytes kept for reuse, all classes together
)

// Pool is an Arrow allocator that keeps freed buffers for reuse, by size class.
// A fresh buffer costs several times the work of filling it (page faults and
// clearing), so releasing in time is what makes the engine fast. Memory handed out
// is not cleared. It is safe for concurrent use.
type Pool struct {
	mu   [classes + 1]sync.Mutex
	free [classes + 1][][]byte
	kept atomic.Int64
	live atomic.Int64
}

var _ memory.Allocator = (*Pool)(nil)

// NewPool returns an empty pool.
func NewPool() *Pool { return &Pool{} }

// sizeClass is the class that holds size bytes and that class's size.
func sizeClass(size int) (class, capacity int) {
	if size <= 1<<minClassBits {
		return 0, 1 << minClassBits
	}
	b := bits.Len(uint(size-1)) - 1 // 2^b < size <= 2^(b+1)
	quarter := 1 << (b - 2)
	k := (size - 1<<b + quarter - 1) / quarter // 1..4
	return (b-minClassBits)*4 + k, 1<<b + k*quarter
}

// Allocate returns size bytes with undefined content, 64-byte aligned.
func (p *Pool) Allocate(size int) []byte {
	p.live.Add(int64(size))
	class, capacity := sizeClass(size)
	if class > classes {
		return memory.DefaultAllocator.Allocate(size)
	}
	p.mu[class].Lock()
	if l := p.free[class]; len(l) > 0 {
		b := l[len(l)-1]
		p.free[class] = l[:len(l)-1]
		p.mu[class].Unlock()
		p.kept.Add(-int64(capacity))
		return b[:size]
	}
	p.mu[class].Unlock()
	return memory.DefaultAllocator.Allocate(capacity)[:size:capacity]
}

// Reallocate returns a buffer of size bytes that begins with the content of b; b
// may no longer be used.
func (p *Pool) Reallocate(size int, b []byte) []byte {
	if cap(b) >= size {
		p.live.Add(int64(size - len(b)))
		return b[:size]
	}
	n := p.Allocate(size)
	copy(n, b)
	p.Free(b)
	return n
}

// Free gives b back for reuse. Buffers of a foreign capacity are left to the
// garbage collector.
func (p *Pool) Free(b []byte) {
	p.live.Add(-int64(len(b)))
	if cap(b) == 0 {
		return
	}
	class, capacity := sizeClass(cap(b))
	if class > classes || capacity != cap(b) {
		return
	}
	if p.kept.Add(int64(capacity)) > poolKeep {
		p.kept.Add(-int64(capacity))
		return
	}
	p.mu[class].Lock()
	p.free[class] = append(p.free[class], b[:capacity])
	p.mu[class].Unlock()
}

// Live is the number of bytes handed out and not yet freed.
func (p *Pool) Live() int64 { return p.live.Load() }
