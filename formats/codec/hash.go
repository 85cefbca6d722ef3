package codec

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/logical/connector"
)

// HashBlock is the size of the blocks of a file that are hashed apart, so that units
// of one file can be read in parallel: unit boundaries are multiples of it.
const HashBlock = 8 << 20

// ContentHash is the hash of a file: xxh3-128 over the xxh3-128 of each block of
// HashBlock raw bytes. Each block is fed in order by one goroutine; different blocks
// by any. Methods of a nil *ContentHash do nothing.
type ContentHash struct {
	mu     sync.Mutex
	blocks []xxh3.Uint128
	done   []bool
}

// NewContentHash prepares for a file of size bytes.
func NewContentHash(size int64) *ContentHash {
	n := int((size + HashBlock - 1) / HashBlock)
	return &ContentHash{blocks: make([]xxh3.Uint128, n), done: make([]bool, n)}
}

// Set stores the hash of block i.
func (h *ContentHash) Set(i int, sum xxh3.Uint128) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blocks[i] = sum
	h.done[i] = true
}

// Sum is the hash of the whole file in hexadecimal; it fails if a block was not read.
func (h *ContentHash) Sum() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all xxh3.Hasher
	for i, b := range h.blocks {
		if !h.done[i] {
			return "", fmt.Errorf("bug: block %d of the file was not hashed", i)
		}
		bytes := b.Bytes()
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
