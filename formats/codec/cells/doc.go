// Package cells turns cells, spans of bytes that stand for one value each, into
// Arrow columns: the second half of reading CSV and JSON. It is not part of the
// public API.
//
// A format's scanner finds the spans of some thousand values and hands them to a
// Column by column. The loops here know their type before they start, write into raw
// buffers and leave the ordinary case only for a null, an escape or a value that is
// none; so reading costs no allocation and no dispatch per value.
//
// # The buffer around the spans
//
// Spans are offsets into a buffer that has at least Pad bytes before the first and
// after the last value: values are read eight bytes at a time, and nobody asks
// whether that is still inside.
package cells
