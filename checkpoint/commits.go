package checkpoint

import (
	"encoding/hex"

	"github.com/tidemill/tidemill/logical/connector"
)

// CommitEntry is what a batch left behind. It is written to prepared/N before the
// batch is visible and renamed to commits/N after; from then on the next batch
// starts from it alone.
type CommitEntry struct {
	Batch int64 `json:"batch"`
	// Offsets is a copy of offsets/N.
	Offsets OffsetEntry `json:"offsets"`
	// State names the files that make up version N+1 of each operator's state.
	State []OperatorState `json:"state"`
	// NextWatermark is the watermark after this batch: the next one evicts by it.
	NextWatermark *int64 `json:"next_watermark_us"`
	// Maxima is the largest event time seen by each watermark node up to and with
	// this batch.
	Maxima map[string]int64 `json:"maxima_us"`
	// Seen is the batch time at which each watermark node with idle_after last had rows; of
	// one that had none yet, when the query first began.
	Seen map[string]int64 `json:"seen_us,omitempty"`
	// Sources are where each source has been read to, in the order of the plan.
	Sources []SourceEnd `json:"sources"`
	// Inputs are the files that were read, with the hashes taken while reading.
	Inputs []InputFile `json:"inputs"`
	// ManyInputs stand in place of Inputs in a batch of very many files, which the log of
	// the source names.
	ManyInputs []InputHashes `json:"many_inputs,omitempty"`
	Counters   Counters      `json:"counters"`
}

// InputHashes are the hashes of the files that a batch read of one source, in the order in
// which the source's log names them: hashBytes each, all zeros if none was taken.
type InputHashes struct {
	Source string `json:"source"`
	Files  int64  `json:"files"`
	Hashes []byte `json:"hashes"`
}

// hashBytes is how long an xxh3-128 is.
const hashBytes = 16

// Hash is that of file i in hexadecimal, as in an InputFile.
func (h *InputHashes) Hash(i int64) string {
	if i >= h.Files || (i+1)*hashBytes > int64(len(h.Hashes)) {
		return ""
	}
	sum := [hashBytes]byte(h.Hashes[i*hashBytes:])
	if sum == [hashBytes]byte{} {
		return ""
	}
	return hex.EncodeToString(sum[:])
}

// AddInputHash adds a file to its source's. The files of a source come one after another.
func AddInputHash(to []InputHashes, f InputFile) []InputHashes {
	if n := len(to); n == 0 || to[n-1].Source != f.Source {
		to = append(to, InputHashes{Source: f.Source})
	}
	h := &to[len(to)-1]
	var sum [hashBytes]byte
	if text, err := hex.DecodeString(f.Hash); err == nil && len(text) == hashBytes {
		sum = [hashBytes]byte(text)
	}
	h.Files++
	h.Hashes = append(h.Hashes, sum[:]...)
	return to
}

// InputFiles is how many files the batch read.
func (e *CommitEntry) InputFiles() int64 {
	n := int64(len(e.Inputs))
	for _, h := range e.ManyInputs {
		n += h.Files
	}
	return n
}

// SourceEnd is what a batch did to one source.
type SourceEnd struct {
	Name      string           `json:"name"`
	End       connector.Offset `json:"end"`
	Rows      int64            `json:"rows"`
	Malformed int64            `json:"malformed,omitzero"`
}

// Counters are the rows of a batch.
type Counters struct {
	In        int64 `json:"in"`
	Out       int64 `json:"out"`
	Late      int64 `json:"late"`
	Malformed int64 `json:"malformed"`
}

// OperatorState names the files of one version of an operator's state.
type OperatorState struct {
	Operator string `json:"operator"`
	Version  int64  `json:"version"`
	// Rows is the number of rows of all tables at this version.
	Rows int64 `json:"rows"`
	// Files are in the order in which they are read: for each table the newest
	// snapshot, if there is one, and the changes after it.
	Files []StateFile `json:"files"`
}

// FileKind says what a state file holds.
type FileKind string

// The kinds of state files: the whole of a version, or what changed.
const (
	Snapshot FileKind = "snapshot"
	Change   FileKind = "change"
)

// StateFile is one file of state, in state/OP.
type StateFile struct {
	Table string   `json:"table"`
	Kind  FileKind `json:"kind"`
	// From and To are versions: a change leads from From to To, a snapshot is To
	// (and From is 0).
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Name string `json:"name"`
	Size int64  `json:"size"`
	Hash string `json:"hash"` // HashBytes of the file
	Rows int64  `json:"rows"`
	// EvictionBound is the largest order prefix whose rows a change removes, nil
	// if it evicts nothing.
	EvictionBound *int64 `json:"eviction_bound,omitzero"`
}

// StateOf returns the files of an operator.
func (e *CommitEntry) StateOf(operator string) (OperatorState, bool) {
	if e != nil {
		for _, s := range e.State {
			if s.Operator == operator {
				return s, true
			}
		}
	}
	return OperatorState{}, false
}
