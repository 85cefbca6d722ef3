// Package gotype maps Go types to columns and moves values between them: rows of Go
// structs become Arrow arrays and come back. It is not part of the public API; the
// typed functions of package tidemill stand on it.
//
// For looks at a type once, by reflection, and returns Rows, whose Encode and Decode
// then run a typed loop a column:
//
//	struct            its exported fields, in order, as columns; embedded structs are
//	                  inlined; as a field of another struct, a STRUCT
//	anything else     one column, called value
//	bool, intN, floatN, string          BOOLEAN, TINYINT … BIGINT, REAL, DOUBLE, VARCHAR
//	int, uint8, uint16, uint32          BIGINT, SMALLINT, INTEGER, BIGINT
//	uint, uint64                        DECIMAL(20,0)
//	time.Time, time.Duration, []byte    TIMESTAMP (microseconds, UTC), BIGINT (nanoseconds), BINARY
//	[]T, map[K]T                        ARRAY, MAP; nil is NULL
//	*T                                  T that may be NULL
//
// A column is called as its field in snake case (UserID is user_id), or as the tag
// says: `tidemill:"name"`; "-" leaves a field out, and "name,inline" puts the columns
// of a struct in the place of the field (a field that is no struct stays one column).
//
// NULL in a column whose Go type has none is an error that names the column. Texts of
// one Decode share memory.
package gotype
