package ast

// Walk calls f for n and, as long as f says true, for what is below it, in the
// order of the text. Queries inside expressions are walked too: an f that must
// not see them says false at Subquery, Exists and In with a Query.
func Walk(n Node, f func(Node) bool) {
	if !f(n) {
		return
	}
	n.children(func(c Node) { Walk(c, f) })
}

// Unparen takes the parentheses off an expression.
func Unparen(x Expr) Expr {
	for {
		p, ok := x.(*Paren)
		if !ok {
			return x
		}
		x = p.X
	}
}

func each[N Node](items []N, visit func(Node)) {
	for _, n := range items {
		visit(n)
	}
}

func maybe(x Expr, visit func(Node)) {
	if x != nil {
		visit(x)
	}
}

func (n *Name) children(visit func(Node))      { each(n.Parts, visit) }
func (*Number) children(func(Node))            {}
func (*String) children(func(Node))            {}
func (*Blob) children(func(Node))              {}
func (*Bool) children(func(Node))              {}
func (*Null) children(func(Node))              {}
func (*TypedString) children(func(Node))       {}
func (*Interval) children(func(Node))          {}
func (n *Paren) children(visit func(Node))     { visit(n.X) }
func (n *Row) children(visit func(Node))       { each(n.Items, visit) }
func (n *Unary) children(visit func(Node))     { visit(n.X) }
func (n *Exists) children(visit func(Node))    { visit(n.Query) }
func (n *Subquery) children(visit func(Node))  { visit(n.Query) }
func (n *Is) children(visit func(Node))        { visit(n.X) }
func (n *Cast) children(visit func(Node))      { visit(n.X) }
func (n *Extract) children(visit func(Node))   { visit(n.X) }
func (n *Field) children(visit func(Node))     { visit(n.X) }
func (n *Star) children(visit func(Node))      { each(n.Replace, visit) }
func (*Renamed) children(func(Node))           {}
func (n *Array) children(visit func(Node))     { each(n.Items, visit) }
func (n *Struct) children(visit func(Node))    { each(n.Fields, visit) }
func (n *Arg) children(visit func(Node))       { visit(n.Value) }
func (t *Type) children(func(Node))            {}
func (f *TypeField) children(func(Node))       {}
func (n *QueryStmt) children(visit func(Node)) { visit(n.Query) }
func (n *Explain) children(visit func(Node))   { visit(n.Stmt) }
func (n *Set) children(visit func(Node))       { maybe(n.Value, visit) }
func (n *Show) children(visit func(Node)) {
	if n.Table != nil {
		visit(n.Table)
	}
}
func (n *Option) children(visit func(Node))    { visit(n.Value) }
func (n *Insert) children(visit func(Node))    { visit(n.Query) }
func (a *Alias) children(func(Node))           {}
func (n *TableName) children(func(Node))       {}
func (n *TablePath) children(func(Node))       {}
func (n *TableFunc) children(visit func(Node)) { each(n.Args, visit) }
func (n *TableQuery) children(visit func(Node)) {
	visit(n.Query)
}
func (n *Sample) children(visit func(Node))       { visit(n.Table) }
func (n *ParenTable) children(visit func(Node))   { visit(n.Table) }
func (n *ParenQuery) children(visit func(Node))   { visit(n.Query) }
func (n *Values) children(visit func(Node))       { each(n.Rows, visit) }
func (n *With) children(visit func(Node))         { each(n.Tables, visit) }
func (n *CTE) children(visit func(Node))          { visit(n.Query) }
func (n *SelectItem) children(visit func(Node))   { visit(n.X) }
func (n *GroupBy) children(visit func(Node))      { each(n.Items, visit) }
func (n *GroupingSets) children(visit func(Node)) { each(n.Items, visit) }
func (n *NamedWindow) children(visit func(Node))  { visit(n.Spec) }
func (n *WatermarkDef) children(visit func(Node)) { visit(n.X) }
func (n *ColumnDef) children(visit func(Node))    { maybe(n.As, visit) }
func (n *OrderItem) children(visit func(Node))    { maybe(n.X, visit) }

