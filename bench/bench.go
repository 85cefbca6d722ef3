// Command bench makes the data of the benchmarks and measures the engine by itself; see
// README.md.
//
//	go run ./bench gen -data h2o -rows 10000000 -format parquet -out DIR
//	go run ./bench run -suite nexmark,latency -tidemill BINARY
//	go run ./bench report -as DATE-COMMIT REPORT.json …
//	go run ./bench profile
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/internal/vfs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(harness.ExitCode(os.Stderr, "bench", run(ctx, os.Args[1:], os.Stdout)))
}

const synopsis = "usage: bench run [-suite …] [flags], or bench profile [flags], or bench report [-as DATE-COMMIT FILE.json …], or bench gen -data h2o|events|landing|nexmark|tpch -rows N -format parquet|csv|jsonl[,…] -out DIR [-seed S] [-groups K] [-files N] [-scale F]"

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == "gen":
		return makeData(args, out)
	case len(args) > 0 && args[0] == "run":
		return runSuites(ctx, args[1:], out)
	case len(args) > 0 && args[0] == "report":
		return makeReport(args[1:], out)
	case len(args) > 0 && args[0] == "profile":
		return makeProfile(ctx, args[1:], out)
	}
	return harness.Misused("%s", synopsis)
}

var dataSets = []string{"h2o", "events", "landing", "nexmark", "tpch"}

func makeData(args []string, out io.Writer) error {
	f := flag.NewFlagSet("bench gen", flag.ContinueOnError)
	data := f.String("data", "h2o", "data set: "+strings.Join(dataSets, ", "))
	scale := f.Float64("scale", 1, "tpch: scale; 1 has 6,000,000 lines of orders")
	rows := f.Int64("rows", 1_000_000, "number of rows; nexmark: events")
	formats := f.String("format", "parquet", "formats, separated by commas: parquet, csv, jsonl")
	dir := f.String("out", ".", "directory to write to")
	seed := f.Uint64("seed", 1, "seed of the random numbers")
	groups := f.Int64("groups", 100, "h2o: number of small groups; events, landing: 10 times as many keys")
	files := f.Int64("files", 100, "landing, nexmark: number of files, of each stream")
	if err := harness.Parse(f, args[1:]); err != nil {
		return err
	}
	if err := harness.Positive(f, "rows", "groups", "files", "scale"); err != nil {
		return err
	}
	if err := harness.Known("data", *data, dataSets); err != nil {
		return err
	}
	list, err := harness.KnownList("format", *formats, gen.Formats)
	if err != nil {
		return err
	}
	fsys := vfs.OS()
	if err := fsys.MkdirAll(*dir); err != nil {
		return err
	}
	for _, format := range list {
		if *data == "tpch" {
			if err := generateTPCH(fsys, format, filepath.ToSlash(*dir), *seed, *scale, out); err != nil {
				return err
			}
			continue
		}
		name, err := generate(fsys, *data, format, filepath.ToSlash(*dir), *seed, *rows, *groups, *files)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, name)
	}
	return nil
}

func generate(fsys vfs.FS, data, format, dir string, seed uint64, rows, groups, files int64) (string, error) {
	name := fmt.Sprintf("%s/%s-%d.%s", dir, data, rows, format)
	switch data {
	case "h2o":
		return name, gen.Write(fsys, name, format, gen.H2O(seed, rows, groups))
	case "events":
		return name, gen.Write(fsys, name, format, gen.Events(seed, rows, groups*10))
	case "landing":
		name = fmt.Sprintf("%s/landing-%d-%s", dir, rows, format)
		_, err := gen.Landing(fsys, name, format, gen.Events(seed, rows, groups*10), (rows+files-1)/files)
		return name, err
	case "nexmark":
		name = fmt.Sprintf("%s/nexmark-%d-%s", dir, rows, format)
		for _, stream := range gen.NEXMarkTables {
			d, err := gen.NEXMark(seed, stream, rows)
			if err != nil {
				return "", err
			}
			if _, err := gen.Landing(fsys, name+"/"+stream, format, d, max((d.Rows+files-1)/files, 1)); err != nil {
				return "", err
			}
		}
		return name, nil
	}
	panic("bug: no generator for data set " + data)
}

// generateTPCH makes the eight tables, each a file named for it.
func generateTPCH(fsys vfs.FS, format, dir string, seed uint64, scale float64, out io.Writer) error {
	for _, table := range gen.TPCHTables {
		d, err := gen.TPCH(seed, table, scale)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s/%s.%s", dir, table, format)
		if err := gen.Write(fsys, name, format, d); err != nil {
			return err
		}
		fmt.Fprintln(out, name)
	}
	return nil
}
