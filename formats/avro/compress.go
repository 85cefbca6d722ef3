package avro

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/tidemill/tidemill/formats/codec"
)

// Names of codecs in the header.
const (
	codecNull    = "null"
	codecDeflate = "deflate"
	codecSnappy  = "snappy"
	codecZstd    = "zstandard"
	codecBzip2   = "bzip2"
	codecXZ      = "xz"
)

var readable = []string{codecNull, codecDeflate, codecSnappy, codecZstd, codecBzip2, codecXZ}

var codecNames = strings.Join(readable, ", ")

func knownCodec(name string) bool { return slices.Contains(readable, name) }

// crcSize is the bytes behind the data of snappy: the CRC-32 of what it stands for.
const crcSize = 4

// snappyRatio is how many bytes each byte of snappy stands for, at most.
const snappyRatio = 64

// decompressor decompresses blocks of one codec, into memory it uses again.
type decompressor struct {
	codec string
	in    bytes.Reader
	out   bytes.Buffer
	flate io.ReadCloser
	zstd  *zstd.Decoder
}

func (d *decompressor) close() {
	if d.zstd != nil {
		d.zstd.Close()
		d.zstd = nil
	}
}

// open gives the records of a block, until the next one.
func (d *decompressor) open(raw []byte) ([]byte, error) {
	switch d.codec {
	case codecNull:
		return raw, nil
	case codecSnappy:
		return d.snappy(raw)
	}
	d.in.Reset(raw)
	r, err := d.reader()
	if err != nil {
		return nil, err
	}
	d.out.Reset()
	n, err := d.out.ReadFrom(io.LimitReader(r, maxBlock+1))
	if err == nil && n > maxBlock {
		err = errTooLarge
	}
	return d.out.Bytes(), err
}

var errTooLarge = fmt.Errorf("it is larger than %d MiB when decompressed", maxBlock>>20)

func (d *decompressor) reader() (io.Reader, error) {
	switch d.codec {
	case codecDeflate:
		if d.flate == nil {
			d.flate = flate.NewReader(&d.in)
			return d.flate, nil
		}
		return d.flate, d.flate.(flate.Resetter).Reset(&d.in, nil)
	case codecZstd:
		if d.zstd == nil {
			var err error
			d.zstd, err = zstd.NewReader(&d.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecoderLowmem(true))
			return d.zstd, err
		}
		return d.zstd, d.zstd.Reset(&d.in)
	case codecBzip2:
		return bzip2.NewReader(&d.in), nil
	}
	return codec.XZ.NewReader(&d.in)
}

func (d *decompressor) snappy(raw []byte) ([]byte, error) {
	if len(raw) < crcSize {
		return nil, errCut
	}
	data, sum := raw[:len(raw)-crcSize], binary.BigEndian.Uint32(raw[len(raw)-crcSize:])
	n, err := snappy.DecodedLen(data)
	switch {
	case err != nil:
		return nil, err
	case n > maxBlock:
		return nil, errTooLarge
	case n > (len(data)+1)*snappyRatio:
		return nil, fmt.Errorf("%d bytes claim to be %d when decompressed", len(data), n)
	}
	d.out.Reset()
	d.out.Grow(n)
	out, err := snappy.Decode(d.out.AvailableBuffer()[:n], data)
	if err == nil && crc32.ChecksumIEEE(out) != sum {
		err = errors.New("its checksum is wrong")
	}
	return out, err
}

// compressor compresses blocks.
type compressor struct {
	compression Compression
	out         bytes.Buffer
	flate       *flate.Writer
	zstd        *zstd.Encoder
	frame       []byte // of zstd
}

func newCompressor(c Compression, level int) (*compressor, error) {
	z := &compressor{compression: c}
	var err error
	switch c {
	case Deflate:
		z.flate, err = flate.NewWriter(&z.out, codec.GzipLevel(level))
	case Zstd:
		z.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(codec.ZstdLevel(level)))
	}
	return z, err
}

// name is that of the header.
func (z *compressor) name() string {
	return [...]string{Snappy: codecSnappy, Uncompressed: codecNull, Deflate: codecDeflate, Zstd: codecZstd}[z.compression]
}

// block is records as they are stored, until the next block.
func (z *compressor) block(raw []byte) ([]byte, error) {
	z.out.Reset()
	switch z.compression {
	case Deflate:
		z.flate.Reset(&z.out)
		_, err := z.flate.Write(raw)
		err = errors.Join(err, z.flate.Close())
		return z.out.Bytes(), err
	case Zstd:
		z.frame = z.zstd.EncodeAll(raw, z.frame[:0])
		return z.frame, nil
	case Snappy:
		z.out.Grow(snappy.MaxEncodedLen(len(raw)) + crcSize)
		data := snappy.Encode(z.out.AvailableBuffer()[:snappy.MaxEncodedLen(len(raw))], raw)
		return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(raw)), nil
	}
	return raw, nil
}
