package main

import (
	"encoding/json"
	"errors"
	"os"
	"runtime/pprof"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/usage"
)

// measures are the hidden flags that the benchmarks use; bench/README.md tells of them.
type measures struct {
	usage, profile string // files, or nothing

	meter *usage.Meter
	cpu   *os.File
}

func (m *measures) flags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&m.usage, "usage", "", "write what the process used to this file, as JSON")
	f.StringVar(&m.profile, "cpu-profile", "", "write a profile of the processor's time to this file")
	for _, name := range []string{"usage", "cpu-profile"} {
		f.Lookup(name).Hidden = true
	}
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return m.start() }
}

func (m *measures) start() error {
	if m.usage != "" {
		m.meter = usage.Start()
	}
	if m.profile == "" {
		return nil
	}
	var err error
	if m.cpu, err = os.Create(m.profile); err != nil {
		return &usageError{err}
	}
	return pprof.StartCPUProfile(m.cpu)
}

// stop writes the files that were asked for.
func (m *measures) stop() error {
	var errs []error
	if m.cpu != nil {
		pprof.StopCPUProfile()
		errs = append(errs, m.cpu.Close())
	}
	if m.meter != nil {
		data, err := json.Marshal(m.meter.Stop())
		errs = append(errs, err, os.WriteFile(m.usage, data, 0o666))
	}
	return errors.Join(errs...)
}
