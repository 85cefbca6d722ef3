package csv

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
	"github.com/tidemill/tidemill/logical/connector"
)

// Header says whether files begin with the names of their columns.
type Header uint8

const (
	// HeaderAuto reads: decided by the first record of the first file that has one;
	// writes: a header.
	HeaderAuto Header = iota
	HeaderYes
	HeaderNo
)

// Options are the options of the format. The zero value reads and writes RFC 4180.
type Options struct {
	Header Header
	// Delimiter: "" is a comma, in files named .tsv a tab; "auto" is that of ,;| and tab
	// which the first file with records speaks for.
	Delimiter string
	Quote     string // "": a quotation mark
	NoQuote   bool   // no character quotes
	Escape    string // before a quote inside quotes; "": the quote itself
	// Comment begins lines that are no records; "": there are none such.
	Comment string
	// Thousands may stand between groups of three digits of a number; "": nothing may.
	Thousands string
	// NullValue is the unquoted text that stands for null; "": nothing.
	NullValue       string
	Encoding        codec.Encoding
	TimestampFormat string // see cells.Pattern; "": ISO 8601
	DateFormat      string
	Mode            codec.Mode
	CorruptColumn   string
	Compression     codec.Compression
	// CompressionLevel of written files: 0 is the usual one (see codec.MaxLevel).
	CompressionLevel int
	// UnionByName finds columns by the names in each file's header.
	UnionByName bool
	// Location is the clock of timestamps without a zone; nil is UTC.
	Location *time.Location
}

// Keys are the options ParseOptions takes for reading.
func Keys() []string { return codec.ReadNames((&Options{}).keys()) }

// WriteKeys are those that mean something when writing.
func WriteKeys() []string {
	return []string{"header", "delimiter", "quote", "escape", "null_value", "timestamp_format", "date_format", "compression", "compression_level"}
}

// keys are the options by the names CONTRACT gives them.
func (o *Options) keys() []connector.Key {
	var multiline bool // quoted line ends are always read
	return []connector.Key{
		connector.FuncKey("header", "auto, true or false", o.setHeader),
		connector.FilledKey("delimiter", &o.Delimiter),
		connector.FuncKey("quote", "a character", func(s string) error {
			o.Quote, o.NoQuote = s, s == ""
			return nil
		}),
		connector.TextKey("escape", &o.Escape),
		connector.TextKey("comment", &o.Comment),
		connector.TextKey("thousands", &o.Thousands),
		connector.TextKey("null_value", &o.NullValue),
		codec.EncodingKey(&o.Encoding),
		connector.FilledKey("timestamp_format", &o.TimestampFormat),
		connector.FilledKey("date_format", &o.DateFormat),
		codec.ModeKey(&o.Mode),
		connector.FilledKey("corrupt_column", &o.CorruptColumn),
		connector.BoolKey("multiline", &multiline),
		codec.CompressionKey(&o.Compression),
		codec.LevelKey(&o.CompressionLevel),
		connector.BoolKey("union_by_name", &o.UnionByName),
	}
}

func (o *Options) setHeader(s string) error {
	if strings.EqualFold(strings.TrimSpace(s), "auto") {
		o.Header = HeaderAuto
		return nil
	}
	yes, err := connector.ParseBool(s)
	if err != nil {
		return fmt.Errorf("it takes auto, true or false")
	}
	o.Header = HeaderNo
	if yes {
		o.Header = HeaderYes
	}
	return nil
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
	_, _, err := o.compile("")
	return err
}

// dialect is how fields and records are told apart.
type dialect struct {
	delimiter     []byte
	quote, escape byte // 0: none
	comment       byte // 0: none
}

// compile checks the options and prepares them for files whose name ends in ext.
func (o *Options) compile(ext string) (dialect, *cells.Rules, error) {
	d := dialect{delimiter: []byte{','}, quote: '"'}
	wrong := func(key, value, reason string) (dialect, *cells.Rules, error) {
		return d, nil, &connector.OptionError{Key: key, Value: value, HasValue: true, Reason: reason}
	}
	switch {
	case o.Delimiter != "" && !o.sniffs():
		d.delimiter = []byte(strings.ReplaceAll(o.Delimiter, `\t`, "\t"))
	case ext == ".tsv":
		d.delimiter = []byte{'\t'}
	}
	if strings.ContainsAny(string(d.delimiter), "\r\n") {
		return wrong("delimiter", o.Delimiter, "it holds a line end")
	}
	if !utf8.Valid(d.delimiter) {
		return wrong("delimiter", o.Delimiter, "it is not valid UTF-8")
	}
	if o.NoQuote {
		d.quote = 0
	} else if o.Quote != "" {
		if !isMark(o.Quote) {
			return wrong("quote", o.Quote, "it takes one ASCII character, or nothing for none")
		}
		d.quote = o.Quote[0]
	}
	d.escape = d.quote
	if o.Escape != "" {
		if !isMark(o.Escape) {
			return wrong("escape", o.Escape, "it takes one ASCII character")
		}
		d.escape = o.Escape[0]
	}
	if d.quote != 0 && strings.IndexByte(string(d.delimiter), d.quote) >= 0 {
		return wrong("quote", o.Quote, "the delimiter holds it")
	}
	if d.escape != d.quote && strings.IndexByte(string(d.delimiter), d.escape) >= 0 {
		return wrong("escape", o.Escape, "the delimiter holds it")
	}
	if strings.ContainsAny(o.NullValue, "\r\n") || o.NullValue != "" && strings.Contains(o.NullValue, string(d.delimiter)) {
		return wrong("null_value", o.NullValue, "it holds a delimiter or a line end")
	}
	if d.quote != 0 && strings.HasPrefix(o.NullValue, string(d.quote)) {
		return wrong("null_value", o.NullValue, "it begins with the quote, and only a text without quotes stands for null")
	}
	if o.Comment != "" {
		if !isMark(o.Comment) || o.Comment[0] == d.quote || o.Comment[0] == d.delimiter[0] {
			return wrong("comment", o.Comment, "it takes one ASCII character, neither the quote nor the delimiter")
		}
		d.comment = o.Comment[0]
	}
	rules := &cells.Rules{Quote: d.quote, Escape: d.escape, EmptyIsNull: o.NullValue == "", Location: o.Location}
	if o.Thousands != "" {
		if !isMark(o.Thousands) || strings.ContainsAny(o.Thousands, "0123456789+-.") {
			return wrong("thousands", o.Thousands, "it takes one ASCII character, such as a comma, that is no digit, sign or point")
		}
		rules.Thousands = o.Thousands[0]
	}
	var err error
	if o.TimestampFormat != "" {
		if rules.Timestamp, err = cells.ParsePattern(o.TimestampFormat); err != nil {
			return wrong("timestamp_format", o.TimestampFormat, err.Error())
		}
	}
	if o.DateFormat != "" {
		if rules.Date, err = cells.ParsePattern(o.DateFormat); err != nil {
			return wrong("date_format", o.DateFormat, err.Error())
		}
	}
	return d, rules, nil
}

// sniffs says whether the delimiter is to be found out.
func (o *Options) sniffs() bool { return strings.EqualFold(o.Delimiter, "auto") }

// isMark says whether s can be a quote or an escape.
func isMark(s string) bool {
	return len(s) == 1 && s[0] > 0 && s[0] < 0x80 && s[0] != '\n' && s[0] != '\r'
}

// isTSV says whether the delimiter is a tab.
func (o *Options) isTSV() bool { return o.Delimiter == "\t" || o.Delimiter == `\t` }
