package parquet

import (
	"encoding/binary"
	"errors"
)

var errThrift = errors.New("damaged Parquet file: its metadata cannot be decoded")

// checkThrift walks one struct in Thrift's compact protocol and returns its length.
// The decoder allocates lists by their claimed size before reading them; after this
// check no list or text claims more than is there.
func checkThrift(b []byte) (int, error) {
	w := thriftWalker{data: b}
	if !w.structure(0) {
		return 0, errThrift
	}
	return w.pos, nil
}

type thriftWalker struct {
	data []byte
	pos  int
}

// The types of the compact protocol.
const (
	compactStop = iota
	compactTrue
	compactFalse
	compactByte
	compactI16
	compactI32
	compactI64
	compactDouble
	compactBinary
	compactList
	compactSet
	compactMap
	compactStruct
)

const maxThriftDepth = 32

func (w *thriftWalker) structure(depth int) bool {
	if depth > maxThriftDepth {
		return false
	}
	for {
		head, ok := w.byte()
		if !ok {
			return false
		}
		if head == compactStop {
			return true
		}
		if head>>4 == 0 {
			if _, ok := w.varint(); !ok {
				return false
			}
		}
		if !w.value(head&15, depth, false) {
			return false
		}
	}
}

func (w *thriftWalker) value(kind byte, depth int, inList bool) bool {
	switch kind {
	case compactTrue, compactFalse:
		// In a struct the type is the value; in a list each has a byte.
		return !inList || w.skip(1)
	case compactByte:
		return w.skip(1)
	case compactI16, compactI32, compactI64:
		_, ok := w.varint()
		return ok
	case compactDouble:
		return w.skip(8)
	case compactBinary:
		n, ok := w.varint()
		return ok && w.skip(n)
	case compactList, compactSet:
		return w.list(depth)
	case compactMap:
		return w.maps(depth)
	case compactStruct:
		return w.structure(depth + 1)
	}
	return false
}

func (w *thriftWalker) list(depth int) bool {
	head, ok := w.byte()
	if !ok || depth > maxThriftDepth {
		return false
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, ok = w.varint(); !ok {
			return false
		}
	}
	if n > uint64(len(w.data)-w.pos) {
		return false
	}
	for range n {
		if !w.value(head&15, depth+1, true) {
			return false
		}
	}
	return true
}

func (w *thriftWalker) maps(depth int) bool {
	n, ok := w.varint()
	if !ok || n == 0 {
		return ok
	}
	kinds, ok := w.byte()
	if !ok || depth > maxThriftDepth || n > uint64(len(w.data)-w.pos) {
		return false
	}
	for range n {
		if !w.value(kinds>>4, depth+1, true) || !w.value(kinds&15, depth+1, true) {
			return false
		}
	}
	return true
}

func (w *thriftWalker) byte() (byte, bool) {
	if w.pos >= len(w.data) {
		return 0, false
	}
	w.pos++
	return w.data[w.pos-1], true
}

func (w *thriftWalker) varint() (uint64, bool) {
	v, n := binary.Uvarint(w.data[w.pos:])
	if n <= 0 {
		return 0, false
	}
	w.pos += n
	return v, true
}

func (w *thriftWalker) skip(n uint64) bool {
	if n > uint64(len(w.data)-w.pos) {
		return false
	}
	w.pos += int(n)
	return true
}
