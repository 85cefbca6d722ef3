package diff

import (
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// Options say what counts as different.
type Options struct {
	Ordered bool // rows are compared in order; otherwise as a set in which rows repeat
	ULP     int  // floats may differ by so many units in the last place
}

// Row is one row as canonical text, with its floats, which may be compared loosely.
type Row struct {
	Text   string
	From   string // what it was read from
	cells  []string
	floats []float64 // of the cells that are REAL or DOUBLE; others 0
	loose  []uint8   // bits of such a cell, else 0
}

// Width is the number of its columns. Compare takes rows of one width.
func (r Row) Width() int { return len(r.cells) }

// Rows are the rows of batches, read from something of that name.
func Rows(batches []arrow.RecordBatch, from string) []Row {
	var rows []Row
	for _, b := range batches {
		for i := range int(b.NumRows()) {
			rows = append(rows, newRow(b, i, from))
		}
	}
	return rows
}

func newRow(b arrow.RecordBatch, i int, from string) Row {
	n := int(b.NumCols())
	r := Row{From: from, cells: make([]string, n), floats: make([]float64, n), loose: make([]uint8, n)}
	for c, column := range b.Columns() {
		r.cells[c] = string(columnar.AppendCanonical(nil, column, i, nil))
		switch v := columnar.Value(column, i).(type) {
		case float64:
			r.floats[c], r.loose[c] = v, 64
		case float32:
			r.floats[c], r.loose[c] = float64(v), 32
		}
	}
	r.Text = strings.Join(r.cells, "  ")
	return r
}

// Compare calls visit with each row of want that got lacks (extra is false) and each row
// of got that want lacks, until visit returns false. Unless o.Ordered it sorts both.
func Compare(want, got []Row, o Options, visit func(r Row, extra bool) bool) {
	if !o.Ordered {
		slices.SortFunc(want, compareRows)
		slices.SortFunc(got, compareRows)
	}
	i, j := 0, 0
	for goOn := true; goOn && (i < len(want) || j < len(got)); {
		switch {
		case i < len(want) && j < len(got) && equalRows(want[i], got[j], o.ULP):
			i++
			j++
		case j == len(got) || i < len(want) && !o.Ordered && compareRows(want[i], got[j]) < 0:
			goOn = visit(want[i], false)
			i++
		case i == len(want) || !o.Ordered:
			goOn = visit(got[j], true)
			j++
		default:
			goOn = visit(want[i], false) && visit(got[j], true)
			i++
			j++
		}
	}
}

// compareRows orders rows by their exact cells first, so that rows whose floats differ a
// little still meet.
func compareRows(a, b Row) int {
	for i := range a.cells {
		switch {
		case a.loose[i] != b.loose[i]: // one is NULL: always on the same side
			if b.loose[i] != 0 {
				return -1
			}
			return 1
		case a.loose[i] == 0:
			if c := strings.Compare(a.cells[i], b.cells[i]); c != 0 {
				return c
			}
		}
	}
	return slices.Compare(a.floats, b.floats)
}

func equalRows(a, b Row, ulp int) bool {
	for i := range a.cells {
		if a.cells[i] == b.cells[i] {
			continue
		}
		if ulp == 0 || a.loose[i] == 0 || a.loose[i] != b.loose[i] || !near(a.floats[i], b.floats[i], a.loose[i], ulp) {
			return false
		}
	}
	return true
}

// near says whether a and b, floats of so many bits, are at most ulp representable ones
// apart.
func near(a, b float64, bits uint8, ulp int) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	order := order64
	if bits == 32 {
		order = order32
	}
	d := order(a) - order(b)
	return d >= int64(-ulp) && d <= int64(ulp)
}

// order64 numbers the doubles in their order.
func order64(v float64) int64 {
	n := int64(math.Float64bits(v))
	if n < 0 {
		n = math.MinInt64 - n
	}
	return n
}

// order32 numbers the floats of 32 bits in their order.
func order32(v float64) int64 {
	n := int64(int32(math.Float32bits(float32(v))))
	if n < 0 {
		n = math.MinInt32 - n
	}
	return n
}
