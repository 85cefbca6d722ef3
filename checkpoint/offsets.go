package checkpoint

import "github.com/tidemill/tidemill/logical/connector"

// Times and watermarks are microseconds since the epoch, UTC; a nil watermark is
// none.

// OffsetEntry is the intent of a batch, in offsets/N: together with state version
// N it determines every row of the batch.
type OffsetEntry struct {
	Batch int64 `json:"batch"`
	// Query is the query id of the checkpoint: the entry does not need metadata.
	Query string `json:"query"`
	// Time is the batch time, what now() returns.
	Time int64 `json:"time_us"`
	// Seed is that of random functions.
	Seed uint64 `json:"seed,string"`
	// LateWatermark is what rows are judged late by, EvictionWatermark what state
	// is evicted by: the watermarks of the batch before and of this one.
	LateWatermark     *int64 `json:"late_watermark_us"`
	EvictionWatermark *int64 `json:"eviction_watermark_us"`
	// Maxima is the largest event time seen by each watermark node before this
	// batch. A node that has seen none is not in it.
	Maxima map[string]int64 `json:"maxima_us"`
	// Sources are the ranges to read, in the order of the plan.
	Sources []SourceRange `json:"sources"`
	// Tables are the bounded tables the batch reads, as they were.
	Tables []TableFiles `json:"tables"`
	// SchemaVersion is that of the pinned columns of sources in plan.json.
	SchemaVersion int64 `json:"schema_version"`
	// Plan is the fingerprint of the plan that the batch was planned for.
	Plan string `json:"plan"`
	// Settings are the pinned settings.
	Settings map[string]string `json:"settings"`
}

// SourceRange is the part (Start, End] of a source.
type SourceRange struct {
	Name  string           `json:"name"`
	Start connector.Offset `json:"start"`
	End   connector.Offset `json:"end"`
	// LastEntry is the newest entry of the source's log when the offsets were
	// written (SourceLog.Latest), NoBatch if none: entries up to it are named,
	// later ones may be replaced.
	LastEntry int64 `json:"last_entry"`
}

// TableFiles is a bounded table as a batch sees it.
type TableFiles struct {
	Name  string      `json:"name"`
	Files []InputFile `json:"files"`
}

// InputFile is an input file and what is known of its content.
type InputFile struct {
	// Source is the name of the stream or table; empty where that is clear.
	Source  string `json:"source,omitzero"`
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	ModTime int64  `json:"mtime_us"`
	// Hash is the xxh3-128 of the content (for Parquet: of footer and size), in
	// hexadecimal; empty if it was not taken.
	Hash string `json:"hash,omitzero"`
	// Rows is how many records were read from it, if that is known.
	Rows int64 `json:"rows,omitzero"`
}

// Identity is what a source compares to know whether the file changed.
func (f InputFile) Identity() connector.FileIdentity {
	return connector.FileIdentity{Path: f.Path, Size: f.Size, ModTime: f.ModTime}
}

// NamedEntry is the newest entry of the log of source i that the offsets name,
// NoBatch for a nil entry or a source it does not have.
func (e *OffsetEntry) NamedEntry(i int) int64 {
	if e == nil || i >= len(e.Sources) {
		return NoBatch
	}
	return e.Sources[i].LastEntry
}
