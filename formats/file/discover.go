package file

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// Names of pinned choices. What the format pinned stands under its own names after
// pinFormat.
const (
	pinColumns   = "columns"
	pinFolders   = "folders"
	pinName      = "format"
	pinExtension = "extension"
	pinRecorded  = "recorded" // the columns are those that an output tells of itself
	pinFormat    = "format."
	pinStarting  = "starting_files" // in the log: the entry says what to begin after
)

const (
	// sampleFiles is how many files with records inference looks at.
	sampleFiles = 16
	// triedFiles is how many it opens to find them: some hold blank lines or a header only.
	triedFiles = 256
)

// opened is what tables and sources have in common: what the path means and how its
// files are read.
type opened struct {
	options ReadOptions
	spec    Format
	lister  *lister
	layout  *layout
	pinned  map[string]string
	env     *connector.Env
	// recorded is what an output directory tells of itself; nil if path is none or its
	// columns are not to be taken from there.
	recorded *recordedOutput
	// handed is the first listing of a stream; nil if none was needed, or it was handed on.
	handed *handover
}

// opening is the state of making an opened.
type opening struct {
	formats Formats
	rest    map[string]string // options of the format
	o       *opened
	bounded bool // all files are to be known, not only those that tell
	// files are those of a first listing, made only if something must be found out.
	files  []foundFile
	listed bool
}

// open decodes options and finds out format and columns. A *connector.NoFilesError
// says that there are no files yet to tell.
func open(ctx context.Context, formats Formats, env connector.Env, bounded bool) (*opened, error) {
	options, rest, err := decodeRead(env.Options)
	if err != nil {
		return nil, err
	}
	o := &opened{options: options, env: &env, pinned: map[string]string{}}
	o.lister = &lister{
		fs: env.FS, path: options.Path, recursive: options.Recursive, doneMarker: options.DoneMarker,
		skipDir: options.ArchiveDir, env: o.env, accept: func(string) bool { return true },
		noTables: !bounded,
	}
	if _, err := o.lister.find(); err != nil {
		return nil, err
	}
	if o.recorded, err = readRecorded(env.FS, options.Path); err != nil {
		return nil, err
	}
	p := &opening{formats: formats, rest: rest, o: o, bounded: bounded}
	format, err := p.format(ctx)
	if err != nil {
		return nil, err
	}
	o.layout = &layout{hive: options.Hive, evolution: options.Evolution, format: format, env: o.env}
	if o.recorded != nil {
		o.layout.byPlace.Store(&o.recorded.Written.ByPlace)
	}
	if err := p.columns(ctx); err != nil {
		return nil, err
	}
	if err := o.addRescued(); err != nil {
		return nil, err
	}
	return o, o.checkCorrupt()
}

// list lists the files once, of a stream those that tell something. Of an output
// directory they are those of its manifest.
func (p *opening) list(ctx context.Context) ([]foundFile, error) {
	if p.listed {
		return p.files, nil
	}
	files, isOutput, err := p.o.published()
	switch p.files = files; {
	case err != nil || isOutput:
	case p.bounded:
		p.files, err = p.o.lister.all(ctx)
	default:
		p.files, err = p.survey(ctx)
	}
	p.listed = err == nil
	return p.files, err
}

// format finds the format: stated, pinned, or what the names say.
func (p *opening) format(ctx context.Context) (codec.Format, error) {
	o := p.o
	name, ext := o.options.Format, ""
	if name == "" {
		name, ext = o.env.Pinned[pinName], o.env.Pinned[pinExtension]
	}
	stated := o.options.Format != ""
	if name == "" && o.recorded != nil {
		name = o.recorded.Format
	}
	if name == "" {
		if id, ok, err := p.emptyOutput(ctx); err != nil {
			return nil, err
		} else if ok {
			name = id.Format
		}
	}
	if name != "" {
		var err error
		if o.spec, err = p.formats.byName(name); err != nil {
			return nil, err
		}
	} else {
		var err error
		if o.spec, ext, err = p.detect(ctx); err != nil {
			return nil, err
		}
	}
	if !stated {
		o.pinned[pinExtension] = ext
		o.lister.accept = func(name string) bool { return slices.Contains(o.spec.Extensions, splitExtension(name)) }
		p.files = slices.DeleteFunc(p.files, func(f foundFile) bool { return !o.lister.accept(f.rel) })
	}
	o.pinned[pinName] = o.spec.Name
	options, err := p.recordedOptions()
	if err != nil {
		return nil, err
	}
	return p.formats.make(o.spec, ext, options, connector.Names(o.options.keys()), o.env, false)
}

