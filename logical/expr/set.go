package expr

import (
	"hash/maphash"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
)

// Set is expressions of which no two are Equal, numbered in the order in which they were
// added. The zero Set is empty.
type Set struct {
	// Calls tells random calls apart: no two of the expressions are the Same.
	Calls bool

	list []Expr
	last map[uint64]int // by hash: the number, plus one, of the last one added; nil while there are few
	same []int          // for each: the number, plus one, of the one before with the same hash
}

// fewExprs is up to how many expressions comparing with each beats hashing.
const fewExprs = 8

// Len is the number of expressions.
func (s *Set) Len() int { return len(s.list) }

// Find is the number of the expression that is Equal to e, or -1.
func (s *Set) Find(e Expr) int {
	if s.last == nil {
		for i, x := range s.list {
			if s.has(x, e) {
				return i
			}
		}
		return -1
	}
	for at := s.last[Hash(e)]; at > 0; at = s.same[at-1] {
		if s.has(s.list[at-1], e) {
			return at - 1
		}
	}
	return -1
}

// has says whether x stands for e.
func (s *Set) has(x, e Expr) bool {
	if s.Calls {
		return Same(x, e)
	}
	return Equal(x, e)
}

// Add adds e unless an Equal one is there, and returns the number of that; added says
// whether it did.
func (s *Set) Add(e Expr) (at int, added bool) {
	if at := s.Find(e); at >= 0 {
		return at, false
	}
	s.list = append(s.list, e)
	switch {
	case s.last != nil:
		s.index(len(s.list) - 1)
	case len(s.list) > fewExprs:
		s.last = map[uint64]int{}
		for i := range s.list {
			s.index(i)
		}
	}
	return len(s.list) - 1, true
}

func (s *Set) index(i int) {
	h := Hash(s.list[i])
	s.same = append(s.same, s.last[h])
	s.last[h] = i + 1
}

// maxHashed bounds the nodes that hash looks at, so that looking up every node of a deep
// tree does not cost the square of its depth. What differs below is told apart by Equal.
const maxHashed = 64

var seed = maphash.MakeSeed()

// Hash is equal for expressions that are Equal. It differs from run to run.
func Hash(e Expr) uint64 {
	h := hasher{left: maxHashed}
	h.expr(e)
	return h.sum
}

type hasher struct {
	sum  uint64
	left int // how many more nodes to look at
}

func (h *hasher) word(w uint64) {
	high, low := bits.Mul64(h.sum^w^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	h.sum = high ^ low
}

func (h *hasher) text(s string) { h.word(maphash.String(seed, s)) }

func (h *hasher) expr(e Expr) {
	if h.left == 0 {
		return
	}
	h.left--
	h.node(e)
	if in, ok := e.(*In); ok { // whose Children would be a copy of the list
		h.expr(in.Value)
		h.all(in.List)
		return
	}
	h.all(e.Children())
}

func (h *hasher) all(list []Expr) {
	for i := 0; i < len(list) && h.left > 0; i++ {
		h.expr(list[i])
	}
}

// node is what sameNode compares, or a part of it.
func (h *hasher) node(e Expr) {
	switch x := e.(type) {
	case *Column:
		h.word(uint64(x.ID))
	case *Ref:
		h.word(uint64(x.Index))
	case *Literal:
		h.literal(x.Value)
	case *Call:
		h.text(x.Func.Name)
	case *Cast:
		h.word(uint64(x.To.ID()))
	case *Logic:
		h.word(uint64(x.Op))
	case *Case:
		h.word(uint64(len(x.Whens)))
	case *Agg:
		h.text(x.Func.Name)
	case *Over:
		h.text(x.Func)
	case *Name:
		h.text(x.Name)
	case *Unresolved:
		h.text(x.Func)
	}
}

func (h *hasher) literal(a arrow.Array) {
	h.word(uint64(a.DataType().ID()))
	if a.IsNull(0) {
		return
	}
	switch v := a.(type) {
	case *array.Int64:
		h.word(uint64(v.Value(0)))
	case *array.Int32:
		h.word(uint64(v.Value(0)))
	case *array.String:
		h.text(v.Value(0))
	default:
		if !arrow.IsNested(a.DataType().ID()) { // in which -0.0 is written otherwise than 0.0
			h.word(maphash.Bytes(seed, columnar.AppendJSON(nil, a, 0)))
		}
	}
}
