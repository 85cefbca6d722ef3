package main

import (
	"fmt"
	"regexp"
	"strings"
)

// statement is one statement of the corpus.
type statement struct {
	file    string
	line    int
	sql     string
	duckdb  string // where DuckDB spells it otherwise
	differs string // the entry of differences.md that says why the engines differ
	missing string // the entry of differences.md for what Tidemill cannot do yet
	fails   bool   // both engines refuse it
	// tolerance is that of doubles; 0 is nine digits.
	tolerance float64
}

func (s statement) String() string { return fmt.Sprintf("%s:%d", s.file, s.line) }

var orderBy = regexp.MustCompile(`(?is)\border\s+by\b[^()]*$`)

// ordered says whether the rows come in an order the statement asks for.
func (s statement) ordered() bool { return orderBy.MatchString(s.sql) }

// parseCorpus splits a file into statements, each ending with a semicolon at the end
// of a line. Lines before a statement may say `-- duckdb: SQL`, the same in DuckDB's
// words; `-- differs: NAME`, the results differ on purpose; `-- missing: NAME`, Tidemill
// has no such feature yet; `-- fails`, both engines refuse it.
func parseCorpus(file, text string) ([]statement, error) {
	var all []statement
	current := statement{file: file}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, "--"); ok {
			comment = strings.TrimSpace(comment)
			if sql, ok := strings.CutPrefix(comment, "duckdb:"); ok {
				current.duckdb = strings.TrimSuffix(strings.TrimSpace(sql), ";")
			}
			if name, ok := strings.CutPrefix(comment, "differs:"); ok {
				current.differs = strings.TrimSpace(name)
			}
			if name, ok := strings.CutPrefix(comment, "missing:"); ok {
				current.missing = strings.TrimSpace(name)
			}
			current.fails = current.fails || comment == "fails"
			continue
		}
		if line == "" {
			continue
		}
		if current.sql == "" {
			current.line = number
		}
		current.sql += line + "\n"
		if sql, ok := strings.CutSuffix(strings.TrimSpace(current.sql), ";"); ok {
			current.sql = sql
			if current.duckdb == "" {
				current.duckdb = sql
			}
			all = append(all, current)
			current = statement{file: file}
		}
	}
	if current.sql != "" {
		return nil, fmt.Errorf("%s: the last statement does not end with a semicolon", file)
	}
	return all, nil
}
