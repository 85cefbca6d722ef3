package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "duckdb:", err)
		os.Exit(1)
	}
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
	return errors.New("usage: duckdb compare|tpch|fresh|smoke [flags]; -h after a command lists its flags")
}