// recordedOptions are the options of the format, with those that an output was written
// with. One that is read as another format tells nothing.
func (p *opening) recordedOptions() (map[string]string, error) {
	o := p.o
	if o.recorded == nil || o.recorded.Format != o.spec.Name {
		o.recorded = nil
		return p.rest, nil
	}
	loc, err := o.recorded.location()
	if err != nil {
		return nil, &connector.RefusedError{Path: o.options.Path, Reason: "its timestamps cannot be read", Err: err}
	}
	o.env.Location = loc
	return o.recorded.readOptions(p.rest, o.env.Pinned), nil
}

// detect finds the one format that the names of the files speak of.
func (p *opening) detect(ctx context.Context) (f Format, ext string, err error) {
	if f, ext, ok := p.formats.byExtension(p.o.options.Path); ok && !strings.ContainsAny(splitExtension(p.o.options.Path), "*?[]{}") {
		return f, ext, nil // x.csv, *.parquet: the path itself tells
	}
	files, err := p.list(ctx)
	if err != nil {
		return Format{}, "", err
	}
	var other foundFile
	var first foundFile
	for _, file := range files {
		g, e, ok := p.formats.byExtension(file.rel)
		switch {
		case !ok:
			other = file
		case f.Name == "":
			f, ext, first = g, e, file
		case f.Name != g.Name:
			return Format{}, "", &connector.OptionError{Key: "format",
				Reason: fmt.Sprintf("it is missing, and the names speak of more than one: %s is %s, %s is %s", first.Path, f.Name, file.Path, g.Name)}
		}
	}
	if f.Name == "" {
		return Format{}, "", p.none(other)
	}
	return f, ext, nil
}

// none is the error for a path without files that can be read.
func (p *opening) none(other foundFile) error {
	if other.Path == "" {
		return p.o.noFiles()
	}
	return &connector.OptionError{Key: "format",
		Reason: fmt.Sprintf("it is missing, and the name of %s does not tell (known endings are %s)", other.Path, p.formats.extensions())}
}

func (o *opened) noFiles() error {
	why := "no file matches"
	if root, err := o.lister.find(); err == nil {
		info, err := o.env.FS.Stat(o.options.Path)
		switch {
		case err == nil && !info.IsDir() && !info.Mode().IsRegular():
			why = "it is " + kindOf(info.Mode()) + "; copy what it gives into a file"
		case root.missing:
			why = "it does not exist"
		case o.isOutput():
			why = "it is the output of a query that has no rows yet"
		case root.patterns == nil:
			why = "the folder holds no data file"
		case wantsHidden(root.patterns):
			why += "; what begins with _ or . is matched only where the whole name is written"
		}
	}
	return &connector.NoFilesError{Path: o.options.Path, Why: why}
}

func (o *opened) isOutput() bool {
	_, ok, err := readIdentity(o.env.FS, o.options.Path)
	return ok && err == nil
}

