// Command embed is a Go program with the engine inside: it keeps a running summary of the
// order files of examples/orders in memory, prints each change, and answers a question at
// the end.
//
//	go run ./examples/embed
//
// Run it again: it goes on where it stopped, and finds nothing new until another file
// lands in examples/orders/landing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/formats/parquet"
	"github.com/tidemill/tidemill/logical"
)

func main() {
	in := flag.String("in", "examples/orders/landing", "where order files land")
	out := flag.String("out", "out/embed", "where results and checkpoints go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(int(tidemill.KindOf(err)))
	}
}

func run(ctx context.Context, in, out string) error {
	s, err := tidemill.NewSession(tidemill.Options{Warn: func(text string) { fmt.Fprintln(os.Stderr, "warning:", text) }})
	if err != nil {
		return err
	}
	if err := s.RegisterFunction(sizeClass()); err != nil {
		return err
	}
	orders := describe(s, in)

	// Two queries over one stream, side by side.
	lines, err := s.WriteStream(orders).Name("lines").To(filepath.Join(out, "lines"), parquet.Options{}).
		PartitionBy("size").Trigger(tidemill.AvailableNow()).Start(ctx)
	if err != nil {
		return err
	}
	perSize := orders.GroupBy(tidemill.Col("size")).
		Agg(tidemill.Count().As("lines"), tidemill.Sum(tidemill.Col("total")).As("revenue"))
	changes, err := s.WriteStream(perSize).Name("changes").ForeachBatch(printChanges).
		Mode(tidemill.Update).Checkpoint(filepath.Join(out, "changes.checkpoint")).
		Trigger(tidemill.AvailableNow()).Start(ctx)
	if err != nil {
		return errors.Join(err, lines.Stop(ctx))
	}
	if err := errors.Join(lines.Wait(ctx), changes.Wait(ctx)); err != nil {
		return err
	}

	rows, err := s.Collect(ctx, s.Read(filepath.Join(out, "lines")).
		OrderBy(tidemill.Col("total").Desc(), tidemill.Col("order_id")).
		Select(tidemill.Col("city"), tidemill.Col("product"), tidemill.Col("total")).
		Limit(3))
	if err != nil {
		return err
	}
	defer rows.Release()
	fmt.Println("the largest lines:")
	for _, row := range rows.All() {
		fmt.Printf("  %-8v %-8v %v\n", row...)
	}
	return nil
}

// describe says what the orders are; nothing runs yet.
func describe(s *tidemill.Session, in string) *logical.DataFrame {
	schema := columnar.NewSchema(
		columnar.Field("ts", columnar.Timestamp),
		columnar.Field("order_id", columnar.Int64),
		columnar.Field("city", columnar.String),
		columnar.Field("product", columnar.String),
		columnar.Field("quantity", columnar.Int64),
		columnar.Field("price", columnar.Decimal(10, 2)),
	)
	return s.ReadStreamFrom("filesystem", map[string]string{
		"path": in, "format": "csv", "header": "true", "max_files_per_trigger": "2",
	}, schema).
		WithColumn("total", tidemill.Col("quantity").Mul(tidemill.Col("price"))).
		WithColumn("size", tidemill.Func("size_class", tidemill.Col("quantity")))
}

// sizeClass is a function of our own.
func sizeClass() *function.Scalar {
	return tidemill.ScalarFunc("size_class", []arrow.DataType{columnar.Int64}, columnar.String, func(args []any) (any, error) {
		if args[0].(int64) >= 5 {
			return "large", nil
		}
		return "small", nil
	})
}

// printChanges is given the groups that each micro-batch changed.
func printChanges(ctx context.Context, batchID int64, rows columnar.Reader) error {
	for b, err := range columnar.All(ctx, rows) {
		if err != nil {
			return err
		}
		fmt.Printf("batch %d:\n  %s\n", batchID, strings.ReplaceAll(strings.TrimSpace(text(b)), "\n", "\n  "))
	}
	return nil
}

func text(b arrow.RecordBatch) string {
	return columnar.Text(b.Schema(), []arrow.RecordBatch{b}, columnar.TextOptions{})
}
