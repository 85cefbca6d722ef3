package physical

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// KeyID names one key column of one HashJoin of a plan: the join gathers the values its
// build side has in it, and a KeyFilter or Scan in its probe side leaves out rows that
// have none of them.
type KeyID int

func (id KeyID) String() string { return fmt.Sprintf("k%d", int(id)) }

// KeyTest is that a column holds a value of the build side's key.
type KeyTest struct {
	Key    KeyID
	Column int // of the node's input; of a Scan: of its output
}

// keyScope is the key sets of the joins whose probe side is being opened.
type keyScope struct {
	sets map[KeyID]*keySet
	up   *keyScope
}

// withKeys is ec for the probe side of a join that gathers sets.
func (ec *ExecContext) withKeys(sets map[KeyID]*keySet) *ExecContext {
	if len(sets) == 0 {
		return ec
	}
	c := *ec
	c.keys = &keyScope{sets, ec.keys}
	return &c
}

// keySet is the set of a join above, nil if there is none.
func (ec *ExecContext) keySet(id KeyID) *keySet {
	for s := ec.keys; s != nil; s = s.up {
		if set := s.sets[id]; set != nil {
			return set
		}
	}
	return nil
}

// keyTester applies KeyTests to the batches of one Reader. A test that hardly leaves
// anything out is given up.
type keyTester struct {
	tests []runningTest
	out   []int32
}

type runningTest struct {
	set          *keySet
	column       int
	seen, passed int
	off          bool
}

// sampled is how many rows a test sees before it is judged; it stays if it leaves out at
// least one in leastUse.
const (
	sampled  = 64 << 10
	leastUse = 8
)

func newKeyTester(ec *ExecContext, tests []KeyTest) *keyTester {
	t := &keyTester{}
	for _, x := range tests {
		if set := ec.keySet(x.Key); set != nil {
			t.tests = append(t.tests, runningTest{set: set, column: x.Column})
		}
	}
	return t
}

// keep reduces the rows of a batch (nil with all: every row) to those that may meet
// something. The result is valid until the next call.
func (t *keyTester) keep(b arrow.RecordBatch, rows []int32, all bool) ([]int32, bool) {
	for i := range t.tests {
		x := &t.tests[i]
		l := x.set.ready.Load()
		if l == nil || x.off {
			continue
		}
		n := len(rows)
		if all {
			n, rows = int(b.NumRows()), nil
		}
		if n == 0 {
			break
		}
		// Of a second test rows and out are one: what is kept is never ahead of what is read.
		kept := l.keep(b.Column(x.column), rows, t.out[:0])
		t.out = kept
		x.judge(n, len(kept))
		rows, all = kept, all && len(kept) == n
	}
	return rows, all
}

func (x *runningTest) judge(n, kept int) {
	x.seen, x.passed = x.seen+n, x.passed+kept
	if x.seen >= sampled {
		x.off = x.seen-x.passed < x.seen/leastUse
		x.seen, x.passed = x.seen/2, x.passed/2
	}
}

// KeyFilter leaves out rows that meet nothing in a join above.
type KeyFilter struct {
	unaryPlan
	Tests []KeyTest
}

// NewKeyFilter tests columns of input.
func NewKeyFilter(input Plan, tests ...KeyTest) *KeyFilter {
	return &KeyFilter{unaryPlan{input}, tests}
}

func (p *KeyFilter) Schema() *arrow.Schema { return p.Input.Schema() }

// WithChildren tests another input.
func (p *KeyFilter) WithChildren(c []Plan) Plan { return NewKeyFilter(c[0], p.Tests...) }

func (p *KeyFilter) String() string {
	return args("KeyFilter", "keys", keyTests(p.Tests, p.Schema()))
}

// keyTests prints tests by the names of columns.
func keyTests(tests []KeyTest, s *arrow.Schema) string {
	parts := make([]string, len(tests))
	for i, t := range tests {
		parts[i] = fmt.Sprintf("%s IN %s", s.Field(t.Column).Name, t.Key)
	}
	return fmt.Sprint(parts)
}

// Open tests the rows of each Reader of the input.
func (p *KeyFilter) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	return each(ctx, ec, p.Input, n, func(in columnar.Reader) columnar.Reader {
		return &keyFilterReader{operator: operator{schema: p.Schema(), input: in}, ec: ec, tester: newKeyTester(ec, p.Tests)}
	})
}

type keyFilterReader struct {
	operator
	ec     *ExecContext
	tester *keyTester
}

func (r *keyFilterReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		b, err := r.input.Next(ctx)
		if err != nil {
			return nil, err
		}
		rows, all := r.tester.keep(b, nil, true)
		if all {
			return b, nil
		}
		if len(rows) == 0 {
			b.Release()
			continue
		}
		out := kernel.FilterBatch(r.ec.Mem, b, rows)
		b.Release()
		return out, nil
	}
}