func (n *Binary) children(visit func(Node)) {
	visit(n.L)
	visit(n.R)
}

func (n *IsDistinct) children(visit func(Node)) {
	visit(n.L)
	visit(n.R)
}

func (n *Between) children(visit func(Node)) {
	visit(n.X)
	visit(n.Low)
	visit(n.High)
}

func (n *In) children(visit func(Node)) {
	visit(n.X)
	each(n.List, visit)
	if n.Query != nil {
		visit(n.Query)
	}
}

func (n *Quantified) children(visit func(Node)) {
	visit(n.X)
	maybe(n.Array, visit)
	if n.Query != nil {
		visit(n.Query)
	}
}

func (n *Like) children(visit func(Node)) {
	visit(n.X)
	maybe(n.Pattern, visit)
	each(n.Patterns, visit)
	maybe(n.Escape, visit)
}

func (n *Case) children(visit func(Node)) {
	maybe(n.Operand, visit)
	each(n.Whens, visit)
	maybe(n.Else, visit)
}

func (n *When) children(visit func(Node)) {
	visit(n.Cond)
	visit(n.Then)
}

func (n *AtTimeZone) children(visit func(Node)) {
	visit(n.X)
	visit(n.Zone)
}

func (n *Index) children(visit func(Node)) {
	visit(n.X)
	visit(n.I)
}

func (n *Slice) children(visit func(Node)) {
	visit(n.X)
	maybe(n.Low, visit)
	maybe(n.High, visit)
}

func (n *ArrayQuery) children(visit func(Node)) { visit(n.Query) }

func (n *Map) children(visit func(Node)) {
	for i := range n.Keys {
		visit(n.Keys[i])
		visit(n.Values[i])
	}
}

func (n *Call) children(visit func(Node)) {
	each(n.Args, visit)
	each(n.OrderBy, visit)
	each(n.WithinGroup, visit)
	maybe(n.Filter, visit)
	if n.Over != nil {
		visit(n.Over)
	}
}

func (n *Over) children(visit func(Node)) {
	if n.Spec != nil {
		visit(n.Spec)
	}
}

func (n *WindowSpec) children(visit func(Node)) {
	each(n.Partition, visit)
	each(n.OrderBy, visit)
	if n.Frame != nil {
		visit(n.Frame)
	}
}

func (n *Frame) children(visit func(Node)) {
	maybe(n.Low.Offset, visit)
	maybe(n.High.Offset, visit)
}

func (n *Query) children(visit func(Node)) {
	if n.With != nil {
		visit(n.With)
	}
	visit(n.Body)
	each(n.OrderBy, visit)
	maybe(n.Limit, visit)
	maybe(n.Offset, visit)
}

func (n *Select) children(visit func(Node)) {
	each(n.On, visit)
	each(n.Items, visit)
	each(n.From, visit)
	maybe(n.Where, visit)
	if n.GroupBy != nil {
		visit(n.GroupBy)
	}
	maybe(n.Having, visit)
	each(n.Windows, visit)
	maybe(n.Qualify, visit)
}

func (n *SetOp) children(visit func(Node)) {
	visit(n.L)
	visit(n.R)
}

func (n *Join) children(visit func(Node)) {
	visit(n.L)
	visit(n.R)
	maybe(n.On, visit)
}

func (n *LateralView) children(visit func(Node)) {
	visit(n.L)
	visit(n.Func)
}

func (n *Create) children(visit func(Node)) {
	each(n.Columns, visit)
	if n.Watermark != nil {
		visit(n.Watermark)
	}
	each(n.Options, visit)
	if n.Query != nil {
		visit(n.Query)
	}
}

func (n *Describe) children(visit func(Node)) {
	if n.Query != nil {
		visit(n.Query)
	} else {
		visit(n.Table)
	}
}

func (n *TableArg) children(visit func(Node)) {
	visit(n.Table)
	each(n.Partition, visit)
}
