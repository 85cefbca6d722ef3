package eval_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// TestSweep calls every scalar function with awkward values of all types it takes. A call
// does not panic and gives one result, or one error, however it is computed: folded, row
// by row, over a column, a slice of one, the rows a CASE selects, a dictionary, nulls
// only, no rows. The result has the type that was declared, its text is UTF-8, and the
// arguments stay as they are.
func TestSweep(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range registry.Names() {
		f, ok := registry.Scalar(name)
		if !ok || f.Name != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fnv.New64a()
			h.Write([]byte(name))
			s := &sweep{t: t, f: f, rnd: rand.New(rand.NewPCG(h.Sum64(), 1)), zone: berlin}
			for _, types := range s.signatures() {
				s.run(types)
			}
		})
	}
}

// sweep is one function and where its values come from.
type sweep struct {
	t    *testing.T
	f    *function.Scalar
	rnd  *rand.Rand
	zone *time.Location
}

// signatures are argument types that overloads of the function take as they are.
func (s *sweep) signatures() [][]arrow.DataType {
	var all [][]arrow.DataType
	known := map[string]bool{}
	for _, o := range s.f.Overloads {
		for _, n := range []int{len(o.Args), len(o.Args) + 2} {
			if n > len(o.Args) && !o.Variadic {
				continue
			}
			for _, types := range s.typesFor(o.Args, n) {
				sig, err := s.f.Resolve(types)
				key := fmt.Sprint(types)
				if err != nil || known[key] || !slices.EqualFunc(sig.Args, types, sameType) {
					continue
				}
				known[key] = true
				all = append(all, types)
			}
		}
	}
	return all
}

// typesFor gives n arguments the types that their matchers accept: the first types of
// all, the second of all and so on, and some mixed ones.
func (s *sweep) typesFor(matchers []function.Matcher, n int) [][]arrow.DataType {
	candidates := make([][]arrow.DataType, n)
	most := 1
	for k := range candidates {
		for _, dt := range sweepTypes {
			if want, _, ok := matchers[min(k, len(matchers)-1)].Match(dt); ok && arrow.TypeEqual(want, dt) {
				candidates[k] = append(candidates[k], dt)
			}
		}
		if len(candidates[k]) == 0 {
			return nil
		}
		most = max(most, len(candidates[k]))
	}
	var all [][]arrow.DataType
	for i := range most + 6 {
		types := make([]arrow.DataType, n)
		for k, c := range candidates {
			if types[k] = c[i%len(c)]; i >= most {
				types[k] = c[s.rnd.IntN(len(c))]
			}
		}
		all = append(all, types)
	}
	return all
}

// run sweeps one signature.
func (s *sweep) run(types []arrow.DataType) {
	sig, err := s.f.Resolve(types)
	if err != nil {
		s.t.Fatal(err)
	}
	c := &sweepCall{t: s.t, mem: columnartest.Mem(s.t), types: types, zone: s.zone, volatile: sig.Overload.Volatility == function.Volatile}
	c.title = s.f.Name + "(" + strings.Join(typeNames(types), ", ") + ")"
	for k, dt := range types {
		c.fields = append(c.fields, columnar.Field(fmt.Sprintf("c%d", k), dt))
		c.call.Args = append(c.call.Args, &expr.Ref{Index: k, Name: c.fields[k].Name, DataType: dt, Null: true})
	}
	c.call.Func, c.call.Signature = s.f, sig
	c.rows = s.values(types)
	defer func() {
		if p := recover(); p != nil {
			s.t.Errorf("%s panics: %v, of rows %v\n%s", c.title, p, c.rows, debug.Stack())
		}
	}()
	c.check()
}

// values are rows of arguments, the first of nulls only.
func (s *sweep) values(types []arrow.DataType) [][]any {
	pools := make([][]any, len(types))
	most := 1
	for k, dt := range types {
		pools[k] = sweepValues(dt)
		most = max(most, len(pools[k]))
	}
	rows := [][]any{make([]any, len(types))}
	if len(types) == 0 {
		return rows
	}
	for i := range min(most+2, 14) {
		row := make([]any, len(types))
		for k, pool := range pools {
			row[k] = pool[s.rnd.IntN(len(pool))]
		}
		if i == 2 {
			row[s.rnd.IntN(len(row))] = nil
		}
		rows = append(rows, row)
	}
	return rows
}

