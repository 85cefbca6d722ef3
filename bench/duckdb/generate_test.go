package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var (
	seedFlag    = flag.Uint64("seed", 1, "seed of the random queries")
	queriesFlag = flag.Int("queries", 300, "number of random queries")
)

// generator makes random queries over the tables of the corpus, in the dialect both
// engines share. It stays clear of what docs/sql/differences.md lists: no division by
// columns, no casts to integers, no arithmetic on TINYINT or on the extremes.
type generator struct{ r *rand.Rand }

func (g *generator) pick(list ...string) string { return list[g.r.IntN(len(list))] }

// number is a BIGINT or DECIMAL expression that stays small.
func (g *generator) number(depth int) string {
	if depth <= 0 {
		return g.pick("id", "k", "id", "dec", fmt.Sprint(g.r.IntN(50)), "1.25")
	}
	a, b := g.number(depth-1), g.number(depth-1)
	switch g.r.IntN(8) {
	case 0:
		return "(" + a + " + " + b + ")"
	case 1:
		return "(" + a + " - " + b + ")"
	case 2:
		return "(" + g.pick("id", "k") + " * " + fmt.Sprint(g.r.IntN(9)) + ")"
	case 3:
		return "abs(" + a + ")"
	case 4:
		return "coalesce(" + g.pick("k", "id") + ", " + fmt.Sprint(g.r.IntN(9)) + ")"
	case 5:
		return "CASE WHEN " + g.condition(depth-1) + " THEN " + g.pick("id", "k") + " ELSE " + fmt.Sprint(g.r.IntN(9)) + " END"
	case 6:
		return "length(" + g.text(depth-1) + ")"
	}
	return "(id % " + fmt.Sprint(2+g.r.IntN(6)) + ")"
}

func (g *generator) double(depth int) string {
	if depth <= 0 {
		return g.pick("d", "f", "2.5e0", "-1e0")
	}
	a := g.double(depth - 1)
	switch g.r.IntN(4) {
	case 0:
		return "(" + a + g.pick(" + ", " - ", " * ") + g.double(depth-1) + ")"
	case 1:
		return "abs(" + a + ")"
	case 2:
		return "(" + a + " / 4e0)"
	}
	return "CASE WHEN " + g.condition(depth-1) + " THEN " + a + " END"
}

func (g *generator) text(depth int) string {
	if depth <= 0 {
		return g.pick("s", "'abc'", "''", "'日本'")
	}
	a := g.text(depth - 1)
	switch g.r.IntN(6) {
	case 0:
		return "lower(" + a + ")"
	case 1:
		return "(" + a + " || " + g.text(depth-1) + ")"
	case 2:
		return fmt.Sprintf("substr(%s, %d, %d)", a, 1+g.r.IntN(3), g.r.IntN(5))
	case 3:
		return "replace(" + a + ", 'a', 'xy')"
	case 4:
		return "trim(" + a + ")"
	}
	return "coalesce(" + a + ", 'none')"
}

func (g *generator) condition(depth int) string {
	compare := g.pick("=", "<>", "<", "<=", ">", ">=")
	if depth > 0 {
		switch g.r.IntN(5) {
		case 0:
			return "(" + g.condition(depth-1) + " AND " + g.condition(depth-1) + ")"
		case 1:
			return "(" + g.condition(depth-1) + " OR " + g.condition(depth-1) + ")"
		case 2:
			return "NOT (" + g.condition(depth-1) + ")"
		}
	}
	switch g.r.IntN(10) {
	case 0:
		return g.number(depth-1) + " " + compare + " " + g.number(depth-1)
	case 1:
		return g.double(depth-1) + " " + compare + " " + g.double(depth-1)
	case 2:
		return g.text(depth-1) + " " + compare + " " + g.text(depth-1)
	case 3:
		return g.pick("k", "s", "d", "dec", "b", "day", "ts", "big") + g.pick(" IS NULL", " IS NOT NULL")
	case 4:
		return fmt.Sprintf("k IN (%d, %d, NULL)", g.r.IntN(5), g.r.IntN(5))
	case 5:
		return "s LIKE " + g.pick("'a%'", "'%e%'", "'_'", "'%日%'", "'%\\_%'")
	case 6:
		return fmt.Sprintf("id BETWEEN %d AND %d", g.r.IntN(30), 20+g.r.IntN(40))
	case 7:
		return "day " + compare + fmt.Sprintf(" DATE '%d-06-15'", 1960+g.r.IntN(60))
	case 8:
		return "ts " + compare + fmt.Sprintf(" TIMESTAMP '%d-06-15 12:00:00'", 1960+g.r.IntN(60))
	}
	return g.pick("b", "big > 0", "tiny < 0", "b IS NOT DISTINCT FROM NULL")
}

