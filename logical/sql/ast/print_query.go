package ast

func (n *Query) print(p *printer) {
	if n.With != nil {
		p.put(n.With, " ")
	}
	p.put(n.Body)
	orderBy(p, n.OrderBy, " ")
	if n.Limit != nil {
		p.put(" LIMIT ", n.Limit)
	}
	if n.Offset != nil {
		p.put(" OFFSET ", n.Offset)
	}
}

func (n *With) print(p *printer) {
	p.put("WITH ")
	p.opt(n.Recursive, "RECURSIVE ")
	list(p, n.Tables)
}

func (n *CTE) print(p *printer) {
	p.put(n.Name)
	if len(n.Columns) > 0 {
		p.put(" ")
		parens(p, n.Columns)
	}
	p.put(" AS (", n.Query, ")")
}

func (n *Select) print(p *printer) {
	p.put("SELECT ")
	switch n.Distinct {
	case Distinct:
		p.put("DISTINCT ")
	case DistinctOn:
		p.put("DISTINCT ON ")
		parens(p, n.On)
		p.put(" ")
	}
	list(p, n.Items)
	if len(n.From) > 0 {
		p.put(" FROM ")
		list(p, n.From)
	}
	clause(p, " WHERE ", n.Where)
	p.opt(n.WithinWatermark, " WITHIN WATERMARK")
	if n.GroupBy != nil {
		p.put(" GROUP BY ")
		p.opt(n.GroupBy.All, "ALL")
		list(p, n.GroupBy.Items)
	}
	clause(p, " HAVING ", n.Having)
	if len(n.Windows) > 0 {
		p.put(" WINDOW ")
		list(p, n.Windows)
	}
	clause(p, " QUALIFY ", n.Qualify)
}

func clause(p *printer, word string, x Expr) {
	if x != nil {
		p.put(word, x)
	}
}

func (n *SelectItem) print(p *printer) {
	p.put(n.X)
	if n.Alias != nil {
		p.put(" AS ", n.Alias)
	}
}

func (n *GroupBy) print(p *printer) {
	p.opt(n.All, "ALL")
	list(p, n.Items)
}

func (n *NamedWindow) print(p *printer) { p.put(n.Name, " AS (", n.Spec, ")") }

func (n *SetOp) print(p *printer) {
	p.put(n.L, " ", n.Op)
	p.opt(n.All, " ALL")
	p.opt(n.ByName, " BY NAME")
	p.put(" ", n.R)
}

func (n *Values) print(p *printer) {
	p.put("VALUES ")
	list(p, n.Rows)
}

func (n *ParenQuery) print(p *printer) { p.put("(", n.Query, ")") }

func (a *Alias) print(p *printer) {
	p.put(" AS ", a.Name)
	if len(a.Columns) > 0 {
		parens(p, a.Columns)
	}
}

func alias(p *printer, a *Alias) {
	if a != nil {
		a.print(p)
	}
}

func (n *TableName) print(p *printer) {
	dotted(p, n.Parts)
	alias(p, n.Alias)
}

func (n *TablePath) print(p *printer) {
	p.put(n.Path)
	alias(p, n.Alias)
}

func (n *TableFunc) print(p *printer) {
	p.opt(n.Lateral, "LATERAL ")
	p.put(n.Name)
	parens(p, n.Args)
	p.opt(n.Ordinality, " WITH ORDINALITY")
	alias(p, n.Alias)
}

func (n *TableQuery) print(p *printer) {
	p.opt(n.Lateral, "LATERAL ")
	p.put("(", n.Query, ")")
	alias(p, n.Alias)
}

func (n *Sample) print(p *printer) {
	p.put(n.Table, " TABLESAMPLE (", n.Amount)
	p.opt(n.Rows, " ROWS)")
	p.opt(!n.Rows, " PERCENT)")
	alias(p, n.Alias)
}

func (n *ParenTable) print(p *printer) {
	p.put("(", n.Table, ")")
	alias(p, n.Alias)
}

func (n *Join) print(p *printer) {
	p.put(n.L, " ")
	p.opt(n.Natural, "NATURAL ")
	p.opt(n.Asof, "ASOF ")
	p.put([...]string{"", "LEFT ", "RIGHT ", "FULL ", "CROSS ", "SEMI ", "ANTI "}[n.Kind])
	p.put("JOIN ", n.R)
	clause(p, " ON ", n.On)
	if len(n.Using) > 0 {
		p.put(" USING ")
		parens(p, n.Using)
	}
}

func (n *LateralView) print(p *printer) {
	p.put(n.L, " LATERAL VIEW ")
	p.opt(n.Outer, "OUTER ")
	p.put(n.Func)
	if n.Table != nil {
		p.put(" ", n.Table)
	}
	if len(n.Columns) > 0 {
		p.put(" AS ")
		list(p, n.Columns)
	}
}

func (n *QueryStmt) print(p *printer) { p.put(n.Query) }

func (n *Create) print(p *printer) {
	p.put("CREATE ")
	p.opt(n.OrReplace, "OR REPLACE ")
	p.put(n.Kind.String(), " ")
	p.opt(n.IfNotExists, "IF NOT EXISTS ")
	p.put(n.Name)
	if len(n.ViewColumns) > 0 {
		p.put(" ")
		parens(p, n.ViewColumns)
	}
	if len(n.Columns) > 0 || n.Watermark != nil {
		p.put(" (")
		list(p, n.Columns)
		if n.Watermark != nil {
			p.opt(len(n.Columns) > 0, ", ")
			p.put(n.Watermark)
		}
		p.put(")")
	}
	if len(n.Options) > 0 {
		p.put(" WITH ")
		parens(p, n.Options)
	}
	if n.Query != nil {
		p.put(" AS ", n.Query)
	}
}

func (n *ColumnDef) print(p *printer) {
	p.put(n.Name)
	if n.Type != nil {
		p.put(" ", n.Type)
	}
	clause(p, " AS ", n.As)
}

func (n *WatermarkDef) print(p *printer) { p.put("WATERMARK FOR ", n.Column, " AS ", n.X) }

func (n *Option) print(p *printer) { p.put(n.Key, " = ", n.Value) }

func (n *Insert) print(p *printer) {
	p.put("INSERT INTO ", n.Sink)
	if len(n.Columns) > 0 {
		p.put(" ")
		parens(p, n.Columns)
	}
	p.put(" ", n.Query)
}

func (n *Set) print(p *printer) {
	p.put("SET ")
	dotted(p, n.Name)
	p.put(" = ", n.Value)
}

func (n *Explain) print(p *printer) {
	p.put("EXPLAIN ")
	p.opt(n.Analyze, "ANALYZE ")
	p.put(n.Stmt)
}

func (n *Describe) print(p *printer) {
	p.put("DESCRIBE ")
	if n.Query != nil {
		p.put(n.Query)
		return
	}
	p.put(n.Table)
}

func (n *Show) print(p *printer) {
	p.put("SHOW ", n.What)
	switch {
	case n.Table != nil:
		p.put(" FROM ", n.Table)
	case n.Like != nil:
		p.put(" LIKE ", n.Like)
	case n.Name != nil:
		p.put(n.Name)
	}
}
