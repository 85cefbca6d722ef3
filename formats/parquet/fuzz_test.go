package parquet

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// decodeDamaged reads up to a million rows of a file that may be damaged. Errors must
// be RecordErrors; a panic fails the test.
func decodeDamaged(t *testing.T, mem memory.Allocator, data []byte) error {
	t.Helper()
	m := vfs.NewMem()
	if err := vfs.WriteAtomic(m, "f", data); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(m, "f")
	if err == nil {
		err = decodeSome(mem, f)
		if cerr := f.Close(); cerr != nil {
			t.Error(cerr)
		}
	}
	if err != nil && !errors.As(err, new(*connector.RecordError)) {
		t.Errorf("%T %v, want a RecordError", err, err)
	}
	if m.OpenFiles() != 0 {
		t.Error("a file is left open")
	}
	return err
}

func decodeSome(mem memory.Allocator, f *File) error {
	r, err := f.Reader(mem, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	rows := int64(0)
	for b, err := range columnar.All(context.Background(), r) {
		if err != nil {
			return err
		}
		if rows += b.NumRows(); rows > 1e6 {
			break
		}
		for _, c := range b.Columns() {
			for i := range min(c.Len(), 50) {
				_ = c.ValueStr(i)
			}
		}
	}
	return nil
}

// smallFile is a file with every kind of column.
func smallFile(t testing.TB, c Compression) []byte {
	t.Helper()
	m := vfs.NewMem()
	b := randomBatch(memory.DefaultAllocator, rand.New(rand.NewPCG(5, uint64(c))), everything, 60, 20)
	defer b.Release()
	writeFile(t, m, "f", everything, WriterConfig{Compression: c, RowGroupRows: 40}, b)
	data, err := vfs.ReadFile(m, "f")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTruncated cuts a file everywhere: no part of its rows may come out.
func TestTruncated(t *testing.T) {
	t.Parallel()
	data := smallFile(t, Snappy)
	for n := 0; n < len(data); n += 1 + n/200 {
		if err := decodeDamaged(t, columnartest.Mem(t), data[:n]); err == nil {
			t.Errorf("a file cut to %d of %d bytes was read", n, len(data))
		}
	}
}

// TestFlipped changes bytes: a page's checksum finds what its decoder would not.
func TestFlipped(t *testing.T) {
	t.Parallel()
	for _, c := range []Compression{Snappy, Uncompressed, Zstd, Gzip} {
		data := smallFile(t, c)
		mem := columnartest.Mem(t)
		r := rand.New(rand.NewPCG(1, uint64(c)))
		for range 150 {
			damaged := append([]byte(nil), data...)
			for range 1 + r.IntN(3) {
				damaged[r.IntN(len(damaged))] ^= byte(1 + r.IntN(255))
			}
			_ = decodeDamaged(t, mem, damaged)
		}
	}
}

// FuzzRead decodes anything.
func FuzzRead(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("PAR1PAR1"))
	for _, c := range []Compression{Snappy, Uncompressed, Zstd} {
		f.Add(smallFile(f, c))
	}
	seeds, err := filepath.Glob("testdata/cases/*/*.parquet")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range seeds {
		data, err := os.ReadFile(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = decodeDamaged(t, columnartest.Mem(t), data)
	})
}

// FuzzHybrid compares reading in pieces with reading at once.
func FuzzHybrid(f *testing.F) {
	f.Add([]byte{0x03, 0x88, 0xc6, 0xfa}, uint8(3), uint16(8), uint8(3))
	f.Add([]byte{0x10, 0x01, 0x05, 0xff, 0x00}, uint8(1), uint16(20), uint8(7))
	f.Fuzz(func(t *testing.T, data []byte, width uint8, n uint16, piece uint8) {
		width, piece = 1+width%31, 1+piece%40
		padded := append(data, make([]byte, padding)...)[: len(data) : len(data)+padding]
		all := make([]int32, n)
		h := newHybrid(padded, uint(width))
		err := h.codes(all)
		h = newHybrid(padded, uint(width))
		for at := 0; at < len(all); at += int(piece) {
			part := make([]int32, min(int(piece), len(all)-at))
			if e := h.codes(part); e != nil {
				if err == nil {
					t.Fatalf("%v in pieces, nothing at once", e)
				}
				return
			}
			if err != nil {
				continue
			}
			for i, v := range part {
				if v != all[at+i] {
					t.Fatalf("value %d is %d in pieces, %d at once", at+i, v, all[at+i])
				}
			}
		}
		if width <= 8 && err == nil {
			h = newHybrid(padded, uint(width))
			bytes := make([]byte, n)
			if e := h.levels(bytes); e != nil {
				t.Fatal(e)
			}
			for i, v := range bytes {
				if v != byte(all[i]) {
					t.Fatalf("level %d is %d, code %d", i, v, all[i])
				}
			}
		}
	})
}
