package file

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
	"github.com/tidemill/tidemill/physical/eval"
)

// settleTime is how long a file is given to be finished: one modified less long ago
// may still be in its writer's hands.
const settleTime = 2 * time.Second

// layout is the columns of a table or source, and where each comes from.
type layout struct {
	schema   *arrow.Schema
	declared bool
	// folders are the names of the columns that come from folder names. Of declared
	// columns each file's own folders decide, and folders is nil.
	folders   []string
	hive      bool
	evolution codec.Evolution
	corrupt   string // corrupt_column, "" if there is none
	rescued   string // the rescued column, "" if there is none
	// byName: see codec.Columns. byPlace are the columns of files of an output that do not
	// name them.
	byName  bool
	byPlace atomic.Pointer[[]placement]
	format  codec.Format
	env     *connector.Env
}

// fileColumns are the columns of one file.
type fileColumns struct {
	// values are the constants from folder names, and those of the file itself, by
	// position in the schema and behind it.
	values  map[int]arrow.Array
	content codec.Columns
	// position maps positions of the schema, and of the hidden columns behind it, to
	// positions of content; constant and rowNumber for others.
	position []int
	// misfit is what a folder's name says that no column takes; nil if there is none.
	misfit *connector.RecordError
	// rescued are the members that the rescued column has in each row for folders.
	rescued []byte
}

// Where a column comes from, if not from the content.
const (
	constant  = -1 - iota // the same for the whole file
	rowNumber             // counted
)

// columns finds where the columns of a file come from. A folder's value that its
// type cannot hold is null, and a misfit.
func (l *layout) columns(f foundFile) fileColumns {
	var found []folderValue
	if l.hive {
		found = folderValues(f.rel)
	}
	c := fileColumns{values: map[int]arrow.Array{}, position: make([]int, l.schema.NumFields(), l.schema.NumFields()+connector.MetadataFieldsLen)}
	var fields []arrow.Field
	c.content = codec.Columns{Declared: l.declared, Evolution: l.evolution, Rescued: l.rescued, ByName: l.byName, CorruptColumn: -1}
	order, placed := l.order(f)
	for n, i := range order {
		field := l.schema.Field(i)
		v, ok := l.folderValue(field.Name, found)
		if ok {
			c.values[i] = c.constant(l, f, field, v)
			c.position[i] = constant
			c.content.Elsewhere = append(c.content.Elsewhere, field.Name)
			continue
		}
		if l.corrupt != "" && strings.EqualFold(field.Name, l.corrupt) {
			c.content.CorruptColumn = len(fields)
		}
		if placed > 0 && n >= placed && field.Name != l.rescued {
			c.values[i] = columnar.NullConstant(heap, field.Type).Array()
			c.position[i] = constant
			continue
		}
		c.position[i] = len(fields)
		fields = append(fields, field)
	}
	c.content.Schema = arrow.NewSchema(fields, nil)
	c.rescueUnknown(l, found)
	if c.misfit == nil {
		c.misfit = l.unknownFolder(f, found)
	}
	return c
}

// places are the columns of a file that does not name them, nil if it may.
func (l *layout) places(f foundFile) []string {
	list := l.byPlace.Load()
	if list == nil || l.declared {
		return nil
	}
	return placed(*list, f.rel)
}

// order is the positions of the schema; of a file that does not name its columns those
// that it has, placed, come first.
func (l *layout) order(f foundFile) (order []int, placed int) {
	for _, name := range l.places(f) {
		if at, _ := columnar.Lookup(l.schema, name); at >= 0 {
			order = append(order, at)
		}
	}
	placed = len(order)
	for i := range l.schema.NumFields() {
		if !slices.Contains(order[:placed], i) {
			order = append(order, i)
		}
	}
	return order, placed
}

// checkPlaces refuses a file with columns that the schema has not, where their places
// are all that tells them.
func (l *layout) checkPlaces(f foundFile) error {
	for _, name := range l.places(f) {
		if at, _ := columnar.Lookup(l.schema, name); at < 0 {
			return &connector.RecordError{File: f.Path, Column: name,
				Reason: "the source had no such column when its columns were found, and a file without a header cannot be read without it; declare the columns, or start over with a new checkpoint and a new output"}
		}
	}
	return nil
}

