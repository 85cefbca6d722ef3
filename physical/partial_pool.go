package physical

import (
	"sync"
	"sync/atomic"
)

// Partials keeps the tables of a PartialAggregate for the next run of the same aggregate: a
// stream runs it once a batch, and growing a table from nothing costs as much as many rows
// do. The keys stay in a table while most of them come again. Its zero value works, and it
// is safe for concurrent use.
type Partials struct {
	mu   sync.Mutex
	free []*grouping
	// aside is how many Readers to come step aside at once: grouping hardly reduced the rows
	// of a run.
	aside atomic.Int32
}

// A run tells what grouping is worth if it had measuredRows; if they were not worthwhile
// times as many as their groups, the next asideRuns Readers step aside, and then one
// measures again.
const (
	measuredRows = 256
	worthwhile   = 2
	asideRuns    = 31
)

// stepsAside says whether a Reader that begins is not to group.
func (p *Partials) stepsAside() bool { return p != nil && p.aside.Load() > 0 && p.aside.Add(-1) >= 0 }

// measured notes what grouping made of the rows of a Reader.
func (p *Partials) measured(rows, groups int) {
	if p != nil && rows >= measuredRows && groups*worthwhile > rows {
		p.aside.Store(asideRuns)
	}
}

// A grouping is kept if it is small, and if it was not made for far more groups than its
// last run had: emptying it takes time, too.
const (
	keptGroups = 64 << 10
	keptBytes  = 8 << 20 // of accumulators, or of keys: texts may be long
	keptFill   = 16
	keptIdle   = 4 // keys stay if at most one of so many was not met
)

// take is a grouping that was kept, of which no group has rows; nil if there is none.
func (p *Partials) take(ec *ExecContext, plan *PartialAggregate) *grouping {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return nil
	}
	g := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	g.spec, g.account.metric = plan.Spec, ec.Metrics.of(plan)
	return g
}

// give takes g over, which keeps its reservation, or releases it. used is how many groups
// its run had; ended says that it came to its end, and that g is not damaged.
func (p *Partials) give(g *grouping, used int, ended bool) {
	if p == nil || g.table == nil || g.room > keptGroups || g.room > keptFill*used || g.account.held > keptBytes || g.isLarge() {
		g.release()
		return
	}
	if ended && g.idle*keptIdle <= g.groups() && g.table.Bytes() <= keptBytes {
		g.rest()
	} else {
		g.reset()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, g)
}

// Release gives up what is kept.
func (p *Partials) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.free {
		g.release()
	}
	p.free = nil
}
