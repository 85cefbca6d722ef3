package parquet

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"
	"sync"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// chunkPages reads the pages of one column chunk one after another.
type chunkPages struct {
	file   io.ReaderAt
	end    int64 // where the file ends
	meta   *format.ColumnMetaData
	leaf   *node
	at     int64  // offset in the file of buf[pos]
	window int    // bytes read at a time
	buf    []byte // read ahead; has padding bytes of spare capacity
	pos    int
	plain  []byte // decompressed page, reused
	pooled *pageBuffers
	left   int64 // values (with nulls) in the pages not yet read
	// Bytes by which the chunk may be longer than it says.
	unstated int64
	header   format.PageHeader
	places   []pageLocation // where the pages are; nil where that is not known
	expect   int64          // values of the next page, by places; 0: not known

	sharedPage
}

// pageBuffers are handed from one column chunk to the next.
type pageBuffers struct{ buf, plain []byte }

var pagePool = sync.Pool{New: func() any { return new(pageBuffers) }}

// maxPooled keeps the buffers of unusually large pages out of the pool.
const maxPooled = 4 << 20

// close gives the buffers back; no page may be used any more.
func (p *chunkPages) close() {
	p.release()
	if p.pooled == nil {
		return
	}
	if cap(p.buf) <= maxPooled && cap(p.plain) <= maxPooled {
		p.pooled.buf, p.pooled.plain = p.buf[:0], p.plain[:0]
		pagePool.Put(p.pooled)
	}
	p.pooled, p.buf, p.plain, p.left = nil, nil, nil, 0
}

// dataPage is one decoded page: where its levels and values are. It is valid until
// the next page is read.
type dataPage struct {
	values   int // with nulls, and empty lists
	nulls    int // of them by the header; 0 may also mean that it does not say
	encoding format.Encoding
	rep, def levels
	data     []byte // the encoded values; padding bytes may be read after them
}

// levels is a page's stream of repetition or definition levels.
type levels struct {
	max    int
	stream hybrid
	plain  []byte // of the deprecated encoding: decoded as a whole
}

// read decodes the next len(dst) levels.
func (l *levels) read(dst []byte) error {
	if l.plain != nil {
		if len(l.plain) < len(dst) {
			return errShort
		}
		copy(dst, l.plain)
		l.plain = l.plain[len(dst):]
	} else if err := l.stream.levels(dst); err != nil {
		return err
	}
	top := byte(0)
	for _, v := range dst {
		top = max(top, v)
	}
	if int(top) > l.max {
		return errors.New("a level is larger than the schema allows")
	}
	return nil
}

func newChunkPages(file io.ReaderAt, m *fileMeta, group int, leaf *node, window int) *chunkPages {
	meta := &m.footer.RowGroups[group].Columns[leaf.leaf].MetaData
	pooled := pagePool.Get().(*pageBuffers)
	return &chunkPages{
		file: file, end: m.size, meta: meta, leaf: leaf,
		at: chunkStart(meta), window: window, left: meta.NumValues,
		pooled: pooled, buf: pooled.buf, plain: pooled.plain,
	}
}

// bytes are what the chunk's pages with rows of some ranges have; all where it is not
// known which those are.
func (p *chunkPages) bytes(ranges []rowRange) int64 {
	total, end := p.meta.TotalCompressedSize, chunkStart(p.meta)+p.meta.TotalCompressedSize
	for i := len(p.places) - 1; i >= 0; i-- {
		x := p.places[i]
		if !slices.ContainsFunc(ranges, func(r rowRange) bool { return r.from < x.end && x.row < r.to }) {
			total -= end - x.offset
		}
		end = x.offset
	}
	return total
}