// addMetadata makes the hidden columns of a file known.
func (c *fileColumns) addMetadata(f foundFile) {
	first := len(c.position)
	for i, field := range connector.MetadataFields() {
		if i == connector.MetadataRow {
			c.position = append(c.position, rowNumber)
			continue
		}
		v := any(strings.ToValidUTF8(f.Path, "\uFFFD"))
		switch i {
		case connector.MetadataFile:
			v = strings.ToValidUTF8(path.Base(f.Path), "\uFFFD")
		case connector.MetadataSize:
			v = f.Size
		case connector.MetadataModified:
			v = arrow.Timestamp(f.ModTime)
		}
		c.position = append(c.position, constant)
		c.values[first+i] = constantOf(field.Type, v)
	}
}

// constantOf is a value that field type fits.
func constantOf(dt arrow.DataType, v any) arrow.Array {
	d, err := columnar.Constant(heap, dt, v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return d.Array()
}

// beyond says whether a request reads columns at or behind position n, and which.
func beyond(req *connector.ScanRequest, n int) (any, numbers bool) {
	see := func(i int) {
		any = any || i >= n
		numbers = numbers || i == n+connector.MetadataRow
	}
	for _, i := range req.Columns {
		see(i)
	}
	for _, f := range req.Filters {
		expr.Walk(f, func(x expr.Expr) bool {
			if r, ok := x.(*expr.Ref); ok {
				see(r.Index)
			}
			return true
		})
	}
	return any, numbers
}

// folderValue is the value a file's folders give a column; ok is false if it comes
// from the content.
func (l *layout) folderValue(name string, found []folderValue) (v folderValue, ok bool) {
	at := slices.IndexFunc(found, func(v folderValue) bool { return v.key == name })
	if at < 0 {
		at = slices.IndexFunc(found, func(v folderValue) bool { return strings.EqualFold(v.key, name) && !l.isColumn(v.key) })
	}
	if l.declared {
		if at < 0 {
			return folderValue{}, false
		}
		return found[at], true
	}
	if !slices.Contains(l.folders, name) {
		return folderValue{}, false
	}
	if at < 0 {
		return folderValue{null: true}, true
	}
	return found[at], true
}

// isColumn says whether a column has exactly this name.
func (l *layout) isColumn(name string) bool { return len(l.schema.FieldIndices(name)) > 0 }

// heap is where the few constants of folder names live; they need no release.
var heap = memory.NewGoAllocator()

// units lists the work of reading files, in their order. hashes may be nil; else each
// file's hash is taken while it is read.
func (l *layout) units(ctx context.Context, files []foundFile, req connector.ScanRequest, hashes *entryHashes) ([]connector.Unit, error) {
	req = coarse(len(files), req)
	lists := make([][]connector.Unit, len(files))
	errs := make([]error, len(files))
	var g errgroup.Group
	g.SetLimit(4)
	for i, f := range files {
		g.Go(func() error {
			lists[i], errs[i] = l.fileUnits(ctx, f, req, hashes.of(i, f.Size))
			return nil
		})
	}
	_ = g.Wait() // its goroutines report in errs
	if err := cmp.Or(errs...); err != nil {
		return nil, err // of the first file that has one
	}
	return slices.Concat(lists...), nil
}

// severalFiles keep all workers busy without being divided finely.
const severalFiles = 16

// coarse asks for large ranges of files that are several: then the last one keeps nobody
// waiting for long.
func coarse(files int, req connector.ScanRequest) connector.ScanRequest {
	if files >= severalFiles && req.SplitBytes == 0 {
		req.SplitBytes = codec.MaxRange
	}
	return req
}

// tableUnits is units of a bounded table.
func (l *layout) tableUnits(ctx context.Context, files []foundFile, req connector.ScanRequest) ([]connector.Unit, error) {
	if len(files) >= manyFiles {
		return l.manyUnits(ctx, files, req)
	}
	return l.units(ctx, files, req, nil)
}

func (l *layout) fileUnits(ctx context.Context, f foundFile, req connector.ScanRequest, hash *codec.ContentHash) ([]connector.Unit, error) {
	if err := l.checkPlaces(f); err != nil {
		return nil, err
	}
	c := l.columns(f)
	if left, err := l.judge(c.misfit, req.Stats); left || err != nil {
		return nil, err
	}
	metadata, numbered := beyond(&req, l.schema.NumFields())
	if metadata {
		c.addMetadata(f)
	}
	if c.pruned(req.Filters) {
		if req.Stats != nil {
			req.Stats.FilesPruned.Add(1)
		}
		return nil, nil
	}
	p := c.projection(l.schema, f, &req)
	check := &identityCheck{fs: l.env.FS, env: l.env, id: f.FileIdentity}
	if err := check.now(); err != nil {
		return nil, err
	}
	units, err := l.format.Units(ctx, codec.File{FS: l.env.FS, FileIdentity: f.FileIdentity, Hash: hash}, c.content, p.request)
	if err != nil {
		return nil, check.explain(ctx, err)
	}
	if numbered && len(units) > 1 {
		units = []connector.Unit{&wholeFile{name: f.Path, units: units}}
	}
	out := make([]connector.Unit, len(units))
	for i, u := range units {
		out[i] = &unit{inner: u, check: check, projection: p}
	}
	return out, nil
}

// wholeFile reads the units of a file one after another: whoever counts its rows must
// see all of them.
type wholeFile struct {
	name  string
	units []connector.Unit
}

func (w *wholeFile) Name() string { return w.name }

func (w *wholeFile) Bytes() int64 {
	n := int64(0)
	for _, u := range w.units {
		n += u.Bytes()
	}
	return n
}

// Open implements connector.Unit.
func (w *wholeFile) Open(ctx context.Context) (columnar.Reader, error) {
	first, err := w.units[0].Open(ctx)
	if err != nil {
		return nil, err
	}
	return &wholeReader{Reader: first, rest: w.units[1:]}, nil
}

// wholeReader reads one unit and then the rest.
type wholeReader struct {
	columnar.Reader
	rest []connector.Unit
}

func (r *wholeReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		b, err := r.Reader.Next(ctx)
		if !errors.Is(err, io.EOF) || len(r.rest) == 0 {
			return b, err
		}
		if err := r.Reader.Close(); err != nil {
			return nil, err
		}
		next, err := r.rest[0].Open(ctx)
		if err != nil {
			return nil, err
		}
		r.Reader, r.rest = next, r.rest[1:]
	}
}

