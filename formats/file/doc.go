// Package file reads and writes directories of files: the filesystem connector. A
// path (a file, a directory, or a glob) is a connector.Table (all of it, now), a
// connector.Source (whatever lands in it, each file once) and a connector.Sink (each
// batch once). What the bytes of a file mean is a codec.Format's business.
//
// # Reading
//
// listing.go finds files in a fixed order: modification time, then path in byte
// order. Folders named key=value give columns (partition.go). scan.go reads one file
// and checks, before and after, that it is still the one that was listed.
//
// A Source plans a batch in steps, each durable before the next:
//
//  1. look for files that no entry of its log names;
//  2. write the next entry of the log: path, size and modification time of the files
//     of the batch, in order;
//  3. return the entry's number as the offset.
//
// The log is the record of what was ever read, exact and for ever; seen.go is its
// image in memory, and knows the files that wait, too, which queue.go keeps in order. A
// million files take about 110 MB there; whatever else is proportional to the number of
// files of a stream, and not to those of a batch, is a mistake.
//
// An output directory of a query is listed by its manifest, as a table (published.go) and
// as a stream (follow.go), and tells its columns and how its files are written
// (recorded.go): nothing about them is inferred.
//
// # Writing
//
// An output directory:
//
//	part-00000000000000000012-000.csv      file 0 of batch 12
//	day=2024-01-01/part-…                  the same, partitioned
//	part-000.csv                           the table of a query in complete mode
//	.tidemill/id                           the query it belongs to, its columns, its dialect
//	.tidemill/lock                         held while a query writes
//	.tidemill/staging/12-000.staged        files of a batch that is not decided
//	.tidemill/pending/12                   the decision: batch 12 is part of the output
//	.tidemill/manifest/12, 99.compact      what is in the output, batch by batch
//
// A batch becomes part of the output in steps:
//
//  1. its files are written to staging and synced, and so are their names; the draft of
//     the decision beside them, under a temporary name;
//  2. pending/N, listing them, is given its name, atomically: from here on the batch is
//     visible, whatever happens;
//  3. each file is renamed to its name, and the directories are synced;
//  4. pending/N is renamed to manifest/N.
//
// A start that finds pending/N repeats 3 and 4; staged files that no pending/N names
// are deleted. Late and bad rows go to <path>.late and <path>.bad by the same
// decision. Nothing that is not published has a name that ends as data files do.
package file
