package physical

import (
	"fmt"
	"strings"
	"time"
)

// Explain prints a plan as an indented tree, one operator a line, two spaces a level.
func Explain(p Plan) string { return ExplainAnalyze(p, nil) }

// ExplainAnalyze is Explain with what m has counted behind each operator: rows and
// batches given, time (children included, summed over goroutines), peak memory, and what
// statistics left out of a scan.
func ExplainAnalyze(p Plan, m *Metrics) string {
	var sb strings.Builder
	explain(&sb, p, m, 0)
	return sb.String()
}

func explain(sb *strings.Builder, p Plan, m *Metrics, depth int) {
	sb.WriteString(strings.Repeat("  ", depth))
	sb.WriteString(strings.ReplaceAll(p.String(), "\x00", "$"))
	if o := m.Of(p); o != nil {
		fmt.Fprintf(sb, " (rows=%d batches=%d time=%s", o.Rows.Load(), o.Batches.Load(), roundTime(o.Nanos.Load()))
		if peak := o.Peak.Load(); peak > 0 {
			fmt.Fprintf(sb, " memory=%s", bytesText(peak))
		}
		if s := o.scan; s != nil {
			pruned(sb, "files_pruned", s.FilesPruned.Load())
			pruned(sb, "row_groups_pruned", s.GroupsPruned.Load())
			pruned(sb, "pages_pruned", s.PagesPruned.Load())
		}
		sb.WriteString(")")
	}
	sb.WriteByte('\n')
	for _, c := range p.Children() {
		explain(sb, c, m, depth+1)
	}
}

// pruned says how much of a scan's statistics left no need to read.
func pruned(sb *strings.Builder, what string, n int64) {
	if n > 0 {
		fmt.Fprintf(sb, " %s=%d", what, n)
	}
}

func roundTime(nanos int64) time.Duration {
	d := time.Duration(nanos)
	switch {
	case d > time.Second:
		return d.Round(time.Millisecond)
	case d > time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f /= 1024
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}
