// Package keyenc writes keys of any type as bytes whose order is the order of the
// keys: sorting, merging and key ranges compare plain bytes, whatever the columns.
//
// A Codec is made for column types and their Order. Encode turns columns into Keys,
// Decode turns Keys back. Prefix is the first eight bytes of a key as an int64, for
// indexes that hold fixed-width items.
//
// Per column: one marker byte (null first 0x00, value 0x01, null last 0x02), then
// the value; integers and decimals big-endian with the sign bit flipped, floats in
// IEEE total order, text escaped and terminated, lists element by element with a
// marker before each. A descending column has its value bytes inverted, its marker
// not. Values that are equal in SQL (NaN and NaN, -0.0 and 0.0, 24 hours and 1 day, maps
// that differ in the order of entries) have equal bytes, unless Order.Exact asks for the bits.
//
// The format is not stored: it may change between versions of the engine.
package keyenc