// pruned says that no row of the file can pass the filters. Only conditions over
// folder columns alone are looked at.
func (c *fileColumns) pruned(filters []expr.Expr) bool {
	for _, e := range filters {
		refs, folders := c.refs(e)
		if refs > 0 && refs == folders && !eval.HoldsForConstants(e, func(i int) arrow.Array { return c.values[i] }) {
			return true
		}
		if expr.IsFallible(e) {
			return false
		}
	}
	return false
}

// refs counts the columns of e, and those that are the same for the whole file.
func (c *fileColumns) refs(e expr.Expr) (all, folders int) {
	expr.Walk(e, func(x expr.Expr) bool {
		if r, ok := x.(*expr.Ref); ok {
			all++
			if c.position[r.Index] == constant {
				folders++
			}
		}
		return true
	})
	return all, folders
}

// isContent says whether all columns of e are the content's.
func (c *fileColumns) isContent(e expr.Expr) bool {
	content := true
	expr.Walk(e, func(x expr.Expr) bool {
		if r, ok := x.(*expr.Ref); ok {
			content = content && c.position[r.Index] >= 0
		}
		return content
	})
	return content
}

// contentFilters are the filters over columns of the content alone, by their
// positions there.
func (c *fileColumns) contentFilters(filters []expr.Expr) []expr.Expr {
	var out []expr.Expr
	for _, e := range filters {
		if !c.isContent(e) {
			if expr.IsFallible(e) {
				break // what comes after it might hide its error
			}
			continue
		}
		moved, err := expr.Transform(e, func(x expr.Expr) (expr.Expr, error) {
			r, ok := x.(*expr.Ref)
			if !ok {
				return x, nil
			}
			n := *r
			n.Index = c.position[r.Index]
			return &n, nil
		})
		if err != nil {
			break
		}
		out = append(out, moved)
	}
	return out
}

// projection says how the columns of a format's batches become those asked for.
type projection struct {
	schema  *arrow.Schema
	request connector.ScanRequest // for the format
	// from is the position in the format's batch of each column, constant or rowNumber.
	from      []int
	constants []arrow.Array // by column; nil for others
	mem       memory.Allocator
	identical bool // the format's batches are right as they are
	// rescued are members that the column of that name lacks; nil if there are none.
	rescued       []byte
	rescuedColumn string
	file          string
}

