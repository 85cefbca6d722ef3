// Package avro reads and writes Avro's object container files.
//
// A file is a header and blocks of records:
//
//	"Obj" 1, metadata (schema, codec), marker | count, size, records, marker | …
//
// container.go reads the header and walks from block to block by their sizes, without
// reading a record, so that what is missing or out of place is known before the first row.
// A unit is some blocks; its Reader decompresses them one by one (compress.go) and decodes
// records straight into columns (vector.go, nested.go): the schema (schema.go), whose JSON
// twmb/avro reads, and the columns that are wanted make a program (plan.go) that has one
// step for each field, to decode it or to skip it. Nothing is allocated for a value.
//
// Everything a file says is checked before it is believed: sizes against the file's,
// counts against the bytes that are there, text for being UTF-8. A damaged file is a
// *connector.RecordError with the place of the block; memory is bounded by the largest
// block that is taken, maxBlock.
//
// What is written (writer.go, encode.go, layout.go) depends on nothing but the schema, the
// rows and the metadata: even the marker between blocks, which others draw at random, is a
// hash of the header.
package avro
