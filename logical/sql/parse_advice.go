package sql

// refuseTop explains SELECT TOP n and SELECT TOP (n), where the word is no name.
func (p *parser) refuseTop() {
	if !p.isWord("TOP") {
		return
	}
	n, after := p.ahead(1), p.ahead(2)
	alone := true
	if n.isSymbol("(") && p.ahead(3).isSymbol(")") {
		n, after = p.ahead(2), p.ahead(4)
		alone = after.kind == tokenQuoted || after.kind == tokenWord && !isReserved(after.text) ||
			after.isSymbol("*") && p.ahead(5).isWord("FROM")
	}
	if n.kind == tokenNumber && alone {
		p.failWith("TOP is not supported", "LIMIT "+n.text+" stands at the end of the query, behind ORDER BY")
	}
}

// foreignTails are the words that end a query, or a table, in other engines, with the word
// that follows each of them, and what to write here.
var foreignTails = map[string]struct {
	next []string
	hint string
}{
	"EMIT":       {[]string{"CHANGES", "FINAL"}, "output_mode = 'update' of the sink writes every change, 'append' what is final"},
	"DISTRIBUTE": {[]string{"BY"}, "leave it out: rows are spread over the threads by themselves; ORDER BY orders them"},
	"CLUSTER":    {[]string{"BY"}, "leave it out: rows are spread over the threads by themselves; ORDER BY orders them"},
	"SORT":       {[]string{"BY"}, "ORDER BY orders all rows"},
	"FOR":        {[]string{"SYSTEM_TIME", "SYSTEM_VERSION", "TIMESTAMP", "VERSION"}, asOfHint},
}

const asOfHint = "tables are files as they are now; ASOF JOIN finds the last row of a table before a time"

// atForeignTail tells whether such words stand here; alone the first is an alias.
func (p *parser) atForeignTail() bool {
	f, ok := foreignTails[p.tok().text]
	return ok && p.tok().kind == tokenWord && p.nextWord(f.next...)
}

// refuseForeignTail explains them.
func (p *parser) refuseForeignTail() {
	if p.err == nil && p.atForeignTail() {
		t := p.tok()
		p.failWith(t.text+" "+p.ahead(1).text+" is not supported", foreignTails[t.text].hint)
	}
}

// atVersion tells whether [TIMESTAMP | VERSION] AS OF and a value stand here; AS of alone is
// an alias.
func (p *parser) atVersion() bool {
	n := 0
	if p.isWord("TIMESTAMP", "VERSION") {
		n = 1
	}
	if !p.ahead(n).isWord("AS") || !p.ahead(n+1).isWord("OF") {
		return false
	}
	value := p.ahead(n + 2)
	return n == 1 || value.kind == tokenString || value.kind == tokenNumber || value.isWord("TIMESTAMP", "DATE", "SYSTEM")
}

// lockHints are what SQL Server puts between parentheses behind a table.
var lockHints = []string{"NOLOCK", "READUNCOMMITTED", "READCOMMITTED", "READPAST", "ROWLOCK", "PAGLOCK", "TABLOCK", "TABLOCKX", "UPDLOCK",
	"XLOCK", "HOLDLOCK", "NOWAIT", "INDEX", "FORCESEEK"}

// atTypedLiteral tells whether ARRAY<…>[ or STRUCT<…>( stands here, and not a comparison: a
// type begins with a word, and < stands close.
func (p *parser) atTypedLiteral(open string) bool {
	if p.ahead(1).span.From != p.tok().span.To || p.ahead(2).kind != tokenWord {
		return false
	}
	for n := 1; ; n++ {
		t := p.ahead(n)
		switch {
		case t.isSymbol(">") || t.isSymbol(">>"):
			if p.ahead(n + 1).isSymbol(open) {
				return true
			}
		case t.isSymbol("<"), t.isSymbol(","), t.isSymbol("("), t.isSymbol(")"), t.isSymbol(":"), t.kind == tokenNumber:
		case t.kind == tokenWord && !isReserved(t.text):
		default:
			return false
		}
	}
}

