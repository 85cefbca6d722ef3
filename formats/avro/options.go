package avro

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// Compression is the codec of a written file's blocks.
type Compression uint8

// The codecs a file is written with. Bzip2 and xz can be read, too.
const (
	Snappy Compression = iota // the default
	Uncompressed
	Deflate
	Zstd
)

func (c Compression) String() string { return [...]string{"snappy", "none", "deflate", "zstd"}[c] }

// Options of the format. The zero value reads any file and writes Snappy.
type Options struct {
	// Mode says what happens to a damaged file: with codec.Drop it is left out and
	// counted, otherwise it is an error. With Drop every file is decoded once before
	// it is read, so that no part of a damaged one comes out.
	Mode codec.Mode
	// TimeZone is what local timestamps are read in; nil is UTC.
	TimeZone *time.Location
	// Compression of written files.
	Compression Compression
	// CompressionLevel of deflate and zstd: 0 is the usual one (see codec.MaxLevel).
	CompressionLevel int
}

// Validate says what is wrong with o.
func (o Options) Validate() error {
	switch {
	case o.Mode > codec.Fail:
		return fmt.Errorf("mode %d is unknown", o.Mode)
	case o.Compression > Zstd:
		return fmt.Errorf("compression %d is unknown", o.Compression)
	case o.CompressionLevel < 0 || o.CompressionLevel > codec.MaxLevel:
		return fmt.Errorf("compression_level is %d, it must be from 1 to %d", o.CompressionLevel, codec.MaxLevel)
	}
	return nil
}

// Keys are the options that mean something when reading.
func Keys() []string { return []string{"mode", "time_zone"} }

// WriteKeys are those that mean something when writing.
func WriteKeys() []string { return []string{"compression", "compression_level"} }

// ParseOptions decodes option strings; an unknown key or a text that is none of its
// values is a *connector.OptionError.
func ParseOptions(options map[string]string) (Options, error) {
	var o Options
	err := connector.Decode(options,
		codec.ModeKey(&o.Mode),
		connector.FuncKey("time_zone", "the name of a time zone", func(text string) (err error) {
			o.TimeZone, err = columnar.LoadZone(text)
			return err
		}),
		connector.FuncKey("compression", "a compression", func(text string) error {
			return o.Compression.parse(text)
		}),
		codec.LevelKey(&o.CompressionLevel))
	return o, err
}

func (c *Compression) parse(text string) error {
	switch strings.ToLower(text) {
	case "snappy", "auto", "":
		*c = Snappy
	case "none", "uncompressed", "null":
		*c = Uncompressed
	case "deflate":
		*c = Deflate
	case "zstd", "zst", "zstandard":
		*c = Zstd
	default:
		return fmt.Errorf("it takes snappy, deflate, zstd or none")
	}
	return nil
}
