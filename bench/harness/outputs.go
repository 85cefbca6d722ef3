package harness

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// Outputs are the files a report goes to, and the flags that name them.
type Outputs struct{ bench, json, chart string }

// Flags adds the flags.
func (o *Outputs) Flags(f *flag.FlagSet) {
	f.StringVar(&o.bench, "bench", "", "write Go's benchmark format to this file, too")
	f.StringVar(&o.json, "json", "", "write JSON to this file, too; bench report reads it")
	f.StringVar(&o.chart, "chart", "", "draw a chart into this SVG file, too")
}

// Check finds files that cannot be written, before anything is measured. What they hold
// stays.
func (o *Outputs) Check() error {
	for name, file := range map[string]string{"bench": o.bench, "json": o.json, "chart": o.chart} {
		if err := CheckWritable(name, file); err != nil {
			return err
		}
	}
	return nil
}

// CheckWritable finds that the file of a flag cannot be written. What it holds stays; no
// name is nothing to do.
func CheckWritable(flagName, file string) error {
	if file == "" {
		return nil
	}
	_, missing := os.Stat(file)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return Misused("-%s: %v", flagName, err)
	}
	err = f.Close()
	if missing != nil {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// Write prints the tables and fills the files that were asked for. It is an error if a
// measurement failed, but all is written nevertheless.
func (o *Outputs) Write(out io.Writer, r *Report) error {
	return errors.Join(r.WriteTables(out), ToFile(o.bench, r.WriteBench), ToFile(o.json, r.WriteJSON), ToFile(o.chart, r.WriteChart), r.Failures())
}

// ToFile writes into a file; no name is nothing to do.
func ToFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// NotExpressible begins what is said in Result.Failed of a query that cannot be asked of an
// engine, which is no failure.
const NotExpressible = "not expressible: "

// Failures is an error that counts what failed, or whose results differ.
func (r *Report) Failures() error {
	var failed []string
	for _, res := range r.Results {
		if res.Differs || res.Failed != "" && !strings.HasPrefix(res.Failed, NotExpressible) {
			failed = append(failed, res.Suite+" "+res.Name)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d measurements failed; the table says why: %s", len(failed), len(r.Results), strings.Join(failed, "; "))
}