func (c *fileColumns) projection(schema *arrow.Schema, f foundFile, req *connector.ScanRequest) *projection {
	p := &projection{request: *req, mem: req.Mem, identical: len(req.Hidden) == 0 && len(c.values) == 0, schema: requested(schema, req)}
	p.request.Columns, p.request.Hidden = []int{}, nil
	p.request.Filters = c.contentFilters(req.Filters)
	if _, numbered := beyond(req, schema.NumFields()); numbered {
		p.request.Filters = nil // what they leave out would not be counted
	}
	if c.rescued != nil {
		p.rescued, p.rescuedColumn, p.file = c.rescued, c.content.Rescued, f.Path
		p.identical, p.request.Filters = false, nil // which may look at what the format does not know
	}
	for _, i := range wantedOf(schema, req) {
		p.identical = p.identical && c.position[i] >= 0
		if at := c.position[i]; at >= 0 {
			p.from = append(p.from, len(p.request.Columns))
			p.constants = append(p.constants, nil)
			p.request.Columns = append(p.request.Columns, at)
			continue
		}
		p.from = append(p.from, c.position[i])
		p.constants = append(p.constants, c.values[i])
	}
	for _, name := range req.Hidden {
		p.from = append(p.from, constant)
		value := columnar.NullConstant(heap, columnar.String).Array()
		if name == connector.HiddenFile {
			value = textConstant(f.Path)
		}
		p.constants = append(p.constants, value)
	}
	return p
}

// wantedOf are the positions of the columns that are asked for.
func wantedOf(schema *arrow.Schema, req *connector.ScanRequest) []int {
	if req.Columns != nil {
		return req.Columns
	}
	all := make([]int, schema.NumFields())
	for i := range all {
		all[i] = i
	}
	return all
}

// requested are the columns of what a request gives.
func requested(schema *arrow.Schema, req *connector.ScanRequest) *arrow.Schema {
	var fields []arrow.Field
	for _, i := range wantedOf(schema, req) {
		fields = append(fields, fieldAt(schema, i))
	}
	for _, name := range req.Hidden {
		fields = append(fields, columnar.Field(name, columnar.String))
	}
	return arrow.NewSchema(fields, nil)
}

// fieldAt is a column of a schema, or a hidden one behind it.
func fieldAt(s *arrow.Schema, i int) arrow.Field {
	if n := s.NumFields(); i >= n {
		return connector.MetadataFields()[i-n]
	}
	return s.Field(i)
}

func textConstant(s string) arrow.Array {
	return constantOf(columnar.String, strings.ToValidUTF8(s, "\uFFFD"))
}

// apply makes the wanted batch of a format's, which begins with row number first of its
// file; takes over the reference to b.
func (p *projection) apply(b arrow.RecordBatch, first int64) arrow.RecordBatch {
	if p.identical {
		return b
	}
	defer b.Release()
	rows := int(b.NumRows())
	columns := make([]arrow.Array, len(p.from))
	fields := make([]arrow.Field, len(p.from))
	for i, from := range p.from {
		fields[i] = p.schema.Field(i)
		if from >= 0 {
			columns[i] = b.Column(from)
			if p.rescued != nil && fields[i].Name == p.rescuedColumn {
				columns[i] = codec.WithMembers(p.mem, p.file, columns[i], p.rescued)
				defer columns[i].Release()
			}
			fields[i].Type = columns[i].DataType() // it may be dictionary-encoded
			continue
		}
		if from == rowNumber {
			columns[i] = numbers(p.mem, first, rows)
		} else {
			columns[i] = columnar.Broadcast(p.mem, columnar.ConstantDatum(p.constants[i]), rows)
		}
		defer columns[i].Release()
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows())
}

// numbers are n numbers from first on.
func numbers(mem memory.Allocator, first int64, n int) arrow.Array {
	buf, out := kernel.Make[int64](mem, n)
	for i := range out {
		out[i] = first + int64(i)
	}
	return kernel.Wrap(columnar.Int64, n, 0, nil, buf)
}

// unit is one of the format's, checked and completed.
type unit struct {
	inner      connector.Unit
	check      *identityCheck
	projection *projection
}

