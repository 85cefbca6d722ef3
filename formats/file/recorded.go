package file

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// written is what an output says of its files to whoever reads the directory: with it
// nothing needs to be found out from what the files hold. The columns of identity are the
// union of all that were ever written, those of the newest query first, those of
// PartitionBy last.
type written struct {
	PartitionBy []string `json:"partition_by,omitempty"`
	// Options are those of the format that a reader needs (see codec.Dialect).
	Options map[string]string `json:"options,omitempty"`
	// Zone is the clock of timestamps that are written without one; "" is UTC.
	Zone string `json:"time_zone,omitempty"`
	// ByPlace are the columns of files that do not name them, from a batch on; nil where
	// files do.
	ByPlace []placement `json:"by_place,omitempty"`
}

// placement are the columns in the files of the batches from From on, in order.
type placement struct {
	From    int64    `json:"from"`
	Columns []string `json:"columns"`
}

// recordedOutput is an output whose identity tells its columns.
type recordedOutput struct {
	identity
	schema *arrow.Schema
}

// readRecorded finds out whether a path is an output that tells its columns; nil if not.
func readRecorded(fsys vfs.FS, dir string) (*recordedOutput, error) {
	if info, err := fsys.Stat(path.Join(dir, controlDir)); err != nil || !info.IsDir() {
		return nil, nil // what is wrong with the path is the listing's to say
	}
	id, ok, err := readIdentity(fsys, dir)
	switch {
	case errors.Is(err, errCorrupt):
		return nil, nil // its writer will say so
	case err != nil:
		return nil, err
	case !ok || id.Written == nil || id.Columns == "":
		return nil, nil
	}
	schema, err := connector.DecodeSchema(id.Columns)
	return &recordedOutput{id, schema}, err
}

// columns are those a reader sees: without folders those of the files.
func (r *recordedOutput) columns(hive bool) (schema *arrow.Schema, folders []string) {
	if hive {
		return r.schema, append([]string{}, r.Written.PartitionBy...)
	}
	fields := slices.DeleteFunc(slices.Clone(r.schema.Fields()), func(f arrow.Field) bool {
		return slices.Contains(r.Written.PartitionBy, f.Name)
	})
	return arrow.NewSchema(fields, nil), []string{}
}

// readOptions adds the options that the output was written with to those that are stated
// or were pinned, which count more.
func (r *recordedOutput) readOptions(stated, pinned map[string]string) map[string]string {
	all := map[string]string{}
	for k, v := range stated {
		all[k] = v
	}
	for k, v := range r.Written.Options {
		_, isPinned := pinned[pinFormat+k]
		isStated := false
		for s := range stated {
			isStated = isStated || strings.EqualFold(s, k)
		}
		if !isPinned && !isStated {
			all[k] = v
		}
	}
	return all
}

// location is the clock of timestamps without a zone.
func (r *recordedOutput) location() (*time.Location, error) {
	if r.Written.Zone == "" {
		return time.UTC, nil
	}
	loc, err := columnar.LoadZone(r.Written.Zone)
	if err != nil {
		err = fmt.Errorf("it was written with time_zone = '%s': %w", r.Written.Zone, err)
	}
	return loc, err
}

// replace notes where columns of files stand that were written since.
func (o *opened) replace(id identity) {
	if o.recorded != nil && id.Written != nil {
		o.layout.byPlace.Store(&id.Written.ByPlace)
	}
}

// placed are the columns of a file of an output that does not name them, in order; nil if
// the file does. A file's name has its batch; the one of complete mode is the newest's.
func placed(list []placement, rel string) []string {
	var batch, number int64
	newest := true
	if n, _ := fmt.Sscanf(path.Base(rel), "part-%20d-%d.", &batch, &number); n == 2 {
		newest = false
	}
	var columns []string
	for _, p := range list {
		if newest || p.From <= batch {
			columns = p.Columns
		}
	}
	return columns
}

// describe brings what the identity says of the rows up to date, for batches from next on.
func (s *Sink) describe(id *identity, next int64) error {
	columns, folders := s.columns()
	if columns == nil {
		return nil
	}
	before := *id
	id.Columns, id.Format = connector.EncodeSchema(columns), s.format.Name()
	none := s.env.Mode == connector.Complete || next <= id.first() // no rows that stay
	if before.Written == nil && !none {
		// An older release may have written rows of other columns, and did not say which.
		if id.Untold = id.Untold || before.Columns != id.Columns || before.Format != id.Format; id.Untold {
			return nil
		}
	}
	now, byPlace := s.written(folders)
	was := before.Written
	if was == nil {
		was = &written{Options: now.Options}
	}
	if !none && before.Columns != "" {
		if err := s.sameDialect(was.Options, now.Options); err != nil {
			return err
		}
		old, err := connector.DecodeSchema(before.Columns)
		if err != nil {
			return err
		}
		if columns, err = s.union(columns, old, folders); err != nil {
			return err
		}
		id.Columns = connector.EncodeSchema(columns)
	}
	if byPlace != nil {
		now.ByPlace = place(was.ByPlace, byPlace, next, none)
	}
	id.Written, id.Untold = now, false
	return nil
}