func typeNames(types []arrow.DataType) []string {
	names := make([]string, len(types))
	for i, dt := range types {
		names[i] = columnar.TypeName(dt)
	}
	return names
}

// sweepCall is a call over columns, with rows of values for them.
type sweepCall struct {
	t        *testing.T
	mem      memory.Allocator
	title    string
	types    []arrow.DataType
	fields   []arrow.Field
	call     expr.Call
	rows     [][]any
	zone     *time.Location
	volatile bool

	program, guarded *eval.Program
	want             []string // per row: its result, or "error: …"
	large            []bool   // per row: the result is, and two of it prove no more than one
}

// largeResult is from how many bytes on a result is compared by its digest.
const largeResult = 1 << 18

func (c *sweepCall) check() {
	in := arrow.NewSchema(append(slices.Clone(c.fields), columnar.Field("ok", columnar.Boolean)), nil)
	c.program = c.compile(in, &c.call)
	ok := &expr.Ref{Index: len(c.types), Name: "ok", DataType: columnar.Boolean}
	c.guarded = c.compile(in, &expr.Case{Whens: []expr.Expr{ok}, Thens: []expr.Expr{&c.call}})
	if c.program == nil || c.guarded == nil {
		return
	}
	for i := range c.rows {
		w := c.eval(c.program, c.batch(c.rows[i:i+1], nil))[0]
		c.want, c.large = append(c.want, w), append(c.large, strings.HasPrefix(w, "digest"))
	}
	if c.volatile {
		return
	}
	c.folded()
	var good []int
	for i, w := range c.want {
		if !isError(w) {
			good = append(good, i)
		}
	}
	c.columns("a column", good, func(b arrow.RecordBatch) arrow.RecordBatch { return b })
	c.columns("a slice", good, func(b arrow.RecordBatch) arrow.RecordBatch { return b })
	if c.takesText() {
		c.columns("a dictionary", good, func(b arrow.RecordBatch) arrow.RecordBatch { return dictionaries(c.t, c.mem, b) })
	}
	c.selected(good)
	c.failing()
	c.same("no rows", c.eval(c.program, c.batch(nil, nil)), nil)
	nulls := slices.Repeat(c.want[:1], 3)
	if isError(c.want[0]) {
		nulls = nulls[:1]
	}
	c.same("nulls", c.eval(c.program, c.batch([][]any{c.rows[0], c.rows[0], c.rows[0]}, nil)), nulls)
}

// takesText says whether there is anything to be encoded in a dictionary.
func (c *sweepCall) takesText() bool {
	return slices.ContainsFunc(c.types, func(dt arrow.DataType) bool { return dt.ID() == arrow.STRING || dt.ID() == arrow.BINARY })
}

func isError(result string) bool { return strings.HasPrefix(result, "error: ") }

func (c *sweepCall) compile(in *arrow.Schema, e expr.Expr) *eval.Program {
	p, err := eval.Compile(in, e)
	if err != nil {
		c.errorText(err) // some types are refused here: from_json of a MAP whose keys are no texts
		return nil
	}
	return p
}

// batch is columns of rows, and which of them are good.
func (c *sweepCall) batch(rows [][]any, good []int) arrow.RecordBatch {
	columns := make([]arrow.Array, len(c.types)+1)
	for k, dt := range c.types {
		b := columnar.NewBuilder(c.mem, dt)
		for _, row := range rows {
			if err := b.Append(row[k]); err != nil {
				c.t.Fatalf("%s: %v", c.title, err)
			}
		}
		columns[k] = b.NewArray()
		b.Release()
		defer columns[k].Release()
	}
	b := array.NewBooleanBuilder(c.mem)
	defer b.Release()
	for i := range rows {
		b.Append(slices.Contains(good, i))
	}
	columns[len(c.types)] = b.NewArray()
	defer columns[len(c.types)].Release()
	return array.NewRecordBatch(arrow.NewSchema(append(slices.Clone(c.fields), columnar.Field("ok", columnar.Boolean)), nil), columns, int64(len(rows)))
}

