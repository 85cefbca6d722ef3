package file

import (
	"context"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// Table is the files of a path as they are when it is read. An output directory of a
// query is read by its manifest: whole batches.
type Table struct {
	o  *opened
	mu sync.Mutex // guards the lister
}

var (
	_ connector.Table      = (*Table)(nil)
	_ connector.FileTable  = (*Table)(nil)
	_ connector.RowCounter = (*Table)(nil)
	_ connector.Describer  = (*Table)(nil)
	_ connector.Filed      = (*Table)(nil)
)

// OpenTable opens a bounded table. A path that matches nothing is a
// *connector.NoFilesError.
func OpenTable(ctx context.Context, formats Formats, env connector.Env) (*Table, error) {
	o, err := open(ctx, formats, env, true)
	if err != nil {
		return nil, err
	}
	t := &Table{o: o}
	files, isOutput, err := t.list(ctx)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 && !isOutput {
		return nil, o.noFiles()
	}
	return t, o.addColumns(ctx, files)
}

// Schema implements connector.Table.
func (t *Table) Schema() *arrow.Schema { return t.o.layout.schema }

// HasMetadata implements connector.Filed.
func (t *Table) HasMetadata() bool { return true }

// Description implements connector.Describer.
func (t *Table) Description() string { return "FileTable[" + t.o.options.Path + "]" }

// Units implements connector.Table.
func (t *Table) Units(ctx context.Context, req connector.ScanRequest) ([]connector.Unit, error) {
	files, isOutput, err := t.list(ctx)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 && !isOutput {
		return nil, t.o.noFiles()
	}
	if err := t.settle(files); err != nil {
		return nil, err
	}
	return t.o.layout.tableUnits(ctx, files, req)
}

// list lists the files in order; isOutput says that a manifest did.
func (t *Table) list(ctx context.Context) (files []foundFile, isOutput bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	files, isOutput, err = t.o.published()
	if err != nil || isOutput {
		return files, isOutput, err
	}
	files, err = t.o.lister.all(ctx)
	return files, false, err
}

// Files implements connector.FileSet; start and end do not matter.
func (t *Table) Files(ctx context.Context, _, _ connector.Offset) ([]connector.FileIdentity, error) {
	files, _, err := t.list(ctx)
	return identities(files), err
}

func identities(files []foundFile) []connector.FileIdentity {
	out := make([]connector.FileIdentity, len(files))
	for i, f := range files {
		out[i] = f.FileIdentity
	}
	return out
}

// At implements connector.FileTable.
func (t *Table) At(files []connector.FileIdentity) connector.Table {
	return &fixedTable{Table: t, files: files}
}

// fixedTable reads the files it was given instead of listing.
type fixedTable struct {
	*Table
	files []connector.FileIdentity
}

// Units implements connector.Table.
func (t *fixedTable) Units(ctx context.Context, req connector.ScanRequest) ([]connector.Unit, error) {
	root, err := t.o.lister.find()
	if err != nil {
		return nil, err
	}
	files := make([]foundFile, len(t.files))
	for i, id := range t.files {
		files[i] = foundFile{below(root.dir, id.Path), id}
	}
	if err := t.settle(files); err != nil {
		return nil, err
	}
	return t.o.layout.tableUnits(ctx, files, req)
}

// Files implements connector.FileSet.
func (t *fixedTable) Files(context.Context, connector.Offset, connector.Offset) ([]connector.FileIdentity, error) {
	return t.files, nil
}

// below is a path without the directory it begins with.
func below(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
}

// Changed implements connector.FileSet.
func (t *Table) Changed(ctx context.Context, logged []connector.FileIdentity) ([]connector.FileIdentity, error) {
	return changedFiles(ctx, t.o.env, logged, readsLines(t.o.layout.format))
}

// RowCount implements connector.RowCounter.
func (t *Table) RowCount() (int64, bool) {
	if t.o.spec.RowCount == nil {
		return 0, false
	}
	files, _, err := t.list(context.Background())
	if err != nil {
		return 0, false
	}
	return t.o.rowCount(identities(files))
}

// RowCount implements connector.RowCounter, for the files it was given.
func (t *fixedTable) RowCount() (int64, bool) { return t.o.rowCount(t.files) }

func (o *opened) rowCount(files []connector.FileIdentity) (int64, bool) {
	if o.spec.RowCount == nil {
		return 0, false
	}
	rows := int64(0)
	for _, id := range files {
		n, err := o.spec.RowCount(codec.File{FS: o.env.FS, FileIdentity: id})
		if err != nil {
			return 0, false
		}
		rows += n
	}
	return rows, true
}

// FileSchema is the schema one file has by itself.
type FileSchema struct {
	Path   string
	Schema *arrow.Schema // nil if it says nothing about columns; NULL is the type of what has no value
	Err    error         // it cannot be read
}

// Schemas infers the schema of each file apart, for showing differences. A column of its
// folders has the type it has in the table: one value says little about it.
func (t *Table) Schemas(ctx context.Context) ([]FileSchema, error) {
	files, _, err := t.list(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]FileSchema, len(files))
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i].Path = f.Path
		if t.o.recorded != nil && t.o.spec.RowCount == nil {
			continue // what text looks like says nothing against what is recorded
		}
		inferred, ok, err := t.o.infer(ctx, []foundFile{f})
		switch {
		case err != nil:
			out[i].Err = err
		case ok:
			seen := inferred.Seen
			if seen == nil {
				seen = inferred.Schema
			}
			out[i].Schema, _ = withFolders(seen, t.folderFields(f))
		}
	}
	return out, nil
}

// folderFields are the columns that the folders of one file make.
func (t *Table) folderFields(f foundFile) []arrow.Field {
	if !t.o.options.Hive {
		return nil
	}
	fields := inferFolders([]foundFile{f})
	for i := range fields {
		if at, _ := columnar.Lookup(t.Schema(), fields[i].Name); at >= 0 {
			fields[i].Type = t.Schema().Field(at).Type
		}
	}
	return fields
}
