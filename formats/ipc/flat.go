package ipc

import (
	"encoding/binary"
	"errors"
)

// errMetadata says that a flatbuffer points outside of itself.
var errMetadata = errors.New("its metadata is damaged")

// flat is a flatbuffer. The first read out of bounds sets err, and reads as zero.
type flat struct {
	buf []byte
	err error
}

// table is a table of a flatbuffer, vector a run of elements in it. The zero value of
// both is absent: it has no fields, no elements.
type table struct {
	f   *flat
	pos int
}

type vector struct {
	f      *flat
	pos, n int
}

// root is the table a flatbuffer begins with.
func (f *flat) root() table { return table{f, f.follow(0)} }

// bytes are the n bytes at pos, zeros if they are not there.
func (f *flat) bytes(pos, n int) []byte {
	if pos < 0 || n < 0 || pos > len(f.buf)-n {
		f.err = errMetadata
		return make([]byte, min(max(n, 0), 16))
	}
	return f.buf[pos : pos+n]
}

func (f *flat) u16(pos int) int { return int(binary.LittleEndian.Uint16(f.bytes(pos, 2))) }
func (f *flat) i32(pos int) int { return int(int32(binary.LittleEndian.Uint32(f.bytes(pos, 4)))) }
func (f *flat) i64(pos int) int64 {
	return int64(binary.LittleEndian.Uint64(f.bytes(pos, 8)))
}

// follow is what the offset at pos points to.
func (f *flat) follow(pos int) int {
	to := pos + int(binary.LittleEndian.Uint32(f.bytes(pos, 4)))
	if to <= pos || to >= len(f.buf) {
		f.err = errMetadata
		return 0
	}
	return to
}

// at is where a field of the table is, 0 if it is left out.
func (t table) at(slot int) int {
	if t.f == nil || t.pos == 0 {
		return 0
	}
	vtable := t.pos - t.f.i32(t.pos)
	size := t.f.u16(vtable)
	entry := 4 + 2*slot
	if entry+2 > size {
		return 0
	}
	if off := t.f.u16(vtable + entry); off != 0 {
		return t.pos + off
	}
	return 0
}

func (t table) exists() bool { return t.f != nil && t.pos != 0 }

func (t table) u8(slot int) int {
	if at := t.at(slot); at != 0 {
		return int(t.f.bytes(at, 1)[0])
	}
	return 0
}

func (t table) i16(slot, absent int) int {
	if at := t.at(slot); at != 0 {
		return int(int16(t.f.u16(at)))
	}
	return absent
}

func (t table) i32(slot, absent int) int {
	if at := t.at(slot); at != 0 {
		return t.f.i32(at)
	}
	return absent
}

func (t table) i64(slot int) int64 {
	if at := t.at(slot); at != 0 {
		return t.f.i64(at)
	}
	return 0
}

func (t table) table(slot int) table {
	if at := t.at(slot); at != 0 {
		return table{t.f, t.f.follow(at)}
	}
	return table{}
}

func (t table) text(slot int) string {
	at := t.at(slot)
	if at == 0 {
		return ""
	}
	p := t.f.follow(at)
	return string(t.f.bytes(p+4, t.f.i32(p)))
}

// vector is a field of elements of the given size.
func (t table) vector(slot, size int) vector {
	at := t.at(slot)
	if at == 0 {
		return vector{}
	}
	p := t.f.follow(at)
	n := t.f.i32(p)
	if n < 0 || n > (len(t.f.buf)-p-4)/size {
		t.f.err = errMetadata
		return vector{}
	}
	return vector{t.f, p + 4, n}
}

// table is element i of a vector of tables.
func (v vector) table(i int) table { return table{v.f, v.f.follow(v.pos + 4*i)} }

func (v vector) i64(i int) int64 { return v.f.i64(v.pos + 8*i) }
