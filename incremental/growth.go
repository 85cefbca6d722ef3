package incremental

import "fmt"

// growthBatches is how many batches in a row state may grow without eviction before a
// warning stands in progress.
const growthBatches = 100

// growthWatch notices state that only ever grows.
type growthWatch struct {
	rows    map[string]int64
	batches map[string]int
}

func newGrowthWatch() *growthWatch {
	return &growthWatch{rows: map[string]int64{}, batches: map[string]int{}}
}

// observe looks at an operator after a batch and returns a warning once the state has
// grown for growthBatches batches without one in which rows were removed.
func (g *growthWatch) observe(op StateOperatorProgress) (warning string) {
	grew := op.NumRowsTotal > g.rows[op.Name]
	g.rows[op.Name] = op.NumRowsTotal
	switch {
	case op.NumRowsRemoved > 0:
		g.batches[op.Name] = 0
	case grew:
		g.batches[op.Name]++
	}
	if g.batches[op.Name] < growthBatches {
		return ""
	}
	remedy := "a watermark, or keys that recur, would bound it"
	if op.OperatorName == "symmetricHashJoin" {
		remedy = "watermarks on both streams and a range such as l.ts BETWEEN r.ts - INTERVAL '1 hour' AND r.ts would bound it"
	}
	return fmt.Sprintf("the state of %s has grown for %d batches without eviction (%d rows, %d bytes); %s",
		op.Name, g.batches[op.Name], op.NumRowsTotal, op.MemoryUsedBytes, remedy)
}
