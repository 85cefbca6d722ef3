package harness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tidemill/tidemill/cmd/usage"
)

// Measurement is one run of a process.
type Measurement struct {
	Wall, CPU   time.Duration // CPU is user and system time of all threads
	usage.Usage               // of Run the peak of memory alone
	Stdout      []byte
	Stderr      []byte
}

// Run runs a program to its end and measures it. The peak memory of a process that is
// started counts from that of the one that starts it, so that one should be small.
func Run(ctx context.Context, name string, args ...string) (Measurement, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	m := Measurement{Wall: time.Since(start), Stdout: out.Bytes(), Stderr: errs.Bytes()}
	if err != nil {
		return m, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	m.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.PeakBytes = usage.Maxrss * 1024
	}
	return m, nil
}

// Tidemill runs a tidemill binary to its end; the process tells by itself what it used.
func Tidemill(ctx context.Context, binary string, args ...string) (Measurement, error) {
	f, err := os.CreateTemp("", "tidemill-usage-")
	if err != nil {
		return Measurement{}, err
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return Measurement{}, err
	}
	m, err := Run(ctx, binary, append([]string{"--usage", f.Name()}, args...)...)
	if err != nil {
		return m, err
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		return m, err
	}
	peak := m.PeakBytes
	if err := json.Unmarshal(data, &m.Usage); err != nil {
		return m, err
	}
	if m.PeakBytes == 0 { // no /proc
		m.PeakBytes = peak
	}
	return m, nil
}

// Median is the run of median time.
func Median(list []Measurement) Measurement {
	sorted := slices.SortedFunc(slices.Values(list), func(a, b Measurement) int { return cmp.Compare(a.Wall, b.Wall) })
	return sorted[len(sorted)/2]
}

// UsageColumns are the columns that SetUsage fills.
var UsageColumns = []string{"MB", "alloc MB", "allocs", "read MB"}

// SetUsage notes what was used: peak memory, allocations of Go code, bytes read.
func (res *Result) SetUsage(u usage.Usage) {
	res.Set("MB", float64(u.PeakBytes)/1e6, "MB-peak")
	res.Set("alloc MB", float64(u.AllocBytes)/1e6, "MB-alloc")
	res.Set("allocs", float64(u.Allocs), "allocs")
	res.Set("read MB", float64(u.ReadBytes)/1e6, "MB-read")
}

// Set notes the value of a column.
func (res *Result) Set(column string, number float64, unit string) {
	if res.Values == nil {
		res.Values = map[string]Value{}
	}
	res.Values[column] = Value{Number: number, Unit: unit}
}
