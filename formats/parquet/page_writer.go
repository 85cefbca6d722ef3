package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/bits"

	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// endRows is called when whole rows have been appended.
func (w *leafWriter) endRows() error {
	size := len(w.values)
	if w.dict != nil {
		size = len(w.dict.codes) * 4
		if w.dict.tooLarge() {
			return w.giveUpDictionary()
		}
	}
	if size >= pageBytes || w.rows >= pageRows {
		return w.flushPage()
	}
	return nil
}

// giveUpDictionary goes on with plain texts. What the chunk has so far stays coded,
// unless that is only the current page.
func (w *leafWriter) giveUpDictionary() error {
	if w.codePages > 0 {
		if err := w.flushPage(); err != nil {
			return err
		}
		w.dict, w.kept = nil, w.dict
		return nil
	}
	d := w.dict
	w.dict = nil
	for _, c := range d.codes {
		w.appendText(d.text(c))
	}
	return w.endRows()
}

// flushPage encodes, compresses and records the page.
func (w *leafWriter) flushPage() error {
	if w.rows == 0 {
		return nil
	}
	m := pageMemories.Get().(*pageMemory)
	defer m.giveBack()
	encoding, err := w.encodePage(m)
	if err != nil {
		return err
	}
	at := w.pages.size
	header := format.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(format.DataPageHeader{
		NumValues: int32(len(w.defs)), Encoding: encoding,
		DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		Statistics: format.Statistics{NullCount: int64(w.nulls)},
	})}
	head, err := w.seal(&header, m.body, m)
	if err != nil {
		return err
	}
	w.pages.append(head)
	w.pages.append(m.packed)
	low, high := w.stats.encode(w.kind, w.length)
	w.index = append(w.index, pageRecord{
		offset: at, size: int32(w.pages.size - at), firstRow: w.chunkRows,
		nulls: int64(w.nulls), allNull: w.count == 0, low: low, high: high,
	})
	w.chunkRows += int64(w.rows)
	w.chunkValues += int64(len(w.defs))
	w.chunkNulls += int64(w.nulls)
	w.chunkStats.merge(w.kind, &w.stats)
	w.defs, w.reps, w.values = w.defs[:0], w.reps[:0], w.values[:0]
	w.rows, w.nulls, w.count = 0, 0, 0
	w.stats.reset()
	return nil
}

// encodePage makes the uncompressed page, m.body: levels, then values.
func (w *leafWriter) encodePage(m *pageMemory) (encoding format.Encoding, err error) {
	b := m.body[:0]
	if w.rep > 0 {
		if b, err = appendLevels(b, w.reps, w.rep); err != nil {
			return 0, err
		}
	}
	if w.def > 0 {
		if b, err = appendLevels(b, w.defs, w.def); err != nil {
			return 0, err
		}
	}
	encoding = format.Plain
	switch {
	case w.dict != nil:
		encoding = format.RLEDictionary
		b, err = w.dict.appendPage(b, &w.stats)
		w.codePages++
	case w.physical == format.Boolean:
		b = appendPackedBools(b, w.values)
		w.plainPages++
	case w.codeNumbers():
		encoding = format.RLEDictionary
		b, err = appendCodes(b, &w.numbers.coded, w.numbers.codes, len(w.numbers.values))
		w.codePages++
	default:
		b = append(b, w.values...)
		w.plainPages++
	}
	m.body = b
	return encoding, err
}

// codeNumbers codes the page's numbers if they are few enough.
func (w *leafWriter) codeNumbers() bool {
	if w.numbersOff || w.count == 0 {
		return false
	}
	w.numbersOff = !w.numbers.encode(w.values, w.numberSize())
	return !w.numbersOff
}

// appendLevels appends run-length encoded levels after their length.
func appendLevels(b, levels []byte, limit int) ([]byte, error) {
	e := rle.Encoding{BitWidth: bits.Len(uint(limit))}
	coded, err := e.EncodeLevels(nil, levels)
	if err != nil {
		return nil, err
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(coded)))
	return append(b, coded...), nil
}

func appendPackedBools(b, values []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, (len(values)+7)/8)...)
	for i, v := range values {
		b[at+i>>3] |= v << (i & 7)
	}
	return b
}

// seal compresses body into m.packed, and returns the page's header.
func (w *leafWriter) seal(header *format.PageHeader, body []byte, m *pageMemory) (head []byte, err error) {
	if err := w.pack(body, m); err != nil {
		return nil, err
	}
	if len(body) > math.MaxInt32 || len(m.packed) > math.MaxInt32 {
		return nil, errors.New("the texts of a few rows are longer than 2 GiB together")
	}
	header.UncompressedPageSize, header.CompressedPageSize = int32(len(body)), int32(len(m.packed))
	header.CRC = int32(crc32.ChecksumIEEE(m.packed))
	head, err = encodeThrift(header)
	w.plainSize += int64(len(head) + len(body))
	return head, err
}

// pack compresses body into m.packed. Values that Snappy hardly shrinks (random
// numbers) are slow to decompress; if a chunk's first page is of that kind the whole
// chunk is stored as it is.
func (w *leafWriter) pack(body []byte, m *pageMemory) (err error) {
	if m.packed, err = w.compression.compressPage(m.packed[:0], body, w.level); err != nil {
		return err
	}
	if !w.decided && w.compression == Snappy && len(m.packed) > len(body)-len(body)/5 {
		w.compression = Uncompressed
		m.packed = append(m.packed[:0], body...)
	}
	w.decided = true
	return nil
}

func encodeThrift(v any) ([]byte, error) {
	var b bytes.Buffer
	var protocol thrift.CompactProtocol
	err := thrift.NewEncoder(protocol.NewWriter(&b)).Encode(v)
	return b.Bytes(), err
}

// dictionaryPage is the bytes of the dictionary page, nil if no page uses it.
func (w *leafWriter) dictionaryPage() ([]byte, error) {
	if w.codePages == 0 {
		return nil, nil
	}
	var plain []byte
	n := 0
	switch {
	case w.numberSize() > 0:
		plain, n = w.numbers.plain(w.numberSize()), len(w.numbers.values)
	case w.dict != nil:
		plain, n = w.dict.plain, len(w.dict.ends)
	default:
		plain, n = w.kept.plain, len(w.kept.ends)
	}
	header := format.PageHeader{Type: format.DictionaryPage, DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{
		NumValues: int32(n), Encoding: format.Plain,
	})}
	m := pageMemories.Get().(*pageMemory)
	defer m.giveBack()
	head, err := w.seal(&header, plain, m)
	return append(head, m.packed...), err
}
