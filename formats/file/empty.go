package file

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
)

// columns are those that a reader finds in the output: what partition_by names, folders,
// comes last, since it is taken from the folders. They are nil if they are not known.
func (s *Sink) columns() (columns *arrow.Schema, folders []string) {
	if s.env.Columns == nil {
		return nil, nil
	}
	at, err := partitionColumns(s.env.Columns, s.options.PartitionBy)
	if err != nil {
		return nil, nil // writing the first batch will say so
	}
	var content, last []arrow.Field
	for i, f := range s.env.Columns.Fields() {
		if !slices.Contains(at, i) {
			content = append(content, columnar.Field(f.Name, f.Type))
		}
	}
	for _, i := range at {
		f := s.env.Columns.Field(i)
		last, folders = append(last, columnar.Field(f.Name, f.Type)), append(folders, f.Name)
	}
	return arrow.NewSchema(append(content, last...), nil), folders
}

// emptyOutput says whether a table is the output of a query that has no rows yet, of which
// the query told what its rows will be.
func (p *opening) emptyOutput(ctx context.Context) (id identity, ok bool, err error) {
	if !p.bounded {
		return id, false, nil
	}
	if files, err := p.list(ctx); err != nil || len(files) > 0 {
		return id, false, err
	}
	id, ok, err = readIdentity(p.o.env.FS, p.o.options.Path)
	if errors.Is(err, errCorrupt) {
		return id, false, nil // its writer will say so
	}
	return id, ok && id.Format != "" && id.Columns != "", err
}

// settle makes the choices of the format that could not be made when the table was opened,
// since there was no file.
func (t *Table) settle(files []foundFile) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.o.layout.declared || t.o.hasFormatPins() {
		return nil
	}
	if _, ok := t.o.layout.format.(codec.Pinner); !ok {
		return nil
	}
	_, err := t.o.pinBy(slices.Values(files))
	return err
}
