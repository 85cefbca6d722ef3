package formats_test

import (
	"testing"

	"github.com/tidemill/tidemill/formats"
	"github.com/tidemill/tidemill/formats/file"
	"github.com/tidemill/tidemill/internal/vfs"
)

// TestReadsBack has a source find what a sink writes wherever a listing would.
func TestReadsBack(t *testing.T) {
	t.Parallel()
	type options = map[string]string
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("/w/in"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, out string
		more      options // of the sink
		source    options
		want      bool
	}{
		{"/w/in", "/w/in", nil, nil, true},
		{"/w/in", "/w/in/out", nil, nil, true},
		{"/w/in", "/w/in/out", nil, options{"recursive": "false"}, false},
		{"/w/in", "/w/in", nil, options{"recursive": "false"}, true},
		{"/w/in", "/w/in", options{"partition_by": "k"}, options{"recursive": "false"}, false},
		{"/w/in", "/w/in/_out", nil, nil, false},
		{"/w/in", "/w/in/.out/x", nil, nil, false},
		{"/w/in", "/w/in/x.checkpoint", nil, nil, false},
		{"/w/in", "/w/inner", nil, nil, false},
		{"/w/in", "/w", nil, nil, false},
		{"/w/in/*.csv", "/w/in", nil, nil, true},
		{"file:///w/in/*.csv", "/w/in/", nil, nil, true},
		{"/w/in/*.csv", "/w/in/../in/.", nil, nil, true},
		{"/w/in/*.csv", "/w/in/out", nil, nil, false},
		{"/w/in/**/*.csv", "/w/in/out/deep", nil, nil, true},
		{"/w/in/**", "/w/in/out", nil, nil, true},
		{"/w/in/*/x*.csv", "/w/in/out", nil, nil, false},
		{"/w/in/*/*.csv", "/w/in/out", nil, nil, true},
		{"/w/in/*/*.csv", "/w/in/_out", nil, nil, false},
		{"/w/in/_out/*.csv", "/w/in/_out", nil, nil, true},
		{"/w/in/*.csv", "/w/in", options{"format": "json"}, nil, false},
		{"/w/in/*.csv", "/w/in", options{"compression": "gzip"}, nil, false},
		{"/w/in/*.csv*", "/w/in", options{"compression": "gzip"}, nil, true},
		{"/w/in/[0-9]*.csv", "/w/in", nil, nil, false},
		{"/w/in/*7-000.csv", "/w/in", nil, nil, true},
		{"/w/{in,other}/*.csv", "/w/other", nil, nil, true},
		{"/w/*", "/w/other", nil, nil, true},
		{"/w/in/*.csv", "/w/in", options{"partition_by": "day"}, nil, false},
		{"/w/in/*/*.csv", "/w/in", options{"partition_by": "day"}, nil, true},
		{"/w/in/*/*.csv", "/w/in", options{"partition_by": "day, hour"}, nil, false},
		{"/w/in/day=2024*/*.csv", "/w/in", options{"partition_by": "day"}, nil, true},
		{"/w/in/hour=*/*.csv", "/w/in", options{"partition_by": "day"}, nil, false},
		{"/w/in/**/*.csv", "/w/in", options{"partition_by": "day, hour"}, nil, true},
		{"/w/in/day=1/*.csv", "/w/in", options{"partition_by": "day"}, nil, true},
		{"/w/in/day=1/*.csv", "/w/in", options{"partition_by": "hour"}, nil, false},
		{"/w/in/day=1/*.csv", "/w/in", nil, nil, false},
	} {
		source, sink := options{"path": c.path, "format": "csv"}, options{"path": c.out, "format": "csv"}
		for k, v := range c.source {
			source[k] = v
		}
		for k, v := range c.more {
			sink[k] = v
		}
		if got := file.ReadsBack(fsys, formats.Files(), source, sink); got != c.want {
			t.Errorf("%v, %v: %v", source, sink, got)
		}
	}
}
