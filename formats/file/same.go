package file

import (
	"maps"
	"reflect"

	"github.com/tidemill/tidemill/logical/connector"
)

var _ connector.TableComparer = (*Table)(nil)

// SameTable implements connector.TableComparer: the same options, in the same filesystem,
// that were found to mean the same columns.
func (t *Table) SameTable(other connector.Table) bool {
	u, ok := other.(*Table)
	if !ok {
		return false
	}
	a, b := t.o, u.o
	return a == b || sameValue(a.env.FS, b.env.FS) && a.env.Location == b.env.Location && a.layout.declared == b.layout.declared &&
		maps.Equal(a.env.Options, b.env.Options) && maps.Equal(a.env.Pinned, b.env.Pinned) && maps.Equal(a.pinned, b.pinned) &&
		a.layout.schema.Equal(b.layout.schema)
}

// SameTable implements connector.TableComparer: the files were chosen for it alone.
func (t *fixedTable) SameTable(other connector.Table) bool { return other == connector.Table(t) }

// sameValue is a == b, false for what cannot be compared.
func sameValue(a, b any) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}
