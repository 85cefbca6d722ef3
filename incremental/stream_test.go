package incremental_test

import (
	"testing"

	"github.com/tidemill/tidemill/incremental/streamtest"
)

func TestStream(t *testing.T) { streamtest.Golden(t, "testdata/stream") }
