package file

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// ChangedPolicy is what happens to a file rewritten under its path after it was read.
type ChangedPolicy uint8

const (
	ChangedError  ChangedPolicy = iota // an error that names the file
	ChangedIgnore                      // nothing
	ChangedReread                      // its rows are added again; none is taken back
)

// SamePolicy is what happens to a file with the content of one that was read.
type SamePolicy uint8

const (
	SameRead SamePolicy = iota
	SameSkip
)

// StartingFiles says which files a new query begins with.
type StartingFiles uint8

const (
	StartAll StartingFiles = iota
	StartNew               // only what lands from now on
)

// CleanPolicy is what happens to files once they were read.
type CleanPolicy uint8

const (
	CleanOff CleanPolicy = iota
	CleanArchive
	CleanDelete
)

// ReadOptions are the options of the filesystem connector for reading; those of the
// format stand beside them in the same WITH (…).
type ReadOptions struct {
	Path, Format string
	Recursive    bool // default true
	Hive         bool // default true
	Evolution    codec.Evolution
	Rescued      string // rescued_column; "": codec.DefaultRescued, of declared columns none

	MaxFiles, MaxBytes int64 // of one batch; 0: no limit
	LatestFirst        bool
	MaxFileAge         time.Duration // 0: no limit
	MinFileAge         time.Duration
	DoneMarker         string
	Starting           StartingFiles
	Changed            ChangedPolicy
	Same               SamePolicy
	Clean              CleanPolicy
	ArchiveDir         string
	RescanEvery        time.Duration
}

// keys are the options by name. connector, idle_after and max_future are the engine's, which
// looks at the latter two only where the stream has a watermark.
func (o *ReadOptions) keys() []connector.Key {
	ignored := func(string) error { return nil }
	var unused time.Duration
	return []connector.Key{
		connector.TextKey("path", &o.Path),
		connector.FilledKey("format", &o.Format),
		connector.BoolKey("recursive", &o.Recursive),
		connector.BoolKey("hive_partitioning", &o.Hive),
		connector.EnumKey("schema_evolution", &o.Evolution, "fail", "ignore", "add", "rescue"),
		connector.FilledKey("rescued_column", &o.Rescued),
		connector.IntKey("max_files_per_trigger", &o.MaxFiles, 1),
		connector.BytesKey("max_bytes_per_trigger", &o.MaxBytes),
		connector.BoolKey("latest_first", &o.LatestFirst),
		connector.PeriodKey("max_file_age", &o.MaxFileAge),
		connector.DurationKey("min_file_age", &o.MinFileAge),
		connector.FilledKey("done_marker", &o.DoneMarker),
		connector.EnumKey("starting_files", &o.Starting, "all", "new"),
		connector.EnumKey("changed_files", &o.Changed, "error", "ignore", "reread"),
		connector.EnumKey("same_content", &o.Same, "read", "skip"),
		connector.EnumKey("clean_source", &o.Clean, "off", "archive", "delete"),
		connector.FilledKey("archive_dir", &o.ArchiveDir),
		connector.PeriodKey("rescan_every", &o.RescanEvery),
		connector.PeriodKey("idle_after", &unused),
		connector.PeriodKey("max_future", &unused),
		connector.FuncKey("connector", "a connector", ignored),
	}
}

// decodeRead reads the connector's own options; rest is the format's.
func decodeRead(options map[string]string) (o ReadOptions, rest map[string]string, err error) {
	o = ReadOptions{Recursive: true, Hive: true, RescanEvery: 5 * time.Minute}
	keys := o.keys()
	mine, rest := split(options, connector.Names(keys))
	if err := connector.Decode(mine, keys...); err != nil {
		return o, nil, err
	}
	if o.Path == "" {
		return o, nil, missingPath(rest, "name a file, a directory or a glob")
	}
	return o, rest, o.validate()
}

// missingPath is the error of options without a path, of which rest are those that the
// connector does not know: one of them may mean it.
func missingPath(rest map[string]string, remedy string) error {
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		if slices.Contains([]string{"location", "file", "filename", "dir", "directory", "url", "uri"}, key) || columnar.NearestName(key, []string{"path"}) != "" {
			return &connector.OptionError{Key: key, Reason: "there is no such option; did you mean path?"}
		}
	}
	return &connector.OptionError{Key: "path", Reason: "it is missing: " + remedy}
}