func (u *unit) Name() string { return u.inner.Name() }
func (u *unit) Bytes() int64 { return u.inner.Bytes() }

// Open implements connector.Unit.
func (u *unit) Open(ctx context.Context) (columnar.Reader, error) {
	r, err := u.inner.Open(ctx)
	if err != nil {
		return nil, u.check.explain(ctx, err)
	}
	if err := u.check.now(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &reader{inner: r, unit: u}, nil
}

// reader checks the file's identity once more at the end.
type reader struct {
	inner columnar.Reader
	unit  *unit
	rows  int64 // given so far
	ended bool
}

func (r *reader) Schema() *arrow.Schema { return r.unit.projection.schema }

func (r *reader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.ended {
		return nil, io.EOF
	}
	b, err := r.inner.Next(ctx)
	switch {
	case err == nil:
		first := r.rows
		r.rows += b.NumRows()
		return r.unit.projection.apply(b, first), nil
	case !errors.Is(err, io.EOF):
		return nil, r.unit.check.explain(ctx, err)
	}
	if err := r.unit.check.now(); err != nil {
		return nil, err
	}
	r.ended = true
	return nil, io.EOF
}

func (r *reader) Close() error { return r.inner.Close() }

// identityCheck compares a file with what was listed.
type identityCheck struct {
	fs  vfs.FS
	env *connector.Env
	id  connector.FileIdentity
}

// now fails with a *connector.FileChangedError if the file is another one.
func (c *identityCheck) now() error {
	changed, gone, err := differs(c.fs, c.id)
	switch {
	case err != nil:
		return err
	case changed:
		return &connector.FileChangedError{Path: c.id.Path, Was: c.id, Gone: gone}
	}
	return nil
}

// explain finds out whether err came of a file that changed under its reader. A file
// that cannot be decoded and was modified just now is given time to be finished.
func (c *identityCheck) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if changed := c.now(); changed != nil {
		return changed
	}
	if age := ageOf(c.env.Clock(), c.id.ModTime); age < settleTime && isDecodeError(err) {
		if c.env.Wait(ctx, settleTime-age) == nil {
			if changed := c.now(); changed != nil {
				return changed
			}
		}
	}
	return err
}

// isDecodeError says whether the content of a file is to blame.
func isDecodeError(err error) bool {
	var bad *connector.RecordError
	return errors.As(err, &bad) || errors.Is(err, io.ErrUnexpectedEOF)
}

// differs says whether the file is no longer what id says, or gone.
func differs(fsys vfs.FS, id connector.FileIdentity) (changed, gone bool, err error) {
	info, err := fsys.Stat(id.Path)
	if err != nil {
		if isAbsent(err) {
			return true, true, nil
		}
		return false, false, err
	}
	return info.IsDir() || info.Size() != id.Size || info.ModTime().UnixMicro() != id.ModTime, false, nil
}

// changedFiles finds those of logged that are no longer what was logged. Text that
// does not end in a line end and was modified just now is looked at again when it has
// settled: its writer may be in the middle of a line.
func changedFiles(ctx context.Context, env *connector.Env, logged []connector.FileIdentity, byLines bool) ([]connector.FileIdentity, error) {
	if byLines {
		if err := waitForLines(ctx, env, logged); err != nil {
			return nil, err
		}
	}
	var out []connector.FileIdentity
	for _, id := range logged {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		changed, _, err := differs(env.FS, id)
		if err != nil {
			return nil, err
		}
		if changed {
			out = append(out, id)
		}
	}
	return out, nil
}

// waitForLines waits until every file that may hold half a line has settled.
func waitForLines(ctx context.Context, env *connector.Env, logged []connector.FileIdentity) error {
	now := env.Clock()
	wait := time.Duration(0)
	for _, id := range logged {
		age := ageOf(now, id.ModTime)
		if age >= settleTime || settleTime-age <= wait {
			continue
		}
		if whole, err := codec.EndsInNewline(codec.File{FS: env.FS, FileIdentity: id}); err == nil && !whole {
			wait = settleTime - age
		}
	}
	if wait <= 0 {
		return nil
	}
	return env.Wait(ctx, wait)
}

// readsLines says whether a format's records are lines.
func readsLines(f codec.Format) bool {
	switch f.Name() {
	case "csv", "json", "text":
		return true
	}
	return false
}
