package eval

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/expr"
)

// Eval computes every expression for b. The results are the caller's: columns of
// b.NumRows() values, or constants. A result may be dictionary-encoded (see the
// package comment). On error nothing is returned.
func (p *Program) Eval(env *Env, b arrow.RecordBatch) ([]columnar.Datum, error) {
	out, n, err := p.EvalPart(env, b, 0)
	if err != nil || n == int(b.NumRows()) {
		return out, err
	}
	columns, err := p.rest(env, b, out, n)
	if err != nil {
		return nil, err
	}
	for i, c := range columns {
		out[i] = columnar.ColumnDatum(c)
	}
	return out, nil
}

// EvalColumns is Eval with constants written out as columns. The results are the
// caller's.
func (p *Program) EvalColumns(env *Env, b arrow.RecordBatch) ([]arrow.Array, error) {
	out, n, err := p.EvalColumnsPart(env, b, 0)
	if err != nil || n == int(b.NumRows()) {
		return out, err
	}
	first := make([]columnar.Datum, len(out))
	for i, c := range out {
		first[i] = columnar.ColumnDatum(c)
	}
	return p.rest(env, b, first, n)
}

// framePool keeps the working memory of evaluations.
type framePool struct {
	p    *Program
	pool sync.Pool
}

// get is a frame for n rows of b from row from on.
func (fp *framePool) get(env *Env, b arrow.RecordBatch, from, n int) *frame {
	f, ok := fp.pool.Get().(*frame)
	if !ok {
		f = &frame{p: fp.p, memo: make([]memo, len(fp.p.nodes)), dict: -1}
	}
	if f.rows = n; from > 0 || n < int(b.NumRows()) {
		f.part = b.NewSlice(int64(from), int64(from+n))
		b = f.part
	}
	f.env, f.call, f.columns = env, env.function(), b.Columns()
	f.call.Row += int64(from)
	if f.charge == nil {
		f.charge = f.reserve
	}
	f.call.Charge = f.charge
	return f
}

func (fp *framePool) put(f *frame) {
	f.release()
	if f.part != nil {
		f.part.Release()
	}
	f.env, f.columns, f.part = nil, nil, nil
	f.wide, f.input = 0, 0
	f.call = function.Env{}
	fp.pool.Put(f)
}

// rowSet is a set of rows that count, a part of parent's. A nil *rowSet is all rows.
type rowSet struct {
	bits   *columnar.Bitmap
	count  int
	parent *rowSet
}

func (s *rowSet) bitmap() *columnar.Bitmap {
	if s == nil {
		return nil
	}
	return s.bits
}

// within says whether s is known to be a part of o.
func (s *rowSet) within(o *rowSet) bool {
	if o == nil {
		return true
	}
	for ; s != nil; s = s.parent {
		if s == o {
			return true
		}
	}
	return false
}

// subset is the rows of s that are in bits, which it takes over.
func (s *rowSet) subset(bits *columnar.Bitmap) *rowSet {
	if s != nil {
		bits.And(s.bits)
	}
	return &rowSet{bits: bits, count: bits.Count(), parent: s}
}

// memo is the value of a node for the rows it was computed for.
type memo struct {
	d     columnar.Datum
	under *rowSet
	set   bool
}

// frame is one evaluation.
type frame struct {
	p       *Program
	env     *Env
	call    function.Env
	columns []arrow.Array
	part    arrow.RecordBatch // what columns are of, if it is not the whole batch
	rows    int
	memo    []memo
	trash   []columnar.Datum
	charge  func(bytes int64) error
	held    int64 // bytes reserved
	wide    int64 // bytes out of proportion that the rows need
	input   int64 // bytes of the columns; 0: not known
	once    bool  // what is computed is a constant: fewer rows need as much

	// A frame over a dictionary: the column dict is values, and every node counts
	// for its rows.
	dict   int
	values arrow.Array
}

func (f *frame) release() {
	for i := range f.memo {
		if f.memo[i].set {
			f.memo[i].d.Release()
			f.memo[i] = memo{}
		}
	}
	for _, d := range f.trash {
		d.Release()
	}
	f.trash = f.trash[:0]
	f.env.Budget.Return(f.held)
	f.held = 0
}

