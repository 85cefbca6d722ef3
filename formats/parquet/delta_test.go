package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/delta"
)

// padded is page data as the decoders get it.
func padded(data []byte) []byte {
	return append(slices.Clone(data), make([]byte, padding)...)[: len(data) : len(data)+padding]
}

// someNumbers are numbers of which a part is far from the others.
func someNumbers[T int32 | int64](r *rand.Rand, n int) []T {
	out := make([]T, n)
	span := uint64(1) << r.IntN(40)
	for i := range out {
		out[i] = T(r.Uint64N(span))
		if r.IntN(50) == 0 {
			out[i] = T(r.Uint64())
		}
	}
	return out
}

// TestDeltas decodes what parquet-go encodes, all of it and cut off anywhere.
func TestDeltas(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := []int{0, 1, 2, 31, 32, 33, 128, 129, r.IntN(1000)}[r.IntN(9)]
		narrow, wide := someNumbers[int32](r, n), someNumbers[int64](r, n)
		coded32, _ := new(delta.BinaryPackedEncoding).EncodeInt32(nil, narrow)
		coded64, _ := new(delta.BinaryPackedEncoding).EncodeInt64(nil, wide)
		sameDeltas(t, narrow, coded32)
		sameDeltas(t, wide, coded64)
	}
}

func sameDeltas[T int32 | int64](t *testing.T, want []T, coded []byte) {
	t.Helper()
	dirty := make([]T, len(want)+3)
	for i := range dirty {
		dirty[i] = -1
	}
	got, rest, err := readDeltas(dirty, padded(append(coded, "rest"...)), len(want))
	if err != nil || !slices.Equal(got, want) || string(rest) != "rest" {
		t.Fatalf("%d values, rest %q, %v; want %d", len(got), rest, err, len(want))
	}
	for cut := range coded {
		got, _, err := readDeltas(dirty, padded(coded[:cut]), len(want))
		if err == nil && !slices.Equal(got, want) {
			t.Fatalf("%d of %d bytes give other values", cut, len(coded))
		}
	}
	if len(want) > 0 {
		if _, _, err := readDeltas(dirty, padded(coded), len(want)-1); err == nil {
			t.Error("more values than the page has are read")
		}
	}
}

// TestWideDeltas decodes differences of 32-bit values that need more bits, as DuckDB writes
// them, and a first value that is not signed.
func TestWideDeltas(t *testing.T) {
	t.Parallel()
	values := []uint32{1 << 31, 5, math.MaxUint32, 0, 7, 1<<31 - 1}
	var coded []byte
	for _, v := range []uint64{128, 4, uint64(len(values))} {
		coded = binary.AppendUvarint(coded, v)
	}
	coded = binary.AppendVarint(coded, int64(values[0]))
	least := int64(-math.MaxUint32)
	coded = append(binary.AppendVarint(coded, least), 33, 0, 0, 0)
	packed := make([]byte, 32*33/8+8)
	for i := range len(values) - 1 {
		difference := uint64(int64(values[i+1]) - int64(values[i]) - least)
		at := packed[i*33/8:]
		binary.LittleEndian.PutUint64(at, binary.LittleEndian.Uint64(at)|difference<<(i*33%8))
	}
	coded = append(coded, packed[:32*33/8]...)
	got, rest, err := readDeltas([]int32(nil), padded(coded), len(values))
	if err != nil || len(rest) != 0 {
		t.Fatal(rest, err)
	}
	for i, v := range got {
		if uint32(v) != values[i] {
			t.Errorf("value %d is %d, want %d", i, uint32(v), values[i])
		}
	}
}

// TestDeltaTexts decodes what parquet-go encodes, and refuses what is short or long.
func TestDeltaTexts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		var texts [][]byte
		var plain []byte
		offsets := []uint32{0}
		for i := range r.IntN(300) {
			text := fmt.Appendf(nil, "%0*d", r.IntN(20), r.IntN(1+i*i))
			texts, plain = append(texts, text), append(plain, text...)
			offsets = append(offsets, uint32(len(plain)))
		}
		lengths, _ := new(delta.LengthByteArrayEncoding).EncodeByteArray(nil, plain, offsets)
		prefixes, _ := new(delta.ByteArrayEncoding).EncodeByteArray(nil, plain, offsets)
		for name, c := range map[string]struct {
			coded []byte
			read  func(dst, src []byte, offsets []uint32, most int) ([]byte, []uint32, error)
		}{"lengths": {lengths, readDeltaTexts}, "prefixes": {prefixes, readPrefixedTexts}} {
			got, ends, err := c.read(nil, padded(c.coded), nil, len(texts))
			if err != nil || !bytes.Equal(got, plain) || !slices.Equal(ends, offsets) {
				t.Fatalf("%s of %d texts: %v", name, len(texts), err)
			}
			if _, _, err := c.read(nil, padded(append(c.coded, 'x')), nil, len(texts)); !errors.Is(err, errShort) {
				t.Errorf("%s: a byte too many: %v", name, err)
			}
			for cut := range c.coded {
				if _, _, err := c.read(nil, padded(c.coded[:cut]), nil, len(texts)); err == nil && len(plain) > 0 {
					t.Fatalf("%s: %d of %d bytes are taken for all", name, cut, len(c.coded))
				}
			}
		}
	}
}

// TestDamagedDeltas has lengths whose sum wraps around, negative ones, and a beginning that
// is longer than the text before.
func TestDamagedDeltas(t *testing.T) {
	t.Parallel()
	coded := func(lengths ...int32) []byte {
		b, _ := new(delta.BinaryPackedEncoding).EncodeInt32(nil, lengths)
		return b
	}
	for name, texts := range map[string][]byte{
		"wraps":    append(coded(math.MaxInt32, math.MaxInt32, 5), "abc"...),
		"negative": append(coded(4, -1), "abc"...),
	} {
		if _, _, err := readDeltaTexts(nil, padded(texts), nil, 3); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, texts := range map[string][]byte{
		"beginning": append(append(coded(0, 4), coded(3, 0)...), "abc"...),
		"counts":    append(append(coded(0, 1), coded(3)...), "abc"...),
		"huge":      append(append(coded(0, math.MaxInt32, math.MaxInt32), coded(1, 1, 1)...), "abc"...),
	} {
		if _, _, err := readPrefixedTexts(nil, padded(texts), nil, 3); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, header := range map[string][]byte{
		"no blocks": {0, 4, 1, 0}, "no parts": {0x80, 1, 0, 1, 0}, "odd parts": {0x80, 1, 3, 1, 0}, "small parts": {0x80, 1, 8, 1, 0}, "short": {0x80, 1, 4},
	} {
		if _, _, err := readDeltas([]int32(nil), padded(header), 1); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
