// Package parquet reads and writes Parquet files. It implements codec.Format for
// directories of files, and OpenFile and NewFileWriter for single files such as
// state tables.
//
// The footer, page headers, and most encodings are decoded with the packages of
// parquet-go (format, encoding/…, compress/…). The loop over pages, the levels and
// the way into Arrow memory are ours, for four reasons: values go straight from the
// decompressed page into the buffer of the batch; dictionary codes stay codes;
// what a damaged header claims is checked before memory is allocated for it; and
// nested columns come from the same pages.
//
//	footer.go    footer → fileMeta            schema.go    schema elements → node tree
//	chunk.go     column chunk → pages         compress.go  codecs, with bounds
//	hybrid.go    levels and dictionary codes  leaftype.go  stored value → engine value
//	source.go    page → runs of values        texts.go, codes.go   … of texts, of codes
//	vector.go    runs → Arrow buffers         widen.go     engine value → wider value
//	plan.go      node × wanted type → what to read
//	nested.go    levels → lists, structs and maps
//	reader.go    row groups → batches         format.go    codec.Format
//	prune.go     can a filter be true in this row group?   bloom.go   can a value be in it?
//	page_prune.go   which rows of it can pass a filter?    page_index.go   page index → pages
//	split.go      row groups → parts          shared_page.go  pages that arrays are parts of
//	writer.go    batches → row groups, file   shred.go     batches → levels and values
//	column_writer.go   values → page          page_writer.go   page → column chunk
//	blocks.go    memory that column chunks hand on
//	dictionary_writer.go   values → codes     statistics.go    smallest and largest
//	file.go      single files
//
// # Reading
//
// A unit is a row group, or several tiny ones of one file. Rows that cannot pass the
// filters, by the page index, are left out; those of a batch are neighbours.
// Columns that are not nested pass over pages without reading them, others decode for
// nothing. Plain numbers are not copied: their arrays are parts of the page. Text and binary columns
// whose pages are dictionary-encoded come out as Dictionary<int32, …> arrays; all
// batches of a row group share the dictionary. Where a writer gave its dictionary
// up in the middle of a chunk, the batches from there on are plain.
//
// Damage is reported as *connector.RecordError naming the file. Only here is a panic
// recovered while data is decoded: some decoders of parquet-go panic on damaged
// input.
package parquet
