// Package codec is what the file formats have in common: the Format contract that
// csv, json, parquet and text implement and that file (directories as tables,
// sources and sinks) uses, compression, encodings, reading a byte range of a file by
// records, and content hashes.
//
// # Reading text by ranges
//
//  1. Ranges divides a large file. A compressed file, or one in an encoding other than
//     UTF-8, is one range.
//  2. An Input shows the text of a range through a window: all of a divided range at
//     once, so that records are not cut up, or a stream, piece by piece. It goes on
//     behind the range, where the last record ends.
//  3. A scanner of the format finds the records that begin in the range, and their
//     cells; package cells makes columns of them.
//
// A compressed file is decompressed in a goroutine of its own, some pieces ahead.
//
// # Files whose columns differ
//
// Columns.Evolution is the policy, in evolution.go. In files without types each value is
// judged by itself, by the reader of the format; files with types go through ReadTyped,
// which reads what does not fit in the file's own type and takes it apart. Rescued makes
// the column of what no other takes.
//
// # Counting
//
// Bytes go into the file's ContentHash as they are read, by whichever range. Line numbers
// are counted only when a message needs one.
package codec
