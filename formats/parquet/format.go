package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// parquetFormat implements codec.Format.
type parquetFormat struct{ options Options }

// New returns the format with the given options.
func New(o Options) (codec.Format, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &parquetFormat{o}, nil
}

func (f *parquetFormat) Name() string      { return "parquet" }
func (f *parquetFormat) Extension() string { return ".parquet" }

// WithPinned returns the format itself: a Parquet file says all by itself.
func (f *parquetFormat) WithPinned(map[string]string) (codec.Format, error) { return f, nil }

// Infer widens the columns of the sample's footers to their common types. Columns
// that only later files have come after those of earlier ones.
func (f *parquetFormat) Infer(ctx context.Context, files []codec.File) (codec.Inferred, bool, error) {
	return codec.InferFiles(ctx, files, func(file codec.File) (*arrow.Schema, error) {
		m, err := f.open(file, nil)
		if err != nil || m == nil {
			return nil, err
		}
		s, err := m.schema()
		if err != nil {
			return nil, damaged(m.path, err)
		}
		return s, nil
	})
}

// open reads the footer of a file. With codec.Drop a damaged file is nil, and counted.
func (f *parquetFormat) open(file codec.File, stats *connector.ScanStats) (*fileMeta, error) {
	h, err := file.FS.Open(file.Path)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	m, err := readFooter(h, file.Path)
	var re *connector.RecordError
	if errors.As(err, &re) && f.options.Mode == codec.Drop {
		stats.MalformedFile(*re)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if m.size != file.Size {
		return nil, &connector.FileChangedError{Path: file.Path, Was: file.FileIdentity}
	}
	return m, nil
}

// Units are the row groups of the file that may have rows the filters let pass;
// neighbouring tiny ones share a unit.
func (f *parquetFormat) Units(ctx context.Context, file codec.File, schema codec.Columns, req connector.ScanRequest) ([]connector.Unit, error) {
	m, err := f.open(file, req.Stats)
	if err != nil || m == nil {
		return nil, err
	}
	setHash(file.Hash, file.Size, m.hash)
	typed := codec.Typed{Path: m.path, Mode: f.options.Mode}
	for _, c := range m.root.children {
		typed.Fields = append(typed.Fields, columnar.Field(c.name, c.typ))
	}
	return codec.ReadTyped(typed, schema, req, func(schema codec.Columns, req connector.ScanRequest) ([]connector.Unit, error) {
		return f.units(ctx, file, m, schema, req)
	})
}

// units are those of a file whose columns are found by name and have types that fit.
func (f *parquetFormat) units(ctx context.Context, file codec.File, m *fileMeta, schema codec.Columns, req connector.ScanRequest) ([]connector.Unit, error) {
	p, err := f.plan(m, schema.Schema, req)
	if err != nil {
		return nil, err
	}
	if f.options.Mode == codec.Drop {
		bad, err := f.wholeFile(ctx, file, m, schema.Schema)
		if err != nil {
			return nil, err
		}
		if bad != nil {
			req.Stats.MalformedFile(*bad)
			return nil, nil
		}
	}
	groups := m.withBloom(file, schema.Schema, req, m.matching(schema.Schema, req, f.options.TimeZone))
	if pruner := newPagePruner(m, schema.Schema, req, p.zone); pruner != nil && pruner.isUseful(file, groups) {
		p.pages = pruner
	}
	if req.SplitBytes > 0 {
		return makeUnits(file, p, groups), nil
	}
	return divided(makeUnits(file, p, groups), len(groups)), nil
}

func (f *parquetFormat) plan(m *fileMeta, schema *arrow.Schema, req connector.ScanRequest) (*scanPlan, error) {
	p, err := newScanPlan(m, schema, req.Columns)
	if err != nil {
		return nil, err
	}
	p.zone, p.codes, p.mem, p.stats, p.rows, p.bytes = f.options.TimeZone, true, req.Mem, req.Stats, req.BatchRows, req.BatchBytes
	if p.rows <= 0 {
		p.rows = columnar.DefaultBatchRows
	}
	if p.mem == nil {
		p.mem = memory.DefaultAllocator
	}
	return p, p.addHidden(req.Hidden)
}

// setHash gives a Parquet file the hash of its footer and size.
func setHash(h *codec.ContentHash, size int64, sum xxh3.Uint128) {
	if h == nil {
		return
	}
	for i := range (size + codec.HashBlock - 1) / codec.HashBlock {
		h.Set(int(i), sum)
	}
}

// wholeFile decodes every column once; bad says in what way the file is damaged.
func (f *parquetFormat) wholeFile(ctx context.Context, file codec.File, m *fileMeta, schema *arrow.Schema) (bad *connector.RecordError, err error) {
	p, err := f.plan(m, schema, connector.ScanRequest{})
	if err != nil {
		return nil, err
	}
	var groups []int
	for g := range m.footer.RowGroups {
		groups = append(groups, g)
	}
	r, err := (&unit{file: file, plan: p, groups: groups}).Open(ctx)
	if err != nil {
		return nil, err
	}
	for b, err2 := range columnar.All(ctx, r) {
		if b == nil {
			err = err2
		}
	}
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	if errors.As(err, &bad) {
		return bad, nil
	}
	return nil, err
}

// tinyRows is how many rows of neighbouring row groups one unit has at most.
const tinyRows = 64 << 10

func makeUnits(file codec.File, p *scanPlan, groups []int) []connector.Unit {
	var units []connector.Unit
	for i := 0; i < len(groups); {
		j, rows := i, int64(0)
		for j < len(groups) && (j == i || rows+p.meta.footer.RowGroups[groups[j]].NumRows <= tinyRows) {
			rows += p.meta.footer.RowGroups[groups[j]].NumRows
			j++
		}
		units = append(units, &unit{file: file, plan: p, groups: groups[i:j]})
		i = j
	}
	return units
}

// unit is some row groups of one file, or a part of one.
type unit struct {
	file   codec.File
	plan   *scanPlan
	groups []int
	part   rowRange // of the only row group; without rows: all of them
}

func (u *unit) Name() string {
	first, last := u.groups[0], u.groups[len(u.groups)-1]
	if u.part.to > 0 {
		return fmt.Sprintf("%s row group %d rows %d-%d", u.file.Path, first, u.part.from, u.part.to-1)
	}
	if first == last {
		return fmt.Sprintf("%s row group %d", u.file.Path, first)
	}
	return fmt.Sprintf("%s row groups %d-%d", u.file.Path, first, last)
}

// Bytes are those of the columns that will be read.
func (u *unit) Bytes() int64 {
	n := int64(0)
	for _, g := range u.groups {
		for _, c := range u.plan.columns {
			n += c.bytes(u.plan.meta, g)
		}
	}
	if u.part.to > 0 {
		n = int64(float64(n) * float64(u.part.to-u.part.from) / float64(u.plan.meta.footer.RowGroups[u.groups[0]].NumRows))
	}
	return n
}

func (p *columnPlan) bytes(m *fileMeta, group int) int64 {
	if p.node == nil {
		return 0
	}
	if p.node.kind == leafNode {
		return m.footer.RowGroups[group].Columns[p.node.leaf].MetaData.TotalCompressedSize
	}
	n := int64(0)
	for _, c := range p.children {
		n += c.bytes(m, group)
	}
	return n
}

func (u *unit) Open(ctx context.Context) (columnar.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h, err := u.file.FS.Open(u.file.Path)
	if err != nil {
		return nil, err
	}
	info, err := h.Stat()
	if err == nil && info.Size() != u.file.Size {
		err = &connector.FileChangedError{Path: u.file.Path, Was: u.file.FileIdentity}
	}
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	r := newGroupReader(u.plan, h, true, u.groups)
	r.part = u.part
	return r, nil
}

// RowCount is the number of rows of a file by its footer.
func RowCount(file codec.File) (int64, error) {
	f := parquetFormat{}
	m, err := f.open(file, nil)
	if err != nil {
		return 0, err
	}
	return m.rows(), nil
}

func (f *parquetFormat) NewWriter(w io.Writer, schema *arrow.Schema, opts codec.WriterOptions) (codec.Writer, error) {
	return NewFileWriter(w, schema, WriterConfig{
		Compression: f.options.Compression, Level: f.options.CompressionLevel, RowGroupRows: f.options.RowGroupRows,
		Metadata: opts.Metadata,
	})
}
