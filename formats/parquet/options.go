package parquet

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
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
	case o.RowGroupRows < 0:
		return fmt.Errorf("row_group_rows is %d, it must be positive", o.RowGroupRows)
	}
	return nil
}

// Keys are the option names ParseOptions knows.
func Keys() []string { return []string{"mode", "compression", "row_group_rows", "time_zone"} }

// ParseOptions decodes options given as text (SQL, command line). An unknown key is
// an error that names the nearest known one.
func ParseOptions(options map[string]string) (Options, error) {
	var o Options
	for key, value := range options {
		var err error
		switch strings.ToLower(key) {
		case "mode":
			o.Mode, err = parseMode(value)
		case "compression":
			o.Compression, err = parseCompression(value)
		case "row_group_rows":
			o.RowGroupRows, err = strconv.Atoi(value)
			if err != nil || o.RowGroupRows <= 0 {
				err = fmt.Errorf("row_group_rows is %q, it must be a positive number", value)
			}
		case "time_zone":
			o.TimeZone, err = time.LoadLocation(value)
			if err != nil {
				err = fmt.Errorf("time_zone %q is unknown", value)
			}
		default:
			err = fmt.Errorf("unknown option %q of format parquet%s", key, columnar.DidYouMean(key, Keys()))
		}
		if err != nil {
			return Options{}, err
		}
	}
	return o, nil
}

func parseMode(text string) (codec.Mode, error) {
	switch strings.ToLower(text) {
	case "permissive":
		return codec.Permissive, nil
	case "drop":
		return codec.Drop, nil
	case "fail":
		return codec.Fail, nil
	}
	return 0, fmt.Errorf("mode is %q, it must be permissive, drop or fail", text)
}

func parseCompression(text string) (Compression, error) {
	switch strings.ToLower(text) {
	case "snappy", "auto", "":
		return Snappy, nil
	case "none", "uncompressed":
		return Uncompressed, nil
	case "zstd", "zst":
		return Zstd, nil
	case "gzip", "gz":
		return Gzip, nil
	}
	return 0, fmt.Errorf("compression is %q, for parquet it must be snappy, zstd, gzip or none", text)
}