// columns finds the schema: declared, pinned, or inferred.
func (p *opening) columns(ctx context.Context) error {
	o, l := p.o, p.o.layout
	if err := p.comparePinned(); err != nil {
		return err
	}
	if err := l.pin(o.env.Pinned, o.pinned); err != nil {
		return err
	}
	if o.env.Columns != nil {
		l.schema, l.declared = o.env.Columns, true
		if err := p.checkDeclared(ctx); err != nil {
			return err
		}
		if !o.hasFormatPins() {
			return p.pinDeclared(ctx)
		}
		return nil
	}
	l.byName = o.recorded != nil
	if text, ok := o.env.Pinned[pinColumns]; ok {
		if l.byName = l.byName && o.env.Pinned[pinRecorded] != ""; !l.byName {
			o.recorded = nil // columns were found out before outputs told them
			l.byPlace.Store(nil)
		} else {
			o.pinned[pinRecorded] = o.env.Pinned[pinRecorded]
		}
		var err error
		if l.schema, err = connector.DecodeSchema(text); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(o.env.Pinned[pinFolders]), &l.folders); err != nil {
			return fmt.Errorf("pinned folder columns: %w", err)
		}
		o.pinned[pinColumns], o.pinned[pinFolders] = text, o.env.Pinned[pinFolders]
		return nil
	}
	files, err := p.list(ctx)
	if err != nil {
		return err
	}
	if o.recorded != nil && (p.bounded || len(files) > 0) {
		l.schema, l.folders = o.recorded.columns(o.options.Hive)
		o.pinned[pinRecorded] = "true"
		return o.pinColumns()
	}
	if len(files) == 0 {
		id, ok, err := p.emptyOutput(ctx)
		if err != nil || !ok {
			return cmp.Or(err, o.noFiles())
		}
		l.declared = true
		l.schema, err = connector.DecodeSchema(id.Columns)
		return err
	}
	inferred, ok, err := o.infer(ctx, files)
	if err != nil {
		return err
	}
	if !ok {
		return o.noRecords(ctx, files)
	}
	return o.setInferred(inferred, files)
}

// comparePinned refuses an option that says something else than what was pinned.
func (p *opening) comparePinned() error {
	plain := func(text string) string {
		if yes, err := connector.ParseBool(text); err == nil {
			return fmt.Sprint(yes)
		}
		return strings.ToLower(strings.TrimSpace(text))
	}
	for k, pinned := range p.o.env.Pinned {
		name, ok := strings.CutPrefix(k, pinFormat)
		if !ok {
			continue
		}
		for option, stated := range p.rest {
			if strings.EqualFold(option, name) && plain(stated) != plain(pinned) && plain(stated) != "auto" {
				return &connector.RefusedError{Path: p.o.env.Checkpoint,
					Reason: fmt.Sprintf("%s was %s when the query began, and is %q now", name, pinned, stated),
					Remedy: "set it back, or start over with a new checkpoint and a new output"}
			}
		}
	}
	return nil
}

// pin gives the format the choices an earlier Infer made, and notes them.
func (l *layout) pin(from, to map[string]string) error {
	choices := map[string]string{}
	for k, v := range from {
		if name, ok := strings.CutPrefix(k, pinFormat); ok {
			choices[name] = v
			to[k] = v
		}
	}
	if len(choices) == 0 {
		return nil
	}
	f, err := l.format.WithPinned(choices)
	if err != nil {
		return fmt.Errorf("pinned choices of format %s: %w", l.format.Name(), err)
	}
	l.format = f
	return nil
}

// checkDeclared sees, before anything is read, that declared columns can come from the
// files. What of them are those of folders, the first file says.
func (p *opening) checkDeclared(ctx context.Context) error {
	l := p.o.layout
	fixed, ok := l.format.(codec.FixedColumns)
	if !ok {
		return nil
	}
	wrong := fixed.CheckColumns(l.schema)
	if wrong == nil || !l.hive {
		return wrong
	}
	files, err := p.list(ctx)
	if err != nil || len(files) == 0 {
		return err
	}
	return fixed.CheckColumns(l.columns(files[0]).content.Schema)
}

