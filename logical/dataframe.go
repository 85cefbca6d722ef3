package logical

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// DataFrame builds a logical plan by Spark's verbs. It is an immutable value: each
// verb returns a new one. It describes and runs nothing; a Session acts. The first
// mistake is kept and reported by Plan, and by whatever acts on the DataFrame.
type DataFrame struct {
	node Node
	reg  *function.Registry
	err  error
}

// NewDataFrame wraps a plan; reg is where functions are looked up.
func NewDataFrame(node Node, reg *function.Registry) *DataFrame {
	return &DataFrame{node: node, reg: reg}
}

// FailedDataFrame carries an error from where it was made to where it is used.
func FailedDataFrame(err error) *DataFrame {
	if err == nil {
		err = errNoDataFrame
	}
	return &DataFrame{err: err}
}

// errNoDataFrame is of a DataFrame that is nil, or of nothing.
var errNoDataFrame = Usagef("the DataFrame is nil; make one with Read, ReadStream, SQL or Table of a Session")

// ReadTable is a DataFrame over a bounded table.
func ReadTable(name string, table connector.Table, reg *function.Registry) *DataFrame {
	return NewDataFrame(NewScan(name, name, table), reg)
}

// Plan is the logical plan, or the first mistake made while building it.
func (d *DataFrame) Plan() (Node, error) {
	switch {
	case d == nil:
		return nil, errNoDataFrame
	case d.err == nil && d.node == nil:
		return nil, errNoDataFrame
	}
	return d.node, d.err
}

// Schema is the output columns; nil after a mistake.
func (d *DataFrame) Schema() *Schema {
	node, err := d.Plan()
	if err != nil {
		return nil
	}
	return node.Schema()
}

// then applies a verb unless something went wrong before. A mistake is one of usage,
// whatever found it; a user's function that the verb asks for types may panic.
func (d *DataFrame) then(verb string, f func(*DataFrame) (Node, error)) *DataFrame {
	if _, err := d.Plan(); err != nil {
		return FailedDataFrame(err)
	}
	var node Node
	err := columnar.Guard("", func() (err error) {
		node, err = f(d)
		return err
	})
	if err != nil {
		return FailedDataFrame(Usagef("%s: %w", verb, err))
	}
	return &DataFrame{node: node, reg: d.reg}
}

// other is the plan of a DataFrame that a verb combines with, with columns of its own.
func other(o *DataFrame) (Node, error) {
	node, err := o.Plan()
	if err != nil {
		return nil, err
	}
	return Refresh(node), nil
}

// resolve types a term against the DataFrame's columns.
func (d *DataFrame) resolve(t expr.Term, aggregates bool) (expr.Expr, error) {
	if t.Err() != nil {
		return nil, t.Err()
	}
	r := d.resolver()
	r.Aggregates = aggregates
	return r.Resolve(t.Expr)
}

func (d *DataFrame) resolver() *expr.Resolver {
	return &expr.Resolver{Registry: d.reg, Lookup: d.node.Schema().Lookup}
}

// computed types terms that may hold window functions, which it puts on the plan.
func (d *DataFrame) computed(terms ...expr.Term) (Node, []expr.Named, error) {
	columns := make([]expr.Named, len(terms))
	places := make([]*expr.Expr, len(terms))
	r := d.resolver()
	r.Windows = true
	for i, t := range terms {
		if t.Err() != nil {
			return nil, nil, t.Err()
		}
		e, err := r.Resolve(t.Expr)
		if err != nil {
			return nil, nil, err
		}
		columns[i] = name(e, t.Name)
		places[i] = &columns[i].Expr
	}
	node, err := PlaceOvers(d.node, places)
	return node, columns, err
}

// named types a term and gives it its name.
func (d *DataFrame) named(t expr.Term, aggregates bool) (expr.Named, error) {
	e, err := d.resolve(t, aggregates)
	if err != nil {
		return expr.Named{}, err
	}
	return name(e, t.Name), nil
}

// idSet is the columns of a list being built.
type idSet map[expr.ID]bool

// add is n, with an ID of its own if it passes on a column that is there already.
func (s idSet) add(n expr.Named) expr.Named {
	if s[n.ID] {
		n.ID = expr.NewID()
	}
	s[n.ID] = true
	return n
}

// name is e under a given name; a plain column keeps its ID if it keeps its name, and
// the field of a struct is called as the field.
func name(e expr.Expr, given string) expr.Named {
	c, isColumn := e.(*expr.Column)
	if _, field, ok := expr.FieldOf(e); ok && given == "" {
		given = field
	}
	switch {
	case isColumn && (given == "" || given == c.Name):
		return expr.Pass(c)
	case given == "":
		return expr.As(e, e.String())
	}
	return expr.As(e, given)
}

