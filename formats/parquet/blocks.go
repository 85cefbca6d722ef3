package parquet

import "sync"

// blockSizes are those of the blocks that bytes are collected in: the first ones are small,
// as most columns of small files are; the last size goes on.
var blockSizes = [...]int{8 << 10, 64 << 10, 512 << 10}

// blockPools keep blocks as pointers to them, so that keeping one allocates nothing.
var blockPools [len(blockSizes)]sync.Pool

// takeBlock is an empty block, number i of its collection.
func takeBlock(i int) *block {
	class := blockClass(i)
	if b, ok := blockPools[class].Get().(*block); ok {
		return b
	}
	return &block{data: make([]byte, 0, blockSizes[class])}
}

type block struct{ data []byte }

// blocks collects bytes in pieces, which are handed from one column chunk to the next: a
// growing one copies nothing.
type blocks struct {
	list []*block // all but the last are full
	size int64
}

func (b *blocks) append(p []byte) {
	b.size += int64(len(p))
	for len(p) > 0 {
		last := len(b.list) - 1
		if last < 0 || len(b.list[last].data) == cap(b.list[last].data) {
			b.list = append(b.list, takeBlock(len(b.list)))
			continue
		}
		k := b.list[last]
		part := p[:min(len(p), cap(k.data)-len(k.data))]
		k.data = append(k.data, part...)
		p = p[len(part):]
	}
}

// writeTo hands out what was collected, in order.
func (b *blocks) writeTo(write func([]byte) error) error {
	for _, block := range b.list {
		if err := write(block.data); err != nil {
			return err
		}
	}
	return nil
}

// room is the memory of its blocks.
func (b *blocks) room() (n int64) {
	for _, block := range b.list {
		n += int64(cap(block.data))
	}
	return n
}

// reset empties b and gives its blocks back.
func (b *blocks) reset() {
	for i, block := range b.list {
		block.data = block.data[:0]
		blockPools[blockClass(i)].Put(block)
		b.list[i] = nil
	}
	b.list, b.size = b.list[:0], 0
}

func blockClass(i int) int { return min(i, len(blockSizes)-1) }
