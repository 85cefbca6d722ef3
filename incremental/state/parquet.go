package state

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/parquet"
	"github.com/tidemill/tidemill/internal/vfs"
)

// Metadata of state files.
const (
	metaTable = "tidemill.table"
	metaKind  = "tidemill.kind"
	metaFrom  = "tidemill.from"
	metaTo    = "tidemill.to"
	metaKey   = "tidemill.key"            // JSON list of the key columns
	metaOrder = "tidemill.order"          // name of the order column, or nothing
	metaBound = "tidemill.eviction_bound" // changes: rows at or below it are gone
)

// layout is the columns of a table's files and what they are.
type layout struct {
	table  string
	fields []arrow.Field // without __row and __deleted
	keys   int           // the first so many are the key
	multi  bool
	order  string
}

func (l *layout) metadata(f checkpoint.StateFile) (map[string]string, error) {
	names := make([]string, l.keys)
	for i := range names {
		names[i] = l.fields[i].Name
	}
	key, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	m := map[string]string{
		metaTable: l.table, metaKind: string(f.Kind), metaKey: string(key), metaOrder: l.order,
		metaFrom: strconv.FormatInt(f.From, 10), metaTo: strconv.FormatInt(f.To, 10),
	}
	if f.EvictionBound != nil {
		m[metaBound] = strconv.FormatInt(*f.EvictionBound, 10)
	}
	return m, nil
}

// schema is the columns of a file.
func (l *layout) schema(kind checkpoint.FileKind) *arrow.Schema {
	fields := slices.Clone(l.fields)
	if l.multi {
		fields = append(fields, columnar.Field(rowColumnName, columnar.Int64))
	}
	if kind == checkpoint.Change {
		fields = append(fields, columnar.Field(deletedColumnName, columnar.Boolean))
	}
	// A table without any column (the only row of a global dedup, say) needs one.
	if len(fields) == 0 {
		fields = append(fields, columnar.Field(deletedColumnName, columnar.Boolean))
	}
	return arrow.NewSchema(fields, nil)
}

// orderIndex is the position of the order column, -1 if there is none.
func (l *layout) orderIndex() int {
	if l.order == "" {
		return -1
	}
	return slices.IndexFunc(l.fields, func(f arrow.Field) bool { return f.Name == l.order })
}

// sortTypes are the columns that files are sorted by: the key, then the row number.
func (l *layout) sortTypes() []arrow.DataType {
	var types []arrow.DataType
	for _, f := range l.fields[:l.keys] {
		types = append(types, f.Type)
	}
	if l.multi {
		types = append(types, columnar.Int64)
	}
	return types
}

// writeFile writes a state file from what produce gives, and returns it with its name,
// size, hash and rows.
func writeFile(files Files, operator string, l *layout, f checkpoint.StateFile, produce func(write func(arrow.RecordBatch) error) error) (checkpoint.StateFile, error) {
	meta, err := l.metadata(f)
	if err != nil {
		return f, err
	}
	rows := int64(0)
	f, err = files.WriteState(operator, f, func(w io.Writer) error {
		pw, err := parquet.NewFileWriter(w, l.schema(f.Kind), parquet.WriterConfig{
			Metadata: meta, ExactIntervals: true, Hasty: f.Kind == checkpoint.Change,
		})
		if err != nil {
			return err
		}
		err = produce(func(b arrow.RecordBatch) error {
			rows += b.NumRows()
			return pw.Write(b)
		})
		if err != nil {
			return err
		}
		return pw.Close()
	})
	f.Rows = rows
	return f, err
}

// oneFile is a filesystem that knows one open file: what parquet.OpenFile is given
// after the file's hash was checked.
type oneFile struct {
	vfs.FS
	file vfs.File
}

func (o oneFile) Open(string) (vfs.File, error) { return o.file, nil }

// stateReader reads one state file.
type stateReader struct {
	columnar.Reader
	file   *parquet.File
	layout layout
	kind   checkpoint.FileKind
	bound  *int64
}

// openFile opens a state file, after checking it against f, for reading with all its
// columns.
func openFile(mem memory.Allocator, opener FileOpener, operator string, f checkpoint.StateFile) (_ *stateReader, err error) {
	h, err := opener.OpenState(operator, f)
	if err != nil {
		return nil, err
	}
	p, err := parquet.OpenFile(oneFile{file: h}, f.Name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	r := &stateReader{file: p, kind: f.Kind, bound: f.EvictionBound}
	if err := r.layout.read(p, f); err != nil {
		return nil, err
	}
	r.Reader, err = p.Reader(mem, nil)
	return r, err
}

// read takes the layout from a file's schema and metadata.
func (l *layout) read(p *parquet.File, f checkpoint.StateFile) error {
	meta := p.Metadata()
	var names []string
	if err := json.Unmarshal([]byte(meta[metaKey]), &names); err != nil || meta[metaTable] != f.Table {
		return fmt.Errorf("%w: %s is no file of state table %s", checkpoint.ErrCorrupt, f.Name, f.Table)
	}
	l.table, l.keys, l.order = f.Table, len(names), meta[metaOrder]
	for i, field := range p.Schema().Fields() {
		switch {
		case field.Name == rowColumnName:
			l.multi = true
		case field.Name == deletedColumnName:
		default:
			if i < len(names) && field.Name != names[i] {
				return fmt.Errorf("%w: %s: key column %s is not where its metadata says", checkpoint.ErrCorrupt, f.Name, names[i])
			}
			field.Nullable = true
			l.fields = append(l.fields, field)
		}
	}
	if len(l.fields) < l.keys || l.order != "" && l.orderIndex() < 0 {
		return fmt.Errorf("%w: %s: columns its metadata names are missing", checkpoint.ErrCorrupt, f.Name)
	}
	return nil
}

// same says whether two files' columns are the same: names and types.
func (l *layout) same(o *layout) bool {
	return l.keys == o.keys && l.multi == o.multi && l.order == o.order &&
		columnar.EqualTypes(arrow.NewSchema(l.fields, nil), arrow.NewSchema(o.fields, nil)) &&
		slices.EqualFunc(l.fields, o.fields, func(a, b arrow.Field) bool { return a.Name == b.Name })
}

func (r *stateReader) Close() error {
	err := r.Reader.Close()
	if e := r.file.Close(); err == nil {
		err = e
	}
	return err
}