// Select computes columns; a term may hold window functions.
func (d *DataFrame) Select(terms ...expr.Term) *DataFrame {
	return d.then("select", func(d *DataFrame) (Node, error) {
		node, columns, err := d.computed(terms...)
		if err != nil {
			return nil, err
		}
		seen := idSet{}
		for i, n := range columns {
			columns[i] = seen.add(n)
		}
		return NewProject(node, columns), nil
	})
}

// WithColumn adds a column, or replaces the one of that name: if none is spelt
// exactly so, what differs in case only.
func (d *DataFrame) WithColumn(columnName string, t expr.Term) *DataFrame {
	return d.then("withColumn", func(d *DataFrame) (Node, error) {
		node, added, err := d.computed(t.As(columnName))
		if err != nil {
			return nil, err
		}
		columns := passAll(d.node.Schema())
		at := slices.IndexFunc(columns, func(c expr.Named) bool { return c.Name == columnName })
		if at < 0 {
			at = slices.IndexFunc(columns, func(c expr.Named) bool { return strings.EqualFold(c.Name, columnName) })
		}
		if at < 0 {
			return NewProject(node, append(columns, added[0])), nil
		}
		columns[at] = added[0]
		return NewProject(node, columns), nil
	})
}

// Drop leaves columns out; names that do not exist are an error.
func (d *DataFrame) Drop(names ...string) *DataFrame {
	return d.then("drop", func(d *DataFrame) (Node, error) {
		dropped := map[expr.ID]bool{}
		for _, n := range names {
			c, err := d.node.Schema().Lookup("", n)
			if err != nil {
				return nil, err
			}
			dropped[c.ID] = true
		}
		var columns []expr.Named
		for _, c := range d.node.Schema().Columns {
			if !dropped[c.ID] {
				columns = append(columns, expr.Pass(c))
			}
		}
		return NewProject(d.node, columns), nil
	})
}

// Where keeps the rows for which cond is true.
func (d *DataFrame) Where(cond expr.Term) *DataFrame {
	return d.then("where", func(d *DataFrame) (Node, error) {
		e, err := d.condition("the filter", cond)
		if err != nil {
			return nil, err
		}
		return NewFilter(d.node, e), nil
	})
}

// condition types a term that must be BOOLEAN; NULL is one.
func (d *DataFrame) condition(what string, t expr.Term) (expr.Expr, error) {
	e, err := d.resolve(t, false)
	if err != nil {
		return nil, err
	}
	return expr.NewCondition(e, what)
}

// As gives the DataFrame a name by which its columns can be qualified.
func (d *DataFrame) As(alias string) *DataFrame {
	return d.then("as", func(d *DataFrame) (Node, error) { return NewAlias(d.node, alias), nil })
}

// Distinct removes equal rows.
func (d *DataFrame) Distinct() *DataFrame {
	return d.then("distinct", func(d *DataFrame) (Node, error) { return NewDistinct(d.node, nil, false), nil })
}

// DropDuplicates keeps the first row, in arrival order, of those equal in columns;
// without columns, of equal rows.
func (d *DataFrame) DropDuplicates(columns ...string) *DataFrame {
	return d.dropDuplicates("dropDuplicates", false, columns)
}

// DropDuplicatesWithinWatermark is DropDuplicates that forgets a key once the
// watermark has passed its first event time plus the delay.
func (d *DataFrame) DropDuplicatesWithinWatermark(columns ...string) *DataFrame {
	return d.dropDuplicates("dropDuplicatesWithinWatermark", true, columns)
}

func (d *DataFrame) dropDuplicates(verb string, within bool, names []string) *DataFrame {
	return d.then(verb, func(d *DataFrame) (Node, error) {
		var on []expr.Expr
		for _, n := range names {
			c, err := d.node.Schema().Lookup("", n)
			if err != nil {
				return nil, err
			}
			on = append(on, c)
		}
		if on == nil && within {
			for _, c := range d.node.Schema().Columns {
				on = append(on, c)
			}
		}
		return NewDistinct(d.node, on, within), nil
	})
}

// OrderBy sorts: nulls first ascending, last descending, unless a term says otherwise.
func (d *DataFrame) OrderBy(terms ...expr.Term) *DataFrame {
	return d.then("orderBy", func(d *DataFrame) (Node, error) {
		keys := make([]SortKey, len(terms))
		for i, t := range terms {
			e, err := d.resolve(t, false)
			if err != nil {
				return nil, err
			}
			keys[i] = SortKey{Expr: e, Descending: t.Descending, NullsFirst: t.SortsNullsFirst()}
		}
		return NewSort(d.node, keys, 0), nil
	})
}

// Limit keeps the first n rows.
func (d *DataFrame) Limit(n int64) *DataFrame {
	return d.then("limit", func(d *DataFrame) (Node, error) {
		if n < 0 {
			return nil, fmt.Errorf("%d is negative", n)
		}
		return NewLimit(d.node, n, 0), nil
	})
}

