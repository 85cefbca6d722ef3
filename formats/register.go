package formats

import (
	"cmp"
	"context"
	"strings"

	"github.com/tidemill/tidemill/formats/avro"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/console"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/formats/file"
	"github.com/tidemill/tidemill/formats/ipc"
	"github.com/tidemill/tidemill/formats/json"
	"github.com/tidemill/tidemill/formats/memory"
	"github.com/tidemill/tidemill/formats/noop"
	"github.com/tidemill/tidemill/formats/parquet"
	"github.com/tidemill/tidemill/formats/rate"
	"github.com/tidemill/tidemill/formats/text"
	"github.com/tidemill/tidemill/logical/connector"
)

// NewRegistry has every format and connector. Rows of memory sinks and streams are in
// store.
func NewRegistry(store *memory.Store) *connector.Registry {
	r := &connector.Registry{}
	files := Files()
	for _, c := range []connector.Connector{
		Filesystem(files), memory.Connector(store), rate.Connector(), console.Connector(), noop.Connector(),
	} {
		if err := r.Add(c); err != nil {
			panic("bug: " + err.Error())
		}
	}
	r.AddFormats(files.Names()...)
	return r
}

// Filesystem is the connector filesystem over the given formats.
func Filesystem(files file.Formats) connector.Connector {
	return connector.Connector{
		Name: "filesystem",
		Doc:  "files: a file, a directory or a glob; an output directory",
		Table: func(ctx context.Context, env connector.Env) (connector.Table, error) {
			return orNil[connector.Table](file.OpenTable(ctx, files, env))
		},
		Discover: func(ctx context.Context, env connector.Env) (connector.Discovery, error) {
			return file.Discover(ctx, files, env)
		},
		Source: func(ctx context.Context, env connector.Env) (connector.Source, error) {
			return orNil[connector.Source](file.OpenSource(ctx, files, env))
		},
		Sink: func(ctx context.Context, env connector.Env) (connector.Sink, error) {
			return orNil[connector.Sink](file.OpenSink(ctx, files, env))
		},
		CheckSink: func(env connector.Env) error { return file.CheckSink(files, env) },
	}
}

// orNil keeps a nil pointer from becoming an interface that is not nil.
func orNil[I any, T any](v *T, err error) (I, error) {
	if err != nil {
		var none I
		return none, err
	}
	return any(v).(I), nil
}

// Files are the file formats.
func Files() file.Formats {
	return file.Formats{
		{
			Name: "csv", Extensions: []string{".csv", ".tsv"},
			ReadKeys: csv.Keys(), WriteKeys: csv.WriteKeys(),
			New: func(env file.FormatEnv) (codec.Format, error) {
				o, err := csv.ParseOptions(env.Options)
				if err != nil {
					return nil, err
				}
				switch {
				case env.Writing && o.Delimiter == "" && env.Extension == ".tsv":
					o.Delimiter = "\t"
				case env.Writing && strings.EqualFold(o.Delimiter, "auto"):
					return nil, &connector.OptionError{Key: "delimiter", Value: o.Delimiter, HasValue: true, Reason: "there is nothing to find it out from when writing; name it"}
				}
				o.Location = env.Location
				return made(env, o.Compression, o.CompressionLevel, csv.New, o)
			},
		},
		{
			Name: "json", Extensions: []string{".json", ".jsonl", ".ndjson"},
			ReadKeys: json.Keys(), WriteKeys: json.WriteKeys(),
			New: func(env file.FormatEnv) (codec.Format, error) {
				o, err := json.ParseOptions(env.Options)
				if err != nil {
					return nil, err
				}
				o.Location = env.Location
				return made(env, o.Compression, o.CompressionLevel, json.New, o)
			},
		},
		{
			Name: "parquet", Extensions: []string{".parquet"},
			ReadKeys: []string{"mode", "time_zone", "union_by_name"}, WriteKeys: []string{"compression", "compression_level", "row_group_rows"},
			New: newParquet, RowCount: parquet.RowCount,
		},
		{
			Name: "arrow", Extensions: []string{".arrow", ".feather"},
			ReadKeys: append(ipc.Keys(), "union_by_name"), WriteKeys: ipc.WriteKeys(),
			New: newArrow, RowCount: ipc.RowCount,
		},
		{
			Name: "avro", Extensions: []string{".avro"},
			ReadKeys: append(avro.Keys(), "union_by_name"), WriteKeys: avro.WriteKeys(),
			New: newAvro, RowCount: avro.RowCount,
		},
		{
			Name: "text", Extensions: []string{".txt", ".log"},
			ReadKeys: text.Keys(), WriteKeys: text.WriteKeys(),
			New: func(env file.FormatEnv) (codec.Format, error) {
				o, err := text.ParseOptions(env.Options)
				if err != nil {
					return nil, err
				}
				return made(env, o.Compression, o.CompressionLevel, text.New, o)
			},
		},
	}
}

// made makes a text format, unless its files were to be written in a compression that can
// only be read, or has no levels.
func made[O any](env file.FormatEnv, c codec.Compression, level int, create func(O) (codec.Format, error), o O) (codec.Format, error) {
	if env.Writing {
		if err := cmp.Or(c.CheckWritable(), c.CheckLevel(level)); err != nil {
			return nil, err
		}
	}
	return create(o)
}

// byName takes union_by_name out of the options of a format whose columns are always
// found by name.
func byName(options map[string]string) (map[string]string, error) {
	rest := map[string]string{}
	for k, v := range options {
		if k != "union_by_name" {
			rest[k] = v
			continue
		}
		if _, err := connector.ParseBool(v); err != nil {
			return nil, &connector.OptionError{Key: k, Value: v, HasValue: true, Reason: "it takes true or false"}
		}
	}
	return rest, nil
}

// newArrow makes the format arrow.
func newArrow(env file.FormatEnv) (codec.Format, error) {
	options, err := byName(env.Options)
	if err != nil {
		return nil, err
	}
	o, err := ipc.ParseOptions(options)
	if err != nil {
		return nil, err
	}
	if o.TimeZone == nil {
		o.TimeZone = env.Location
	}
	return ipc.New(o)
}

// newAvro makes the format avro.
func newAvro(env file.FormatEnv) (codec.Format, error) {
	options, err := byName(env.Options)
	if err != nil {
		return nil, err
	}
	o, err := avro.ParseOptions(options)
	if err != nil {
		return nil, err
	}
	if o.TimeZone == nil {
		o.TimeZone = env.Location
	}
	if err := codec.CheckLevel(o.CompressionLevel, o.Compression.String(), avro.Deflate.String(), avro.Zstd.String()); err != nil {
		return nil, err
	}
	return avro.New(o)
}

// newParquet makes the format parquet.
func newParquet(env file.FormatEnv) (codec.Format, error) {
	options, err := byName(env.Options)
	if err != nil {
		return nil, err
	}
	o, err := parquet.ParseOptions(options)
	if err != nil {
		return nil, err
	}
	if o.TimeZone == nil {
		o.TimeZone = env.Location
	}
	if err := codec.CheckLevel(o.CompressionLevel, o.Compression.String(), parquet.Zstd.String(), parquet.Gzip.String()); err != nil {
		return nil, err
	}
	return parquet.New(o)
}