// dictionaries is b with its texts encoded; it releases b.
func dictionaries(t testing.TB, mem memory.Allocator, b arrow.RecordBatch) arrow.RecordBatch {
	defer b.Release()
	columns := make([]arrow.Array, b.NumCols())
	fields := slices.Clone(b.Schema().Fields())
	for i, c := range b.Columns() {
		if id := c.DataType().ID(); id == arrow.STRING || id == arrow.BINARY {
			columns[i] = columnartest.Encode(mem, c)
		} else {
			c.Retain()
			columns[i] = c
		}
		defer columns[i].Release()
		fields[i].Type = columns[i].DataType()
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows())
}

// eval is the results of the rows of b, which it releases, or one error.
func (c *sweepCall) eval(p *eval.Program, b arrow.RecordBatch) []string {
	defer b.Release()
	before := checksum(b)
	env := &eval.Env{Mem: c.mem, Now: 1_711_846_800_000_000, Location: c.zone, Seed: 1, PartBytes: math.MaxInt64}
	out, err := p.EvalColumns(env, b)
	if checksum(b) != before {
		c.t.Errorf("%s changes its arguments", c.title)
	}
	if err != nil {
		return []string{c.errorText(err)}
	}
	defer out[0].Release()
	plain := columnar.PlainColumn(c.mem, out[0])
	defer plain.Release()
	if !arrow.TypeEqual(plain.DataType(), c.call.Type()) {
		c.t.Errorf("%s is %s, declared as %s", c.title, columnar.TypeName(plain.DataType()), columnar.TypeName(c.call.Type()))
	}
	texts := make([]string, plain.Len())
	for i := range texts {
		if digest, ok := digestOf(plain, i); ok {
			texts[i] = digest
			continue
		}
		v := columnar.Value(plain, i)
		if !validText(v) {
			c.t.Errorf("%s: result %q is not UTF-8", c.title, v)
		}
		texts[i] = fmt.Sprintf("%T %v", v, v)
	}
	return texts
}

// digestOf is the length and a checksum of a large array of numbers or times, of which the text
// would take longer to make than the array.
func digestOf(a arrow.Array, i int) (string, bool) {
	l, ok := a.(*array.List)
	if !ok || l.IsNull(i) {
		return "", false
	}
	from, to := l.ValueOffsets(i)
	dt, fixed := l.ListValues().DataType().(arrow.FixedWidthDataType)
	if !fixed || dt.BitWidth()%8 != 0 || l.ListValues().NullN() > 0 || (to-from)*int64(dt.BitWidth()/8) < largeResult {
		return "", false
	}
	values := l.ListValues().Data()
	width, offset := int64(dt.BitWidth()/8), int64(values.Offset())
	sum := maphash.Bytes(seed, values.Buffers()[1].Bytes()[(offset+from)*width:(offset+to)*width])
	return fmt.Sprintf("digest of %d values: %x", to-from, sum), true
}

// errorText is an error without the text of its expression, which names columns or
// values.
func (c *sweepCall) errorText(err error) string {
	var named *eval.Error
	if !errors.As(err, &named) {
		c.t.Errorf("%s: error %q names no expression", c.title, err)
		return "error: " + err.Error()
	}
	text := named.Err.Error()
	if strings.Contains(text, "bug: ") || !utf8.ValidString(text) {
		c.t.Errorf("%s: error %q", c.title, text)
	}
	return "error: " + strings.TrimPrefix(text, named.Expr+": ")
}

func validText(v any) bool {
	switch v := v.(type) {
	case string:
		return utf8.ValidString(v)
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !validText(e) })
	case [][2]any:
		return !slices.ContainsFunc(v, func(e [2]any) bool { return !validText(e[0]) || !validText(e[1]) })
	}
	return true
}

var seed = maphash.MakeSeed()

// checksum is of all memory of a batch.
func checksum(b arrow.RecordBatch) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, c := range b.Columns() {
		addMemory(&h, c.Data())
	}
	return h.Sum64()
}

