package json

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
	"github.com/tidemill/tidemill/logical/connector"
)

// format implements codec.Format.
type format struct {
	opts  Options
	rules *cells.Rules
}

// New makes the format; an error is a *connector.OptionError.
func New(opts Options) (codec.Format, error) {
	rules, err := opts.rules()
	if err != nil {
		return nil, err
	}
	return &format{opts: opts, rules: rules}, nil
}

func (f *format) Name() string { return "json" }

// ExactNames implements codec.ExactNames.
func (f *format) ExactNames() {}

// CorruptColumn implements codec.CorruptColumn.
func (f *format) CorruptColumn() string { return f.opts.CorruptColumn }

// Extension is .json with the ending of the compression.
func (f *format) Extension() string { return ".json" + f.opts.Compression.Extension() }

// WithPinned returns f: JSON makes no choices.
func (f *format) WithPinned(pinned map[string]string) (codec.Format, error) {
	for k := range pinned {
		return nil, fmt.Errorf("format json pins no option %q", k)
	}
	return f, nil
}

// Units divides a file of lines into ranges that are read apart.
func (f *format) Units(ctx context.Context, file codec.File, schema codec.Columns, req connector.ScanRequest) ([]connector.Unit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sc, err := f.newScan(file, schema, req)
	if err != nil {
		return nil, err
	}
	ranges, err := codec.Ranges(file, f.opts.Compression, f.opts.Encoding, req.SplitBytes, func(head []byte) bool {
		return !f.opts.Multiline && !isArray(head)
	})
	if err != nil {
		return nil, err
	}
	sc.drift = codec.NewDrift(file, schema, len(ranges))
	units := make([]connector.Unit, len(ranges))
	for i, r := range ranges {
		units[i] = &unit{scan: sc, r: r}
	}
	return units, nil
}

// isArray says whether the text of a file, which begins with head, is one array.
func isArray(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xEF\xBB\xBF"))
	head = bytes.TrimLeft(head, " \t\r\n")
	return len(head) > 0 && head[0] == '['
}

// unit is one range of a file.
type unit struct {
	scan *scan
	r    codec.Range
}

func (u *unit) Name() string {
	if !u.r.Divided {
		return u.scan.file.Path
	}
	return fmt.Sprintf("%s[%d:%d]", u.scan.file.Path, u.r.Start, u.r.End)
}

func (u *unit) Bytes() int64 { return u.r.End - u.r.Start }

func (u *unit) Open(ctx context.Context) (columnar.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return u.scan.open(u)
}
