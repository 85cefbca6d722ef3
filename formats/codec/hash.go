package codec

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/logical/connector"
)

// HashBlock is the size of the blocks of a file that are hashed apart, so that units
// of one file can be read in parallel.
const HashBlock = 8 << 20

// ContentHash is the hash of a file: xxh3-128 over the xxh3-128 of each block of
// HashBlock raw bytes. The bytes may come from several goroutines, in any order. Methods
// of a nil *ContentHash do nothing.
type ContentHash struct {
	size   int64
	blocks []blockHash
}

// blockHash is the hash of one block. What is read ahead of its turn is kept: at most what
// the units of a block that are being read at once have in hand.
type blockHash struct {
	mu     sync.Mutex
	next   int64 // the offset in the file that is hashed next
	hasher *xxh3.Hasher
	ahead  []keptBytes
	sum    xxh3.Uint128
	done   bool
}

type keptBytes struct {
	off int64
	buf []byte // of takeBuffer
	n   int
}

// NewContentHash prepares for a file of size bytes.
func NewContentHash(size int64) *ContentHash {
	h := &ContentHash{size: size, blocks: make([]blockHash, (size+HashBlock-1)/HashBlock)}
	for i := range h.blocks {
		h.blocks[i].next = int64(i) * HashBlock
	}
	return h
}

// Set stores the hash of block i.
func (h *ContentHash) Set(i int, sum xxh3.Uint128) {
	if h == nil {
		return
	}
	b := &h.blocks[i]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sum, b.done = sum, true
}

// Add takes the bytes p of the file that begin at off. Bytes that were taken before are
// passed over.
func (h *ContentHash) Add(off int64, p []byte) {
	if h == nil {
		return
	}
	for len(p) > 0 {
		i := off / HashBlock
		end := min((i+1)*HashBlock, h.size)
		n := min(int64(len(p)), end-off)
		h.blocks[i].add(off, end, p[:n])
		off += n
		p = p[n:]
	}
}

// add takes bytes of a block that ends at end.
func (b *blockHash) add(off, end int64, p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return
	}
	if off > b.next {
		kept := keptBytes{off: off, buf: takeBuffer(len(p)), n: len(p)}
		copy(kept.buf, p)
		b.ahead = append(b.ahead, kept)
		return
	}
	b.write(off, p)
	for i := 0; i < len(b.ahead); i++ {
		if k := b.ahead[i]; k.off <= b.next {
			b.write(k.off, k.buf[:k.n])
			giveBuffer(k.buf)
			b.ahead = slices.Delete(b.ahead, i, i+1)
			i = -1 // what was passed may be next now
		}
	}
	if b.next == end {
		b.sum, b.done, b.hasher = b.hasher.Sum128(), true, nil
	}
}

// write hashes what of p, which begins at off, was not hashed yet.
func (b *blockHash) write(off int64, p []byte) {
	if b.next-off >= int64(len(p)) {
		return
	}
	if b.hasher == nil {
		b.hasher = xxh3.New()
	}
	_, _ = b.hasher.Write(p[b.next-off:])
	b.next = off + int64(len(p))
}

// Sum is the hash of the whole file in hexadecimal; it fails if a block was not read.
func (h *ContentHash) Sum() (string, error) {
	var all xxh3.Hasher
	for i := range h.blocks {
		b := &h.blocks[i]
		b.mu.Lock()
		sum, done := b.sum, b.done
		b.mu.Unlock()
		if !done {
			return "", fmt.Errorf("bug: block %d of the file was not hashed", i)
		}
		bytes := sum.Bytes()
		all.Write(bytes[:])
	}
	sum := all.Sum128().Bytes()
	return hex.EncodeToString(sum[:]), nil
}

// HashFile takes the content hash of a file, where one is wanted, by reading all of it:
// for formats that may not read each part otherwise.
func HashFile(ctx context.Context, file File) error {
	if file.Hash == nil {
		return nil
	}
	h, err := file.FS.Open(file.Path)
	if err != nil {
		return err
	}
	defer h.Close()
	buf := make([]byte, 1<<18)
	hasher := xxh3.New()
	for block := 0; int64(block)*HashBlock < file.Size; block++ {
		hasher.Reset()
		from := int64(block) * HashBlock
		part := io.NewSectionReader(h, from, min(HashBlock, file.Size-from))
		n, err := io.CopyBuffer(hasher, struct{ io.Reader }{part}, buf)
		switch {
		case err != nil:
			return err
		case n < part.Size():
			return &connector.FileChangedError{Path: file.Path, Was: file.FileIdentity}
		case ctx.Err() != nil:
			return ctx.Err()
		}
		file.Hash.Set(block, hasher.Sum128())
	}
	return nil
}
