package physical

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/physical/eval"
)

// grouping is groups and what is accumulated for them. It is used by one goroutine.
type grouping struct {
	spec  *AggregateSpec
	mem   memory.Allocator
	table group.Table // nil without keys: there is one group then
	accs  []function.Accumulator
	// first is the number of the row in which each group was first seen (arrivals). Results
	// come in that order.
	first []int64
	// idle is how many groups no row has met: their keys are those of an earlier run (rest),
	// and their first is unmet.
	idle    int
	room    int // groups the accumulators have room for
	ids     []uint32
	account *account
	sets    []*distinctSet // by aggregate; nil where it is not over distinct values
}

// newGrouping makes a grouping; expected is about how many groups there will be, 0 if
// that is not known.
func newGrouping(spec *AggregateSpec, ec *ExecContext, acct *account, expected int) (*grouping, error) {
	g := &grouping{spec: spec, mem: ec.Mem, account: acct}
	var err error
	if len(spec.Keys) > 0 {
		g.table, err = group.New(ec.Mem, spec.KeyTypes(), group.Options{Budget: ec.Budget, Who: acct.who, Groups: expected})
		if err != nil {
			return nil, err
		}
	}
	if g.accs, err = spec.NewAccumulators(ec.Mem); err != nil {
		g.release()
		return nil, err
	}
	g.sets = make([]*distinctSet, len(spec.calls))
	for i, c := range spec.calls {
		if !c.agg.Distinct {
			continue
		}
		if g.sets[i], err = newDistinctSet(c.types, ec); err != nil {
			g.release()
			return nil, err
		}
	}
	return g, nil
}

func (g *grouping) release() {
	if g.table != nil {
		g.table.Release()
	}
	for _, a := range g.accs {
		a.Release()
	}
	for _, s := range g.sets {
		if s != nil {
			s.table.Release()
		}
	}
	g.table, g.accs, g.sets, g.first = nil, nil, nil, nil
	g.account.release()
}

// groups is the number of groups.
func (g *grouping) groups() int { return len(g.first) }

// intern puts the group of each row into ids and makes room for new groups; number is that
// of the first row.
func (g *grouping) intern(keys []arrow.Array, rows int, number int64) ([]uint32, error) {
	g.ids = resize(g.ids, rows)
	if g.table == nil {
		clear(g.ids)
		if len(g.first) == 0 {
			g.first = append(g.first, number)
		}
	} else {
		if err := g.table.Intern(keys, g.ids); err != nil {
			return nil, err
		}
		if n := g.table.Len(); n > len(g.first) {
			g.seeFirst(n, number)
		}
		if g.idle > 0 {
			g.meet(number)
		}
	}
	g.makeRoom()
	return g.ids, nil
}

// seeFirst notes where the groups from len(first) to n were seen first: ids are given
// in row order.
func (g *grouping) seeFirst(n int, number int64) {
	next := uint32(len(g.first))
	g.first = slices.Grow(g.first, n-len(g.first))
	for i, id := range g.ids {
		if id == next {
			g.first = append(g.first, number+int64(i))
			next++
			if int(next) == n {
				return
			}
		}
	}
}

// unmet is first of a group that has only a key.
const unmet = math.MinInt64

// meet notes where idle groups were seen first.
func (g *grouping) meet(number int64) {
	for i, id := range g.ids {
		if g.first[id] != unmet {
			continue
		}
		g.first[id] = number + int64(i)
		if g.idle--; g.idle == 0 {
			return
		}
	}
}

// met is every group that has rows.
func (g *grouping) met() []uint32 {
	all := g.all()
	if g.idle == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(id uint32) bool { return g.first[id] == unmet })
}

func (g *grouping) makeRoom() {
	if n := len(g.first); n > g.room {
		g.room = n
		for _, a := range g.accs {
			a.Resize(n)
		}
	}
}

// update adds the rows of a batch; number is that of the first.
func (g *grouping) update(env *eval.Env, b arrow.RecordBatch, number int64) error {
	for from := 0; ; {
		n, err := g.updatePart(env, b, from, number+int64(from))
		if from += n; err != nil || from == int(b.NumRows()) {
			return err
		}
	}
}

// updatePart adds some rows of a batch from row from on; number is that of the first. It
// returns how many.
func (g *grouping) updatePart(env *eval.Env, b arrow.RecordBatch, from int, number int64) (int, error) {
	in, err := g.spec.evaluatePart(env, b, from)
	if err != nil {
		return 0, err
	}
	defer in.Release()
	ids, err := g.intern(in.Keys, in.Rows, number)
	if err != nil {
		return 0, err
	}
	return in.Rows, g.add(ids, in)
}

