package queries

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed nexmark/*.sql
var nexmark embed.FS

// Stream is a continuous query over the streams person, auction and bid of
// gen.NEXMarkTables and the table side (key, value).
type Stream struct {
	Name, Title string
	Mode        string // append or update
	PartitionBy string
	SQL         string
	// Refused is why a query cannot be expressed; then there is no SQL.
	Refused string
}

// Reads says whether the query reads a stream or table.
func (s *Stream) Reads(name string) bool {
	for _, before := range []string{"FROM ", "JOIN ", "("} {
		for _, after := range []string{" ", "\n", ","} {
			if strings.Contains(s.SQL+"\n", before+name+after) {
				return true
			}
		}
	}
	return false
}

// NEXMark are the queries q0 to q22 of the online auction, in order. They are said in
// append mode where that can be, else in update mode: the most of what is asked without
// taking back rows that were given out.
func NEXMark() ([]Stream, error) {
	entries, err := nexmark.ReadDir("nexmark")
	if err != nil {
		return nil, err
	}
	var all []Stream
	for _, e := range entries {
		text, err := nexmark.ReadFile("nexmark/" + e.Name())
		if err != nil {
			return nil, err
		}
		s, err := parseStream(strings.TrimSuffix(e.Name(), ".sql"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// parseStream reads a title and then comments `mode:`, `partition_by:` or
// `not expressible:` before the query.
func parseStream(name, text string) (Stream, error) {
	s := Stream{Name: name}
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		key, value, _ := strings.Cut(comment, ": ")
		switch {
		case !ok:
			s.SQL += line
		case s.Title == "":
			s.Title = comment
		case key == "mode":
			s.Mode = value
		case key == "partition_by":
			s.PartitionBy = value
		case key == "not expressible":
			s.Refused = value
		default:
			return s, fmt.Errorf("query %s: comment %q is not known", name, comment)
		}
	}
	s.SQL = strings.TrimSpace(s.SQL)
	if s.Title == "" || (s.SQL == "") != (s.Refused != "") || (s.SQL != "") != (s.Mode != "") {
		return s, fmt.Errorf("query %s: a title is needed, and a mode with a query or why there is none", name)
	}
	return s, nil
}
