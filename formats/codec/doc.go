// Package codec is what the file formats have in common: the Format contract that
// csv, json, parquet and text implement and that file (directories as tables,
// sources and sinks) uses, compression, reading a byte range of a file by records,
// and content hashes.
package codec