// pinDeclared lets the format make its choices by the files that are there.
func (p *opening) pinDeclared(ctx context.Context) error {
	if _, ok := p.o.layout.format.(codec.Pinner); !ok {
		return nil
	}
	files, err := p.list(ctx)
	if err != nil {
		return err
	}
	_, err = p.o.pinBy(slices.Values(files))
	return err
}

// pinBy lets the format choose by the first of files that tells, where columns are
// declared. It returns what was chosen, nil if nothing was.
func (o *opened) pinBy(files iter.Seq[foundFile]) (map[string]string, error) {
	pinner, ok := o.layout.format.(codec.Pinner)
	if !ok {
		return nil, nil
	}
	for f := range files {
		list := []codec.File{{FS: o.env.FS, FileIdentity: f.FileIdentity}}
		choices, err := pinner.Pin(list, o.layout.columns(f).content)
		if err != nil {
			return nil, err
		}
		if choices != nil {
			return choices, o.setFormatPins(choices)
		}
	}
	return nil, nil
}

// hasFormatPins says whether the format's choices were made.
func (o *opened) hasFormatPins() bool {
	for k := range o.pinned {
		if strings.HasPrefix(k, pinFormat) {
			return true
		}
	}
	return false
}

// infer takes a sample.
func (o *opened) infer(ctx context.Context, files []foundFile) (codec.Inferred, bool, error) {
	var sample []codec.File
	typed := o.spec.RowCount != nil // such a file tells its columns, whatever it holds
	for _, f := range files {
		if len(sample) == triedFiles || typed && len(sample) == sampleFiles {
			break
		}
		if f.Size > 0 || typed {
			sample = append(sample, codec.File{FS: o.env.FS, FileIdentity: f.FileIdentity})
		}
	}
	if len(sample) == 0 {
		// Text files have their column, even if all are empty.
		for _, f := range files[:min(1, len(files))] {
			sample = append(sample, codec.File{FS: o.env.FS, FileIdentity: f.FileIdentity})
		}
	}
	return o.inferTypes(ctx, sample)
}

// setFormatPins hands the format's choices to it and keeps them.
func (o *opened) setFormatPins(choices map[string]string) error {
	pins := map[string]string{}
	for k, v := range choices {
		pins[pinFormat+k] = v
	}
	return o.layout.pin(pins, o.pinned)
}

// setInferred makes the columns: those of the content, then those of the folders. A
// folder wins over a column of the content of the same name.
func (o *opened) setInferred(inferred codec.Inferred, files []foundFile) error {
	if err := o.setFormatPins(inferred.Pinned); err != nil {
		return err
	}
	var folders []arrow.Field
	if o.options.Hive {
		folders = inferFolders(files)
	}
	o.layout.schema, o.layout.folders = withFolders(inferred.Schema, folders)
	return o.pinColumns()
}

func withFolders(content *arrow.Schema, folders []arrow.Field) (*arrow.Schema, []string) {
	names := []string{}
	for _, f := range folders {
		names = append(names, f.Name)
	}
	var fields []arrow.Field
	for _, f := range content.Fields() {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, f.Name) }) {
			fields = append(fields, columnar.Field(f.Name, f.Type))
		}
	}
	return arrow.NewSchema(append(fields, folders...), nil), names
}

func (o *opened) pinColumns() error {
	folders, err := json.Marshal(o.layout.folders)
	if err != nil {
		return err
	}
	o.pinned[pinColumns] = connector.EncodeSchema(o.layout.schema)
	o.pinned[pinFolders] = string(folders)
	return nil
}

// checkCorrupt sees that corrupt_column is a declared VARCHAR.
func (o *opened) checkCorrupt() error {
	c, ok := o.layout.format.(codec.CorruptColumn)
	if !ok || c.CorruptColumn() == "" {
		return nil
	}
	name := c.CorruptColumn()
	i, _ := columnar.Lookup(o.layout.schema, name)
	if i < 0 || !o.layout.declared || o.layout.schema.Field(i).Type.ID() != arrow.STRING {
		return &connector.OptionError{Key: "corrupt_column", Value: name, HasValue: true,
			Reason: "it must be a declared column of type VARCHAR"}
	}
	o.layout.corrupt = o.layout.schema.Field(i).Name
	return nil
}

