package logical

import "strings"

// Format prints a plan as an indented tree, one node a line, two spaces a level.
func Format(n Node) string {
	var sb strings.Builder
	format(&sb, n, 0)
	return sb.String()
}

func format(sb *strings.Builder, n Node, depth int) {
	sb.WriteString(strings.Repeat("  ", depth))
	sb.WriteString(n.String())
	sb.WriteByte('\n')
	for _, c := range n.Children() {
		format(sb, c, depth+1)
	}
}
