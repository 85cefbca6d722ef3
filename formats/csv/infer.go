package csv

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
	"github.com/tidemill/tidemill/logical/connector"
)

// The sample that columns are inferred from.
const (
	sampleRecords = 20480
	sampleFiles   = 16
)

// inference is what the sample has said so far.
type inference struct {
	f       *format
	header  Header
	names   []string
	written map[string]string // names that files have of columns that are called otherwise
	places  *codec.Fields     // of names
	kinds   []cells.Kinds
	records int
}

// Infer finds names and types of the columns from a sample of files.
func (f *format) Infer(ctx context.Context, files []codec.File) (codec.Inferred, bool, error) {
	f, err := f.settled(files)
	if err != nil {
		return codec.Inferred{}, false, err
	}
	inf := &inference{f: f, header: f.opts.Header, places: codec.NewFields(nil), written: map[string]string{}}
	sampled := 0
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return codec.Inferred{}, false, err
		}
		if sampled == sampleFiles || inf.records >= sampleRecords {
			break
		}
		if file.Size == 0 {
			continue
		}
		before := inf.records
		if err := inf.sample(file); err != nil {
			return codec.Inferred{}, false, err
		}
		// A file without records says nothing of types, and must not take the place of one
		// that does.
		if inf.records > before {
			sampled++
		}
	}
	if inf.names == nil {
		return codec.Inferred{}, false, nil
	}
	fields, seen := make([]arrow.Field, len(inf.names)), make([]arrow.Field, len(inf.names))
	for i, name := range inf.names {
		fields[i] = columnar.Field(name, inf.kinds[i].Type())
		seen[i] = fields[i]
		if inf.kinds[i].Empty() {
			seen[i].Type = arrow.Null
		}
	}
	return codec.Inferred{Schema: columnar.NewSchema(fields...), Seen: columnar.NewSchema(seen...), Pinned: f.pinned(inf.header), Written: inf.written}, true, nil
}

// pinned are the choices that were made: about the header, and, where it was found out,
// the delimiter.
func (f *format) pinned(h Header) map[string]string {
	choices := map[string]string{"header": "false"}
	if h == HeaderYes {
		choices["header"] = "true"
	}
	if f.sniffed {
		choices["delimiter"] = f.opts.Delimiter
	}
	return choices
}

// sample adds the first records of one file.
func (inf *inference) sample(file codec.File) error {
	opts := &inf.f.opts
	d, rules, err := opts.compile(extension(file.Path))
	if err != nil {
		return err
	}
	file.Hash = nil
	in, err := codec.OpenInput(codec.InputSpec{File: file, Range: codec.Range{End: file.Size},
		Compression: opts.Compression, Encoding: opts.Encoding, Mode: opts.Mode})
	if err != nil {
		return err
	}
	defer in.Close()
	s := newScanner(&d, in)
	record, err := s.record()
	if err != nil || record == nil {
		return err
	}
	first := texts(rules, in.Buf(), record)
	if inf.header == HeaderAuto {
		inf.header = HeaderNo
		if looksLikeHeader(rules, first) {
			inf.header = HeaderYes
		}
	}
	if inf.header == HeaderYes {
		if err := checkNames(file.Path, first); err != nil {
			return err
		}
	}
	columns, ok := inf.place(first)
	if !ok {
		return nil // reading it will say what is wrong
	}
	if inf.header == HeaderYes {
		if record, err = s.record(); err != nil {
			return err
		}
	}
	for ; record != nil && inf.records < sampleRecords; inf.records++ {
		inf.add(rules, in.Buf(), record, columns)
		if record, err = s.record(); err != nil {
			return err
		}
	}
	return nil
}

// place finds the column of each field of a file that begins with record first: -1 for
// a field that is lost, as when reading. ok is false for a file with other columns
// where that is an error.
func (inf *inference) place(first []string) (columns []int, ok bool) {
	names := numberedNames(len(first))
	if inf.header == HeaderYes {
		names = columnNames(first)
	}
	isFirst := inf.names == nil
	columns = make([]int, len(names))
	for i, name := range names {
		c, _ := inf.places.Find(name)
		switch {
		case c >= 0:
		case !isFirst && inf.isSpelling(first[i]):
			c = inf.spelt(first, i)
		case isFirst || inf.f.opts.UnionByName && inf.header == HeaderYes:
			c = len(inf.names)
			inf.places.Add(name)
			inf.names = append(inf.names, name)
			inf.kinds = append(inf.kinds, 0)
			if inf.header == HeaderYes && first[i] != "" && first[i] != name {
				inf.written[name] = first[i]
			}
		case inf.header == HeaderYes:
			return nil, false
		}
		columns[i] = c
	}
	return columns, true
}

// isSpelling says whether a name in a header is that of a column of earlier files, be it in
// other letters: of fields whose names are alike an exact match is meant, and no other is a
// column of its own.
func (inf *inference) isSpelling(name string) bool {
	_, n := inf.places.Find(name)
	return inf.header == HeaderYes && n > 0
}

// spelt is the column that field i is read as which shares its name with others of its
// file: the one of exactly that name, -1 if there is none.
func (inf *inference) spelt(header []string, i int) int {
	c, _ := inf.places.Find(header[i])
	if c < 0 || inf.names[c] != header[i] || slices.Contains(header[:i], header[i]) || slices.Contains(header[i+1:], header[i]) {
		return -1
	}
	return c
}

// add notes what the fields of a record can be.
func (inf *inference) add(rules *cells.Rules, buf []byte, record []cells.Cell, columns []int) {
	for i, c := range record {
		if i >= len(columns) || columns[i] < 0 {
			continue
		}
		kinds := &inf.kinds[columns[i]]
		s, e := c.Span()
		text := buf[s:e]
		if len(text) == 0 || !c.IsQuoted() && inf.f.opts.NullValue != "" && string(text) == inf.f.opts.NullValue {
			continue
		}
		if !kinds.IsText() {
			kinds.Add(rules.Classify(text))
		}
	}
}

// Pin decides about a header where columns are declared: in the first file that has
// a record.
func (f *format) Pin(files []codec.File, schema codec.Columns) (map[string]string, error) {
	if f.opts.Header != HeaderAuto && !f.opts.sniffs() {
		return nil, nil
	}
	f, err := f.settled(files)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if file.Size == 0 {
			continue
		}
		file.Hash = nil
		sc, err := f.newScan(file, schema, connector.ScanRequest{})
		if err != nil {
			return nil, err
		}
		in, err := sc.input(codec.Range{End: file.Size})
		if err != nil {
			return nil, err
		}
		record, err := newScanner(&sc.d, in).record()
		var first []string
		if record != nil {
			first = texts(sc.rules, in.Buf(), record)
		}
		in.Close()
		if err != nil {
			return nil, err
		}
		if first == nil {
			continue
		}
		if sc.isHeader(first) {
			return f.pinned(HeaderYes), nil
		}
		return f.pinned(HeaderNo), nil
	}
	return nil, nil
}
