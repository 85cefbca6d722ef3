package eval

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
)

type opcode uint8

const (
	opRef opcode = iota
	opLiteral
	opCall
	opCast
	opLogic
	opCase
	opIn
)

// laziness says which arguments of a call are not evaluated for every row.
type laziness uint8

const (
	eager       laziness = iota
	firstValid           // coalesce: an argument only where all before it are null
	conditional          // if: the second only where the first is true, the third elsewhere
)

// node is one step of a Program. Arguments are earlier nodes.
type node struct {
	op   opcode
	expr expr.Expr
	dt   arrow.DataType
	args []int
	uses int // how often it is an argument or an output

	index   int            // opRef: position in the input
	literal columnar.Datum // opLiteral
	kernel  function.Kernel
	lazy    laziness
	logic   expr.LogicOp
	whens   int // opCase: number of branches; args are when, then, …, [else]
	members *members

	nullSafe bool // the kernel sees nulls itself
	fails    bool // its own kernel may fail for some values
	volatile bool // its own kernel is volatile
	written  bool // of a volatile call: it has a place, and site is its number
	site     uint64
	fallible bool // it or an argument may fail
	// dictionary is the position of the one column it reads, if it can be computed on
	// that column's dictionary instead; -1 otherwise.
	dictionary int
	// propagates: null in its column gives null.
	propagates bool
}

// Program is compiled expressions. It is immutable.
type Program struct {
	in      *arrow.Schema
	nodes   []node
	outputs []int
	types   []arrow.DataType
	frames  framePool
}

// Compile binds expressions over the columns of in, by position. Every expression is
// resolved; a *expr.Column or an aggregate in one is a bug of the caller's.
func Compile(in *arrow.Schema, exprs ...expr.Expr) (*Program, error) {
	c := &compiler{p: &Program{in: in}, known: map[string]int{}, drawn: map[expr.Place]int{}}
	for _, e := range exprs {
		i, err := c.compile(e)
		if err != nil {
			return nil, err
		}
		c.p.nodes[i].uses++
		c.p.outputs = append(c.p.outputs, i)
		c.p.types = append(c.p.types, e.Type())
	}
	c.p.frames.p = c.p
	return c.p, nil
}

// Types are the types of the expressions, in order.
func (p *Program) Types() []arrow.DataType { return p.types }

// Len is the number of expressions.
func (p *Program) Len() int { return len(p.outputs) }

// IsVolatile says whether any expression is: it must then see its batches in order,
// from one goroutine, to be repeatable.
func (p *Program) IsVolatile() bool {
	for i := range p.nodes {
		if p.nodes[i].volatile {
			return true
		}
	}
	return false
}

// IsVolatile says whether e calls a volatile function.
func IsVolatile(e expr.Expr) bool {
	found := false
	expr.Walk(e, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Call); ok && c.Signature.Overload.Volatility == function.Volatile {
			found = true
		}
		return !found
	})
	return found
}

type compiler struct {
	p     *Program
	known map[string]int // by canonical text: equal nodes are one
	// drawn are the volatile calls by where they are written: what is written once is
	// computed once, as x in x BETWEEN a AND b, which is there twice.
	drawn map[expr.Place]int
}

// add appends n, or returns the number of an equal node. A node with a volatile
// function is equal to none.
func (c *compiler) add(key string, n node) int {
	for _, a := range n.args {
		n.fallible = n.fallible || c.p.nodes[a].fallible
		if c.p.nodes[a].volatile {
			n.volatile = true
		}
	}
	n.fallible = n.fallible || n.fails
	if !n.volatile {
		if i, ok := c.known[key]; ok {
			return i
		}
	}
	c.onDictionary(&n)
	for _, a := range n.args {
		c.p.nodes[a].uses++
	}
	i := len(c.p.nodes)
	c.p.nodes = append(c.p.nodes, n)
	if !n.volatile {
		c.known[key] = i
	}
	return i
}

// onDictionary finds out whether n reads exactly one text column.
func (c *compiler) onDictionary(n *node) {
	n.dictionary = -1
	switch {
	case n.op == opRef:
		if id := n.dt.ID(); id == arrow.STRING || id == arrow.BINARY {
			n.dictionary = n.index
		}
		n.propagates = true
		return
	case n.op == opLiteral || n.volatile || n.op == opLogic || n.op == opCase:
		return
	}
	n.propagates = !n.nullSafe
	for _, a := range n.args {
		arg := &c.p.nodes[a]
		if arg.op == opLiteral {
			continue
		}
		if arg.dictionary < 0 || n.dictionary >= 0 && arg.dictionary != n.dictionary {
			n.dictionary = -1
			return
		}
		n.dictionary = arg.dictionary
		n.propagates = n.propagates && arg.propagates
	}
}