// grown is the columns with those that the given files add, and the first file that
// adds one; "" if none does. Each file is sampled by itself, so that a large one hides
// none of another.
func (o *opened) grown(ctx context.Context, files []foundFile) (*arrow.Schema, string, error) {
	known := o.layout.schema
	first := ""
	if o.recorded != nil {
		return o.grownAsRecorded(files)
	}
	for _, file := range files {
		inferred, ok, err := o.infer(ctx, []foundFile{file})
		if err != nil {
			return nil, "", err
		}
		if !ok {
			continue
		}
		for _, f := range inferred.Schema.Fields() {
			if o.isSpelling(known, f.Name, inferred.Written[f.Name]) {
				continue
			}
			wider, grew := o.grow(known, f)
			if known = wider; grew && first == "" {
				first = file.Path
			}
		}
	}
	return known, first, nil
}

// grownAsRecorded is grown for an output, which tells what its columns are now.
func (o *opened) grownAsRecorded(files []foundFile) (known *arrow.Schema, first string, err error) {
	known = o.layout.schema
	now, err := readRecorded(o.env.FS, o.options.Path)
	if err != nil || now == nil {
		return known, "", err
	}
	for _, f := range now.schema.Fields() {
		if slices.Contains(now.Written.PartitionBy, f.Name) {
			continue
		}
		wider, grew := o.grow(known, f)
		if known = wider; grew && len(files) > 0 {
			first = files[0].Path
		}
	}
	return known, first, nil
}

// knows says whether a field of a file called name has a column.
func (o *opened) knows(columns *arrow.Schema, name string) bool {
	i, n := columnar.Lookup(columns, name)
	if _, exact := o.layout.format.(codec.ExactNames); exact && i >= 0 {
		return columns.Field(i).Name == name || slices.Contains(o.layout.folders, columns.Field(i).Name)
	}
	return n > 0
}

// isSpelling says whether a field called name in place of what the file writes is one of
// several whose names are alike, and a column has that name: reading the file says which of
// them it is.
func (o *opened) isSpelling(columns *arrow.Schema, name, written string) bool {
	return written != "" && !o.knows(columns, name) && o.knows(columns, written)
}

// addColumns takes in the columns that any of the files of a bounded table has. Those of
// a stream that is read as a table were settled when the stream was found.
func (o *opened) addColumns(ctx context.Context, files []foundFile) error {
	if o.options.Evolution != codec.EvolveAdd || o.layout.declared {
		return nil
	}
	if _, settled := o.env.Pinned[pinColumns]; settled {
		o.layout.evolution = codec.EvolveIgnore
		return nil
	}
	schema, first, err := o.grown(ctx, files)
	if err != nil || first == "" {
		return err
	}
	o.layout.schema = schema
	return o.pinColumns()
}

// Discover finds the columns of a stream over files.
func Discover(ctx context.Context, formats Formats, env connector.Env) (connector.Discovery, error) {
	o, err := open(ctx, formats, env, false)
	if err != nil {
		return connector.Discovery{}, err
	}
	if err := o.checkStream(); err != nil {
		return connector.Discovery{}, err
	}
	return connector.Discovery{Schema: o.layout.schema, Pinned: maps.Clone(o.pinned), HasMetadata: true, Listed: o.handed}, nil
}

// checkStream refuses what can be read as a table only.
func (o *opened) checkStream() error {
	root, err := o.lister.find()
	if err != nil {
		return err
	}
	if err := o.lister.refuseTable(root.dir, root.lists); err != nil {
		return err
	}
	if dir := o.options.ArchiveDir; dir != "" && dir == o.options.Path {
		return &connector.OptionError{Key: "archive_dir", Value: dir, HasValue: true, Reason: "it is the source itself"}
	}
	return nil
}
