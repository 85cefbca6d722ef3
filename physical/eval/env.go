package eval

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar/function"
)

// Env is what expressions may know beside their columns. It is borrowed for a call.
type Env struct {
	Mem      memory.Allocator
	Now      int64          // batch time, microseconds since the epoch, UTC
	Location *time.Location // session time zone; nil is UTC
	// Seed is of this Arrow batch: with the same Seed a volatile expression gives the
	// same values. An operator gives each of its batches another one (Mix).
	Seed uint64
	// Salt is of the query: what random functions without a seed of their own are seeded
	// with beside Seed. A stream has none, so that its batches can be computed again.
	Salt uint64
}

// Mix derives another seed from seed, one for each n.
func Mix(seed, n uint64) uint64 {
	x := seed + (n+1)*0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func (e *Env) function() function.Env {
	return function.Env{Mem: e.Mem, Now: e.Now, Location: e.Location, Seed: e.Seed, Salt: e.Salt}
}