// refuseTypedLiteral explains it.
func (p *parser) refuseTypedLiteral() {
	switch {
	case !p.ahead(1).isSymbol("<"):
	case p.isWord("ARRAY") && p.atTypedLiteral("["):
		p.failWith("ARRAY<…>[…] is not supported", "[1, 2], or CAST([1, 2] AS ARRAY<BIGINT>)")
	case p.isWord("STRUCT") && p.atTypedLiteral("("):
		p.failWith("STRUCT<…>(…) is not supported", "{'a': 1, 'b': 'x'}, or CAST({'a': 1} AS STRUCT<a BIGINT>)")
	}
}

// refuseMatch explains the regular expressions of PostgreSQL: ~, !~, ~* and !~*.
func (p *parser) refuseMatch() bool {
	switch {
	case p.isSymbol("~"):
		p.failWith(`the operator "~" is not supported`, "x RLIKE 'pattern'; (?i) at its beginning takes capitals and small letters as one")
	case p.isSymbol("!") && p.ahead(1).isSymbol("~"):
		p.failWith(`the operator "!~" is not supported`, "x NOT RLIKE 'pattern'; (?i) at its beginning takes capitals and small letters as one")
	default:
		return false
	}
	return true
}

// refuseColon explains :x, where an operand is due; false if it is something else.
func (p *parser) refuseColon(t token) bool {
	switch next := p.ahead(1); {
	case next.kind == tokenWord && next.span.From == t.span.To:
		p.failParameter()
	default:
		return false
	}
	return true
}

func (p *parser) failParameter() {
	p.failWith("parameters are not supported", "write the value into the text")
}

// lambdaHint says what to do without functions of functions.
const lambdaHint = "SELECT … FROM unnest(a) computes and filters elements, ARRAY(SELECT … FROM unnest(a) AS t(x)) makes an array of them again; list_sum, list_max and so on aggregate"

// refuseLambda explains DuckDB's lambda x: ….
func (p *parser) refuseLambda() {
	n := 1
	for p.ahead(n).kind == tokenWord && p.ahead(n+1).isSymbol(",") {
		n += 2
	}
	if p.ahead(n).kind == tokenWord && p.ahead(n+1).isSymbol(":") {
		p.failWith("functions of functions, lambda x: …, are not supported", lambdaHint)
	}
}

// refuseComprehension explains [x + 1 for x in a].
func (p *parser) refuseComprehension() {
	if p.isWord("FOR") {
		p.failWith("list comprehensions are not supported", lambdaHint)
	}
}

// refuseForeignStatement explains statements that are not about tables.
func (p *parser) refuseForeignStatement() {
	switch t := p.tok(); {
	case t.isWord("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT"), t.isWord("START") && p.nextWord("TRANSACTION"):
		p.failWith(t.text+" is not a statement here: there are no transactions", "leave it out: what INSERT INTO writes is there whole, or not at all")
	case t.isWord("COPY"):
		p.failWith("COPY is not a statement here", "CREATE SINK s WITH (path = …, format = …); INSERT INTO s SELECT …")
	}
}

// foreignTypes are types of other engines, and the types to take for them.
var foreignTypes = map[string]string{
	"int64": "BIGINT", "int32": "INTEGER", "int16": "SMALLINT", "uint8": "SMALLINT", "uint16": "INTEGER", "uint32": "BIGINT",
	"uint64": "DECIMAL(20, 0)", "number": "DECIMAL(18, 2), or DOUBLE", "bignumeric": "DECIMAL(38, 9)", "money": "DECIMAL(18, 2)",
	"float32": "REAL", "float64": "DOUBLE", "nvarchar": "VARCHAR", "nchar": "VARCHAR", "varchar2": "VARCHAR", "clob": "VARCHAR", "json": "VARCHAR",
	"jsonb": "VARCHAR", "uuid": "VARCHAR", "datetime2": "TIMESTAMP", "smalldatetime": "TIMESTAMP", "bit": "BOOLEAN",
	"serial": "BIGINT", "mediumint": "INTEGER",
}