func (o *ReadOptions) validate() error {
	wrong := func(key, reason string) error { return &connector.OptionError{Key: key, Reason: reason} }
	switch {
	case strings.ContainsRune(o.Path, 0):
		return wrong("path", "it holds a NUL byte")
	case o.MaxFiles > 0 && o.MaxBytes > 0:
		return wrong("max_bytes_per_trigger", "it cannot be used together with max_files_per_trigger")
	case o.Clean == CleanArchive && o.ArchiveDir == "":
		return wrong("archive_dir", "clean_source = 'archive' needs it")
	case o.Clean != CleanArchive && o.ArchiveDir != "":
		return wrong("archive_dir", "it needs clean_source = 'archive'")
	case o.Rescued != "" && o.Evolution != codec.EvolveRescue:
		return wrong("rescued_column", "it needs schema_evolution = 'rescue'")
	case !isMarker(o.DoneMarker):
		return wrong("done_marker", "it is the name of a file, such as _SUCCESS, or a pattern for each file, such as *.done")
	}
	if err := cmp.Or(connector.CheckLocal("path", o.Path), connector.CheckLocal("archive_dir", o.ArchiveDir)); err != nil {
		return err
	}
	o.Path = cleanPath(o.Path)
	if o.ArchiveDir != "" {
		o.ArchiveDir = cleanPath(o.ArchiveDir)
	}
	if o.Clean == CleanArchive && o.wouldRead(o.ArchiveDir) {
		return &connector.OptionError{Key: "archive_dir", Value: o.ArchiveDir, HasValue: true,
			Reason: "it lies within path, so what is archived would be read again; choose a directory elsewhere, or one whose name begins with _"}
	}
	return nil
}

// isMarker says whether a done_marker can be the name of a file, or a pattern for one beside
// each; "" is none.
func isMarker(s string) bool {
	return !strings.Contains(s, "/") && strings.Count(s, "*") <= 1 && !slices.Contains([]string{"*", ".", ".."}, s)
}

// wouldRead says whether a directory lies where the source looks for files.
func (o *ReadOptions) wouldRead(dir string) bool {
	if hasMeta(o.Path) || !o.Recursive {
		return false
	}
	rel, inside := strings.CutPrefix(dir+"/", strings.TrimSuffix(o.Path, "/")+"/")
	return inside && !slices.ContainsFunc(strings.Split(rel, "/"), isHidden)
}

func cleanPath(p string) string { return connector.CleanPath(p) }

// WriteOptions are the options of the filesystem connector for writing.
type WriteOptions struct {
	Path, Format   string
	PartitionBy    []string
	TargetFileSize int64 // 0: one file a batch (and partition)
}

func (o *WriteOptions) keys() []connector.Key {
	keys := []connector.Key{
		connector.TextKey("path", &o.Path),
		connector.FilledKey("format", &o.Format),
		connector.ListKey("partition_by", &o.PartitionBy),
		connector.BytesKey("target_file_size", &o.TargetFileSize),
	}
	// The query's own, which may or may not have been taken out.
	for _, name := range []string{"output_mode", "checkpoint", "trigger", "late_rows", "bad_rows", "query_name", "on_failure", "connector"} {
		keys = append(keys, connector.FuncKey(name, "a value", func(string) error { return nil }))
	}
	return keys
}

func decodeWrite(options map[string]string) (o WriteOptions, rest map[string]string, err error) {
	keys := o.keys()
	mine, rest := split(options, connector.Names(keys))
	if err := connector.Decode(mine, keys...); err != nil {
		return o, nil, err
	}
	switch {
	case o.Path == "":
		return o, nil, missingPath(rest, "name the output directory")
	case strings.ContainsRune(o.Path, 0):
		return o, nil, &connector.OptionError{Key: "path", Reason: "it holds a NUL byte"}
	}
	if err := connector.CheckLocal("path", o.Path); err != nil {
		return o, nil, err
	}
	o.Path = cleanPath(o.Path)
	return o, rest, nil
}