func addMemory(h *maphash.Hash, d arrow.ArrayData) {
	for _, b := range d.Buffers() {
		if b != nil {
			h.Write(b.Bytes())
		}
	}
	for _, child := range d.Children() {
		addMemory(h, child)
	}
	if d.DataType().ID() == arrow.DICTIONARY {
		addMemory(h, d.Dictionary())
	}
}

// folded computes each row of constants alone, and of one column beside constants.
func (c *sweepCall) folded() {
	if len(c.types) == 0 {
		return
	}
	for i, row := range c.rows {
		for column := -1; column < min(len(c.types), 2); column++ {
			call := c.call
			call.Args = slices.Clone(c.call.Args)
			for k, dt := range c.types {
				if k != column {
					a, err := columnar.Column(memory.DefaultAllocator, dt, row[k])
					if err != nil {
						c.t.Fatal(err)
					}
					call.Args[k] = &expr.Literal{Value: a}
				}
			}
			rows := [][]any{row, row}
			if c.large[i] {
				rows = rows[1:]
			}
			b := c.batch(rows, nil)
			p, err := eval.Compile(b.Schema(), &call)
			if err != nil {
				b.Release()
				if got := c.errorText(err); !c.lazily(got, i) {
					c.differs(fmt.Sprintf("constants but %d", column), i, got)
				}
				continue
			}
			for _, got := range c.eval(p, b) {
				if !alike(got, c.want[i]) {
					c.differs(fmt.Sprintf("constants but %d", column), i, got)
				}
			}
		}
	}
}

// lazily says whether an error of binding a constant is the one of row i, or one that a
// null or an error of another argument hides from the rows.
func (c *sweepCall) lazily(got string, i int) bool {
	return alike(got, c.want[i]) || isError(c.want[i]) || slices.Contains(c.rows[i], nil)
}

// alike says whether results are the same, and errors, where one may name the values that
// the text of the other's expression already names.
func alike(a, b string) bool {
	return a == b || isError(a) && isError(b) && (strings.HasSuffix(a, b[len("error: "):]) || strings.HasSuffix(b, a[len("error: "):]))
}

func (c *sweepCall) differs(how string, i int, got string) {
	c.t.Errorf("%s of %s, row %#v:\n%s\nalone:\n%s", c.title, how, c.rows[i], got, c.want[i])
}

// columns computes the good rows at once, from the second on as a slice.
func (c *sweepCall) columns(how string, good []int, encode func(arrow.RecordBatch) arrow.RecordBatch) {
	rows, want := [][]any{}, []string{}
	for turn := range 3 { // values come again, so that a dictionary is worth while
		for _, i := range good {
			if turn == 0 || !c.large[i] {
				rows, want = append(rows, c.rows[i]), append(want, c.want[i])
			}
		}
	}
	b := encode(c.batch(rows, nil))
	if how == "a slice" && len(rows) > 3 {
		whole := b
		defer whole.Release()
		b, want = whole.NewSlice(3, int64(len(rows))), want[3:]
	}
	c.same(how, c.eval(c.program, b), want)
}

// selected computes the call for the rows that do not fail, among others.
func (c *sweepCall) selected(good []int) {
	want := make([]string, len(c.rows))
	for i := range want {
		if want[i] = "<nil> <nil>"; slices.Contains(good, i) {
			want[i] = c.want[i]
		}
	}
	c.same("a selection", c.eval(c.guarded, c.batch(c.rows, good)), want)
	if !c.takesText() {
		return
	}
	c.same("a selection of a dictionary", c.eval(c.guarded, dictionaries(c.t, c.mem, c.batch(c.rows, good))), want)
}

// failing computes all rows: the error is that of the first row that has one.
func (c *sweepCall) failing() {
	i := slices.IndexFunc(c.want, isError)
	if i < 0 {
		return
	}
	c.same("failing rows", c.eval(c.program, c.batch(c.rows, nil)), c.want[i:i+1])
}

func (c *sweepCall) same(how string, got, want []string) {
	c.t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			c.t.Errorf("%s of %s, row %d:\n%s\nalone:\n%s", c.title, how, i, got[i], want[i])
			return
		}
	}
	c.t.Errorf("%s of %s: %d rows %.300s, not %d", c.title, how, len(got), got, len(want))
}

func sameType(a, b arrow.DataType) bool { return arrow.TypeEqual(a, b) }
