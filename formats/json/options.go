package json

import (
	"time"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
	"github.com/tidemill/tidemill/logical/connector"
)

// Options are the options of the format. The zero value reads and writes lines.
type Options struct {
	// Multiline: objects may go over several lines. Files are not divided then.
	Multiline       bool
	Encoding        codec.Encoding
	TimestampFormat string // see cells.Pattern; "": ISO 8601
	DateFormat      string
	Mode            codec.Mode
	CorruptColumn   string
	Compression     codec.Compression
	// CompressionLevel of written files: 0 is the usual one (see codec.MaxLevel).
	CompressionLevel int
	// Location is the clock of timestamps without a zone; nil is UTC.
	Location *time.Location
}

// Keys are the options ParseOptions takes for reading.
func Keys() []string { return codec.ReadNames((&Options{}).keys()) }

// WriteKeys are those that mean something when writing.
func WriteKeys() []string { return []string{"compression", "compression_level"} }

func (o *Options) keys() []connector.Key {
	var byName bool // keys are always found by name
	return []connector.Key{
		connector.BoolKey("multiline", &o.Multiline),
		codec.EncodingKey(&o.Encoding),
		connector.FilledKey("timestamp_format", &o.TimestampFormat),
		connector.FilledKey("date_format", &o.DateFormat),
		codec.ModeKey(&o.Mode),
		connector.FilledKey("corrupt_column", &o.CorruptColumn),
		codec.CompressionKey(&o.Compression),
		codec.LevelKey(&o.CompressionLevel),
		connector.BoolKey("union_by_name", &byName),
	}
}

// ParseOptions decodes option strings; an unknown key or a text that is none of its
// values is a *connector.OptionError.
func ParseOptions(options map[string]string) (Options, error) {
	var o Options
	if err := connector.Decode(options, o.keys()...); err != nil {
		return Options{}, err
	}
	return o, o.Validate()
}

// Validate says what is wrong with o; the error is a *connector.OptionError.
func (o *Options) Validate() error {
	_, err := o.rules()
	return err
}

// rules says how values are read.
func (o *Options) rules() (*cells.Rules, error) {
	r := &cells.Rules{JSON: true, Location: o.Location}
	for _, f := range []struct {
		key, text string
		p         **cells.Pattern
	}{{"timestamp_format", o.TimestampFormat, &r.Timestamp}, {"date_format", o.DateFormat, &r.Date}} {
		if f.text == "" {
			continue
		}
		p, err := cells.ParsePattern(f.text)
		if err != nil {
			return nil, &connector.OptionError{Key: f.key, Value: f.text, HasValue: true, Reason: err.Error()}
		}
		*f.p = p
	}
	return r, nil
}
