package parquet

import (
	"io"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// rowRange is a range of rows of a row group.
type rowRange struct{ from, to int64 }

// leastGap is the fewest rows that are worth leaving out between others.
const leastGap = 1024

// pagePruner finds the rows of a row group that may pass the filters, by what the page
// index says of the pages of their columns. Which rows those are does not depend on the
// columns that are read.
type pagePruner struct {
	meta    *fileMeta
	schema  *arrow.Schema // what the filters' positions refer to
	filters []expr.Expr
	columns []int // that the filters refer to
	nodes   []*node
	zone    *time.Location
}

// newPagePruner is nil where there is nothing to go by.
func newPagePruner(m *fileMeta, schema *arrow.Schema, req connector.ScanRequest, zone *time.Location) *pagePruner {
	p := &pagePruner{meta: m, schema: schema, filters: req.Filters, zone: zone}
	for _, f := range req.Filters {
		expr.Walk(f, func(x expr.Expr) bool {
			if r, ok := x.(*expr.Ref); ok && !slices.Contains(p.columns, r.Index) && r.Index >= 0 && r.Index < schema.NumFields() {
				p.columns = append(p.columns, r.Index)
			}
			return true
		})
	}
	if len(p.columns) == 0 {
		return nil
	}
	find := m.finder(schema)
	for _, c := range p.columns {
		p.nodes = append(p.nodes, find(c))
	}
	return p
}

// fewGroups is how many row groups are all looked at in detail.
const fewGroups = 6

// isUseful says whether it is worth looking at the page index of each of the row groups:
// of many, the first, the last and the one in the middle tell.
func (p *pagePruner) isUseful(file codec.File, groups []int) bool {
	n := len(groups)
	if n <= fewGroups {
		return n > 0
	}
	h, err := file.FS.Open(file.Path)
	if err != nil {
		return false // reading it will say so
	}
	defer h.Close()
	return slices.ContainsFunc([]int{groups[0], groups[n/2], groups[n-1]}, func(g int) bool {
		ranges, _ := p.ranges(h, g)
		return !isWhole(ranges, p.meta.footer.RowGroups[g].NumRows)
	})
}

// isWhole says whether ranges are all of some rows.
func isWhole(ranges []rowRange, rows int64) bool {
	return len(ranges) == 1 && ranges[0] == rowRange{0, rows}
}

// pageBounds is what is known of one column, page by page.
type pageBounds struct {
	pages  []pageLocation
	bounds []eval.Bounds
}

// at is what is known of the column around a row.
func (b *pageBounds) at(row int64) eval.Bounds { return b.bounds[pageOf(b.pages, row)] }

// ranges are the rows of a row group that may pass, and how many pages of the columns that
// the filters refer to have none of them.
func (p *pagePruner) ranges(f io.ReaderAt, group int) (kept []rowRange, pruned int) {
	rows := p.meta.footer.RowGroups[group].NumRows
	columns, cuts := map[int]*pageBounds{}, []int64{0, rows}
	indexed := false
	for i, c := range p.columns {
		b, ok := p.column(f, group, c, p.nodes[i])
		columns[c], indexed = b, indexed || ok
		for _, page := range b.pages {
			cuts = append(cuts, page.row)
		}
	}
	if !indexed {
		return []rowRange{{0, rows}}, 0
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i, from := range cuts[:len(cuts)-1] {
		may := eval.CanAllBeTrue(p.filters, func(column int) eval.Bounds {
			if b := columns[column]; b != nil {
				return b.at(from)
			}
			return eval.Bounds{}
		})
		if may {
			kept = addRange(kept, rowRange{from, cuts[i+1]})
		}
	}
	for _, b := range columns {
		pruned += b.outside(kept)
	}
	return kept, pruned
}

// outside counts the pages, if there are several, without a row in ranges.
func (b *pageBounds) outside(ranges []rowRange) int {
	n := 0
	for _, page := range b.pages {
		inside := slices.ContainsFunc(ranges, func(r rowRange) bool { return page.row < r.to && r.from < page.end })
		if len(b.pages) > 1 && !inside {
			n++
		}
	}
	return n
}

// addRange appends a range, or makes it a part of the last one where little is between.
func addRange(ranges []rowRange, r rowRange) []rowRange {
	if n := len(ranges); n > 0 && r.from-ranges[n-1].to < leastGap {
		ranges[n-1].to = r.to
		return ranges
	}
	return append(ranges, r)
}

// column is what is known of one column; paged says that the page index tells.
func (p *pagePruner) column(f io.ReaderAt, group, column int, n *node) (b *pageBounds, paged bool) {
	rows, field := p.meta.footer.RowGroups[group].NumRows, p.schema.Field(column)
	whole := &pageBounds{[]pageLocation{{end: rows}}, []eval.Bounds{p.meta.bounds(group, n, field, p.zone)}}
	if n == nil || n.kind != leafNode || n.err != nil || n.rep > 0 {
		return whole, false
	}
	pages := p.meta.pageLocations(f, group, n)
	if len(pages) < 2 {
		return whole, false
	}
	index := p.meta.columnIndex(f, group, n, len(pages))
	if index == nil {
		return whole, false
	}
	b = &pageBounds{pages: pages}
	for i, page := range pages {
		stats := pageStatistics(n, index, i, page.end-page.row)
		b.bounds = append(b.bounds, p.meta.boundsBy(&stats, page.end-page.row, n, field, p.zone))
	}
	return b, true
}
