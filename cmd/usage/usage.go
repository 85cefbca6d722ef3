// Package usage measures what a process uses: memory, allocations, bytes read. The
// benchmarks read it of a tidemill process and of themselves. It is not part of the
// public API.
package usage

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Usage is what a process used from a start to a stop.
type Usage struct {
	// PeakBytes is the most memory that was resident, and ReadBytes how much system calls
	// read, of files and pipes; both are 0 where the system has no /proc.
	PeakBytes int64 `json:"peakBytes"`
	ReadBytes int64 `json:"readBytes"`
	// Allocs and AllocBytes count what Go code allocated on its heap.
	Allocs     int64 `json:"allocs"`
	AllocBytes int64 `json:"allocBytes"`
}

// Meter is what had been used at the start.
type Meter struct{ at Usage }

// Start begins to measure. What was the peak of memory before is forgotten.
func Start() *Meter {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // else the peak is that of the whole process
	return &Meter{at: now()}
}

// Stop gives what was used since Start.
func (m *Meter) Stop() Usage {
	u := now()
	u.ReadBytes -= m.at.ReadBytes
	u.Allocs -= m.at.Allocs
	u.AllocBytes -= m.at.AllocBytes
	return u
}

func now() Usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Usage{
		PeakBytes: field("/proc/self/status", "VmHWM") * 1024, ReadBytes: field("/proc/self/io", "rchar"),
		Allocs: int64(m.Mallocs), AllocBytes: int64(m.TotalAlloc),
	}
}

// field is the number after a name and a colon in a file of the system, 0 if there is
// none.
func field(file, name string) int64 {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		rest, ok := strings.CutPrefix(line, name+":")
		if words := strings.Fields(rest); ok && len(words) > 0 {
			n, _ := strconv.ParseInt(words[0], 10, 64)
			return n
		}
	}
	return 0
}
