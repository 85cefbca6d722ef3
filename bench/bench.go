// Command bench makes the data of the benchmarks; see README.md.
//
//	go run ./bench gen -data h2o -rows 10000000 -format parquet -out DIR
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemill/tidemill/bench/gen"
	"github.com/tidemill/tidemill/internal/vfs"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

const usage = "usage: bench gen -data h2o|events|landing -rows N -format parquet|csv|jsonl[,…] -out DIR [-seed S] [-groups K] [-files N]"

func run(args []string, out io.Writer) error {
	if len(args) == 0 || args[0] != "gen" {
		return errors.New(usage)
	}
	f := flag.NewFlagSet("bench gen", flag.ContinueOnError)
	data := f.String("data", "h2o", "data set: h2o, events, landing")
	rows := f.Int64("rows", 1_000_000, "number of rows")
	formats := f.String("format", "parquet", "formats, separated by commas: parquet, csv, jsonl")
	dir := f.String("out", ".", "directory to write to")
	seed := f.Uint64("seed", 1, "seed of the random numbers")
	groups := f.Int64("groups", 100, "h2o: number of small groups; events, landing: 10 times as many keys")
	files := f.Int64("files", 100, "landing: number of files")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if *rows <= 0 || *groups <= 0 || *files <= 0 {
		return errors.New("-rows, -groups and -files must be positive")
	}
	fsys := vfs.OS()
	if err := fsys.MkdirAll(*dir); err != nil {
		return err
	}
	for _, format := range strings.Split(*formats, ",") {
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
	}
	return "", fmt.Errorf("data set %q is unknown; known are h2o, events, landing", data)
}
