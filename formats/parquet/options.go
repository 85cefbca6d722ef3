package parquet

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// Compression is the codec of a written file's pages.
type Compression uint8

// The codecs a file is written with. All that Parquet has can be read, except LZO.
const (
	Snappy Compression = iota // the default
	Uncompressed
	Zstd
	Gzip
)

// Options of the format. The zero value reads any file and writes Snappy.
type Options struct {
	// Mode says what happens to a damaged file: with codec.Drop it is left out and
	// counted, otherwise it is an error. With Drop every file is decoded once before
	// it is read, so that no part of a damaged one comes out.
	Mode codec.Mode
	// TimeZone is what timestamps without zone (isAdjustedToUTC = false) are read in;
	// nil is UTC.
	TimeZone *time.Location
	// Compression of written files.
	Compression Compression
	// CompressionLevel of zstd and gzip: 0 is the usual one (see codec.MaxLevel).
	CompressionLevel int
	// RowGroupRows is how many rows a row group of a written file has at most; 0 is
	// DefaultRowGroupRows.
	RowGroupRows int
}

// DefaultRowGroupRows is the number of rows of a row group.
const DefaultRowGroupRows = 256 << 10

// Validate says what is wrong with o.
func (o Options) Validate() error {
	switch {
	case o.Mode > codec.Fail:
		return fmt.Errorf("mode %d is unknown", o.Mode)
	case o.Compression > Gzip:
		return fmt.Errorf("compression %d is unknown", o.Compression)
	case o.CompressionLevel < 0 || o.CompressionLevel > codec.MaxLevel:
		return fmt.Errorf("compression_level is %d, it must be from 1 to %d", o.CompressionLevel, codec.MaxLevel)
	case o.RowGroupRows < 0:
		return fmt.Errorf("row_group_rows is %d, it must be positive", o.RowGroupRows)
	}
	return nil
}

// ParseOptions decodes options given as text (SQL, command line). An unknown key or a text
// that is none of its values is a *connector.OptionError.
func ParseOptions(options map[string]string) (Options, error) {
	var o Options
	rows := int64(0)
	err := connector.Decode(options,
		codec.ModeKey(&o.Mode),
		connector.FuncKey("time_zone", "the name of a time zone", func(text string) (err error) {
			o.TimeZone, err = columnar.LoadZone(text)
			return err
		}),
		connector.FuncKey("compression", "a compression", func(text string) error {
			return o.Compression.parse(text)
		}),
		codec.LevelKey(&o.CompressionLevel),
		connector.IntKey("row_group_rows", &rows, 1))
	o.RowGroupRows = int(rows)
	return o, err
}

func (c *Compression) parse(text string) error {
	switch strings.ToLower(text) {
	case "snappy", "auto", "":
		*c = Snappy
	case "none", "uncompressed":
		*c = Uncompressed
	case "zstd", "zst":
		*c = Zstd
	case "gzip", "gz":
		*c = Gzip
	default:
		return fmt.Errorf("it takes snappy, zstd, gzip or none")
	}
	return nil
}
