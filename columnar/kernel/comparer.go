package kernel

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// Comparer compares rows by several keys. It is safe for concurrent use.
type Comparer struct {
	keys    []SortKey
	compare []func(a, b Ref) int // per key, of rows that are not null
	noNulls []bool               // per key
}

// NewComparer borrows the keys' columns for as long as it is used.
func NewComparer(keys []SortKey) *Comparer {
	c := &Comparer{keys, make([]func(a, b Ref) int, len(keys)), make([]bool, len(keys))}
	for i, k := range keys {
		c.compare[i] = comparing(k.Columns)
		c.noNulls[i] = true
		for _, column := range k.Columns {
			c.noNulls[i] = c.noNulls[i] && !mayBeNull(column)
		}
	}
	return c
}

// comparing compares rows of columns of one type that are not null.
func comparing(columns []arrow.Array) func(a, b Ref) int {
	for _, c := range columns {
		if c.DataType().ID() == arrow.DICTIONARY {
			return comparingAny(columns)
		}
	}
	if len(columns) == 0 {
		return nil
	}
	switch columns[0].DataType().ID() {
	case arrow.INT32, arrow.DATE32:
		return comparingInts[int32](columns)
	case arrow.INT64, arrow.TIMESTAMP, arrow.TIME64:
		return comparingInts[int64](columns)
	case arrow.STRING, arrow.BINARY:
		views := make([]bytesView, len(columns))
		for i, c := range columns {
			views[i] = bytesOf(c)
		}
		return func(a, b Ref) int { return bytes.Compare(views[a>>32].at(a.Row()), views[b>>32].at(b.Row())) }
	}
	return comparingAny(columns)
}

func comparingInts[T int32 | int64](columns []arrow.Array) func(a, b Ref) int {
	views := make([][]T, len(columns))
	for i, c := range columns {
		views[i] = Values[T](c)
	}
	return func(a, b Ref) int { return cmpInt(views[a>>32][uint32(a)], views[b>>32][uint32(b)]) }
}

func comparingAny(columns []arrow.Array) func(a, b Ref) int {
	return func(a, b Ref) int { return compareValues(columns[a>>32], a.Row(), columns[b>>32], b.Row()) }
}

// Compare is negative if row a comes before row b, zero if the keys do not tell.
func (c *Comparer) Compare(a, b Ref) int { return c.compareFrom(a, b, 0) }

func (c *Comparer) compareFrom(a, b Ref, key int) int {
	for i := key; i < len(c.keys); i++ {
		k := &c.keys[i]
		if !c.noNulls[i] {
			xn, yn := columnar.IsNull(k.Columns[a>>32], a.Row()), columnar.IsNull(k.Columns[b>>32], b.Row())
			if xn || yn {
				if xn == yn {
					continue
				}
				if xn != k.NullsLast {
					return -1
				}
				return 1
			}
		}
		if r := c.compare[i](a, b); r != 0 {
			if k.Descending {
				return -r
			}
			return r
		}
	}
	return 0
}
