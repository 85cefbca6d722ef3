package optimizer

import "github.com/tidemill/tidemill/logical"

// EliminateWatermark removes watermarks over bounded data, where they mean nothing.
var EliminateWatermark Rule = rule{"eliminate_watermark", func(n logical.Node) (logical.Node, error) {
	if w, ok := n.(*logical.Watermark); ok && !logical.IsStreaming(w.Input) {
		return w.Input, nil
	}
	return n, nil
}}
