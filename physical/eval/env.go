package eval

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
)

// Env is what expressions may know beside their columns. It is borrowed for a call.
type Env struct {
	Mem      memory.Allocator
	Now      int64          // batch time, microseconds since the epoch, UTC
	Location *time.Location // session time zone; nil is UTC
	// Seed is of this micro-batch or query: with the same Seed a volatile expression gives
	// the same value for a row with the same number (Begin).
	Seed uint64
	// Salt is of the query: what random functions without a seed of their own are seeded
	// with beside Seed. A stream has none, so that its batches can be computed again.
	Salt uint64

	// Budget is what results out of proportion to their arguments are reserved from while a
	// batch is evaluated; nil never refuses.
	Budget *columnar.Budget
	// PartBytes is how much of that one evaluation may make at a time, where fewer rows make
	// less; 0 is a number of the package's.
	PartBytes int64
	// Stop is an error once nobody waits for the results any more; nil never stops.
	Stop func() error

	row, rows int64 // the number of the batch's first row, and of the row after its last
	partRows  int   // how many rows are evaluated at a time; 0 is all
}

// Begin says that the next batch of an operator's input is evaluated: its rows are
// numbered on from those before, and the number is what a random value of a row depends on.
func (e *Env) Begin(b arrow.RecordBatch) {
	e.row = e.rows
	e.rows += b.NumRows()
}

func (e *Env) function() function.Env {
	return function.Env{Mem: e.Mem, Now: e.Now, Location: e.Location, Seed: e.Seed, Row: e.row, Salt: e.Salt, Stop: e.Stop}
}
