package parquet

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/physical/eval"
)

// matching are the row groups that have rows and for which the statistics do not
// rule out that all filters are true. schema is what the filters' positions refer to.
func (m *fileMeta) matching(schema *arrow.Schema, req connector.ScanRequest, zone *time.Location) []int {
	var groups []int
	var find func(int) *node
	if len(req.Filters) > 0 {
		find = m.finder(schema)
	}
	for g := range m.footer.RowGroups {
		if m.footer.RowGroups[g].NumRows == 0 {
			continue
		}
		known := map[int]eval.Bounds{}
		bounds := func(column int) eval.Bounds {
			b, ok := known[column]
			if !ok && column >= 0 && column < schema.NumFields() {
				b = m.bounds(g, find(column), schema.Field(column), zone)
				known[column] = b
			}
			return b
		}
		if len(req.Filters) > 0 && !eval.CanAllBeTrue(req.Filters, bounds) {
			if req.Stats != nil {
				req.Stats.GroupsPruned.Add(1)
			}
			continue
		}
		groups = append(groups, g)
	}
	return groups
}

// finder finds the nodes that the columns of a source are read from; nil where the file
// has none.
func (m *fileMeta) finder(schema *arrow.Schema) func(column int) *node {
	names := make([]string, len(m.root.children))
	for i, c := range m.root.children {
		names[i] = c.name
	}
	fields := codec.NewFields(names)
	return func(column int) *node {
		at, err := fields.Of(m.path, schema, schema.Field(column).Name)
		if err != nil || at < 0 {
			return nil
		}
		return m.root.children[at]
	}
}

// bounds is what the statistics of a row group say about a wanted column, which is read
// from n.
func (m *fileMeta) bounds(group int, n *node, f arrow.Field, zone *time.Location) eval.Bounds {
	rows := m.footer.RowGroups[group].NumRows
	if n == nil {
		return eval.Bounds{Nulls: rows, Rows: rows}
	}
	if n.kind != leafNode || n.err != nil || n.rep > 0 {
		return eval.Bounds{}
	}
	return m.boundsBy(&m.footer.RowGroups[group].Columns[n.leaf].MetaData.Statistics, rows, n, f, zone)
}

// boundsBy is what the statistics of some rows say of a wanted column, which is read from
// the leaf n.
func (m *fileMeta) boundsBy(stats *format.Statistics, rows int64, n *node, f arrow.Field, zone *time.Location) eval.Bounds {
	var b eval.Bounds
	// A count of zero may also mean that the writer did not count.
	if c := stats.NullCount; c > 0 && c <= rows || n.def == 0 {
		b.Nulls, b.Rows = c, rows
		if n.def == 0 {
			b.Nulls = 0
		}
	}
	low, high := m.extremes(n, stats)
	if low == nil || high == nil || annotationOf(n.element).local && zone != nil && zone != time.UTC {
		// Wall clocks and instants are not in the same order everywhere.
		return b
	}
	b.Min, b.Max = statValue(n, f.Type, low), statValue(n, f.Type, high)
	return b
}

// extremes are the stored minimum and maximum of a column chunk, if their order is
// known to be that of the values.
func (m *fileMeta) extremes(n *node, stats *format.Statistics) (low, high []byte) {
	orders := m.footer.ColumnOrders
	defined := n.leaf < len(orders) && orders[n.leaf].Value != nil
	switch {
	case n.physical == format.Int96:
		return nil, nil
	case len(orders) > 0 && !defined:
		return nil, nil
	case stats.MinValue != nil && stats.MaxValue != nil && (defined || n.signed):
		return stats.MinValue, stats.MaxValue
	case n.signed:
		return stats.Min, stats.Max
	}
	return nil, nil
}

// statValue makes an array of one value of a stored statistic, nil if it cannot.
// Texts may be cut off, so they need not be valid.
func statValue(n *node, want arrow.DataType, stored []byte) arrow.Array {
	var err error
	defer recovered(&err)
	if n.physical == format.FixedLenByteArray && width(n.typ) == 0 && n.typ.ID() != arrow.BINARY {
		return nil // a UUID is text
	}
	if w := storedWidth(n); w > 0 && w != len(stored) {
		return nil
	}
	r, err := newLeafReader(memory.DefaultAllocator, n, want, nil, nil)
	if err != nil {
		return nil
	}
	r.vector.text = false
	r.vector.reset(1)
	defer r.vector.release()
	if r.stored > 0 {
		r.form, r.data = formFixed, stored
	} else {
		r.form, r.scratch, r.offsets = formDense, stored, []uint32{0, uint32(len(stored))}
	}
	if err := r.appendFull(1); err != nil {
		return nil
	}
	return r.take()
}
