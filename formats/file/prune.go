package file

import (
	"context"

	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

var (
	_ connector.Pruner     = (*Table)(nil)
	_ connector.RowCounter = (*prunedTable)(nil)
)

// prunedTable is a table of which some folders need not be read. Reading lists the files
// anew and leaves out the same folders, by the filters that come with the request; what
// changes is that the others' rows are not counted when a plan is chosen.
type prunedTable struct {
	*Table
	left []foundFile
}

// Prune implements connector.Pruner: by the columns that folders make, if filters look at
// any. A table that cannot be listed is returned whole, and says so when it is read.
func (t *Table) Prune(filters []expr.Expr) (table connector.Table, left, total int) {
	if !t.o.options.Hive || len(filters) == 0 {
		return t, 0, 0
	}
	files, _, err := t.list(context.Background())
	if err != nil {
		return t, 0, 0
	}
	return t.without(files, filters)
}

// Prune implements connector.Pruner, for filters found later.
func (t *prunedTable) Prune(filters []expr.Expr) (table connector.Table, left, total int) {
	return t.without(t.left, filters)
}

func (t *Table) without(files []foundFile, filters []expr.Expr) (table connector.Table, left, total int) {
	metadata, _ := beyond(&connector.ScanRequest{Filters: filters}, t.o.layout.schema.NumFields())
	var rest []foundFile
	for _, f := range files {
		c := t.o.layout.columns(f)
		if metadata {
			c.addMetadata(f)
		}
		if c.misfit != nil || !c.pruned(filters) {
			rest = append(rest, f)
		}
	}
	return &prunedTable{t, rest}, len(rest), len(files)
}

// RowCount implements connector.RowCounter.
func (t *prunedTable) RowCount() (int64, bool) { return t.o.rowCount(identities(t.left)) }

// SameTable implements connector.TableComparer: what is read of it is settled by the scan.
func (t *prunedTable) SameTable(other connector.Table) bool {
	u, ok := other.(*prunedTable)
	return ok && t.Table.SameTable(u.Table)
}
