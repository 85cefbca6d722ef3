package harness

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Measurement is one run of a process.
type Measurement struct {
	Wall, CPU time.Duration // CPU is user and system time of all threads
	PeakBytes int64
	Stdout    []byte
	Stderr    []byte
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
