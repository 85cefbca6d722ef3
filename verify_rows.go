package tidemill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/diff"
	"github.com/tidemill/tidemill/formats"
	"github.com/tidemill/tidemill/formats/file"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// compare compares a batch that was derived with what is committed of it.
func (f *verifier) compare(ctx context.Context, id int64) error {
	derived, err := file.PublishedBy(f.fsys, f.out, id)
	if err != nil {
		return err
	}
	committed, known := f.published[id]
	if !known {
		f.found.differs(Difference{Batch: id, Text: "it is committed, and the manifest of the output does not have it"}, 0)
	}
	for _, side := range []string{"", "late", "bad"} {
		if side == "" && derived.Replaces && id != f.last {
			continue // a later batch replaced the table
		}
		if err := f.compareSide(ctx, id, ofSide(committed.Files, side), ofSide(derived.Files, side)); err != nil {
			return err
		}
	}
	f.found.Batches++
	for _, d := range derived.Files {
		if derived.Replaces && d.Side == "" {
			continue
		}
		if err := f.fsys.Remove(d.Path); err != nil { // it is in memory
			return err
		}
	}
	return nil
}

func ofSide(files []file.PublishedFile, side string) []file.PublishedFile {
	return slices.DeleteFunc(slices.Clone(files), func(p file.PublishedFile) bool { return p.Side != side })
}

// compareSide compares the files of one directory: their bytes, and their rows where the
// bytes differ.
func (f *verifier) compareSide(ctx context.Context, id int64, committed, derived []file.PublishedFile) error {
	f.found.Files += int64(len(committed))
	for _, d := range derived {
		f.found.Rows += d.Rows
	}
	same, err := f.sameBytes(ctx, committed, derived)
	if err != nil || same {
		return err
	}
	var is, should []diff.Row
	for _, c := range committed {
		rows, err := f.committed.rows(ctx, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("it is gone")
		}
		if err != nil {
			f.found.differs(Difference{id, c.Path, err.Error()}, 0)
			continue
		}
		is = append(is, rows...)
	}
	for _, d := range derived {
		rows, err := f.derived.rows(ctx, d)
		if err != nil {
			return err
		}
		should = append(should, rows...)
	}
	f.compareRows(id, is, should)
	return nil
}

// compareRows notes the rows that only one of both has.
func (f *verifier) compareRows(id int64, is, should []diff.Row) {
	if len(is) > 0 && len(should) > 0 && is[0].Width() != should[0].Width() {
		f.found.differs(Difference{id, is[0].From, fmt.Sprintf("it has %d columns, and the query gives %d", is[0].Width(), should[0].Width())}, int64(len(is)))
		return
	}
	diff.Compare(should, is, diff.Options{ULP: 2}, func(r diff.Row, extra bool) bool {
		d := Difference{Batch: id, Text: "the inputs give a row that is not committed: " + r.Text}
		if extra {
			d = Difference{id, r.From, "a row is committed that the inputs do not give: " + r.Text}
		}
		f.found.differs(d, 1)
		return true
	})
}

// sameBytes says whether two lists of files have the same content, file by file.
func (f *verifier) sameBytes(ctx context.Context, committed, derived []file.PublishedFile) (bool, error) {
	if len(committed) != len(derived) {
		return false, nil
	}
	for i, c := range committed {
		if c.Hash != derived[i].Hash || c.Size != derived[i].Size {
			return false, nil
		}
		hash, err := file.ContentHash(ctx, f.seen, c.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil || hash != c.Hash {
			return false, err
		}
	}
	return true, nil
}

// outputReader reads files of an output, one at a time.
type outputReader struct {
	s     *Session
	table connector.FileTable // of the output proper
}

// newOutputReader opens the output of an INSERT on the filesystem of sc, with the columns
// of the query.
func newOutputReader(ctx context.Context, sc *Script, in *insert) (*outputReader, error) {
	j, plan, err := sc.plan(ctx, in)
	if err != nil {
		return nil, err
	}
	d := &logical.SourceDecl{Name: in.path, Options: readOptions(j.options)}
	for _, f := range plan.Schema().Arrow().Fields() {
		d.Columns = append(d.Columns, logical.ColumnDecl{Name: f.Name, Type: readType(d.Options["format"], f.Type)})
	}
	t, err := j.session.resolver(nil).Table(ctx, d)
	if err != nil {
		return nil, err
	}
	files, ok := t.(connector.FileTable)
	if !ok {
		return nil, fmt.Errorf("bug: %s is no table of files", in.path)
	}
	return &outputReader{s: j.session, table: files}, nil
}

// readOptions are the options that read what a sink with these options writes.
func readOptions(sink map[string]string) map[string]string {
	format := file.PinnedOptions(formats.Files(), sink)["format"]
	o := map[string]string{"path": sink["path"], "format": format}
	if format != "csv" && format != "tsv" && format != "json" && format != "jsonl" && format != "ndjson" {
		return o
	}
	o["mode"] = "fail"
	for _, key := range []string{"delimiter", "quote", "escape", "null_value", "timestamp_format", "date_format"} {
		if v, ok := sink[key]; ok {
			o[key] = v
		}
	}
	if format == "csv" || format == "tsv" {
		o["header"] = "true"
		if v, err := connector.ParseBool(sink["header"]); err == nil && !v {
			o["header"] = "false"
		}
		o["union_by_name"] = o["header"]
	}
	return o
}

// readType is the type a column is compared as: formats of text keep no types, so what
// they hold is compared as it stands there, but for floats.
func readType(format string, dt arrow.DataType) arrow.DataType {
	switch format {
	case "csv", "tsv":
		if dt.ID() != arrow.FLOAT32 && dt.ID() != arrow.FLOAT64 {
			return columnar.String
		}
	case "json", "jsonl", "ndjson":
		switch dt.ID() {
		case arrow.INTERVAL_MONTH_DAY_NANO, arrow.MAP, arrow.BINARY, arrow.TIME64, arrow.NULL:
			return columnar.String
		}
	}
	return dt
}

// rows reads one file.
func (o *outputReader) rows(ctx context.Context, f file.PublishedFile) ([]diff.Row, error) {
	info, err := o.s.opts.fs.Stat(f.Path)
	if err != nil {
		return nil, err
	}
	var table connector.Table
	if f.Side != "" {
		if table, err = o.s.resolver(nil).Path(ctx, f.Path, "", nil); err != nil {
			return nil, err
		}
	} else {
		table = o.table.At([]connector.FileIdentity{{Path: f.Path, Size: info.Size(), ModTime: info.ModTime().UnixMicro()}})
	}
	rows, err := o.s.Collect(ctx, logical.ReadTable(f.Path, table, o.s.functions))
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	return diff.Rows(rows.Batches(), strings.TrimPrefix(f.Path, "./")), nil
}
