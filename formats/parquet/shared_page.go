package parquet

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go/format"
)

// sharedPage is a page whose values become arrays where they stand. It is read or
// decompressed into a buffer that lives as long as those arrays.
type sharedPage struct {
	share    bool // values of plain pages are wanted as they are stored
	least    int  // values of a page that is worth it
	mem      memory.Allocator
	page     *memory.Buffer
	inShared bool // the current page is in it
	given    bool // arrays have parts of it
}

// headerWindow is how much is read for the header of a page whose values are then read to
// where they are wanted.
const headerWindow = 4 << 10

// sharePages has pages read so that arrays can be parts of them.
func (p *chunkPages) sharePages(mem memory.Allocator) {
	p.share, p.mem = true, mem
	if p.isUncopied() {
		p.window = min(p.window, smallWindow)
	}
}

// isUncopied says whether all of the chunk's pages are likely to be read to where their
// values are wanted.
func (p *chunkPages) isUncopied() bool {
	return p.share && p.meta.Codec == format.Uncompressed &&
		!slices.Contains(p.meta.Encoding, format.RLEDictionary) && !slices.Contains(p.meta.Encoding, plainDictionary)
}

// isShareable says whether arrays can be parts of the page whose header was read.
func (p *chunkPages) isShareable() bool {
	if !p.share || p.header.UncompressedPageSize > maxPooled {
		return false // a few rows could keep a large page
	}
	switch h := &p.header; h.Type {
	case format.DataPage:
		return h.DataPageHeader.Valid && h.DataPageHeader.V.Encoding == format.Plain && int(h.DataPageHeader.V.NumValues) >= p.least
	case format.DataPageV2:
		return h.DataPageHeaderV2.Valid && h.DataPageHeaderV2.V.Encoding == format.Plain && int(h.DataPageHeaderV2.V.NumValues) >= p.least
	}
	return false
}

// levelBytes is how many bytes of levels stand before the values, if none is null, where
// levels and values are in one piece.
func (p *chunkPages) levelBytes() int {
	switch {
	case p.header.Type == format.DataPageV2 && p.meta.Codec == format.Uncompressed:
		return int(p.header.DataPageHeaderV2.V.DefinitionLevelsByteLength)
	case p.header.Type == format.DataPageV2 || p.leaf.def == 0:
		return 0
	}
	// Their length, and one run.
	return 4 + len(binary.AppendUvarint(nil, uint64(p.header.DataPageHeader.V.NumValues)<<1)) + 1
}

// wordBytes is what the values of arrays are aligned to.
const wordBytes = 8

// room is size bytes of the shared page; what follows the first levels is aligned.
func (p *chunkPages) room(size, levels int) []byte {
	need := size + wordBytes + padding
	if p.page != nil && (p.given || p.page.Len() < need) {
		p.release()
	}
	if p.page == nil {
		p.page = memory.NewResizableBuffer(p.mem)
		p.page.ResizeNoShrink(need)
	}
	p.inShared, p.given = true, false
	lead := -levels & (wordBytes - 1)
	return p.page.Bytes()[lead : lead+size]
}

// readShared is body for an uncompressed page.
func (p *chunkPages) readShared(n int) ([]byte, error) {
	have := min(n, len(p.buf)-p.pos)
	if int64(n-have) > p.end-p.at-int64(have) {
		return nil, errors.New("a page reaches beyond the end of the file")
	}
	b := p.room(n, p.levelBytes())
	copy(b, p.buf[p.pos:p.pos+have])
	p.advance(have)
	if have == n {
		return b, nil
	}
	if err := readFull(p.file, b[have:], p.at); err != nil {
		return nil, err
	}
	p.moveTo(p.at + int64(n-have))
	if p.isUncopied() {
		p.window = headerWindow
	}
	return b, nil
}

// slice is the part of the shared page that values of the current page are; nil if they
// are not aligned.
func (p *chunkPages) slice(values []byte) *memory.Buffer {
	at := cap(p.page.Bytes()) - cap(values)
	if at%wordBytes != 0 {
		return nil
	}
	p.given = true
	return memory.SliceBuffer(p.page, at, len(values))
}

func (s *sharedPage) release() {
	if s.page != nil {
		s.page.Release()
		s.page = nil
	}
	s.inShared = false
}
