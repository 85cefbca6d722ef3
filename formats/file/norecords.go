package file

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// noRecords says why files were found but no columns: they hold nothing, or nothing that
// can be read. What mode makes an error of a query is one here.
func (o *opened) noRecords(ctx context.Context, files []foundFile) error {
	stats := &connector.ScanStats{}
	sampled := 0
	for _, f := range files {
		if f.Size == 0 {
			continue
		}
		if sampled++; sampled > sampleFiles || len(stats.Samples()) > 0 {
			break
		}
		if err := o.tryFile(ctx, f, stats); err != nil {
			return err
		}
	}
	why := "its files hold no records to find columns by"
	if bad := stats.Samples(); len(bad) > 0 {
		why += ": " + bad[0].Error()
	}
	return &connector.NoFilesError{Path: o.options.Path, Why: why}
}

// tryFile reads a file as if it had one column, for what is wrong with it.
func (o *opened) tryFile(ctx context.Context, f foundFile, stats *connector.ScanStats) error {
	content := codec.Columns{Declared: true, CorruptColumn: -1, Schema: arrow.NewSchema([]arrow.Field{columnar.Field("value", columnar.String)}, nil)}
	request := connector.ScanRequest{Mem: heap, Stats: stats}
	units, err := o.layout.format.Units(ctx, codec.File{FS: o.env.FS, FileIdentity: f.FileIdentity}, content, request)
	if err != nil {
		return err
	}
	for _, u := range units {
		if err := readThrough(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// readThrough reads a unit for its errors.
func readThrough(ctx context.Context, u connector.Unit) error {
	r, err := u.Open(ctx)
	if err != nil {
		return err
	}
	for err == nil {
		var b arrow.RecordBatch
		if b, err = r.Next(ctx); err == nil {
			b.Release()
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, r.Close())
}
