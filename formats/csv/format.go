package csv

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// format implements codec.Format.
type format struct {
	opts    Options
	sniffed bool // the delimiter was found out
}

// New makes the format; an error is a *connector.OptionError.
func New(opts Options) (codec.Format, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	return &format{opts: opts}, nil
}

func (f *format) Name() string { return "csv" }

// CorruptColumn implements codec.CorruptColumn.
func (f *format) CorruptColumn() string { return f.opts.CorruptColumn }

// Extension is .csv, or .tsv for a tab, with the ending of the compression.
func (f *format) Extension() string {
	ext := ".csv"
	if f.opts.isTSV() {
		ext = ".tsv"
	}
	return ext + f.opts.Compression.Extension()
}

// Dialect implements codec.Dialect.
func (f *format) Dialect() (options map[string]string, named bool) {
	o := &f.opts
	named = o.Header != HeaderNo
	options = map[string]string{"header": strconv.FormatBool(named)}
	if o.NoQuote {
		options["quote"] = ""
	}
	for k, v := range map[string]string{
		"delimiter": o.Delimiter, "quote": o.Quote, "escape": o.Escape, "null_value": o.NullValue,
		"timestamp_format": o.TimestampFormat, "date_format": o.DateFormat,
	} {
		if v != "" {
			options[k] = v
		}
	}
	return options, named
}

// WithPinned takes the choices Infer or Pin made: header and delimiter.
func (f *format) WithPinned(pinned map[string]string) (codec.Format, error) {
	opts := f.opts
	for k, v := range pinned {
		switch k {
		case "delimiter":
			opts.Delimiter = v
		case "header":
			if err := opts.setHeader(v); err != nil {
				return nil, fmt.Errorf("pinned header %q: %w", v, err)
			}
		default:
			return nil, fmt.Errorf("format csv pins no option %q", k)
		}
	}
	return New(opts)
}

// extension is the ending of a file's name without what compression added.
func extension(name string) string {
	name = strings.ToLower(name)
	if c := codec.CompressionOf(name); c != codec.CompressionNone {
		name = strings.TrimSuffix(name, c.Extension())
	}
	return path.Ext(name)
}

// Units divides f into ranges that are read apart.
func (f *format) Units(ctx context.Context, file codec.File, schema codec.Columns, req connector.ScanRequest) ([]connector.Unit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	scan, err := f.newScan(file, schema, req)
	if err != nil {
		return nil, err
	}
	ranges, err := codec.Ranges(file, f.opts.Compression, f.opts.Encoding, req.SplitBytes, func([]byte) bool {
		return len(scan.d.delimiter) == 1 && scan.d.comment == 0
	})
	if err != nil {
		return nil, err
	}
	scan.chain = newChain(file, &scan.d, ranges)
	scan.drift = codec.NewDrift(file, schema, len(ranges))
	units := make([]connector.Unit, len(ranges))
	for i, r := range ranges {
		units[i] = &unit{scan: scan, index: i, r: r}
	}
	return units, nil
}

// unit is one range of a file.
type unit struct {
	scan  *scan
	index int
	r     codec.Range
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