// output is the value of an output node, the caller's.
func (f *frame) output(i int) (columnar.Datum, error) {
	n := &f.p.nodes[i]
	if n.op == opRef {
		a := f.columns[n.index]
		a.Retain()
		return columnar.ColumnDatum(a), nil
	}
	if n.uses == 1 && f.onDictionary(n) {
		return f.evalDictionary(i, nil, true)
	}
	d, err := f.eval(i, nil)
	if err != nil {
		return columnar.Datum{}, err
	}
	return d.Retain(), nil
}

// eval is the value of node i for the rows of set; what it is for others is
// undefined. It is borrowed from the frame, until done.
func (f *frame) eval(i int, set *rowSet) (columnar.Datum, error) {
	n, m := &f.p.nodes[i], &f.memo[i]
	if m.set && set.within(m.under) {
		return m.d, nil
	}
	if !n.fallible {
		set = nil
	}
	var d columnar.Datum
	var err error
	switch {
	case set != nil && set.count == 0:
		d = columnar.NullConstant(f.env.Mem, n.dt)
	case f.onDictionary(n):
		d, err = f.evalDictionary(i, set, false)
	default:
		d, err = f.compute(i, n, set)
	}
	if err != nil {
		return columnar.Datum{}, err
	}
	if m.set {
		f.trash = append(f.trash, m.d) // somebody may still hold it
	}
	*m = memo{d: d, under: set, set: true}
	return d, nil
}

// done gives back the value of node i early if nobody else can want it.
func (f *frame) done(i int) {
	if m := &f.memo[i]; m.set && f.p.nodes[i].uses == 1 {
		m.d.Release()
		*m = memo{}
	}
}

func (f *frame) compute(i int, n *node, set *rowSet) (columnar.Datum, error) {
	switch n.op {
	case opRef:
		if n.index == f.dict {
			f.values.Retain()
			return columnar.ColumnDatum(f.values), nil
		}
		a, err := f.decoded(f.columns[n.index])
		return columnar.ColumnDatum(a), err
	case opLiteral:
		return n.literal.Retain(), nil
	case opCast, opCall:
		return f.apply(i, n, set)
	case opLogic:
		return f.evalLogic(n, set)
	case opCase:
		return f.evalCase(n, set)
	case opIn:
		return f.evalIn(n, set)
	}
	panic(fmt.Sprintf("bug: opcode %d", n.op))
}

// apply computes a function or a cast.
func (f *frame) apply(i int, n *node, set *rowSet) (columnar.Datum, error) {
	var buf [4]columnar.Datum
	args, err := f.arguments(n, set, buf[:0])
	if err != nil {
		return columnar.Datum{}, err
	}
	defer func() {
		for _, a := range n.args {
			f.done(a)
		}
	}()
	rows, constant := f.rows, !n.volatile && len(args) > 0
	for _, a := range args {
		if !n.nullSafe && (a.IsNullConstant() || a.Type().ID() == arrow.NULL) {
			return columnar.NullConstant(f.env.Mem, n.dt), nil
		}
		constant = constant && a.IsConstant()
	}
	var active *columnar.Bitmap
	if constant {
		rows = 1
	} else if n.fails {
		active = set.bitmap()
	}
	d, err := f.reserved(i, n, args, rows, active, constant)
	if err != nil {
		return columnar.Datum{}, f.failed(n, err)
	}
	if constant && !d.IsConstant() {
		return columnar.ConstantDatum(d.Array()), nil
	}
	if n.nullSafe || d.IsConstant() && d.Array().IsNull(0) {
		return d, nil
	}
	return f.withNulls(rows, d, args)
}

// reserved is run with what the result is out of proportion reserved.
func (f *frame) reserved(i int, n *node, args []columnar.Datum, rows int, active *columnar.Bitmap, constant bool) (columnar.Datum, error) {
	f.once = constant
	defer func() { f.once = false }()
	held := f.held
	d, err := f.run(i, n, args, rows, active)
	if err == nil {
		err = f.reserveResult(d, args, f.held-held)
	}
	return d, err
}

