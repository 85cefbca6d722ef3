package sql

import (
	"strconv"

	"github.com/tidemill/tidemill/logical/expr"
)

const structName = expr.StructName

func itoa(n int) string { return strconv.Itoa(n) }

// structOf is a struct of values under the given names.
func structOf(names []string, args []expr.Expr) expr.Expr { return expr.NewStruct(names, args) }

// fieldOf is field i of a struct; of a struct just made, the value it was made of.
func fieldOf(x expr.Expr, i int) expr.Expr { return expr.NewField(x, i) }
