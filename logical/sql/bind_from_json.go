package sql

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

const schemaHint = "from_json(text, 'a INT, b ARRAY<VARCHAR>')"

// fromJSON binds from_json(text, schema [, mode]): the registry's function takes a null of
// the type that the schema describes.
func (e *env) fromJSON(n *ast.Call) (expr.Expr, error) {
	if err := e.plainCall(n, "from_json"); err != nil {
		return nil, err
	}
	if len(n.Args) != 2 && len(n.Args) != 3 {
		return nil, e.b.hinted(n, schemaHint, "from_json takes a text and a schema")
	}
	text, err := e.bind(n.Args[0].Value)
	if err != nil {
		return nil, err
	}
	dt, err := e.jsonSchema(n.Args[1].Value)
	if err != nil {
		return nil, err
	}
	args := []expr.Expr{text, expr.CastTo(nullLiteral(), dt)}
	if len(n.Args) == 3 {
		mode, err := e.bind(modeOption(n.Args[2].Value))
		if err != nil {
			return nil, err
		}
		args = append(args, mode)
	}
	return e.call(n, "from_json", args...)
}

// modeOption is the mode in map('mode', 'FAILFAST'), Spark's way to give it, or x.
func modeOption(x ast.Expr) ast.Expr {
	var parts []ast.Expr
	switch m := ast.Unparen(x).(type) {
	case *ast.Call:
		if lower(m.Name.Text) == "map" {
			for _, a := range m.Args {
				parts = append(parts, a.Value)
			}
		}
	case *ast.Map:
		for i := range m.Keys {
			parts = append(parts, m.Keys[i], m.Values[i])
		}
	}
	if len(parts) == 2 {
		if key, ok := parts[0].(*ast.String); ok && strings.EqualFold(key.Value, "mode") {
			return parts[1]
		}
	}
	return x
}

// jsonSchema is the type that a schema describes: a text, or schema_of_json of one.
func (e *env) jsonSchema(x ast.Expr) (arrow.DataType, error) {
	switch n := ast.Unparen(x).(type) {
	case *ast.String:
		return e.b.schemaText(n, n.Value)
	case *ast.Call:
		if lower(n.Name.Text) != "schema_of_json" || len(n.Args) != 1 {
			break
		}
		if sample, ok := ast.Unparen(n.Args[0].Value).(*ast.String); ok {
			dt, err := function.SchemaOfJSON([]byte(sample.Value))
			return dt, e.b.wrap(n, err)
		}
	}
	return nil, e.b.hinted(x, schemaHint, "the schema of from_json is a text, written out")
}

// schemaText reads 'a INT, b ARRAY<INT>', the fields of a struct, or the name of a type.
func (b *binder) schemaText(n ast.Node, text string) (arrow.DataType, error) {
	inner := newBinder(b.ctx, b.p, text)
	t, err := parseSchema(text)
	if err == nil {
		var dt arrow.DataType
		if dt, err = inner.dataType(t); err == nil {
			if !columnar.IsNested(dt) {
				return nil, b.hinted(n, schemaHint, "a schema of JSON is a list of fields with types, or an ARRAY, MAP or STRUCT, not %s", columnar.TypeName(dt))
			}
			return dt, nil
		}
	}
	message, hint := err.Error(), schemaHint
	var placed *Error
	if errors.As(err, &placed) {
		message = fmt.Sprintf("column %d: %s", placed.Column, placed.Message)
		if placed.Hint != "" {
			hint = placed.Hint
		}
	}
	return nil, b.hinted(n, hint, "the schema, %s", message)
}

// parseSchema reads one type, or a list of fields as the struct of them.
func parseSchema(text string) (*ast.Type, error) {
	tokens, lexErr := lex(text)
	if lexErr != nil {
		return nil, lexErr
	}
	p := newParser(text, tokens)
	if t := p.typeName(); p.err == nil && p.tok().kind == tokenEnd {
		return t, nil
	}
	p = newParser(text, tokens)
	t := &ast.Type{Name: "struct"}
	p.fieldList(t)
	if p.err == nil && p.tok().kind != tokenEnd {
		p.fail(", or the end of the schema")
	}
	if p.err != nil {
		return nil, p.err
	}
	return t, nil
}
