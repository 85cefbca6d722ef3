package physical

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/group"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// AsofJoin pairs each left row with the nearest of the right rows with equal keys: those
// are kept in a hash table, in order of time within a key, the left side streams by, in
// parallel. Of right rows equally near the last in arrival order is taken, so the right
// side must be planned in order. The rows of a Reader keep their order.
type AsofJoin struct {
	Left, Right Plan
	Spec        AsofSpec
	schema      *arrow.Schema
	left        *eval.Program // the keys, then the time
	rightKeys   *eval.Program
	rightTime   *eval.Program
}

// AsofSpec is what is joined how.
type AsofSpec struct {
	Kind      logical.JoinKind // InnerJoin or LeftJoin
	LeftKeys  []expr.Expr      // over positions of the left input
	RightKeys []expr.Expr      // over positions of the right input, of the same types
	NullSafe  []bool           // by key: IS NOT DISTINCT FROM
	Nearest   logical.Nearest  // over positions
}

// NewAsofJoin joins left and right.
func NewAsofJoin(left, right Plan, spec AsofSpec) (*AsofJoin, error) {
	j := &AsofJoin{Left: left, Right: right, Spec: spec, schema: joined(left.Schema(), right.Schema())}
	var err error
	if j.left, err = eval.Compile(left.Schema(), append(slices.Clone(spec.LeftKeys), spec.Nearest.Left)...); err != nil {
		return nil, err
	}
	if j.rightKeys, err = eval.Compile(right.Schema(), spec.RightKeys...); err != nil {
		return nil, err
	}
	if j.rightTime, err = eval.Compile(right.Schema(), spec.Nearest.Right); err != nil {
		return nil, err
	}
	return j, nil
}

func (p *AsofJoin) Schema() *arrow.Schema { return p.schema }

// Children are left and right.
func (p *AsofJoin) Children() []Plan { return []Plan{p.Left, p.Right} }

// WithChildren joins other inputs.
func (p *AsofJoin) WithChildren(c []Plan) Plan {
	n := *p
	n.Left, n.Right = c[0], c[1]
	return &n
}

func (p *AsofJoin) String() string {
	on := make([]logical.JoinKey, len(p.Spec.LeftKeys))
	for i := range on {
		on[i] = logical.JoinKey{Left: p.Spec.LeftKeys[i], Right: p.Spec.RightKeys[i], NullSafe: p.Spec.NullSafe[i]}
	}
	return args("AsofJoin", "kind", p.Spec.Kind.String(), "on", list(on), "nearest", p.Spec.Nearest.String())
}

// Open streams the left side with n Readers.
func (p *AsofJoin) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	side, inputs, err := openSides(ctx, ec, ec, p, p.Left, p.Right, n, p.left.IsVolatile())
	if err != nil {
		return nil, err
	}
	if side.table, err = group.NewRowTable(ec.Mem, p.rightKeys.Types(), p.Spec.NullSafe, group.Options{Budget: ec.Budget, Who: "join"}); err != nil {
		_ = columnar.CloseAll(append(inputs, side.input)) // the first error counts
		return nil, err
	}
	env := ec.Env()
	fill := func(b arrow.RecordBatch) error { return fillTable(side.table, p.rightKeys, env, b, keyGifts{}) }
	op := p.Spec.Nearest.Op
	index := &asofIndex{earlier: op[0] == '>', inclusive: len(op) == 2, table: side.table}
	side.finish = func() error { return index.build(side.store, p.rightTime, env) }
	side.also = index.release
	out := joinOutput{pairs: p.schema, build: side, sides: sides{pairs: true, probeUnmatched: p.Spec.Kind == logical.LeftJoin}}
	for i, in := range inputs {
		r := newJoinReader(ec, p.schema, in, out)
		r.fill = fill
		r.whole = p.Spec.Kind == logical.LeftJoin
		r.begin = func() (pairing, error) {
			return &asofPairs{program: p.left, env: r.out.env, index: index, table: side.table.View(), keepAll: r.whole}, nil
		}
		inputs[i] = r
	}
	return inputs, nil
}

// asofIndex is the times of the right side's rows, by which those of each key are sorted.
// Of equal times the row to take is the one next to the rows that are not near: the last
// of them for the nearest earlier row, for the nearest later one the first, so there the
// last to arrive stands first.
//
//	table.Rows()   key a: 4 0 2   key b: 1 3
//	times                 5 8 8          2 9
type asofIndex struct {
	earlier, inclusive bool // the nearest earlier row; one of the same time is near

	table   *group.RowTable
	times   []uint64      // as kernel.OrderWords, in the order of table.Rows
	columns []arrow.Array // the times by batch of the store, where they do not fit a word
	store   *rowStore
}

// build computes the times of all rows and sorts the table.
func (x *asofIndex) build(store *rowStore, program *eval.Program, env *eval.Env) error {
	x.store = store
	size := 16 * int64(store.rows()) // words by row, and in the order of the table
	for i, b := range store.batches {
		columns, err := program.EvalColumns(env, b)
		if err != nil {
			return err
		}
		times := columnar.PlainColumn(env.Mem, columns[0])
		releaseAll(columns)
		x.columns = append(x.columns, times)
		size += columnar.DataBytes(times.Data())
		for row := range times.Len() {
			if columnar.IsNull(times, row) {
				x.table.Exclude(int(store.starts[i]) + row)
			}
		}
	}
	if err := store.account.add(size); err != nil {
		return err
	}
	x.table.Build()
	byRow := make([]uint64, 0, store.rows())
	for _, c := range x.columns {
		words, ok := kernel.OrderWords(byRow, c)
		if !ok {
			x.sortByComparing()
			return nil
		}
		byRow = words
	}
	x.sortWords(byRow)
	return store.account.add(8*int64(len(x.times)) - size)
}