// written is what readers need to know of this query's files; byPlace are their columns
// if they do not name them.
func (s *Sink) written(folders []string) (w *written, byPlace []string) {
	w = &written{PartitionBy: folders}
	if s.env.Location != nil && s.env.Location != time.UTC {
		w.Zone = s.env.Location.String()
	}
	d, ok := s.format.(codec.Dialect)
	if !ok {
		return w, nil
	}
	var named bool
	if w.Options, named = d.Dialect(); named {
		return w, nil
	}
	for _, f := range s.env.Columns.Fields() {
		if !slices.Contains(folders, f.Name) {
			byPlace = append(byPlace, f.Name)
		}
	}
	return w, byPlace
}

// place notes the columns of the files from a batch on.
func place(list []placement, columns []string, next int64, first bool) []placement {
	switch n := len(list); {
	case first || n == 0:
		return []placement{{From: 0, Columns: columns}}
	case slices.Equal(list[n-1].Columns, columns):
		return list
	case list[n-1].From == next: // no batch was written with those
		list = list[:n-1]
	}
	return append(slices.Clone(list), placement{From: next, Columns: columns})
}

// sameDialect refuses files that are not to be read as those before them.
func (s *Sink) sameDialect(was, now map[string]string) error {
	text := func(m map[string]string, k string) string {
		if v, ok := m[k]; ok {
			return "'" + v + "'"
		}
		return "not set"
	}
	for _, k := range sortedKeys(was, now) {
		if a, b := text(was, k), text(now, k); a != b {
			return s.refuse(nil, fmt.Sprintf("%s was %s when its files were written, and is %s now", k, a, b),
				"set it back, or write to a new directory with a new checkpoint")
		}
	}
	return nil
}

func sortedKeys(a, b map[string]string) []string {
	var keys []string
	for _, m := range []map[string]string{a, b} {
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// union is all columns of the output: those of now, then what only older files have,
// then the folders. A column that has another type must fit the old one or the other way.
func (s *Sink) union(now, old *arrow.Schema, folders []string) (*arrow.Schema, error) {
	_, exact := s.format.(codec.ExactNames)
	is := func(a, b string) bool { return a == b || !exact && strings.EqualFold(a, b) }
	fields := slices.Clone(now.Fields())
	content := len(fields) - len(folders)
	for _, o := range old.Fields() {
		i := slices.IndexFunc(fields, func(f arrow.Field) bool { return is(f.Name, o.Name) })
		if i < 0 {
			fields = slices.Insert(fields, content, columnar.Field(o.Name, o.Type))
			content++
			continue
		}
		t, ok := wider(o.Type, fields[i].Type, is)
		if !ok {
			return nil, s.refuse(nil, fmt.Sprintf("column %s is %s in the files that are there, and %s now, which nobody could read as one table",
				o.Name, columnar.TypeName(o.Type), columnar.TypeName(fields[i].Type)),
				"write to a new directory with a new checkpoint, or CAST the column to "+columnar.TypeName(o.Type))
		}
		fields[i].Type = t
	}
	return arrow.NewSchema(fields, nil), nil
}

// wider is the type that holds every value of both as it is, and that files with either
// can be read as.
func wider(a, b arrow.DataType, is func(a, b string) bool) (arrow.DataType, bool) {
	if columnar.IsInteger(a) && columnar.IsInteger(b) || columnar.IsFloat(a) && columnar.IsFloat(b) {
		return columnar.Common(a, b)
	}
	x, isX := a.(*arrow.Decimal128Type)
	y, isY := b.(*arrow.Decimal128Type)
	if isX && isY {
		scale, whole := max(x.Scale, y.Scale), max(x.Precision-x.Scale, y.Precision-y.Scale)
		return columnar.Decimal(min(whole+scale, columnar.MaxPrecision), scale), whole+scale <= columnar.MaxPrecision
	}
	// Fields of a STRUCT may come and go as columns do.
	union, other := codec.WithFields(b, a, is), codec.WithFields(a, b, is)
	return union, sameParts(union, other, is)
}

// sameParts says whether two types differ at most in the order of the fields of structs.
func sameParts(a, b arrow.DataType, is func(a, b string) bool) bool {
	switch a := a.(type) {
	case *arrow.StructType:
		b, ok := b.(*arrow.StructType)
		return ok && a.NumFields() == b.NumFields() && !slices.ContainsFunc(a.Fields(), func(f arrow.Field) bool {
			i := slices.IndexFunc(b.Fields(), func(g arrow.Field) bool { return is(f.Name, g.Name) })
			return i < 0 || !sameParts(f.Type, b.Field(i).Type, is)
		})
	case *arrow.ListType:
		b, ok := b.(*arrow.ListType)
		return ok && sameParts(a.Elem(), b.Elem(), is)
	case *arrow.MapType:
		b, ok := b.(*arrow.MapType)
		return ok && sameParts(a.KeyType(), b.KeyType(), is) && sameParts(a.ItemType(), b.ItemType(), is)
	}
	return arrow.TypeEqual(a, b)
}
