package physical

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/physical/eval"
)

// ExecContext is what one run of a plan is given. It is borrowed until every Reader
// of the run is closed, and only read. Mem must be set; every other zero value works.
type ExecContext struct {
	Mem memory.Allocator
	// Budget bounds what operators keep (hash tables, sorted runs); nil never refuses.
	Budget *columnar.Budget
	// BatchRows is the number of rows operators aim at; 0 is the default.
	BatchRows int
	Now       int64          // batch time, microseconds since the epoch, UTC
	Location  *time.Location // session time zone; nil is UTC
	Seed      uint64         // of volatile functions
	Salt      uint64         // of those without a seed of their own, in a bounded query
	// Parallel is how many goroutines an operator may use; 0 and 1 use none.
	Parallel int
	// Metrics counts rows, batches and time of every operator; nil counts nothing.
	Metrics *Metrics
	// Observe is given every batch that an operator gives to the one above, borrowed, by
	// several goroutines at once, and nil when the operator is opened: one that is part of
	// the one above never is. A nil Observe looks at nothing. It keeps operators from handing
	// over what is no batch, so it changes no row, but costs time.
	Observe func(p Plan, b arrow.RecordBatch)
	// ScanStats gives the counters of a scan; nil, or returning nil, counts nothing.
	ScanStats func(s *Scan) *connector.ScanStats

	stop   func() error // that of the context of this run; set by Run
	keys   *keyScope    // what is being opened is in the probe side of these joins
	shared *sharedRuns  // of this run; set by Run
}

func (ec *ExecContext) batchRows() int {
	if ec.BatchRows > 0 {
		return ec.BatchRows
	}
	return columnar.DefaultBatchRows
}

func (ec *ExecContext) parallel() int { return max(ec.Parallel, 1) }

// Env is what expressions are evaluated with. Each Reader makes its own.
func (ec *ExecContext) Env() *eval.Env {
	return &eval.Env{
		Mem: ec.Mem, Now: ec.Now, Location: ec.Location, Seed: ec.Seed, Salt: ec.Salt,
		Budget: ec.Budget, PartBytes: ec.PartBytes(), Stop: ec.stop,
	}
}

// PartBytes is about how big a batch may be made of wide values: a part of the memory limit,
// if there is one, of which every goroutine holds some.
func (ec *ExecContext) PartBytes() int64 {
	if limit := ec.Budget.Limit(); limit > 0 {
		return min(max(limit/int64(8*ec.parallel()), 64<<10), eval.PartBytes)
	}
	return eval.PartBytes
}

// aheadBytes is how far one of several goroutines may run ahead of the others.
func (ec *ExecContext) aheadBytes() int64 {
	if ec.Budget.Limit() > 0 {
		return min(gatherBytes, ec.PartBytes())
	}
	return gatherBytes
}

func (ec *ExecContext) scanStats(s *Scan) *connector.ScanStats {
	if ec.ScanStats == nil {
		return nil
	}
	return ec.ScanStats(s)
}

// account is what one operator has reserved from the budget. It is used by one
// goroutine at a time.
type account struct {
	budget *columnar.Budget
	metric *OperatorMetrics
	who    string
	held   int64
}

func (ec *ExecContext) account(p Plan, who string) *account {
	return &account{budget: ec.Budget, metric: ec.Metrics.of(p), who: who}
}

// set changes the reservation to n bytes; a refusal leaves it as it was.
func (a *account) set(n int64) error {
	switch {
	case n > a.held:
		if err := a.budget.Reserve(a.who, n-a.held); err != nil {
			return err
		}
	case n < a.held:
		a.budget.Return(a.held - n)
	default:
		return nil
	}
	a.metric.memory(n - a.held)
	a.held = n
	return nil
}

// add reserves n bytes more.
func (a *account) add(n int64) error { return a.set(a.held + n) }

func (a *account) release() { _ = a.set(0) } // giving back is never refused