func (f *frame) run(i int, n *node, args []columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
	f.call.Expr = n.expr
	if n.op == opCast {
		return n.expr.(*expr.Cast).Compute(&f.call, args[0], rows, active)
	}
	if n.volatile {
		site := uint64(i)
		if n.written {
			site = n.site
		}
		f.call.Salt = function.Mix(f.env.Salt, site)
		defer func() { f.call.Salt = f.env.Salt }()
	}
	return n.kernel(&f.call, args, rows, active)
}

// failed says which expression an error of a kernel is about.
func (f *frame) failed(n *node, err error) error {
	var named *Error
	if errors.As(err, &named) || isTooWide(err) {
		return err
	}
	var value *kernel.ValueError
	if n.op == opCast && errors.As(err, &value) {
		err = fmt.Errorf("%w; %s", err, n.expr.(*expr.Cast).Advice())
	}
	return Failed(n.expr, err)
}

// Error is an error of evaluating an expression for some row.
type Error struct {
	Expr  string // SQL text
	Place expr.Place
	Err   error
}

// Failed is the error of evaluating e.
func Failed(e expr.Expr, err error) *Error {
	text := expr.Written(e)
	if errors.Is(err, expr.ErrSeveralRows) {
		text = "" // its call is none that anybody has written
	}
	return &Error{Expr: text, Place: expr.PlaceOf(e), Err: err}
}

func (e *Error) Error() string {
	text := e.Err.Error()
	if !strings.Contains(text, e.Expr) { // or the kernel has named it
		text = beginning(e.Expr) + ": " + text
	}
	if place := e.Place.String(); place != "" {
		text = place + ": " + text
	}
	return text
}

// mostOfExpr is how much of an expression an error shows: what is wrong with it comes after.
const mostOfExpr = 300

func beginning(text string) string {
	if len(text) <= mostOfExpr {
		return text
	}
	return strings.ToValidUTF8(text[:mostOfExpr], "") + "…"
}

func (e *Error) Unwrap() error { return e.Err }

// withNulls makes the result d of a kernel null wherever an argument is. It takes
// over d.
func (f *frame) withNulls(rows int, d columnar.Datum, args []columnar.Datum) (columnar.Datum, error) {
	mem := f.env.Mem
	nullable := false
	for _, a := range args {
		nullable = nullable || a.Array().NullN() > 0
	}
	if !nullable {
		return d, nil
	}
	if d.IsConstant() {
		if err := f.reserveRepeated(d, rows); err != nil {
			d.Release()
			return columnar.Datum{}, err
		}
		column := columnar.Broadcast(mem, d, rows)
		d.Release()
		d = columnar.ColumnDatum(column)
	}
	var buf [5]columnar.Datum
	valid, nulls := kernel.AndValidity(mem, rows, append(append(buf[:0], d), args...)...)
	if valid == nil {
		return d, nil
	}
	if nulls == d.Array().NullN() { // the kernel has seen to it
		valid.Release()
		return d, nil
	}
	return columnar.ColumnDatum(takeMasked(mem, d.Array(), valid, nulls)), nil
}

// takeMasked is a with another validity; it takes over both.
func takeMasked(mem memory.Allocator, a arrow.Array, valid *memory.Buffer, nulls int) arrow.Array {
	if a.Data().Offset() != 0 { // a bitmap of our own begins at 0
		all := make([]int32, a.Len())
		for i := range all {
			all[i] = int32(i)
		}
		dense, err := kernel.Take(mem, a, all)
		if err != nil {
			panic("bug: a copy of a column is larger than the column: " + err.Error())
		}
		a.Release()
		a = dense
	}
	defer a.Release()
	defer valid.Release()
	old := a.Data()
	buffers := append([]*memory.Buffer{valid}, old.Buffers()[1:]...)
	var data *array.Data
	if d, ok := a.(*array.Dictionary); ok {
		data = array.NewDataWithDictionary(a.DataType(), a.Len(), buffers, nulls, 0, d.Dictionary().Data().(*array.Data))
	} else {
		data = array.NewData(a.DataType(), a.Len(), buffers, old.Children(), nulls, 0)
	}
	defer data.Release()
	return array.MakeFromData(data)
}
