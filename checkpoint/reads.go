package checkpoint

import (
	"fmt"
	"slices"
	"strings"
)

// ReadsForm is the way in which a Reads of this engine is written, FormerReads that of the
// engine before, which is still written for checkpoints that have it (IsFormer). Another
// form says nothing about whether the query changed.
const (
	ReadsForm   = 2
	FormerReads = 1
)

// Reads is what a stateful operator takes from below: its state is made of it.
type Reads struct {
	Form int `json:"form"` // ReadsForm or FormerReads
	// Columns say what the operator's columns are computed from.
	Columns []ReadColumn `json:"columns"`
	// Rows say which rows there are: conditions, joins, scans, a line each.
	Rows []string `json:"rows"`
}

// ReadColumn is a column an operator reads: its name there, and what it is in terms of
// the sources.
type ReadColumn struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// compareReads says how what an operator reads changed, "" if it did not, or only in its
// filters, or it cannot be told: checkpoints of earlier engines do not have it. Which
// columns there are is part of the operator's fingerprint; here those of one name are
// compared.
func compareReads(was, is *Reads) string {
	if !was.comparable(is) {
		return ""
	}
	for _, w := range was.Columns {
		i := slices.IndexFunc(is.Columns, func(c ReadColumn) bool { return c.Name == w.Name })
		if i >= 0 && is.Columns[i].Text != w.Text {
			return fmt.Sprintf("%s was read as %s and is now read as %s", w.Name, w.Text, is.Columns[i].Text)
		}
	}
	if slices.Equal(was.unfiltered(), is.unfiltered()) {
		return ""
	}
	return compareRows(was.Rows, is.Rows)
}

// otherFilters says that an operator goes on with its state though it reads other rows,
// which is allowed as it is in Spark: its state holds what the filters of before let pass.
func otherFilters(was Operator, all []Operator) string {
	i := slices.IndexFunc(all, func(o Operator) bool { return o.Name == was.Name })
	if i < 0 || !was.Reads.comparable(all[i].Reads) || slices.Equal(was.Reads.Rows, all[i].Reads.Rows) {
		return ""
	}
	return fmt.Sprintf("operator %s: %s; what it keeps of the batches before stays as it is", was.Name, compareRows(was.Reads.Rows, all[i].Reads.Rows))
}

// comparable says whether both are told, in the same form.
func (r *Reads) comparable(other *Reads) bool {
	return r != nil && other != nil && r.Form == other.Form
}

// FilterLine is how a line of Rows begins that is a condition.
const FilterLine = "Filter "

// unfiltered are the rows without the conditions they meet.
func (r *Reads) unfiltered() []string {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), FilterLine)
	})
}

func compareRows(was, is []string) string {
	gone, more := lessLines(was, is), lessLines(is, was)
	switch {
	case gone == "" && more == "":
		return fmt.Sprintf("its rows were read with [%s] and are now read with [%s]", lineList(was), lineList(is))
	case gone == "":
		return fmt.Sprintf("its rows were read without [%s] and are now read with it", more)
	case more == "":
		return fmt.Sprintf("its rows were read with [%s] and are now read without it", gone)
	}
	return fmt.Sprintf("its rows were read with [%s] and are now read with [%s]", gone, more)
}

// lessLines are the lines of a, without their indentation, that b has not.
func lessLines(a, b []string) string {
	left := map[string]int{}
	for _, line := range b {
		left[strings.TrimSpace(line)]++
	}
	var out []string
	for _, line := range a {
		line = strings.TrimSpace(line)
		if left[line]--; left[line] < 0 {
			out = append(out, line)
		}
	}
	return lineList(out)
}

func lineList(lines []string) string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimSpace(line)
	}
	return strings.Join(out, "; ")
}
