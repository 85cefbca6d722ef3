package json

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/formats/codec/cells"
)

// standsInQuotes says whether JSON writes values of dt in quotes. As keys all do.
func standsInQuotes(dt arrow.DataType) bool {
	return !columnar.IsNumeric(dt) && dt.ID() != arrow.BOOL
}

// checkKeys makes the maps of the batch from row from on null whose keys are not those of
// a map: one does not fit, which its column has reported, or two are the same value.
func (n *node) checkKeys(from int, report func(n *node, row int32)) {
	keys, f := n.children[0].column, &n.filled
	text := keys.Type().ID() == arrow.STRING // compared as they were scanned
	if text && keys.Nulls() == 0 {
		return
	}
	view := keys.View()
	defer view.Release()
	for i := range n.rows {
		row := from + i
		if !f.valid[row] {
			continue
		}
		start, end := f.span(row)
		fits := true
		for k := start; k < end; k++ {
			fits = fits && view.IsValid(k)
		}
		if fits && (text || kernel.CheckKeys(view, start, end) == nil) {
			continue
		}
		f.valid[row], f.loose = false, true
		f.nulls++
		if fits {
			n.rows[i] = rowTwice
			report(n, int32(i))
		}
	}
}

// span is where the elements of a row of the batch are.
func (f *frame) span(row int) (from, to int) {
	if row > 0 {
		from = int(f.ends[row-1])
	}
	return from, int(f.ends[row])
}

// finishMap is finishData of a map.
func (n *node) finishMap() arrow.ArrayData {
	f := &n.filled
	fields := []arrow.Array{n.children[0].finish(), n.children[1].finish()}
	entries := kernel.WrapStruct(n.dt.(*arrow.MapType).Elem(), fields[0].Len(), 0, nil, fields)
	offsets := f.offsets()
	if f.loose {
		ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
		kept, keptEnds := kernel.KeepEntries(f.mem, entries, ends, func(i int) bool { return f.valid[i] })
		entries.Release()
		offsets.Release()
		entries, offsets = kept, keptEnds
	}
	maps := kernel.WrapList(n.dt, len(f.valid), f.nulls, f.bitmap(), offsets, entries)
	defer maps.Release()
	maps.Data().Retain()
	f.reset()
	return maps.Data()
}

// distinct says whether the cells, which fit, are keys of one map.
func (n *node) distinct(buf []byte, keys []cells.Cell) bool {
	n.probe.Append(buf, keys)
	view := n.probe.View()
	defer view.Release()
	defer n.probe.Truncate(0)
	return kernel.CheckKeys(view, 0, len(keys)) == nil
}