// fill makes at least n bytes available at buf[pos:].
func (p *chunkPages) fill(n int) error {
	have := len(p.buf) - p.pos
	if have >= n {
		return nil
	}
	next := p.at + int64(have)
	// Not beyond the chunk, but some writers state its length too short.
	more := max(int64(n-have), min(int64(p.window-have), chunkStart(p.meta)+p.meta.TotalCompressedSize-next))
	more = min(more, p.end-next)
	if more < int64(n-have) {
		return errors.New("a page reaches beyond the end of the file")
	}
	size := have + int(more)
	if cap(p.buf) < size+padding {
		grown := make([]byte, size, max(size, p.bufferSize())+padding)
		copy(grown, p.buf[p.pos:])
		p.buf = grown
	} else {
		copy(p.buf[:size], p.buf[p.pos:])
		p.buf = p.buf[:size]
	}
	p.pos = 0
	return readFull(p.file, p.buf[have:], next)
}

// bufferSize is how much to make room for: a window and the end of a page, or a small chunk as
// a whole. The buffer is handed to other chunks, so that there are few sizes.
func (p *chunkPages) bufferSize() int {
	window := p.window + p.window/4
	if chunk := p.meta.TotalCompressedSize; 0 < chunk && chunk < int64(window) {
		return min(window, 1<<bits.Len64(uint64(chunk)))
	}
	return window
}

func (p *chunkPages) advance(n int) {
	p.pos += n
	p.at += int64(n)
}

// plainDictionary is what older writers call both the encoding of a dictionary and
// that of the codes.
const plainDictionary = format.Encoding(2)

// dictionaryHeader is more bytes than the header of a dictionary page has, which some writers
// leave out of the length of a chunk.
const dictionaryHeader = 100

// checkEncoding refuses the encodings of newer writers, all of which list what a chunk has,
// where it is not listed.
func (p *chunkPages) checkEncoding(e format.Encoding) error {
	if e >= format.DeltaBinaryPacked && e != format.RLEDictionary && len(p.meta.Encoding) > 0 && !slices.Contains(p.meta.Encoding, e) {
		return fmt.Errorf("a page is encoded as %s, which the footer does not list", e)
	}
	return nil
}

// maxHeader is the most bytes a page header may have; statistics in it can be long.
const maxHeader = 16 << 20

// readHeader decodes the next page's header.
func (p *chunkPages) readHeader() error {
	for want := 64; ; want *= 8 {
		// Headers are short; the first try usually finds the window full.
		n := int(min(int64(want), p.end-p.at))
		if n <= 0 {
			return errors.New("its pages reach beyond the end of the file")
		}
		if err := p.fill(n); err != nil {
			return err
		}
		p.header = format.PageHeader{}
		var protocol thrift.CompactProtocol
		r := protocol.NewReaderFromBytes(p.buf[p.pos:])
		err := thrift.NewDecoder(r).Decode(&p.header)
		if err == nil {
			p.advance(r.BytesRead())
			return p.checkHeader()
		}
		short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if !short || want > maxHeader || int64(n) == p.end-p.at {
			return fmt.Errorf("a page header cannot be decoded: %w", err)
		}
		want = max(want, len(p.buf)-p.pos)
	}
}

func (p *chunkPages) checkHeader() error {
	compressed, plain := p.header.CompressedPageSize, p.header.UncompressedPageSize
	if compressed < 0 || plain < 0 || int64(compressed) > p.end-p.at {
		return fmt.Errorf("a page claims %d bytes", compressed)
	}
	if int64(plain) > int64(compressed)*int64(maxRatio(p.meta.Codec))+1024 {
		return fmt.Errorf("a page of %d bytes claims to hold %d", compressed, plain)
	}
	return nil
}

// body returns the bytes of the page whose header was read. They stand in buf, or
// wherever the decompressor puts them.
func (p *chunkPages) body() ([]byte, error) {
	n := int(p.header.CompressedPageSize)
	var b []byte
	p.inShared = false
	if p.meta.Codec == format.Uncompressed && p.isShareable() {
		var err error
		if b, err = p.readShared(n); err != nil {
			return nil, err
		}
	} else {
		if err := p.fill(n); err != nil {
			return nil, err
		}
		b = p.buf[p.pos : p.pos+n]
		p.advance(n)
	}
	if sum := uint32(p.header.CRC); sum != 0 && sum != crc32.ChecksumIEEE(b) {
		return nil, errors.New("a page's checksum is wrong")
	}
	return b, nil
}

