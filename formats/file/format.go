package file

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// Format says how a file format is found and made.
type Format struct {
	Name string
	// Extensions are the endings that mean this format, with their dot, in lower
	// case, without compression: .csv, .tsv.
	Extensions []string
	// ReadKeys and WriteKeys are the options it understands.
	ReadKeys, WriteKeys []string
	// New makes the format from its options.
	New func(env FormatEnv) (codec.Format, error)
	// RowCount is the number of rows of a file where it is known without reading it;
	// may be nil.
	RowCount func(f codec.File) (int64, error)
}

// FormatEnv is what a format is made from.
type FormatEnv struct {
	Options map[string]string // keys as in ReadKeys or WriteKeys
	// Extension is the ending, in lower case and without compression, by which the
	// format was found; "" if it was stated. Some formats have one with other
	// defaults (.tsv).
	Extension string
	// Declared columns of a table or stream; nil if they are inferred, and for sinks.
	Declared *arrow.Schema
	Location *time.Location // session time zone; nil is UTC
	Writing  bool
}

// Formats are the file formats a filesystem connector knows.
type Formats []Format

// splitExtension is the ending of a file name, in lower case, without what
// compression added.
func splitExtension(name string) (ext string) {
	name = strings.ToLower(path.Base(name))
	ext = path.Ext(name)
	if codec.CompressionOf(name) != codec.CompressionNone {
		ext = path.Ext(strings.TrimSuffix(name, ext))
	}
	return ext
}

// byExtension finds the format that a file name means.
func (fs Formats) byExtension(name string) (f Format, ext string, ok bool) {
	ext = splitExtension(name)
	for _, f := range fs {
		if slices.Contains(f.Extensions, ext) {
			return f, ext, true
		}
	}
	return Format{}, "", false
}

// byName finds the format called name.
func (fs Formats) byName(name string) (Format, error) {
	for _, f := range fs {
		if strings.EqualFold(f.Name, name) || slices.Contains(f.Extensions, "."+strings.ToLower(name)) {
			return f, nil
		}
	}
	return Format{}, &connector.OptionError{Key: "format", Value: name, HasValue: true,
		Reason: "there is no such format" + columnar.DidYouMean(name, fs.Names())}
}

// Names lists the formats.
func (fs Formats) Names() []string {
	var names []string
	for _, f := range fs {
		names = append(names, f.Name)
	}
	return names
}

// extensions lists every ending of a data file, for messages.
func (fs Formats) extensions() string {
	var list []string
	for _, f := range fs {
		list = append(list, f.Extensions...)
	}
	return strings.Join(list, " ")
}

// unknownOption explains a key that neither the connector nor format f takes.
func (fs Formats) unknownOption(key string, own []string, f Format, writing bool) error {
	var users []string
	known := slices.Clone(own)
	for _, g := range fs {
		if slices.ContainsFunc(g.keys(writing), func(k string) bool { return strings.EqualFold(k, key) }) {
			users = append(users, g.Name)
		}
		if g.Name == f.Name {
			known = append(known, g.keys(writing)...)
		}
	}
	switch {
	case len(users) == 1:
		return &connector.OptionError{Key: key, Reason: fmt.Sprintf("format %s has no such option (%s has)", f.Name, users[0])}
	case len(users) > 1:
		return &connector.OptionError{Key: key, Reason: fmt.Sprintf("format %s has no such option (%s have)", f.Name, strings.Join(users, ", "))}
	case slices.ContainsFunc(f.keys(!writing), func(k string) bool { return strings.EqualFold(k, key) }):
		return &connector.OptionError{Key: key, Reason: fmt.Sprintf("format %s has it %s", f.Name, map[bool]string{true: "for reading only", false: "for writing only"}[writing])}
	}
	return &connector.OptionError{Key: key, Reason: "there is no such option" + columnar.DidYouMean(key, known)}
}

func (f Format) keys(writing bool) []string {
	if writing {
		return f.WriteKeys
	}
	return f.ReadKeys
}

// split divides options into the connector's and the rest. Keys of own come back in
// the spelling of own.
func split(options map[string]string, own []string) (mine, rest map[string]string) {
	mine, rest = map[string]string{}, map[string]string{}
	for k, v := range options {
		i := slices.IndexFunc(own, func(o string) bool { return strings.EqualFold(o, k) })
		if i >= 0 {
			mine[own[i]] = v
		} else {
			rest[k] = v
		}
	}
	return mine, rest
}

// make makes format f from the options that are not the connector's.
func (fs Formats) make(f Format, ext string, rest map[string]string, own []string, env *connector.Env, writing bool) (codec.Format, error) {
	options := map[string]string{}
	keys := f.keys(writing)
	for _, k := range slices.Sorted(maps.Keys(rest)) {
		i := slices.IndexFunc(keys, func(o string) bool { return strings.EqualFold(o, k) })
		if i < 0 {
			return nil, fs.unknownOption(k, own, f, writing)
		}
		options[keys[i]] = rest[k]
	}
	fe := FormatEnv{Options: options, Extension: ext, Location: env.Location, Writing: writing}
	if !writing {
		fe.Declared = env.Columns
	}
	return f.New(fe)
}

// isData says whether a name ends as a data file does, compressed or not.
func (fs Formats) isData(name string) bool {
	_, _, ok := fs.byExtension(name)
	return ok
}
