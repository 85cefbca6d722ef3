package checkpoint

import (
	"path"

	"github.com/tidemill/tidemill/internal/vfs"
)

// Rewind makes the checkpoint in dir look, on an overlay, as if no batch had run: its
// logs are hidden. What it is, what its query was and the memory of its sources stay, so
// that its batches can run again there. With keepState the state files stay, too: a batch
// can then begin with those that the commit of the one before names.
func Rewind(o *vfs.Overlay, dir string, keepState bool) {
	hidden := append([]string{lastErrorName}, logDirs...)
	if !keepState {
		hidden = append(hidden, stateName)
	}
	for _, name := range hidden {
		o.Hide(path.Join(dir, name))
	}
}