// updateRows adds rows that were kept; firsts is where each was first seen, nil if that
// does not matter.
func (g *grouping) updateRows(columns []arrow.Array, rows int, firsts []int64) error {
	in := g.spec.inputOf(columns, rows)
	ids, err := g.internAt(in.Keys, rows, firsts)
	if err != nil {
		return err
	}
	return g.add(ids, in)
}

// add adds rows to their groups.
func (g *grouping) add(ids []uint32, in *AggregateInput) error {
	if err := g.spec.Update(g.mem, g.accs, ids, in); err != nil {
		return err
	}
	for i, s := range g.sets {
		if s == nil {
			continue
		}
		if err := g.updateDistinct(i, s, ids, in); err != nil {
			return err
		}
	}
	return g.reserve()
}

// reserve accounts for what the accumulators hold; tables reserve for themselves.
func (g *grouping) reserve() error {
	n := int64(cap(g.first)) * 8
	for _, a := range g.accs {
		n += a.Bytes()
	}
	return g.account.set(n)
}

// internAt is intern of rows that were first seen anywhere; firsts is nil if that does not
// matter.
func (g *grouping) internAt(keys []arrow.Array, rows int, firsts []int64) ([]uint32, error) {
	before := len(g.first)
	ids, err := g.intern(keys, rows, 0)
	if err != nil || firsts == nil {
		return ids, err
	}
	for i := before; i < len(g.first); i++ {
		g.first[i] = math.MaxInt64
	}
	for i, id := range ids {
		if firsts[i] < g.first[id] {
			g.first[id] = firsts[i]
		}
	}
	return ids, nil
}

// merge adds states, laid out as StateSchema; firsts is as in internAt. With a source the
// columns are laid out as its keptStates, and it adds what those leave out.
func (g *grouping) merge(columns []arrow.Array, rows int, firsts []int64, from *source) error {
	keys, states := columns[:len(g.spec.Keys)], columns[len(g.spec.Keys):]
	ids, err := g.internAt(keys, rows, firsts)
	if err != nil {
		return err
	}
	for i, a := range g.accs {
		if absorber, ok := a.(function.Absorber); ok && from != nil {
			if err := absorber.Absorb(ids, from.g.accs[i], from.groups); err != nil {
				return err
			}
			continue
		}
		n := g.spec.calls[i].states
		if err := a.Merge(ids, states[:n]); err != nil {
			return err
		}
		states = states[n:]
	}
	return g.reserve()
}

// source is groups of a grouping that another one takes values from.
type source struct {
	g      *grouping
	groups []uint32
}

// keptStates is states without those of the accumulators that another one can absorb.
func (g *grouping) keptStates(groups []uint32) ([]arrow.Array, error) {
	return g.columns(groups, func(a function.Accumulator) ([]arrow.Array, error) {
		if _, ok := a.(function.Absorber); ok {
			return nil, nil
		}
		return a.State(groups)
	})
}

// isLarge says whether an accumulator holds all the values it was given, so that merging
// and finishing a few groups is much work, too.
func (g *grouping) isLarge() bool {
	for _, a := range g.accs {
		for _, f := range a.Fields() {
			if f.Type.ID() == arrow.LIST {
				return true
			}
		}
	}
	return false
}

// states is the keys and states of groups as columns, laid out as StateSchema.
func (g *grouping) states(groups []uint32) ([]arrow.Array, error) {
	return g.columns(groups, func(a function.Accumulator) ([]arrow.Array, error) { return a.State(groups) })
}

// results is the keys and values of groups as columns, laid out as ResultSchema.
func (g *grouping) results(groups []uint32) ([]arrow.Array, error) {
	return g.columns(groups, func(a function.Accumulator) ([]arrow.Array, error) {
		r, err := ResultOf(g.account.budget, a, groups)
		return []arrow.Array{r}, err
	})
}

// ResultOf is the values of groups, if the budget has room for them to be made: what is in
// proportion to what a holds is not asked for.
func ResultOf(budget *columnar.Budget, a function.Accumulator, groups []uint32) (arrow.Array, error) {
	if n := function.ResultRoom(a, groups); n > 0 {
		if err := budget.Reserve("the value", n); err != nil {
			return nil, err
		}
		defer budget.Return(n)
	}
	return a.Result(groups)
}

// bytes is about how much memory the groups take.
func (g *grouping) bytes() int64 {
	n := g.account.held
	if g.table != nil {
		n += g.table.Bytes()
	}
	return n
}

func (g *grouping) columns(groups []uint32, of func(a function.Accumulator) ([]arrow.Array, error)) (out []arrow.Array, err error) {
	if g.table != nil {
		if out, err = g.table.Keys(groups); err != nil {
			return nil, err
		}
	}
	for i, a := range g.accs {
		columns, err := of(a)
		if err != nil {
			releaseAll(out)
			return nil, eval.Failed(g.spec.calls[i].agg, err)
		}
		out = append(out, columns...)
	}
	return out, nil
}

