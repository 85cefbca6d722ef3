package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A process that holds little may let its heap grow to five times what it holds before it
// collects garbage: with Go's own setting, twice, a query of 60 ms collects eight times,
// a sixth of its processor time. Once it holds smallHeap, Go's setting is back.
const (
	smallHeap        = 8 << 20
	smallHeapPercent = 400
	usualPercent     = 100
)

// easeCollector applies the setting, unless the user has one.
func easeCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(smallHeapPercent)
	watchHeap()
}

// watchHeap looks at the heap after each collection for as long as it is small.
func watchHeap() {
	mark := new([16]byte) // garbage at once: its cleanup runs after the next collection
	runtime.AddCleanup(mark, func(struct{}) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if live[0].Value.Uint64() < smallHeap {
			watchHeap()
			return
		}
		debug.SetGCPercent(usualPercent)
	}, struct{}{})
}
