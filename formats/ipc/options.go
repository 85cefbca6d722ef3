package ipc

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// Compression is how the buffers of a written file are compressed. All there is can be
// read.
type Compression uint8

// The compressions of buffers.
const (
	Uncompressed Compression = iota // the default: other programs may map such files
	LZ4
	Zstd
)

func (c Compression) String() string { return [...]string{"none", "lz4", "zstd"}[c] }

// Options of the format. The zero value reads any file and writes without compression.
type Options struct {
	// Mode says what happens to a damaged file: with codec.Drop it is left out and
	// counted, otherwise it is an error. With Drop every file is decoded once before
	// it is read, so that no part of a damaged one comes out.
	Mode codec.Mode
	// TimeZone is what timestamps without a zone are read in; nil is UTC.
	TimeZone *time.Location
	// Compression of written files.
	Compression Compression
}

// Validate says what is wrong with o.
func (o Options) Validate() error {
	switch {
	case o.Mode > codec.Fail:
		return fmt.Errorf("mode %d is unknown", o.Mode)
	case o.Compression > Zstd:
		return fmt.Errorf("compression %d is unknown", o.Compression)
	}
	return nil
}

// Keys are the options that mean something when reading.
func Keys() []string { return []string{"mode", "time_zone"} }

// WriteKeys are those that mean something when writing.
func WriteKeys() []string { return []string{"compression"} }

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
		connector.FuncKey("compression", "lz4, zstd or none", func(text string) error {
			return o.Compression.parse(text)
		}))
	return o, err
}

func (c *Compression) parse(text string) error {
	switch strings.ToLower(text) {
	case "none", "uncompressed", "auto", "":
		*c = Uncompressed
	case "lz4":
		*c = LZ4
	case "zstd", "zst":
		*c = Zstd
	default:
		return fmt.Errorf("it takes lz4, zstd or none")
	}
	return nil
}
