package parquet

import "github.com/tidemill/tidemill/logical/connector"

// A row group is read by one worker. A table of one or two would keep the others waiting,
// so these are divided by rows, where the offset index tells which pages to begin with.
const (
	dividedGroups = 3        // of a file at most: more keep all workers busy
	partRows      = 64 << 10 // a page of numbers of eight bytes, as this package writes them
	partBytes     = 1 << 20  // of the columns read, of the row group: less is not worth it
)

// divide lists the parts, of size rows or more, of a unit of one row group, or the unit
// alone.
func (u *unit) divide(size int64) []connector.Unit {
	whole := []connector.Unit{u}
	if len(u.groups) != 1 || !u.plan.isIndexed(u.groups[0]) {
		return whole
	}
	rows := u.plan.meta.footer.RowGroups[u.groups[0]].NumRows
	n := rows / size
	if n < 2 {
		return whole
	}
	parts := make([]connector.Unit, n)
	for i := range n {
		part := *u
		part.part = rowRange{i * size, (i + 1) * size}
		if i == n-1 {
			part.part.to = rows
		}
		parts[i] = &part
	}
	return parts
}

// divided are units, or parts of them where there are few.
func divided(units []connector.Unit, groups int) []connector.Unit {
	if groups > dividedGroups {
		return units
	}
	var parts []connector.Unit
	for _, u := range units {
		if u.Bytes() < partBytes {
			parts = append(parts, u)
			continue
		}
		parts = append(parts, u.(*unit).divide(partRows)...)
	}
	return parts
}

// isIndexed says whether the pages of all columns can be found by their rows.
func (p *scanPlan) isIndexed(group int) bool {
	for _, c := range p.columns {
		if c.node == nil {
			continue
		}
		if c.node.kind != leafNode || c.node.rep > 0 || p.meta.footer.RowGroups[group].Columns[c.node.leaf].OffsetIndexLength <= 0 {
			return false
		}
	}
	return true
}

// within are the rows of ranges that are in a part; a part without rows is all.
func (part rowRange) within(ranges []rowRange) []rowRange {
	if part.to == 0 {
		return ranges
	}
	var kept []rowRange
	for _, r := range ranges {
		if r = (rowRange{max(r.from, part.from), min(r.to, part.to)}); r.from < r.to {
			kept = append(kept, r)
		}
	}
	return kept
}