func (g *generator) aggregate() string {
	switch g.r.IntN(9) {
	case 0:
		return "count(*)"
	case 1:
		return "count(" + g.pick("k", "s", "d", "ts") + ")"
	case 2:
		return "sum(" + g.pick("id", "k", "dec", "tiny") + ")"
	case 3:
		return g.pick("min(", "max(") + g.pick("id", "s", "d", "dec", "day", "ts", "big", "f", "tiny") + ")"
	case 4:
		return "avg(" + g.pick("id", "k") + ")"
	case 5:
		return "count(DISTINCT " + g.pick("k", "s", "d", "b") + ")"
	case 6:
		return "sum(" + g.number(1) + ") FILTER (WHERE " + g.condition(1) + ")"
	case 7:
		return g.pick("bool_and", "bool_or") + "(b)"
	}
	return "sum(" + g.number(2) + ")"
}

func (g *generator) key() string {
	return g.pick("k", "s", "b", "d", "dec", "day", "id % 3", "k + 1", "lower(s)", "k IS NULL")
}

func (g *generator) expression() string {
	switch g.r.IntN(4) {
	case 0:
		return g.number(2)
	case 1:
		return g.double(2)
	case 2:
		return g.text(2)
	}
	return g.condition(2)
}

func (g *generator) where() string {
	if g.r.IntN(3) == 0 {
		return ""
	}
	return " WHERE " + g.condition(2)
}

// query makes one query.
func (g *generator) query() string {
	var items []string
	switch g.r.IntN(6) {
	case 0, 1:
		for range 1 + g.r.IntN(3) {
			items = append(items, g.expression())
		}
		return "SELECT id, " + strings.Join(items, ", ") + " FROM t" + g.where() + " ORDER BY id" + g.pick("", " DESC", " LIMIT 7", " LIMIT 9 OFFSET 4")
	case 2:
		for range 1 + g.r.IntN(3) {
			items = append(items, g.aggregate())
		}
		return "SELECT " + strings.Join(items, ", ") + " FROM t" + g.where()
	case 3:
		keys := []string{g.key()}
		if g.r.IntN(2) == 0 {
			keys = append(keys, g.key())
		}
		list := strings.Join(keys, ", ")
		having := g.pick("", "", " HAVING count(*) > 2", " HAVING min(id) < 20")
		return "SELECT " + list + ", " + g.aggregate() + ", " + g.aggregate() + " FROM t" + g.where() + " GROUP BY " + list + having
	case 4:
		return "SELECT t.id, u.name, u.weight FROM t " + g.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN") + " u ON t.k = u.k" +
			g.pick("", " AND u.weight > 3", " AND t.id > 20") + g.pick("", " WHERE t.id < 40", " WHERE u.name IS NOT NULL")
	}
	return "SELECT DISTINCT " + g.key() + ", " + g.key() + " FROM (SELECT * FROM t" + g.where() + ") AS q"
}

// TestGenerated compares the engines on random queries.
func TestGenerated(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	g := &generator{rand.New(rand.NewPCG(*seedFlag, 0))}
	failed := 0
	for i := range *queriesFlag {
		q := g.query()
		if d := e.difference(statement{sql: q, duckdb: q}); d != "" {
			t.Errorf("seed %d, query %d: %s\n%s", *seedFlag, i, d, q)
			if failed++; failed == 20 {
				t.Fatal("too many")
			}
		}
	}
}
