package formats

import (
	"fmt"
	"strconv"

	"github.com/tidemill/tidemill/formats/avro"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/formats/ipc"
	"github.com/tidemill/tidemill/formats/json"
	"github.com/tidemill/tidemill/formats/parquet"
	"github.com/tidemill/tidemill/formats/text"
)

// OptionsOf is the format that a format's Options belong to, and what they say beside
// the defaults as the strings of WITH (…). v is csv.Options, json.Options,
// parquet.Options, text.Options, ipc.Options, avro.Options, or nil: no format and no options. Locations are the
// session's and left out.
func OptionsOf(v any) (format string, options map[string]string, err error) {
	o := optionStrings{}
	switch x := v.(type) {
	case nil:
		return "", o, nil
	case csv.Options:
		if err := x.Validate(); err != nil {
			return "", nil, err
		}
		o.csv(x)
		return "csv", o, nil
	case json.Options:
		o.flag("multiline", x.Multiline)
		o.common(x.Encoding, x.Mode, x.CorruptColumn, x.TimestampFormat, x.DateFormat)
		o.compression(x.Compression)
		o.number("compression_level", x.CompressionLevel)
		return "json", o, nil
	case text.Options:
		o.common(x.Encoding, x.Mode, "", "", "")
		o.compression(x.Compression)
		o.number("compression_level", x.CompressionLevel)
		return "text", o, nil
	case parquet.Options:
		if err := x.Validate(); err != nil {
			return "", nil, err
		}
		o.mode(x.Mode)
		if x.Compression != parquet.Snappy {
			o["compression"] = x.Compression.String()
		}
		o.number("row_group_rows", x.RowGroupRows)
		o.number("compression_level", x.CompressionLevel)
		return "parquet", o, nil
	case ipc.Options:
		if err := x.Validate(); err != nil {
			return "", nil, err
		}
		o.mode(x.Mode)
		if x.Compression != ipc.Uncompressed {
			o["compression"] = x.Compression.String()
		}
		return "arrow", o, nil
	case avro.Options:
		if err := x.Validate(); err != nil {
			return "", nil, err
		}
		o.mode(x.Mode)
		if x.Compression != avro.Snappy {
			o["compression"] = x.Compression.String()
		}
		o.number("compression_level", x.CompressionLevel)
		return "avro", o, nil
	}
	return "", nil, fmt.Errorf("%T is not the Options of a format; use csv.Options, json.Options, parquet.Options, text.Options, ipc.Options or avro.Options", v)
}

// optionStrings are options that differ from the defaults.
type optionStrings map[string]string

func (o optionStrings) text(key, value string) {
	if value != "" {
		o[key] = value
	}
}

func (o optionStrings) number(key string, value int) {
	if value != 0 {
		o[key] = strconv.Itoa(value)
	}
}

func (o optionStrings) flag(key string, value bool) {
	if value {
		o[key] = "true"
	}
}

func (o optionStrings) mode(m codec.Mode) {
	if m != codec.Permissive {
		o["mode"] = [...]string{"permissive", "drop", "fail"}[m]
	}
}

func (o optionStrings) compression(c codec.Compression) {
	if c != 0 {
		o["compression"] = c.String()
	}
}

func (o optionStrings) common(e codec.Encoding, m codec.Mode, corrupt, timestamp, date string) {
	if e.IsStated() {
		o["encoding"] = e.String()
	}
	o.mode(m)
	o.text("corrupt_column", corrupt)
	o.text("timestamp_format", timestamp)
	o.text("date_format", date)
}

func (o optionStrings) csv(x csv.Options) {
	switch x.Header {
	case csv.HeaderYes:
		o["header"] = "true"
	case csv.HeaderNo:
		o["header"] = "false"
	}
	o.text("delimiter", x.Delimiter)
	o.text("quote", x.Quote)
	if x.NoQuote {
		o["quote"] = ""
	}
	o.text("escape", x.Escape)
	o.text("comment", x.Comment)
	o.text("thousands", x.Thousands)
	o.text("null_value", x.NullValue)
	o.flag("union_by_name", x.UnionByName)
	o.common(x.Encoding, x.Mode, x.CorruptColumn, x.TimestampFormat, x.DateFormat)
	o.compression(x.Compression)
	o.number("compression_level", x.CompressionLevel)
}
