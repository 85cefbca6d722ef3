package streamtest

import "github.com/tidemill/tidemill/checkpoint"

// The snapshot policies of the matrix.
var (
	alwaysSnapshot = checkpoint.SnapshotPolicy{Always: true}
	neverSnapshot  = checkpoint.SnapshotPolicy{Never: true}
)