// statesOfRows is the state of each row as if it were the only one of its group, laid out
// as StateSchema; keys may be dictionary-encoded. g has no groups of its own.
func (g *grouping) statesOfRows(in *AggregateInput) ([]arrow.Array, error) {
	g.ids = resize(g.ids, in.Rows)
	rows := g.ids
	for i := range rows {
		rows[i] = uint32(i)
	}
	if in.Rows > g.room {
		g.room = in.Rows
		for _, a := range g.accs {
			a.Resize(in.Rows)
		}
	}
	defer func() {
		for _, a := range g.accs {
			a.Clear(rows)
		}
	}()
	if err := g.spec.Update(g.mem, g.accs, rows, in); err != nil {
		return nil, err
	}
	out := retained(in.Keys)
	for i, a := range g.accs {
		columns, err := a.State(rows)
		if err != nil {
			releaseAll(out)
			return nil, eval.Failed(g.spec.calls[i].agg, err)
		}
		out = append(out, columns...)
	}
	if err := g.reserve(); err != nil {
		releaseAll(out)
		return nil, err
	}
	return out, nil
}

// reset forgets all groups and keeps the memory.
func (g *grouping) reset() {
	all := g.all()
	for _, a := range g.accs {
		a.Clear(all)
	}
	if g.table != nil {
		g.table.Reset()
	}
	g.first, g.idle = g.first[:0], 0
}

// rest forgets all rows and keeps the memory and the keys: to find a key is less work than
// to add it.
func (g *grouping) rest() {
	all := g.all()
	for _, a := range g.accs {
		a.Clear(all)
	}
	for i := range g.first {
		g.first[i] = unmet
	}
	g.idle = len(g.first)
}

// all is every group, in order of first sight by this grouping.
func (g *grouping) all() []uint32 { return iota32(len(g.first)) }

// ensureGlobal makes the one group of an aggregate without keys.
func (g *grouping) ensureGlobal() {
	if g.table == nil && len(g.first) == 0 {
		g.first = append(g.first, 0)
		g.makeRoom()
	}
}

func iota32(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, 2*cap(s)))
	}
	return s[:n]
}

// distinctSet is the pairs of group and arguments that an aggregate over distinct
// values has seen.
type distinctSet struct {
	table group.Table
	ids   []uint32
}

func newDistinctSet(types []arrow.DataType, ec *ExecContext) (*distinctSet, error) {
	all := append([]arrow.DataType{columnar.Int32}, types...)
	t, err := group.New(ec.Mem, all, group.Options{Budget: ec.Budget, Who: "distinct aggregate"})
	if err != nil {
		return nil, err
	}
	return &distinctSet{table: t}, nil
}

// updateDistinct adds to aggregate i the rows whose arguments its group has not seen.
func (g *grouping) updateDistinct(i int, s *distinctSet, ids []uint32, in *AggregateInput) error {
	c := &g.spec.calls[i]
	rows, all := g.spec.filtered(c, in)
	if !all && len(rows) == 0 {
		return nil
	}
	args, release, err := g.spec.arguments(g.mem, c, in, rows, all)
	if err != nil {
		return err
	}
	defer release()
	if !all {
		ids = pick(ids, rows)
	}
	fresh, err := s.see(g.mem, ids, args[:len(c.args)])
	if err != nil || len(fresh) == 0 {
		return err
	}
	for k, a := range args {
		if !a.IsConstant() {
			args[k] = columnar.ColumnDatum(kernel.Filter(g.mem, a.Array(), fresh))
			a.Release()
		}
	}
	if err := g.accs[i].Update(pick(ids, fresh), args); err != nil {
		return eval.Failed(c.agg, err)
	}
	return nil
}

// see adds pairs and returns the rows that were new.
func (s *distinctSet) see(mem memory.Allocator, ids []uint32, args []columnar.Datum) ([]int32, error) {
	buf, numbers := kernel.Make[int32](mem, len(ids))
	for i, id := range ids {
		numbers[i] = int32(id)
	}
	keys := []arrow.Array{kernel.Wrap(columnar.Int32, len(ids), 0, nil, buf)}
	defer func() { releaseAll(keys) }()
	for _, a := range args {
		keys = append(keys, columnar.Broadcast(mem, a, len(ids)))
	}
	s.ids = resize(s.ids, len(ids))
	next := uint32(s.table.Len())
	if err := s.table.Intern(keys, s.ids); err != nil {
		return nil, err
	}
	var fresh []int32
	for i, id := range s.ids {
		if id == next { // ids are given in row order
			fresh = append(fresh, int32(i))
			next++
		}
	}
	return fresh, nil
}
