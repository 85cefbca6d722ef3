package optimizer

import (
	"sync"

	"github.com/tidemill/tidemill/columnar/function"
)

// builtins is the registry rules take operators from; built on first use, then only
// read.
var builtins = sync.OnceValue(function.Builtins)
