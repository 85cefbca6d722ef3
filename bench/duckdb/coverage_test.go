package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar/function"
)

// corpusTexts are the statements of the corpus as Tidemill is given them, one after
// another, and how many there are.
func corpusTexts(t *testing.T) (text string, statements int) {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list, err := parseCorpus(filepath.Base(file), string(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			all.WriteString(strings.ToLower(s.sql) + "\n")
		}
		statements += len(list)
	}
	return all.String(), statements
}

// TestEveryFunctionIsCompared: no function of the registry without a statement of the
// corpus that calls it by its name or by another of its names.
func TestEveryFunctionIsCompared(t *testing.T) {
	t.Parallel()
	text, statements := corpusTexts(t)
	if statements < 1500 {
		t.Errorf("the corpus has %d statements", statements)
	}
	apart := map[string]string{
		"random": "other numbers each time", "randn": "other numbers each time", "uniform": "other numbers each time", "uuid": "other texts each time",
		"second_with_fraction": "extract(second FROM x)", "like": "an operator", "ilike": "an operator", "not": "an operator", "similar to": "an operator",
	}
	r := function.Builtins()
	word := regexp.MustCompile(`^[a-z]`)
	for _, key := range r.Names() {
		var names []string
		if f, ok := r.Scalar(key); ok && f.Name == key {
			names = append([]string{f.Name}, f.Aliases...)
		} else if f, ok := r.Aggregate(key); ok && f.Name == key {
			names = append([]string{f.Name}, f.Aliases...)
		}
		if apart[key] != "" || len(names) == 0 || !word.MatchString(key) {
			continue
		}
		if !slices.ContainsFunc(names, func(n string) bool {
			return regexp.MustCompile(`\b` + regexp.QuoteMeta(n) + `\(`).MatchString(text)
		}) {
			t.Errorf("no statement calls %s", strings.Join(names, ", "))
		}
	}
}
