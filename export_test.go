package tidemill

import (
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
)

// WithFS is o over another filesystem, for tests.
func (o Options) WithFS(fs vfs.FS) Options { o.fs = fs; return o }

// SetMemory makes s allocate from mem, for tests.
func SetMemory(s *Session, mem memory.Allocator) { s.mem = mem }

// WithClock is o with another clock, for tests.
func (o Options) WithClock(c incremental.Clock) Options { o.clock = c; return o }