// inflate decompresses src, which must give size bytes. reuse says that the result
// need not outlive the next page.
func (p *chunkPages) inflate(src []byte, size int, reuse bool) ([]byte, error) {
	if p.meta.Codec == format.Uncompressed {
		if size != len(src) {
			return nil, errDamaged
		}
		return src, nil
	}
	if p.isShareable() {
		dst := p.room(size, p.levelBytes())
		return dst, decompress(p.meta.Codec, dst, src)
	}
	if !reuse {
		dst := make([]byte, size, size+padding)
		return dst, decompress(p.meta.Codec, dst, src)
	}
	if cap(p.plain) < size+padding {
		p.plain = make([]byte, size+size/8, size+size/8+padding)
	}
	p.plain = p.plain[:size]
	return p.plain, decompress(p.meta.Codec, p.plain, src)
}

// next reads up to the next data page; dictionary is called for a dictionary page
// on the way. At the end of the chunk it returns io.EOF.
func (p *chunkPages) next(page *dataPage, dictionary func(data []byte, n int) error) error {
	for p.left > 0 {
		if p.at >= chunkStart(p.meta)+p.meta.TotalCompressedSize+p.unstated {
			return errors.New("its pages end before its values do")
		}
		if err := p.readHeader(); err != nil {
			return err
		}
		b, err := p.body()
		if err != nil {
			return err
		}
		switch p.header.Type {
		case format.DictionaryPage:
			if err := p.dictionaryPage(b, dictionary); err != nil {
				return err
			}
		case format.DataPage:
			err = p.pageV1(page, b)
		case format.DataPageV2:
			err = p.pageV2(page, b)
		default:
			continue // index pages, and what may come
		}
		if err != nil {
			return err
		}
		if p.header.Type != format.DictionaryPage && page.values > 0 {
			if int64(page.values) > p.left {
				return errors.New("its pages have more values than the chunk")
			}
			if p.expect > 0 && p.expect != int64(page.values) {
				return fmt.Errorf("a page has %d values, by the page index %d", page.values, p.expect)
			}
			p.expect = 0
			p.left -= int64(page.values)
			return nil
		}
	}
	return io.EOF
}

// skip moves to the page with the row that is n rows ahead, if that is another page and it
// is known where that is, and returns how many rows the pages on the way have. The leaf is
// not repeated.
func (p *chunkPages) skip(n int64, dictionary func(data []byte, n int) error) (skipped int64, err error) {
	if p.places == nil {
		return 0, nil
	}
	row := p.places[len(p.places)-1].end - p.left
	to := pageOf(p.places, row+n)
	if to == len(p.places) || p.places[to].row <= row {
		return 0, nil
	}
	if err := p.readDictionary(dictionary); err != nil {
		return 0, err
	}
	p.moveTo(p.places[to].offset)
	p.left -= p.places[to].row - row
	p.expect = p.places[to].end - p.places[to].row
	return p.places[to].row - row, nil
}