func (c *compiler) compile(e expr.Expr) (int, error) {
	switch x := e.(type) {
	case *expr.Ref:
		return c.ref(x)
	case *expr.Literal:
		key := fmt.Sprintf("lit %s %s", x.Type(), columnar.AppendJSON(nil, x.Value, 0))
		return c.add(key, node{op: opLiteral, expr: e, dt: x.Type(), literal: columnar.ConstantDatum(x.Value)}), nil
	case *expr.Call:
		return c.call(x)
	case *expr.Cast:
		args, err := c.all(x.Input)
		if err != nil {
			return 0, err
		}
		if arrow.TypeEqual(x.Input.Type(), x.To) {
			return args[0], nil
		}
		n := node{op: opCast, expr: e, dt: x.To, args: args, fails: !x.Try && function.CastMayFail(x.Input.Type(), x.To)}
		return c.add(fmt.Sprintf("cast %v %v %s %v", x.Try, x.ByPosition, x.To, args), n), nil
	case *expr.Logic:
		args, err := c.all(x.Args...)
		if err != nil {
			return 0, err
		}
		n := node{op: opLogic, expr: e, dt: columnar.Boolean, args: args, logic: x.Op}
		return c.add(fmt.Sprintf("%s %v", x.Op, args), n), nil
	case *expr.Case:
		args, err := c.all(x.Children()...)
		if err != nil {
			return 0, err
		}
		n := node{op: opCase, expr: e, dt: x.Type(), args: args, whens: len(x.Whens)}
		return c.add(fmt.Sprintf("case %d %v", len(x.Whens), args), n), nil
	case *expr.In:
		return c.in(x)
	}
	return 0, fmt.Errorf("bug: expression %s (%T) cannot be compiled", e, e)
}

func (c *compiler) all(exprs ...expr.Expr) ([]int, error) {
	out := make([]int, len(exprs))
	for i, e := range exprs {
		n, err := c.compile(e)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

func (c *compiler) ref(r *expr.Ref) (int, error) {
	if r.Index < 0 || r.Index >= c.p.in.NumFields() {
		return 0, fmt.Errorf("bug: column %d (%s) of an input of %d columns", r.Index, r.Name, c.p.in.NumFields())
	}
	if have := c.p.in.Field(r.Index).Type; !arrow.TypeEqual(have, r.DataType) {
		return 0, fmt.Errorf("bug: column %d (%s) is %s, not %s", r.Index, r.Name, columnar.TypeName(have), columnar.TypeName(r.DataType))
	}
	return c.add(fmt.Sprintf("ref %d", r.Index), node{op: opRef, expr: r, dt: r.DataType, index: r.Index}), nil
}

func (c *compiler) call(x *expr.Call) (int, error) {
	if x.Signature.Overload.Volatility != function.Volatile || x.Place.Source == nil {
		return c.addCall(x)
	}
	if i, ok := c.drawn[x.Place]; ok {
		return i, nil
	}
	i, err := c.addCall(x)
	if err == nil {
		c.drawn[x.Place] = i
	}
	return i, err
}

func (c *compiler) addCall(x *expr.Call) (int, error) {
	args, err := c.all(x.Args...)
	if err != nil {
		return 0, err
	}
	o := x.Signature.Overload
	n := node{
		op: opCall, expr: x, dt: x.Signature.Result, args: args,
		nullSafe: o.NullSafe, fails: o.Fallible, volatile: o.Volatility == function.Volatile,
	}
	if n.volatile && x.Place.Source != nil {
		n.written, n.site = true, x.Place.Site()
	}
	constants := make([]arrow.Array, len(args))
	for i, a := range x.Args {
		if l, ok := a.(*expr.Literal); ok {
			constants[i] = l.Value
		}
	}
	n.kernel, err = o.Bind(x.Signature.Args, constants)
	if err != nil {
		return 0, Failed(x, &function.BindError{Err: err})
	}
	n.lazy = lazinessOf(x)
	key := fmt.Sprintf("call %s %p %s %v", x.Func.Name, o, x.Signature.Result, args)
	return c.add(key, n), nil
}
