// Package group holds the hash tables of the engine: Table gives each distinct key a
// dense id (aggregation, DISTINCT), RowTable gives each key its rows (the build side
// of a hash join). Both work on batches and compare keys by value, never by hash
// alone. Nulls equal nulls, NaN equals NaN, -0.0 equals 0.0.
//
// # Layout
//
//	slots   []uint64   open addressing: tag (32 hash bits) << 32 | id+1; 0 is empty
//	rows    []uint64   keys packed into words, in order of id
//	nulls   []uint64   one bit a column, per id; absent until a key holds a null
//	arena   []byte     text longer than twelve bytes
//	grid    []uint32   id+1 of the key at a place; only where keys are close together
//
// A key of fixed-width columns is packed into as few 64-bit words as hold it. Text
// columns of a key with several columns are interned by themselves first, and the
// key holds the 32-bit number of the text; nested columns go the same way, as keyenc
// bytes. No part holds a pointer, so ten million groups cost the garbage collector
// nothing.
//
// A probe works on 1,024 rows at a time in three passes (hash; fetch slots; compare
// keys), so that cache misses overlap; what is new or collides is then handled row
// by row, in row order: ids are dense and in order of first sight. Slots double when
// they are 0.6 full. The position of a slot is the upper bits of its tag, so growing
// moves slots in order.
//
// Numbers, times and numbers of texts that are close together need neither hash nor
// comparison: beside the slots stands a grid with a cell for each combination of
// values, as long as it takes a few cells a key (grid.go).
//
// Dictionary-encoded columns are looked up once per code and dictionary. Tables are
// used by one goroutine. Hashes are seeded per process; ids do not depend on it.
package group
