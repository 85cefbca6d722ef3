// Package formats puts together what a FORMAT clause and a connector option can name:
// NewRegistry has the file formats csv, json, parquet and text (in the packages of
// those names, against codec.Format), and the connectors filesystem (file), memory,
// rate, console and noop. A Resolver opens declarations and paths through it.
package formats