// readDictionary reads what stands before the first data page, if that was not read yet.
func (p *chunkPages) readDictionary(dictionary func(data []byte, n int) error) error {
	for p.at < p.places[0].offset {
		if err := p.readHeader(); err != nil {
			return err
		}
		b, err := p.body()
		if err != nil {
			return err
		}
		if p.header.Type == format.DictionaryPage {
			if err := p.dictionaryPage(b, dictionary); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveTo makes the page at an offset of the file the next one.
func (p *chunkPages) moveTo(offset int64) {
	if ahead := offset - p.at; ahead >= 0 && ahead <= int64(len(p.buf)-p.pos) {
		p.advance(int(ahead))
		return
	}
	p.buf, p.pos, p.at = p.buf[:0], 0, offset
}

func (p *chunkPages) dictionaryPage(b []byte, dictionary func([]byte, int) error) error {
	h := p.header.DictionaryPageHeader
	if !h.Valid || h.V.NumValues < 0 {
		return errors.New("a dictionary page has no proper header")
	}
	p.unstated = dictionaryHeader
	if e := h.V.Encoding; e != format.Plain && e != plainDictionary {
		return fmt.Errorf("a dictionary is encoded as %s", e)
	}
	data, err := p.inflate(b, int(p.header.UncompressedPageSize), false)
	if err != nil {
		return err
	}
	return dictionary(data, int(h.V.NumValues))
}

func (p *chunkPages) pageV1(page *dataPage, b []byte) error {
	h := p.header.DataPageHeader
	if !h.Valid || h.V.NumValues < 0 {
		return errors.New("a data page has no proper header")
	}
	data, err := p.inflate(b, int(p.header.UncompressedPageSize), true)
	if err != nil {
		return err
	}
	*page = dataPage{values: int(h.V.NumValues), encoding: h.V.Encoding}
	if page.rep, data, err = levelsV1(data, h.V.RepetitionLevelEncoding, p.leaf.rep, page.values); err != nil {
		return err
	}
	page.def, page.data, err = levelsV1(data, h.V.DefinitionLevelEncoding, p.leaf.def, page.values)
	return err
}

// levelsV1 finds the levels at the beginning of the data of a version 1 page, and
// returns what follows them.
func levelsV1(data []byte, e format.Encoding, max, n int) (levels, []byte, error) {
	if max == 0 {
		return levels{}, data, nil
	}
	width := uint(bits.Len(uint(max)))
	if e == format.BitPacked {
		size := (n*int(width) + 7) / 8
		if size > len(data) {
			return levels{}, nil, errShort
		}
		plain := make([]byte, n)
		return levels{max: max, plain: plain}, data[size:], bitPackedLevels(plain, data[:size], width)
	}
	if len(data) < 4 {
		return levels{}, nil, errShort
	}
	size := int64(data[0]) | int64(data[1])<<8 | int64(data[2])<<16 | int64(data[3])<<24
	if size > int64(len(data)-4) {
		return levels{}, nil, errShort
	}
	return levels{max: max, stream: newHybrid(data[4:4+size], width)}, data[4+size:], nil
}

func (p *chunkPages) pageV2(page *dataPage, b []byte) error {
	h := p.header.DataPageHeaderV2
	v := h.V
	if !h.Valid || v.NumValues < 0 || v.RepetitionLevelsByteLength < 0 || v.DefinitionLevelsByteLength < 0 ||
		int64(v.RepetitionLevelsByteLength)+int64(v.DefinitionLevelsByteLength) > int64(len(b)) {
		return errors.New("a data page has no proper header")
	}
	*page = dataPage{values: int(v.NumValues), nulls: int(v.NumNulls), encoding: v.Encoding}
	rep, def := int(v.RepetitionLevelsByteLength), int(v.DefinitionLevelsByteLength)
	if p.leaf.rep > 0 {
		page.rep = levels{max: p.leaf.rep, stream: newHybrid(b[:rep], uint(bits.Len(uint(p.leaf.rep))))}
	}
	if p.leaf.def > 0 {
		page.def = levels{max: p.leaf.def, stream: newHybrid(b[rep:rep+def], uint(bits.Len(uint(p.leaf.def))))}
	}
	page.data = b[rep+def:]
	size := int(p.header.UncompressedPageSize) - rep - def
	switch {
	case size < 0:
		return errDamaged
	case size == 0:
		page.data = page.data[:0] // a codec may have written bytes for nothing
		return nil
	case v.IsCompressed.Valid && !v.IsCompressed.V:
		return nil
	}
	var err error
	page.data, err = p.inflate(page.data, size, true)
	return err
}
