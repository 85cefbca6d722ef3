package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/tidemill/tidemill/bench/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(harness.ExitCode(os.Stderr, "duckdb", run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "compare":
			return compare(ctx, args[1:])
		case "tpch":
			return tpch(ctx, args[1:])
		case "fresh":
			return fresh(ctx, args[1:])
		case "smoke":
			return runSmoke(ctx, args[1:])
		case childCommand:
			return child(ctx, args[1:])
		case makeCommand:
			return makeTable(args[1:])
		case freshCommand:
			return freshProcess(ctx, args[1:])
		}
	}
	return harness.Misused("usage: duckdb compare|tpch|fresh|smoke [flags]; -h after a command lists its flags")
}
