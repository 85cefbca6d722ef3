// Package state keeps what stateful operators remember: one Store an operator, made
// of Tables, each split in memory into Shards by key hash. It is not part of the
// public API; incremental/stateful uses it, and the CLI looks at its files with Scan.
//
// A batch takes these steps:
//
//  1. Provider.Open gives the Store of version N, from memory if it is live there.
//  2. Workers call Intern, Append, Find, Get, Set, Touch, Reorder, Delete, and update
//     the Accumulators, each on shards it owns, in batches of keys.
//  3. Evict hands out the rows at or below the watermark, in order, and removes them.
//  4. Store.Commit writes one Parquet change file a table and returns the files that
//     make up version N+1. The Store is then that version.
//  5. If anything failed, Abort poisons the Store: the next Open reads version N anew.
//  6. Provider.Maintain joins files in the background, from files alone: all of a table
//     into a snapshot, or the newest changes into one.
//
// # Memory
//
// A row is a slot: a number that stays the same until the next Commit. Nothing holds a
// pointer, so that ten million rows cost a garbage collection milliseconds:
//
//	rows.go    key and value columns packed into words, in segments of 65,536 rows;
//	           text beyond twelve bytes in an arena of chunks that is copied when half is dead;
//	           a derived column (the end of a window whose start is there) has no words
//	index.go   hash index {tag, slot}, 8 bytes, in 64 parts that grow at different times
//	order.go   google/btree of {prefix int64, head slot}; rows of one prefix are a ring
//	shard.go   what is live (a bitmap: the lowest free slot is taken first), touched,
//	           deleted; the accumulators, which are indexed by slot as well
//
// The prefix is what is evicted by (Order): a key or value column. Where nothing is
// evicted it is the first eight order-preserving bytes of the key, and the tree is built
// only when somebody asks for that order. When more than half
// of the slots are free, each Commit moves some rows down and lets segments go.
//
// All of it is reserved from the budget (account.go), and refused with the name of the
// operator. Rows are handed out, and copied out to be written, a handful at a time (width.go):
// of a Commit only the keys, by which the file is sorted, are there at once.
//
// # Files
//
// A change file holds the rows touched by a batch, or by some that follow each other, in
// the order of their keys (as keyenc has it), one key or row once, with these columns: the
// key, the values, the state columns of the accumulators, __row (multi-row tables: the
// number that stands for the row), __deleted (the row is gone). What the watermark evicted is one bound in
// the metadata: every row whose order column is at or below it is gone. A snapshot has
// no __deleted and no bound. The metadata (tidemill.*) says which columns are the key,
// what the order is, and which versions the file leads from and to, so that Scan needs
// nothing else.
//
// The state of a version is the merge of its files: of each key the newest row, unless
// it is deleted or a later file's bound is at or above it. Scan, snapshots and the Open of
// multi-row tables use one streaming merge (merge.go), in memory bounded by the number of
// files. Open of other tables reads the files from the newest to the oldest, and takes what
// is not there yet (load.go): no order is needed, and the shards work side by side.
package state
