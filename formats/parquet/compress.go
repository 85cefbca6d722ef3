package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/compress/brotli"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"github.com/tidemill/tidemill/formats/codec"
)

var errDamaged = errors.New("the compressed data of a page is damaged")

// maxRatio bounds how much larger than its compressed form a page can be, so that a
// damaged size is found before memory is allocated for it.
func maxRatio(codec format.CompressionCodec) int {
	switch codec {
	case format.Uncompressed:
		return 1
	case format.Snappy:
		return 32
	case format.Lz4, format.Lz4Raw:
		return 256
	case format.Gzip:
		return 1100
	}
	return 1 << 16
}

// decompress fills dst, which has exactly the page's uncompressed size, from src.
func decompress(codec format.CompressionCodec, dst, src []byte) error {
	if len(dst) == 0 {
		return nil
	}
	switch codec {
	case format.Uncompressed:
		if len(src) != len(dst) {
			return errDamaged
		}
		copy(dst, src)
		return nil
	case format.Snappy:
		if n, err := s2.DecodedLen(src); err != nil || n != len(dst) {
			return errDamaged
		}
		_, err := s2.Decode(dst, src)
		return err
	case format.Zstd:
		return decompressZstd(dst, src)
	case format.Gzip:
		return decompressGzip(dst, src)
	case format.Brotli:
		out, err := new(brotli.Codec).Decode(dst[:0:len(dst)], src)
		if err == nil && len(out) != len(dst) {
			err = errDamaged
		}
		if err == nil && &out[0] != &dst[0] {
			copy(dst, out)
		}
		return err
	case format.Lz4Raw:
		return decompressBlock(dst, src)
	case format.Lz4:
		if decompressHadoop(dst, src) == nil {
			return nil
		}
		return decompressBlock(dst, src)
	}
	return fmt.Errorf("pages are compressed with %s, which is not supported", codec)
}

func decompressBlock(dst, src []byte) error {
	n, err := lz4.UncompressBlock(src, dst)
	if err == nil && n != len(dst) {
		err = errDamaged
	}
	return err
}

// decompressHadoop decodes the framing that Hadoop puts around LZ4 blocks: the sizes
// of the content and of the block, each four bytes big-endian, then the block.
func decompressHadoop(dst, src []byte) error {
	for len(dst) > 0 {
		if len(src) < 8 {
			return errDamaged
		}
		size, block := int(binary.BigEndian.Uint32(src)), int(binary.BigEndian.Uint32(src[4:]))
		src = src[8:]
		if size > len(dst) || block > len(src) {
			return errDamaged
		}
		if err := decompressBlock(dst[:size], src[:block]); err != nil {
			return err
		}
		dst, src = dst[size:], src[block:]
	}
	return nil
}

var gzipReaders sync.Pool

func decompressGzip(dst, src []byte) error {
	r, ok := gzipReaders.Get().(*gzip.Reader)
	if !ok {
		r = new(gzip.Reader)
	}
	defer gzipReaders.Put(r)
	if err := r.Reset(bytes.NewReader(src)); err != nil {
		return err
	}
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	var more [1]byte
	if n, err := r.Read(more[:]); n != 0 || err != io.EOF {
		return errDamaged
	}
	return nil
}

// zstdDecoder is shared: DecodeAll may be called by many goroutines.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<31), zstd.WithDecodeAllCapLimit(true))
})

func decompressZstd(dst, src []byte) error {
	d, err := zstdDecoder()
	if err != nil {
		return err
	}
	out, err := d.DecodeAll(src, dst[:0:len(dst)])
	if err == nil && len(out) != len(dst) {
		err = errDamaged
	}
	return err
}

// zstdEncoders are shared, one a level: EncodeAll may be called by many goroutines.
var zstdEncoders sync.Map

func zstdEncoder(level zstd.EncoderLevel) (*zstd.Encoder, error) {
	make1, _ := zstdEncoders.LoadOrStore(level, sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(false))
	}))
	return make1.(func() (*zstd.Encoder, error))()
}

// gzipWriters are kept for the next page, by level.
var gzipWriters [gzip.BestCompression + 1]sync.Pool

// compressPage appends the compressed form of src to dst.
func (c Compression) compressPage(dst, src []byte, level int) ([]byte, error) {
	switch c {
	case Snappy:
		at := len(dst)
		dst = slices.Grow(dst, s2.MaxEncodedLen(len(src)))
		room := dst[at:cap(dst)]
		return dst[:at+len(s2.EncodeSnappy(room, src))], nil
	case Zstd:
		e, err := zstdEncoder(codec.ZstdLevel(level))
		if err != nil {
			return nil, err
		}
		return e.EncodeAll(src, dst), nil
	case Gzip:
		var out bytes.Buffer
		level = min(level, gzip.BestCompression)
		w, ok := gzipWriters[level].Get().(*gzip.Writer)
		if !ok {
			var err error
			if w, err = gzip.NewWriterLevel(&out, codec.GzipLevel(level)); err != nil {
				return nil, err
			}
		}
		defer gzipWriters[level].Put(w)
		w.Reset(&out)
		if _, err := w.Write(src); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		return append(dst, out.Bytes()...), nil
	}
	return append(dst, src...), nil
}

func (c Compression) codec() format.CompressionCodec {
	return [...]format.CompressionCodec{format.Snappy, format.Uncompressed, format.Zstd, format.Gzip}[c]
}

func (c Compression) String() string { return [...]string{"snappy", "none", "zstd", "gzip"}[c] }
