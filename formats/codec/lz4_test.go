package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/pierrec/lz4/v4"

	"github.com/tidemill/tidemill/formats/codec"
)

// lz4Of is content as a frame.
func lz4Of(t *testing.T, content []byte, options ...lz4.Option) []byte {
	t.Helper()
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	if err := w.Apply(options...); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestLZ4Ends cuts files of several blocks and frames everywhere: between two blocks, too,
// the rest is missed. Where a frame ends a file may end.
func TestLZ4Ends(t *testing.T) {
	t.Parallel()
	content := make([]byte, 150<<10)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range content {
		content[i] = "abcdefgh"[r.IntN(8)]
	}
	small := lz4.BlockSizeOption(lz4.Block64Kb)
	skippable := append(binary.LittleEndian.AppendUint32([]byte("\x5f\x2a\x4d\x18"), 3), "abc"...)
	first := lz4Of(t, content, small, lz4.ChecksumOption(false))
	legacy := lz4Of(t, content, lz4.LegacyOption(true))
	for _, c := range []struct {
		name string
		data []byte
		ends []int // where it may end
	}{
		{"plain", first, nil},
		{"checksums", lz4Of(t, content, small, lz4.ChecksumOption(true), lz4.BlockChecksumOption(true)), nil},
		{"size", lz4Of(t, content, small, lz4.SizeOption(uint64(len(content)))), nil},
		{"two", slices.Concat(first, first), []int{len(first)}},
		{"passed over", slices.Concat(skippable, first, skippable), []int{len(skippable), len(skippable) + len(first)}},
		{"legacy", legacy, []int{4}},
	} {
		if got := codec.DetectCompression("x.csv", c.data); got != codec.LZ4 && c.name != "passed over" {
			t.Errorf("%s is taken for %s", c.name, got)
		}
		whole, err := decompressLZ4(c.data)
		if err != nil || !bytes.HasPrefix(whole, content) {
			t.Errorf("%s: %d bytes, %v", c.name, len(whole), err)
		}
		cuts := slices.Concat(c.ends, lz4Borders(c.data))
		for range 200 {
			cuts = append(cuts, 1+r.IntN(len(c.data)-1))
		}
		for _, cut := range cuts {
			got, err := decompressLZ4(c.data[:cut])
			if err != nil && !slices.Contains(c.ends, cut) {
				continue
			}
			if err != nil || !slices.Contains(c.ends, cut) {
				t.Errorf("%s: %d of %d bytes give %d, %v", c.name, cut, len(c.data), len(got), err)
			}
		}
	}
}

// lz4Borders is where the blocks of the first frame begin and end, and where its end mark does.
func lz4Borders(data []byte) (borders []int) {
	if !bytes.HasPrefix(data, []byte("\x04\x22\x4d\x18")) {
		return nil
	}
	at, flags := 7, data[4]
	if flags&8 != 0 {
		at += 8
	}
	for {
		borders = append(borders, at)
		size := int(binary.LittleEndian.Uint32(data[at:]) &^ (1 << 31))
		if at += 4; size == 0 {
			break
		}
		if at += size; flags&16 != 0 {
			at += 4
		}
	}
	if flags&4 != 0 {
		borders = append(borders, at)
	}
	return borders
}

// decompressLZ4 has the file come in pieces of odd sizes.
func decompressLZ4(data []byte) ([]byte, error) {
	z, err := codec.LZ4.NewReader(iotest.HalfReader(iotest.DataErrReader(bytes.NewReader(data))))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(z)
	return out, errors.Join(err, z.Close())
}
