// Package queries holds the benchmark queries, each with the tables it reads. It is
// not part of the public API.
//
// A file begins with comments: what it is, `-- data:` the data set, and `-- check:`
// aggregates over the result, which make an engine compute all of it and show whether
// two engines agree. {data} stands for the file. Where the engines' dialects differ, a
// second query stands after a line `-- duckdb:`. `-- nan:` names the entry of
// docs/sql/differences.md that lets DuckDB give NaN where we give null.
package queries

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed *.sql tpch/*.sql
var files embed.FS

// Query is one benchmark query.
type Query struct {
	Name, Title string
	Data        string // h2o or events
	Check       string
	NaN         string // the documented difference, if any
	SQL, DuckDB string
}

// All are the queries in order of their names.
func All() ([]Query, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var all []Query
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		q, err := parse(strings.TrimSuffix(path.Base(e.Name()), ".sql"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}

func parse(name, text string) (Query, error) {
	q := Query{Name: name}
	into := &q.SQL
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(line, "-- ")
		comment = strings.TrimSpace(comment)
		switch {
		case !ok:
			*into += line
		case strings.HasPrefix(comment, "data:"):
			q.Data = strings.TrimSpace(comment[len("data:"):])
		case strings.HasPrefix(comment, "check:"):
			q.Check = strings.TrimSpace(comment[len("check:"):])
		case strings.HasPrefix(comment, "nan:"):
			q.NaN = strings.TrimSpace(comment[len("nan:"):])
		case comment == "duckdb:":
			into = &q.DuckDB
		case q.Title == "":
			q.Title = comment
		}
	}
	if q.DuckDB == "" {
		q.DuckDB = q.SQL
	}
	if q.Title == "" || q.Data == "" || q.Check == "" || !strings.Contains(q.SQL, "{data}") {
		return Query{}, fmt.Errorf("query %s: a title, data:, check: and {data} are needed", name)
	}
	return q, nil
}

// Text is the query over a file, within the aggregates of its check.
func (q Query) Text(duckdb bool, file string) string {
	sql := q.SQL
	if duckdb {
		sql = q.DuckDB
	}
	sql = strings.ReplaceAll(strings.TrimSpace(sql), "{data}", "'"+strings.ReplaceAll(file, "'", "''")+"'")
	return "SELECT " + q.Check + " FROM (" + sql + ") AS result"
}

// TPCH are the 22 queries of the decision support benchmark with the parameters of its
// validation, over tables named as in gen.TPCHTables. Of a Query they have Name, Title
// and SQL. What the specification leaves open in an order is settled by a key, so that
// results can be compared row by row.
func TPCH() ([]Query, error) {
	entries, err := files.ReadDir("tpch")
	if err != nil {
		return nil, err
	}
	var all []Query
	for _, e := range entries {
		text, err := files.ReadFile("tpch/" + e.Name())
		if err != nil {
			return nil, err
		}
		title, sql, ok := strings.Cut(string(text), "\n")
		if !ok || !strings.HasPrefix(title, "-- ") {
			return nil, fmt.Errorf("query %s: a title is needed", e.Name())
		}
		all = append(all, Query{Name: strings.TrimSuffix(e.Name(), ".sql"), Title: title[len("-- "):], SQL: strings.TrimSpace(sql)})
	}
	return all, nil
}
