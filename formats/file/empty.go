package file

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// columns are those that a reader finds in the output: what partition_by names comes last,
// since it is taken from the folders.
func (s *Sink) columns() string {
	if s.env.Columns == nil {
		return ""
	}
	at, err := partitionColumns(s.env.Columns, s.options.PartitionBy)
	if err != nil {
		return "" // writing the first batch will say so
	}
	var content, folders []arrow.Field
	for i, f := range s.env.Columns.Fields() {
		if !slices.Contains(at, i) {
			content = append(content, f)
		}
	}
	for _, i := range at {
		folders = append(folders, s.env.Columns.Field(i))
	}
	return connector.EncodeSchema(arrow.NewSchema(append(content, folders...), nil))
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
	_, err := t.o.pinBy(files)
	return err
}
