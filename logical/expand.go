package logical

import (
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/expr"
)

// Expand repeats each row once for every grouping set: what GROUPING SETS, ROLLUP and
// CUBE group by. Output is the input's columns, then Keys, null in the sets without
// them, then the number of the set.
type Expand struct {
	unary
	Keys []expr.Named // those that are not in every set
	// Sets says of each set which of Keys it has.
	Sets [][]bool
	Set  *expr.Column // INTEGER, from 0
}

// NewExpand repeats input for sets; a fresh ID for the number of the set.
func NewExpand(input Node, keys []expr.Named, sets [][]bool) *Expand {
	set := &expr.Column{ID: expr.NewID(), Name: "grouping_set", DataType: columnar.Int32}
	return &Expand{unary: unary{input}, Keys: keys, Sets: sets, Set: set}
}

// KeyColumn is output column i of the keys.
func (e *Expand) KeyColumn(i int) *expr.Column {
	c := e.Keys[i].Column()
	c.Null = true
	return c
}

func (e *Expand) Schema() *Schema {
	in := e.Input.Schema().Columns
	columns := in[:len(in):len(in)]
	for i := range e.Keys {
		columns = append(columns, e.KeyColumn(i))
	}
	return NewSchema(append(columns, e.Set)...)
}
func (e *Expand) WithChildren(c []Node) Node {
	n := *e
	n.Input = c[0]
	return &n
}
func (e *Expand) Exprs() []expr.Expr { return namedExprs(e.Keys) }
func (e *Expand) WithExprs(exprs []expr.Expr) Node {
	n := *e
	n.Keys = withNamedExprs(e.Keys, exprs)
	return &n
}
func (e *Expand) String() string {
	sets := make([]string, len(e.Sets))
	for i, set := range e.Sets {
		var names []string
		for k, has := range set {
			if has {
				names = append(names, e.Keys[k].Name)
			}
		}
		sets[i] = "(" + strings.Join(names, ", ") + ")"
	}
	return fmt.Sprintf("Expand keys=[%s] sets=[%s]", namedList(e.Keys), strings.Join(sets, ", "))
}
