package state

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/internal/vfs"
)

// Options are the parameters of a Provider; the zero value works.
type Options struct {
	Mem memory.Allocator // of the arrays handed out; nil is Go memory
	// Shards is the number of parts a table has in memory, 0 for one. It may differ
	// at every start.
	Shards int
	// Budget is asked whenever a table grows; nil never refuses.
	Budget *columnar.Budget
	// Snapshots says when files are joined.
	Snapshots checkpoint.SnapshotPolicy
	// Inline joins files within Maintain instead of in the background: for tests that
	// count calls.
	Inline bool
}

// Files is where state files live: *checkpoint.Dir.
type Files interface {
	WriteState(operator string, file checkpoint.StateFile, write func(w io.Writer) error) (checkpoint.StateFile, error)
	FileOpener
}

// FileOpener opens state files after checking size and hash: *checkpoint.Dir and
// *checkpoint.View.
type FileOpener interface {
	OpenState(operator string, file checkpoint.StateFile) (vfs.File, error)
}

// ErrPoisoned is what a Store answers after Abort, or after an error of Commit.
var ErrPoisoned = errors.New("this state was given up; open its version again")

// Spec describes the state of one operator.
type Spec struct {
	Operator string // its name in plan.json
	Tables   []TableSchema
}

// TableSchema describes a table. Names of columns are unique in it and do not begin
// with two underscores.
type TableSchema struct {
	Name string
	// Key identifies a row, or in a multi-row table the rows that belong together.
	Key []arrow.Field
	// Derived are key columns that take no memory, since an earlier one tells them.
	Derived []DerivedColumn
	// Values are plain columns, set by Append and Set. They may hold nulls.
	Values []arrow.Field
	// Aggregates keep an accumulator each, indexed by row.
	Aggregates []AggregateColumn
	// MultiRow tables have any number of rows a key (sessions, join sides, lists).
	MultiRow bool
	Order    Order
}

// DerivedColumn is a key column, TIMESTAMP or BIGINT, that is always Plus more than the
// earlier key column From, and null where that is null: the end of a window whose start is
// a key.
type DerivedColumn struct {
	Column, From int
	Plus         int64
}

// AggregateColumn is an accumulator as columns of a table: NAME if its state is one
// column, else NAME_FIELD.
type AggregateColumn struct {
	Name string
	New  func(mem memory.Allocator) (function.Accumulator, error)
}

// OrderBy says what a table is ordered and evicted by.
type OrderBy uint8

// The orders of a table.
const (
	// ByKey is the first bytes of the key: nothing is evicted.
	ByKey OrderBy = iota
	// ByKeyColumn is a key column: TIMESTAMP, DATE or an integer. Rows in which it is
	// null are never evicted.
	ByKeyColumn
	// ByValueColumn is such a value column; it is null until it is set.
	ByValueColumn
)

// Order is the order of a table. Column counts from 0 among the key or value columns.
type Order struct {
	By     OrderBy
	Column int
}

// neverEvicted is the prefix of rows whose order column is null.
const neverEvicted = math.MaxInt64

// Names of the columns that files have beside those of the schema.
const (
	rowColumnName     = "__row"
	deletedColumnName = "__deleted"
)

// orderable says whether a column can be the order of a table.
func orderable(dt arrow.DataType) bool {
	return columnar.IsInteger(dt) || dt.ID() == arrow.TIMESTAMP || dt.ID() == arrow.DATE32
}

func (s *TableSchema) check() error {
	for _, d := range s.Derived {
		if d.From < 0 || d.From >= d.Column || d.Column >= len(s.Key) || s.derives(d.From) || !isDerivable(s.Key[d.From]) || !isDerivable(s.Key[d.Column]) {
			return fmt.Errorf("bug: key column %d of table %s cannot be derived from %d", d.Column, s.Name, d.From)
		}
	}
	columns := s.Key
	switch s.Order.By {
	case ByKey:
		return nil
	case ByValueColumn:
		columns = s.Values
	}
	if s.Order.Column < 0 || s.Order.Column >= len(columns) {
		return fmt.Errorf("bug: table %s has no column %d to be ordered by", s.Name, s.Order.Column)
	}
	if f := columns[s.Order.Column]; !orderable(f.Type) {
		return fmt.Errorf("bug: table %s cannot be ordered by %s, a %s", s.Name, f.Name, columnar.TypeName(f.Type))
	}
	return nil
}

func isDerivable(f arrow.Field) bool {
	return f.Type.ID() == arrow.INT64 || f.Type.ID() == arrow.TIMESTAMP
}

// derives says whether a key column is a derived one.
func (s *TableSchema) derives(column int) bool {
	return slices.ContainsFunc(s.Derived, func(d DerivedColumn) bool { return d.Column == column })
}

// orderColumn is the name of the order column, "" for ByKey.
func (s *TableSchema) orderColumn() string {
	switch s.Order.By {
	case ByKeyColumn:
		return s.Key[s.Order.Column].Name
	case ByValueColumn:
		return s.Values[s.Order.Column].Name
	}
	return ""
}

// StateFields are the columns of the accumulators, as files and plan.json name them.
func (s *TableSchema) StateFields() ([]arrow.Field, error) {
	var out []arrow.Field
	for _, a := range s.Aggregates {
		acc, err := a.New(memory.DefaultAllocator)
		if err != nil {
			return nil, err
		}
		out = append(out, stateColumns(a.Name, acc)...)
		acc.Release()
	}
	return out, nil
}

func stateColumns(name string, acc function.Accumulator) []arrow.Field {
	fields := acc.Fields()
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = columnar.Field(name, f.Type)
		if len(fields) > 1 {
			out[i].Name = name + "_" + f.Name
		}
	}
	return out
}
