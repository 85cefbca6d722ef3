package codec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tidemill/tidemill/logical/connector"
)

// MaxLevel is the highest compression_level; 0 is each compression's own.
const MaxLevel = 22

// LevelKey is the option compression_level.
func LevelKey(p *int) connector.Key {
	return connector.FuncKey("compression_level", "a level", func(text string) error {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > MaxLevel {
			return fmt.Errorf("it takes a number from 1, fast, to %d, small", MaxLevel)
		}
		*p = n
		return nil
	})
}

// CheckLevel refuses a compression_level where the compression has no levels; with are
// those that have some. The error is a *connector.OptionError.
func CheckLevel(level int, compression string, with ...string) error {
	if level == 0 || slices.Contains(with, compression) {
		return nil
	}
	return &connector.OptionError{Key: "compression_level", Value: strconv.Itoa(level), HasValue: true,
		Reason: fmt.Sprintf("compression %s has no levels; %s have", compression, strings.Join(with, ", "))}
}

// ReadNames are the names of the options of a text format that mean something when
// reading: all but the level.
func ReadNames(keys []connector.Key) []string {
	return slices.DeleteFunc(connector.Names(keys), func(name string) bool { return name == "compression_level" })
}

// GzipLevel is a compression_level as gzip has it.
func GzipLevel(level int) int {
	if level == 0 {
		return gzip.DefaultCompression
	}
	return min(level, gzip.BestCompression)
}

// ZstdLevel is a compression_level as our zstd has it, which knows four.
func ZstdLevel(level int) zstd.EncoderLevel {
	if level == 0 {
		return zstd.SpeedDefault
	}
	return zstd.EncoderLevelFromZstd(level)
}
