package function

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// Volatility says when a call may be computed ahead of its rows.
type Volatility uint8

const (
	Immutable Volatility = iota // the same arguments give the same result for ever: foldable
	Stable                      // fixed within a batch (now, current_date)
	Volatile                    // may differ for each row (random)
)

// Env is what a kernel may know beside its arguments. It is borrowed for the call.
type Env struct {
	Mem      memory.Allocator
	Now      int64          // batch time, microseconds since the epoch, UTC
	Location *time.Location // session time zone; nil is UTC
	Seed     uint64         // of this micro-batch or query; the same when it is computed again
	Row      int64          // number of the first row, among those the operator is given
	Salt     uint64         // of this call, for random functions that are given no seed of their own
	// Stop is an error once nobody waits for the result any more. What may take long for one
	// row asks it now and then; nil never stops.
	Stop func() error
	// Charge reserves so many bytes more for what the call makes, until its batch is done with,
	// or is an error that says why not; nil takes all.
	Charge func(bytes int64) error
	Expr   fmt.Stringer // prints as the SQL text of the expression, for error messages; nil: unknown
}

// Zone is the session time zone.
func (e *Env) Zone() *time.Location {
	if e.Location == nil {
		return time.UTC
	}
	return e.Location
}

// Kernel computes rows results: a column of rows values, or a constant. Arguments
// are plain columns of exactly the types the overload was bound to (or constants)
// and are borrowed; the result is the caller's. A Fallible overload (division,
// overflow, cast) is given the rows that count: it must not fail for a row outside
// active or with a null argument; what it returns there is undefined. A nil active
// means every row counts.
type Kernel func(env *Env, args []columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error)

// A Matcher accepts argument types and says what an accepted one must be cast to.
type Matcher interface {
	// Match returns the type the argument must have, the cost of casting it there
	// (0 = as it is; smaller is better), and whether it can be accepted at all. It
	// never accepts what Common does not allow.
	Match(arg arrow.DataType) (want arrow.DataType, cost int, ok bool)
	// String is the type as documentation and errors name it: BIGINT, DECIMAL, any.
	String() string
}

// Scalar is everything binder, optimizer and evaluator need to know about a scalar
// function or operator.
type Scalar struct {
	Name      string
	Aliases   []string
	Doc       string // one or two sentences
	Example   string // an expression, and its result after " = "; run as a test
	Overloads []Overload

	constants, written []constantCheck // see CheckConstants
}

// Overload is one signature of a Scalar. All of Args must match; with Variadic the
// last may repeat, once or more.
type Overload struct {
	Args     []Matcher
	Variadic bool
	// Unify casts all arguments to their common type first (comparisons, coalesce).
	Unify bool
	// Result is the type for the argument types after casting.
	Result     func(args []arrow.DataType) (arrow.DataType, error)
	Volatility Volatility
	// NullSafe kernels see null arguments and decide themselves; otherwise any null
	// argument makes the result null, which the evaluator sees to.
	NullSafe bool
	// Fallible kernels may return an error for some values.
	Fallible bool
	// Bind picks the loop for the argument types after casting. constants holds the
	// value of each argument that is a literal (an array of one value), else nil:
	// a pattern can be compiled once. Its errors are mistakes in what was asked for.
	Bind func(args []arrow.DataType, constants []arrow.Array) (Kernel, error)
}

// Aggregate is everything binder, planner and operators need to know about an
// aggregate function.
type Aggregate struct {
	Name      string
	Aliases   []string
	Doc       string
	Example   string
	Overloads []AggregateOverload
}

// AggregateOverload is one signature of an Aggregate.
type AggregateOverload struct {
	Args     []Matcher
	Variadic bool
	// Constant is what the second argument must be; nil if it may be anything.
	Constant *ConstantArg
	Result   func(args []arrow.DataType) (arrow.DataType, error)
	// Ordered accumulators depend on the order of rows: Update and Merge are given
	// one more argument at the end, the rows' ordinals (int64, not null), and their
	// first state column is the ordinal they last decided by. They implement Ager.
	Ordered bool
	// IgnoresDistinct is set where DISTINCT changes nothing (min, max, bool_and).
	IgnoresDistinct bool
	// New makes an accumulator for arguments of the given types, without groups.
	New func(mem memory.Allocator, args []arrow.DataType) (Accumulator, error)
}

// ConstantArg is an argument that must be the same for all rows: Rule says what it must
// be, for errors, and Allows whether a value, a column of one row, is.
type ConstantArg struct {
	Rule   string
	Allows func(value arrow.Array) bool
}

// Accumulator holds one aggregate's state for all groups, indexed by group id. It
// is used by one goroutine. Arguments are plain columns or constants, borrowed.
// Ordered accumulators get the ordinals as a last argument of Update.
type Accumulator interface {
	// Fields are the names and types of the state columns, fixed per version of
	// the format: what is written to checkpoints.
	Fields() []arrow.Field
	// Resize makes room for ids below groups; new groups are neutral.
	Resize(groups int)
	// Update adds row i to group groups[i]. A null argument is skipped where SQL
	// says so. An overflow is an error.
	Update(groups []uint32, args []columnar.Datum) error
	// Merge adds state row i to groups[i], from State or from disk.
	Merge(groups []uint32, state []arrow.Array) error
	// Load overwrites the state of groups[i] with state row i.
	Load(groups []uint32, state []arrow.Array) error
	// Clear makes groups neutral again: a new or recycled group.
	Clear(groups []uint32)
	// State returns the state columns of groups, in that order, without changing it.
	State(groups []uint32) ([]arrow.Array, error)
	// Result returns the value of each group, without changing the state.
	Result(groups []uint32) (arrow.Array, error)
	// Bytes is the memory held.
	Bytes() int64
	Release()
}

// Ager is implemented by Ordered accumulators. Age marks what groups hold as
// earlier than every row still to come, whatever its ordinal: called when a
// micro-batch is saved, since ordinals start anew in the next.
type Ager interface{ Age(groups []uint32) }

// Absorber is an Accumulator that holds every value it was given, which state columns
// would copy twice more. Absorb is Merge of what other, an Accumulator of the same
// aggregate, holds for from[i] into groups[i]. It only reads other: several may at once.
type Absorber interface {
	Absorb(groups []uint32, other Accumulator, from []uint32) error
}

// Retractor is an Accumulator that can take rows back: sliding windows with an
// inverse.
type Retractor interface {
	Retract(groups []uint32, args []columnar.Datum) error
}