// Offset skips the first n rows.
func (d *DataFrame) Offset(n int64) *DataFrame {
	return d.then("offset", func(d *DataFrame) (Node, error) {
		if n < 0 {
			return nil, fmt.Errorf("%d is negative", n)
		}
		return NewLimit(d.node, NoLimit, n), nil
	})
}

// Union is the rows of both (UNION ALL), by position; types are widened to meet.
func (d *DataFrame) Union(o *DataFrame) *DataFrame {
	return d.then("union", func(d *DataFrame) (Node, error) {
		right, err := other(o)
		if err != nil {
			return nil, err
		}
		return UnionOf(d.node, right)
	})
}

// Join combines rows for which on is true.
func (d *DataFrame) Join(o *DataFrame, kind JoinKind, on expr.Term) *DataFrame {
	return d.then("join", func(d *DataFrame) (Node, error) {
		right, e, err := d.joinCondition(o, on)
		if err == nil {
			err = kind.check()
		}
		if err != nil {
			return nil, err
		}
		if kind == CrossJoin { // with a condition it is an inner join
			kind = InnerJoin
		}
		return NewJoin(kind, d.node, right, e), nil
	})
}

// joinCondition is the right side of a join with o, and a condition over both.
func (d *DataFrame) joinCondition(o *DataFrame, on expr.Term) (right Node, cond expr.Expr, err error) {
	if right, err = other(o); err != nil {
		return nil, nil, err
	}
	both := &DataFrame{node: NewJoin(InnerJoin, d.node, right, nil), reg: d.reg}
	cond, err = both.condition("the join", on)
	return right, cond, err
}

// JoinUsing joins on equality of columns of the same names, which appear once.
func (d *DataFrame) JoinUsing(o *DataFrame, kind JoinKind, names ...string) *DataFrame {
	return d.then("join", func(d *DataFrame) (Node, error) {
		right, err := other(o)
		if err == nil {
			err = kind.check()
		}
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, errors.New("no columns to join on; use Join with a condition, or CrossJoin")
		}
		return Using(d.reg, kind, d.node, right, names)
	})
}

// AsofJoin pairs each row with the nearest row of o, such as the last price before a
// trade. on holds one inequality of both (>= or > for the nearest earlier row, <= or < for
// the nearest later one) and any number of equalities; conditions on one of the two say
// for which rows, or among which, the nearest is looked for. Of rows of o that are equally
// near the last in arrival order counts. kind is InnerJoin, or LeftJoin to keep rows that
// have none.
func (d *DataFrame) AsofJoin(o *DataFrame, kind JoinKind, on expr.Term) *DataFrame {
	return d.then("asofJoin", func(d *DataFrame) (Node, error) {
		right, e, err := d.joinCondition(o, on)
		if err != nil {
			return nil, err
		}
		cond := NewAsofCondition(d.node, right)
		if err := cond.Add(e); err != nil {
			return nil, err
		}
		return cond.Join(kind)
	})
}

// AsofJoinUsing is AsofJoin by columns of the same names, which appear once: the last is
// the time, compared by >=, the others are equal.
func (d *DataFrame) AsofJoinUsing(o *DataFrame, kind JoinKind, names ...string) *DataFrame {
	return d.then("asofJoin", func(d *DataFrame) (Node, error) {
		right, err := other(o)
		if err != nil {
			return nil, err
		}
		return AsofUsing(d.reg, kind, d.node, right, names)
	})
}

// CrossJoin is all pairs of rows.
func (d *DataFrame) CrossJoin(o *DataFrame) *DataFrame {
	return d.then("crossJoin", func(d *DataFrame) (Node, error) {
		right, err := other(o)
		if err != nil {
			return nil, err
		}
		return NewJoin(CrossJoin, d.node, right, nil), nil
	})
}

// WithWatermark declares column as event time, trailing by delay.
func (d *DataFrame) WithWatermark(column string, delay time.Duration) *DataFrame {
	return d.then("withWatermark", func(d *DataFrame) (Node, error) {
		c, err := d.node.Schema().Lookup("", column)
		if err != nil {
			return nil, err
		}
		if delay%time.Microsecond != 0 {
			return nil, fmt.Errorf("the delay is whole microseconds, not %s", delay)
		}
		return DeclareWatermark(d.node, c, delay, "")
	})
}

// GroupBy groups by terms, of which one may be Window or SessionWindow: a key that is
// a struct of start and end, named window or session_window.
func (d *DataFrame) GroupBy(terms ...expr.Term) *GroupedData {
	return &GroupedData{input: d, keys: slices.Clone(terms)}
}

// Agg aggregates all rows into one.
func (d *DataFrame) Agg(aggs ...expr.Term) *DataFrame { return d.GroupBy().Agg(aggs...) }