// ties orders rows of one time.
func (x *asofIndex) ties(a, b uint32) int {
	if x.earlier {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(b, a)
}

func (x *asofIndex) sortWords(byRow []uint64) {
	x.table.SortRows(func(a, b uint32) int {
		if c := cmp.Compare(byRow[a], byRow[b]); c != 0 {
			return c
		}
		return x.ties(a, b)
	})
	x.times = make([]uint64, len(x.table.Rows()))
	for i, row := range x.table.Rows() {
		x.times[i] = byRow[row]
	}
	x.release()
}

func (x *asofIndex) sortByComparing() {
	c := kernel.NewComparer([]kernel.SortKey{{Columns: x.columns}})
	x.table.SortRows(func(a, b uint32) int {
		if c := c.Compare(x.store.ref(a), x.store.ref(b)); c != 0 {
			return c
		}
		return x.ties(a, b)
	})
}

func (x *asofIndex) release() {
	releaseAll(x.columns)
	x.columns = nil
}

// asofPairs is at most one pair for each probe row.
type asofPairs struct {
	program *eval.Program
	env     *eval.Env
	index   *asofIndex
	table   *group.RowTable
	prober  group.Prober
	keepAll bool // rows without a nearest one are paired with none

	row   int         // to go on with
	times arrow.Array // of the batch
	words []uint64    // as kernel.OrderWords, where the index has words
	comp  *kernel.Comparer
}

func (p *asofPairs) start(b arrow.RecordBatch) error {
	p.drop()
	p.env.Begin(b)
	columns, err := p.program.EvalColumns(p.env, b)
	if err != nil {
		return err
	}
	defer releaseAll(columns)
	last := len(columns) - 1
	p.row, p.times = 0, columnar.PlainColumn(p.env.Mem, columns[last])
	p.words, _ = kernel.OrderWords(p.words[:0], p.times)
	if p.index.columns != nil {
		of := append(slices.Clone(p.index.columns), p.times)
		p.comp = kernel.NewComparer([]kernel.SortKey{{Columns: of}})
	}
	return p.prober.Start(p.table, columns[:last], int(b.NumRows()))
}

func (p *asofPairs) next(probe, build []int32) int {
	n := 0
	rows := p.table.Rows()
	for ; p.row < p.times.Len() && n < len(probe); p.row++ {
		at := -1
		if from, to := p.prober.Range(p.row); from < to && !columnar.IsNull(p.times, p.row) {
			at = p.nearest(from, to)
		}
		switch {
		case at >= 0:
			probe[n], build[n] = int32(p.row), int32(rows[at])
		case p.keepAll:
			probe[n], build[n] = int32(p.row), -1
		default:
			continue
		}
		n++
	}
	return n
}

// nearest is the place in table.Rows of the row nearest to the one at hand, of those of
// its key at places from to to; -1 if there is none.
func (p *asofPairs) nearest(from, to int) int {
	x := p.index
	orEqual := x.earlier == x.inclusive
	at := from
	if p.comp == nil {
		at += countBefore(x.times[from:to], p.words[p.row], orEqual)
	} else {
		at += p.compareBefore(p.table.Rows()[from:to], orEqual)
	}
	if x.earlier {
		at--
	}
	if at < from || at >= to {
		return -1
	}
	return at
}

// compareBefore is how many of the sorted rows are before the one at hand, or with
// orEqual at it.
func (p *asofPairs) compareBefore(rows []uint32, orEqual bool) int {
	me := kernel.MakeRef(len(p.index.columns), p.row)
	return sort.Search(len(rows), func(i int) bool {
		c := p.comp.Compare(p.index.store.ref(rows[i]), me)
		return c > 0 || c == 0 && !orEqual
	})
}

// countBefore is how many of the sorted times are before t, or with orEqual at it.
func countBefore(times []uint64, t uint64, orEqual bool) int {
	if !orEqual {
		if t == 0 {
			return 0
		}
		t--
	}
	// Without a branch in the loop: where the rows are is not to be predicted.
	base, n := 0, len(times)
	for n > 1 {
		half := n / 2
		if times[base+half-1] <= t {
			base += half
		}
		n -= half
	}
	if n == 1 && times[base] <= t {
		base++
	}
	return base
}

func (p *asofPairs) drop() {
	if p.times != nil {
		p.times.Release()
		p.times = nil
	}
}

func (p *asofPairs) release() {
	p.drop()
	p.table.Release()
}

// planAsofJoin plans the right side in order: of rows equally near the last is taken.
func (pl *Planner) planAsofJoin(x *logical.AsofJoin) (Plan, error) {
	left, err := pl.Plan(x.Left)
	if err != nil {
		return nil, err
	}
	right, err := pl.PlanOrdered(x.Right)
	if err != nil {
		return nil, err
	}
	spec := AsofSpec{Kind: x.Kind, Nearest: x.Nearest}
	l, r := x.Left.Schema(), x.Right.Schema()
	for _, k := range x.Keys {
		a, err := Bind(k.Left, l)
		if err != nil {
			return nil, err
		}
		b, err := Bind(k.Right, r)
		if err != nil {
			return nil, err
		}
		spec.LeftKeys, spec.RightKeys = append(spec.LeftKeys, a), append(spec.RightKeys, b)
		spec.NullSafe = append(spec.NullSafe, k.NullSafe)
	}
	if spec.Nearest.Left, err = Bind(x.Nearest.Left, l); err != nil {
		return nil, err
	}
	if spec.Nearest.Right, err = Bind(x.Nearest.Right, r); err != nil {
		return nil, err
	}
	j, err := NewAsofJoin(left, right, spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x, err)
	}
	return NewCoalesce(j), nil
}
