package checkpoint

import "github.com/tidemill/tidemill/logical/connector"

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
	Inputs   []InputFile `json:"inputs"`
	Counters Counters    `json:"counters"`
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
