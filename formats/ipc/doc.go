// Package ipc reads and writes Arrow's own file format, Arrow IPC: files with a footer
// (Feather version 2) and streams.
//
// A file is a run of messages, each metadata (a flatbuffer) and a body of buffers:
//
//	"ARROW1" schema, dictionaries, record batches, footer, length of footer "ARROW1"
//	         schema, dictionaries, record batches, end                  (a stream)
//
// index finds the messages, by the footer or by walking a stream from header to header,
// without reading a body. A unit is some record batches, whose sizes are known then; its
// Reader reads the buffers of the columns that are wanted and nothing else, makes engine
// columns of them (load, convert) and hands them out in slices of a batch's rows. A stream
// whose dictionaries change on the way is one unit.
//
// Everything a file says is checked before it is believed: sizes against the file's,
// offsets against the data they point into, text for being UTF-8. A damaged file is a
// *connector.RecordError; only the size of the file and the rows it claims to have bound
// the memory it is given.
//
// Files are written through arrow-go's writer.
package ipc
